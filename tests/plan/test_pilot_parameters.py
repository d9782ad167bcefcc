"""A rate that is a share of saturation becomes a number, the same for all arms, and only then is it run."""

from typing import Any

import pandas as pd
import pytest

from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import BenchbookError
from benchbook.plan import pilot_parameters, schedule
from tests import small
from tests.goldens import assert_golden

LOAD = "oltp_point_select"


def make(**changes: Any) -> StudySpec:
    shares = {"at-half": 0.5, "at-most": 0.9}
    rated = {name: {"script": LOAD, "rate": {"share": share}} for name, share in shares.items()}
    usual = {"aa": {}, "threads": (4, 8, 16), "warm_up": {"pilot_s": 10}, "workloads": {LOAD: {}} | rated}
    usual |= {"plan": {"seed": 7, "blocks": 1, "discard_s": 5, "run_s": 30}}
    return small.study(**usual | changes)


def pilots(tps: dict[tuple[str, int], float], start: float = 0.0) -> pd.DataFrame:
    """Ten seconds of each arm and level: the first five at `start`, as a cold server is, then at its tps."""
    rows = [
        (arm, "oltp_point_select", threads, 1, second, 0.0, start if second <= 5 else value)
        for (arm, threads), value in tps.items()
        for second in range(1, 11)
    ]
    return pd.DataFrame(rows, columns=["arm", "workload", "threads", "pilot", "second", "qps", "tps"])


SEEN = {
    ("direct", 4): 1234.0, ("direct", 8): 1500.0, ("direct", 16): 1800.0,
    ("proxy", 4): 1000.0, ("proxy", 8): 1700.0, ("proxy", 16): 1790.0,
}  # fmt: skip


def test_the_slower_arm_sets_the_rate_of_both_and_a_cold_start_does_not_count():
    settled = pilot_parameters.settle_rates(make(), pilots(SEEN, start=10.0))
    # 0.5 x 1000, 1500, 1790 and 0.9 of them: 500, 750, 895 and 900, 1350, 1611; down to two digits.
    assert [row["rate"] for row in settled] == [500, 750, 890, 900, 1300, 1600]
    assert [row["slower_arm"] for row in settled] == ["proxy", "direct", "proxy"] * 2
    assert settled[0]["saturation_tps"] == 1000.0


def test_planned_runs_of_all_arms_have_the_settled_rate_and_another_rate_is_another_run():
    study = make()
    settled = pilot_parameters.settle_rates(study, pilots(SEEN))
    runs = schedule.plan_runs("s", study, {}, {"rates": settled})
    at_half = {(run.arm, run.rate) for run in runs if run.workload == "at-half" and run.threads == 8}
    assert at_half == {("direct", 750), ("direct_again", 750), ("proxy", 750)}
    assert {run.rate for run in runs if run.workload == "oltp_point_select"} == {0}
    faster = pilot_parameters.settle_rates(study, pilots({key: 2 * v for key, v in SEEN.items()}))
    others = {run.run_id for run in schedule.plan_runs("s", study, {}, {"rates": faster})}
    kept = {run.workload for run in runs if run.run_id in others}
    assert kept == {"oltp_point_select"}


def test_pilots_that_differ_by_a_percent_keep_the_runs_there_are():
    study = make(threads=(4,))
    one, other = (
        pilot_parameters.settle_rates(study, pilots({key: value * shift for key, value in SEEN.items()}))
        for shift in (1.012, 1.018)
    )
    assert [row["rate"] for row in one] == [row["rate"] for row in other]
    assert one[0]["saturation_tps"] != other[0]["saturation_tps"]


def test_pilots_are_closed_loops_at_every_level_and_made_once_for_workloads_that_differ_in_rate_only():
    made = schedule.pilot_runs("s", make())
    assert {(run.workload, run.threads, run.rate) for run in made} == {
        (LOAD, level, 0) for level in (4, 8, 16)
    }
    assert len(made) == 6
    other = {"oltp_point_select": {"skip_trx": True}, "reads": {"script": "oltp_read_only", "rate": 100}}
    made = schedule.pilot_runs("s", make(workloads=other))
    # A rate that is a number is piloted as it is, at the ends of the range.
    reads = {(run.threads, run.rate) for run in made if run.workload == "reads"}
    assert reads == {(4, 100), (16, 100)}


