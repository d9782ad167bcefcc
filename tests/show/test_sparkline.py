"""The small series of a run: small, safe, with its numbers for those who can't see it."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

from benchbook.show import sparkline, theme

COLOUR = theme.colour("a", ["a"])


def svg(series: list, discard: float = 1) -> str:
    text = sparkline.seconds(series, discard, COLOUR).text
    return base64.b64decode(re.search(r"base64,([^\"]+)", text)[1]).decode()


def test_its_text_leaves_the_discard_out():
    told = sparkline.alt([(1, 9000), (2, 100), (3, 300), (4, 200)], 1)
    assert told.replace("\xa0", " ") == (
        "Queries in each second: median 200, lowest 100, highest 300, over 3 measured seconds."
    )


def test_it_is_well_formed_small_and_follows_the_colour_scheme():
    drawn = svg([(second, 1000 + second) for second in range(1, 61)])
    ElementTree.fromstring(drawn)
    assert len(drawn) < 2500 and "prefers-color-scheme:dark" in drawn
    assert theme.SHADES[COLOUR] in drawn


def test_a_point_stands_where_its_number_says():
    # 360 wide, 4 s: second 2 is at 180. Between 12 and 60 from the top: half of the highest is at 36.
    assert "180.0,36.0 360.0,12.0" in svg([(2, 50), (4, 100)])


def test_without_a_second_it_says_so_and_zero_is_drawn():
    assert "no one-second line" in sparkline.seconds([], 1, COLOUR).text
    assert "nan" not in svg([(1, 0), (2, 0)])
