"""The forest by session: a line a session, grouped by processor, then where a further one is expected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchbook.compare import machines, moderators
from benchbook.compare.moderators import Ordered
from benchbook.compare.pooled_words import percent, span
from benchbook.core.pooled import Contrast, Pooled, PooledEffect, Session
from benchbook.core.wording import count
from benchbook.show import numbers, theme
from benchbook.show.figures.effects import axis_of_change, log_of
from benchbook.show.markup import slug
from benchbook.show.picture import Panel, Picture

_LEFT, _RIGHT, _FOOT, _HEAD, _ROW = 1.12, 1.42, 0.45, 0.04, 0.235
_ROOM = math.log(1.5)
CAPTION = (
    "Each thin line is one session with the interval of its blocks; hollow markers decide nothing. The "
    "diamond is the mean over occasions, where one number may stand for them. The broad bar is where a "
    "further session on a further machine is expected in nine of ten. With fewer than four occasions it only "
    "spans what was seen."
)


AGAINST = (
    "Each dot is an occasion: sessions of one processor within six hours. p is by all orders of occasions "
    "and counts every moderator that was asked."
)


@dataclass(frozen=True)
class _Row:
    """A line of the drawing: a heading, a session, the mean, or the range."""

    label: str
    kind: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    is_decided: bool = True

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends on the log scale, where there are any."""
        if self.low is None or self.high is None:
            return None
        return log_of(self.low), log_of(self.high)


def forest(pooled: Pooled, contrast: Contrast) -> Picture:
    """Draw what a reader is told of a contrast, a panel for each level or one over all threads.

    An effect that depends on the machine has no mean: no single number stands for it.
    """
    known = [one for one in contrast.told if one.sessions]
    limits = _limits([row for one in known for row in _rows(one, pooled)])
    panels = tuple(_panel(one, pooled, limits) for one in known)
    title = f"{contrast.names['treatment']} on {contrast.names['workload']}, session by session"
    return Picture(f"sessions-{slug(contrast.id)}", title, panels, CAPTION)


def against(found: Sequence[Ordered], contrast: Contrast, effect: PooledEffect) -> Picture:
    """Draw an effect against what its sessions differ in, a panel for each moderator, the best first."""
    panels = []
    for one in found:
        with theme.style():
            figure, axes = theme.canvas(theme.WIDTH, 1.7)
            effects = [100 * value for value in one.effects]
            axes.plot(one.values, effects, "o", color=theme.ACCENT, markersize=4.5)
            axes.axhline(0, color=theme.MUTED, linewidth=0.8)
            axes.set_xlabel(f"{moderators.WORDS[one.name]}: rank correlation {one.rho:+.2f}, p = {one.p:.2g}")
            axes.set_ylabel("%")
        told = "; ".join(
            f"{value:g}: {percent(seen)}" for value, seen in sorted(zip(one.values, one.effects, strict=True))
        )
        panels.append(Panel(figure, f"{moderators.WORDS[one.name]}: {told}."))
    at = "" if effect.threads is None else f", {count(effect.threads, 'thread')}"
    title = f"{contrast.names['treatment']} on {contrast.names['workload']}{at}, by what differed"
    return Picture(f"moderators-{slug(contrast.id)}", title, tuple(panels), AGAINST)


def _panel(effect: PooledEffect, pooled: Pooled, limits: tuple[float, float]) -> Panel:
    where = "all threads" if effect.threads is None else count(effect.threads, "thread")
    rows = [_Row(where, "title"), *_rows(effect, pooled)]
    with theme.style():
        height = _FOOT + _HEAD + _ROW * len(rows)
        figure = Figure(figsize=(theme.WIDTH, height))
        box = (_LEFT / theme.WIDTH, _FOOT / height, 1 - (_LEFT + _RIGHT) / theme.WIDTH)
        axes = figure.add_axes((*box, 1 - (_FOOT + _HEAD) / height))
        _draw(axes, rows, limits)
    return Panel(figure, f"{where}: {effect.headline} {_told(effect, pooled)}")


