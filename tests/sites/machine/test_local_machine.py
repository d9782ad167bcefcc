"""What the machine did is seen each second, for as long as there is something to see."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from benchbook.sites.agent import watch as watching
from benchbook.sites.agent.files import Files
from benchbook.sites.hosts.machine import OnHost
from benchbook.sites.machine.contract import Machine
from benchbook.sites.machine.local_machine import COLUMNS, LocalMachine, Monitor
from benchbook.sites.processes import procfs, taskstats
from tests import rooms

BUSY = "import time; end = time.monotonic() + {}\nwhile time.monotonic() < end: pass"


def test_a_kind_of_machine_that_does_not_say_whose_files_it_has_has_none():
    """It answered for those of this machine."""
    names = [name for name in vars(Files) if not name.startswith("_")]
    assert names and not any(hasattr(Machine, name) for name in names)
    assert all(hasattr(kind, name) for kind in (LocalMachine, OnHost) for name in names)
    assert OnHost.read is not LocalMachine.read is Files.read


def child(seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", BUSY.format(seconds)])


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Monitor, pd.DataFrame, float]:
    """Watch a busy client for 3.3 s and a server that ends before; the client's CPU seconds are last."""
    path = tmp_path_factory.mktemp("monitor") / "monitor.csv"
    client, server = child(10), child(10)
    watch = Monitor({"client": [client.pid], "server": [server.pid], "proxy": [2**22 - 1]}, path, client.pid)
    watch.start()
    began = time.monotonic()
    # Its first second is sampled late on a machine that is busy with other tests.
    time.sleep(1.8)
    server.kill()
    server.wait()
    time.sleep(max(0.0, began + 3.3 - time.monotonic()))
    used = sum(psutil.Process(client.pid).cpu_times()[:2])
    watch.stop()
    client.kill()
    client.wait()
    return watch, pd.read_csv(path), used


def test_the_table_has_its_columns_and_a_row_each_second(watched: tuple[Monitor, pd.DataFrame, float]):
    _, table, _ = watched
    assert tuple(table.columns) == COLUMNS
    machine = table[table.part == "machine"]
    assert len(machine) >= 2
    assert machine.second.diff().dropna().between(0.5, 2.0).all()
    assert machine.cpu_cores.between(0, 1.1 * psutil.cpu_count()).all()
    assert machine.rss_mib.gt(10).all()
    parts = table[table.part != "machine"]
    assert parts[["steal_pct", "psi_cpu_pct"]].isna().all(axis=None), "only a machine has steal and pressure"


def test_a_busy_process_uses_what_the_kernel_says(watched: tuple[Monitor, pd.DataFrame, float]):
    """One busy loop is at most one core; a shared machine may give it less, and the kernel says how much."""
    _, table, used = watched
    client = table[table.part == "client"]
    # The first sample's span ends at its second; each row is the mean of the span before it.
    spans = client.second.diff().fillna(client.second)
    seen = float((client.cpu_cores * spans).sum())
    assert client.cpu_cores.le(1.1).all()
    assert seen == pytest.approx(used, abs=0.6)
    assert client.rss_mib.between(2, 200).all()


def test_a_process_that_ends_is_no_error(watched: tuple[Monitor, pd.DataFrame, float]):
    _, table, _ = watched
    server = table[table.part == "server"]
    assert 1 <= len(server) < len(table[table.part == "client"])
    assert not len(table[table.part == "proxy"]), "a process that never was has no rows"


def test_pauses_steal_and_waits_are_measured(watched: tuple[Monitor, pd.DataFrame, float]):
    watch, _, _ = watched
    assert 0 <= watch.longest_pause_ms < 60_000
    assert 0 <= watch.steal_pct <= 100
    assert 0 <= watch.runqueue_wait_s < 60


