"""The effect forest: every effect with its interval on one axis of ratios, the A/A pair on top."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchbook.core.errors import given
from benchbook.core.wording import count
from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture
from benchbook.show.tables import contrast, levels_of

Finding = Mapping[str, Any]

# Inches: names stand left of the axes, numbers right of them, and both stay readable on a phone.
_WIDTH, _LEFT, _RIGHT, _FOOT, _ROW = theme.WIDTH, 0.86, 1.8, 0.45, 0.235
_HEAD = 0.04
_LETTERS = 46
# Effects beyond a quarter or four times the baseline stand at the edge; intervals may go half as far again.
_FARTHEST, _ROOM = math.log(4), math.log(1.5)
_TICKS = (-90, -75, -60, -50, -40, -30, -25, -20, -15, -10, -5, -2, -1, 0, 1, 2, 5, 10, 15, 20,
          25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 900)  # fmt: skip
_MOST_TICKS = 4
_SHOWN = ("higher", "lower", "no practical difference", None)
_OVER: Mapping[str, object] = {"facecolor": theme.PAPER, "edgecolor": "none", "pad": 2.5}


@dataclass(frozen=True)
class _Row:
    """A line of the drawing: a heading if it has no effect, else an effect over all threads or one level."""

    label: str
    effect: Finding | None = None
    is_headline: bool = False
    arm: str = ""
    band: Sequence[float | None] | None = None
    title: str = ""

    @property
    def is_hidden(self) -> bool:
        """Whether there is no number to draw, or none that stands for all thread levels."""
        if self.effect is None or not numbers.is_known(self.effect["effect"]):
            return True
        return self.is_headline and not self.effect["headline"]

    @property
    def shown(self) -> Finding:
        """The effect of a line that has one."""
        return given(self.effect)


def forest(findings: Mapping[str, Any], arms: Sequence[str]) -> Picture:
    """Draw the effect of every finding: the headline, then each thread level, with intervals and claim bands.

    Effects are fractions of the baseline, on a scale of ratios. An interval that leaves the axis ends in an
    arrow. A finding without a headline shows its thread levels only. Findings with thread levels have a panel
    each, those without share one; all panels have one scale.
    """
    every = _all(findings)
    own_panel = [len(levels_of(found)) > 1 and _is_drawn(found) for found in every]
    groups = [[found for found, is_own in zip(every, own_panel, strict=True) if not is_own]]
    groups += [[found] for found, is_own in zip(every, own_panel, strict=True) if is_own]
    rows = [[row for found in group for row in _rows(found)] for group in groups]
    drawn = [row for own in rows for row in own if not row.is_hidden]
    # A panel of findings that could not be computed still says so, beside others.
    rows = [own for own in rows if own and drawn]
    limits = _limits(drawn)
    panels = []
    for own in rows:
        with theme.style():
            height = _FOOT + _HEAD + _ROW * len(own)
            figure = Figure(figsize=(_WIDTH, height))
            width, rest = (_WIDTH - _LEFT - _RIGHT) / _WIDTH, 1 - (_FOOT + _HEAD) / height
            axes = figure.add_axes((_LEFT / _WIDTH, _FOOT / height, width, rest))
            _draw(axes, own, limits, arms)
        panels.append(Panel(figure, " ".join(row.title for row in own if row.title)))
    has_band = any(row.band for own in rows for row in own)
    caption = (
        "Each marker is the change against the baseline, each line its interval: heavy over all thread "
        "counts, light for one thread count alone; hollow where no difference is shown. Left of zero is less "
        "than the baseline; halving and doubling are equally far from it. An arrow means that the interval "
        "goes on." + (" The shaded band is what was claimed." if has_band else "")
    )
    return Picture("effects", "Effects and their intervals", tuple(panels), caption)


def forest_alt(findings: Mapping[str, Any]) -> str:
    """Say in words what the forest shows: each effect with interval, level and n, then its thread levels."""
    return "Effects with their intervals. " + " ".join(_told(found) for found in _all(findings))


def _told(found: Finding) -> str:
    head = f"{contrast(found)}, {numbers.metric(found['metric'])}: "
    whole = (
        f"{numbers.percent(found['effect'])}, {numbers.level(found['level'])} interval "
        f"{numbers.span(found['low'], found['high'])}, n = {found['n']}, {found['label']}"
        if found["headline"]
        else f"no single number, n = {found['n']}, {found['label']}"
    )
    levels = "; ".join(
        f"{numbers.count(point['threads'], 'thread')} {numbers.percent(point['effect'])} "
        f"({numbers.span(point['low'], point['high'])})"
        for point in levels_of(found)
    )
    return head + whole + (f". By threads: {levels}." if levels else ".")


def _all(findings: Mapping[str, Any]) -> list[Finding]:
    return [found for found in (findings.get("aa"), *findings["findings"]) if found]


def _is_drawn(found: Finding) -> bool:
    return any(numbers.is_known(part["effect"]) for part in (found, *levels_of(found)))


def _rows(found: Finding) -> Iterator[_Row]:
    what = "" if found["metric"] == "qps" else f", {numbers.metric(found['metric'])}"
    head, *more = textwrap.wrap(f"{contrast(found)}{what}", _LETTERS)
    arm, band = found["treatment"], found.get("band")
    yield _Row(head, title=_told(found))
    yield from (_Row(line) for line in more)
    yield _Row("all threads", found, True, arm, band)
    for point in levels_of(found) if len(levels_of(found)) > 1 else ():
        yield _Row(count(point["threads"], "thread"), point, False, arm, band)


def axis_of_change(axes: Axes, rows: int, limits: tuple[float, float]) -> None:
    """Make axes for so many rows of effects: log ratios between the limits, read as per cent."""
    axes.set_xlim(*limits)
    theme.rows_against_zero(axes, rows)
    ticks = _ticks(limits)
    axes.set_xticks(
        [math.log1p(tick / 100) for tick in ticks], [numbers.decimal(tick, 0, True) for tick in ticks]
    )
    axes.set_xlabel("change against the baseline, %")


def _draw(axes: Axes, rows: Sequence[_Row], limits: tuple[float, float], arms: Sequence[str]) -> None:
    axis_of_change(axes, len(rows), limits)
    sides = axes.get_yaxis_transform()
    edge = (_LEFT - 0.02) / (_WIDTH - _LEFT - _RIGHT)
    for y, row in enumerate(rows):
        if row.effect is None:
            axes.text(
                -edge,
                y,
                row.label,
                transform=sides,
                va="center",
                weight="bold",
                fontsize=9,
                bbox=_OVER,
                zorder=3,
            )
            continue
        weight: dict[str, Any] = {"weight": "bold"} if row.is_headline else {"color": theme.MUTED}
        axes.text(-edge, y, row.label, transform=sides, va="center", fontsize=8.5, **weight)
        emphasis = {} if row.is_headline else weight
        axes.text(1.03, y, _label(row), transform=sides, va="center", fontsize=8.5, **emphasis)
        if row.band and row.is_headline:
            _claim(axes, y, row)
        if not row.is_hidden:
            shade = theme.colour(row.arm, arms) if row.arm in arms else theme.MUTED
            _mark(axes, y, row, shade)


def _ticks(limits: tuple[float, float]) -> list[int]:
    """Choose round percentages, zero among them, that stand far enough apart to be read."""
    low, high = limits
    gap = (high - low) / _MOST_TICKS
    chosen = [0]
    for side in ([tick for tick in _TICKS if tick > 0], [tick for tick in reversed(_TICKS) if tick < 0]):
        last = 0.0
        for tick in side:
            place = math.log1p(tick / 100)
            if low <= place <= high and abs(place - last) >= gap:
                chosen.append(tick)
                last = place
    return sorted(chosen)


def _claim(axes: Axes, y: int, row: _Row) -> None:
    """Shade what was claimed behind all rows of a finding; a band without an end runs to the edge."""
    left, right = axes.get_xlim()
    low, high = (log_of(edge) if numbers.is_known(edge) else None for edge in given(row.band))
    levels = len(levels_of(row.shown))
    axes.fill_betweenx(
        [y - 0.5, y + 0.5 + (levels if levels > 1 else 0)],
        left if low is None else max(low, left),
        right if high is None else min(high, right),
        color=theme.CLAIM,
        linewidth=0,
        zorder=0,
    )


def _label(row: _Row) -> str:
    effect = row.shown
    if not numbers.is_known(effect["effect"]):
        return numbers.NOT_COMPUTED
    if row.is_headline and not effect["headline"]:
        return "by threads, see below"
    if not numbers.is_known(effect["low"]):
        return f"{numbers.percent(effect['effect'])}  no interval"
    is_wide = max(abs(effect["low"]), abs(effect["high"])) >= 1
    ends = numbers.span(effect["low"], effect["high"], 0 if is_wide else 1)
    ends = ends.removesuffix("\N{NO-BREAK SPACE}%")
    return f"{numbers.percent(effect['effect'])}  ({ends})"


def _mark(axes: Axes, y: int, row: _Row, colour: str) -> None:
    """Draw one effect with its interval, inside the axes."""
    left, right = axes.get_xlim()
    found, heavy = row.shown, row.is_headline
    if numbers.is_known(found["low"]) and numbers.is_known(found["high"]):
        low, high = log_of(found["low"]), log_of(found["high"])
        axes.plot(
            [min(max(low, left), right), max(min(high, right), left)],
            [y, y],
            color=colour,
            linewidth=3.2 if heavy else 1.3,
            solid_capstyle="butt",
            alpha=1 if heavy else 0.8,
        )
        for end, arrow, is_beyond in ((left, "<", low < left), (right, ">", high > right)):
            if is_beyond:
                axes.plot(end, y, arrow, color=colour, markersize=6, clip_on=False)
    place = min(max(log_of(found["effect"]), left), right)
    is_shown = found.get("label") in _SHOWN
    axes.plot(
        place,
        y,
        "D" if heavy else "o",
        color=colour,
        markerfacecolor=colour if is_shown else theme.PAPER,
        markeredgecolor=theme.PAPER if is_shown else colour,
        markersize=6 if heavy else 4.5,
        markeredgewidth=0.8 if is_shown else 1.2,
        zorder=4,
    )


def _limits(rows: Sequence[_Row]) -> tuple[float, float]:
    """Return the ends of the scale: every effect up to a factor of 4 inside, intervals as far as useful."""
    found = [row.shown for row in rows]
    effects = [min(max(log_of(one["effect"]), -_FARTHEST), _FARTHEST) for one in found]
    effects += [log_of(edge) for row in rows for edge in row.band or () if numbers.is_known(edge)]
    ends = [log_of(one[key]) for one in found for key in ("low", "high") if numbers.is_known(one[key])]
    low, high = min([0.0, *effects]), max([0.0, *effects])
    low, high = max(min([low, *ends]), low - _ROOM), min(max([high, *ends]), high + _ROOM)
    room = 0.05 * max(high - low, 0.01)
    return low - room, high + room


def log_of(fraction: float) -> float:
    """Return the logarithm of a ratio; nothing at all is far left of every scale."""
    return math.log1p(max(fraction, -0.999))
