"""The forest: effects with intervals, each a line of text and a bar in per cent of the width."""

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchbook.compare.text import labels
from benchbook.compare.text.cpu_models import name_processor
from benchbook.compare.text.results_table import describe_effect, range_of
from benchbook.compare.text.sentences import SHOWN
from benchbook.core.artifacts import meta_analysis
from benchbook.core.artifacts.findings import ByThreads, Contrast, FindingData, LevelContrast, Rungs
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledEffect
from benchbook.core.util import number_format
from benchbook.core.util.estimate import Estimate
from benchbook.core.util.plural import count
from benchbook.show import theme
from benchbook.show.markup import Html, make_slug
from benchbook.show.picture import render_svg
from benchbook.show.table import Table
from benchbook.show.tables import name_finding
from benchbook.show.templating import render_template

Ends = tuple[float, float]
# Effects beyond a quarter or four times the baseline stand at the edge; intervals may go half as far again.
_FARTHEST, _ROOM = math.log(4), math.log(1.5)
_TICKS = (-90, -75, -60, -50, -40, -30, -25, -20, -15, -10, -5, -2, -1, 0, 1, 2, 5, 10, 15, 20,
          25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 900)  # fmt: skip
_MOST_TICKS = 5
DECIDED = (*SHOWN, "no practical difference")
_SIZE = {"class_": "bar", "width": "100%", "height": 22}
_SHADES = {"higher": "#0a66a5", "lower": "#c2500a", "": theme.MUTED}
CAPTION = "Left of the line: lower than the baseline; right of it: higher. Hollow: no difference shown."
SEVERAL = (
    "Dot: one session, hollow where it shows no difference. Square: their mean. Bar: range expected of nine "
    "of ten further sessions; with fewer than three processors, range seen."
)
BELOW = "Dot: one session, hollow where it shows no difference. Square: mean. Bar: as the bands above."
CLAIMED = " Shaded: the claim."


@dataclass(frozen=True)
class Scale:
    """Places of effects between two log ratios; logarithmic beyond `linear_up_to`, if that is given."""

    low: float
    high: float
    ticks_at: tuple[float, ...] = ()
    linear_up_to: float = 0.0

    def __call__(self, fraction: float) -> float:
        """Place of an effect, in per cent of the width."""
        low, high, place = self.low, self.high, log_of(fraction)
        if self.linear_up_to:
            low, high, place = (math.asinh(log / self.linear_up_to) for log in (low, high, place))
        return round(100 * min(max((place - low) / (high - low), 0.005), 0.995), 2)

    @property
    def ticks(self) -> list[float]:
        """Round fractions, zero among them, that stand far enough apart to be read."""
        if self.ticks_at:
            return [*self.ticks_at]
        gap, zero, chosen = (self.high - self.low) / _MOST_TICKS, _TICKS.index(0), [0.0]
        for side in (_TICKS[zero + 1 :], _TICKS[:zero][::-1]):
            last = 0.0
            for tick in side:
                place = math.log1p(tick / 100)
                if self.low <= place <= self.high and abs(place - last) >= gap:
                    chosen.append(tick / 100)
                    last = place
        return sorted(chosen)


@dataclass(frozen=True)
class ForestRow:
    """A line: name, outcome in words, `dots` (effects, and if they are decided), `square` (their mean)."""

    name: str
    effect_text: str = ""
    dots: tuple[tuple[float, bool], ...] = ()
    ends: Ends | None = None
    square: float | None = None
    band: Sequence[float | None] | None = None
    kind: str = ""
    way: str = ""

    @property
    def values(self) -> list[float]:
        """Its effects, and their mean."""
        return [value for value, _ in self.dots] + ([] if self.square is None else [self.square])

    @property
    def direction(self) -> str:
        """`higher`, `lower`, or nothing if neither or both are shown."""
        sides = {value > 0 for value, is_decided in self.dots if is_decided and value}
        if self.square is not None and self.ends and self.ends[0] * self.ends[1] > 0:
            sides.add(self.square > 0)
        return ("higher" if sides.pop() else "lower") if len(sides) == 1 else ""


@dataclass(frozen=True)
class Forest:
    """Rows under a heading, on one scale; shows itself in a notebook. `table` stands where no figure can."""

    anchor: str
    title: str
    rows: tuple[ForestRow, ...]
    caption: str = CAPTION
    empty: str = "Nothing was recorded that this figure could show."
    is_folded: bool = False
    table: Table | None = None

    def _repr_markdown_(self) -> str | None:
        return self.table._repr_html_() if self.table else None

    def _repr_html_(self) -> str:
        scale = scale_of(self.rows)
        inputs = {"bar": lambda row: draw_bar(row, scale), "axis": draw_axis(scale), "forest": self}
        return render_template("forest.html.j2", **inputs).text

    def __repr__(self) -> str:
        lines = (f"  {row.name}: {row.effect_text}".rstrip(": ") for row in self.rows)
        return "\n".join([self.title, *lines])


