"""The effect forest: every effect with its interval on one axis, the A/A pair on top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture

Finding = Mapping[str, Any]

# Inches: names stand left of the axes, numbers right of them, and both stay readable on a phone.
_WIDTH, _LEFT, _RIGHT, _FOOT, _ROW = 5.0, 0.86, 1.86, 0.45, 0.235

_OVER = {"facecolor": theme.PAPER, "edgecolor": "none", "pad": 1.2}


@dataclass(frozen=True)
class _Row:
    label: str
    effect: Finding | None = None
    is_headline: bool = False
    arm: str = ""
    band: Sequence[float] | None = None


def forest(findings: Mapping[str, Any], arms: Sequence[str]) -> Picture:
    """Draw the effect of every finding: the headline, then each thread level, with intervals and claim bands.

    Effects are fractions of the baseline. An interval that leaves the axis ends in an arrow. A finding
    without a headline, because its effect changes sign with the threads, shows its thread levels only.
    """
    rows = list(_rows(findings))
    shown = [row.effect for row in rows if row.effect and numbers.is_known(row.effect["effect"])]
    panels = ()
    if shown:
        with theme.style():
            figure = Figure(figsize=(_WIDTH, _FOOT + _ROW * len(rows)))
            height = figure.get_figheight()
            axes = figure.add_axes(
                (_LEFT / _WIDTH, _FOOT / height, (_WIDTH - _LEFT - _RIGHT) / _WIDTH, 1 - _FOOT / height)
            )
            _draw(axes, rows, shown, arms)
        panels = (Panel(figure, forest_alt(findings)),)
    caption = (
        "Each marker is the change against the baseline, each line its interval: heavy over all thread "
        "counts, light for one thread count alone. Left of zero is less than the baseline."
        + (" The shaded band is what was claimed." if any(row.band for row in rows) else "")
    )
    return Picture("effects", "Effects and their intervals", panels, caption)


def forest_alt(findings: Mapping[str, Any]) -> str:
    """Say in words what the forest shows: each effect with interval, level and n, then its thread levels."""
    told = [_told(found) for found in _all(findings)]
    return "Effects with their intervals. " + " ".join(told)


def _told(found: Finding) -> str:
    metric = numbers.metric(found["metric"])
    head = f"{found['workload']}, {found['treatment']} against {found['baseline']}, {metric}: "
    whole = (
        f"{numbers.percent(found['effect'])}, {numbers.level(found['level'])} interval "
        f"{numbers.span(found['low'], found['high'])}, n = {found['n']}, {found['label']}"
        if found["headline"]
        else f"no headline, the effect depends on threads, n = {found['n']}"
    )
    levels = "; ".join(
        f"{numbers.count(point['threads'], 'thread')} {numbers.percent(point['effect'])} "
        f"({numbers.span(point['low'], point['high'])})"
        for point in found["by_threads"]
    )
    return head + whole + (f". By threads: {levels}." if levels else ".")


def _all(findings: Mapping[str, Any]) -> list[Finding]:
    return [found for found in (findings.get("aa"), *findings["findings"]) if found]


def _rows(findings: Mapping[str, Any]) -> Iterator[_Row]:
    aa = findings.get("aa")
    for found in _all(findings):
        name = (
            "A/A: one arm under two names"
            if found is aa
            else f"{found['treatment']} against {found['baseline']}"
        )
        what = "" if found["metric"] == "qps" else f", {numbers.metric(found['metric'])}"
        yield _Row(f"{theme.short(found['workload'], 24)}{what} · {theme.short(name, 34)}")
        band = found.get("band")
        yield _Row("all threads", found, True, found["treatment"], band)
        for point in found["by_threads"] if len(found["by_threads"]) > 1 else ():
            yield _Row(numbers.count(point["threads"], "thread"), point, False, found["treatment"], band)


def _draw(axes: Axes, rows: Sequence[_Row], shown: Sequence[Finding], arms: Sequence[str]) -> None:
    low, high = _limits(rows, shown)
    axes.set_xlim(100 * low, 100 * high)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.axvline(0, color=theme.MUTED, linewidth=1, zorder=1)
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(
        lambda value, _: numbers.decimal(value, 0 if high - low > 0.06 else 1, True)
    )
    axes.set_xlabel("change against the baseline, %")
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
        weight = {"weight": "bold"} if row.is_headline else {"color": theme.MUTED}
        axes.text(-edge, y, row.label, transform=sides, va="center", fontsize=8.5, **weight)
        axes.text(1.03, y, _label(row), transform=sides, va="center", fontsize=8.5, **weight)
        if row.band and row.is_headline:
            _claim(axes, y, row)
        if not _is_hidden(row):
            _mark(axes, y, row, theme.colour(row.arm, arms) if row.arm in arms else theme.MUTED)


def _claim(axes: Axes, y: int, row: _Row) -> None:
    """Shade what was claimed behind all rows of a finding; a band without an end runs to the edge."""
    low, high = ((100 * edge if numbers.is_known(edge) else None) for edge in row.band)
    left, right = axes.get_xlim()
    levels = len(row.effect["by_threads"])
    axes.fill_betweenx(
        [y - 0.5, y + 0.5 + (levels if levels > 1 else 0)],
        left if low is None else low,
        right if high is None else high,
        color=theme.CLAIM,
        linewidth=0,
        zorder=0,
    )


def _is_hidden(row: _Row) -> bool:
    return not numbers.is_known(row.effect["effect"]) or (row.is_headline and not row.effect["headline"])


def _label(row: _Row) -> str:
    if row.is_headline and not row.effect["headline"]:
        return "depends on threads"
    ends = numbers.span(row.effect["low"], row.effect["high"]).removesuffix("\N{NO-BREAK SPACE}%")
    return f"{numbers.percent(row.effect['effect'])}  ({ends})"


def _mark(axes: Axes, y: int, row: _Row, colour: str) -> None:
    left, right = axes.get_xlim()
    effect, heavy = 100 * row.effect["effect"], row.is_headline
    if numbers.is_known(row.effect["low"]) and numbers.is_known(row.effect["high"]):
        low, high = 100 * row.effect["low"], 100 * row.effect["high"]
        axes.plot(
            [max(low, left), min(high, right)],
            [y, y],
            color=colour,
            linewidth=3.2 if heavy else 1.3,
            solid_capstyle="butt",
            alpha=1 if heavy else 0.8,
        )
        for end, arrow, is_beyond in ((left, "<", low < left), (right, ">", high > right)):
            if is_beyond:
                axes.plot(end, y, arrow, color=colour, markersize=6, clip_on=False)
    axes.plot(
        effect,
        y,
        "D" if heavy else "o",
        color=colour,
        markersize=6 if heavy else 4.5,
        markeredgecolor=theme.PAPER,
        markeredgewidth=0.8,
        zorder=4,
    )


def _limits(rows: Sequence[_Row], shown: Sequence[Finding]) -> tuple[float, float]:
    """Keep every effect, headline interval and band inside, and thread intervals up to twice that width."""
    must = [0.0, *(effect["effect"] for effect in shown)]
    for row in rows:
        must += [edge for edge in row.band or () if numbers.is_known(edge)]
        if row.is_headline and row.effect["headline"]:
            must += [row.effect[key] for key in ("low", "high") if numbers.is_known(row.effect[key])]
    wide = max(max(must) - min(must), 0.01)
    want = [effect[key] for effect in shown for key in ("low", "high") if numbers.is_known(effect[key])]
    low = max(min([*must, *want]), min(must) - wide / 2)
    high = min(max([*must, *want]), max(must) + wide / 2)
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
