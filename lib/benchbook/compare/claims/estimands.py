"""What each kind of claim asks of cells: sums of logarithms, each with the bounds it must lie in.

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

from benchbook.compare.claims.bands import judged_by, limits, of_powers, of_shares, of_values
from benchbook.compare.stats.equivalence import PRACTICAL, Bounds
from benchbook.compare.stats.intervals import Interval
from benchbook.compare.text import labels
from benchbook.core.published.claim import Claim, Condition, Selector
from benchbook.core.util.errors import given

BACK: Mapping[str, Callable[[float], float]] = {"share": math.expm1, "value": math.exp, "power": float}
"""What turns a logarithm into a part's number, by its scale; a power is none."""
# What is the more the better: of several such values at one level the highest says what can be done.
RATES = ("qps", "tps")


class Unfit(ValueError):
    """A claim that these cells can't be asked, or whose numbers they do not have; the text says why."""


class NoCell(Unfit):
    """No cell is left of those that a claim speaks of."""


# One value of a metric, with its keys in `place`; each maker of cells has its own class for it.
Cell = Any
Terms = tuple[tuple[Cell, float], ...]


@dataclass(frozen=True, eq=False)
class Item:
    """A cell, or two cells as a pair (`baseline` is None for one), and the logarithms of its number."""

    place: Mapping[str, Any]
    cell: Cell
    baseline: Cell | None = None

    @property
    def terms(self) -> Terms:
        """The value's logarithm, or that of treatment over baseline."""
        return ((self.cell, 1.0),) if self.baseline is None else ((self.cell, 1.0), (self.baseline, -1.0))


Series = list[tuple[str, list[tuple[Any, Item]]]]


class Board(Protocol):
    """Cells of one origin: which there are, how they belong together, and what they come to."""

    def cells(self, claim: Claim, metric: str, side: Selector | None, by: str | None) -> list[Cell]:
        """Return the cells of a metric that a claim's `cells` and one of its sides select."""

    def pairs(
        self, baseline: Sequence[Cell], treatment: Sequence[Cell], compared: set[str]
    ) -> tuple[list[Item], int]:
        """Pair cells that differ only in what is compared; return the pairs and how many have no partner."""

    def meets(self, claim: Claim, condition: Condition, cell: Cell) -> bool:
        """Tell whether a cell meets a condition of a claim."""

    def none_left(self, claim: Claim, found: Sequence[Item]) -> str:
        """Say why no cell is left of those found."""

    def series(self, items: Sequence[Item], key: str, free: tuple[str, ...] = ()) -> Series:
        """Return series along a key, by what is the same in each, with rising levels.

        Keys that are `free` may differ in a series; then a level may stand in it more than once.
        """

    def group(self, item: Item) -> Hashable:
        """Return what items have in common that are shown as one where their mean decides."""

    def named(self, items: Sequence[Item]) -> str:
        """Write where such items are, for readers."""

    def has(self, metric: str) -> bool:
        """Tell whether a metric has any number."""

    def amount(self, terms: Terms) -> Interval:
        """Return a sum of logarithms, with its interval if there is one."""


@dataclass(frozen=True, eq=False)
class Part:
    """One number that a claim asks for: a weighted sum of logarithms, and where it must lie.

    `scale` is `share` for a ratio less one, `value` for the metric itself, `power` for an exponent. `of` are
    the sums that it is the difference of, later one first: with the rule `size` the part says which of them
    is farther from nothing, with `alike` its bounds are what is near the second. A part that does not decide
    is for readers.
    """

    where: str
    terms: Terms
    bounds: Bounds
    scale: Literal["share", "value", "power"] = "share"
    rule: Literal["band", "size", "alike"] = "band"
    of: tuple[Terms, ...] = ()
    items: tuple[Item, ...] = ()
    decides: bool = True
    margin: Literal["value", "points"] | None = None
    """How small a step of a trend says nothing: 1 % of a value, 2 points of an effect."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What a claim asks of a board: its parts, and how many of those that decide must hold.

    `items` are all cells or pairs that it speaks of, `alone` how many cells have no partner. `unseen` says
    why it can't hold, whatever its parts are: it may only fail or stay open.
    """

    parts: list[Part]
    items: list[Item]
    must: Literal["all", "most"] = "all"
    alone: int = 0
    unseen: str | None = None


def ask(claim: Claim, board: Board) -> Asked:
    """Return what a claim asks of these cells; Unfit with the reason where they can't be asked it."""
    return _KINDS[claim.kind](claim, board)