def of_findings(
    findings: Iterable[FindingData],
    aa: FindingData | None = None,
    without: Container[str] = (),
    with_levels: bool = False,
) -> Forest:
    """Draw the effects of findings not in `without`, A/A last; each level if no number stands for all."""
    drawn: dict[str, list[ForestRow]] = {}
    bases: dict[str, None] = {}
    for finding in (finding for finding in findings if finding.id not in without):
        workload = labels.label_role(finding, "workload")
        drawn.setdefault(workload, []).extend(_build_rows(finding, with_levels))
        bases[labels.in_sentence(finding.names.baseline)] = None
    rows = _join_workloads(drawn)
    if aa and rows:
        rows.append(_row_of_finding(aa, name_finding(aa)))
    against = f"Against {number_format.join_words([*bases])}. " if bases else ""
    message = f"{against}{CAPTION}{CLAIMED if any(row.band for row in rows) else ''}"
    return Forest("effects", "Effects and their intervals", tuple(rows), message)


def _join_workloads(drawn: Mapping[str, Sequence[ForestRow]]) -> list[ForestRow]:
    """Lines of all workloads, each below a heading where one of them has several."""
    # Where each has one line, a heading above it would say what the line can.
    if all(len(lines) == 1 for lines in drawn.values()):
        return [replace(row, name=f"{row.name} on {workload}") for workload, (row,) in drawn.items()]
    return [row for name, lines in drawn.items() for row in (ForestRow(name, kind="heading"), *lines)]


def of_twins(pairs: Iterable[tuple[str, str, FindingData]]) -> Forest:
    """Draw A/A pairs of several studies by (study, way to it, pair), each over all threads."""
    rows = [
        replace(_row_of_finding(aa, f"{study}{labels.beside_queries(aa.metric)}"), way=way, band=None)
        for study, way, aa in pairs
    ]
    caption = "Each line is one study, an arm against itself: its interval should include zero."
    return Forest("aa-figure", "Every A/A pair", tuple(rows), caption, "No study has an A/A pair yet.")


def over_sessions(recorded: MetaAnalysis, without: Container[str] = ()) -> Forest:
    """Draw the reported effects of contrasts not in `without`: sessions, mean, expectation elsewhere."""
    rows = tuple(
        row_of_sessions(contrast, effect)
        for contrast in recorded.contrasts
        for effect in (() if contrast.id in without else contrast.shown)
    )
    return Forest("over-sessions", "Over all sessions", rows, BELOW if without else SEVERAL)


def by_session(
    recorded: MetaAnalysis, contrasts: Sequence[meta_analysis.PooledContrast] | None = None
) -> Forest:
    """Draw each session of contrasts, all unless given, on a line of its own, with its date and processor."""
    rows: list[ForestRow] = []
    shown = recorded.contrasts if contrasts is None else contrasts
    for of, effect in ((each, effect) for each in shown for effect in each.shown if effect.sessions):
        rows.append(ForestRow(labels.name_place(of, effect), kind="heading"))
        for observed in sorted(effect.sessions, key=lambda each: recorded.session(each.session).measured):
            session = recorded.session(observed.session)
            name = f"{session.measured[:16].replace('T', ' ')}, {name_processor(session.processor)}"
            row = row_of_estimate(observed.estimate, name, is_decided=_is_decided(observed))
            rows.append(replace(row, kind="level"))
    return Forest("by-session", "Session by session", tuple(rows), CAPTION, is_folded=True)


def draw_ordered_arms(rungs: Rungs) -> Forest:
    """Draw one ladder: each arm against the first, in their order."""
    pairs, first = rungs.against_first, rungs.against_first[0]
    rows = tuple(_row_of_finding(pair, labels.label_role(pair, "treatment")) for pair in pairs)
    title = f"Against {labels.label_role(first, 'baseline')}, on {labels.label_role(first, 'workload')}"
    return Forest("ladder", title, rows, CAPTION)


def _build_rows(finding: FindingData, with_levels: bool) -> Iterator[ForestRow]:
    name = f"{labels.label_role(finding, 'treatment')}{labels.beside_queries(finding.metric)}"
    yield _row_of_finding(finding, name)
    if with_levels or not finding.headline:
        for point in finding.at_levels:
            row = _row_of_finding(point, count(point.threads, "thread"))
            yield replace(row, kind="level", band=finding.band)


