"""Doubts about a study as a whole."""

import pandas as pd
import pytest

from benchbook.compare.inference.caveats import facts_that_differ, study_caveats, void_counts, wide_contrasts
from benchbook.compare.text.worked_arithmetic import build_check
from benchbook.core.artifacts.findings import Attempts
from tests.found import changed, finding

ARMS = ["direct", "haproxy", "direct_again"]


def _voids(counts):
    rows = [
        {"run_id": f"{arm}-{number}", "arm": arm, "status": status}
        for (arm, status), amount in counts.items()
        for number in range(amount)
    ]
    return pd.DataFrame(rows, columns=["run_id", "arm", "status"])


def _runs(counts):
    return pd.DataFrame(
        {
            "arm": [arm for arm, amount in counts.items() for _ in range(amount)],
            "warnings": "",
            "steal_pct": 0.1,
        }
    )


def test_no_voids_need_no_test():
    assert void_counts(_runs({"direct": 5, "haproxy": 5}), _voids({}), ARMS, "direct").fisher_p is None


def test_arms_voided_at_different_rates_are_a_finding():
    found = void_counts(
        _runs({"direct": 20, "haproxy": 20}), _voids({("haproxy", "invalid"): 8}), ARMS[:2], "direct"
    )
    assert found.by_arm["haproxy"] == Attempts(runs=28, voided=8)
    # C(28,8) / C(48,8) for the lower tail: 3108105 / 377348994 = .00824, plus smaller terms above.
    assert found.fisher_p == pytest.approx(0.0142, abs=0.003)
    assert "itself is a finding" in found.note


def test_a_run_that_lost_its_partner_is_not_held_against_its_arm():
    voids = _voids({("haproxy", "invalid"): 3, ("direct", "partner"): 3})
    found = void_counts(_runs({"direct": 10, "haproxy": 10}), voids, ARMS[:2], "direct")
    assert found.by_arm["direct"] == Attempts(runs=13, voided=0)
    assert found.fisher_p == pytest.approx(0.22, abs=0.01)


def test_a_rate_that_chance_has_once_in_thirty_is_a_finding():
    """All four of 46 attempts are of the arm that has 20: C(20,4) / C(46,4) = 4845 / 163185."""
    found = void_counts(
        _runs({"direct": 26, "haproxy": 16}), _voids({("haproxy", "invalid"): 4}), ARMS[:2], "direct"
    )
    assert found.fisher_p == pytest.approx(4845 / 163185) and "itself is a finding" in found.note


def test_an_arm_that_never_ran_is_not_tested():
    found = void_counts(_runs({"direct": 10}), _voids({("direct", "invalid"): 1}), ARMS, "direct")
    assert found.fisher_p is None
    assert "cannot be compared" in found.note


def test_facts_that_differ_are_found_at_any_depth_and_own_names_are_not():
    own = [
        *("arm", "datadir", "host", "moment", "pid", "pid_file"),
        *("port", "proxy_pid", "socket", "started", "uptime_s"),
    ]
    facts = {
        "direct": {"version": "10.11", "settings": {"buffer": 1, "io": 2}, **dict.fromkeys(own, 1)},
        "haproxy": {
            "version": "10.11",
            "settings": {"buffer": 3, "io": 2},
            "proxy": "2.6",
            **dict.fromkeys(own, 2),
        },
    }
    assert [one.plain for one in facts_that_differ(facts)] == [
        {"fact": "proxy", "values": {"direct": None, "haproxy": "2.6"}},
        {"fact": "settings.buffer", "values": {"direct": 1, "haproxy": 3}},
    ]


def test_warnings_speak_of_length_missing_arms_failed_checks_and_marked_runs(make_study):
    study = make_study(run_s=3, discard_s=1)
    runs = _runs({"direct": 2})
    runs.loc[0, "warnings"] = "steal 3 %"
    voids = void_counts(runs, _voids({("direct", "invalid"): 2}), ARMS[:2], "direct")
    found = list(study_caveats(study, runs, voids, [build_check("little", False, "t4", "")]))
    text = " ".join(one.text for one in found)
    for part in (
        "3 s measured after 1 s",
        "Arm haproxy has no run",
        "2 runs voided",
        "1 of 2 runs have warnings of their own: 1 of direct.",
        "little (t4)",
    ):
        assert part in text


def test_a_check_that_fails_in_many_places_is_told_once(make_study):
    runs = _runs({"direct": 5, "haproxy": 5})
    voids = void_counts(runs, _voids({}), ARMS[:2], "direct")
    checks = [build_check("little", False, f"t{level}", "") for level in (1, 4, 16)]
    (said,) = study_caveats(make_study(), runs, voids, checks)
    assert (said.title, said.text) == ("Failed check", "Check failed: little (t1 and 2 more).")


def test_a_sound_study_has_no_warnings(make_study):
    runs = _runs({"direct": 5, "haproxy": 5})
    voids = void_counts(runs, _voids({}), ARMS[:2], "direct")
    assert not list(study_caveats(make_study(), runs, voids, []))


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
def test_a_contrast_is_doubted_by_its_own_width(
    effect: float | None, low: float | None, high: float | None, is_wide: bool
):
    one = finding(effect=effect, low=low, high=high)
    assert len(wide_contrasts([one])) == is_wide
    assert wide_contrasts([changed(one, metric="latency_p99_ms")]) == []


def test_a_wide_interval_is_told_with_how_far_it_reaches():
    # From -60 to +66 % are 126, half of which is 63.
    (said,) = wide_contrasts([finding(effect=0.01, low=-0.60, high=0.66)])
    assert said.endswith("the interval reaches 63 % to either side")


@pytest.mark.parametrize(
    ("run_s", "discard_s", "said"),
    [
        (45, 10, None),
        (44, 10, "Runs are short: 44 s measured after 10 s of discard."),
        (45, 9, "The discard is short: 45 s measured after 9 s of discard."),
    ],
)
def test_a_sound_length_is_45_s_after_10(make_study, run_s: int, discard_s: int, said: str | None):
    runs = _runs({"direct": 5, "haproxy": 5})
    voids = void_counts(runs, _voids({}), ARMS[:2], "direct")
    found = [one.text for one in study_caveats(make_study(run_s=run_s, discard_s=discard_s), runs, voids, [])]
    assert [text.partition(" Treat")[0] for text in found] == ([said] if said else [])
