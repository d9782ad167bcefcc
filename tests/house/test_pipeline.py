"""dvc.yaml, notebooks, imports, studies and params.yaml say the same about what depends on what."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from benchbook.commands import rebuild_record
from benchbook.core.study.params import Params
from benchbook.core.study.study import StudySpec
from tests.house import tree

STUDY_STAGES = ["provision", "prepare", "warm-up", "run-matrix", "parse", "analyze", "report"]
KEYS = ["desc", "cmd", "wdir", "deps", "params", "outs", "metrics", "plots"]
# DVC gives the name of a mapping's item as ${key}, and the file that params.yaml has for it as ${item}.
STUDY_FILE = "${item}"
# Read by people and editors, or by DVC itself: no stage has to declare them.
# What others made and gave: published sources and recorded sessions.
FROM_OTHERS = ("data/published/", "data/record", "studies")
FOR_DVC = {"studies", "sources"}
# Studies of their own by name: DVC follows the file that is written when one is asked for.
FOR_SIZES = {"sizes"}


@cache
def pipeline() -> dict[str, Any]:
    file = tree.ROOT / "dvc.yaml"
    return YAML(typ="safe").load(file.read_text()) if file.is_file() else {"stages": {}}


def word_of(name: str) -> str:
    """Return what stands for the name of a study or source in a stage that is there for each of them."""
    return "${key}" if pipeline()["stages"][name].get("foreach") == "${studies}" else "${item}"


def body(name: str) -> dict[str, Any]:
    stage = pipeline()["stages"][name]
    return stage.get("do", stage)


def paths(entries: list[Any] | None) -> list[str]:
    """Return the paths of deps or outs, whatever options they carry."""
    return [next(iter(entry)) if isinstance(entry, dict) else entry for entry in entries or []]


def options(entries: list[Any], path: str) -> dict[str, Any]:
    return next(entry[path] for entry in entries if isinstance(entry, dict) and path in entry)


def left(name: str) -> list[str]:
    found = body(name)
    plots = [path for path in paths(found.get("plots")) if "." in path]
    return paths(found.get("outs")) + paths(found.get("metrics")) + plots


# The record takes the notebooks of the study stages, all in one process.
RECORD = "record"
# Says what code of `sites` a study runs, and has no notebook.
CODE = "code"
CODE_OF_A_STUDY = "data/site/code/${key}.json"


def notebook(name: str) -> Path:
    found = [path for path in paths(body(name).get("deps")) if path.endswith(".ipynb")]
    assert len(found) == 1, f"{name} depends on exactly one notebook"
    return tree.ROOT / found[0]


def params(name: str) -> dict[str, set[str]]:
    """Return file → keys that a stage declares under `params`."""
    declared: dict[str, set[str]] = {}
    for entry in body(name).get("params", []):
        if isinstance(entry, dict):
            for file, keys in entry.items():
                declared.setdefault(file, set()).update(keys or ["everything"])
        else:
            declared.setdefault("params.yaml", set()).add(entry.split(".")[0])
    return declared


def asked(path: Path, function: str) -> set[str]:
    """Return the sections a notebook asks `load.load_study(name, …)` or `load.load_params(…)` for."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(tree.code(path))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"load.load_{function}":
            given = node.args[1:] if function == "study" else node.args
            assert given, f"load.{function}() without sections reads all of them; name those it needs"
            found |= {ast.literal_eval(argument) for argument in given}
    return found


WITH_NOTEBOOK = [name for name in pipeline()["stages"] if name not in (RECORD, CODE)]
every = pytest.mark.parametrize("name", WITH_NOTEBOOK)


def test_the_stages_come_in_their_order():
    names = list(pipeline()["stages"])
    assert [name for name in names if name in STUDY_STAGES] == STUDY_STAGES
    assert {"audit", "findings"} <= set(names)
    for name in STUDY_STAGES:
        assert pipeline()["stages"][name]["foreach"] == "${studies}"
    assert pipeline()["stages"]["audit"]["foreach"] == "${sources}"


def test_every_notebook_is_run_by_one_stage():
    used = [notebook(name) for name in WITH_NOTEBOOK]
    assert sorted(used) == tree.notebooks()


def test_the_record_depends_on_what_its_stages_depend_on():
    own = set(paths(body(RECORD)["deps"]))
    code = [
        path
        for name in ("parse", "analyze", "report", "runs")
        for path in paths(body(name)["deps"])
        # Parse and analyze are done without their notebooks.
        if path.startswith("lib/") or path in ("notebooks/07_report.ipynb", "notebooks/runs.ipynb")
    ]
    assert own == {*code, "lib/benchbook/evidence", "data/record"}
    assert body(RECORD)["cmd"] == "exec tools/benchbook remake"


