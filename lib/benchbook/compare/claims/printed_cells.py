"""Claims put to the tables of their own document: a cell is one printed number, which has no interval.

Verdicts are holds, does not hold, or not derivable: a number that was printed once says nothing about its own
spread.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, get_args

from benchbook.compare.claims import verdict_text
from benchbook.compare.claims.bands import is_share, judged_by, limits, published_text
from benchbook.compare.claims.estimands import Item, NoCell, Series, Terms, Unfit, ask
from benchbook.compare.claims.judge import outcomes, verdict
from benchbook.compare.stats.intervals import Interval, t_quantile
from benchbook.compare.text import labels
from benchbook.compare.text.worked_arithmetic import cell_record, pair_record
from benchbook.core.artifacts.findings import Verdict
from benchbook.core.published.audit import Reading
from benchbook.core.published.claim import Beside, Claim, Condition, Selector
from benchbook.core.published.source import Number, Published
from benchbook.core.published.table_cells import (
    THREADS,
    Ambiguous,
    Cell,
    NoNumber,
    both_metrics,
    pair,
    select,
    shown,
    values,
)
from benchbook.core.util.errors import given
from benchbook.core.util.number_format import format_plain
from benchbook.core.util.plural import sentence

HOLDS, FAILS, OPEN = get_args(Reading)
READ: dict[Verdict, str] = {"confirmed": HOLDS, "contradicted": FAILS, "inconclusive": OPEN}
PRINTED_ONCE = "printed once"
RUN = "run"
"""The key that numbers repetitions of a cell: they are put together, with an interval."""
LEVEL = 0.95
COPIED = ("claim", "stands", "kind", "metric", "takes", "because", "note")
NO_NUMBERS = dict.fromkeys(("mean", "low", "high", "n_inside", "other_base"))


class Printed:
    """The cells of a document's tables, as `kinds.Board` asks for them."""

    def __init__(self, numbers: Sequence[Number]) -> None:
        self._numbers = numbers

    def cells(self, claim: Claim, metric: str, side: Selector | None, by: str | None) -> list[Cell]:
        """Return one printed number a cell, or what several come to `across` a key."""
        chosen = select(self._numbers, claim.cells, side)
        is_named = any(RUN in (each or {}) for each in (claim.cells, side))
        is_repeated = not is_named and any(one.key(RUN) is not None for one in chosen)
        return values(chosen, metric, claim.across or (RUN if is_repeated else None), by or "mean")

    def pairs(
        self, baseline: Sequence[Cell], treatment: Sequence[Cell], compared: set[str]
    ) -> tuple[list[Item], int]:
        """Pair cells that agree in every key but those compared."""
        found, alone = pair(list(baseline), list(treatment), compared)
        return [Item(one.place, one.treatment, one.baseline) for one in found], len(alone)

    def meets(self, claim: Claim, condition: Condition, cell: Cell) -> bool:
        """Tell whether a key of a cell, or a metric printed for it, lies between the ends of a condition."""
        if condition.key is not None:
            value: object = cell.place.get(condition.key)
        else:
            chosen = [one for one in self._numbers if (one.table, one.row) == (cell.table, cell.row)]
            beside = values(chosen, given(condition.metric))
            found = [other.value for other in beside if other.place == cell.place]
            value = found[0] if found else None
        if not isinstance(value, int | float):
            return False
        return (condition.above is None or value > condition.above) and (
            condition.below is None or value < condition.below
        )

    def none_left(self, claim: Claim, found: Sequence[Item]) -> str:
        """Say that no cells can be compared, or that none meets the conditions."""
        asked = []
        for condition in claim.where:
            ends = [
                f"{word} {end:g}"
                for word, end in (("above", condition.above), ("below", condition.below))
                if end is not None
            ]
            places = [one.place.get(condition.key) for one in found] if condition.key else []
            numbers = [place for place in places if isinstance(place, int | float)]
            has = f" (they have {min(numbers):g} to {max(numbers):g})" if numbers else ""
            name = labels.key(condition.key) if condition.key else labels.metric(given(condition.metric))
            asked.append(f"{name} {' and '.join(ends)}{has}")
        if found and asked:
            return f"none of its {len(found)} cells has {'; '.join(asked)}"
        return "no two cells can be compared"

    def series(self, items: Sequence[Item], key: str, free: tuple[str, ...] = ()) -> Series:
        """Return series in which nothing but a key differs; the arm is none where each has one level."""
        bound = {key, *(THREADS if key in THREADS else ()), *free}
        bound |= THREADS if "threads" in free else set()
        levelled = [one for one in items if one.place.get(key) is not None]
        found = _grouped(levelled, key, bound)
        if all(len({level for level, _ in levels}) < 2 for _, levels in found):
            found = _grouped(levelled, key, bound | {"arm"})
        for where, levels in found:
            repeated = len({level for level, _ in levels}) < len(levels)
            if repeated and not free:
                raise Ambiguous(f"{where or 'all'}: two cells have the same {labels.key(key)}")
        return found

    def group(self, item: Item) -> Hashable:
        """Every cell is shown."""
        return id(item)

    def named(self, items: Sequence[Item]) -> str:
        """Write the keys of the first."""
        return shown(items[0].place)

    def has(self, metric: str) -> bool:
        """Tell whether a metric was printed."""
        return set(both_metrics(metric)) <= {one.metric for one in self._numbers}

    def amount(self, terms: Terms) -> Interval:
        """Sum of logarithms of printed numbers, with a 95 % interval where they are means of several.

        A number that was printed once is as uncertain as one of the others. NoNumber where one has none.
        """
        total = []
        for cell, weight in terms:
            value = cell.value
            if value < 0 or (value == 0 and weight < 0):
                raise NoNumber(
                    f"{shown(cell.place)} has {format_plain(value)}, and nothing is a multiple of that"
                )
            total.append(weight * math.log(value) if value else -math.inf)
        mean = math.fsum(total) if -math.inf not in total else -math.inf
        repeated = [cell for cell, _ in terms if cell.log_error]
        if not repeated or not math.isfinite(mean):
            return Interval(1, 0.0, mean, reason=PRINTED_ONCE)
        each = math.fsum(cell.log_error**2 * cell.n for cell in repeated) / len(repeated)
        parts = [
            (weight**2 * (cell.log_error**2 if cell.log_error else each / cell.n), max(cell.n - 1, 1))
            for cell, weight in terms
        ]
        variance = math.fsum(part for part, _ in parts)
        df = variance**2 / math.fsum(part**2 / own for part, own in parts)
        half = t_quantile((1 + LEVEL) / 2, df) * math.sqrt(variance)
        n = min(cell.n for cell in repeated)
        return Interval(n, LEVEL, mean, mean - half, mean + half, math.sqrt(variance), df)


