"""Verdicts on claims from tables without repetition: holds, does not hold, or not derivable.

No interval is ever given: one printed number a cell says nothing about its own spread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from benchbook.compare.arithmetic import (
    amount,
    cell_record,
    geometric_mean,
    mean_effect,
    pair_record,
    percent,
    plain,
    tidy,
)
from benchbook.compare.claimed import is_inside, is_share, judged_by, limits, published_text
from benchbook.compare.record_kinds import FAILS, HOLDS, OPEN, peak, proportional, same_effect, trend, unit
from benchbook.compare.verdicts import Band as Limits
from benchbook.core.cells import Ambiguous, Cell, NoNumber, Pair, pair, select, values
from benchbook.core.claim import Beside, Claim, Condition, Selector
from benchbook.core.errors import given
from benchbook.core.source import Published


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
        "claim": claim.claim,
        "stands": claim.stands,
        "kind": claim.kind,
        "metric": claim.metric,
        "published": published_text(claim),
        "band": None if band is None else [band.low, band.high],
        "is_share": is_share(claim),
        "judged_by": judged_by(claim),
        "verdict": OPEN,
        "reason": "",
        "recomputed": "",
        "mean": None,
        "low": None,
        "high": None,
        "cells": [],
        "n_inside": None,
        "n_cells": 0,
        "other_base": None,
        "takes": claim.takes,
        "because": claim.because,
        "note": claim.note,
        "put": claim.put.says if claim.put else None,
    }
    try:
        result |= _KINDS[claim.kind](claim, published.cells, band)
        result |= _copied(claim, published, result)
    except Ambiguous as error:
        result |= {
            "verdict": OPEN,
            "reason": f"The tables contradict each other: {error}.",
            "recomputed": OPEN,
        }
    except NoNumber as error:
        result |= {"verdict": OPEN, "reason": f"No number: {error}.", "recomputed": OPEN}
    result["beside"] = [_beside(beside, published.cells) for beside in claim.beside]
    return result


def _copied(claim: Claim, published: Published, result: dict[str, Any]) -> dict[str, Any]:
    """Take the verdict away where a table that is used is another's; its arithmetic stays to be read."""
    if not result["cells"]:
        return {}
    sides: list[Selector | None] = [
        side for side in (claim.baseline, claim.treatment, claim.one, claim.other) if side is not None
    ]
    own = select(published.cells, claim.cells)
    used = {table for side in sides or [None] for table in select(own, side)["table"]}
    tables = published.source.tables
    copies = {name: of for name in sorted(used) if (of := tables[name].copy_of) is not None}
    if not copies:
        return {}
    told = "; ".join(f"the table {name} is the table {of}, number for number" for name, of in copies.items())
    cells = [{**cell, "is_inside": None} for cell in result["cells"]]
    nothing = dict.fromkeys(("mean", "low", "high", "n_inside", "other_base"))
    reason = f"Not what it is called: {told}, so what was measured under its name is not known."
    return {"verdict": OPEN, "reason": reason, "recomputed": OPEN, "cells": cells, **nothing}


def _effect(claim: Claim, cells: pd.DataFrame, band: Limits | None) -> dict[str, Any]:
    asked = given(band)
    pairs, alone = _pairs(claim, cells)
    kept = [one for one in pairs if all(_meets(condition, one, claim, cells) for condition in claim.where)]
    if not kept:
        return _nothing(claim, pairs)
    records: list[dict[str, Any]] = [
        {**pair_record(one), "is_inside": is_inside(one.effect, asked)} for one in kept
    ]
    mean = mean_effect(kept)
    result = _judged([one.effect for one in kept], mean, records, claim, asked, True)
    inverse = [1 - one.baseline.value / one.treatment.value for one in kept if one.treatment.value]
    is_closed = asked.low is not None and asked.high is not None and len(inverse) == len(kept)
    fits = is_closed and all(is_inside(value, asked) for value in inverse)
    if result["verdict"] == FAILS and fits:
        shares = ", ".join(percent(value) for value in inverse)
        result["other_base"] = [tidy(value) for value in inverse]
        result["reason"] += (
            f" Divided by the treatment's value instead of the baseline's, the same cells give {shares}: "
            "the published figure is a growth divided by the new value."
        )
    if alone:
        result["reason"] += (
            f" Left out: {len(alone)} {'cell' if len(alone) == 1 else 'cells'} of these arms without a "
            "counterpart."
        )
    return result


def _value(claim: Claim, cells: pd.DataFrame, band: Limits | None) -> dict[str, Any]:
    asked = given(band)
    found = values(select(cells, claim.cells), given(claim.metric), claim.across, claim.by)
    kept = [one for one in found if all(_meets(condition, one, claim, cells) for condition in claim.where)]
    if not kept:
        return _nothing(claim, found)
    records: list[dict[str, Any]] = [
        {**cell_record(one), "is_inside": is_inside(one.value, asked)} for one in kept
    ]
    for record, one in zip(records, kept, strict=True):
        if "/" in one.working:
            record["arithmetic"] += f" = {plain(one.value)}"
    mean = geometric_mean([one.value for one in kept])
    is_share = given(claim.band).is_share
    return _judged([one.value for one in kept], mean, records, claim, asked, is_share)


