"""V24: what two looks at a TiDB cluster say of a run, one look at a time made wrong."""

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.study.params import Limits
from benchbook.read import checks_cluster
from benchbook.read.evidence import Evidence, Missing

LOOK = {
    "stores": {name: {"id": rank, "state": "Up"} for rank, name in enumerate(("store-1", "store-2"), 1)},
    "leaders": {"2": "store-1", "8": "store-1", "12": "store-2"},
    "replicas": {"2": 3},
    "busy": 0,
    "ended": [],
}


def of_seen(**seen: Any) -> Evidence:
    """A run without a plan or output, of which this was seen."""
    return Evidence(plan={}, observed=seen, out="", err=None)


def of(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    run = of_seen(arrangement={"cluster": {"before": before, "after": after}})
    return [*checks_cluster.check_cluster(run, Limits())]


def changed(**keys: Any) -> dict[str, Any]:
    return deepcopy(LOOK) | keys


def test_a_cluster_at_rest_passes_and_a_region_that_was_split_off_is_no_move() -> None:
    assert of(LOOK, LOOK) == []
    assert of(LOOK, changed(leaders=LOOK["leaders"] | {"20": "store-2"})) == []


def test_leaders_that_moved_are_counted_by_the_stores_they_left_and_went_to() -> None:
    after = changed(leaders={"2": "store-2", "8": "store-2", "12": "store-1"})
    # Regions 2 and 8 left store-1, region 12 left store-2.
    assert of(LOOK, after) == [
        "2 leaders moved from store-1 to store-2",
        "1 leader moved from store-2 to store-1",
    ]


def test_a_store_that_ended_is_named_even_while_pd_says_it_is_up() -> None:
    assert of(LOOK, changed(ended=["store-2"])) == ["store-2 had ended after the run"]
    said = changed(stores=LOOK["stores"] | {"store-1": {"id": 1, "state": "Disconnected"}})
    assert of(said, LOOK) == ["store-1 was Disconnected before the run"]


def test_a_region_without_a_leader_and_a_pd_that_does_not_tell_void_the_run() -> None:
    assert of(LOOK, changed(leaders=LOOK["leaders"] | {"8": None})) == [
        "1 region had no leader after the run"
    ]
    assert of(LOOK, {"ended": ["pd"], "reason": "PD does not tell: URLError"}) == [
        "pd had ended after the run",
        "PD does not tell: URLError after the run",
    ]


def test_arms_without_a_cluster_have_nothing_to_show_and_a_cluster_must_have_been_looked_at() -> None:
    alone = of_seen(arrangement={}, identity_before={})
    assert [*checks_cluster.check_cluster(alone, Limits())] == []
    with pytest.raises(Missing, match="which server"):
        list(checks_cluster.check_cluster(of_seen(arrangement={}), Limits()))
    with pytest.raises(Missing, match="not looked at"):
        list(checks_cluster.check_cluster(of_seen(identity_before={"cluster": {}}), Limits()))


EVENT = {
    "asked": {"what": "kill_store", "at_s": 60, "back_after_s": 30},
    **{"store": "store-1", "led": 2, "regions": 3, "pid_before": 11, "pid_after": 22},
    **{"killed_s": 1060.1, "started_s": 1090.2, "ready_s": 1091.0},
}


def with_event(event: dict[str, Any], after: dict[str, Any]) -> Any:
    looks = {"before": LOOK, "after": after, "event": event}
    seen = {"arrangement": {"cluster": looks}, "started_monotonic_s": 1000.0}
    return of_seen(**seen)


def test_a_store_that_was_killed_as_planned_may_have_lost_its_leaders_and_is_said() -> None:
    run = with_event(EVENT, changed(leaders={"2": "store-2", "8": "store-2", "12": "store-2"}))
    assert [*checks_cluster.check_cluster(run, Limits())] == []
    assert checks_cluster.describe_moves(run) == [
        "planned: store-1, which led 2 of 3 regions, was killed at 60.1 s, started again at 90.2 s, and "
        "answered at 91.0 s"
    ]


def test_an_event_at_a_server_is_described_with_its_moments_and_lost_transactions() -> None:
    event = {"asked": {"what": "kill"}, "killed_s": 25.0, "started_s": 35.0, "ready_s": 35.3}

    def describe(event: dict[str, Any] | None) -> str:
        observed = {"started_monotonic_s": 0.0}
        run = SimpleNamespace(planned_event=event, observed=observed, total={"ignored_errors": 4}.get)
        return checks_cluster.describe_event(run)

    assert describe(event) == (
        "planned: the server was killed at 25.0 s, started again at 35.0 s, ready at 35.3 s; 4 transactions "
        "ended in an error"
    )
    assert describe(None) == describe({"asked": {"what": "kill"}, "killed_s": 25.0}) == ""


def test_an_event_that_was_late_or_failed_or_left_something_down_voids_the_run() -> None:
    # Killed at 1065.1 - 1000 = 65.1 s, back 1090.2 - 1065.1 = 25.1 s later.
    late = with_event(EVENT | {"killed_s": 1065.1}, LOOK)
    assert [*checks_cluster.check_cluster(late, Limits())] == [
        "store-1 was killed after 65.1 s, 60 s were planned",
        "store-1 was started again after 25.1 s, 30 s were planned",
    ]
    failed = with_event({"asked": EVENT["asked"], "error": "SiteError: the run ended before it"}, LOOK)
    assert [*checks_cluster.check_cluster(failed, Limits())] == [
        "the planned event was not carried out: SiteError: the run ended before it"
    ]
    gone = with_event(EVENT, changed(ended=["store-2"], leaders=LOOK["leaders"] | {"8": None}))
    assert [*checks_cluster.check_cluster(gone, Limits())] == [
        "store-2 had ended after the run",
        "1 region had no leader after the run",
    ]


def test_only_the_process_that_the_event_ended_and_the_one_it_started_are_left_out_of_identities() -> None:
    run = with_event(EVENT, LOOK)
    store = {"pid": 11, "started": 5.0, "config_hash": "c"}
    identity = {"pid": 1, "cluster": {"store-1": store, "store-2": {"pid": 12, "config_hash": "c"}}}
    assert checks_cluster.but_for_event(run, identity, "before")["cluster"] == {
        "store-1": {"config_hash": "c"},
        "store-2": {"pid": 12, "config_hash": "c"},
    }
    # After it the store is process 22; any other was not started by the event.
    assert checks_cluster.but_for_event(run, identity, "after") == identity


def test_leaders_that_move_in_an_operators_cluster_are_said_and_a_store_that_is_down_voids_the_run() -> None:
    after = changed(leaders=LOOK["leaders"] | {"8": "store-2"})
    looks = {"is_managed": True, "before": LOOK, "after": after}
    run = of_seen(arrangement={"cluster": looks})
    assert [*checks_cluster.check_cluster(run, Limits())] == []
    assert checks_cluster.describe_moves(run) == ["1 leader moved from store-1 to store-2"]
    looks["after"] = changed(stores=LOOK["stores"] | {"store-1": {"id": 1, "state": "Down"}})
    assert [*checks_cluster.check_cluster(run, Limits())] == ["store-1 was Down after the run"]
    looks["after"] = {"ended": [], "reason": "PD does not tell: TimeoutError"}
    assert [*checks_cluster.check_cluster(run, Limits())] == []
    assert checks_cluster.describe_moves(run) == [
        "stores and leaders were not looked at: PD does not tell: TimeoutError"
    ]


def test_a_cluster_of_others_that_was_not_looked_at_is_no_lack_and_our_own_is() -> None:
    assert [*checks_cluster.check_cluster(of_seen(identity_before={"cluster": "uid"}), Limits())] == []
    own = of_seen(identity_before={"cluster": {"pd": {"pid": 1}}})
    with pytest.raises(Missing, match="not looked at"):
        list(checks_cluster.check_cluster(own, Limits()))
