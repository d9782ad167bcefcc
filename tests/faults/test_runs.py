"""A fault in a run is noticed, named and kept as evidence, the run is made again, and nothing is left."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from benchbook.core.artifacts import run_folder
from benchbook.measure import run_executor
from benchbook.sites.agent import watch
from tests.faults import acts
from tests.faults.acts import Fault
from tests.faults.scene import Scene

pytestmark = pytest.mark.server

SERVER = (
    Fault("F8", "server killed with SIGKILL in a run", acts.send("server", signal.SIGKILL), ("V1",)),
    Fault("F8", "server ended with SIGTERM in a run", acts.send("server", signal.SIGTERM), ("V1",)),
    Fault("F9", "server stopped for 2.5 s", acts.pause("server"), ("V7",),
          words="no transaction in the interval", is_long=False),
    Fault("F15", "tables locked by a foreign session for 2.5 s", acts.lock, ("V7", "V10")),
    Fault("F13", "prepared statements used up", acts.setting("max_prepared_stmt_count", 3, 1048576),
          ("V1", "V3"), when="before", words="1461"),
    Fault("F16", "server set to read_only", acts.setting("read_only", 1, 0), ("V1", "V3"), when="before",
          words="1290"),
    Fault("F16", "server set to read_only in a run", acts.setting("read_only", 1, 0), ("V1", "V3"),
          words="1290"),
    Fault("F4", "table dropped before a run", acts.sql("DROP TABLE sbtest2"), ("V1", "V13"), when="before",
          words="1146"),
    Fault("F5", "table emptied before a run", acts.sql("TRUNCATE TABLE sbtest2"), ("V13", "V11"),
          when="before"),
    Fault("F5", "table emptied before the first look", acts.sql("TRUNCATE TABLE sbtest2"), ("V13", "V11"),
          when="early", words="sbtest2 had 0 rows, 500 expected"),
    Fault("F5", "one row too many before a run",
          acts.sql("INSERT INTO sbtest1 (k, c, pad) VALUES (1, 'x', 'x')"),
          ("V13",), when="early", words="sbtest1 had 501 rows, 500 expected"),
    Fault("F18", "table truncated in a run", acts.sql("TRUNCATE TABLE sbtest1"), ("V10", "V11", "V13")),
    Fault("F18", "table dropped in a run", acts.sql("DROP TABLE sbtest1"), ("V1",)),
    Fault("F18", "rows deleted in a run", acts.sql("DELETE FROM sbtest1 WHERE id < 200"), ("V10", "V13")),
    Fault("F18", "table altered in a run", acts.sql("ALTER TABLE sbtest1 ADD COLUMN x INT"), ("V10",),
          words="Connections grew"),
    Fault("F18", "index dropped in a run", acts.sql("ALTER TABLE sbtest1 DROP INDEX k_1"), ("V10",)),
    Fault("F18", "sessions of the client killed by an administrator",
          acts.sql("KILL USER 'benchbook'"), ("V1",)),
)  # fmt: skip
PROXY = (
    Fault("F28", "proxy killed with SIGKILL in a run", acts.send("proxy", signal.SIGKILL), ("V1",),
          arm="proxy"),
    Fault("F28", "proxy stopped for 2.5 s", acts.pause("proxy"), ("V7",), arm="proxy"),
    Fault("F28", "proxy reloaded softly in a run", acts.reload_proxy, ("V12", "V1"), arm="proxy"),
)  # fmt: skip
CLIENT = (
    *(Fault("F23", f"sysbench ended with {signum.name}", acts.send("client", signum), ("V1",))
      for signum in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)),
    Fault("F24", "sysbench stopped for 2.5 s", acts.pause("client"), ("V7", "V20")),
    Fault("F19", "sysbench allowed three open files", acts.few_files, ("V1", "V2", "V3"), when="before"),
    Fault("F17", "a second sysbench on the server", acts.second_client, ("V10", "V14"), is_long=False,
          words="Connections grew"),
    Fault("F2", "closed port", acts.elsewhere("127.0.0.1", 1), ("V1", "V3"), when="before", words="2002"),
    Fault("F2", "unknown host", acts.elsewhere("nowhere.invalid", 3306), ("V1", "V3"), when="before",
          words="2005"),
)  # fmt: skip
SLOW = "CREATE TRIGGER slow BEFORE UPDATE ON sbtest1 FOR EACH ROW SET NEW.pad = REVERSE(NEW.pad)"
# One for each check; all that may be changed is tried in tests/measure/test_server_drift.py.
BETWEEN = (
    Fault("F53", "the flush setting changed between runs",
          acts.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 0"), ("V12",), when="early",
          words="innodb_flush_log_at_trx_commit was 1, is 0 between the runs", is_long=False),
    Fault("F53", "a trigger on every update between runs", acts.sql(SLOW), ("V13",), when="early",
          words="trigger sbtest1.slow was added"),
    Fault("F53", "all k set to 1 between runs", acts.sql("UPDATE sbtest1 SET k = 1"), ("V14",),
          when="early", words="Com_update grew by 1 between the runs"),
)  # fmt: skip
OUTSIDE = (
    Fault("F66", "a CPU quota on the server in a run", acts.limit("server", "quota"), ("V12", "V14"),
          words="the server was under a CPU quota of 0.5 cores at /", is_long=False),
    Fault("F66", "a CPU quota on the server between runs", acts.limit("server", "quota"), ("V12", "V14"),
          when="early", words="the server was under a CPU quota of 0.5 cores at /"),
    Fault("F66", "a CPU quota on the proxy before its client", acts.limit("proxy", "quota"), ("V12", "V14"),
          when="before", arm="proxy", words="the proxy was under a CPU quota of 0.5 cores at /"),
    Fault("F66", "a CPU quota on the client from its start", acts.limit_client("quota"), ("V14",),
          when="before", words="the client was under a CPU quota of 0.5 cores at /"),
    Fault("F66", "a CPU weight of the least on the server", acts.limit("server", "weight"), ("V12", "V14"),
          words="the server was under a CPU weight of "),
    Fault("F66", "a CPU weight of the least on the client", acts.limit_client("weight"), ("V14",),
          when="before", words="the client was under a CPU weight of "),
    Fault("F66", "a memory limit on the server", acts.limit("server", "memory"), ("V12", "V14"),
          words="the server was under a memory limit ("),
    Fault("F66", "a set of cores on the server", acts.limit("server", "cores"), ("V12", "V14"),
          words="the server was under a set of cores ("),
)  # fmt: skip
NETWORK = (Fault("F27", "partition of 2.5 s", acts.partition(2.5), ("V7",), is_long=False),)


# Rules of the whole machine's network, which a walk beside it would see.
RULES = pytest.mark.alone("firewall")


# A packet's way is dropped by a rule of the firewall, which needs root.
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="rules of the firewall need root")


def each(*faults: Fault) -> Any:
    """Run a test with each of these faults."""
    marks = [[pytest.mark.faults] * one.is_long + [RULES, needs_root] * (one.row == "F27") for one in faults]
    params = [pytest.param(one, id=one.what, marks=of) for one, of in zip(faults, marks, strict=True)]
    return pytest.mark.parametrize("fault", params)


@each(*SERVER, *PROXY, *CLIENT, *BETWEEN, *OUTSIDE, *NETWORK)
def test_a_fault_in_a_run_costs_that_run_alone(fault, scene, inject):
    here = scene(fault.arm)
    inject(fault.row, fault.what)
    here.walk(fault.act, fault.when)
    here.assert_mended(*fault.checks, words=fault.words)


@each(
    Fault("F10", "server hung for ever", acts.hang("server"), ("V1",)),
    Fault("F10", "proxy hung for ever", acts.hang("proxy"), ("V1",), arm="proxy"),
    Fault("F10", "client hung for ever", acts.hang("client"), ("V1",)),
    Fault("F3", "a listener that never answers", acts.silent_listener, ("V1",), "before"),
    Fault("F27", "partition that stays", acts.partition(None), ("V1",)),
)
def test_what_never_ends_is_ended_at_the_deadline(fault, scene, inject, monkeypatch):
    monkeypatch.setattr(run_executor, "THREAD_INIT_S", 1)
    monkeypatch.setattr(run_executor, "GRACE_S", 2)
    here = scene(fault.arm)
    inject(fault.row, fault.what)
    here.walk(fault.act, fault.when)
    here.assert_mended("V1", words="ended by deadline")


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["quota", "memory"])
def test_a_limit_on_all_that_is_measured_is_said_of_each_run(kind, scene, inject):
    """It may be that of a container, which a study in it can't do without."""
    here = scene()
    here.site.down()
    inject("F66", f"a limit of {kind} on the slice that all is in")
    acts.limit("stage", kind)(here)
    here.walk(None)
    words = {"quota": "a CPU quota of 0.5 cores at /", "memory": "a memory limit ("}[kind]
    assert any(f"all ran under {words}" in warning for warning in here.judged[0].warnings)
    here.assert_nothing_left()


