"""Planning: blocks for a wanted width, and what a study of this size could see."""

import math

import pytest
from scipy.special import stdtrit

from benchbook.compare.more_sessions import assured_spread, blocks_for, detectable_effect, more_blocks

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
    assert assured_spread(0.02, 5) == pytest.approx(0.0311515, abs=1e-7)


def test_more_blocks_counts_what_is_there_and_its_minutes():
    # s = 0.02 of five blocks plans with 0.03115: 17 blocks at 98 % for ± 2 %; 12 are missing, 90 s each.
    found = more_blocks(0.02, 5, 5, 0.02, 0.98, 90)
    assert blocks_for(0.02, assured_spread(0.02, 5), 0.98) == 5 + found.blocks
    assert found.minutes == pytest.approx(found.blocks * 1.5)


def test_enough_blocks_need_none_more():
    assert more_blocks(0.001, 10, 10, 0.02, 0.98, 60).blocks == 0


def test_unknown_time_stays_unknown():
    assert more_blocks(0.02, 5, 5, 0.02, 0.98, None).minutes is None


@pytest.mark.parametrize("n", [0, 1])
def test_one_block_says_nothing_about_the_next(n):
    assert more_blocks(0.02, n, n, 0.02, 0.98, 60) is None
    assert detectable_effect(0.02, n, 0.98) is None


def test_a_hopeless_spread_gives_no_number():
    assert blocks_for(0.001, 5.0, 0.98) is None
    assert more_blocks(5.0, 5, 5, 0.001, 0.98, 60) is None


def test_the_smallest_visible_effect_adds_both_quantiles():
    # (t.99,4 + t.80,4) · s/√n = (3.746947 + 0.940965) · 0.02/√5
    expected = math.expm1((3.746947 + 0.940965) * 0.02 / math.sqrt(5))
    assert detectable_effect(0.02, 5, 0.98) == pytest.approx(expected, rel=1e-5)


def test_ten_thousand_blocks_are_the_most_that_are_planned():
    # t(0.99, 9999) * s / sqrt(10000) <= ln 1.01: the largest such spread needs the last block.
    spread = math.log1p(0.01) * 100 / float(stdtrit(9999, 0.99))
    assert blocks_for(0.01, spread * (1 - 1e-6), 0.98) == 10_000
    assert blocks_for(0.01, spread * (1 + 1e-6), 0.98) is None
