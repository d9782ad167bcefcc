"""A study's measuring depends on the code of its own kind of site, engines and access, and no other."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from benchbook.commands import code_fingerprint
from benchbook.core.study import descriptors, registry
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, paths
from tests import forked
from tests.house import tree
from tests.installed import package
from tests.pipeline import clone

# A study of each kind of site, engine and way of access that this clone has.
STUDIES = ("quick", "cluster-access", "lab-upgrade", "tidb-upgrade", "lab-access", "mysql-kubernetes-qos")
# One on one machine, one in a cluster, one on hosts.
OF_KINDS = ("quick", "cluster-access", "tidb-upgrade")
STAGES = ("01_provision", "02_prepare", "03_warm_up", "04_run_matrix")


def module(target: str) -> Path:
    """Return the file of a line of the registry."""
    found = tree.file_of(target.partition(":")[0])
    assert found is not None
    return found


def targets(study: StudySpec) -> list[str]:
    """Return the lines of the registry that a study names."""
    engines = {study.engine.name, *(arm.engine.name for arm in study.arms.values() if arm.engine)}
    proxies = filter(None, (descriptors.find_intermediary(arm.access) for arm in study.arms.values()))
    used = [*(descriptors.find_engine(name) for name in engines if name), *proxies]
    return [registry.SITES[study.site.kind], *(descriptor.code for descriptor in used)]


def test_the_studies_looked_at_have_every_kind_of_site_and_engine():
    studies = [tree.study(name) for name in STUDIES]
    assert {study.site.kind for study in studies} | {"existing"} == set(registry.SITES)
    assert {study.engine.name for study in studies} >= {"mariadb", "tidb"}


@pytest.mark.parametrize("name", STUDIES)
def test_all_that_the_stages_import_is_in_it(name: str):
    """The imports are followed here from the notebooks, as the tests of the house do."""
    study = tree.study(name)
    own = "\n".join(f"import {target.partition(':')[0]}" for target in targets(study))
    needed = set()
    for stage in STAGES:
        for dotted in tree.reached(tree.code(tree.ROOT / "notebooks" / f"{stage}.ipynb") + "\n" + own):
            path = tree.file_of(dotted)
            if path is not None and path.is_relative_to(tree.PACKAGE / "sites"):
                needed.add(path)
    assert len(needed) > 20
    assert needed - set(code_fingerprint.of_study(study)) == set()


def test_an_engine_and_a_proxy_of_another_package_are_in_it_with_what_they_stand_on(tmp_path: Path):
    """Else a change in them would leave what was measured with them as if it were made now."""
    asked = tree.study("quick").model_dump(exclude_defaults=True) | {
        "engine": {"name": "small"},
        "arms": {"direct": {}, "behind": {"access": "socat"}},
        # A proxy that has children is measured in whole runs, which sysbench counts in whole seconds.
        "plan": {"blocks": 5, "discard_s": 1, "run_s": 2},
    }
    with package(tmp_path):
        found = code_fingerprint.of_study(StudySpec.model_validate(asked))
    others = {tree.ROOT / "tests" / "others" / f"{name}.py" for name in ("small_engine", "socat_proxy")}
    stands_on = {module(descriptors.find_engine("mariadb").code), module("benchbook.sites.proxies.proxy")}
    assert others | stands_on <= set(found)
    # Where the package lies on this machine is not said.
    assert code_fingerprint._name_file(Path("/opt/package/engine.py")) == "package/engine.py"


def test_a_changed_byte_changes_the_files_of_its_studies_only(tmp_path, monkeypatch):
    package = tmp_path / "lib" / "benchbook"
    shutil.copytree(tree.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("studies", "data/published"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(tree.ROOT / name)
    text = f"studies: [{', '.join(OF_KINDS)}]\nsources: []\nanalysis: {{}}\nlimits: {{}}\n"
    (tmp_path / "params.yaml").write_text(text)
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    monkeypatch.setattr(code_fingerprint, "PACKAGE", package)
    monkeypatch.setattr(code_fingerprint, "SITES", package / "sites")

    def written() -> list[bytes]:
        assert code_fingerprint.write_fingerprints() == 0
        return [paths.code_file(name).read_bytes() for name in OF_KINDS]

    def change(path: Path) -> list[bool]:
        """Change a file of the package; return which of the studies have another list now."""
        before = [paths.code_file(name).read_bytes() for name in OF_KINDS]
        changed = package / path.relative_to(tree.PACKAGE)
        changed.write_text(changed.read_text() + "\n# changed\n")
        return [one != other for one, other in zip(before, written(), strict=True)]

    assert all(map(json.loads, written()))
    kubernetes = module(registry.SITES["kubernetes"])
    # A cluster's clients may be hosts.
    for changed, studies in {
        kubernetes: [False, True, False],
        kubernetes.parent / "pod" / "server.sh": [False, True, False],
        module(registry.SITES["local"]): [True, False, False],
        module(registry.SITES["ssh"]): [False, True, True],
        module(registry.SITES["existing"]): [False, False, False],
        tree.PACKAGE / "sites" / "gke" / "cluster.py": [False, False, False],
        module(descriptors.find_engine("mariadb").code): [True, True, False],
        module(descriptors.find_engine("postgresql").code): [False, False, False],
        module(descriptors.find_engine("tidb").code): [False, True, True],
        module(descriptors.find_proxy("haproxy").code): [True, True, False],
        module(descriptors.find_proxy("tiproxy").code): [False, False, False],
    }.items():
        assert change(changed) == studies, changed


def test_dvc_asks_for_no_measuring_on_one_machine_after_a_change_for_other_kinds(tmp_path: Path):
    """The pipeline as it is, with stages that measure nothing: what `dvc status` and `dvc repro` then do."""
    for name in ("lib", "notebooks", "studies", "data/published"):
        ignored = shutil.ignore_patterns("*.egg-info")
        shutil.copytree(tree.ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(tree.ROOT / ".dvcignore", tmp_path)
    params = YAML(typ="safe").load(tree.ROOT / "params.yaml") | {"studies": {"quick": "studies/quick.yaml"}}
    files.write_json(tmp_path / "params.yaml", params)
    stages = YAML(typ="safe").load(tree.ROOT / "dvc.yaml")["stages"]
    stages["code"]["cmd"] = f"{sys.executable} -m benchbook.commands.cli code"
    outs = "data/${key}/facts.json data/${key}/notebooks/01_provision.ipynb"
    stages["provision"]["do"]["cmd"] = (
        f"mkdir -p data/${{key}}/notebooks data/${{key}}/applied && touch {outs}"
    )
    kept = {name: stages[name] for name in ("code", "provision")}
    files.write_json(tmp_path / "dvc.yaml", {"stages": kept})
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "lib"), "DVC_NO_ANALYTICS": "1"}
    env |= {"DVC_SITE_CACHE_DIR": str(tmp_path / "site"), "HOME": str(tmp_path)}

    def change(kind: str) -> None:
        changed = tmp_path / "lib" / module(registry.SITES[kind]).relative_to(tree.PACKAGE.parent)
        changed.write_text(changed.read_text() + "\n# changed\n")

    with forked.calls(clone.DVC, cwd=tmp_path, env=env) as call:

        def dvc(*words: str) -> str:
            code, ended, printed = call(*words)
            assert (code, ended) == (0, 0), printed
            return printed

        def stages_run() -> list[str]:
            return re.findall(r"Running stage '(.+)'", dvc("repro"))

        dvc("init", "-q", "--no-scm")
        assert stages_run() == ["code", "provision@quick"]
        change("kubernetes")
        change("ssh")
        assert json.loads(dvc("status", "--json", "provision@quick")) == {}
        assert stages_run() == ["code"]
        change("local")
        assert stages_run() == ["code", "provision@quick"]