@pytest.mark.faults
def test_a_starved_client_is_no_measurement(scene: Callable[..., Scene], inject: Callable[..., None]):
    # The default of 0.6 leaves room for many threads on few cores; here two threads want a core of their own.
    here = scene(limits={"client_wait": 0.3}, threads=(2,))
    inject("F20", "ten busy loops on the client's cores")
    here.walk(acts.starve, "before")
    here.assert_mended("V15", words="waited")


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
@pytest.mark.faults
def test_a_step_of_the_clock_is_noted_and_changes_no_duration(step_s, scene, inject, monkeypatch):
    """The clock of this test is injected: the machine's own belongs to everybody."""
    here = scene()
    inject("F48", f"clock set by {step_s:+.0f} s in a run")
    acts.clock(here, watch, monkeypatch, step_s)
    here.undo(monkeypatch.undo)
    here.walk(None)
    here.assert_noticed("V16", words="the clock stepped by")
    evidence = here.judged[0].evidence.observed
    assert 2.9 < evidence["sysbench_s"] < 60
    here.assert_resumed()


@pytest.mark.faults
def test_a_storm_of_deadlocks_is_given_up_and_never_reported(scene, inject):
    storm = {
        "workloads": {"oltp_write_only": {"rand_type": "pareto", "index_updates": 20}},
        "threads": (24,),
        "plan": {"seed": 5, "blocks": 1, "discard_s": 1, "run_s": 2, "max_repeats": 1, "order": "runs"},
    }
    here = scene(**storm)
    inject("F14", "a storm of deadlocks")
    state = here.walk(None)
    here.assert_noticed("V8", words="ignored errors per transaction")
    assert list(run_folder.list_folders(here.raw)) == []
    assert len(here.voids()) == 2
    assert state.abandoned == [here.runs[0].group]
    here.assert_nothing_left()