def judge(published: Published) -> list[dict[str, Any]]:
    """Judge every claim of a source, in the document's order."""
    return [judge_claim(published, name) for name in published.source.claims]


def judge_claim(published: Published, name: str) -> dict[str, Any]:
    """Judge one claim.

    The dict has id, claim, stands, kind, published (text), band ([low, high] or None), unit, judged_by,
    verdict, reason, recomputed (text), mean, low, high, cells (each with its arithmetic and is_inside),
    n_inside, n_cells, beside, note.
    """
    claim = published.source.claims[name]
    band = limits(claim)
    result: dict[str, Any] = {
        "id": f"{published.name}/{name}",
        **{key: getattr(claim, key) for key in COPIED},
        "published": published_text(claim),
        "band": None if band is None else [band.low, band.high],
        "is_share": is_share(claim),
        "judged_by": judged_by(claim),
        "verdict": OPEN,
        "reason": "",
        "recomputed": "",
        "cells": [],
        "n_cells": 0,
        **NO_NUMBERS,
        "put": claim.put.says if claim.put else None,
    }
    result |= put(claim, published.numbers)
    result |= _copied(claim, published, result)
    if told_pair := describe_measured_pair(claim, published.numbers):
        result["reason"] = f"{result['reason']} {told_pair}"
    result["beside"] = [_beside(beside, published.numbers) for beside in claim.beside]
    return result


def put(claim: Claim, numbers: Sequence[Number]) -> dict[str, Any]:
    """Put a claim to the numbers of its document; return what differs from a claim that nothing came of."""
    nothing = {"verdict": OPEN, "recomputed": OPEN}
    if claim.kind == "text_only":
        return {"verdict": OPEN, "reason": claim.because, "recomputed": "no table"}
    try:
        board = Printed(numbers)
        asked = ask(claim, board)
        records = {id(one): _record(one, claim) for one in asked.items}
        found = outcomes(asked, board, is_printed=True)
        own = verdict_text.of(claim, asked, found, records)
        return {"verdict": READ[verdict(asked, found, None)], **own}
    except NoCell as error:
        return {**nothing, "reason": sentence(str(error)), "recomputed": "no such cell"}
    except Unfit as error:
        return {**nothing, "reason": sentence(str(error))}
    except Ambiguous as error:
        return {**nothing, "reason": f"The tables contradict each other: {error}."}
    except NoNumber as error:
        return {**nothing, "reason": f"No number: {error}."}