def _several(claim: Claim, board: Board) -> Asked:
    """Ask for values, or treatment over baseline: their mean, each or most, as the claim is judged by.

    "10 to 30 %" is false of a cell with +40 %, whatever the mean over cells, so that a range and a bound are
    asked of every cell; a point says where the cells centre.
    """
    is_effect = claim.kind == "effect"
    found, alone = _pairs(claim, board) if is_effect else (_values(claim, board), 0)
    items = [
        one
        for one in found
        if all(
            board.meets(claim, each, one.baseline if each.of == "baseline" and one.baseline else one.cell)
            for each in claim.where
        )
    ]
    if not items:
        raise NoCell(board.none_left(claim, found))
    scale: Literal["share", "value"] = "share" if is_effect else "value"
    bounds, rule = (of_shares if is_effect else of_values)(given(limits(claim))), judged_by(claim)
    if rule != "mean":
        each = [Part(board.named([one]), one.terms, bounds, scale, items=(one,)) for one in items]
        return Asked(each, items, "most" if rule == "most_cells" else "all", alone)
    groups: dict[Hashable, list[Item]] = {}
    for one in items:
        groups.setdefault(board.group(one), []).append(one)
    is_one = len(groups) == 1
    parts = [
        Part(board.named(own), _mean(own), bounds, scale, items=tuple(own), decides=is_one)
        for own in groups.values()
    ]
    if not is_one:
        parts.append(Part("all of them together", _mean(items), bounds, scale, items=tuple(items)))
    return Asked(parts, items, "all", alone)


def _trend(claim: Claim, board: Board) -> Asked:
    """Ask for a rise or a fall at every step along a key.

    `grows` and `shrinks` follow the size of an effect, which is its distance from nothing on the logarithmic
    scale: a loss of 20 % and a gain of 25 % are equally large.
    """
    key = given(claim.along)
    items, alone = _pairs(claim, board) if claim.baseline is not None else (_values(claim, board), 0)
    bounds = Bounds(0.0, is_strict=True)
    bounds = bounds if claim.direction in ("rises", "grows") else bounds.turned
    by_size = claim.baseline is not None and claim.direction in ("grows", "shrinks")
    parts, ordered = [], []
    for where, levels in board.series(items, key):
        ordered += [one for _, one in levels]
        for (start, before), (end, after) in pairwise(levels):
            step = _step(where, key, start, end)
            rule: Literal["size", "band"] = "size" if by_size else "band"
            made = _less(step, (after.terms, before.terms), bounds, (after,), rule)
            parts.append(replace(made, margin="value" if claim.baseline is None else "points"))
    if not parts:
        raise Unfit(f"it has fewer than two levels of {labels.key(key)}")
    return Asked(parts, ordered, alone=alone)


def _proportional(claim: Claim, board: Board) -> Asked:
    """Ask for the exponent b of y = a x^b, by least squares on logarithms, wherever all else is the same.

    "The highest rate grows in proportion to the processors" speaks of what each number of processors can do.
    So where a level has several cells (more or fewer threads), the highest counts; other cells are not what
    the sentence is about, and a slope through all of them would mostly show how many threads were tried.
    """
    key, metric = given(claim.along), given(claim.metric)
    items = _items(board.cells(claim, metric, None, None))
    parts: list[Part] = []
    used: list[Item] = []
    for where, levels in board.series(items, key, ("threads",)):
        by_level: dict[float, list[Item]] = {}
        for level, one in levels:
            by_level.setdefault(float(level), []).append(one)
        best = {level: _highest(own, metric, key, board) for level, own in by_level.items()}
        if len(best) < 2 or min(best) <= 0:
            continue
        mean = math.fsum(map(math.log, best)) / len(best)
        squares = math.fsum((math.log(level) - mean) ** 2 for level in best)
        terms = _sum(*((one.terms, (math.log(level) - mean) / squares) for level, one in best.items()))
        own, several = tuple(best.values()), len(levels) > len(best)
        where = f"{where}, at the highest {metric.upper()} of each" if several else where
        parts.append(Part(where, terms, of_powers(given(limits(claim))), "power", items=own))
        used += own
    if not parts:
        raise Unfit(f"it has fewer than two positive levels of {labels.key(key)}")
    return Asked(parts, used)


def _same_effect(claim: Claim, board: Board) -> Asked:
    """Ask that what a key changes from its first level on is alike in two groups: near the other's change."""
    key = given(claim.along)
    sides = [
        dict(
            board.series(
                _items(board.cells(claim, given(claim.metric), side, claim.by)), key, ("arm", "name")
            )
        )
        for side in (claim.one, claim.other)
    ]
    parts = []
    for where, mine in sides[0].items():
        theirs = dict(sides[1].get(where, ()))
        both = [(level, one, theirs[level]) for level, one in mine if level in theirs]
        for level, one, other in both[1:]:
            of = (_from(one, both[0][1]), _from(other, both[0][2]))
            names = [item.place.get("name") for item in (one, other)]
            beside = " beside ".join(map(str, names)) if all(names) else ""
            step = _step(", ".join(filter(None, (beside, where))), key, both[0][0], level)
            parts.append(_less(step, of, Bounds(), (one, other), "alike"))
    if not parts:
        raise Unfit(f"the two have fewer than two levels of {labels.key(key)} in common")
    return Asked(parts, [one for part in parts for one in part.items])


