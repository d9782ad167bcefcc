"""A study becomes runs whose ids change with everything that matters and with nothing else."""

import dataclasses
import hashlib
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.plan import schedule
from tests import depth, small
from tests.goldens import assert_golden

DATA = {"fingerprint": "da7a000000"}


def make(**changes: Any) -> StudySpec:
    """Return a study of two arms, a reading and a writing workload, with other sections as given."""
    plan = {"seed": 7, "blocks": 2, "discard_s": 5, "run_s": 30, "order": "runs"}
    usual = {"workloads": {"oltp_point_select": {}, "oltp_read_write": {}}, "threads": (1, 4)}
    usual["dataset"] = {"tables": 2, "table_size": 1000}
    return small.study(**usual | changes | {"plan": plan | changes.get("plan", {})})


def ids(study: StudySpec, conditions: dict[str, Any] | None = None) -> list[str]:
    return [run.run_id for run in schedule.plan_runs("s", study, conditions or {})]


ARMS = {f"arm{number}": {} for number in range(4)}


@given(
    st.integers(1, 2**31 - 1),
    st.integers(1, 4),
    st.integers(2, 4),
    st.sets(st.sampled_from(["oltp_point_select", "oltp_read_write", "oltp_insert"]), min_size=1),
    st.sets(st.integers(1, 64), min_size=1, max_size=3),
    st.booleans(),
)
@settings(max_examples=depth.examples(40))
def test_each_block_holds_each_cell_once_with_its_arms_side_by_side(
    seed: int, blocks: int, arms: int, workloads: set[str], threads: set[int], has_twin: bool
):
    study = make(
        arms=dict(list(ARMS.items())[:arms]),
        aa={} if has_twin else None,
        workloads={name: {} for name in sorted(workloads)},
        threads=tuple(sorted(threads)),
        plan={"seed": seed, "blocks": blocks},
    )
    runs = schedule.plan_runs("s", study, {})
    names = [*study.arms, *([study.twin] if has_twin else [])]
    cells = {(arm, workload, level) for arm in names for workload in workloads for level in threads}
    for block in range(1, blocks + 1):
        seen = Counter((run.arm, run.workload, run.threads) for run in runs if run.block == block)
        assert seen == Counter(cells)
    assert [run.position for run in runs] == list(range(len(runs)))
    assert [run.block for run in runs] == sorted(run.block for run in runs)
    assert len({run.run_id for run in runs}) == len(runs)
    adjacent = [list(members) for _, members in groupby(runs, key=lambda run: run.group)]
    assert all({run.arm for run in members} == set(names) for members in adjacent)
    assert all(len({(run.block, run.workload, run.threads) for run in members}) == 1 for members in adjacent)


def test_the_twin_is_the_baseline_under_another_name_where_the_study_says_so():
    study = make(aa={"workloads": ("oltp_point_select",), "threads": (4,)})
    runs = schedule.plan_runs("s", study, {"direct": {"facts": "f"}})
    twins = [run for run in runs if run.arm == "direct_again"]
    assert {(run.workload, run.threads) for run in twins} == {("oltp_point_select", 4)}
    assert len(twins) == study.plan.blocks
    assert all(run.arm_setting == {"access": "direct"} and run.conditions == {"facts": "f"} for run in twins)


def test_blocks_added_later_leave_the_earlier_runs_as_they_are():
    assert ids(make(plan={"blocks": 5}))[: len(ids(make()))] == ids(make())


@pytest.mark.parametrize(
    "grown",
    [
        {"threads": (1, 4, 16)},
        {"workloads": {"oltp_point_select": {}, "oltp_read_write": {}, "oltp_insert": {}}},
        {"arms": {"direct": {}, "proxy": {"access": "haproxy"}, "more": {"access": "haproxy"}}},
        {"aa": {}},
        {"warm_up": {"pilot_s": 300}},
        {"title": "Another title"},
        {"plan": {"max_repeats": 5}},
    ],
    ids=lambda grown: next(iter(grown)),
)
def test_a_study_that_grows_keeps_every_run_it_has(grown: dict[str, Any]):
    assert set(ids(make())) <= set(ids(make(**grown)))


@pytest.mark.parametrize("study", [make(aa={}), make(aa={"threads": (4,)})], ids=["all", "some"])
def test_a_new_arm_keeps_the_runs_of_the_twin(study: StudySpec):
    grown = study.model_copy(update={"arms": {**study.arms, "more": study.arms["proxy"]}})
    assert set(ids(study)) <= set(ids(grown))


