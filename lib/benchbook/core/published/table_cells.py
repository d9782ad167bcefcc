"""Cells of a source's tables, and pairs of those of two arms: the start of every claim."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchbook.core.published.claim import Selector
from benchbook.core.published.source import Number, cell_keys
from benchbook.core.util.errors import did_you_mean
from benchbook.core.util.grouping import group_by

# Three names of one thing: threads are processes times threads of each.
THREADS = {"threads", "processes", "threads_per_process"}
# So many values are written out before they are only counted.
LISTED = 20


class Ambiguous(ValueError):
    """One cell has two different values, or two baselines: no number can be given."""


class NoNumber(ValueError):
    """Division by zero: there is no number, and the text names the divisor."""


@dataclass(frozen=True)
class TableCell:
    """One value with its derivation: `place` are its keys, `working` its arithmetic."""

    place: Mapping[str, Any]
    value: float
    working: str
    table: str
    row: int | None
    n: int = 1
    """Numbers that it is the mean of."""
    log_error: float | None = None
    """Standard error of that mean's logarithm; None of a single number, or of one that is no mean."""


@dataclass(frozen=True)
class Pair:
    """Two cells that differ only in the keys compared."""

    place: Mapping[str, Any]
    baseline: TableCell
    treatment: TableCell

    @property
    def effect(self) -> float:
        """Treatment over baseline, minus one; raises NoNumber over a baseline of zero."""
        if self.baseline.value == 0:
            where = f" at {place}" if (place := describe_place(self.place)) else ""
            raise NoNumber(f"the baseline is 0{where}, so there is no effect over it")
        return self.treatment.value / self.baseline.value - 1


def both_metrics(metric: str) -> tuple[str, ...]:
    """Metrics of an expression: one, or the two of `a / b`."""
    return tuple(part.strip() for part in metric.split("/"))


def select_numbers(numbers: Iterable[Number], *selectors: Selector | None) -> list[Number]:
    """Numbers with the requested values of keys; a tuple means any of them."""
    requests = [item for selector in selectors for item in (selector or {}).items()]
    any_of = [(key, wanted if isinstance(wanted, tuple) else (wanted,)) for key, wanted in requests]
    return [number for number in numbers if all(number.key(key) in wanted for key, wanted in any_of)]


def selector_errors(numbers: Sequence[Number], selector: Selector | None) -> Iterator[tuple[str, str]]:
    """Pairs (key, error) for keys and values that no cell has."""
    keys = ["table", *cell_keys(numbers)]
    for key, wanted in (selector or {}).items():
        if key not in keys:
            yield key, f"{key}: no table has this key; {did_you_mean(key, keys)}"
            continue
        present = list(dict.fromkeys(had for number in numbers if (had := number.key(key)) is not None))
        for value in wanted if isinstance(wanted, tuple) else (wanted,):
            if value in present:
                continue
            if not present:
                place = f'at: {{{key}: "{value}"}}' if isinstance(value, str) else f"at: {{{key}: {value}}}"
                ways = f"metric: {key} for the heading that holds it, or {place} for its table or column"
                remedy = f"no table says it: write {ways}"
            elif str(value) not in map(str, present):
                remedy = did_you_mean(str(value), map(str, present))
            elif isinstance(value, int | float):
                remedy = f'it is a text: write "{value}"'
            else:
                remedy = f"write {value}"
            yield key, f"{value}: no cell has this {key}; {remedy}"


def cell_values(
    numbers: Sequence[Number], metric: str, across: str | None = None, by: str = "mean"
) -> list[TableCell]:
    """Cells with one value each, in the order of the tables.

    `metric` is a metric or a ratio `a / b` of two in one row. With `across`, cells that differ only in
    that key are put together `by` mean, min, max or median first. Raise `Ambiguous` if two tables give one
    cell different values, `NoNumber` where the metric divides by zero.
    """
    numerator, *denominator = both_metrics(metric)
    top, below = (
        [cell for cell in numbers if cell.is_given and cell.metric in name]
        for name in ([numerator], denominator)
    )
    table_cells: list[TableCell] = []
    for number in top:
        place, at = (number.table, number.row), number.at
        if not denominator:
            table_cells.append(TableCell(at, number.value, number.written, *place))
        for other in below:
            if (other.table, other.row, other.at) != (*place, at):
                continue
            if other.value == 0:
                where = describe_place(at)
                raise NoNumber(f"{denominator[0]} is 0 at {where}, so nothing can be divided by it")
            working = f"{number.written} / {other.written}"
            table_cells.append(TableCell(at, number.value / other.value, working, *place))
    return _distinct_cells(_combine_cells(table_cells, across, by) if across else table_cells)


def pair_cells(baseline: list[TableCell], treatment: list[TableCell], compared: set[str]) -> list[Pair]:
    """Pair cells that agree in every key, none lacking on one side, but for the arm and those compared."""
    loose = {"arm", *THREADS} if compared & THREADS else {"arm"}
    shared = {key for cell in (*baseline, *treatment) for key in cell.place} - compared - loose

    def at(cell: TableCell) -> tuple[Any, ...]:
        return tuple(cell.place.get(key) for key in shared)

    there = group_by(baseline, at)
    pairs: list[Pair] = []
    for cell in treatment:
        match = there.get(at(cell), [])
        if len(match) > 1:
            what = f"{len(match)} baseline cells for {describe_place(cell.place)}"
            raise Ambiguous(f"{what}; name the key that tells them apart")
        place = {key: value for key, value in cell.place.items() if key != "arm"}
        pairs += [Pair(place, other, cell) for other in match]
    return pairs


def describe_place(place: Mapping[str, Any]) -> str:
    """Write the keys of a cell as people read them."""
    hidden = {"processes", "threads_per_process"} if "threads" in place else set()
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in place.items() if key not in hidden)


def _combine_cells(table_cells: list[TableCell], across: str, by: str) -> list[TableCell]:
    together = []
    for group in group_by(table_cells, lambda cell: _place_key(cell, across)).values():
        place = {key: value for key, value in group[0].place.items() if key != across}
        values, number = pd.Series([cell.value for cell in group]), len(group)
        value, working, error = float(getattr(values, by)()), group[0].working, None
        if number > 1:
            listed = ", ".join(cell.working for cell in group) if number <= LISTED else f"{number} values"
            working = f"{by} of {listed} = {value:.8g}"
            if by == "mean" and value > 0:
                error = float(values.std() / values.mean() / number**0.5)
        together.append(TableCell(place, value, working, group[0].table, None, number, error))
    return together


def _place_key(cell: TableCell, without: str = "") -> frozenset[tuple[str, str]]:
    return frozenset((key, str(value)) for key, value in cell.place.items() if key != without)


def _distinct_cells(table_cells: list[TableCell]) -> list[TableCell]:
    kept: dict[frozenset[tuple[str, str]], TableCell] = {}
    for cell in table_cells:
        first = kept.setdefault(_place_key(cell), cell)
        if first.value != cell.value:
            both = [f"{each.working} in table {each.table}" for each in (first, cell)]
            raise Ambiguous(f"{describe_place(cell.place)}: {', '.join(both)}; the claim must name its table")
    return list(kept.values())
