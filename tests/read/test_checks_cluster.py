"""V24: what two looks at a TiDB cluster say of a run, one look at a time made wrong."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.params import Limits
from benchbook.read import checks_cluster
from benchbook.read.evidence import Missing

LOOK = {
    "stores": {name: {"id": rank, "state": "Up"} for rank, name in enumerate(("store-1", "store-2"), 1)},
    "leaders": {"2": "store-1", "8": "store-1", "12": "store-2"},
    "replicas": {"2": 3},
    "busy": 0,
    "ended": [],
}


def of(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    run = SimpleNamespace(seen={"arrangement": {"cluster": {"before": before, "after": after}}})
    return checks_cluster.cluster(run, Limits())


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
    alone = SimpleNamespace(seen={"arrangement": {}, "identity_before": {}})
    assert checks_cluster.cluster(alone, Limits()) == []
    with pytest.raises(Missing, match="which server"):
        checks_cluster.cluster(SimpleNamespace(seen={"arrangement": {}}), Limits())
    with pytest.raises(Missing, match="not looked at"):
        checks_cluster.cluster(SimpleNamespace(seen={"identity_before": {"cluster": {}}}), Limits())