@pytest.mark.faults
def test_too_many_clients_for_the_server(scene, inject):
    here = scene(threads=(16,))
    inject("F12", "max_connections below the threads")
    here.walk(acts.setting("max_connections", 10, 1024), "before")
    here.assert_noticed("V1", words="1040")
    here.assert_resumed()


def test_output_goes_into_files_and_never_through_a_reader(scene, inject):
    """A reader that dies, or a full pipe, loses a log although sysbench ends with 0."""
    here = scene()
    inject("F22", "no reader that could die")
    here.walk(acts.reader)
    assert here.seen[0] == "/dev/null"
    assert [name.rpartition("/")[2] for name in here.seen[1:]] == [run_folder.OUT, run_folder.ERR]
    here.assert_resumed()


@pytest.mark.faults
def test_a_wrong_password_is_named_without_it(scene: Callable[..., Scene], inject: Callable[..., None]):
    here = scene()
    inject("F1", "wrong password, looked for in all that is kept")
    here.walk(acts.wrong_password, "before")
    here.assert_noticed("V1", "V3", words="Access denied for user 'benchbook'")
    word = here.site.lab.password()
    kept = [path for path in here.base.rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if word.encode() in path.read_bytes()]
    assert word not in "\n".join(here.said)
    here.assert_resumed()
    here.assert_nothing_left()
