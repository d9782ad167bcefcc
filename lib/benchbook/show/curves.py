"""The effect against threads, on a scale of ratios: a line and a band a treatment, places in per cent."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from benchbook.compare.text import labels
from benchbook.compare.text.results_table import depends_on_threads
from benchbook.core.artifacts.findings import ByThreads, FindingData
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledContrast
from benchbook.core.util import number_format
from benchbook.core.util.plural import count
from benchbook.show import forest, theme
from benchbook.show.forest import Ends, Scale
from benchbook.show.markup import Html, make_slug
from benchbook.show.picture import render_svg
from benchbook.show.templating import render_template

# An effect at so many levels is drawn as a line even where one number may stand for all of them.
_A_CURVE = 4
# So far apart on the log scale one number for all levels hides what each came to: a quarter.
_APART = math.log(1.25)
_LEFT, _RIGHT, _TOP, _FOOT = 13.0, 97.0, 5.0, 88.0
CAPTION = "Band: interval over blocks. Hollow: no difference shown."
SEVERAL = (
    "Thin line: one session. Band: range expected of nine of ten further sessions; with fewer than three "
    "processors, range seen. A dot is hollow where the band includes zero."
)


class Point(NamedTuple):
    """An effect at a thread level, the ends of its band, and if it is decided."""

    threads: int
    value: float
    ends: Ends | None
    is_decided: bool


@dataclass(frozen=True)
class Curve:
    """A treatment over thread levels; `beside` are those of its sessions, by level."""

    name: str
    way: str
    points: tuple[Point, ...]
    beside: tuple[tuple[tuple[int, float], ...], ...] = ()

    @property
    def description(self) -> str:
        """Its effects in words: −19 % at 1 thread, +24 % at 8."""
        threads = [count(self.points[0].threads, "thread"), *(f"{p.threads:,}" for p in self.points[1:])]
        pairs = zip(self.points, threads, strict=True)
        return ", ".join(f"{number_format.glance_percent(point.value)} at {text}" for point, text in pairs)


@dataclass(frozen=True)
class Curves:
    """A drawing for each workload and metric, all on one scale; shows itself in a notebook."""

    panels: Mapping[str, Sequence[Curve]]
    caption: str

    def _repr_html_(self) -> str:
        curves = [curve for panel in self.panels.values() for curve in panel]
        points = (point for curve in curves for point in curve.points)
        rows = [forest.ForestRow("", dots=((point.value, True),), ends=point.ends) for point in points]
        scale, names = forest.scale_of(rows), list(dict.fromkeys(curve.name for curve in curves))
        shades = {name: theme.colour_of_arm(name, names) for name in names}
        size = {"class_": "swatch", "width": 24, "height": 12}
        swatches = {name: render_svg("swatch.svg.j2", "", size, shade=shades[name]) for name in names}
        drawn = {place: _draw_panel(place, panel, scale, shades) for place, panel in self.panels.items()}
        inputs = {"drawn": drawn, "panels": self.panels, "swatches": swatches, "caption": self.caption}
        return render_template("curves.html.j2", **inputs).text

    def __repr__(self) -> str:
        named = ((place, curve) for place, panel in self.panels.items() for curve in panel)
        return "\n".join(f"{place}, {curve.name}: {curve.description}" for place, curve in named)


def of_findings(findings: Sequence[FindingData]) -> tuple[Curves | None, set[str]]:
    """Effects of a session that are drawn against threads, and the ids of their findings."""
    drawn = [each for each in findings if is_curve(each.at_levels, not depends_on_threads(each))]
    return _build_curves([(finding, _curve_of_finding(finding)) for finding in drawn], CAPTION)


def over_sessions(pooled: MetaAnalysis) -> tuple[Curves | None, set[str]]:
    """Effects over sessions that are drawn against threads, and the ids of their contrasts."""
    drawn = [each for each in pooled.contrasts if is_curve(each.levels, each.one_number)]
    return _build_curves([(contrast, _curve_of_sessions(contrast)) for contrast in drawn], SEVERAL)


def is_curve(levels: Sequence[Any], is_one_number: bool) -> bool:
    """True if an effect is shown by threads: no number stands for all, or it hides too much."""
    logs = [forest.log_of(level.effect) for level in levels if number_format.is_known(level.effect)]
    is_level = is_one_number and (not logs or max(logs) - min(logs) < _APART)
    return len(levels) >= (_A_CURVE if is_level else 2)


def _build_curves(
    results: Iterable[tuple[FindingData | PooledContrast, Curve]], caption: str
) -> tuple[Curves | None, set[str]]:
    panels: dict[str, list[Curve]] = {}
    drawn = set()
    for of, curve in results:
        if len(curve.points) > 1:
            place = f"{labels.strip_article(of.names.workload)}{labels.beside_queries(of.metric)}"
            panels.setdefault(place, []).append(curve)
            drawn.add(of.id)
    return (Curves(panels, caption) if panels else None), drawn


def _curve_of_finding(finding: FindingData) -> Curve:
    points = []
    for level in finding.at_levels:
        if number_format.is_known(level.effect):
            is_decided = not isinstance(level, ByThreads) and level.label in forest.DECIDED
            points.append(Point(level.threads, level.effect, level.estimate.ends, is_decided))
    return Curve(labels.label_role(finding, "treatment"), f"#finding-{make_slug(finding.id)}", tuple(points))


def _curve_of_sessions(contrast: PooledContrast) -> Curve:
    points, sessions = [], dict[str, list[tuple[int, float]]]()
    for level in contrast.levels:
        if level.effect is None or level.threads is None:
            continue
        ends = forest.expected_range(level)
        points.append(Point(level.threads, level.effect, ends, bool(ends and ends[0] * ends[1] > 0)))
        for observed in level.sessions if len(level.sessions) > 1 else ():
            if observed.effect is not None:
                sessions.setdefault(observed.session, []).append((level.threads, observed.effect))
    beside = tuple(map(tuple, sessions.values()))
    name = labels.strip_article(contrast.names.treatment)
    return Curve(name, f"#finding-{make_slug(contrast.id)}", tuple(points), beside)


def _draw_panel(place: str, curves: Sequence[Curve], scale: Scale, shades: Mapping[str, str]) -> Html:
    levels = sorted({point.threads for curve in curves for point in curve.points})
    first, last = math.log(levels[0]), math.log(levels[-1])

    def at(threads: int, value: float) -> tuple[float, float]:
        across = _LEFT + (_RIGHT - _LEFT) * (math.log(threads) - first) / (last - first)
        return round(across, 2), round(_FOOT - (_FOOT - _TOP) * scale(value) / 100, 2)

    texts = "; ".join(f"{curve.name} {curve.description}" for curve in curves)
    alt = f"{place}, change against the baseline: {texts}"
    inputs = {"levels": levels, "ticks": scale.ticks, "at": at, "shades": shades}
    inputs |= {"curves": curves, "pairwise": pairwise, "count": count}
    return render_svg("curves.svg.j2", alt, {"class_": "curve", "width": "100%", "height": 240}, **inputs)
