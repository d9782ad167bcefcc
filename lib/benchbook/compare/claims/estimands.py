"""Estimands of each kind of claim: sums of logarithms, each with bounds, decided as effects are.

A step of a trend is the difference of two logarithms, a proportion is a slope, which least squares make a
weighted sum. A cell is one printed number (`printed_cells`) or has a value in each block (`study_cells`).
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, Protocol

from benchbook.compare.claims.bands import Scale, claim_limits, judged_by, scale_bounds
from benchbook.compare.stats.equivalence import PRACTICAL, Bounds
from benchbook.compare.stats.intervals import Interval
from benchbook.compare.text import labels
from benchbook.core.published.claim import ClaimSpec, Condition, Selector
from benchbook.core.util.errors import require_value
from benchbook.core.util.grouping import group_by

BACK: Mapping[str, Callable[[float], float]] = {"share": math.expm1, "value": math.exp, "power": float}
"""What turns a logarithm into a part's number, by its scale; a power is none."""
# What is the more the better: of several such values at one level the highest says what can be done.
RATES = ("qps", "tps")


class NotApplicable(ValueError):
    """Claim that does not apply to these cells, or lacks numbers in them; the text has the cause."""


class NoCell(NotApplicable):
    """No cell is left of those that a claim speaks of."""


# One value of a metric, with its keys in `place`; each maker of cells has its own class for it.
Cell = Any
Terms = tuple[tuple[Cell, float], ...]
Rule = Literal["band", "size", "alike"]


@dataclass(frozen=True, eq=False)
class CellPair:
    """A cell, or two cells as a pair (`baseline` is None for one), and the logarithms of its number."""

    place: Mapping[str, Any]
    cell: Cell
    baseline: Cell | None = None

    @property
    def terms(self) -> Terms:
        """The value's logarithm, or that of treatment over baseline."""
        return ((self.cell, 1.0),) if self.baseline is None else ((self.cell, 1.0), (self.baseline, -1.0))


Series = list[tuple[str, list[tuple[Any, CellPair]]]]


class CellSource(Protocol):
    """Cells of one origin, their grouping into pairs and series, and their values."""

    def cells(self, claim: ClaimSpec, metric: str, side: Selector | None, by: str | None) -> list[Cell]:
        """Cells of a metric that a claim's `cells` and one of its sides select."""

    def pairs(self, baseline: list[Cell], treatment: list[Cell], compared: set[str]) -> list[CellPair]:
        """Pair cells that differ only in the keys compared."""

    def meets(self, condition: Condition, cell: Cell) -> bool:
        """True if a cell meets a condition of a claim."""

    def none_left(self, claim: ClaimSpec, cell_pairs: Sequence[CellPair]) -> str:
        """Reason that no cell is left of these items."""

    def series(self, items: Sequence[CellPair], key: str, free: tuple[str, ...] = ()) -> Series:
        """Series along a key with rising levels, by the values that are the same in each.

        Keys that are `free` may differ in a series; then a level may stand in it more than once.
        """

    def group(self, item: CellPair) -> Hashable:
        """Key of items that are shown as one if their mean decides."""

    def named(self, items: Sequence[CellPair]) -> str:
        """Place of such items, in words."""

    def has(self, metric: str) -> bool:
        """True if a metric has any number."""

    def amount(self, terms: Terms) -> Interval:
        """Sum of logarithms, with its interval if there is one."""


@dataclass(frozen=True, eq=False)
class Estimand:
    """One number that a claim is about: a weighted sum of logarithms, and its bounds.

    `scale` is `share` for a ratio less one, `value` for the metric itself, `power` for an exponent. `of` are
    the sums that it is the difference of, later one first: with the rule `size` the part says which of them
    is farther from nothing, with `alike` its bounds are what is near the second. A part that does not decide
    is for readers.
    """

    where: str
    terms: Terms
    bounds: Bounds
    scale: Scale = "share"
    rule: Rule = "band"
    of: tuple[Terms, ...] = ()
    items: tuple[CellPair, ...] = ()
    decides: bool = True
    margin: Literal["value", "points"] | None = None
    """How small a step of a trend says nothing: 1 % of a value, 2 points of an effect."""


@dataclass(frozen=True, eq=False)
class ClaimTest:
    """Test of a claim on a board: its parts, and the number of deciding parts that must hold.

    `items` are all cells or pairs that it speaks of, `alone` how many cells have no partner. `unseen` says
    why it can't hold, whatever its parts are: it may only fail or stay open. `is_sample` is true of single
    seconds, which a document prints a few of.
    """

    parts: list[Estimand]
    items: list[CellPair]
    must: Literal["all", "most"] = "all"
    alone: int = 0
    unseen: str | None = None
    is_sample: bool = False


def group_series(items: Iterable[CellPair], key: str, describe: Callable[[CellPair], str]) -> Series:
    """Series of the items that are described alike, along a key with rising levels."""
    groups = group_by(((item.place[key], item) for item in items), lambda entry: describe(entry[1]))
    return [(where, sorted(levels, key=lambda entry: entry[0])) for where, levels in groups.items()]


