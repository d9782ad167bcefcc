"""Text of the verdict on a claim of each kind, for the page of its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from benchbook.compare.claims.bands import claim_limits, is_share, judged_by
from benchbook.compare.claims.estimands import BACK, CellPair, ClaimTest
from benchbook.compare.claims.judge import NOT_SHOWN, EstimandOutcome, judge_test
from benchbook.compare.stats.equivalence import EquivalenceBand as Limits
from benchbook.compare.text import labels
from benchbook.compare.text.sentences import render_paragraphs
from benchbook.compare.text.worked_arithmetic import pair_record, round_digits, write_amount, write_percent
from benchbook.core.published.claim import Claim, parse_amount
from benchbook.core.published.table_cells import Pair, TableCell
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import format_plain

Record = dict[str, Any]
Records = Mapping[int, Record]
RULES = {
    "mean": "The geometric mean",
    "every_cell": "Every cell",
    "most_cells": "More than half of the cells",
}


def describe_verdict(
    claim: Claim, claim_test: ClaimTest, estimand_outcomes: Sequence[EstimandOutcome], records: Records
) -> Record:
    """Written verdict on a claim: reason, recomputed, cells and their numbers.

    `records` are those of `asked.items`, by their `id`.
    """
    results, values = _KINDS[claim.kind](claim, claim_test, estimand_outcomes, records)
    reason, recomputed = render_paragraphs(
        "claim.j2",
        claim=claim,
        along=labels.label_key(claim.along or ""),
        made=results,
        of=len(estimand_outcomes),
        band=claim_limits(claim),
        amount=write_amount,
        share=is_share(claim),
        **values,
    )
    return {"n_cells": len(results["cells"]), "reason": reason, "recomputed": recomputed, **results}


def as_pair(cell_pair: CellPair) -> Pair:
    """Return two cells as the pair that they are."""
    return Pair(cell_pair.place, require_value(cell_pair.baseline), cell_pair.cell)


def add_quotient(record: Record, cell: TableCell) -> Record:
    """Add the quotient to the arithmetic of a ratio of two metrics."""
    ratio = f" = {format_plain(cell.value)}" if "/" in cell.working else ""
    return {**record, "arithmetic": f"{record['arithmetic']}{ratio}"}


def _describe_values(
    claim: Claim, claim_test: ClaimTest, estimand_outcomes: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    """Text of an effect or a value: the rule, the number of cells in the band, mean and range."""
    each = {
        id(estimand_outcome.part.items[0]): estimand_outcome.outcome == "confirmed"
        for estimand_outcome in estimand_outcomes
        if len(estimand_outcome.part.items) == 1
    }
    is_effect = claim.kind == "effect"
    cell_records = [
        {
            **(records[id(item)] if is_effect else add_quotient(records[id(item)], item.cell)),
            "is_inside": each[id(item)],
        }
        for item in claim_test.items
    ]
    numbers = [as_pair(item).effect if is_effect else item.cell.value for item in claim_test.items]
    less = 1 if is_effect else 0
    # With a value of zero or below there is none.
    mean = geometric_mean(number + less for number in numbers) - less if min(numbers) + less > 0 else None
    rule, band = require_value(judged_by(claim)), require_value(claim_limits(claim))
    if rule == "mean" and mean is None:
        return {"cells": cell_records, "verdict": "not derivable"}, {"numbers": []}
    inside = sum(record["is_inside"] for record in cell_records)
    outside = [
        (record["where"], number)
        for record, number in zip(cell_records, numbers, strict=True)
        if not record["is_inside"]
    ]
    parts = [estimand_outcome for estimand_outcome in estimand_outcomes if estimand_outcome.part.decides]
    is_held = all(part.outcome == "confirmed" for part in parts)
    failed = {
        "mean": not is_held,
        "every_cell": inside < len(cell_records),
        "most_cells": 2 * inside <= len(cell_records),
    }
    results: Record = {
        "cells": cell_records,
        "n_inside": inside,
        "mean": round_digits(mean),
        "low": round_digits(min(numbers)),
        "high": round_digits(max(numbers)),
    }
    found_at = _found_at(claim, cell_records, numbers) if is_effect and failed[rule] else []
    other = _other_base(claim_test, band, rule) if is_effect and failed[rule] and not found_at else None
    signs = [number for number in numbers if mean is not None and number * mean < 0] if is_effect else []
    results |= {"found_at": found_at} if found_at else {}
    results |= {"n_other_sign": len(signs)} if signs and rule == "mean" else {}
    results |= {"outside": [where for where, _ in outside]} if outside and rule == "every_cell" else {}
    values = {
        "numbers": numbers,
        "rule": RULES[rule],
        "mean": mean,
        "outside": outside if failed[rule] and rule == "every_cell" else [],
        "is_mean": rule == "mean",
        "other_sign": results.get("n_other_sign", 0),
        "found_at": found_at,
        "repeats": _repetition_intervals(estimand_outcomes),
        "is_open_sample": rule == "most_cells" and judge_test(claim_test, parts, None) == "inconclusive",
        "alone": claim_test.alone,
        "other": list(map(write_percent, other or [])),
    }
    if is_effect:
        results["other_base"] = None if other is None else [round_digits(value) for value in other]
    return results, values


def _other_base(claim_test: ClaimTest, band: Limits, rule: str) -> list[float] | None:
    """Growths divided by the new value, of cells or of their mean as the rule says, if all that
    decides then lies in the band, and a mean within a tenth of its middle; else None."""
    pairs = [as_pair(item) for item in claim_test.items]
    inverse = [1 - pair.baseline.value / pair.treatment.value for pair in pairs if pair.treatment.value]
    if band.low is None or band.high is None or len(inverse) != len(pairs) or max(inverse) >= 1:
        return None
    if rule != "mean" or len(inverse) == 1:
        return inverse if all(_is_inside(value, band) for value in inverse) else None
    mean, middle = 1 - geometric_mean(1 - value for value in inverse), (band.low + band.high) / 2
    return [mean] if abs(mean - middle) <= abs(middle) / 10 else None


def _found_at(claim: Claim, cell_records: Sequence[Record], numbers: Sequence[float]) -> list[str]:
    """Places of cells with the published number, rounded as it was published."""
    band = require_value(claim.band)
    if not isinstance(band.point, str) or len(cell_records) < 2:
        return []
    places = len(band.point.partition(".")[2].rstrip(" %"))
    wanted = round(100 * parse_amount(band.point), places)
    return [
        f"{write_percent(effect)} at {record['where']}"
        for record, effect in zip(cell_records, numbers, strict=True)
        if round(100 * effect, places) == wanted
    ]


def _repetition_intervals(
    estimand_outcomes: Sequence[EstimandOutcome],
) -> list[tuple[str, int, float, float, bool]]:
    """Parts with an interval by their own repetitions: place, n, both ends, open or not."""
    return [
        (
            estimand_outcome.part.where,
            estimand_outcome.amount.n,
            require_value(low),
            require_value(high),
            estimand_outcome.reason == NOT_SHOWN,
        )
        for estimand_outcome in estimand_outcomes
        if estimand_outcome.amount.is_known and estimand_outcome.part.scale != "power"
        for back in [BACK[estimand_outcome.part.scale]]
        for low, high in [
            (
                back(require_value(estimand_outcome.amount.log_low)),
                back(require_value(estimand_outcome.amount.log_high)),
            )
        ]
    ]


def _describe_trend(
    claim: Claim, claim_test: ClaimTest, estimand_outcomes: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    is_effect = claim.baseline is not None

    def number(cell_pair: CellPair) -> float:
        return as_pair(cell_pair).effect if is_effect else float(cell_pair.cell.value)

    write = write_percent if is_effect else format_plain
    inside = {
        id(estimand_outcome.part.items[0]): estimand_outcome.outcome == "confirmed"
        for estimand_outcome in estimand_outcomes
    }
    cell_records = [
        {**records[id(item)], **({"is_inside": inside[id(item)]} if id(item) in inside else {})}
        for item in claim_test.items
    ]
    before = {id(after): item for item, after in zip(claim_test.items, claim_test.items[1:], strict=False)}
    wrong = [
        (
            estimand_outcome.part.where,
            *(
                write(number(each))
                for each in (before[id(estimand_outcome.part.items[0])], estimand_outcome.part.items[0])
            ),
        )
        for estimand_outcome in estimand_outcomes
        if estimand_outcome.outcome != "confirmed" and not estimand_outcome.is_flat
    ]
    flat = [estimand_outcome.part.where for estimand_outcome in estimand_outcomes if estimand_outcome.is_flat]
    numbers = [number(item) for item in claim_test.items]
    ends = {"low": round_digits(min(numbers)), "high": round_digits(max(numbers))}
    held = sum(estimand_outcome.outcome == "confirmed" for estimand_outcome in estimand_outcomes)
    values = {"wrong": wrong, "flat": flat, "repeats": _repetition_intervals(estimand_outcomes)}
    return {"cells": cell_records, "n_inside": held, **ends}, values


def _describe_proportion(
    claim: Claim, claim_test: ClaimTest, estimand_outcomes: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    key, each, lines, cell_records = require_value(claim.along), [], [], []
    for estimand_outcome in estimand_outcomes:
        shares = [item.cell.value / item.place[key] for item in estimand_outcome.part.items]
        for item, share in zip(estimand_outcome.part.items, shares, strict=True):
            record = records[id(item)]
            work = (
                f"{record['arithmetic']} / {float(item.place[key]):g} = {format_plain(share)} for each, "
                f"{write_percent(share / shares[0] - 1)} against the first"
            )
            cell_records.append({**record, "value": round_digits(share), "arithmetic": work})
        where = estimand_outcome.part.where if len(estimand_outcomes) > 1 else ""
        lines.append(
            (
                where,
                require_value(estimand_outcome.amount.log_mean),
                write_percent(shares[-1] / shares[0] - 1),
            )
        )
        each += shares
    mean = round_digits(lines[0][1]) if len(lines) == 1 else None
    return {
        "cells": cell_records,
        "mean": mean,
        "low": round_digits(min(each)),
        "high": round_digits(max(each)),
    }, {"lines": lines}


def _describe_peak(
    claim: Claim, claim_test: ClaimTest, estimand_outcomes: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    key = require_value(claim.along)
    top = max(claim_test.items, key=lambda item: item.cell.value)
    best = [estimand_outcome.part.items[1] for estimand_outcome in estimand_outcomes]
    is_held = all(estimand_outcome.outcome == "confirmed" for estimand_outcome in estimand_outcomes)
    values = {
        "level": top.place[key],
        "value": format_plain(top.cell.value),
        "unseen": claim_test.unseen if is_held else None,
        "repeats": _repetition_intervals(estimand_outcomes),
        "inside": best[0].place[key] if best and top not in best and is_held else None,
    }
    return {"cells": [{**records[id(item)], "is_inside": item is top} for item in claim_test.items]}, values


def _same_effect(
    claim: Claim, claim_test: ClaimTest, estimand_outcomes: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    key, cell_records, effects = require_value(claim.along), [], []
    for estimand_outcome in estimand_outcomes:
        (mine, first), (its, other) = ([term[0] for term in terms] for terms in estimand_outcome.part.of)
        place: Mapping[str, Any] = estimand_outcome.part.items[0].place
        pairs: list[Any] = [Pair(place, first, mine), Pair(place, other, its)]
        this, that = map(pair_record, pairs)
        effects.append((pairs[0].effect, pairs[1].effect))
        cell_records.append(
            {
                **this,
                "is_inside": estimand_outcome.outcome == "confirmed",
                "other_baseline": that["baseline"],
                "other_treatment": that["treatment"],
                "where": f"{labels.label_key(key)} {place[key]}",
                "arithmetic": f"{this['arithmetic']}, beside {that['arithmetic']}",
            }
        )
    ends = [round_digits(end(mine for mine, _ in effects)) for end in (min, max)]
    inside = sum(item.outcome == "confirmed" for item in estimand_outcomes)
    texts = [f"{write_percent(mine, 1)} beside {write_percent(its, 1)}" for mine, its in effects]
    gaps = [(1 + mine) / (1 + its) - 1 for mine, its in effects]
    values = {"effects": texts, "gaps": list(map(write_percent, gaps))}
    return {"cells": cell_records, "n_inside": inside, "low": ends[0], "high": ends[1]}, values


def _describe_unit(
    claim: Claim, claim_test: ClaimTest, estimand_outcomes: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    point = require_value(claim.band).point
    claimed = float(point) if isinstance(point, int | float) else None
    cell_records = [
        {
            **records[id(item)],
            "where": estimand_outcome.part.where,
            "is_inside": estimand_outcome.outcome == "confirmed",
            "arithmetic": records[id(item)]["arithmetic"]
            + (f": {format_plain(item.cell.value / claimed)} times the published number" if claimed else ""),
        }
        for estimand_outcome in estimand_outcomes
        for item in estimand_outcome.part.items
    ]
    fits = [
        estimand_outcome.part.where.removeprefix("as ")
        for estimand_outcome in estimand_outcomes
        if estimand_outcome.outcome == "confirmed"
    ]
    return {"cells": cell_records, "n_inside": len(fits)}, {"fits": fits}


def _is_inside(value: float | None, band: Limits) -> bool:
    return (
        value is not None
        and (band.low is None or value >= band.low)
        and (band.high is None or value <= band.high)
    )


_KINDS: dict[str, Callable[[Claim, ClaimTest, Sequence[EstimandOutcome], Records], tuple[Record, Record]]] = {
    "effect": _describe_values,
    "value": _describe_values,
    "same_effect": _same_effect,
    "trend": _describe_trend,
    "proportional": _describe_proportion,
    "peak": _describe_peak,
    "unit": _describe_unit,
}
