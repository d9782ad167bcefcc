"""The page of a study over time: what changed and when, in its effects and in the baseline under them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from benchbook.compare import history, words
from benchbook.compare.history import Series
from benchbook.core import files, paths
from benchbook.core import load as loading
from benchbook.core.errors import InputErrors, given
from benchbook.show import numbers, theme
from benchbook.show.badge import badge
from benchbook.show.markup import Html, element, join, slug
from benchbook.show.picture import Panel, Picture
from benchbook.show.table import Column, Table, long, number

CAPTION = (
    "Above, the change of the treatment against the baseline with its interval; below, the queries "
    "per second of the "
    "baseline itself. Heavy lines are the levels between changes. A level that moves below and not "
    "above is the "
    "machine's or the server's, for both arms alike."
)


@dataclass(frozen=True)
class Seen:
    """The series of one study, one for each contrast, or those of all studies; `drawn` only where it is
    one."""

    study: str
    every: tuple[tuple[str, Series], ...]

    @property
    def series(self) -> tuple[Series, ...]:
        """The series without the names of their studies."""
        return tuple(one for _, one in self.every)

    @property
    def drawn(self) -> tuple[Series, ...]:
        """Those that the page draws and lists: all of one study, none where the page is about all studies."""
        return self.series if self.study else ()


def load(study: str = "") -> Seen:
    """Read and judge the series of a study, or of all studies, from data/history."""
    known = sorted(file.stem for file in (paths.root() / "data" / "history").glob("*.csv"))
    every = []
    for name in [study] if study else known:
        file = files.required(paths.study(name).history)
        table = history.parse(file.read_text(encoding="utf-8"))
        called = _called(name)
        names = {f"{role}_name": table[role].map(called) for role in ("treatment", "baseline")}
        every += [(name, one) for one in history.series(table.assign(**names))]
    return Seen(study, tuple(every))


def _called(study: str) -> dict[str, str]:
    """Return what the arms are called by the study's file, if there is one; a series keeps keys alone."""
    try:
        names = words.names(loading.study(study))["arms"] if study in paths.studies() else {}
    except InputErrors:
        return {}
    return {arm: words.label(name) for arm, name in names.items()}


def opening(seen: Seen) -> Html:
    """Write the title and, for each contrast, what changed and when."""
    told = [
        element("li", *_named(seen, name, one), ": ", one.sentence, *_notes(one.notes))
        for name, one in seen.every
    ]
    question = "What moved between the measurements: the effect, or the baseline under it?"
    return join(
        [
            element("h1", f"{seen.study} over time" if seen.study else "Studies over time"),
            element("p", question, class_="question"),
            element(
                "section",
                element("h2", "The answer", id="answer"),
                element("ul", *told, class_="answers") if told else element("p", NONE, class_="verdict"),
                class_="answer",
            ),
        ]
    )


NONE = "No study has a series yet: `benchbook history STUDY` keeps what was found, each time it was measured."


def _named(seen: Seen, name: str, one: Series) -> list[object]:
    contrast = element("b", _contrast(one))
    return [contrast] if seen.study else [element("a", name, href=f"{slug(name)}.html"), ", ", contrast]


def pictures(seen: Seen) -> list[Picture]:
    """Draw each contrast over time: the effect with its intervals above, the baseline below."""
    return [
        Picture(
            f"series-{place}", _contrast(one), tuple(_panels(one)), CAPTION if place == 1 else "As above."
        )
        for place, one in enumerate(seen.drawn, 1)
    ]


def changes(seen: Seen) -> Table:
    """List every change with its date, what moved, and by how much."""
    rows = [
        [_contrast(one), change.measured_at[:10], change.what, _moved(change.effect), _moved(change.baseline)]
        for one in seen.series
        for change in one.changes
    ]
    columns = [long("Contrast"), Column("From"), Column("What moved"), number("Effect"), number("Baseline")]
    caption = (
        "E-divisive with a permutation test; the error is shared by all contrasts of the study, and "
        "in each by "
        "effect and baseline. Sizes are those of the levels on both sides; the place was chosen by "
        "looking at them."
    )
    return Table(
        "changes", "What changed, and when", columns, rows, caption, "No change was shown.", is_whole=True
    )