@pytest.mark.parametrize(
    "other",
    [
        {"plan": {"seed": 8}},
        {"plan": {"run_s": 31}},
        {"plan": {"discard_s": 6}},
        {"dataset": {"tables": 3, "table_size": 1000}},
        {"dataset": {"tables": 2, "table_size": 1001}},
        {"workloads": {"oltp_point_select": {"rate": 5}, "oltp_read_write": {"rate": 5}}},
        {"workloads": {"oltp_point_select": {"ps_mode": "disable"}, "oltp_read_write": {"skip_trx": True}}},
    ],
    ids=str,
)
def test_no_run_survives_a_setting_that_matters_to_it(other: dict[str, Any]):
    assert not set(ids(make())) & set(ids(make(**other)))


def test_what_an_arm_is_called_is_no_part_of_a_run():
    arms = {"direct": {"name": "TiDB 5.0"}, "proxy": {"access": "haproxy", "name": "the proxy"}}
    plain, named = (schedule.plan_runs("s", one, {}) for one in (make(), make(arms=arms)))
    assert [run.to_dict() for run in named] == [run.to_dict() for run in plain]
    assert ids(make(arms=arms)) == ids(make())


def test_a_changed_arm_or_condition_voids_the_runs_of_that_arm_alone():
    found = {"direct": {"facts": "a", "data": "d"}, "proxy": {"facts": "b", "data": "d"}}
    before = ids(make(), found)
    after = ids(make(), found | {"proxy": {"facts": "c", "data": "d"}})
    assert {run_id.rsplit("-", 2)[1] for run_id in before if run_id not in after} == {"proxy"}
    assert len(set(before) & set(after)) == len(before) // 2
    assert not set(before) & set(ids(make(), {arm: {"facts": "a", "data": "e"} for arm in found}))


RUN = PlannedRun(
    study="quick", block=1, position=3, group="b01-oltp_point_select-t0004", arm="direct",
    arm_setting={"access": "direct"}, workload="oltp_point_select", script="oltp_point_select",
    options={"rand_type": "uniform"}, threads=4, discard_s=5, run_s=30, percentile=99, rate=0, seed=5,
    tables=2, table_size=1000, conditions={"facts": "a", "data": "b"},
)  # fmt: skip


def test_the_id_of_a_run_is_the_same_in_every_version():
    """If this changes, every study asks for all its hours of measuring again."""
    assert RUN.run_id == "b01-oltp_point_select-t0004-direct-351e962a22"
    assert RUN.to_dict()["run_id"] == RUN.run_id


TURN = dataclasses.replace(RUN, order="turns", turn_ms=50, partners=("direct", "proxy"))


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(PlannedRun)])
def test_every_field_but_the_position_is_part_of_the_id(field: str):
    value = getattr(RUN, field)
    more = ("new",) if isinstance(value, tuple) else 1
    other = {**value, "new": 1} if isinstance(value, dict) else value + type(value)(more)
    # Whole runs have no turns to be told apart by.
    run = TURN if field in ("order", "turn_ms", "partners", "edge_s") else RUN
    changed = dataclasses.replace(run, **{field: other}).run_id
    assert (changed == run.run_id) == (field == "position")


def test_whole_runs_keep_the_ids_and_plans_they_had_before_there_were_turns():
    assert not {"order", "turn_ms", "partners"} & set(RUN.to_dict())
    assert {"order", "turn_ms", "partners"} <= set(TURN.to_dict())


def arms(**machine: Any) -> dict[str, Any]:
    found = {
        "engine": {"version": "10.11.6"},
        "machine": {"cpu_model": "x", "python": "3.11.2"} | machine,
        "moment": {"disk_free_mib": 5, "load": 1.5},
    }
    return {"direct": found, "proxy": found | {"access": "haproxy"}}


def test_conditions_change_with_what_an_arm_is_and_not_with_the_hour():
    before = schedule.run_conditions(arms(), DATA)
    assert set(before) == {"direct", "proxy"}
    assert before["direct"]["facts"] != before["proxy"]["facts"]
    assert {one["data"] for one in before.values()} == {"da7a000000"}
    later = arms(python="3.12.0")
    for found in later.values():
        found["moment"] = {"disk_free_mib": 9}
    assert schedule.run_conditions(later, DATA) == before
    assert schedule.run_conditions(arms(cpu_model="y"), DATA) != before
    assert schedule.run_conditions(arms(), {"fingerprint": "other"}) != before


def test_arms_read_the_same_rows_and_write_their_own():
    """With one seed the second arm would write the values that are there already, which changes no row."""
    runs = schedule.plan_runs("s", make(aa={}), {})
    for _, members in groupby(runs, key=lambda run: run.group):
        group = list(members)
        seeds = {run.seed for run in group}
        assert len(seeds) == (1 if group[0].workload == "oltp_point_select" else 3)
    firsts = [run.seed for run in runs if run.arm == "direct"]
    assert len(set(firsts)) == len(firsts), "every group draws its own"


def test_a_workload_writes_if_its_script_does():
    runs = schedule.plan_runs("s", make(workloads={"mine": {"script": "oltp_insert"}}, threads=(1,)), {})
    assert runs[0].script == "oltp_insert"
    assert runs[0].seed != runs[1].seed


