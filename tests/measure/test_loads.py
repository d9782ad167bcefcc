"""Connections beside a run are really there, are nobody else's, and go; a stopped server shows in latency."""

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from benchbook import sites
from benchbook.compare.inference import findings
from benchbook.core.study.params import Analysis
from benchbook.measure import clients, dataset
from benchbook.measure.data_plan import plan_data
from benchbook.plan import schedule
from benchbook.read import checks_machine, tidy
from benchbook.sites.machine import local_machine
from benchbook.sites.processes import process
from benchbook.sites.proxies.tiproxy import TiProxy
from benchbook.sites.topology import background_load
from tests.limits import LIMITS
from tests.measure.conftest import PORT
from tests.walks import Store

pytestmark = pytest.mark.server

ROOMY = {"innodb_buffer_pool_size": "32M", "innodb_log_file_size": "8M", "max_connections": 1000}
LOADS = {
    "held": {"access": "haproxy", "load": {"idle_connections": 300}},
    "short": {"load": {"new_connections_per_s": 40}},
}


@pytest.fixture
def open_store(lab, make_study, tmp_path, monkeypatch) -> Iterator[Callable[..., Store]]:
    """Return a function that opens a study's site with its data and gives the store of its walk."""
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    opened = []

    def make(**changes: Any) -> Store:
        study = make_study(engine={"settings": ROOMY}, **changes)
        site = sites.open_site(study, lab)
        opened.append(site)
        entered = site.__enter__()
        if not entered.has_snapshot(plan_data(study).label):
            dataset.load_data(entered, plan_data(study))
        return Store(entered, study, tmp_path)

    yield make
    for site in opened:
        site.__exit__(None, None, None)


def connected_to(port: int) -> int:
    """Count the established connections whose own end is a port, as the kernel lists them.

    It lists one twice where others come and go while it is read.
    """
    listed = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = {(row[1], row[2]) for row in listed if row[3] == "01"}
    return sum(int(own.rpartition(":")[2], 16) == port for own, _ in ends)


def drivers() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children(recursive=True):
        # One of another test that has ended and not been waited for has no command line any more.
        with contextlib.suppress(psutil.Error):
            found += [child] if "benchbook.sites.agent.connection_load" in child.cmdline() else []
    return found


def test_idle_and_short_connections_are_there_while_a_run_goes_on_and_gone_after_it(open_store):
    store = open_store(arms=LOADS, workloads={"oltp_point_select": {}})
    seen: Counter[str] = Counter()

    def look() -> None:
        seen["server"], seen["proxy"] = connected_to(PORT), connected_to(PORT + 1)
        seen["drivers"] = len(drivers())

    store.walk_with(look, "held")
    store.assert_complete()
    # 300 idle ones and two of sysbench, at the server and at the proxy in front of it.
    assert seen == {"server": 302, "proxy": 302, "drivers": 1}
    by_arm = {folder.plan()["arm"]: folder.evidence() for folder in store.kept()}
    held, short = (by_arm[arm]["arrangement"]["load"] for arm in LOADS)
    assert (held["idle"]["opened"], held["idle"]["held"], held["connections"]) == (300, 300, 300)
    assert held["sessions_before"] > 300 and held["sessions_after"] > 300
    assert short["short"]["achieved_per_s"] >= 38 and short["failed"] == 0
    # The ledger knows them: V10 counts connections to the last one, and the runs are valid.
    assert by_arm["short"]["ledger"]["own_connections"] == short["connections"] >= 76
    assert drivers() == [] and connected_to(PORT) == 0
    assert not store.site.lab.pidfile(background_load.ROLE).exists()
    assert store.site.lab.password() not in store.site.lab.run.joinpath("driver.log").read_text()


def test_a_driver_that_dies_voids_the_run_and_the_run_is_repeated(open_store):
    store = open_store(arms={"held": LOADS["held"], "direct": {}}, workloads={"oltp_point_select": {}})
    killed = []

    def kill() -> None:
        child = process.read_pidfile(store.site.lab.pidfile(background_load.ROLE))
        killed.append(child.pid)
        os.kill(child.pid, signal.SIGKILL)

    store.walk_with(kill, "held")
    status, reasons = store.voids()["held 1"]
    assert len(killed) == 1 and status == "invalid"
    assert "V21 arrangement: the driver" in reasons and "None of 300 idle connections" in reasons
    store.assert_complete()