def test_the_record_holds_what_stands_against_the_code_that_dvc_follows():
    """And DVC leaves what was made before: the stage itself knows which studies still stand."""
    made_with = [f"lib/benchbook/{floor}" for floor in rebuild_record.FLOORS]
    made_with += [f"notebooks/{stem}.ipynb" for stem in rebuild_record.NOTEBOOKS]
    assert {*made_with, "data/record"} == set(paths(body(RECORD)["deps"]))
    kept = ((RECORD, "data/recorded"), (RECORD, "reports/record"), ("run-matrix", "data/${key}/raw"))
    assert all(options(body(name)["outs"], path)["persist"] is True for name, path in kept)


@every
def test_a_stage_is_described_in_the_usual_order(name: str):
    written = list(body(name))
    assert written == [key for key in KEYS if key in written]
    assert body(name)["desc"].endswith(".")


@every
def test_the_command_runs_the_stage_s_notebook(name: str):
    command = body(name)["cmd"]
    text = command if isinstance(command, str) else "\n".join(command)
    stem = notebook(name).stem
    by_word = re.search(rf"^(exec )?tools/benchbook (stage )?{re.escape(name)}( |$)", text, re.M)
    assert f"notebooks/{stem}.ipynb" in text or by_word
    if "foreach" in pipeline()["stages"][name]:
        assert word_of(name) in text


@every
def test_deps_on_our_code_are_exactly_the_floors_it_imports(name: str):
    """A floor that is left out goes stale unnoticed; one too many asks for hours of measuring."""
    deps = paths(body(name)["deps"])
    declared = {path for path in deps if path.startswith("lib/")}
    if CODE_OF_A_STUDY in deps:
        declared.add("lib/benchbook/sites")
    needed = tree.floors(tree.reached(tree.code(notebook(name))))
    imported = {f"lib/benchbook/{floor}" for floor in needed}
    if "core" in needed and CODE_OF_A_STUDY not in deps:
        # `core.study.descriptors` finds those of engines and proxies; no import names them.
        imported.add("lib/benchbook/sites/descriptors")
    assert not imported - declared, "imported and not declared"
    assert not declared - imported, "declared and not imported"


@every
def test_other_deps_come_from_an_earlier_stage_or_from_others(name: str):
    earlier: list[str] = []
    for other in pipeline()["stages"]:
        if other == name:
            break
        earlier += left(other)
    data = [path for path in paths(body(name)["deps"]) if not path.startswith(("lib/", "notebooks/"))]
    given = [path for path in data if path in earlier or path.startswith(FROM_OTHERS)]
    around = [path for path in data if any(f"{made}/".startswith(f"{path}/") for made in earlier)]
    inside = [path for path in data if any(path.startswith(f"{made}/") for made in earlier)]
    assert set(data) <= {*given, *around, *inside}


@every
def test_params_are_exactly_the_sections_the_notebook_asks_for(name: str):
    declared = params(name)
    path = notebook(name)
    assert declared.get(STUDY_FILE, set()) == asked(path, "study")
    assert declared.get("params.yaml", set()) - FOR_DVC == asked(path, "params") - FOR_DVC
    assert set(declared) <= {STUDY_FILE, "params.yaml"}


def test_every_section_of_a_study_and_of_params_is_read_by_a_stage_and_no_other():
    for file, model, unread in ((STUDY_FILE, StudySpec, FOR_SIZES), ("params.yaml", Params, FOR_DVC)):
        read = set().union(*(params(name).get(file, set()) for name in pipeline()["stages"]))
        assert read - unread == set(model.model_fields) - unread
        assert read <= set(model.model_fields)


def uncached(name: str) -> set[str]:
    """Return what a stage leaves to git, since DVC keeps no copy of it."""
    entries = [entry for key in ("outs", "metrics", "plots") for entry in body(name).get(key, [])]
    given = {path: options for entry in entries if isinstance(entry, dict) for path, options in entry.items()}
    return {path for path, options in given.items() if (options or {}).get("cache") is False}


@every
def test_what_a_stage_leaves_is_kept_by_dvc_or_by_git_and_never_by_both(name: str):
    made = left(name)
    word = word_of(name)
    seen_by_git = {path for path in made if not tree.is_ignored(path.replace(word, "some"))}
    assert made and seen_by_git == uncached(name)
    if "foreach" in pipeline()["stages"][name]:
        assert not [path for path in made if word not in path]


@every
def test_executed_notebooks_are_outputs_and_never_a_dependency(name: str):
    executed = [path for path in left(name) if path.endswith(".ipynb")]
    assert len(executed) == 1 and Path(executed[0]).name == notebook(name).name
    for other in pipeline()["stages"]:
        assert executed[0] not in paths(body(other)["deps"])


def test_provision_looks_at_the_world_and_all_else_can_come_from_the_cache():
    """An out without a cached copy takes a stage out of DVC's run cache; metrics do not."""
    # The record's raw files are in git as archives: a second copy of thousands of files helps nobody.
    for name in (name for name in pipeline()["stages"] if name != RECORD):
        outs = {path for path in uncached(name) if path in paths(body(name)["outs"])}
        assert outs == ({"data/${key}/facts.json"} if name == "provision" else set())


def test_no_two_stages_leave_the_same_file():
    everything = [path for name in pipeline()["stages"] for path in left(name)]
    assert sorted(set(everything)) == sorted(everything)
