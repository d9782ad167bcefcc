"""Estimands of each kind of claim: sums of logarithms, each with bounds.

A step of a trend is the difference of two logarithms, a proportion is a slope, which least squares make a
weighted sum. So every kind is decided as an effect is, whether a cell is one printed number or has a value in
each of several blocks: the makers of cells (`printed`, `measured`) only say which cells there are.
"""

from __future__ import annotations

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

    def pairs(
        self, baseline: Sequence[Cell], treatment: Sequence[Cell], compared: set[str]
    ) -> list[CellPair]:
        """Pair cells that differ only in the keys compared."""

    def meets(self, claim: ClaimSpec, condition: Condition, cell: Cell) -> bool:
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
    rule: Literal["band", "size", "alike"] = "band"
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


def build_test(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test of a claim on these cells; Unfit with the reason if it does not apply to them."""
    return _KINDS[claim.kind](claim, board)


def _test_values(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Ask for values, or treatment over baseline: their mean, each or most, as the claim is judged by.

    "10 to 30 %" is false of a cell with +40 %, whatever the mean over cells, so that a range and a bound are
    asked of every cell; a point says where the cells centre.
    """
    is_effect = claim.kind == "effect"
    cell_pairs, alone = _claim_pairs(claim, board) if is_effect else (_claim_values(claim, board), 0)
    items = [
        cell_pair
        for cell_pair in cell_pairs
        if all(
            board.meets(
                claim,
                each,
                cell_pair.baseline if each.of == "baseline" and cell_pair.baseline else cell_pair.cell,
            )
            for each in claim.where
        )
    ]
    if not items:
        raise NoCell(board.none_left(claim, cell_pairs))
    scale: Scale = "share" if is_effect else "value"
    bounds = scale_bounds(require_value(claim_limits(claim)), scale)
    rule = judged_by(claim)
    if rule != "mean":
        each = [
            Estimand(board.named([cell_pair]), cell_pair.terms, bounds, scale, items=(cell_pair,))
            for cell_pair in items
        ]
        is_sample = all("second" in item.place for item in items)
        return ClaimTest(each, items, "most" if rule == "most_cells" else "all", alone, is_sample=is_sample)
    groups: dict[Hashable, list[CellPair]] = {}
    for item in items:
        groups.setdefault(board.group(item), []).append(item)
    is_one = len(groups) == 1
    parts = [
        Estimand(board.named(group), _mean_terms(group), bounds, scale, items=tuple(group), decides=is_one)
        for group in groups.values()
    ]
    if not is_one:
        parts.append(Estimand("all of them together", _mean_terms(items), bounds, scale, items=tuple(items)))
    return ClaimTest(parts, items, "all", alone)


def _test_trend(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Ask for a rise or a fall at every step along a key.

    `grows` and `shrinks` follow the size of an effect, which is its distance from nothing on the logarithmic
    scale: a loss of 20 % and a gain of 25 % are equally large.
    """
    key = require_value(claim.along)
    items, alone = (
        _claim_pairs(claim, board) if claim.baseline is not None else (_claim_values(claim, board), 0)
    )
    bounds = Bounds(0.0, is_strict=True)
    bounds = bounds if claim.direction in ("rises", "grows") else bounds.turned
    by_size = claim.baseline is not None and claim.direction in ("grows", "shrinks")
    parts, ordered = [], []
    for where, levels in board.series(items, key):
        ordered += [level for _, level in levels]
        for (start, before), (end, after) in pairwise(levels):
            step = _describe_step(where, key, start, end)
            rule: Literal["size", "band"] = "size" if by_size else "band"
            estimand = _difference_estimand(step, (after.terms, before.terms), bounds, (after,), rule)
            parts.append(replace(estimand, margin="value" if claim.baseline is None else "points"))
    if not parts:
        raise NotApplicable(f"it has fewer than two levels of {labels.label_key(key)}")
    return ClaimTest(parts, ordered, alone=alone)


def _test_proportion(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Ask for the exponent b of y = a x^b, by least squares on logarithms, wherever all else is the same.

    "The highest rate grows in proportion to the processors" speaks of what each number of processors can do.
    So where a level has several cells (more or fewer threads), the highest counts; other cells are not what
    the sentence is about, and a slope through all of them would mostly show how many threads were tried.
    """
    key, metric = require_value(claim.along), require_value(claim.metric)
    items = _unpaired_items(board.cells(claim, metric, None, None))
    parts: list[Estimand] = []
    used: list[CellPair] = []
    for where, levels in board.series(items, key, ("threads",)):
        by_level: dict[float, list[CellPair]] = {}
        for level, cell_pair in levels:
            by_level.setdefault(float(level), []).append(cell_pair)
        best = {
            level: _highest_item(level_pairs, metric, key, board) for level, level_pairs in by_level.items()
        }
        if len(best) < 2 or min(best) <= 0:
            continue
        mean = math.fsum(map(math.log, best)) / len(best)
        squares = math.fsum((math.log(level) - mean) ** 2 for level in best)
        terms = _sum_terms(
            *((pair.terms, (math.log(level) - mean) / squares) for level, pair in best.items())
        )
        cell_pairs, several = tuple(best.values()), len(levels) > len(best)
        where = f"{where}, at the highest {metric.upper()} of each" if several else where
        bounds = scale_bounds(require_value(claim_limits(claim)), "power")
        parts.append(Estimand(where, terms, bounds, "power", items=cell_pairs))
        used += cell_pairs
    if not parts:
        raise NotApplicable(f"it has fewer than two positive levels of {labels.label_key(key)}")
    return ClaimTest(parts, used)


def _test_same_effect(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test that the changes along a key from its first level on are alike in two groups."""
    key = require_value(claim.along)
    sides = [
        dict(
            board.series(
                _unpaired_items(board.cells(claim, require_value(claim.metric), side, claim.by)),
                key,
                ("arm", "name"),
            )
        )
        for side in (claim.one, claim.other)
    ]
    parts = []
    for where, mine in sides[0].items():
        theirs = dict(sides[1].get(where, ()))
        both = [(level, pair, theirs[level]) for level, pair in mine if level in theirs]
        for level, cell_pair, other in both[1:]:
            of = (_change_terms(cell_pair, both[0][1]), _change_terms(other, both[0][2]))
            names = [item.place.get("name") for item in (cell_pair, other)]
            beside = " beside ".join(map(str, names)) if all(names) else ""
            step = _describe_step(", ".join(filter(None, (beside, where))), key, both[0][0], level)
            parts.append(_difference_estimand(step, of, Bounds(), (cell_pair, other), "alike"))
    if not parts:
        raise NotApplicable(f"the two have fewer than two levels of {labels.label_key(key)} in common")
    return ClaimTest(parts, [item for part in parts for item in part.items])


def _test_peak(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Ask that no level outside the band has more than the best level inside it.

    "More than 500 connections bring nothing" is about the best that was reached on either side: what the last
    level before 500 gives is not held against 800 where 200 gave more than both. A lead of less than 1 % is
    no practical difference anywhere in this project, so it makes no other peak. Where the best is the last
    level measured, no fall was seen, so the claim can't hold; levels on one side alone show nothing.
    """
    key, band = require_value(claim.along), scale_bounds(require_value(claim_limits(claim)), "power")
    items = _claim_values(claim, board)
    parts, unseen = [], None
    bounds = Bounds(-math.inf, math.log1p(PRACTICAL))
    series = board.series(items, key)
    for where, levels in series:
        inside = [place for place in levels if band.holds(float(place[0]))]
        rest = [place for place in levels if place not in inside]
        if not inside or not rest:
            continue
        best = max(inside, key=lambda item: _log_mean(item[1], board))
        if best is levels[-1]:
            unseen = (
                f"highest at the last level, {labels.label_key(key)} {_format_level(best[0])}: "
                f"whether it rises further is not known"
            )
        for level, cell_pair in rest:
            step = _describe_step(where, key, best[0], level)
            parts.append(
                _difference_estimand(step, (cell_pair.terms, best[1].terms), bounds, (cell_pair, best[1]))
            )
    if not parts:
        raise NotApplicable(f"it has no level of {labels.label_key(key)} inside the band, or none outside")
    return ClaimTest(parts, [place for _, levels in series for _, place in levels], unseen=unseen)


def _test_unit(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    """Test the unit of a number: the written metric decides, the others stand beside it."""
    bounds, parts = scale_bounds(require_value(claim_limits(claim)), "value"), []
    for metric in dict.fromkeys((*claim.candidates, require_value(claim.metric))):
        items, is_own = _unpaired_items(board.cells(claim, metric, None, claim.by)), metric == claim.metric
        if items and (is_own or board.has(metric)):
            parts.append(
                Estimand(
                    f"as {metric}", _mean_terms(items), bounds, "value", items=tuple(items), decides=is_own
                )
            )
    return ClaimTest(parts, [item for part in parts for item in part.items])


def _text_only(claim: ClaimSpec, board: CellSource) -> ClaimTest:
    raise NotApplicable("it is a text without a number")


def _claim_pairs(claim: ClaimSpec, board: CellSource) -> tuple[list[CellPair], int]:
    """Pairs that a claim speaks of, and the number of its cells without a partner."""
    metric = require_value(claim.metric)
    baseline = board.cells(claim, metric, claim.baseline, claim.baseline_by or claim.by)
    treatment = board.cells(claim, metric, claim.treatment, claim.by)
    compared = {*require_value(claim.baseline), *require_value(claim.treatment)}
    pairs = board.pairs(baseline, treatment, compared)
    paired = {id(cell) for pair in pairs for cell in (pair.cell, pair.baseline)}
    return pairs, sum(id(cell) not in paired for cell in (*baseline, *treatment))


def _claim_values(claim: ClaimSpec, board: CellSource) -> list[CellPair]:
    return _unpaired_items(board.cells(claim, require_value(claim.metric), None, claim.by))


def _unpaired_items(cells: Iterable[Cell]) -> list[CellPair]:
    return [CellPair(cell.place, cell) for cell in cells]


def _highest_item(items: Sequence[CellPair], metric: str, key: str, board: CellSource) -> CellPair:
    if len(items) > 1 and metric not in RATES:
        raise NotApplicable(
            f"several values at one level of {labels.label_key(key)}, and only of a rate does the "
            "highest count"
        )
    return max(items, key=lambda item: _log_mean(item, board))


def _log_mean(cell_pair: CellPair, board: CellSource) -> float:
    log_mean = board.amount(cell_pair.terms).log_mean
    return -math.inf if log_mean is None else log_mean


def _difference_estimand(
    where: str,
    of: tuple[Terms, Terms],
    bounds: Bounds,
    items: tuple[CellPair, ...],
    rule: Literal["band", "size", "alike"] = "band",
) -> Estimand:
    """Part for the difference of two sums, the first less the second."""
    return Estimand(where, _sum_terms((of[0], 1.0), (of[1], -1.0)), bounds, "share", rule, of, items)


def _change_terms(cell_pair: CellPair, first: CellPair) -> Terms:
    return _sum_terms((cell_pair.terms, 1.0), (first.terms, -1.0))


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
    return (
        f"{where + ', ' if where else ''}{labels.label_key(key)} {_format_level(start)} to "
        f"{_format_level(end)}"
    )


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
    "text_only": _text_only,
}
