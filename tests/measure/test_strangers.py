"""What a stranger does to a live group through the kernel costs the runs that it met, and those alone."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset, servers
from benchbook.measure.data_plan import plan_data
from tests import strangers
from tests.measure.test_server_drift import Scene
from tests.measure.test_turns import PLAN
from tests.walks import Store

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("few_transactions")]
Make = Callable[..., StudySpec]
RUNS = {"seed": 3, "blocks": 1, "discard_s": 0, "run_s": 3, "order": "runs", "max_repeats": 3}
# What a stranger does shows at any load; turns have no rate.
CALM = {"oltp_read_write": {"rate": 20}}


def walked(
    site: Any,
    study: StudySpec,
    folder: Path,
    act: Callable[[], AbstractContextManager[Any]],
    lasts_s: float = 1.5,
) -> str:
    """Walk with something done for a while beside the first runs; return why runs were voided."""
    site.study, store = study, Store(site, study, folder)

    def beside() -> None:
        with act():
            time.sleep(lasts_s)

    store.walk_with(beside, after_s=1.0)
    store.assert_complete()
    return "\n".join(reasons for _, reasons in store.voids().values())


@pytest.fixture(params=["runs", "turns"])
def study(request: pytest.FixtureRequest, make_study: Make) -> StudySpec:
    asked = {"runs": {"plan": RUNS, "workloads": CALM}, "turns": {"plan": {**PLAN, "run_s": 2}}}
    return make_study(**asked[request.param], threads=(1,), aa=None)


def test_a_tracer_of_a_server_voids_the_run_it_met(site: Any, study: StudySpec, tmp_path: Path):
    site.up("direct")

    def trace() -> AbstractContextManager[Any]:
        pid = site.monitored("direct")["server"][0]
        return strangers.running(strangers.SEIZE.format(pid=pid))

    assert "the server was traced" in walked(site, study, tmp_path, trace)


def test_stops_of_a_stranger_void_the_run_they_met(site: Any, study: StudySpec, tmp_path: Path):
    site.up("direct")

    def stop() -> AbstractContextManager[Any]:
        return strangers.stopping(site.monitored("direct")["server"][0])

    said = walked(site, study, tmp_path, stop)
    assert "the server was stopped" in said or "a part of the arm" in said


def test_packets_that_a_rule_drops_void_the_run_and_the_rule_is_said(lab, make_study, tmp_path, monkeypatch):
    """In the network of a pod, so that no other test of this machine meets the rule."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "iptables"))):
        pytest.skip("needs root, ip and iptables")
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    pods = {"direct": {"network": "pod"}, "proxy": {"network": "pod", "access": "haproxy"}}
    # In 5 s the server is sent some 10,000 statements, 50 of which are dropped.
    rate = {"oltp_read_write": {"rate": 100}}
    study = make_study(arms=pods, plan={**RUNS, "run_s": 6}, threads=(4,), workloads=rate)
    with sites.open_site(study, lab.parent / "pods") as site:
        dataset.load_data(site, plan_data(study))
        site.up("direct")

        @contextmanager
        def drop() -> Iterator[None]:
            pid = site.monitored("direct")["server"][0]
            inside = ["nsenter", f"--net=/proc/{pid}/ns/net", "iptables", "-w", "10"]
            one_in_200 = ["-m", "statistic", "--mode", "random", "--probability", "0.005", "-j", "DROP"]
            subprocess.run([*inside, "-A", "INPUT", *one_in_200], check=True)
            yield
            subprocess.run([*inside, "-D", "INPUT", *one_in_200], check=True)

        said = walked(site, study, tmp_path, drop, 5.0)
    assert "segments were sent again" in said


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "CREATE TRIGGER slow BEFORE UPDATE ON sbtest1 FOR EACH ROW SET NEW.pad = REVERSE(NEW.pad)",
            "trigger sbtest1.slow is not ours and was there before the runs (BEFORE, UPDATE",
        ),
        ("CREATE INDEX more ON sbtest2 (pad)", "index sbtest2.more is not ours"),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1", "event sbtest.e is not ours"),
        (
            "SET GLOBAL innodb_flush_log_at_trx_commit = 2",
            "server variable innodb_flush_log_at_trx_commit was set to 2 by hand before the runs",
        ),
    ],
)
def test_what_was_made_before_the_first_run_of_a_session_is_named(site, make_study, statement, words):
    site.up("direct")
    scene = Scene(site, make_study)
    scene.say(statement)
    with servers.open_sessions(site, scene.study, ["direct"]) as connections:
        found = scene.faults(connections["direct"][0])
    site.restore()
    site.up("direct")
    assert any(fault.startswith(words) for fault in found), found


# Others' tests partition the machine's network by rules, each of which is a stranger's to this walk.
@pytest.mark.alone("firewall")
def test_a_quiet_walk_accuses_no_stranger(site, study, tmp_path):
    site.study, store = study, Store(site, study, tmp_path)
    store.walk()
    said = "\n".join(reasons for _, reasons in store.voids().values())
    assert "V12" not in said and "V13" not in said and "V14" not in said
