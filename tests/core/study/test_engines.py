"""What an arm changes of engine and data, which arms share data; keys that are left out change nothing."""

from typing import Any

from benchbook.core.study.engines import data_groups, data_variant, engine_of, is_analyzed, is_prewarmed
from benchbook.core.study.model import compute_fingerprint
from benchbook.core.study.study import StudySpec
from benchbook.plan import earlier_rules, schedule
from tests import small

POD = {
    "network": "pod", "access": "service", "qos": "guaranteed", "neighbour": {"processes": 1},
    "cpu": {"server": {"quota": 0.5, "cores": (0,)}}, "kernel": {"somaxconn": 9},
}  # fmt: skip


def make(**changes: Any) -> StudySpec:
    return small.study(
        **{
            "site": {"port": 34000},
            "engine": {"settings": {"innodb_buffer_pool_size": "64M"}},
            "arms": {"direct": {}, "proxy": {"access": "haproxy"}, "pod": POD},
            "aa": {},
            "dataset": {"tables": 2, "table_size": 1000},
            "workloads": {"oltp_point_select": {"rand_type": "uniform"}, "oltp_read_write": {"rate": 50}},
            "threads": (1, 4),
            "plan": {"seed": 7, "blocks": 2, "discard_s": 5, "run_s": 30},
        }
        | changes
    )


def test_ids_of_runs_are_those_of_the_version_before_there_were_engines_and_loads_as_arms() -> None:
    """Measured runs are found by their ids: another id would ask for all of them to be made again."""
    warm_up = earlier_rules.lift_warm_up(make(), {})
    ids = [run.run_id for run in schedule.plan_runs("s", make(), {}, warm_up)]
    assert (len(ids), ids[0]) == (32, "b01-oltp_point_select-t0001-direct-3641a935be")
    assert compute_fingerprint(ids) == "099cdb35f7"


def test_an_arm_that_asks_for_another_version_or_order_has_other_runs_and_the_others_keep_theirs() -> None:
    changed = {"direct": {}, "new": {"engine": {"version": "9"}}, "first": {"data": {"index": "before"}}}
    before, after = (
        {run.arm: run.run_id for run in schedule.plan_runs("s", make(arms=arms, aa=None), {}, {})}
        for arms in ({arm: {} for arm in changed}, changed)
    )
    assert [arm for arm in changed if before[arm] == after[arm]] == ["direct"]


TIDB = {"name": "tidb", "version": "5.4", "settings": {"log.level": "error", "tidb_retry_limit": 5}}


def test_an_arm_adds_settings_to_the_studys_engine_and_replaces_its_version() -> None:
    arms = {
        "old": {},
        "new": {"engine": {"version": "6.6", "settings": {"tidb_retry_limit": 7}}},
        "own": {"engine": {"binary": "/opt/tidb-server"}},
        "other": {"engine": {"name": "mariadb"}},
    }
    study = make(engine=TIDB, arms=arms)
    assert engine_of(study, "old") == study.engine
    new = engine_of(study, "new")
    assert (new.name, new.version) == ("tidb", "6.6")
    assert new.settings == {"log.level": "error", "tidb_retry_limit": 7}
    own = engine_of(study, "own")
    assert (own.version, own.binary) == (None, "/opt/tidb-server"), "a binary is of the version that it is"
    other = engine_of(study, "other")
    assert (other.name, other.version, other.settings) == ("mariadb", None, {})


def test_arms_share_data_unless_engine_order_or_statistics_differ() -> None:
    arms = {
        "base": {},
        "pod": {"network": "pod"},
        "cold": {"data": {"prewarm": False}},
        "first": {"data": {"index": "before"}},
        "first_cold": {"data": {"index": "before", "prewarm": False}},
        "new": {"engine": {"version": "6.6"}},
        "plain": {"data": {"analyze": False}},
    }
    study = make(engine=TIDB, arms=arms)
    groups = [["base", "pod", "cold"], ["first", "first_cold"], ["new"], ["plain"]]
    assert data_groups(study.arms) == groups
    assert data_variant(study.arms["pod"]) == ""
    assert data_variant(study.arms["cold"]) != "", "warmed by itself: its own server"
    assert not is_prewarmed(study, "cold") and is_prewarmed(study, "first")
    assert not is_analyzed(study, "plain") and is_analyzed(study, "cold")


def test_two_commits_are_two_arms_of_one_build() -> None:
    arms = {"before": {}, "after": {"engine": {"build": {"ref": "main"}}}}
    build = {"repo": "../server", "command": "make", "binary": "out/mariadbd", "ref": "v1"}
    study = make(arms=arms, engine={"build": build})
    assert [engine_of(study, arm).build.ref for arm in study.arms] == ["v1", "main"]
    assert engine_of(study, "after").build.command == "make"
    assert len(data_groups(study.arms)) == 2
