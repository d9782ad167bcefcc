"""Text of the verdict on a claim of each kind, for the page of its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from benchbook.compare.claims.bands import claim_limits, is_share, judged_by
from benchbook.compare.claims.estimands import BACK, CellPair, ClaimTest
from benchbook.compare.claims.judge import NOT_SHOWN, EstimandOutcome
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
    claim: Claim, asked: ClaimTest, found: Sequence[EstimandOutcome], records: Records
) -> Record:
    """Written verdict on a claim: reason, recomputed, cells and their numbers.

    `records` are those of `asked.items`, by their `id`.
    """
    made, values = _KINDS[claim.kind](claim, asked, found, records)
    reason, recomputed = render_paragraphs(
        "claim.j2",
        claim=claim,
        along=labels.label_key(claim.along or ""),
        made=made,
        of=len(found),
        band=claim_limits(claim),
        amount=write_amount,
        share=is_share(claim),
        **values,
    )
    return {"n_cells": len(made["cells"]), "reason": reason, "recomputed": recomputed, **made}


def as_pair(one: CellPair) -> Pair:
    """Return two cells as the pair that they are."""
    return Pair(one.place, require_value(one.baseline), one.cell)


def add_quotient(record: Record, cell: TableCell) -> Record:
    """Add the quotient to the arithmetic of a ratio of two metrics."""
    ratio = f" = {format_plain(cell.value)}" if "/" in cell.working else ""
    return {**record, "arithmetic": f"{record['arithmetic']}{ratio}"}


def _describe_values(
    claim: Claim, asked: ClaimTest, found: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    """Text of an effect or a value: the rule, the number of cells in the band, mean and range."""
    each = {id(one.part.items[0]): one.outcome == "confirmed" for one in found if len(one.part.items) == 1}
    is_effect = claim.kind == "effect"
    own = [
        {
            **(records[id(one)] if is_effect else add_quotient(records[id(one)], one.cell)),
            "is_inside": each[id(one)],
        }
        for one in asked.items
    ]
    numbers = [as_pair(one).effect if is_effect else one.cell.value for one in asked.items]
    less = 1 if is_effect else 0
    # With a value of zero or below there is none.
    mean = geometric_mean(one + less for one in numbers) - less if min(numbers) + less > 0 else None
    rule, band = require_value(judged_by(claim)), require_value(claim_limits(claim))
    if rule == "mean" and mean is None:
        return {"cells": own, "verdict": "not derivable"}, {"numbers": []}
    inside = sum(record["is_inside"] for record in own)
    outside = [
        (record["where"], number)
        for record, number in zip(own, numbers, strict=True)
        if not record["is_inside"]
    ]
    parts = [one for one in found if one.part.decides]
    is_held = all(one.outcome == "confirmed" for one in parts)
    failed = {"mean": not is_held, "every_cell": inside < len(own), "most_cells": 2 * inside <= len(own)}
    made: Record = {
        "cells": own,
        "n_inside": inside,
        "mean": round_digits(mean),
        "low": round_digits(min(numbers)),
        "high": round_digits(max(numbers)),
    }
    found_at = _found_at(claim, own, numbers) if is_effect and failed[rule] else []
    other = _other_base(asked, band, rule) if is_effect and failed[rule] and not found_at else None
    signs = [number for number in numbers if mean is not None and number * mean < 0] if is_effect else []
    made |= {"found_at": found_at} if found_at else {}
    made |= {"outside": [where for where, _ in outside]} if outside and rule == "every_cell" else {}
    values = {
        "numbers": numbers,
        "rule": RULES[rule],
        "mean": mean,
        "outside": outside if failed[rule] and rule == "every_cell" else [],
        "is_mean": rule == "mean",
        "other_sign": len(signs) if rule == "mean" else 0,
        "found_at": found_at,
        "repeats": _repetition_intervals(found),
        "alone": asked.alone,
        "other": list(map(write_percent, other or [])),
    }
    if is_effect:
        made["other_base"] = None if other is None else [round_digits(one) for one in other]
    return made, values


def _other_base(asked: ClaimTest, band: Limits, rule: str) -> list[float] | None:
    """Growths divided by the new value, of cells or of their mean as the rule says, if all that
    decides then lies in the band, and a mean within a tenth of its middle; else None."""
    pairs = [as_pair(one) for one in asked.items]
    inverse = [1 - one.baseline.value / one.treatment.value for one in pairs if one.treatment.value]
    if band.low is None or band.high is None or len(inverse) != len(pairs) or max(inverse) >= 1:
        return None
    if rule != "mean" or len(inverse) == 1:
        return inverse if all(_is_inside(value, band) for value in inverse) else None
    mean, middle = 1 - geometric_mean(1 - one for one in inverse), (band.low + band.high) / 2
    return [mean] if abs(mean - middle) <= abs(middle) / 10 else None


def _found_at(claim: Claim, own: Sequence[Record], numbers: Sequence[float]) -> list[str]:
    """Places of cells with the published number, rounded as it was published."""
    band = require_value(claim.band)
    if not isinstance(band.point, str) or len(own) < 2:
        return []
    places = len(band.point.partition(".")[2].rstrip(" %"))
    wanted = round(100 * parse_amount(band.point), places)
    return [
        f"{write_percent(effect)} at {record['where']}"
        for record, effect in zip(own, numbers, strict=True)
        if round(100 * effect, places) == wanted
    ]


def _repetition_intervals(found: Sequence[EstimandOutcome]) -> list[tuple[str, int, float, float, bool]]:
    """Parts with an interval by their own repetitions: place, n, both ends, open or not."""
    return [
        (one.part.where, one.amount.n, require_value(low), require_value(high), one.reason == NOT_SHOWN)
        for one in found
        if one.amount.is_known and one.part.scale != "power"
        for back in [BACK[one.part.scale]]
        for low, high in [(back(require_value(one.amount.log_low)), back(require_value(one.amount.log_high)))]
    ]


def _describe_trend(
    claim: Claim, asked: ClaimTest, found: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    is_effect = claim.baseline is not None

    def number(one: CellPair) -> float:
        return as_pair(one).effect if is_effect else float(one.cell.value)

    write = write_percent if is_effect else format_plain
    inside = {id(one.part.items[0]): one.outcome == "confirmed" for one in found}
    own = [
        {**records[id(one)], **({"is_inside": inside[id(one)]} if id(one) in inside else {})}
        for one in asked.items
    ]
    before = {id(after): one for one, after in zip(asked.items, asked.items[1:], strict=False)}
    wrong = [
        (
            one.part.where,
            *(write(number(each)) for each in (before[id(one.part.items[0])], one.part.items[0])),
        )
        for one in found
        if one.outcome != "confirmed" and not one.is_flat
    ]
    flat = [one.part.where for one in found if one.is_flat]
    numbers = [number(one) for one in asked.items]
    ends = {"low": round_digits(min(numbers)), "high": round_digits(max(numbers))}
    held = sum(one.outcome == "confirmed" for one in found)
    values = {"wrong": wrong, "flat": flat, "repeats": _repetition_intervals(found)}
    return {"cells": own, "n_inside": held, **ends}, values


def _describe_proportion(
    claim: Claim, asked: ClaimTest, found: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    key, each, lines, own = require_value(claim.along), [], [], []
    for one in found:
        shares = [item.cell.value / item.place[key] for item in one.part.items]
        for item, share in zip(one.part.items, shares, strict=True):
            record = records[id(item)]
            work = (
                f"{record['arithmetic']} / {float(item.place[key]):g} = {format_plain(share)} for each, "
                f"{write_percent(share / shares[0] - 1)} against the first"
            )
            own.append({**record, "value": round_digits(share), "arithmetic": work})
        where = one.part.where if len(found) > 1 else ""
        lines.append((where, require_value(one.amount.log_mean), write_percent(shares[-1] / shares[0] - 1)))
        each += shares
    mean = round_digits(lines[0][1]) if len(lines) == 1 else None
    return {"cells": own, "mean": mean, "low": round_digits(min(each)), "high": round_digits(max(each))}, {
        "lines": lines
    }


def _describe_peak(
    claim: Claim, asked: ClaimTest, found: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    key = require_value(claim.along)
    top = max(asked.items, key=lambda one: one.cell.value)
    best = [one.part.items[1] for one in found]
    is_held = all(one.outcome == "confirmed" for one in found)
    values = {
        "level": top.place[key],
        "value": format_plain(top.cell.value),
        "unseen": asked.unseen if is_held else None,
        "repeats": _repetition_intervals(found),
        "inside": best[0].place[key] if best and top not in best and is_held else None,
    }
    return {"cells": [{**records[id(one)], "is_inside": one is top} for one in asked.items]}, values


def _same_effect(
    claim: Claim, asked: ClaimTest, found: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    key, own, effects = require_value(claim.along), [], []
    for one in found:
        (mine, first), (its, other) = ([term[0] for term in terms] for terms in one.part.of)
        place: Mapping[str, Any] = one.part.items[0].place
        pairs: list[Any] = [Pair(place, first, mine), Pair(place, other, its)]
        this, that = map(pair_record, pairs)
        effects.append((pairs[0].effect, pairs[1].effect))
        own.append(
            {
                **this,
                "is_inside": one.outcome == "confirmed",
                "other_baseline": that["baseline"],
                "other_treatment": that["treatment"],
                "where": f"{labels.label_key(key)} {place[key]}",
                "arithmetic": f"{this['arithmetic']}, beside {that['arithmetic']}",
            }
        )
    ends = [round_digits(end(mine for mine, _ in effects)) for end in (min, max)]
    inside = sum(one.outcome == "confirmed" for one in found)
    texts = [f"{write_percent(mine, 1)} beside {write_percent(its, 1)}" for mine, its in effects]
    gaps = [(1 + mine) / (1 + its) - 1 for mine, its in effects]
    values = {"effects": texts, "gaps": list(map(write_percent, gaps))}
    return {"cells": own, "n_inside": inside, "low": ends[0], "high": ends[1]}, values


def _describe_unit(
    claim: Claim, asked: ClaimTest, found: Sequence[EstimandOutcome], records: Records
) -> tuple[Record, Record]:
    point = require_value(claim.band).point
    claimed = float(point) if isinstance(point, int | float) else None
    own = [
        {
            **records[id(item)],
            "where": one.part.where,
            "is_inside": one.outcome == "confirmed",
            "arithmetic": records[id(item)]["arithmetic"]
            + (f": {format_plain(item.cell.value / claimed)} times the published number" if claimed else ""),
        }
        for one in found
        for item in one.part.items
    ]
    fits = [one.part.where.removeprefix("as ") for one in found if one.outcome == "confirmed"]
    return {"cells": own, "n_inside": len(fits)}, {"fits": fits}


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
