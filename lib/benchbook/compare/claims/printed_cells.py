"""Claims on the tables of their own document: a cell is one printed number, with no interval."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, get_args

from benchbook.compare.claims import estimands, verdict_row
from benchbook.compare.claims.bands import claim_limits, is_share, judged_by, published_text
from benchbook.compare.claims.estimands import CellPair, NoCell, NotApplicable, Series, Terms, build_test
from benchbook.compare.claims.judge import judge_estimand, judge_test
from benchbook.compare.stats.intervals import Interval, t_quantile
from benchbook.compare.text import labels
from benchbook.compare.text.worked_arithmetic import cell_record, pair_record
from benchbook.core.artifacts.findings import Verdict
from benchbook.core.published import table_cells
from benchbook.core.published.audit import Reading
from benchbook.core.published.claim import ClaimSpec, Condition, Selector, Supplement
from benchbook.core.published.source import Number, Published
from benchbook.core.published.table_cells import THREADS, Ambiguous, NoNumber, TableCell, describe_place
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import format_plain
from benchbook.core.util.plural import as_sentence

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

    def cells(self, claim: ClaimSpec, metric: str, side: Selector | None, by: str | None) -> list[TableCell]:
        """Cells of one printed number each, or of several combined `across` a key."""
        chosen = table_cells.select_numbers(self._numbers, claim.cells, side)
        is_named = any(RUN in (each or {}) for each in (claim.cells, side))
        is_repeated = not is_named and any(number.key(RUN) is not None for number in chosen)
        across = claim.across or (RUN if is_repeated else None)
        return table_cells.cell_values(chosen, metric, across, by or "mean")

    def pairs(
        self, baseline: list[TableCell], treatment: list[TableCell], compared: set[str]
    ) -> list[CellPair]:
        pairs = table_cells.pair_cells(baseline, treatment, compared)
        return [CellPair(pair.place, pair.treatment, pair.baseline) for pair in pairs]

    def meets(self, condition: Condition, cell: TableCell) -> bool:
        """True if a key of a cell, or a metric printed for it, lies between the ends of a condition."""
        if condition.key is not None:
            value: object = cell.place.get(condition.key)
        else:
            row = (cell.table, cell.row)
            chosen = [number for number in self._numbers if (number.table, number.row) == row]
            beside = table_cells.cell_values(chosen, require_value(condition.metric))
            value = next((other.value for other in beside if other.place == cell.place), None)
        low, high = (-math.inf if condition.above is None else condition.above), condition.below
        return isinstance(value, int | float) and low < value < (math.inf if high is None else high)

    def none_left(self, claim: ClaimSpec, cell_pairs: Sequence[CellPair]) -> str:
        """Say that no cells can be compared, or that none meets the conditions."""
        requests = []
        for condition in claim.where:
            bounds = {"above": condition.above, "below": condition.below}
            ends = " and ".join(f"{word} {end:g}" for word, end in bounds.items() if end is not None)
            name, has = labels.label_metric(condition.metric or ""), ""
            if condition.key:
                name, places = labels.label_key(condition.key), (pair.place for pair in cell_pairs)
                keys = (place.get(condition.key) for place in places)
                numbers = [number for number in keys if isinstance(number, int | float)]
                has = f" (they have {min(numbers):g} to {max(numbers):g})" if numbers else ""
            requests.append(f"{name} {ends}{has}")
        if cell_pairs and requests:
            return f"none of its {len(cell_pairs)} cells has {'; '.join(requests)}"
        return "no two cells can be compared"

    def series(self, items: Sequence[CellPair], key: str, free: tuple[str, ...] = ()) -> Series:
        """Series with a difference in one key alone; the arm is None if each has one level."""
        bound = {key, *free, *(THREADS if {key, *free} & THREADS else ())}
        levelled = [item for item in items if item.place.get(key) is not None]
        series = _group_series(levelled, key, bound)
        if all(len(dict(levels)) < 2 for _, levels in series):
            series = _group_series(levelled, key, bound | {"arm"})
        for where, levels in series:
            if not free and len(dict(levels)) < len(levels):
                raise Ambiguous(f"{where or 'all'}: two cells have the same {labels.label_key(key)}")
        return series

    def group(self, item: CellPair) -> Hashable:
        """Every cell is shown."""
        return id(item)

    def named(self, items: Sequence[CellPair]) -> str:
        return describe_place(items[0].place)

    def has(self, metric: str) -> bool:
        return set(table_cells.both_metrics(metric)) <= {number.metric for number in self._numbers}

    def amount(self, terms: Terms) -> Interval:
        """Sum of logarithms of printed numbers, with a 95 % interval if they are means of several.

        A number that was printed once is as uncertain as one of the others. NoNumber where one has none.
        """
        total = []
        for cell, weight in terms:
            value = cell.value
            if value < 0 or (value == 0 and weight < 0):
                has = f"{describe_place(cell.place)} has {format_plain(value)}"
                raise NoNumber(f"{has}, and nothing is a multiple of that")
            total.append(weight * math.log(value) if value else -math.inf)
        mean = math.fsum(total)
        if not math.isfinite(mean) or not any(cell.log_error for cell, _ in terms):
            return Interval(1, 0.0, mean, reason=PRINTED_ONCE)
        return _welch_interval(mean, terms)


def _welch_interval(mean: float, terms: Terms) -> Interval:
    """Interval of a sum of which some numbers are means of several, by Welch's degrees of freedom."""
    repeated = [cell for cell, _ in terms if cell.log_error]
    each = math.fsum(cell.log_error**2 * cell.n for cell in repeated) / len(repeated)
    parts = [
        (weight**2 * (cell.log_error**2 if cell.log_error else each / cell.n), max(cell.n - 1, 1))
        for cell, weight in terms
    ]
    variance = math.fsum(part for part, _ in parts)
    df = variance**2 / math.fsum(part**2 / part_df for part, part_df in parts)
    half = t_quantile((1 + LEVEL) / 2, df) * math.sqrt(variance)
    n = min(cell.n for cell in repeated)
    return Interval(n, LEVEL, mean, mean - half, mean + half, math.sqrt(variance), df)