def build_test(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test of a claim on these cells; NotApplicable with the reason if it does not apply to them."""
    if claim.kind == "text_only":
        raise NotApplicable("it is a text without a number")
    return _KINDS[claim.kind](claim, board)


def _test_values(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test of values, or of treatment over baseline: of a point by their mean, else by each cell."""
    scale: Scale = "share" if claim.kind == "effect" else "value"
    cell_pairs, alone = _claim_items(claim, board)

    def meets(pair: CellPair, condition: Condition) -> bool:
        is_base = condition.of == "baseline" and pair.baseline is not None
        return board.meets(condition, pair.baseline if is_base else pair.cell)

    items = [pair for pair in cell_pairs if all(meets(pair, condition) for condition in claim.where)]
    if not items:
        raise NoCell(board.none_left(claim, cell_pairs))
    bounds = scale_bounds(require_value(claim_limits(claim)), scale)

    def build(where: str, group: Sequence[CellPair], decides: bool = True) -> Estimand:
        return Estimand(where, _mean_terms(group), bounds, scale, items=tuple(group), decides=decides)

    rule = judged_by(claim)
    if rule != "mean":
        each = [build(board.named([pair]), [pair]) for pair in items]
        is_sample = all("second" in item.place for item in items)
        return ClaimTest(each, items, "most" if rule == "most_cells" else "all", alone, is_sample=is_sample)
    groups = group_by(items, board.group)
    parts = [build(board.named(group), group, decides=len(groups) == 1) for group in groups.values()]
    if len(groups) > 1:
        parts.append(build("all of them together", items))
    return ClaimTest(parts, items, "all", alone)


def _test_trend(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test of a rise or a fall at every step along a key; of effects `grows` follows |ln ratio|."""
    key, is_value = require_value(claim.along), claim.baseline is None
    items, alone = _claim_items(claim, board)
    bounds = Bounds(0.0, is_strict=True)
    bounds = bounds if claim.direction in ("rises", "grows") else bounds.turned
    rule: Rule = "band" if is_value or claim.direction in ("rises", "falls") else "size"
    parts, ordered = [], []
    for where, levels in board.series(items, key):
        ordered += [level for _, level in levels]
        for (start, before), (end, after) in pairwise(levels):
            step = _describe_step(where, key, start, end)
            estimand = _difference_estimand(step, (after.terms, before.terms), bounds, (after,), rule)
            parts.append(replace(estimand, margin="value" if is_value else "points"))
    if not parts:
        raise NotApplicable(f"it has fewer than two levels of {labels.label_key(key)}")
    return ClaimTest(parts, ordered, alone=alone)


def _test_proportion(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test of the exponent b of y = a x^b by least squares on logarithms of the highest rate of a level."""
    key, metric = require_value(claim.along), require_value(claim.metric)
    bounds, parts = scale_bounds(require_value(claim_limits(claim)), "power"), []
    items = _unpaired_items(board.cells(claim, metric, None, None))
    for where, levels in board.series(items, key, ("threads",)):
        best: dict[float, CellPair] = {}
        for level, entries in group_by(levels, lambda entry: float(entry[0])).items():
            pairs = [pair for _, pair in entries]
            if len(pairs) > 1 and metric not in RATES:
                what = f"several values at one level of {labels.label_key(key)}"
                raise NotApplicable(f"{what}, and only of a rate does the highest count")
            best[level] = max(pairs, key=lambda pair: _log_mean(pair, board))
        if len(best) < 2 or min(best) <= 0:
            continue
        mean = math.fsum(map(math.log, best)) / len(best)
        squares = math.fsum((math.log(level) - mean) ** 2 for level in best)
        weighted = ((pair.terms, (math.log(level) - mean) / squares) for level, pair in best.items())
        terms = _sum_terms(*weighted)
        several = f", at the highest {metric.upper()} of each" if len(levels) > len(best) else ""
        parts.append(Estimand(f"{where}{several}", terms, bounds, "power", items=tuple(best.values())))
    if not parts:
        raise NotApplicable(f"it has fewer than two positive levels of {labels.label_key(key)}")
    return _test_of_parts(parts)


def _test_same_effect(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test that the changes along a key from its first level on are alike in two groups."""
    key, metric, parts = require_value(claim.along), require_value(claim.metric), []
    cells = [_unpaired_items(board.cells(claim, metric, side, claim.by)) for side in (claim.one, claim.other)]
    sides = [dict(board.series(items, key, ("arm", "name"))) for items in cells]
    for where, mine in sides[0].items():
        theirs = dict(sides[1].get(where, ()))
        both = [(level, pair, theirs[level]) for level, pair in mine if level in theirs]
        for level, cell_pair, other in both[1:]:
            names = [item.place.get("name") for item in (cell_pair, other)]
            beside = " beside ".join(map(str, names)) if all(names) else ""
            step = _describe_step(", ".join(filter(None, (beside, where))), key, both[0][0], level)
            of = (_subtract(cell_pair.terms, both[0][1].terms), _subtract(other.terms, both[0][2].terms))
            parts.append(_difference_estimand(step, of, Bounds(), (cell_pair, other), "alike"))
    if not parts:
        raise NotApplicable(f"the two have fewer than two levels of {labels.label_key(key)} in common")
    return _test_of_parts(parts)


def _test_peak(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test that no level outside the band has 1 % more than the best level inside it."""
    key, band = require_value(claim.along), scale_bounds(require_value(claim_limits(claim)), "power")
    parts, unseen = [], None
    bounds = Bounds(-math.inf, math.log1p(PRACTICAL))
    series = board.series(_claim_items(claim, board)[0], key)
    for where, levels in series:
        inside = [place for place in levels if band.holds(float(place[0]))]
        rest = [place for place in levels if place not in inside]
        if not inside or not rest:
            continue
        best = max(inside, key=lambda item: _log_mean(item[1], board))
        # Of a best that is the last level measured no fall was seen, so the claim can't hold.
        if best is levels[-1]:
            level = f"{labels.label_key(key)} {_format_level(best[0])}"
            unseen = f"highest at the last level, {level}: whether it rises further is not known"
        for level, pair in rest:
            step, of = _describe_step(where, key, best[0], level), (pair.terms, best[1].terms)
            parts.append(_difference_estimand(step, of, bounds, (pair, best[1])))
    if not parts:
        raise NotApplicable(f"it has no level of {labels.label_key(key)} inside the band, or none outside")
    return ClaimTest(parts, [place for _, levels in series for _, place in levels], unseen=unseen)


def _test_unit(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test the unit of a number: the written metric decides, the others stand beside it."""
    bounds, parts = scale_bounds(require_value(claim_limits(claim)), "value"), []
    for metric in dict.fromkeys((*claim.candidates, require_value(claim.metric))):
        items, is_own = _unpaired_items(board.cells(claim, metric, None, claim.by)), metric == claim.metric
        if items and (is_own or board.has(metric)):
            name, terms = f"as {metric}", _mean_terms(items)
            parts.append(Estimand(name, terms, bounds, "value", items=tuple(items), decides=is_own))
    return _test_of_parts(parts)


def _test_of_parts(parts: list[Estimand]) -> ClaimTest:
    return ClaimTest(parts, [item for part in parts for item in part.items])


def _claim_items(claim: ClaimSpec, board: CellSource) -> tuple[list[CellPair], int]:
    """Values or pairs that a claim speaks of, and the number of its cells without a partner."""
    metric = require_value(claim.metric)
    if claim.baseline is None:
        return _unpaired_items(board.cells(claim, metric, None, claim.by)), 0
    baseline = board.cells(claim, metric, claim.baseline, claim.baseline_by or claim.by)
    treatment = board.cells(claim, metric, claim.treatment, claim.by)
    pairs = board.pairs(baseline, treatment, {*claim.baseline, *require_value(claim.treatment)})
    paired = {id(cell) for pair in pairs for cell in (pair.cell, pair.baseline)}
    return pairs, sum(id(cell) not in paired for cell in (*baseline, *treatment))


def _unpaired_items(cells: Iterable[Cell]) -> list[CellPair]:
    return [CellPair(cell.place, cell) for cell in cells]


def _log_mean(cell_pair: CellPair, board: CellSource) -> float:
    log_mean = board.amount(cell_pair.terms).log_mean
    return -math.inf if log_mean is None else log_mean


def _difference_estimand(
    where: str, of: tuple[Terms, Terms], bounds: Bounds, items: tuple[CellPair, ...], rule: Rule = "band"
) -> Estimand:
    """Part for the difference of two sums, the first less the second."""
    return Estimand(where, _subtract(*of), bounds, "share", rule, of, items)


def _subtract(terms: Terms, other: Terms) -> Terms:
    return _sum_terms((terms, 1.0), (other, -1.0))


def _mean_terms(items: Sequence[CellPair]) -> Terms:
    return _sum_terms(*((item.terms, 1 / len(items)) for item in items))


def _sum_terms(*weighted: tuple[Terms, float]) -> Terms:
    """Add sums of logarithms, each times its weight; a cell stands in the sum once."""
    total: dict[int, tuple[Cell, float]] = {}
    for terms, factor in weighted:
        for cell, weight in terms:
            before = total[id(cell)][1] if id(cell) in total else 0.0
            total[id(cell)] = (cell, before + factor * weight)
    return tuple(total.values())


def _describe_step(where: str, key: str, start: object, end: object) -> str:
    place = f"{where}, " if where else ""
    return f"{place}{labels.label_key(key)} {_format_level(start)} to {_format_level(end)}"


def _format_level(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


_KINDS: dict[str, Callable[[ClaimSpec, CellSource], ClaimTest]] = {
    "effect": _test_values,
    "value": _test_values,
    "unit": _test_unit,
    "trend": _test_trend,
    "proportional": _test_proportion,
    "same_effect": _test_same_effect,
    "peak": _test_peak,
}
