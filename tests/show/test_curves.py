"""An effect that threads change is a line over them, with its band and its sessions."""

import base64
import math
import re
from itertools import pairwise

import pytest
from bs4 import BeautifulSoup

from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.core.artifacts.findings import FindingData
from benchbook.show import curves, forest
from tests import found
from tests.compare.sessions import finding, part, session
from tests.found import level


def over(*levels: tuple[int, float], **more) -> FindingData:
    """Return a finding with a decided effect at each thread level, a tenth to either side."""
    points = [
        level(threads, effect, effect - 0.1, effect + 0.1,
              label="higher" if effect > 0.1 else "lower" if effect < -0.1 else "not shown")
        for threads, effect in levels
    ]  # fmt: skip
    about = {"id": "w.haproxy.qps", "baseline": "direct", "treatment": "haproxy", "headline": False}
    return found.finding(**{**about, "levels": points, **more})


def svg(text: str) -> BeautifulSoup:
    image = BeautifulSoup(text, "html.parser").find("img", class_="curve")
    return BeautifulSoup(base64.b64decode(image["src"].partition("base64,")[2]), "html.parser")


def test_a_line_goes_through_every_level_in_the_order_of_threads_on_a_scale_of_doublings():
    drawn, ids = curves.of_findings([over((1, -0.2), (4, 0.0), (16, 0.25))])
    assert drawn is not None and ids == {"w.haproxy.qps"}
    dots = svg(drawn._repr_html_()).find_all("circle")
    x = [float(one["cx"].rstrip("%")) for one in dots]
    y = [float(one["cy"].rstrip("%")) for one in dots]
    # 4 is half way from 1 to 16; log(0.8) = -log(1.25), so the ends are equally far from zero.
    assert x[1] == pytest.approx((x[0] + x[2]) / 2, abs=0.02) and x[0] < x[2]
    assert y[1] - y[2] == pytest.approx(y[0] - y[1], abs=0.02) and y[0] > y[2]
    # The middle one is not decided: hollow.
    assert dots[0]["fill"] == dots[2]["fill"] != dots[1]["fill"]


def test_the_band_goes_through_both_ends_of_every_level():
    drawn, _ = curves.of_findings([over((1, -0.2), (4, 0.25))])
    corners = svg(drawn._repr_html_()).polygon["points"].split()
    y = [float(one.partition(",")[2]) for one in corners]
    # Upper ends at 1 and 4 threads, then the lower ones at 4 and 1: log ratios of -10, +35, +15 and -30 %.
    logs = [math.log(1 + end) for end in (-0.1, 0.35, 0.15, -0.3)]
    steps, due = ([(b - a) / (of[1] - of[0]) for a, b in pairwise(of)] for of in (y, logs))
    assert steps == pytest.approx(due, abs=0.01)


def test_its_numbers_are_text_beside_the_way_to_its_table():
    drawn, _ = curves.of_findings([over((1, -0.2), (4, 0.25))])
    line = BeautifulSoup(drawn._repr_html_(), "html.parser").li
    assert line.a["href"] == "#finding-w.haproxy.qps"
    shown = line.get_text(" ", strip=True).replace("\xa0", " ")
    assert shown.endswith("−20 % at 1 thread, +25 % at 4")
    assert repr(drawn).replace("\xa0", " ") == "w, HAProxy: −20 % at 1 thread, +25 % at 4"


def test_what_one_number_tells_of_few_levels_stays_in_the_forest():
    plain = over((1, 0.2), (4, 0.25), headline=True, effect=0.22, low=0.2, high=0.3, label="higher", n=5)
    many = over(*((2**n, 0.2) for n in range(5)), headline=True, id="many")
    drawn, ids = curves.of_findings([plain, many])
    assert ids == {"many"} and drawn is not None
    left = forest.of_findings([plain, many], without=ids).rows
    assert [row.name for row in left] == ["HAProxy on w"]
    assert curves.of_findings([plain]) == (None, set())
    # As it was: −90 % at 4 threads and −11 % at 64, of which the mean was told alone.
    apart = over((4, -0.9), (64, -0.11), headline=True, id="apart", effect=-0.7)
    assert curves.of_findings([plain, apart])[1] == {"apart"}


def test_each_session_is_a_line_beside_their_mean():
    levels = [{1: part(-0.2 + more, 0.01), 8: part(0.3 + more, 0.01)} for more in (0.0, 0.02)]
    several = [finding(part(0.0, 0.01), of, headline=False) for of in levels]
    made = [session(one, measured=f"2026-11-0{day}T06:00") for day, one in enumerate(several, 1)]
    pooled = pool_sessions("quick", made)
    drawn, ids = curves.over_sessions(pooled)
    assert drawn is not None and ids == {pooled.contrasts[0].id}
    (curve,) = next(iter(drawn.panels.values()))
    assert [[threads for threads, _ in own] for own in curve.beside] == [[1, 8], [1, 8]]
    assert not re.search("nan|None", str(svg(drawn._repr_html_())))
