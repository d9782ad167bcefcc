"""What is made from the models is current and names every key."""

import json
import re
from functools import cache

import pytest

from benchbook.commands import cli
from benchbook.core import schema_docs
from benchbook.core.study import registry, study_hosts
from benchbook.core.study.params import Analysis, Limits, Params
from benchbook.core.study.study import Study
from benchbook.core.study.study_arm import Arm, ArmData, Cpu, Kernel, Load, Neighbour, ZoneDistance
from benchbook.core.study.study_cluster import ArmEvent, Cluster, Event
from benchbook.core.study.study_hosts import ArmAddress, Existing
from benchbook.core.study.study_kubernetes import (
    Gke,
    GuaranteedResources,
    Images,
    Kubernetes,
    NodePlacement,
    NodePool,
    OperatorCluster,
    PodResources,
    Storage,
    TidbPart,
)
from benchbook.core.study.study_sections import (
    Build,
    Dataset,
    Engine,
    Plan,
    SiteSection,
    TwinArm,
    WarmUp,
    Workload,
)
from benchbook.core.util import paths

SECTIONS = {
    "`studies/NAME.yaml`": Study,
    "`site`": SiteSection,
    "`site.existing`": Existing,
    "`site.tiup`": study_hosts.Tiup,
    "`site.tiup.pd`, `site.tiup.tikv`, `site.tiup.tidb`": study_hosts.TiupPart,
    "`site.kubernetes`": Kubernetes,
    "`site.kubernetes.images`": Images,
    "`site.kubernetes.server`, `site.kubernetes.client`, `arms.NAME.resources.requests`, "
    "`arms.NAME.resources.limits`": GuaranteedResources,
    "`site.kubernetes.storage`": Storage,
    "`site.kubernetes.tidb`": OperatorCluster,
    "`site.kubernetes.tidb.pd`, `site.kubernetes.tidb.tikv`, `site.kubernetes.tidb.tidb`": TidbPart,
    "`site.kubernetes.gke`": Gke,
    "`site.kubernetes.gke.pools.NAME`": NodePool,
    "`engine`, `arms.NAME.engine`": Engine,
    "`engine.build`, `arms.NAME.engine.build`": Build,
    "`engine.cluster`, `arms.NAME.engine.cluster`": Cluster,
    "`engine.cluster.event`, `arms.NAME.engine.cluster.event`": Event,
    "`arms.NAME`": Arm,
    "`arms.NAME.cpu.NAME`": Cpu,
    "`arms.NAME.neighbour`": Neighbour,
    "`arms.NAME.zones`": ZoneDistance,
    "`arms.NAME.kernel`": Kernel,
    "`arms.NAME.data`": ArmData,
    "`arms.NAME.load`": Load,
    "`arms.NAME.placement`": NodePlacement,
    "`arms.NAME.proxy`": study_hosts.HostProxy,
    "`arms.NAME.numa`": study_hosts.Numa,
    "`arms.NAME.resources`": PodResources,
    "`arms.NAME.event`": ArmEvent,
    "`arms.NAME.parts`": study_hosts.PartSettings,
    "`arms.NAME.endpoint`": ArmAddress,
    "`aa`": TwinArm,
    "`dataset`": Dataset,
    "`workloads.NAME`": Workload,
    "`plan`": Plan,
    "`warm_up`": WarmUp,
    "`params.yaml`": Params,
    "`analysis`": Analysis,
    "`limits`": Limits,
}
CHECKED = [
    ("reference", "docs/parameters.md"),
    ("reference", "studies/README.md"),
    ("schema", "schemas/study.schema.json"),
]


@cache
def checked(command: str) -> int:
    """Check all that a command writes; return its exit code."""
    return cli.main([command, "--check"])


@pytest.mark.parametrize(("command", "file"), CHECKED)
def test_the_file_in_the_repository_is_current(command: str, file: str):
    assert (paths.find_root() / file).is_file()
    assert checked(command) == 0, f"run `benchbook {command}` and commit {file}"


@pytest.mark.parametrize("command", sorted({command for command, _ in CHECKED}))
def test_a_file_that_is_behind_is_told_and_not_written(command, tmp_path, monkeypatch, capsys):
    """All files of a command are made each time, so that they are looked at together."""
    its = [tmp_path / file for one, file in CHECKED if one == command]
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    assert cli.main([command, "--check"]) == 1
    assert not any(file.exists() for file in its)
    assert f"not current; run `benchbook {command}`" in capsys.readouterr().out
    assert cli.main([command]) == 0
    assert cli.main([command, "--check"]) == 0
    for file in its:
        text = file.read_text()
        file.write_text(text + " ")
        assert cli.main([command, "--check"]) == 1, file
        file.write_text(text)


@cache
def tables() -> dict[str, list[list[str]]]:
    """Return the rows of each section of the page."""
    parts = re.split(r"^##+ (.*)\n", schema_docs.render_page(), flags=re.M)[1:]
    return {
        heading: [
            list(re.fullmatch(r"- `(\w+)`(.*?): (.*)", line).groups())  # type: ignore[union-attr]
            for line in text.splitlines()
            if line.startswith("- ")
        ]
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_the_page_has_every_section_with_every_key():
    found = {heading: [row[0] for row in rows] for heading, rows in tables().items()}
    assert found == {heading: list(model.model_fields) for heading, model in SECTIONS.items()}


@pytest.mark.parametrize("heading", SECTIONS)
def test_a_row_has_value_default_and_meaning(heading: str):
    for key, value, meaning in tables()[heading]:
        field = SECTIONS[heading].model_fields[key]
        assert meaning.endswith(".") and meaning.count("(") == meaning.count(")")
        assert value.endswith("(required)") == field.is_required()


def test_values_limits_and_defaults_are_those_of_the_model():
    rows = {(heading, row[0]): row[1].strip() for heading, table in tables().items() for row in table}
    assert rows["`dataset`", "table_size"] == "(`20000`)"
    assert rows["`plan`", "blocks"] == "(required)"
    assert rows["`workloads.NAME`", "rand_type"] == "`uniform`, `gaussian`, `special`, `pareto` (`uniform`)"
    assert rows["`workloads.NAME`", "ignore_errors"] == "list (`[1213, 1020, 1205]`)"
    assert rows["`engine`, `arms.NAME.engine`", "settings"] == "by name"
    assert rows["`studies/NAME.yaml`", "arms"] == "by name (required)"


def test_the_schema_knows_meaning_and_choices_of_a_key():
    built = json.loads(json.dumps(schema_docs.build_schemas()["study.schema.json"]))
    assert built["$defs"]["Arm"]["properties"]["access"]["enum"] == registry.list_access()
    assert "Seconds measured" in built["$defs"]["Plan"]["properties"]["run_s"]["description"]
    assert built["additionalProperties"] is False
