"""What would narrow a prediction interval: more sessions, or more blocks in each."""

import math
from dataclasses import replace

import pytest
from scipy.special import stdtrit

from benchbook.compare.meta import sample_size
from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.compare.meta.sample_size import SampleSize, blocks_for, choose_studies, half_width
from tests.compare.sessions import sessions
from tests.goldens import assert_golden


def lacking(study: str, *, known: int, pct: float | None = None, runs: bool = False, s: float = 300):
    return SampleSize(study, known, pct, is_new_here=True, is_in_runs=runs, seconds=s)


def test_half_the_width_is_that_of_the_pooled_interval():
    found = pool_sessions("quick", sessions(0.05, 0.15, 0.10, 0.20))
    effect = found.contrasts[0].whole
    (advice,) = sample_size.advise_study(found)
    printed = (math.log1p(effect.prediction_high) - math.log1p(effect.prediction_low)) / 2
    assert advice.now_pct == pytest.approx(100 * printed, rel=1e-4)


def test_advice_is_told_by_effect_and_by_study_and_without_sessions_there_is_none():
    lines = []
    for effects in ((0.10,), (0.05, 0.15, 0.10, 0.20)):
        pooled = pool_sessions("quick", sessions(*effects))
        lines += [f"{len(effects)} sessions", *sample_size.format_advice(pooled)]
    needs = [lacking("wide", known=4, pct=9.0), lacking("new", known=0), lacking("runs", known=1, runs=True)]
    assert_golden("advice.txt", "\n".join([*lines, "needed most", *(each.sentence for each in needs)]) + "\n")
    assert list(sample_size.format_advice(None)) == []


@pytest.mark.parametrize("block", [0.0, 0.01, 0.1])
def test_more_of_anything_never_widens(block):
    assert half_width(0.05, block, 8) < half_width(0.05, block, 4)
    assert half_width(0.05, block / 2, 4) <= half_width(0.05, block, 4)


def test_what_has_fewest_occasions_is_needed_most_then_what_is_expected_least_narrowly():
    needs = [
        lacking("narrow", known=4, pct=2.0), lacking("wide", known=4, pct=9.0), lacking("new", known=0),
        lacking("slow", known=1, s=5000), lacking("runs", known=4, pct=3.0, runs=True),
    ]  # fmt: skip
    # 15 minutes: new, then wide and runs of five each; slow alone takes longer, and narrow comes last.
    assert [one.study for one in choose_studies(needs, 900)] == ["runs", "new", "wide"]


def test_what_fits_to_the_second_is_measured_and_one_of_these_hours_is_not():
    one, other, here = (lacking(name, known=0, s=300) for name in ("one", "other", "here"))
    assert choose_studies([one, other], 600) == [one, other]
    assert choose_studies([one, other], 599) == [one]
    assert choose_studies([replace(here, is_new_here=False), other], 600) == [other]


def test_a_session_in_the_hours_of_another_on_such_a_machine_is_no_occasion_and_not_asked_for():
    own = [one.session for one in sessions(0.1, 0.1)]  # The last: a Milan, on 2026-11-02 at 06:00.
    here = own[-1].model_copy(update={"id": "here"})
    soon, late = (here.model_copy(update={"measured": f"2026-11-02T{hour}"}) for hour in ("11:59", "12:01"))
    found = [sample_size.assess_study("quick", own, each, None, False, 60) for each in (soon, late)]
    assert [(one.occasions, one.is_new_here) for one in found] == [(2, False), (2, True)]
    assert choose_studies(found, 3600) == [found[1]]


KNOWN = {
    0.95: {0.005: (4, 3, 3), 0.01: (7, 4, 3), 0.02: (18, 7, 5), 0.03: (38, 12, 7), 0.05: (100, 27, 14)},
    0.98: {0.005: (5, 4, 3), 0.01: (9, 5, 4), 0.02: (26, 9, 6), 0.03: (53, 16, 9), 0.05: (140, 38, 19)},
}


@pytest.mark.parametrize(
    ("level", "spread", "blocks"), [(level, s, b) for level, rows in KNOWN.items() for s, b in rows.items()]
)
def test_blocks_for_a_known_spread(level, spread, blocks):
    assert tuple(blocks_for(width, spread, level) for width in (0.01, 0.02, 0.03)) == blocks


def test_a_spread_seen_in_five_blocks_is_planned_with_half_as_much_again():
    # 0.02 · √(4 / χ²(0.20, 4)) = 0.02 · √(4 / 1.6488) = 0.03115
    assert sample_size.upper_spread_bound(0.02, 5) == pytest.approx(0.0311515, abs=1e-7)


@pytest.mark.parametrize(
    ("spread", "n", "block_s", "blocks", "minutes"),
    [
        # s = 0.02 of five blocks plans with 0.03115: 17 blocks at 98 % for ± 2 %; 12 are missing, 90 s each.
        (0.02, 5, 90, 12, 18.0),
        (0.02, 5, None, 12, None),
        (0.001, 10, 60, 0, 0.0),
        # One block says nothing about the next.
        (0.02, 0, 60, None, None),
        (0.02, 1, 60, None, None),
        # A hopeless spread gives no number.
        (500.0, 5, 60, None, None),
    ],
)
def test_more_blocks_counts_what_is_there_and_its_minutes(spread, n, block_s, blocks, minutes):
    found = sample_size.more_blocks(spread, n, n, 0.02, 0.98, block_s)
    assert (found and found.blocks, found and found.minutes) == (blocks, minutes)
    assert n > 1 or sample_size.detectable_effect(spread, n, 0.98) is None


def test_the_smallest_visible_effect_adds_both_quantiles():
    # (t.99,4 + t.80,4) · s/√n = (3.746947 + 0.940965) · 0.02/√5
    expected = math.expm1((3.746947 + 0.940965) * 0.02 / math.sqrt(5))
    assert sample_size.detectable_effect(0.02, 5, 0.98) == pytest.approx(expected, rel=1e-5)


def test_ten_thousand_blocks_are_the_most_that_are_planned():
    # t(0.99, 9999) * s / sqrt(10000) <= ln 1.01: the largest such spread needs the last block.
    spread = math.log1p(0.01) * 100 / float(stdtrit(9999, 0.99))
    assert blocks_for(0.01, spread * (1 - 1e-6), 0.98) == 10_000
    assert blocks_for(0.01, spread * (1 + 1e-6), 0.98) is None


def test_more_blocks_narrow_an_interval_by_their_root_and_by_students_t():
    # t of 98 % with 4 and 9 degrees of freedom: 3.747 and 2.821; the root of 5 in 10 is 0.7071.
    narrower = 2.821 / 3.747 * 0.7071
    assert sample_size.half_width_after(0.08, 5, 5, 0.98) == pytest.approx(0.08 * narrower, rel=1e-3)
    assert sample_size.half_width_after(0.08, 5, 0, 0.98) == pytest.approx(0.08)
