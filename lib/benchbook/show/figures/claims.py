"""Every claim that is a share of a baseline on one axis: published, recomputed, measured."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchbook.compare import words
from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture
from benchbook.show.tables import levels_of

Claim = Mapping[str, Any]
Answers = Callable[[str], Sequence[tuple[str, Mapping[str, Any], bool]]]

# Inches: names left of the axes, numbers right of them; a line of the title above.
_WIDTH, _LEFT, _RIGHT, _FOOT, _ROW, _TITLE = theme.WIDTH, 1.0, 1.6, 0.45, 0.235, 0.21
# Characters that fit into a line of the drawing.
_LINE, _TITLE_LINE = 46, 38
_OVER: Mapping[str, object] = {"facecolor": theme.PAPER, "edgecolor": "none", "pad": 1.2}


@dataclass(frozen=True)
class _Row:
    """A line of the drawing: a heading if it has no value, else a value between two ends."""

    label: str
    told: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    is_measured: bool = False
    is_judged: bool = True
    band: Sequence[float | None] | None = None


def claims(
    audits: Sequence[Mapping[str, Any]],
    answers: Answers,
    name: str = "claims-figure",
    title: str = "Every claim, published, recomputed, measured",
) -> Picture:
    """Draw what can stand on one axis: a panel for each document, in it each claim about a share.

    `answers` gives (study, finding, whether it answers) for a claim's id; what does not answer illustrates,
    and is drawn hollow. Claims without a number, or about something else
    than a change against a baseline, are in the table alone.
    """
    panels = []
    drawn = 0
    for audit in audits:
        chosen = [one for one in audit["claims"] if is_drawn(one)]
        if not chosen:
            continue
        drawn += len(chosen)
        rows = [row for one in chosen for row in _rows(one, answers(one["id"]))]
        document = audit["document"]["title"]
        panels.append(Panel(_figure(document, rows), f"{document}. {' '.join(map(_told, _pairs(rows)))}"))
    total = sum(len(audit["claims"]) for audit in audits)
    caption = (
        f"{drawn} of {numbers.count(total, 'claim')}: those about a change against a baseline. Shaded: what "
        "was published, with its band. Circle: the mean of the document's own cells; the thin line goes from "
        "the lowest to the highest cell and is no interval. Diamond: measured here, with its interval. "
        "Hollow and dashed: an illustration by something that stands in for what was published; it judges "
        "nothing."
    )
    return Picture(name, title, tuple(panels), caption)


def _figure(title: str, rows: Sequence[_Row]) -> Figure:
    """Draw one document: its title, and below it a line for each row."""
    lines = textwrap.wrap(title, _TITLE_LINE)
    head = 0.12 + _TITLE * len(lines)
    height = _FOOT + head + _ROW * len(rows)
    width = (_WIDTH - _LEFT - _RIGHT) / _WIDTH
    with theme.style():
        figure = Figure(figsize=(_WIDTH, height))
        axes = figure.add_axes((_LEFT / _WIDTH, _FOOT / height, width, 1 - (_FOOT + head) / height))
        for place, line in enumerate(lines):
            figure.text(0.01, 1 - (0.17 + _TITLE * place) / height, line, weight="bold", fontsize=10)
        _draw(axes, rows)
    return figure


def is_drawn(claim: Claim) -> bool:
    """Say whether a claim is about a share, has a band, and has cells in its own tables."""
    return bool(
        claim["is_share"] and claim["band"] and (numbers.is_known(claim.get("mean")) or claim.get("cells"))
    )


def _rows(claim: Claim, answers: Sequence[tuple[str, Mapping[str, Any], bool]]) -> Iterator[_Row]:
    sentence = f"{claim['claim']} ({claim['published']})".replace(" %", "\N{NO-BREAK SPACE}%")
    for line in textwrap.wrap(sentence, _LINE):
        yield _Row(line, band=claim["band"])
    is_known = numbers.is_known(claim.get("mean"))
    yield _Row(
        "its own tables",
        "  ".join([*([numbers.percent(claim["mean"])] if is_known else []), claim["verdict"]]),
        value=claim.get("mean"),
        low=claim.get("low"),
        high=claim.get("high"),
        band=claim["band"],
    )
    for study, found, is_answer in answers:
        yield from _measured(study, found, is_answer, claim["band"])


def _measured(
    study: str, found: Mapping[str, Any], is_answer: bool, band: Sequence[float | None]
) -> Iterator[_Row]:
    """Give the line of a finding; where no single number stands for it, one for each thread level."""
    is_one = found.get("headline", True)
    told = numbers.percent(found["effect"]) if is_one else found["label"]
    note = (found["verdict"] or "not judged") if is_answer else _on(found)
    text = "  ".join(filter(None, [told, note if is_one or is_answer else ""]))
    head = _Row(theme.short(study, 13), text, is_measured=True, is_judged=is_answer, band=band)
    yield _at(head, found) if is_one else head
    for level in () if is_one else levels_of(found):
        if numbers.is_known(level["effect"]):
            label = f"at {numbers.count(level['threads'], 'thread')}"
            yield _at(replace(head, label=label, told=numbers.percent(level["effect"])), level)


def _at(row: _Row, part: Mapping[str, Any]) -> _Row:
    """Give a line the effect and the interval of a finding or of a thread level."""
    return replace(row, value=part["effect"], low=part["low"], high=part["high"])


def _on(found: Mapping[str, Any]) -> str:
    """Say in a word or two on what an illustration was measured; the drawing has no room for more."""
    workload = words.of(found, "workload") if "workload" in found else ""
    return theme.short(workload.removesuffix(" transactions"), 15)


def _pairs(rows: Sequence[_Row]) -> Iterator[tuple[str, _Row]]:
    heading: list[str] = []
    is_open = False
    for row in rows:
        if row.value is None and not row.told:
            heading = [*heading, row.label] if is_open else [row.label]
            is_open = True
        else:
            is_open = False
            yield " ".join(heading), row


def _told(pair: tuple[str, _Row]) -> str:
    heading, row = pair
    what = "interval" if row.is_measured else "cells"
    has_ends = numbers.is_known(row.low) and row.low != row.high
    ends = f", {what} {numbers.span(row.low, row.high)}" if has_ends else ""
    kind = "" if row.is_judged else " (illustrates)"
    return f"{heading}; {row.label}{kind}: {row.told.replace('  ', ', ')}{ends}."


def _draw(axes: Axes, rows: Sequence[_Row]) -> None:
    known = [
        value
        for row in rows
        for value in (row.value, row.low, row.high, *(row.band or ()))
        if numbers.is_known(value)
    ]
    low, high = min(0.0, *known), max(0.0, *known)
    room = 0.06 * (high - low)
    axes.set_xlim(100 * (low - room), 100 * (high + room))
    theme.rows_against_zero(axes, len(rows))
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: numbers.decimal(value, 0, True))
    axes.set_xlabel("change against the baseline, %")
    sides = axes.get_yaxis_transform()
    edge = (_LEFT - 0.05) / (_WIDTH - _LEFT - _RIGHT)
    for y, row in enumerate(rows):
        is_heading = row.value is None and not row.told
        style: dict[str, Any] = {"weight": "bold", "bbox": _OVER} if is_heading else {"color": theme.MUTED}
        place: dict[str, Any] = {"transform": sides, "va": "center", "fontsize": theme.SMALLEST}
        axes.text(-edge, y, row.label, zorder=3, **place, **style)
        axes.text(1.03, y, row.told, color=theme.INK, **place)
        if not is_heading:
            _band(axes, y, row.band)
            _mark(axes, y, row)


def _band(axes: Axes, y: int, band: Sequence[float | None] | None) -> None:
    left, right = axes.get_xlim()
    low, high = band or (None, None)
    axes.fill_betweenx(
        [y - 0.5, y + 0.5],
        left if low is None else 100 * low,
        right if high is None else 100 * high,
        color=theme.CLAIM,
        linewidth=0,
        zorder=0,
    )


def _mark(axes: Axes, y: int, row: _Row) -> None:
    colour = theme.colour("measured", ["measured"]) if row.is_measured else theme.INK
    if numbers.is_known(row.low) and numbers.is_known(row.high):
        width = 3.0 if row.is_measured else 1.1
        ends = [100 * row.low, 100 * row.high]
        axes.plot(
            *(ends, [y, y]), color=colour, solid_capstyle="butt",
            linewidth=width if row.is_judged else 1.6,
            linestyle="solid" if row.is_judged else (0, (2, 1.2)),
        )  # fmt: skip
    if numbers.is_known(row.value):
        axes.plot(
            100 * row.value, y, "D" if row.is_measured else "o", markersize=5.5, zorder=4,
            color=colour if row.is_judged else theme.PAPER,
            markeredgecolor=theme.PAPER if row.is_judged else colour,
            markeredgewidth=0.8 if row.is_judged else 1.4,
        )  # fmt: skip