def _judged(
    found: Sequence[float],
    mean: float | None,
    records: list[dict[str, Any]],
    claim: Claim,
    band: Limits,
    is_share: bool,
) -> dict[str, Any]:
    inside = sum(record["is_inside"] for record in records)
    rule = given(judged_by(claim))
    if rule == "mean" and mean is None:
        return {
            "verdict": OPEN,
            "cells": records,
            "n_cells": len(records),
            "recomputed": OPEN,
            "reason": "A value is zero or negative, so there is no geometric mean.",
        }
    held = {
        "mean": mean is not None and is_inside(mean, band),
        "every_cell": inside == len(records),
        "most_cells": inside > len(records) / 2,
    }[rule]
    low, high = min(found), max(found)
    spread = f"{amount(low, is_share)} to {amount(high, is_share)}"
    asked = {
        "mean": "The geometric mean",
        "every_cell": "Every cell",
        "most_cells": "More than half of the cells",
    }[rule]
    if len(records) == 1:
        parts = [f"The one cell must lie {_ends(band, is_share)}; it {'does' if inside else 'does not'}."]
    else:
        parts = [
            f"{asked} must lie {_ends(band, is_share)}. In there: {inside} of {len(records)} cells. "
            f"Geometric mean {amount(mean, is_share) if mean is not None else 'none'}, range {spread}."
        ]
    if rule != "mean" and not held and mean is not None and is_inside(mean, band) and len(records) > 1:
        parts.append("Only the geometric mean lies in the band.")
    one = amount(found[0], is_share) if len(records) == 1 else None
    return {
        "verdict": HOLDS if held else FAILS,
        "reason": " ".join(parts),
        "cells": records,
        "n_cells": len(records),
        "n_inside": inside,
        "mean": tidy(mean),
        "low": tidy(low),
        "high": tidy(high),
        "recomputed": one or f"{amount(mean, is_share) if mean is not None else 'no mean'} ({spread})",
    }


def _ends(band: Limits, is_share: bool) -> str:
    if band.high is None:
        return f"above {amount(given(band.low), is_share)}"
    if band.low is None:
        return f"below {amount(band.high, is_share)}"
    return f"between {amount(band.low, is_share)} and {amount(band.high, is_share)}"


def _pairs(claim: Claim | Beside, cells: pd.DataFrame) -> tuple[list[Pair], list[Cell]]:
    by = (claim.baseline_by if isinstance(claim, Claim) else None) or claim.by
    metric, chosen = given(claim.metric), select(cells, claim.cells)
    baseline = values(select(chosen, claim.baseline), metric, claim.across, by)
    treatment = values(select(chosen, claim.treatment), metric, claim.across, claim.by)
    return pair(baseline, treatment, set(given(claim.baseline)) | set(given(claim.treatment)))


def _meets(condition: Condition, one: Pair | Cell, claim: Claim, cells: pd.DataFrame) -> bool:
    cell: Cell = one if isinstance(one, Cell) else getattr(one, condition.of)
    if condition.key is not None:
        value: object = cell.place.get(condition.key)
    else:
        chosen = cells[(cells["table"] == cell.table) & (cells["row"] == cell.row)]
        printed = values(chosen, given(condition.metric))
        found = [other.value for other in printed if other.place == cell.place]
        value = found[0] if found else None
    if not isinstance(value, int | float):
        return False
    return (condition.above is None or value > condition.above) and (
        condition.below is None or value < condition.below
    )


def _nothing(claim: Claim, found: Sequence[Pair | Cell]) -> dict[str, Any]:
    """Say why no cell is left: none to compare, or none that meets the conditions."""
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
        name = (condition.key or given(condition.metric)).replace("_", " ")
        asked.append(f"{name} {' and '.join(ends)}{has}")
    text = (
        f"None of its {len(found)} cells has {'; '.join(asked)}."
        if found and asked
        else "No two cells can be compared."
    )
    return {"verdict": OPEN, "reason": text, "recomputed": "no such cell"}


def _text_only(claim: Claim, cells: pd.DataFrame, band: Limits | None) -> dict[str, Any]:
    return {"verdict": OPEN, "reason": claim.because, "recomputed": "no table"}


def _beside(beside: Beside, cells: pd.DataFrame) -> dict[str, Any]:
    records: list[dict[str, Any]]
    try:
        if beside.baseline is not None and beside.treatment is not None:
            records = [pair_record(one) for one in _pairs(beside, cells)[0]]
        else:
            found = values(select(cells, beside.cells), beside.metric, beside.across, beside.by)
            records = [cell_record(one) for one in found]
            for record, one in zip(records, found, strict=True):
                record["arithmetic"] += f" = {plain(one.value)}" if "/" in one.working else ""
    except (Ambiguous, NoNumber) as error:
        return {"says": beside.says, "cells": [], "problem": str(error)}
    return {"says": beside.says, "cells": records, "problem": None}


_KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "effect": _effect,
    "value": _value,
    "same_effect": same_effect,
    "trend": trend,
    "proportional": proportional,
    "peak": peak,
    "unit": unit,
    "text_only": _text_only,
}
