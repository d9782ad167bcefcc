"""What is done to a server in the middle of a run: what is lost is counted, and for how long."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from benchbook import sites
from benchbook.measure import dataset, servers
from benchbook.measure.data_plan import plan_data
from tests import rooms, walks
from tests.sites.local.test_socket import study

PLAN = {"seed": 3, "blocks": 1, "order": "runs", "discard_s": 0, "run_s": 48}
THREADS = 2


def asked(arm: dict, workload: str = "oltp_read_only", **changes):
    arms = {"steady": {**arm, "load": None}, "event": arm | {"event": changes}}
    return study(**common(workload), arms=arms, plan=PLAN)


def common(workload: str) -> dict[str, Any]:
    return {"port": rooms.port(70), "aa": None, "workloads": {workload: {}}, "threads": (THREADS,)}


@pytest.mark.server
@pytest.mark.parametrize(
    ("arm", "workload", "event", "gone_s"),
    [
        ({}, "oltp_read_write", {"what": "restart", "at_s": 21, "back_after_s": 3}, (2, 9)),
        (
            {"access": "haproxy", "servers": 2},
            "oltp_read_only",
            {"what": "kill", "at_s": 21, "back_after_s": 4},
            (0, 3),
        ),
        (
            {},
            "oltp_read_write",
            {"what": "set", "at_s": 21, "back_after_s": 2, "settings": {"innodb_io_capacity": 300}},
            (0, 0),
        ),
    ],
    ids=["a restart", "a failover", "a setting"],
)
def test_a_run_goes_on_through_an_event_and_says_what_it_cost(
    arm, workload, event, gone_s, open_folder: Path, tmp_path
):
    made = asked(arm, workload, **event)
    with sites.open_site(made, open_folder / "events") as site:
        dataset.load_data(site, plan_data(made))
        servers.put_back(site, plan_data(made))
        if "servers" in arm:
            # Whose probes are counted, and who else could have served, is known of a short run without one.
            short = study(**common(workload), arms={"steady": arm, "other": arm}, plan={**PLAN, "run_s": 5})
            steady = walks.judge(walks.measured(site, short, "steady", tmp_path / "steady"))
            assert (steady.reasons, steady.ledger) == ([], "agrees")
        judged = walks.judge(walks.measured(site, made, "event", tmp_path / "run"))
    assert (judged.reasons, judged.status) == ([], "valid")
    seen, log = judged.evidence.seen, judged.evidence.log
    done = seen["arrangement"]["event"]
    assert abs(done["killed_s"] - seen["started_monotonic_s"] - event["at_s"]) < 1.5
    seconds, tps = log.intervals.column("second"), log.intervals.column("tps")
    silent = seconds[tps == 0]
    assert gone_s[0] <= len(silent) <= gone_s[1]
    assert all(event["at_s"] < second < event["at_s"] + 12 for second in silent)
    if event["what"] == "set":
        assert done["was"] == {"innodb_io_capacity": "200"}
    else:
        assert done["pid_before"] != done["pid_after"]
        # Each thread lost the transaction that it was in, and no more.
        assert THREADS <= judged.evidence.total("ignored_errors") <= 4 * THREADS
    assert any(warning.startswith("planned: the server was") for warning in judged.warnings)


@pytest.mark.parametrize(
    ("arm", "workload", "event", "refusal"),
    [
        ({}, "oltp_read_only", {"what": "set", "at_s": 21}, "settings: go with what: set"),
        ({}, "oltp_read_only", {"at_s": 2}, "leaves less than 20 s before it"),
        ({"access": "haproxy", "servers": 2}, "oltp_read_write", {"at_s": 21}, "don't replicate"),
    ],
)
def test_an_event_that_would_say_nothing_is_refused_by_key(arm, workload, event, refusal):
    with pytest.raises(ValidationError, match=refusal):
        asked(arm, workload, **event)
