"""Real clients on real servers of one arm: their sums are the servers' own, and none fails alone."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from benchbook import sites
from benchbook.core.artifacts import run_folder
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.read import validity
from benchbook.sites.machine import local_machine
from benchbook.sites.tidb import build
from tests import beside, rooms
from tests.limits import LIMITS
from tests.walks import Store, measured

pytestmark = pytest.mark.server
PORT = rooms.port(220)


@pytest.fixture(scope="module")
def study(make_study: Callable[..., StudySpec]) -> StudySpec:
    return make_study(
        site={"port": PORT},
        arms={"one": {}, "pair": {"clients": 2, "options_by": "file"}, "three": {"clients": 3, "servers": 3}},
        threads=(6,),
        # In the 3 s of a run they make 180 transactions of 20 statements together.
        workloads={"oltp_read_write": {"rate": 60}},
        plan={"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2, "order": "runs"},
    )


@pytest.fixture(scope="module")
def site(lab: Path, study: StudySpec) -> Iterator[Any]:
    before = os.environ.get("BENCHBOOK_LOCK")
    os.environ["BENCHBOOK_LOCK"] = str(lab.parent / "machine.lock")
    try:
        with sites.open_site(study, lab.parent / "three") as opened:
            dataset.load_data(opened, plan_data(study))
            opened.restore(plan_data(study).label)
            yield opened
    finally:
        os.environ.pop("BENCHBOOK_LOCK")
        if before is not None:
            os.environ["BENCHBOOK_LOCK"] = before


def made(site: Any, study: StudySpec, arm: str, into: Path) -> run_folder.RunFolder:
    """Make the first planned run of an arm."""
    return run_folder.move_to_raw(measured(site, study, arm, into / "made"), into)


def have_begun(into: Path) -> bool:
    return beside.begun(into / "made" / "0") == 3


def counted(site: Any, arm: str, name: str) -> list[int]:
    """Ask each server of an arm for one of its counters."""
    found = []
    for number in range(site.study.arms[arm].servers):
        with site.admin(arm, number).connect() as connection:
            found.append(int(connection.execute(text(f"SHOW GLOBAL STATUS LIKE '{name}'")).first()[1]))
    return found


def test_sums_of_three_clients_are_what_three_servers_counted(site: Any, study: StudySpec, tmp_path: Path):
    names = ("Com_update", "Com_stmt_execute")
    site.up("three")
    before = {name: counted(site, "three", name) for name in names}
    folder = made(site, study, "three", tmp_path)
    now = {name: counted(site, "three", name) for name in names}
    grown = {name: [new - old for old, new in zip(before[name], now[name], strict=True)] for name in names}
    judged = validity.judge_run(folder, LIMITS)
    assert judged.status == "valid", judged.reasons
    each, whole = judged.evidence.clients, judged.evidence
    # Our own looks are SELECTs and COMMITs too, so these are the counters that only sysbench moves.
    assert [2 * one.total("transactions") for one in each] == grown["Com_update"]
    assert [one.total("total") for one in each] == grown["Com_stmt_execute"]
    assert whole.total("total") == sum(grown["Com_stmt_execute"]) > 1000
    assert whole.log.final.events == sum(one.final.events for one in each)
    assert whole.log.histogram.events == sum(one.log.histogram.events for one in each)
    ports = [next(word for word in one["argv"] if "port" in word) for one in whole.observed["clients"]]
    assert ports == [f"--mysql-port={PORT + number}" for number in range(3)]
    starts = {one["begun_monotonic_s"] for one in whole.observed["clients"]}
    assert min(starts) >= whole.observed["started_monotonic_s"]
    assert 0 <= whole.observed["start_spread_ms"] < 10_000
    assert judged.qps == pytest.approx(sum(one.final.queries / one.log.measured_s for one in each), rel=0.05)
    with (folder.path / run_folder.MONITOR).open() as series:
        assert series.readline().strip() == ",".join(local_machine.COLUMNS)
    word = site.lab.password().encode()
    assert not [path for path in folder.path.rglob("*") if path.is_file() and word in path.read_bytes()]


@pytest.mark.alone
def test_two_clients_of_one_server_share_its_books(site: Any, study: StudySpec, tmp_path: Path):
    judged = validity.judge_run(made(site, study, "pair", tmp_path), LIMITS)
    assert judged.status == "valid", judged.reasons
    assert judged.ledger == "agrees" and "servers" not in judged.evidence.observed
    seeds = [one.log.header.seed for one in judged.evidence.clients]
    assert len(set(seeds)) == 2, "each asks for rows of its own"
    folder = tmp_path / judged.evidence.plan["run_id"]
    for number, one in enumerate(judged.evidence.observed["clients"]):
        file = folder / run_folder.client_file(number, "sysbench.cnf")
        assert f"rand-seed={seeds[number]}\n" in file.read_text()
        assert not [word for word in one["argv"] if word.startswith(("--threads", "--mysql-p"))]
        options = one["options"]
        assert options["taken"] == options["asked"] and options["taken"]["threads"] == "3"
    word = site.lab.password()
    assert not [path for path in folder.rglob("*") if path.is_file() and word in path.read_text()]


def test_a_killed_client_ends_the_others_is_named_and_the_run_is_made_again(site, study, tmp_path):
    store = Store(site, study, tmp_path)
    store.runs = [run for run in store.runs if run.arm == "three"]
    killed: list[int] = []

    def kill() -> None:
        (one,) = [one for one in beside.clients() if f"--mysql-port={PORT + 2}" in one.cmdline()]
        killed.append(one.pid)
        one.kill()

    store.walk_with(kill, clients=3)
    assert [store.judge(folder).reasons for folder in store.kept()] == [[]]
    status, reasons = store.voids()["three 1"]
    assert len(killed) == 1 and status == "invalid"
    assert "client 2: exit code -9" in reasons
    # On a busy machine the run that is made again may be void once, too.
    voids = [run_folder.RunFolder(path).evidence() for path in store.void.iterdir() if path.is_dir()]
    (known,) = [evidence for evidence in voids if evidence["attempt"] == 1]
    assert known["sysbench_s"] < 2.5, "nobody waited for the rest of a run that was none"
    assert (known["exit_code"], known["ended_by"]) == (-signal.SIGKILL, "signal")
    by_client = [one["ended_by"] for one in known["clients"]]
    assert by_client == ["another client", "another client", "signal"]
    for number, who in enumerate(by_client):
        assert f"client {number}: ended by {who}" in reasons


@pytest.mark.alone
def test_a_killed_server_of_one_client_makes_the_run_invalid_and_comes_back(site, study, tmp_path):
    site.up("three")
    pid = site.monitored("three")["server"][2]
    with beside.once(lambda: have_begun(tmp_path), lambda: os.kill(pid, signal.SIGKILL), 0.5):
        folder = made(site, study, "three", tmp_path)
    judged = validity.judge_run(folder, LIMITS)
    assert judged.status == "invalid"
    reasons = "\n".join(judged.reasons)
    assert "V1 exit code: " in reasons and "client 2: exit code 1" in reasons
    assert str(folder.evidence()["ledger"]["reason"]).startswith("server 2: ")
    assert [one["server_answers"] for one in folder.evidence()["servers"]] == [True, True, False]
    site.restore(plan_data(study).label)
    judged = validity.judge_run(made(site, study, "three", tmp_path / "again"), LIMITS)
    assert judged.status == "valid", judged.reasons


@pytest.mark.slow
def test_a_client_that_hangs_is_ended_at_the_deadline_and_named(site, study, tmp_path, monkeypatch):
    monkeypatch.setattr("benchbook.measure.run_executor.THREAD_INIT_S", 1)
    monkeypatch.setattr("benchbook.measure.run_executor.GRACE_S", 2)

    def stop() -> None:
        (one,) = [one for one in beside.clients() if f"--mysql-port={PORT + 1}" in one.cmdline()]
        one.suspend()

    with beside.once(lambda: have_begun(tmp_path), stop, 0.5):
        folder = made(site, study, "three", tmp_path)
    ended = [one["ended_by"] for one in folder.evidence()["clients"]]
    assert ended == ["itself", "deadline", "itself"]
    judged = validity.judge_run(folder, LIMITS)
    assert judged.status == "invalid"
    (first, *_) = judged.reasons
    assert first == "V1 exit code: client 1: exit code -9; client 1: ended by deadline"
    assert beside.clients() == [], "nothing of it is left"


@pytest.mark.slow
@pytest.mark.skipif(
    not build.make_recipe("6.6").target.is_file(), reason="no TiDB was built here; `make tidb` builds it"
)
def test_two_clients_on_two_tidb_servers_agree_with_the_books_of_each(lab, make_study, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHBOOK_LOCK", str(tmp_path / "machine.lock"))
    study = make_study(
        site={"port": PORT + 10},
        engine={"name": "tidb", "version": "6.6"},
        arms={"one": {}, "pair": {"clients": 2, "servers": 2}},
        plan={"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2, "order": "runs"},
    )
    with sites.open_site(study, lab.parent / "tidb") as opened:
        dataset.load_data(opened, plan_data(study))
        opened.restore(plan_data(study).label)
        judged = validity.judge_run(made(opened, study, "pair", tmp_path / "runs"), LIMITS)
        ports = [engine.port for engine in opened.endpoints("pair")]
    assert judged.status == "valid", judged.reasons
    assert judged.ledger == "agrees" and ports == [PORT + 10, PORT + 12]
    for client, server in zip(judged.evidence.clients, judged.evidence.servers, strict=True):
        assert server.grown("Com_stmt_execute") == client.total("total") > 100
        assert server.grown("Connections") == 1