def describe_measured_pair(claim: Claim, numbers: Sequence[Number]) -> str:
    """Sentence on the repeated arms that stand beside a baseline which is a single, stored number.

    Such a number is from another day, so arms that were repeated with the treatment make the better baseline.
    Empty where the baseline is repeated itself, or nothing else is.
    """
    if claim.kind != "effect" or not {"arm"} <= set(claim.baseline or {}) & set(claim.treatment or {}):
        return ""
    metric = given(claim.metric)
    runs = [one for one in select(numbers, claim.cells) if one.metric == metric and one.key(RUN) is not None]
    by_arm: dict[Any, set[Any]] = {}
    for one in runs:
        by_arm.setdefault(one.key("arm"), set()).add(one.key(RUN))
    stored, treated = given(claim.baseline)["arm"], given(claim.treatment)["arm"]
    if len(by_arm.get(stored, ())) != 1 or len(by_arm.get(treated, ())) < 2:
        return ""
    told = []
    for arm in (each for each in by_arm if each not in (stored, treated) and len(by_arm[each]) > 1):
        other = put(claim.model_copy(update={"baseline": {**given(claim.baseline), "arm": arm}}), numbers)
        told.append(f"against {arm}, which was repeated beside it, it is {other['recomputed']}")
    return f"The baseline {stored} is a single number; {'; '.join(told)}. Prefer that pair." if told else ""


def _grouped(items: Sequence[Item], key: str, bound: set[str]) -> Series:
    groups: dict[str, list[tuple[Any, Item]]] = {}
    for one in items:
        rest = shown({name: part for name, part in one.place.items() if name not in bound})
        groups.setdefault(rest, []).append((one.place[key], one))
    return [(where, sorted(own, key=lambda one: one[0])) for where, own in groups.items()]


def _record(one: Item, claim: Claim) -> dict[str, Any]:
    """Write a cell or a pair; one of several treatments is named."""
    if one.baseline is None:
        return cell_record(one.cell)
    several = [key for key, wanted in given(claim.treatment).items() if isinstance(wanted, tuple)]
    named = dict(one.place) | {key: one.cell.place[key] for key in several}
    return {**pair_record(verdict_text.as_pair(one)), "where": shown(named) or "all"}


def _copied(claim: Claim, published: Published, result: dict[str, Any]) -> dict[str, Any]:
    """Take the verdict away where a table that is used is another's; its arithmetic stays to be read."""
    if not result["cells"]:
        return {}
    sides: list[Selector | None] = [
        side for side in (claim.baseline, claim.treatment, claim.one, claim.other) if side is not None
    ]
    own = select(published.numbers, claim.cells)
    used = {one.table for side in sides or [None] for one in select(own, side)}
    tables = published.source.tables
    copies = {name: of for name in sorted(used) if (of := tables[name].copy_of) is not None}
    if not copies:
        return {}
    same = "; ".join(f"the table {name} is the table {of}, number for number" for name, of in copies.items())
    cells = [{**cell, "is_inside": None} for cell in result["cells"]]
    reason = f"Not what it is called: {same}, so what was measured under its name is not known."
    return {"verdict": OPEN, "reason": reason, "recomputed": OPEN, "cells": cells, **NO_NUMBERS}


def _beside(beside: Beside, numbers: Sequence[Number]) -> dict[str, Any]:
    records: list[dict[str, Any]]

    def side(selector: Selector | None) -> list[Cell]:
        return values(select(numbers, beside.cells, selector), beside.metric, beside.across, beside.by)

    try:
        if beside.baseline is not None and beside.treatment is not None:
            compared = {*beside.baseline, *beside.treatment}
            records = [
                pair_record(one) for one in pair(side(beside.baseline), side(beside.treatment), compared)[0]
            ]
        else:
            records = [verdict_text.divided(cell_record(one), one) for one in side(None)]
    except (Ambiguous, NoNumber) as error:
        return {"says": beside.says, "cells": [], "problem": str(error)}
    return {"says": beside.says, "cells": records, "problem": None}