def _peak(claim: Claim, board: Board) -> Asked:
    """Ask that no level outside the band has more than the best level inside it.

    "More than 500 connections bring nothing" is about the best that was reached on either side: what the last
    level before 500 gives is not held against 800 where 200 gave more than both. A lead of less than 1 % is
    no practical difference anywhere in this project, so it makes no other peak. Where the best is the last
    level measured, no fall was seen, so the claim can't hold; levels on one side alone show nothing.
    """
    key, band = given(claim.along), of_powers(given(limits(claim)))
    items = _values(claim, board)
    parts, unseen = [], None
    bounds = Bounds(-math.inf, math.log1p(PRACTICAL))
    series = board.series(items, key)
    for where, levels in series:
        inside = [one for one in levels if band.holds(float(one[0]))]
        rest = [one for one in levels if one not in inside]
        if not inside or not rest:
            continue
        best = max(inside, key=lambda one: _size(one[1], board))
        if best is levels[-1]:
            unseen = (
                f"highest at the last level, {labels.key(key)} {_level(best[0])}: "
                f"whether it rises further is "
                "not known"
            )
        for level, one in rest:
            step = _step(where, key, best[0], level)
            parts.append(_less(step, (one.terms, best[1].terms), bounds, (one, best[1])))
    if not parts:
        raise Unfit(f"it has no level of {labels.key(key)} inside the band, or none outside")
    return Asked(parts, [one for _, levels in series for _, one in levels], unseen=unseen)


def _unit(claim: Claim, board: Board) -> Asked:
    """Ask which metric a number is: the one that was written decides, the others stand beside it."""
    bounds, parts = of_values(given(limits(claim))), []
    for metric in dict.fromkeys((*claim.candidates, given(claim.metric))):
        items, is_own = _items(board.cells(claim, metric, None, claim.by)), metric == claim.metric
        if items and (is_own or board.has(metric)):
            parts.append(
                Part(f"as {metric}", _mean(items), bounds, "value", items=tuple(items), decides=is_own)
            )
    return Asked(parts, [one for part in parts for one in part.items])


def _text_only(claim: Claim, board: Board) -> Asked:
    raise Unfit("it is a text without a number")


def _pairs(claim: Claim, board: Board) -> tuple[list[Item], int]:
    metric = given(claim.metric)
    baseline = board.cells(claim, metric, claim.baseline, claim.baseline_by or claim.by)
    treatment = board.cells(claim, metric, claim.treatment, claim.by)
    return board.pairs(baseline, treatment, {*given(claim.baseline), *given(claim.treatment)})


def _values(claim: Claim, board: Board) -> list[Item]:
    return _items(board.cells(claim, given(claim.metric), None, claim.by))


def _items(cells: Iterable[Cell]) -> list[Item]:
    return [Item(cell.place, cell) for cell in cells]


def _highest(items: Sequence[Item], metric: str, key: str, board: Board) -> Item:
    if len(items) > 1 and metric not in RATES:
        raise Unfit(
            f"several values at one level of {labels.key(key)}, and only of a rate does the highest count"
        )
    return max(items, key=lambda one: _size(one, board))


def _size(one: Item, board: Board) -> float:
    found = board.amount(one.terms).log_mean
    return -math.inf if found is None else found


def _less(
    where: str,
    of: tuple[Terms, Terms],
    bounds: Bounds,
    items: tuple[Item, ...],
    rule: Literal["band", "size", "alike"] = "band",
) -> Part:
    """Return the part that asks for the first of two sums less the second."""
    return Part(where, _sum((of[0], 1.0), (of[1], -1.0)), bounds, "share", rule, of, items)


def _from(one: Item, first: Item) -> Terms:
    return _sum((one.terms, 1.0), (first.terms, -1.0))


def _mean(items: Sequence[Item]) -> Terms:
    return _sum(*((one.terms, 1 / len(items)) for one in items))


def _sum(*weighted: tuple[Terms, float]) -> Terms:
    """Add sums of logarithms, each times its weight; a cell stands in the sum once."""
    total: dict[int, tuple[Cell, float]] = {}
    for terms, factor in weighted:
        for cell, weight in terms:
            before = total[id(cell)][1] if id(cell) in total else 0.0
            total[id(cell)] = (cell, before + factor * weight)
    return tuple(total.values())


def _step(where: str, key: str, start: object, end: object) -> str:
    return f"{where + ', ' if where else ''}{labels.key(key)} {_level(start)} to {_level(end)}"


def _level(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


_KINDS: dict[str, Callable[[Claim, Board], Asked]] = {
    "effect": _several,
    "value": _several,
    "unit": _unit,
    "trend": _trend,
    "proportional": _proportional,
    "same_effect": _same_effect,
    "peak": _peak,
    "text_only": _text_only,
}
