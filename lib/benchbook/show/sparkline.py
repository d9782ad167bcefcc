"""The one-second series of one run as a small drawing, written without a plotting library.

A page may hold a hundred of them: each is about a kilobyte and takes no time.
"""

from __future__ import annotations

import base64
import statistics
from collections.abc import Sequence

from benchbook.show import numbers, theme
from benchbook.show.markup import Html, element

_WIDTH, _HEIGHT, _TOP, _FOOT = 360, 74, 12, 14


def seconds(series: Sequence[tuple[float, float]], discard_s: float, colour: str) -> Html:
    """Draw queries a second over seconds; `series` holds (second, qps), the discard is shaded.

    The scale begins at zero, `colour` is one of the theme's. The text for those who can't see it has
    median, lowest and highest second of the measured window.
    """
    if not series:
        return element("p", "sysbench printed no one-second line.", class_="empty")
    last = max(second for second, _ in series)
    top = max((qps for _, qps in series), default=0.0) or 1.0
    points = " ".join(
        f"{_WIDTH * second / last:.1f},{_TOP + (_HEIGHT - _TOP - _FOOT) * (1 - qps / top):.1f}"
        for second, qps in series
    )
    shaded = _WIDTH * min(discard_s / last, 1)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f"<style>{_style(colour)}</style>"
        f'<rect class="z" y="{_TOP}" width="{shaded:.1f}" height="{_HEIGHT - _TOP - _FOOT}"/>'
        f'<path class="r" d="M0 {_HEIGHT - _FOOT}H{_WIDTH}M0 {_TOP}H{_WIDTH}"/>'
        f'<polyline class="l" points="{points}"/>'
        f'<text x="0" y="9">{numbers.significant(top)} queries per second</text>'
        f'<text x="0" y="{_HEIGHT - 3}">0 s</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT - 3}" text-anchor="end">{last:g} s</text></svg>'
    )
    data = base64.b64encode(svg.encode()).decode("ascii")
    image = element(
        "img", alt=alt(series, discard_s), width=_WIDTH, height=_HEIGHT, class_="spark",
        src=f"data:image/svg+xml;base64,{data}",
    )  # fmt: skip
    return Html(image.text.removesuffix("</img>"))


def alt(series: Sequence[tuple[float, float]], discard_s: float) -> str:
    """Say in words what the drawing shows."""
    measured = [qps for second, qps in series if second > discard_s] or [qps for _, qps in series]
    middle, low, high = (
        numbers.significant(value) for value in (statistics.median(measured), min(measured), max(measured))
    )
    return (
        f"Queries in each second: median {middle}, lowest {low}, highest {high}, "
        f"over {numbers.count(len(measured), 'measured second')}."
    )


def _style(colour: str) -> str:
    names = {"l": colour, "r": theme.RULE, "z": theme.ZONE, "t": theme.MUTED}
    light, dark = (
        ";".join(f"--{name}:{shade}" for name, shade in chosen.items())
        for chosen in (names, {name: theme.SHADES[shade] for name, shade in names.items()})
    )
    return (
        f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        ".l{fill:none;stroke:var(--l);stroke-width:1.5}.r{fill:none;stroke:var(--r)}.z{fill:var(--z)}"
        "text{fill:var(--t);font:11px system-ui,sans-serif}"
    )