def _row_of_finding(result: Contrast | LevelContrast | ByThreads, name: str) -> ForestRow:
    """Give the line of a finding, or of one of its thread levels."""
    band, way = None, ""
    if isinstance(result, FindingData):
        band, way = result.band, f"#finding-{make_slug(result.id)}"
    if number_format.is_known(result.effect) and isinstance(result, Contrast) and not result.headline:
        return ForestRow(name, "by threads", band=band, way=way)
    is_decided = isinstance(result, ByThreads) or result.label in DECIDED
    return row_of_estimate(result.estimate, name, way, band, is_decided)


def row_of_estimate(
    estimate: Estimate,
    name: str,
    way: str = "",
    band: Sequence[float | None] | None = None,
    is_decided: bool | None = None,
) -> ForestRow:
    """Line of one number with its interval; unless set, decided if the interval has one sign."""
    if not estimate.has_value or estimate.value is None:
        return ForestRow(name, number_format.NOT_COMPUTED, band=band, way=way)
    ends = estimate.ends
    span = f" {number_format.format_interval(*ends)}" if ends else ", no interval"
    decided = bool(estimate.sign) if is_decided is None else is_decided
    message = f"{number_format.format_percent(estimate.value)}{span}"
    return ForestRow(name, message, ((estimate.value, decided),), ends, band=band, way=way)


def on_throughput(
    meta_analysises: Iterable[MetaAnalysis],
) -> Iterator[tuple[MetaAnalysis, meta_analysis.PooledContrast, PooledEffect]]:
    """Reported effects on queries a second, of no retired study, without sizes it sets itself (a quota)."""
    for study in meta_analysises:
        for of in study.contrasts:
            if of.metric == "qps" and study.retired is None and not study.made_by(of):
                yield from ((study, of, pooled_effect) for pooled_effect in of.shown)


def row_of_sessions(pooled_contrast: meta_analysis.PooledContrast, effect: PooledEffect) -> ForestRow:
    """Line of an effect over sessions: its sessions, their mean, the range of a further one."""
    dots = tuple((each.effect, _is_decided(each)) for each in effect.sessions if each.effect is not None)
    name, way = labels.name_place(pooled_contrast, effect), f"#finding-{make_slug(pooled_contrast.id)}"
    square = effect.effect if effect.k > 1 and effect.label != "depends on the machine" else None
    return ForestRow(name, describe_effect(effect), dots, expected_range(effect), square, way=way)


def _is_decided(observed: Any) -> bool:
    ends = observed.estimate.ends
    return bool(ends and observed.label != "no useful interval" and ends[0] * ends[1] > 0)


def expected_range(effect: PooledEffect) -> Ends | None:
    """Range expected for a further session; with too few sessions, their range or their interval."""
    if effect.k <= 1 and len(effect.sessions) == 1:
        return effect.sessions[0].estimate.ends
    if effect.prediction_low is not None and effect.prediction_high is not None:
        return effect.prediction_low, effect.prediction_high
    span = range_of(effect)
    return span and span[1:]


def scale_of(rows: Sequence[ForestRow]) -> Scale:
    """Scale of rows: every effect inside, intervals as far as is useful."""
    ends = [log_of(end) for row in rows for end in row.ends or ()]
    inside = [
        log_of(value)
        for row in rows
        for value in (*row.values, *filter(number_format.is_known, row.band or ()))
    ]
    low, high = max(min([0.0, *inside]), -_FARTHEST), min(max([0.0, *inside]), _FARTHEST)
    low, high = max(min([low, *ends]), low - _ROOM), min(max([high, *ends]), high + _ROOM)
    room = 0.06 * max(high - low, 0.01)
    return Scale(low - room, high + room)


def draw_bar(row: ForestRow, at: Scale) -> Html:
    """Draw the marks of a line; its numbers stand beside it."""
    return render_svg("bar.svg.j2", "", _SIZE, row=row, at=at, shade=_SHADES[row.direction])


def draw_axis(at: Scale) -> Html:
    """Write the numbers of the scale."""
    first, last = (number_format.format_percent(at.ticks[end], 0) for end in (0, -1))
    statement = f"scale from {first} to {last} against the baseline"
    return render_svg("axis.svg.j2", statement, _SIZE, at=at)


def log_of(fraction: float) -> float:
    """Logarithm of a ratio; nothing at all is far left of every scale."""
    return math.log1p(max(fraction, -0.999))
