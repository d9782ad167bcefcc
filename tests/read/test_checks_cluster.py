"""V24: what two looks at a TiDB cluster say of a run, one look at a time made wrong."""

from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.study.params import Limits
from benchbook.read import checks_cluster
from benchbook.read.evidence import Evidence, Missing
from tests.goldens import assert_golden


def of_seen(**seen: Any) -> Evidence:
    """A run without a plan or output, of which this was seen."""
    return Evidence(plan={}, observed=seen, out="", err=None)


def test_arms_without_a_cluster_have_nothing_to_show_and_a_cluster_must_have_been_looked_at() -> None:
    alone = of_seen(arrangement={}, identity_before={})
    assert [*checks_cluster.check_cluster(alone, Limits())] == []
    with pytest.raises(Missing, match="which server"):
        list(checks_cluster.check_cluster(of_seen(arrangement={}), Limits()))
    with pytest.raises(Missing, match="not looked at"):
        list(checks_cluster.check_cluster(of_seen(identity_before={"cluster": {}}), Limits()))


def test_an_event_at_a_server_is_described_with_its_moments_and_lost_transactions() -> None:
    moments = {"killed_s": 25.0, "started_s": 35.0, "ready_s": 35.3}

    def describe(event: dict[str, Any] | None) -> str:
        observed = {"started_monotonic_s": 0.0}
        run = SimpleNamespace(planned_event=event, observed=observed, total={"ignored_errors": 4}.get)
        return checks_cluster.describe_event(run)

    events = [moments | {"asked": {"what": what}} for what in ("kill", "restart", "set")]
    events.append(moments | {"asked": {"what": "kill_store"}, "store": "store-1", "led": 3, "regions": 9})
    assert_golden("planned_events.txt", "".join(f"{describe(event)}\n" for event in events))
    assert describe(None) == describe({"asked": {"what": "kill"}, "killed_s": 25.0}) == ""


def test_only_the_process_that_the_event_ended_and_the_one_it_started_are_left_out_of_identities() -> None:
    event = {"asked": {"what": "kill_store"}, "store": "store-1", "pid_before": 11, "pid_after": 22}
    run = of_seen(arrangement={"cluster": {"event": event}})
    store = {"pid": 11, "started": 5.0, "config_hash": "c"}
    identity = {"pid": 1, "cluster": {"store-1": store, "store-2": {"pid": 12, "config_hash": "c"}}}
    assert checks_cluster.but_for_event(run, identity, "before")["cluster"] == {
        "store-1": {"config_hash": "c"},
        "store-2": {"pid": 12, "config_hash": "c"},
    }
    # After it the store is process 22; any other was not started by the event.
    assert checks_cluster.but_for_event(run, identity, "after") == identity


def test_a_cluster_of_others_that_was_not_looked_at_is_no_lack_and_our_own_is() -> None:
    assert [*checks_cluster.check_cluster(of_seen(identity_before={"cluster": "uid"}), Limits())] == []
    own = of_seen(identity_before={"cluster": {"pd": {"pid": 1}}})
    with pytest.raises(Missing, match="not looked at"):
        list(checks_cluster.check_cluster(own, Limits()))
