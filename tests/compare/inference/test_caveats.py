"""Doubts about a study as a whole."""

import pandas as pd
import pytest

from benchbook.compare.inference.caveats import facts_that_differ, study_caveats, void_counts, wide_contrasts
from benchbook.compare.text.worked_arithmetic import build_check
from benchbook.core.artifacts.findings import Attempts
from tests.found import changed, finding

ARMS = ["direct", "haproxy", "direct_again"]
FIVE = {"direct": 5, "haproxy": 5}
APART, UNKNOWN = "itself is a finding", "cannot be compared"


def _voids(counts):
    rows = [{"arm": arm, "status": status} for (arm, status), many in counts.items() for _ in range(many)]
    return pd.DataFrame(rows, columns=["arm", "status"]).assign(run_id=lambda table: table.index.astype(str))


def _runs(counts):
    arms = [arm for arm, amount in counts.items() for _ in range(amount)]
    return pd.DataFrame({"arm": arms, "warnings": "", "steal_pct": 0.1})


@pytest.mark.parametrize(
    ("runs", "voids", "arms", "counts", "p", "note"),
    [
        (FIVE, {}, ARMS, {"direct": (5, 0), "haproxy": (5, 0)}, None, ""),
        # C(28,8) / C(48,8) for the lower tail: 3108105 / 377348994 = .00824, plus smaller terms above.
        ({"direct": 20, "haproxy": 20}, {("haproxy", "invalid"): 8}, ARMS[:2], {"haproxy": (28, 8)},
         pytest.approx(0.0142, abs=0.003), APART),
        # A run that lost its partner is not held against its arm.
        ({"direct": 10, "haproxy": 10}, {("haproxy", "invalid"): 3, ("direct", "partner"): 3}, ARMS[:2],
         {"direct": (13, 0)}, pytest.approx(0.22, abs=0.01), ""),
        # All four of 46 attempts are of the arm that has 20: C(20,4) / C(46,4) = 4845 / 163185.
        ({"direct": 26, "haproxy": 16}, {("haproxy", "invalid"): 4}, ARMS[:2], {"haproxy": (20, 4)},
         pytest.approx(4845 / 163185), APART),
        # An arm that never ran is not tested.
        ({"direct": 10}, {("direct", "invalid"): 1}, ARMS, {"direct": (11, 1)}, None, UNKNOWN),
    ],
)  # fmt: skip
def test_arms_voided_at_different_rates_are_a_finding(runs, voids, arms, counts, p, note):
    found = void_counts(_runs(runs), _voids(voids), arms, "direct")
    due = {arm: Attempts(runs=each[0], voided=each[1]) for arm, each in counts.items()}
    assert (found.fisher_p, {arm: found.by_arm[arm] for arm in due}) == (p, due)
    assert note in found.note


def test_facts_that_differ_are_found_at_any_depth_and_own_names_are_not():
    own = ["arm", "datadir", "host", "moment", "pid", "pid_file"]
    own += ["port", "proxy_pid", "socket", "started", "uptime_s"]
    same = {"version": "10.11"}
    facts = {
        "direct": {**same, "settings": {"buffer": 1, "io": 2}, **dict.fromkeys(own, 1)},
        "haproxy": {**same, "settings": {"buffer": 3, "io": 2}, "proxy": "2.6", **dict.fromkeys(own, 2)},
    }
    assert [one.plain for one in facts_that_differ(facts)] == [
        {"fact": "proxy", "values": {"direct": None, "haproxy": "2.6"}},
        {"fact": "settings.buffer", "values": {"direct": 1, "haproxy": 3}},
    ]


FEW, SHORT = {"direct": 2}, {"run_s": 3, "discard_s": 1}


@pytest.mark.parametrize(
    ("study", "counts", "voids", "places", "told"),
    [
        ({}, FIVE, {}, (), []),
        # A check that fails in many places is told once.
        ({}, FIVE, {}, ("t1", "t4", "t16"), ["Failed check: Check failed: little (t1 and 2 more)."]),
        ({"run_s": 45, "discard_s": 10}, FIVE, {}, (), []),
        ({"run_s": 44, "discard_s": 10}, FIVE, {}, (),
         ["Short runs: Runs are short: 44 s measured after 10 s of discard."]),
        ({"run_s": 45, "discard_s": 9}, FIVE, {}, (),
         ["Short runs: The discard is short: 45 s measured after 9 s of discard."]),
        (SHORT, FEW, {("direct", "invalid"): 2}, ("t4",),
         ["3 s measured after 1 s", "Arm haproxy has no run", "2 runs voided",
          "1 of 2 runs have warnings of their own: 1 of direct.", "little (t4)"]),
    ],
)  # fmt: skip
def test_a_study_is_doubted_for_its_length_missing_arms_failed_checks_and_marked_runs(
    make_study, study, counts, voids, places, told
):
    runs = _runs(counts)
    runs.loc[0, "warnings"] = "steal 3 %" if counts is FEW else ""
    counted = void_counts(runs, _voids(voids), ARMS[:2], "direct")
    checks = [build_check("little", False, place, "") for place in places]
    doubts = study_caveats(make_study(**study), runs, counted, checks, {})
    found = [f"{one.title}: {one.text}" for one in doubts]
    assert all(any(part in text for text in found) for part in told)
    assert counts is FEW or [text.partition(" Treat")[0] for text in found] == told


@pytest.mark.parametrize(
    ("effect", "low", "high", "is_wide"),
    [
        (0.01, -0.07, 0.09, True),
        (0.01, -0.015, 0.035, False),  # 2.5 % to either side
        (-0.50, -0.58, -0.42, False),  # 8 % of a half
        (0.12, 0.05, 0.19, True),  # 7 % is more than half of 12 %
        (None, None, None, False),
    ],
)
def test_a_contrast_is_doubted_by_its_own_width(effect, low, high, is_wide: bool):
    one = finding(effect=effect, low=low, high=high)
    assert len(wide_contrasts([one])) == is_wide
    assert wide_contrasts([changed(one, metric="latency_p99_ms")]) == []


def test_a_wide_interval_is_told_with_how_far_it_reaches():
    # From -60 to +66 % are 126, half of which is 63.
    (said,) = wide_contrasts([finding(effect=0.01, low=-0.60, high=0.66)])
    assert " 63 % " in said