def test_nothing_is_planned_at_a_rate_that_no_pilot_found():
    study = make()
    with pytest.raises(BenchbookError, match=r"at-half\.rate: no pilot at 8 threads"):
        pilot_parameters.settle_rates(study, pilots({key: SEEN[key] for key in SEEN if key[1] == 4}))
    with pytest.raises(BenchbookError, match=r"at-half\.rate: .* settled .* 4 threads"):
        pilot_parameters.settled_rates(study, {})
    dead = pilot_parameters.settle_rates(study, pilots(dict.fromkeys(SEEN, 0.5)))
    with pytest.raises(BenchbookError, match="settled none"):
        pilot_parameters.settled_rates(study, {"rates": dead})


@pytest.mark.parametrize(
    ("rate", "down"),
    [(0.99, 0), (1.0, 1), (9.9, 9), (10.0, 10), (99.9, 99), (100.0, 100), (119.9, 110), (98_765.0, 98_000)],
)
def test_a_rate_has_two_digits_and_is_never_rounded_up(rate: float, down: int):
    assert pilot_parameters._round_down(rate) == down


def test_a_study_that_asks_for_a_share_without_pilots_is_refused():
    with pytest.raises(ValueError, match=r"workloads\.at-half\.rate\.share: .* 5 s"):
        make(warm_up={"pilot_s": 0})


def test_the_summary_says_that_rates_are_still_open():
    assert_golden("plan/rates-open.txt", schedule.describe_plan("s", make()) + "\n")


@pytest.mark.parametrize("closed, shared", [("oltp_point_select", "named"), ("named", "oltp_point_select")])
def test_a_workload_that_names_its_script_is_that_of_the_same_name(closed, shared):
    """`oltp_point_select: {}` and `named: {script: oltp_point_select}` are one workload with two names."""
    named = {"script": "oltp_point_select"}
    workloads = {
        closed: named if closed == "named" else {},
        shared: (named if shared == "named" else {}) | {"rate": {"share": 0.5}},
    }
    study = make(workloads=workloads)
    assert pilot_parameters.pilot_workload_of(study, shared) == closed
    assert pilot_parameters.pilot_workload_of(study, closed) == closed


# 3 reads, a write and 2 others an event; a read and no other with which each of 4 threads begins.
RULE = {"event": {"reads": 3, "writes": 1, "other": 2}, "thread": {"reads": 1, "writes": 0, "other": 0}}


def pilot(**changes: int) -> dict[str, int]:
    # 3 * 100 + 4, 100, 2 * 100.
    return {"threads": 4, "events": 100, "reads": 304, "writes": 100, "other": 200, "errors": 0} | changes


def test_statements_that_all_events_share_are_a_rule():
    # At 8 threads and 500 events: 3 * 500 + 8, 500, 2 * 500.
    more = pilot(threads=8, events=500, reads=1508, writes=500, other=1000)
    assert pilot_parameters.statement_counts({"mine": [pilot(), more]}) == {"mine": RULE}


def test_a_mixture_errors_and_silence_give_no_rule():
    for changed in (pilot(reads=301), pilot(reads=350), pilot(errors=1), pilot(events=0)):
        assert pilot_parameters.statement_counts({"mine": [changed]}) == {"mine": {}}
    assert pilot_parameters.statement_counts({"mine": [pilot(), pilot(reads=404)]}) == {"mine": {}}


@pytest.mark.parametrize(
    ("events", "beside", "at_begin"),
    [
        # Four threads: more than ten events each, and at most ten statements with which each of them begins.
        (41, 40, 10),
        (40, 40, None),
        (60, 40, 10),
        (60, 44, None),
        # What threads do not share equally is none of theirs.
        (60, 42, None),
        (60, 0, 0),
    ],
)
def test_a_thread_begins_with_ten_statements_at_the_most(events: int, beside: int, at_begin: int | None):
    one = pilot(events=events, reads=3 * events + beside, writes=events, other=2 * events)
    due = RULE | {"thread": {"reads": at_begin, "writes": 0, "other": 0}}
    assert pilot_parameters.statement_counts({"mine": [one]}) == {"mine": {} if at_begin is None else due}


def test_plans_carry_digests_and_statements_and_nothing_without_own_scripts():
    own = {"scripts": {"mine": {"text": {"mine.lua": ""}, "sha256": {"mine.lua": "e3b0"}}}, "tables": {}}
    record = pilot_parameters.script_record(own, {"mine": [pilot()]})
    carried = {"mine": {"files": {"mine.lua": "e3b0"}, "statements": RULE}}
    assert pilot_parameters.carried_scripts(record) == carried
    assert pilot_parameters.script_record({}, {}) == {}
    assert pilot_parameters.carried_scripts({}) == {}