def test_pilots_are_each_arm_at_the_ends_of_the_range():
    study = make(threads=(4, 16, 1), warm_up={"pilot_s": 20}, aa={})
    pilots = schedule.pilot_runs("s", study)
    ends = {(arm, level) for arm in ("direct", "proxy") for level in (1, 16)}
    assert {(run.arm, run.threads) for run in pilots} == ends
    assert len(pilots) == 8
    assert {(run.block, run.group, run.discard_s, run.run_s) for run in pilots} == {(0, "pilot", 0, 20)}
    assert not {run.run_id for run in pilots} & set(ids(study))
    assert len(schedule.pilot_runs("s", make(threads=(4,)))) == 4


@pytest.mark.parametrize(
    ("engine", "arm", "block_s"),
    [
        ({"name": "mariadb"}, {}, 4),
        ({"name": "tidb"}, {}, 6),
        # The arm that takes longest says when a block can begin.
        ({"name": "mariadb"}, {"engine": {"name": "tidb"}}, 6),
        ({"name": "tidb", "version": "5.0", "cluster": {}}, {}, 17),
    ],
)
def test_the_starts_of_a_blocks_servers_are_part_of_the_estimate(engine: dict, arm: dict, block_s: float):
    study = make(engine=engine, arms={"direct": {}, "other": arm}, aa=None)
    # 2 blocks x 2 workloads x 2 levels x 2 arms = 16 runs of 5 + 30 + 0.5 s: 568 s.
    seconds = schedule.estimate_seconds(study, schedule.plan_runs("s", study, {}))
    assert seconds == pytest.approx(568 + 2 * block_s)


def test_time_is_estimated_from_runs_blocks_and_pilots():
    study = make(aa={"workloads": ("oltp_read_write",), "threads": (4,)}, warm_up={"pilot_s": 20})
    # 2 blocks x (2 workloads x 2 levels x 2 arms + 1 twin) = 18 runs of 5 + 30 + 0.5 s, and 2 x 4 s: 647 s.
    # Pilots: 2 arms x 2 workloads x 2 levels = 8 of 20.5 s: 164 s.
    assert schedule.estimate_seconds(study, schedule.plan_runs("s", study, {})) == pytest.approx(647)
    assert schedule.pilot_seconds(study) == pytest.approx(164)
    assert schedule.pilot_seconds(make(warm_up={"pilot_s": 0})) == 0


def test_a_plan_says_what_is_measured_and_how_long_it_takes():
    cases = YAML(typ="safe").load(Path(__file__).parents[1] / "data" / "plans.yaml")
    told = [schedule.describe_plan(title, make(**changes)) for title, changes in cases.items()]
    assert_golden("plans.txt", "".join(f"{one.rstrip()}\n\n" for one in told))


def test_arms_that_were_skipped_have_no_runs_and_leave_the_others_as_they_were():
    arms = {"direct": {}, "proxy": {"access": "haproxy"}, "tiproxy": {"access": "tiproxy"}}
    study = make(arms=arms, aa={})
    there = {arm: {"facts": "1", "data": "2"} for arm in arms}
    whole = schedule.plan_runs("s", study, there)
    skipped = schedule.plan_runs("s", study, {arm: there[arm] for arm in ("direct", "proxy")})
    assert {run.arm for run in skipped} == {"direct", "direct_again", "proxy"}
    assert {run.run_id for run in skipped} == {run.run_id for run in whole if run.arm != "tiproxy"}
    assert {run.arm for run in schedule.pilot_runs("s", study, ["direct", "proxy"])} == {"direct", "proxy"}
    told = schedule.describe_plan("s", study, {"direct": {}, "proxy": {}}).splitlines()
    assert "  skipped     tiproxy" in told and any(f" {len(skipped)}, of them" in line for line in told)


def test_the_order_of_cells_is_drawn_from_these_very_words():
    """Another word would give every study another order, and runs that were made another place in it."""
    runs = schedule.plan_runs("s", make(), {})
    for block in (1, 2):
        cells = [(name, level) for name in ("oltp_point_select", "oltp_read_write") for level in (1, 4)]
        drawn = {cell: hashlib.sha256(f"7/cells/{block}/{cell}".encode()).digest()[:8] for cell in cells}
        found = dict.fromkeys((run.workload, run.threads) for run in runs if run.block == block)
        assert list(found) == sorted(cells, key=drawn.__getitem__)


def test_two_arms_run_abba_over_each_two_groups_of_a_block():
    runs = schedule.plan_runs("s", make(aa=None, plan={"blocks": 3}), {})
    groups = [[run.arm for run in members] for _, members in groupby(runs, key=lambda run: run.group)]
    # Two workloads at two levels in three blocks.
    assert len(groups) == 12
    assert all(one == other[::-1] for one, other in zip(groups[::2], groups[1::2], strict=True))
