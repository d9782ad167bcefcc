"""What a study may ask of hosts, and what it is told where they can't give it."""

from typing import Any

from benchbook.core.study.engines import data_groups
from benchbook.core.study.study import StudySpec
from benchbook.plan import schedule
from tests import small

TIUP = {part: {"hosts": 3} for part in ("pd", "tikv", "tidb")}


def study(arms: dict[str, Any], **site: Any) -> StudySpec:
    """A study of TiDB on hosts."""
    site = {"kind": "ssh", "inventory": "rack", "port": 4000} | site
    return small.study(site=site, engine={"name": "tidb", "version": "8.0.0"}, arms=arms, threads=(12,))


def test_a_tidb_for_each_node_makes_room_for_more_servers_and_is_another_cluster():
    nodes = {"numa": {"tidb": [0, 1]}, "clients": 6, "servers": 6}
    asked = study({"base": {"clients": 3, "servers": 3}, "nodes": nodes}, tiup=TIUP)
    # Bound otherwise they are made anew, so their tables are loaded by themselves.
    assert data_groups(asked.arms) == [["base"], ["nodes"]]


def test_a_new_key_that_is_not_set_leaves_runs_as_they_were():
    asked = study({"base": {}, "other": {"access": "haproxy"}})
    runs = schedule.plan_runs("test", asked, {})
    assert [run.arm_setting for run in runs if run.arm == "other"] == [{"access": "haproxy"}]
    changed = study({"base": {}, "other": {"access": "haproxy", "proxy": {"settings": {"retries": 2}}}})
    ids = {run.arm: run.run_id for run in runs}
    again = {run.arm: run.run_id for run in schedule.plan_runs("test", changed, {})}
    assert again["base"] == ids["base"] and again["other"] != ids["other"]