def judge_claim(published: Published, name: str) -> dict[str, Any]:
    """Judge one claim: the dict of an `AuditedClaim` without its doubts."""
    claim = published.source.claims[name]
    band = claim_limits(claim)
    result: dict[str, Any] = {
        "id": f"{published.name}/{name}",
        **{key: getattr(claim, key) for key in COPIED},
        "published": published_text(claim),
        "band": None if band is None else [band.low, band.high],
        "is_share": is_share(claim),
        "judged_by": judged_by(claim),
        **{"verdict": OPEN, "reason": "", "recomputed": "", "cells": [], "n_cells": 0, **NO_NUMBERS},
        "put": claim.put.says if claim.put else None,
    }
    result |= judge_printed(claim, published.numbers)
    result |= _withhold_copied(claim, published, result)
    if better_pair := describe_measured_pair(claim, published.numbers):
        result["reason"] = f"{result['reason']} {better_pair}"
    result["beside"] = [_supplementary_record(beside, published.numbers) for beside in claim.beside]
    return result


def judge_printed(claim: ClaimSpec, numbers: Sequence[Number]) -> dict[str, Any]:
    """Result of a claim on the numbers of its document, as changes to a result without an answer."""
    nothing = {"verdict": OPEN, "recomputed": ""}
    if claim.kind == "text_only":
        return {"verdict": OPEN, "reason": claim.because, "recomputed": "no table"}
    try:
        board = Printed(numbers)
        claim_test = build_test(claim, board)
        records = {id(item): _record_item(item, claim) for item in claim_test.items}
        outcomes = [judge_estimand(part, board, is_printed=True) for part in claim_test.parts]
        verdict = verdict_row.build_verdict(claim, claim_test, outcomes, records)
        return {"verdict": READ[judge_test(claim_test, outcomes, None)], **verdict}
    except NoCell as error:
        return {**nothing, "reason": as_sentence(str(error)), "recomputed": "no such cell"}
    except NotApplicable as error:
        return {**nothing, "reason": as_sentence(str(error))}
    except Ambiguous as error:
        return {**nothing, "reason": f"The tables contradict each other: {error}."}
    except NoNumber as error:
        return {**nothing, "reason": f"No number: {error}."}