def test_a_pause_of_the_clock_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The ticking thread asks for 25 ms; here its third sleep takes 200 ms more."""
    naps = iter([0.0, 0.0, 0.2])
    sleep = time.sleep
    monkeypatch.setattr(watching.time, "sleep", lambda seconds: sleep(seconds + next(naps, 0.0)))
    watch = Monitor({}, tmp_path / "monitor.csv", 1)
    watch.start()
    sleep(0.5)
    watch.stop()
    assert 190 < watch.longest_pause_ms < 10_000


def test_a_run_shorter_than_a_second_leaves_a_table_without_rows(tmp_path: Path):
    watch = Monitor({}, tmp_path / "monitor.csv", 2**22 - 1)
    watch.start()
    watch.stop()
    assert (tmp_path / "monitor.csv").read_text() == ",".join(COLUMNS) + "\n"
    assert watch.runqueue_wait_s == 0.0


@pytest.mark.alone
def test_events_are_counted_in_what_is_discarded_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The kernel's clock of a task stands in for the instructions that few virtual machines count."""
    for name in taskstats.EVENTS:
        monkeypatch.setitem(taskstats.EVENTS, name, (taskstats.SOFTWARE, 1))
    with rooms.alone():
        # It would have ended in a long wait for the machine.
        client = child(10)
        watch = Monitor({"client": [client.pid]}, tmp_path / "monitor.csv", client.pid)
        watch.counts_s = 0.5
        watch.start()
        time.sleep(1.2)
        watch.stop()
    client.kill()
    client.wait()
    told = watch.counted["client"]
    assert 0.02 < told["cpu_s"] < 0.8
    assert told["cpu_s"] <= 1.05 * told["instructions"] / 1e9 + 0.05 < 1.0
    short = Monitor({"client": [os.getpid()]}, tmp_path / "monitor.csv", os.getpid())
    short.counts_s = 60.0
    short.start()
    short.stop()
    assert short.counted == {}, "a run that ended before has counted nothing"


def test_guest_time_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The kernel counts guest time in user time already. In ticks of 1/100 s between the looks: user 100,
    80 of them guest, idle 60, iowait 20, steal 20; so 200 in all, steal is 20 / 200 = 10 %, and in 1 s the
    machine was busy 200 - 60 - 20 = 120 ticks, 1.2 cores. Counted twice: 280 in all, 7.1 % and 2 cores."""
    monkeypatch.setattr(procfs, "PROC", tmp_path)
    monkeypatch.setattr(procfs, "TICKS", 100)
    (tmp_path / "meminfo").write_text("MemTotal: 2048 kB\nMemAvailable: 1024 kB\nMemFree: 512 kB\n")
    looks = []
    for line in ("cpu  0 0 0 0 0 0 0 0 0 0\n", "cpu  100 0 0 60 20 0 0 20 80 0\n"):
        (tmp_path / "stat").write_text(line)
        looks.append(procfs.machine_times())
    assert watching._format_machine(*looks, 1.0) == [1.2, 1.0, 10.0]


def test_the_machines_cores_are_all_that_are_online_whoever_may_use_them(tmp_path: Path):
    """What is busy on a machine is a share of all its cores, also where we may use one alone."""
    mine = os.sched_getaffinity(0)
    watch = Monitor({}, tmp_path / "monitor.csv", os.getpid())
    try:
        os.sched_setaffinity(0, {min(mine)})
        watch.start()
        watch.stop()
    finally:
        os.sched_setaffinity(0, mine)
    assert watch.cores == psutil.cpu_count()


def test_what_a_server_s_own_processes_use_is_the_server_s(tmp_path: Path):
    """PostgreSQL begins a process for each session: the one that is known does next to nothing itself."""
    # One child ends before the first second, another works on: both are the server's.
    script = f"{sys.executable} -c '{BUSY.format(0.5)}'; {sys.executable} -c '{BUSY.format(10)}' & wait"
    server = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True)
    path = tmp_path / "monitor.csv"
    watch = Monitor({"server": [server.pid]}, path, families=[server.pid])
    watch.start()
    time.sleep(3.3)
    used = sum(sum(one.cpu_times()[:2]) for one in psutil.Process(server.pid).children())
    ended = sum(psutil.Process(server.pid).cpu_times()[2:4])
    watch.stop()
    os.killpg(server.pid, 9)
    server.wait()
    table = pd.read_csv(path)
    rows = table[table.part == "server"]
    seen = float((rows.cpu_cores * rows.second.diff().fillna(rows.second)).sum())
    assert seen > 0.1
    assert seen <= used + ended + 0.1
    # The last whole second that was seen ends up to a second before the look at the kernel.
    assert seen >= used + ended - 1.2
