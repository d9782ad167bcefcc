"""What is done to a server in the middle of a run: what is lost is counted, and for how long."""

from pathlib import Path

import pytest

from benchbook import sites
from benchbook.sites.processes import process
from tests import rooms, walks
from tests.sites import event_runs
from tests.sites.local.test_socket import study

TWO, SET = {"access": "haproxy", "servers": 2}, {"innodb_io_capacity": 300}


def asked(arm: dict, workload: str, **event):
    arms = {"steady": {**arm, "load": None}, "event": arm | {"event": event}}
    return study(arms=arms, port=rooms.port(70), **event_runs.sections(workload))


@pytest.mark.server
@pytest.mark.parametrize(
    ("arm", "workload", "event", "gone_s"),
    [
        ({}, "oltp_read_write", {"what": "restart", "at_s": 21, "back_after_s": 3}, (2, 9)),
        (TWO, "oltp_read_only", {"what": "kill", "at_s": 21, "back_after_s": 4}, (0, 3)),
        ({}, "oltp_read_write", {"what": "set", "at_s": 21, "back_after_s": 2, "settings": SET}, (0, 0)),
    ],
    ids=["a restart", "a failover", "a setting"],
)
def test_a_run_goes_on_through_an_event_and_says_what_it_cost(
    arm, workload, event, gone_s, open_folder: Path, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    # A run of 48 s says no more for as many transactions as two cores can make.
    monkeypatch.setitem(process.PLAIN, "BENCHBOOK_TESTS_WAIT_US", "40000")
    made = asked(arm, workload, **event)
    with sites.open_site(made, open_folder / "events") as site:
        judged = event_runs.judge_event_run(site, "event", tmp_path / "run")
        if "servers" in arm:
            # Whose probes are counted is known of a short run without an event.
            short = made.model_copy(update={"plan": made.plan.model_copy(update={"run_s": 5})})
            steady = walks.judge(walks.measured(site, short, "steady", tmp_path / "steady"))
            assert (steady.reasons, steady.ledger) == ([], "agrees")
    event_runs.must_tell_the_loss(judged, event, gone_s)
    if event["what"] == "set":
        assert judged.evidence.observed["arrangement"]["event"]["was"] == {"innodb_io_capacity": "200"}