def describe_measured_pair(claim: ClaimSpec, numbers: Sequence[Number]) -> str:
    """Sentence on the repeated arms beside a baseline that is a single, stored number, from another day.

    Empty where the baseline is repeated itself, or nothing else is.
    """
    stored, treated = ((side or {}).get("arm") for side in (claim.baseline, claim.treatment))
    runs = _count_runs(claim, numbers)
    others = [arm for arm in runs if arm != treated and runs[arm] > 1]
    if claim.kind != "effect" or None in (stored, treated) or runs[stored] != 1 or runs[treated] < 2:
        return ""
    report = []
    for arm in others:
        beside = claim.model_copy(update={"baseline": {**require_value(claim.baseline), "arm": arm}})
        recomputed = judge_printed(beside, numbers)["recomputed"]
        report.append(f"against {arm}, which was repeated beside it, it is {recomputed}")
    better = "; ".join(report)
    return f"The baseline {stored} is a single number; {better}. Prefer that pair." if report else ""


def _count_runs(claim: ClaimSpec, numbers: Sequence[Number]) -> Counter[Any]:
    """Number of repetitions of a claim's metric by arm, in the order of the tables."""
    chosen = table_cells.select_numbers(numbers, claim.cells)
    places = ((number.key("arm"), number.key(RUN)) for number in chosen if number.metric == claim.metric)
    return Counter(arm for arm, run in dict.fromkeys(places) if run is not None)


def _group_series(items: Sequence[CellPair], key: str, bound: set[str]) -> Series:
    def describe(item: CellPair) -> str:
        return describe_place({name: part for name, part in item.place.items() if name not in bound})

    return estimands.group_series(items, key, describe)


def _record_item(cell_pair: CellPair, claim: ClaimSpec) -> dict[str, Any]:
    """Write a cell or a pair; one of several treatments is named."""
    if cell_pair.baseline is None:
        return cell_record(cell_pair.cell)
    several = [key for key, wanted in require_value(claim.treatment).items() if isinstance(wanted, tuple)]
    named = dict(cell_pair.place) | {key: cell_pair.cell.place[key] for key in several}
    return {**pair_record(verdict_row.as_pair(cell_pair)), "where": describe_place(named) or "all"}


def _withhold_copied(claim: ClaimSpec, published: Published, result: dict[str, Any]) -> dict[str, Any]:
    """Result without a verdict if a table in use is another document's; its arithmetic stays."""
    both = (claim.baseline, claim.treatment, claim.one, claim.other)
    sides: list[Selector | None] = [side for side in both if side is not None]
    select, tables = table_cells.select_numbers, published.source.tables
    used = {
        number.table for side in sides or [None] for number in select(published.numbers, claim.cells, side)
    }
    copies = {name: of for name in sorted(used) if (of := tables[name].copy_of) is not None}
    if not copies or not result["cells"]:
        return {}
    same = "; ".join(f"the table {name} is the table {of}, number for number" for name, of in copies.items())
    cells = [{**cell, "is_inside": None} for cell in result["cells"]]
    reason = f"Not what it is called: {same}, so what was measured under its name is not known."
    return {"verdict": OPEN, "reason": reason, "recomputed": "", "cells": cells, **NO_NUMBERS}


def _supplementary_record(beside: Supplement, numbers: Sequence[Number]) -> dict[str, Any]:
    def side(selector: Selector | None) -> list[TableCell]:
        chosen = table_cells.select_numbers(numbers, beside.cells, selector)
        return table_cells.cell_values(chosen, beside.metric, beside.across, beside.by)

    try:
        if beside.baseline is None or beside.treatment is None:
            return {"says": beside.says, "cells": list(map(cell_record, side(None))), "problem": None}
        compared = {*beside.baseline, *beside.treatment}
        pairs = table_cells.pair_cells(side(beside.baseline), side(beside.treatment), compared)
        return {"says": beside.says, "cells": list(map(pair_record, pairs)), "problem": None}
    except (Ambiguous, NoNumber) as error:
        return {"says": beside.says, "cells": [], "problem": str(error)}
