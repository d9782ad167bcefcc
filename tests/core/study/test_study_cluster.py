"""A cluster in a study file: what an arm changes of it, and what it refuses, each with what to write."""

import re
from typing import Any

from benchbook.core.study import interleaving
from benchbook.core.study.engines import data_groups, engine_of
from benchbook.core.study.study import StudySpec
from benchbook.sites.local import placement
from tests import small

CLUSTER = {"stores": 3, "tidb": 1, "replicas": 3, "store_settings": {"engine.sync-write": True}}


def study(**changes: Any) -> StudySpec:
    plan = {"blocks": 1, "discard_s": 10, "run_s": 120}
    return small.study(engine={"name": "tidb", "version": "5.0", "cluster": CLUSTER}, plan=plan, **changes)


def test_an_arm_changes_what_it_names_and_keeps_the_rest_and_gets_data_of_its_own() -> None:
    changed = {"replicas": 1, "store_settings": {"raftstore.raft-base-tick-interval": "1s"}}
    made = study(arms={"one": {}, "other": {"engine": {"cluster": changed}}})
    cluster = engine_of(made, "other").cluster
    assert cluster is not None and (cluster.stores, cluster.replicas) == (3, 1)
    assert cluster.store_settings == {"engine.sync-write": True, "raftstore.raft-base-tick-interval": "1s"}
    assert engine_of(made, "one").cluster == made.engine.cluster
    assert data_groups(made.arms) == [["one"], ["other"]]


def test_clusters_side_by_side_get_ports_that_do_not_meet() -> None:
    made = study(arms={"one": {}, "three": {"access": "haproxy", "engine": {"cluster": {"tidb": 3}}}})
    wide = {arm: engine_of(made, arm).cluster.ports for arm in made.arms}
    # Two ports for each part: 1 TiDB, 1 PD, 3 stores; and 3 TiDB, 1 PD, 3 stores.
    assert wide == {"one": 10, "three": 14}
    cpus = {"server": None, "proxy": None, "client": None}
    chains = placement.build_chains(made.arms, 24000, cpus, ports=wide)
    assert [chains["one"].server.port, chains["three"].server.port] == [24000, 24010]
    assert chains["three"].entry.port == 24024


def test_a_cluster_is_measured_in_whole_runs() -> None:
    made, name = study(), "oltp_read_write"
    assert interleaving.choose_order(made, name) == interleaving.RUNS
    assert [*filter(re.compile("engine.cluster: ").match, interleaving.find_obstacles(made, name))]


def test_an_event_is_of_its_arm_alone() -> None:
    event = {"what": "kill_store", "at_s": 60, "back_after_s": 30}
    made = study(arms={"steady": {}, "lost": {"engine": {"cluster": {"event": event}}}})
    lost, steady = (engine_of(made, arm).cluster for arm in ("lost", "steady"))
    assert lost is not None and lost.event is not None and lost.event.at_s == 60
    assert steady is not None and steady.event is None
