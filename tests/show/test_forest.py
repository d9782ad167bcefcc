"""The forest says each effect in words, and puts its marks where they belong on a scale of ratios."""

import base64
import re

import pytest

from benchbook.show import forest
from tests.found import changed


def drawn(row: forest.ForestRow, scale: forest.Scale) -> str:
    return base64.b64decode(
        forest.draw_bar(row, scale).text.partition("base64,")[2].partition('"')[0]
    ).decode()


def test_halving_and_doubling_are_equally_far_from_zero_and_what_is_beyond_stands_at_the_edge():
    scale = forest.Scale(-1, 1)
    # log(1/2) = -log(2) = -0.693: 100 × (1 - 0.693) / 2 = 15.34.
    assert (scale(0), scale(-0.5), scale(1)) == (50, 15.34, 84.66)
    assert (scale(-1), scale(9)) == (0.5, 99.5)


def test_ticks_are_round_and_not_too_near_to_each_other():
    assert all(tick % 5 == 0 for tick in forest._TICKS if abs(tick) > 2)
    # A fifth of the width is 0.4: log(1.5) = 0.405, log(2.5) = 0.916; log(0.6) = -0.511, log(0.4) = -0.916.
    assert forest.Scale(-1, 1).ticks == [-0.6, -0.4, 0, 0.5, 1.5]


def test_where_no_number_stands_for_all_levels_each_level_has_its_line(made):
    found = changed(made.findings.findings[0], headline=False, label="depends on threads")
    _, head, *levels = forest.of_findings([found]).rows
    assert (head.effect_text, head.dots, head.ends) == ("by threads", (), None)
    assert [row.name for row in levels] == ["1 thread", "4 threads", "16 threads"]
    assert all(row.dots and row.kind == "level" for row in levels)


def test_what_could_not_be_computed_is_said_and_not_drawn(made):
    found = changed(made.findings.findings[0], effect=None, low=None, high=None)
    (row,) = forest.of_findings([found]).rows
    assert row.name == "HAProxy on point selects"
    assert (row.effect_text, row.dots, row.ends) == ("not computed", (), None)


def test_dots_are_full_where_decided_the_bar_has_its_ends_and_a_claim_its_band():
    row = forest.ForestRow("", dots=((0.1, True), (0.0, False)), ends=(-0.5, 1.0), band=(None, 0))
    told = drawn(row, forest.Scale(-1, 1))
    decided, open_ = re.findall(r'<circle[^>]* fill="([^"]+)"', told)
    assert decided != open_ and re.findall(r'<circle[^>]* stroke="([^"]+)"', told) == [decided, decided]
    assert re.search(r'x1="15.34%" x2="84.66%"', told)
    assert '<rect x="0.0%" width="50.0%"' in told


@pytest.mark.parametrize(
    ("dots", "direction"),
    [(((0.1, True), (0.2, True)), "higher"), (((-0.1, True), (0.2, True)), ""), ((), "")],
)
def test_a_direction_needs_decided_effects_of_one_sign(dots, direction):
    assert forest.ForestRow("", dots=dots).direction == direction


def test_workloads_of_one_line_each_need_no_headings_and_those_of_more_have_them(made):
    one, other = made.findings.findings[:2]
    plain = [row.name for row in forest.of_findings([one, other]).rows]
    assert plain == ["HAProxy on point selects", "HAProxy on read-write transactions"]
    by_level = changed(other, headline=False, label="depends on threads")
    headed = forest.of_findings([one, by_level]).rows
    headings = [row.name for row in headed if row.kind == "heading"]
    assert headings == ["point selects", "read-write transactions"]