@pytest.mark.skipif(
    (TIPROXY := local_machine.find_program("tiproxy")) is None or TiProxy.unable_to_capture(Path(TIPROXY)),
    reason=f"no TiProxy of 1.3.0 or later in the PATH or in {local_machine.name_variable('tiproxy')}",
)
def test_a_real_tiproxy_captures_while_a_run_goes_on_and_only_in_its_arm(open_store):
    arms = {"off": {"access": "tiproxy"}, "on": {"access": "tiproxy", "capture": True}}
    store = open_store(arms=arms, workloads={"oltp_read_write": {}})
    seen: list[Path] = []

    def look() -> None:
        """TiProxy keeps what it captured in memory for a while: its folder is there, files may not be yet."""
        seen.extend(store.site.lab.folder.glob("proxy*/capture"))

    store.walk_with(look, "on")
    store.assert_complete()
    off, on = ({f.plan()["arm"]: f.evidence()["arrangement"] for f in store.kept()}[arm] for arm in arms)
    assert "capture" not in off
    assert on["capture"]["stayed"] is True and on["capture"]["error"] == ""
    assert on["capture"]["written_mib"] > 0 and seen
    assert not list(store.site.lab.folder.glob("proxy*/capture")), "the files are gone with the run"


@pytest.mark.slow
@pytest.mark.alone
def test_a_server_stopped_for_a_second_shows_in_the_latency_finding(open_store, monkeypatch):
    """At a fixed rate the transactions of that second wait: its length is in the tail, not in the QPS.

    V14 would void what a stranger stopped, so it looks away here.
    """
    monkeypatch.setattr(checks_machine, "check_strangers", lambda run: iter(()))
    store = open_store(
        arms={"direct": {}, "stopped": {"stands_in_for": "a server that stops for a second in each run"}},
        workloads={"oltp_point_select": {"rate": 2000}},
        threads=(8,),
        plan={"seed": 3, "blocks": 5, "discard_s": 1, "run_s": 6, "max_repeats": 3},
    )
    wait, stops = clients.wait_for_clients, []

    def stop_once(pid: int) -> None:
        time.sleep(3.0)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(pid, signal.SIGCONT)
        stops.append(pid)

    def waiting(running: Any, deadline_s: float, advance: Any) -> None:
        thread = None
        if list(store.raw.glob("*-stopped-*.part")):
            (pid,) = store.site.monitored("stopped")["server"]
            thread = threading.Thread(target=stop_once, args=(pid,))
            thread.start()
        try:
            wait(running, deadline_s, advance)
        finally:
            if thread is not None:
                thread.join()

    monkeypatch.setattr(clients, "wait_for_clients", waiting)
    # Beside other tests the tail of the steady arm varies so much that no interval is of use.
    store.walk_alone()
    store.assert_complete()
    assert len(stops) >= 5
    tables = tidy.read_study(store.raw, store.void, schedule.schedule_table(store.runs), LIMITS)
    frames = {name: pa.Table.to_pandas(tables[name]) for name in ("runs", "voids", "histograms")}
    found = findings.build_findings("test", store.study, frames, Analysis())
    p99 = next(one for one in found.findings if one.metric == "latency_p99_ms")
    # A sixth of the transactions waited up to a second: the slowest hundredth 0.9 s and more.
    assert frames["runs"].query("arm == 'stopped'")["latency_p99_ms"].min() > 850
    assert p99.n == 5 and p99.low > 5
    # The tail of the steady arm varies by more than the half of itself on most machines.
    assert p99.label == ("higher" if p99.estimate.is_useful else "no useful interval")
    ratio = frames["runs"].groupby("arm")["qps"].mean()
    assert ratio["stopped"] / ratio["direct"] == pytest.approx(1, abs=0.03)
