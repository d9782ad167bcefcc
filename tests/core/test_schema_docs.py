"""What is made from the models is current and names every key."""

import json
import re
from functools import cache
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from benchbook.commands import cli
from benchbook.core import schema_docs
from benchbook.core.study import registry
from benchbook.core.study.params import Params
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_arm import ArmBuild, ArmEngine
from benchbook.core.study.study_cluster import ArmCluster
from benchbook.core.study.study_kubernetes import Gke, Toleration
from benchbook.core.study.study_sections import Rate
from benchbook.core.util import paths


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Models that an annotation names, each followed by those of its keys."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        keys = annotation.model_fields.values()
        return [annotation, *(model for key in keys for model in models_in(key.annotation))]
    return [model for part in get_args(annotation) for model in models_in(part)]


# An arm's have the keys of the study's own; the last two are described with the key that holds them.
HELD = {ArmBuild, ArmCluster, ArmEngine, Rate, Toleration}
# A forward reference leads to Gke.
SECTIONS = {*models_in(StudySpec | Params), *models_in(Gke)} - HELD
MODELS = {tuple(model.model_fields): model for model in SECTIONS}
CHECKED = [("reference", "docs/parameters.md"), ("reference", "studies/README.md")]
CHECKED += [("schema", "schemas/study.schema.json")]


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
def tables() -> dict[str, list[tuple[str, ...]]]:
    """Return the rows of each section of the page."""
    parts = re.split(r"^##+ (.*)\n", schema_docs.render_page(), flags=re.M)[1:]
    rows = [re.findall(r"^- `(\w+)`(.*?): (.*)$", text, re.M) for text in parts[1::2]]
    return dict(zip(parts[::2], rows, strict=True))


def test_the_page_has_every_section_with_every_key():
    assert {tuple(row[0] for row in rows) for rows in tables().values()} == set(MODELS)


def test_a_row_has_value_default_and_meaning():
    for heading, rows in tables().items():
        model = MODELS[tuple(row[0] for row in rows)]
        for key, value, meaning in rows:
            assert meaning.endswith(".") and meaning.count("(") == meaning.count(")"), (heading, key)
            assert value.endswith("(required)") == model.model_fields[key].is_required(), (heading, key)


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
