"""Own scripts on a real server: prepared and proven, held to the query, and four kinds of bad ones caught."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.core.artifacts import run_folder
from benchbook.core.study.params import Limits
from benchbook.core.study.study import StudySpec
from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError
from benchbook.measure import dataset, scheduler, warm_up
from benchbook.measure.data_plan import plan_data
from benchbook.plan import pilot_parameters, schedule
from benchbook.read import tidy, validity

pytestmark = pytest.mark.server

COMMON, SCRIPT = ((Path(__file__).parents[1] / "data" / "own_script" / f"{name}.lua").read_text()
                  for name in ("common", "script"))  # fmt: skip
# What else its event does, by the name of a workload: a check of the run, and what its reason says.
TWICE = "the script makes connections of its own"
COUNT = "n = (n or 0) + 1; if n == 50 then"
BAD = {
    "fails_halfway": (f'{COUNT} con:query("SELECT * FROM nowhere") end', "V1 exit code", "exit code 1"),
    "ignores_time": ("if sysbench.tid == 0 then os.execute('sleep 4') end", "V6 time", "asked 2 s"),
    "prints_in_a_report": (f'{COUNT} print("hello") end', "V3 stdout", "hello"),
    "connects_by_itself": ("local mine = drv:connect(); mine:disconnect()", "V10 ledger", TWICE),
}

# Two servers, so that the second must have the rows of the first.
TWO = {"direct": {}, "again": {"access": "direct", "engine": {"settings": {"max_connect_errors": 101}}}}
# One server, where it is the script alone that is looked at.
ONE = {"direct": {}, "relay": {"access": "haproxy"}}


@pytest.fixture
def of_scripts(make_study, tmp_path: Path) -> Callable[..., StudySpec]:
    """Return a function that makes a study of own scripts, by name, with what else the event of each does.

    Each has a table of its own, called after it.
    """

    def make(scripts: Mapping[str, str], rate: int = 0, **changes: Any) -> StudySpec:
        (tmp_path / "common.lua").write_text(COMMON)
        workloads = {}
        for name, extra in scripts.items():
            file = tmp_path / f"{name}.lua"
            file.write_text(SCRIPT.replace("TABLE_NAME", name).replace("EXTRA", extra))
            script = os.path.relpath(file, paths.find_root())
            workloads[name] = {"script": script, "options": {"accounts": 50}, "rate": rate}
        own = {"workloads": workloads, "arms": TWO, "warm_up": {"pilot_s": 1}}
        return make_study(**own | changes)

    return make


def measured(
    study: StudySpec, lab: Path, into: Path, monkeypatch
) -> tuple[scheduler.MatrixRunner, dict[str, Any], list[Any]]:
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    limits = Limits(client_wait=10, pause_ms=10_000, steal_pct=100).model_dump()
    with sites.open_site(study, lab) as site:
        dataset.load_data(site, plan_data(study))
        warm_up.warm_up_data(site, study)
        own = warm_up.record_custom_scripts(site, study)
        folders = warm_up.run_pilots("test", study, site, into / "pilots", limits, lambda _: None)
        known = pilot_parameters.script_record(own, tidy.pilot_totals(folders))
        runs = schedule.plan_runs("test", study, {}, known)
        judge = partial(validity.judge_run, limits=limits)
        where = (into / "raw", into / "void")
        matrix = scheduler.MatrixRunner(study, runs, site, *where, judge, limits, lambda _: None)
        walk = scheduler.run_missing(matrix)
        folders = [path for place in where for path in sorted(place.iterdir()) if path.is_dir()]
        judged = [judge(run_folder.RunFolder(path)) for path in folders]
    return walk, known, judged


@pytest.mark.parametrize("order", ["runs", "turns"])
def test_an_own_script_is_prepared_proven_and_held_to_the_query(
    order, of_scripts, lab, tmp_path, monkeypatch
):
    lasts = {"runs": {"discard_s": 1, "run_s": 2}, "turns": {"discard_s": 0.3, "run_s": 1}}[order]
    plan = {"seed": 3, "blocks": 1, **lasts, "order": order, "max_repeats": 2}
    # Two connections in turns, each with its own statements; one in whole runs, where two take both cores.
    study = of_scripts({"mine": ""}, plan=plan, threads={"runs": (1,), "turns": (2,)}[order])
    walk, known, judged = measured(study, lab, tmp_path / "data", monkeypatch)
    own = known["own"]
    assert own["tables"]["mine"]["rows"] == 50
    assert own["tables"]["mine"]["checksum"]
    assert set(own["scripts"]["mine"]["text"]) == {"mine.lua", "common.lua"}
    # BEGIN and COMMIT, a SELECT, an UPDATE that changes a row.
    of_event, of_thread = {"reads": 1, "writes": 1, "other": 2}, {"reads": 1, "writes": 0, "other": 0}
    assert own["statements"] == {"mine": {"event": of_event, "thread": of_thread}}
    assert not walk.abandoned, [one.reasons for one in judged]
    valid = [one for one in judged if one.status == "valid"]
    assert len(valid) == 2
    assert {one.ledger for one in valid} == {"agrees"}
    assert all(one.evidence.plan["script"] == "mine.lua" for one in valid)


def test_bad_scripts_are_each_caught_by_name(of_scripts, lab, tmp_path, monkeypatch):
    # Elsewhere a walk ends where three groups were given up.
    monkeypatch.setattr(scheduler, "GIVEN_UP", len(BAD) + 1)
    plan = {"seed": 3, "blocks": 1, "discard_s": 0, "run_s": 2, "order": "runs", "max_repeats": 0}
    scripts = {name: extra for name, (extra, _, _) in BAD.items()}
    study = of_scripts(scripts, rate=100, plan=plan, arms=ONE, threads=(1,))
    walk, _, judged = measured(study, lab, tmp_path / "data", monkeypatch)
    assert len(walk.abandoned) == len(BAD), walk.abandoned
    for name, (_, check, said) in BAD.items():
        mine = [one for one in judged if one.evidence.plan["workload"] == name]
        reasons = "\n".join(reason for one in mine for reason in one.reasons)
        assert check in reasons and said in reasons, f"{name}: {reasons}"


def test_a_prepare_that_fails_ends_the_stage_with_its_words(of_scripts, lab, tmp_path, monkeypatch):
    study = of_scripts({"mine": ""})
    file = tmp_path / "mine.lua"
    file.write_text(file.read_text().replace("balance INT,", "balance NOTHING,"))
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    with sites.open_site(study, lab) as site, pytest.raises(BenchbookError) as caught:
        dataset.load_data(site, plan_data(study))
    said = str(caught.value)
    assert "workloads.mine: " in said and "FATAL" in said and "Unknown data type" in said


def test_a_changed_module_is_refused_before_the_first_run(of_scripts, lab, tmp_path, monkeypatch):
    study = of_scripts({"mine": ""})
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    with sites.open_site(study, lab) as site:
        dataset.load_data(site, plan_data(study))
        known = warm_up.record_custom_scripts(site, study)
        dataset.ensure_custom_tables(site, plan_data(study), known)
        (tmp_path / "common.lua").write_text(COMMON + "-- another\n")
        with pytest.raises(BenchbookError, match=r"workloads\.mine\.script: common\.lua "):
            dataset.ensure_custom_tables(site, plan_data(study), known)