def measurements(seen: Seen) -> Table:
    """List every measurement that counts: date, effect with interval, blocks, label, QPS of the baseline,
    commit."""
    rows = [
        [
            _contrast(one),
            f"{row['measured_at'][:16].replace('T', ' ')} UTC",
            numbers.percent(row["effect"]),
            numbers.span(row["low"], row["high"]),
            int(row["n"]),
            badge(row["label"]),
            numbers.significant(row["baseline_qps"]),
            "" if pd.isna(row["commit"]) else row["commit"],
        ]
        for one in seen.drawn
        for row in one.rows.to_dict("records")
    ]
    columns = [
        long("Contrast"),
        Column("Measured"),
        number("Effect"),
        number("Interval"),
        number("n", "blocks"),
        Column("Shown"),
        number("Baseline", "QPS"),
        Column("Commit"),
    ]
    empty = "None counts yet; the answer above says why." if seen.study else "Each study has its own page."
    return Table("measurements", "The measurements that count", columns, rows, empty=empty)


def _contrast(one: Series) -> str:
    if one.rows.empty:
        workload, arm, _ = one.contrast.split(".", 2)
        return f"{_arm(arm)} on {words.workload(workload)}"
    row = one.rows.iloc[-1]
    treatment, baseline = _name(row, "treatment"), _name(row, "baseline")
    what = "" if row["metric"] == "qps" else f", {words.metric(row['metric'])}"
    return f"{treatment} against {baseline} on {words.workload(row['workload'])}{what}"


def _name(row: pd.Series[Any], role: str) -> str:
    called = row.get(f"{role}_name")
    return called if isinstance(called, str) else _arm(row[role])


def _arm(name: str) -> str:
    # A series keeps names alone; an arm that is called as a network is that network.
    return words.arm(
        name, network=name.removesuffix(words.AGAIN) if name.startswith(("host", "pod")) else None
    )


def _notes(notes: Sequence[str]) -> list[object]:
    return [element("span", f" {numbers.listing(notes)}.".capitalize(), class_="claim")] if notes else []


def _moved(value: float | None) -> str:
    return "no change shown" if value is None else numbers.percent(value)


def _panels(one: Series) -> Iterator[Panel]:
    if one.rows.empty:
        return
    with theme.style():
        figure = Figure(figsize=(theme.WIDTH, 3.4), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        places = range(len(one.rows))
        _effects(above, one)
        below.plot(places, one.rows["baseline_qps"], "o", color=theme.MUTED, markersize=3.5)
        for level in one.baselines:
            mean = math.exp(given(level.mean.log_mean))
            below.plot(_ends(level.places), [mean] * 2, color=theme.INK, linewidth=2)
        below.set_ylabel("baseline, QPS")
        below.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        for change in one.changes:
            for axes in (above, below):
                axes.axvline(change.place - 0.5, color=theme.MUTED, linewidth=1, linestyle=":")
        dates = one.rows["measured_at"].str[:10].to_list()
        shown = sorted({0, len(dates) - 1, *(change.place for change in one.changes)})
        slant = {"rotation": 30, "ha": "right"} if len(shown) > 3 else {}
        below.set_xticks(shown, [dates[place] for place in shown], **slant)
    yield Panel(figure, _told(one))


def _effects(axes: Axes, one: Series) -> None:
    axes.axhline(0, color=theme.MUTED, linewidth=1)
    colour = theme.colour("effect", ["effect"])
    for place, row in enumerate(one.rows.to_dict("records")):
        if numbers.is_known(row["low"]) and numbers.is_known(row["high"]):
            axes.plot(
                [place, place], [100 * row["low"], 100 * row["high"]], color=colour, linewidth=1, alpha=0.7
            )
    axes.plot(range(len(one.rows)), 100 * one.rows["effect"], "o", color=colour, markersize=3.5)
    for level in one.effects:
        axes.plot(_ends(level.places), [100 * given(level.mean.effect)] * 2, color=theme.INK, linewidth=2)
    axes.set_ylabel("effect, %")


def _ends(places: Sequence[int]) -> list[float]:
    return [places[0] - 0.4, places[-1] + 0.4]


def _told(one: Series) -> str:
    """Say the levels in words."""
    effects = "; ".join(
        f"{level.first[:10]} on: {numbers.percent(level.mean.effect)}" for level in one.effects
    )
    under = "; ".join(
        f"{level.first[:10]} on: {numbers.significant(float(np.exp(given(level.mean.log_mean))))}"
        for level in one.baselines
    )
    return f"{_contrast(one)}, effect {effects}. Baseline QPS {under}. {one.sentence}"