def _told(effect: PooledEffect, pooled: Pooled) -> str:
    told = []
    for one in effect.sessions:
        session = pooled.session(one.session)
        told.append(f"{_name(session)} on {machines.name(session.processor)}: {percent(one.effect or 0)}.")
    return " ".join(told)


def _rows(effect: PooledEffect, pooled: Pooled) -> Iterator[_Row]:
    by_processor: dict[str, list[Any]] = {}
    for seen in effect.sessions:
        by_processor.setdefault(machines.name(pooled.session(seen.session).processor), []).append(seen)
    for processor, own in sorted(by_processor.items()):
        yield _Row(processor, "heading")
        for seen in own:
            is_decided = seen.low * seen.high > 0 and seen.label != "no useful interval"
            name = _name(pooled.session(seen.session))
            yield _Row(name, "session", seen.effect, seen.low, seen.high, is_decided)
    if effect.k > 1:
        if effect.label != "depends on the machine":
            yield _Row(f"mean of {effect.k}", "mean", effect.effect, effect.low, effect.high)
        if effect.prediction_low is not None:
            yield _Row("expected", "range", None, effect.prediction_low, effect.prediction_high)
        else:
            yield _Row("seen", "range", None, effect.range_low, effect.range_high)


def _name(session: Session) -> str:
    return f"{session.measured[5:10]} {session.measured[11:16]}"


def _draw(axes: Axes, rows: Sequence[_Row], limits: tuple[float, float]) -> None:
    axis_of_change(axes, len(rows), limits)
    sides = axes.get_yaxis_transform()
    edge = (_LEFT - 0.02) / (theme.WIDTH - _LEFT - _RIGHT)
    for y, row in enumerate(rows):
        is_bold = row.kind in ("title", "mean", "range")
        look: Mapping[str, Any] = {"weight": "bold"} if is_bold else {"color": theme.MUTED}
        axes.text(-edge, y, row.label, transform=sides, va="center", fontsize=theme.SMALLEST, **look)
        if row.kind in ("title", "heading"):
            continue
        axes.text(1.03, y, _label(row), transform=sides, va="center", fontsize=theme.SMALLEST, **look)
        _mark(axes, y, row)


def _label(row: _Row) -> str:
    if row.effect is None:
        return span(row.low or 0.0, row.high or 0.0)
    if row.low is None or row.high is None:
        return percent(row.effect)
    ends = numbers.span(row.low, row.high, 0).removesuffix("\N{NO-BREAK SPACE}%")
    return f"{percent(row.effect)} ({ends})"


def _mark(axes: Axes, y: int, row: _Row) -> None:
    left, right = axes.get_xlim()
    colour = theme.MUTED if row.kind == "session" else theme.ACCENT
    width = {"session": 1.3, "mean": 2.2, "range": 7.0}[row.kind]
    if row.ends is not None:
        low, high = row.ends
        axes.plot(
            [min(max(low, left), right), max(min(high, right), left)], [y, y],
            color=colour, linewidth=width, solid_capstyle="butt", alpha=0.45 if row.kind == "range" else 1,
        )  # fmt: skip
        for end, arrow, is_beyond in ((left, "<", low < left), (right, ">", high > right)):
            if is_beyond:
                axes.plot(end, y, arrow, color=colour, markersize=6, clip_on=False)
    if row.effect is not None:
        axes.plot(
            min(max(log_of(row.effect), left), right), y, "D" if row.kind == "mean" else "o",
            color=colour, markersize=6 if row.kind == "mean" else 4.5,
            markerfacecolor=colour if row.is_decided else theme.PAPER,
        )  # fmt: skip


def _limits(rows: Sequence[_Row]) -> tuple[float, float]:
    """Return the ends of the scale: every effect and expectation inside, intervals as far as is useful."""
    effects = [log_of(row.effect) for row in rows if row.effect is not None]
    must = [*effects, *(end for row in rows if row.kind == "range" and row.ends for end in row.ends)]
    ends = [end for row in rows if row.ends for end in row.ends]
    low, high = min([0.0, *must]), max([0.0, *must])
    low, high = max(min([low, *ends]), low - _ROOM), min(max([high, *ends]), high + _ROOM)
    room = 0.05 * max(high - low, 0.01)
    return low - room, high + room
