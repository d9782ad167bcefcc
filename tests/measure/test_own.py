"""Own scripts on a real server: prepared and proven, held to the query, and four kinds of bad ones caught."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.core import paths
from benchbook.core.params import Limits
from benchbook.core.study import Study
from benchbook.measure import dataset, matrix, warm_up
from benchbook.plan import schedule, settling
from benchbook.read import tidy, validity

pytestmark = pytest.mark.server

COMMON = """
function connect()
   drv = sysbench.sql.driver()
   con = drv:connect()
end
"""
SCRIPT = """
require("common")

sysbench.cmdline.options = {accounts = {"Rows", 100}}

function prepare()
   connect()
   con:query("CREATE TABLE account (id INT PRIMARY KEY, balance INT, made TIMESTAMP)")
   for id = 1, sysbench.opt.accounts do
      local balance = sysbench.rand.uniform(1, 1000)
      con:query(string.format("INSERT INTO account VALUES (%d, %d, NOW())", id, balance))
   end
end

function thread_init()
   connect()
   con:query("SHOW VARIABLES LIKE 'version'")
end

function event()
   local id = sysbench.rand.uniform(1, sysbench.opt.accounts)
   con:query("BEGIN")
   con:query("SELECT balance FROM account WHERE id = " .. id)
   con:query("UPDATE account SET balance = balance + 1 WHERE id = " .. id)
   con:query("COMMIT")
   EXTRA
end

function thread_done() con:disconnect() end
"""
BAD = {
    "it fails halfway": (
        'n = (n or 0) + 1; if n == 50 then con:query("SELECT * FROM nowhere") end',
        "V1 exit code",
        "exit code 1",
    ),
    "it ignores --time": ("if sysbench.tid == 0 then os.execute('sleep 4') end", "V6 time", "asked 2 s"),
    "it prints in a report": ('n = (n or 0) + 1; if n == 50 then print("hello") end', "V3 stdout", "hello"),
    "it connects by itself": (
        "local mine = drv:connect(); mine:disconnect()",
        "V10 ledger",
        "the script makes connections of its own",
    ),
}

# Two servers, so that the second must have the rows of the first.
TWO = {
    "direct": {},
    "again": {"access": "direct", "engine": {"settings": {"max_connect_errors": 101}}},
}
# One server, where it is the script alone that is looked at.
ONE = {"direct": {}, "relay": {"access": "haproxy"}}


@pytest.fixture
def of_script(make_study, tmp_path: Path) -> Callable[..., Study]:
    def make(extra: str = "", rate: int = 0, **changes: Any) -> Study:
        (tmp_path / "common.lua").write_text(COMMON)
        (tmp_path / "mine.lua").write_text(SCRIPT.replace("EXTRA", extra))
        script = os.path.relpath(tmp_path / "mine.lua", paths.root())
        return make_study(
            **{
                "workloads": {"mine": {"script": script, "options": {"accounts": 50}, "rate": rate}},
                "arms": TWO,
                "warm_up": {"pilot_s": 1},
            }
            | changes
        )

    return make


def measured(
    study: Study, lab: Path, into: Path, monkeypatch
) -> tuple[matrix.Walk, dict[str, Any], list[Any]]:
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    limits = Limits(client_wait=10, pause_ms=10_000, steal_pct=100).model_dump()
    with sites.open_site(study, lab) as site:
        dataset.load(site, study)
        warm_up.warm(site, study)
        own = warm_up.own_found(site, study)
        folders = warm_up.pilots("test", study, site, into / "pilots", limits, lambda _: None)
        known = settling.own_record(own, tidy.pilot_totals(folders))
        runs = schedule.plan_runs("test", study, {}, known)
        judge = partial(validity.judge, limits=limits)
        where = (into / "raw", into / "void")
        walk = matrix.walk(matrix.Walk(study, runs, site, *where, judge, limits, lambda _: None))
        judged = [judge(folder) for folder in _folders(into)]
    return walk, known, judged


def _folders(into: Path) -> list[Any]:
    from benchbook.core import runfolder

    return [
        runfolder.RunFolder(path)
        for place in ("raw", "void")
        for path in sorted((into / place).iterdir())
        if path.is_dir()
    ]


@pytest.mark.parametrize("order", ["runs", "turns"])
def test_an_own_script_is_prepared_proven_and_held_to_the_query(order, of_script, lab, tmp_path, monkeypatch):
    lasts = {"runs": {"discard_s": 1, "run_s": 2}, "turns": {"discard_s": 0.3, "run_s": 1}}[order]
    plan = {"seed": 3, "blocks": 1, **lasts, "order": order, "max_repeats": 2}
    walk, known, judged = measured(of_script(plan=plan), lab, tmp_path / "data", monkeypatch)
    own = known["own"]
    assert own["tables"]["account"]["rows"] == 50
    assert own["tables"]["account"]["checksum"]
    assert set(own["scripts"]["mine"]["text"]) == {"mine.lua", "common.lua"}
    # BEGIN and COMMIT, a SELECT, an UPDATE that changes a row.
    of_event, of_thread = {"reads": 1, "writes": 1, "other": 2}, {"reads": 1, "writes": 0, "other": 0}
    assert own["statements"] == {"mine": {"event": of_event, "thread": of_thread}}
    assert not walk.abandoned, [one.reasons for one in judged]
    valid = [one for one in judged if one.status == "valid"]
    assert len(valid) == 2
    assert {one.ledger for one in valid} == {"agrees"}
    assert all(one.evidence.plan["script"] == "mine.lua" for one in valid)


@pytest.mark.parametrize("what", BAD)
def test_a_bad_script_is_caught_by_name(what, of_script, lab, tmp_path, monkeypatch):
    extra, check, said = BAD[what]
    plan = {"seed": 3, "blocks": 1, "discard_s": 0, "run_s": 2, "order": "runs", "max_repeats": 0}
    study = of_script(extra, rate=100, plan=plan, arms=ONE, threads=(1,))
    walk, _, judged = measured(study, lab, tmp_path / "data", monkeypatch)
    assert walk.abandoned
    reasons = "\n".join(reason for one in judged for reason in one.reasons)
    assert check in reasons
    assert said in reasons


def test_a_prepare_that_fails_ends_the_stage_with_its_words(of_script, lab, tmp_path, monkeypatch):
    study = of_script()
    file = tmp_path / "mine.lua"
    file.write_text(file.read_text().replace("balance INT,", "balance NOTHING,"))
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    with sites.open_site(study, lab) as site, pytest.raises(dataset.DatasetError) as caught:
        dataset.load(site, study)
    assert "workloads.mine: its prepare failed: FATAL" in str(caught.value)
    assert "Unknown data type" in str(caught.value)


def test_a_changed_module_is_refused_before_the_first_run(of_script, lab, tmp_path, monkeypatch):
    study = of_script()
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    with sites.open_site(study, lab) as site:
        dataset.load(site, study)
        known = warm_up.own_found(site, study)
        dataset.ensure_own(site, study, known)
        (tmp_path / "common.lua").write_text(COMMON + "-- another\n")
        with pytest.raises(dataset.DatasetError, match=r"workloads\.mine\.script: common\.lua is not what"):
            dataset.ensure_own(site, study, known)
