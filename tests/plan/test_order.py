"""Blocks are balanced, drawn from the seed alone, and never disturbed by what is added later."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchbook.plan import order
from tests import depth

SEEDS = st.integers(1, 2**31 - 1)


def groups(arms: list[str], seed: int, blocks: int, per_block: int) -> list[list[list[str]]]:
    """Return for each block its groups of arms, in the order they run."""
    return [
        [order.arm_order(arms, seed, block, index, per_block) for index in range(per_block)]
        for block in range(1, blocks + 1)
    ]


def drift_seen(ordered: list[list[str]], one: str, two: str) -> int:
    """Return the sum of ln(two/one) over groups when each run adds 1 to ln QPS and the arms are equal."""
    flat = [(number, arm) for number, arm in enumerate(arm for group in ordered for arm in group)]
    size = len(ordered[0])
    total = 0
    for start in range(0, len(flat), size):
        at = {arm: number for number, arm in flat[start : start + size]}
        total += at[two] - at[one]
    return total


def test_a_draw_depends_on_every_part_and_on_nothing_else():
    # printf 7/cells/1 | sha256sum | cut -c 1-16
    assert f"{order.draw_number(7, 'cells', 1):016x}" == "e176761adc60484c"
    several = [(7, "a", 1), (8, "a", 1), (7, "b", 1), (7, "a", 2)]
    assert len({order.draw_number(*parts) for parts in several}) == 4


def test_the_order_of_a_seed_is_the_same_for_ever():
    assert order.shuffle_items("abcde", 20261120, "cells", 1) == list("abedc")
    assert ["".join(group) for group in groups(["A", "B"], 20261120, 1, 4)[0]] == ["BA", "AB", "AB", "BA"]
    assert ["".join(block[0]) for block in groups(list("ABC"), 20261120, 3, 1)] == ["BCA", "CAB", "CBA"]
    assert order.run_seed(20261120, 1, "oltp_point_select", 4) == 82877195
    # printf 7/table/1 | sha256sum: 1 and what 0xc511d17510b47789 leaves over 2**31 - 2.
    assert [order.table_seed(7, table) for table in (1, 2)] == [620477802, 58799314]


def test_arms_that_write_have_seeds_next_to_each_other():
    first, *others = (order.run_seed(20261120, 1, "oltp_insert", 4, place) for place in range(3))
    assert others == [first + 1, first + 2] and first == order.run_seed(20261120, 1, "oltp_insert", 4)


@given(SEEDS, st.lists(st.integers(), unique=True, min_size=1, max_size=8), st.integers())
def test_one_more_item_moves_no_other(seed: int, items: list[int], new: int):
    before = order.shuffle_items(items, seed)
    assert sorted(before) == sorted(items)
    assert order.shuffle_items(items[::-1], seed) == before
    assert [item for item in order.shuffle_items({*items, new}, seed) if item in items] == before


@given(SEEDS, st.integers(1, 6), st.integers(1, 4))
@settings(max_examples=depth.examples(50))
def test_two_arms_run_abba_or_baab(seed: int, blocks: int, half: int):
    for block in groups(["A", "B"], seed, blocks, 2 * half):
        fours = ["".join(one + two) for one, two in zip(block[::2], block[1::2], strict=True)]
        assert set(fours) <= {"ABBA", "BAAB"}
        assert drift_seen(block, "A", "B") == 0, "a linear drift cancels within each block"


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=depth.examples(50))
def test_an_odd_number_of_groups_is_balanced_over_two_blocks(seed: int, half: int):
    """Five groups a block: 5 + 5 groups hold each order of the arms five times, as an even drift asks."""
    per_block = 2 * half - 1
    both = [group for block in groups(["A", "B"], seed, 2, per_block) for group in block]
    assert Counter(map("".join, both)) == {"AB": per_block, "BA": per_block}
    assert drift_seen(both, "A", "B") == 0


def test_the_first_letter_is_drawn():
    firsts = Counter(order.arm_order(["A", "B"], seed, 1, 0, 2)[0] for seed in range(400))
    # 400 fair draws: 200 ± 5 standard deviations of 10.
    assert 150 < firsts["A"] < 250


@pytest.mark.parametrize(("arms", "rows"), [(3, 6), (4, 4), (5, 10)])
def test_a_williams_square_is_balanced(arms: int, rows: int):
    square = order.williams_square(arms)
    assert len(square) == rows
    assert all(sorted(row) == list(range(arms)) for row in square)
    places = Counter((place, arm) for row in square for place, arm in enumerate(row))
    follows = Counter(pair for row in square for pair in pairwise(row))
    assert set(places.values()) == {rows // arms} and len(places) == arms * arms
    assert set(follows.values()) == {rows // arms} and len(follows) == arms * (arms - 1)


@pytest.mark.parametrize("arms", ["ABC", "ABCD", "ABCDE"])
@given(seed=SEEDS)
@settings(max_examples=depth.examples(20))
def test_more_arms_walk_the_whole_square_across_blocks(arms: str, seed: int):
    rows = len(order.williams_square(len(arms)))
    walked = [group for block in groups(list(arms), seed, rows, 1) for group in block]
    assert len({tuple(group) for group in walked}) == rows
    assert all(drift_seen(walked, one, two) == 0 for one, two in pairwise(arms))


@given(SEEDS, st.integers(2, 5), st.integers(1, 6), st.integers(1, 5))
@settings(max_examples=depth.examples(50))
def test_blocks_added_later_leave_the_earlier_ones_alone(seed: int, arms: int, per_block: int, blocks: int):
    names = list("ABCDE"[:arms])
    assert groups(names, seed, blocks + 3, per_block)[:blocks] == groups(names, seed, blocks, per_block)


def test_one_arm_runs_alone():
    assert order.arm_order(["A"], 1, 1, 0, 1) == ["A"]


@given(SEEDS, st.integers(0, 1000), st.integers(1, 65535), st.integers(-1, 50))
def test_a_seed_of_sysbench_is_never_zero(seed: int, block: int, threads: int, place: int):
    """sysbench takes 0 for the clock."""
    assert 1 <= order.run_seed(seed, block, "oltp_insert", threads, place) <= 2**31 - 1
