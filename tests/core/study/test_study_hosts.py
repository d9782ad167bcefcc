"""What a study may ask of hosts, and what it is told where they can't give it."""

from typing import Any

import pytest
from pydantic import ValidationError

from benchbook.core.study.engines import data_groups
from benchbook.core.study.study import Study
from benchbook.plan import schedule
from tests import small

TIUP = {part: {"hosts": 3} for part in ("pd", "tikv", "tidb")}


def study(arms: dict[str, Any], engine: dict[str, Any] | None = None, **site: Any) -> Study:
    """Return a study on hosts, of TiDB unless it says otherwise."""
    return small.study(
        site={"kind": "ssh", "inventory": "rack", "port": 4000} | site,
        engine=engine or {"name": "tidb", "version": "8.0.0"},
        arms=arms,
        dataset={"tables": 1, "table_size": 10},
        workloads={"oltp_point_select": {}},
        threads=(12,),
        plan={"seed": 1, "blocks": 1, "discard_s": 0, "run_s": 2},
    )


@pytest.mark.parametrize(
    ("arm", "engine", "site", "said"),
    [
        ({"numa": {"tidb": [0]}}, {"name": "mariadb"}, {}, "arms.odd.numa: binds parts of a cluster"),
        ({}, {"name": "mariadb"}, {"tiup": TIUP}, "site.tiup: makes TiDB, and engine.name is mariadb"),
        ({}, {"name": "tidb", "version": "8.0"}, {"tiup": TIUP}, "engine.version: 8.0: tiup needs it whole"),
        ({"clients": 4, "servers": 4}, None, {"tiup": TIUP}, "servers: 4: the cluster has 3 TiDB"),
        ({"proxy": {"version": "2.9"}}, None, {}, "arms.odd.proxy: access is direct"),
        (
            {"access": "haproxy", "proxy": {"settings": {"bind": "0.0.0.0"}}},
            None,
            {},
            "arms.odd.proxy.settings.bind: not taken; use maxconn",
        ),
        ({"access": "tiproxy"}, {"name": "mariadb"}, {"tls": "required"}, "has no certificate of ours"),
        ({}, None, {"tls": "required"}, "site.tls: required: made for mariadb only, and engine.name is tidb"),
        (
            {},
            {"name": "mariadb"},
            {"kind": "local", "inventory": None, "tls": "required"},
            "site.tls: required: not supported with site.kind: local; remove it, or write site.kind: ssh",
        ),
    ],
)
def test_what_hosts_can_not_give_is_told_with_place_and_remedy(arm, engine, site, said):
    with pytest.raises(ValidationError) as caught:
        study({"base": {}, "odd": arm}, engine, **site)
    assert said in str(caught.value)


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
