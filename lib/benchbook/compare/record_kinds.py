"""Claims that are no single effect or value: trends, proportions, equal effects, units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pandas as pd

from benchbook.compare.arithmetic import cell_record, pair_record, percent, plain, tidy
from benchbook.compare.verdicts import Band as Limits
from benchbook.compare.verdicts import Reading, point_band
from benchbook.core.cells import Cell, Pair, pair, select, shown, values
from benchbook.core.claim import Claim
from benchbook.core.errors import given

HOLDS, FAILS, OPEN = get_args(Reading)


def trend(claim: Claim, cells: pd.DataFrame, band: Limits | None) -> dict[str, Any]:
    """Judge whether a value or an effect rises, falls, grows or shrinks at every step along a key."""
    metric, key, direction = given(claim.metric), given(claim.along), given(claim.direction)
    write: Callable[[float], str]
    if claim.baseline is not None and claim.treatment is not None:
        before, after = (
            values(select(select(cells, claim.cells), side), metric, claim.across, claim.by)
            for side in (claim.baseline, claim.treatment)
        )
        found: list[tuple[Mapping[str, Any], float, dict[str, Any]]] = [
            (one.place, one.effect, pair_record(one))
            for one in pair(before, after, set(claim.baseline) | set(claim.treatment))[0]
        ]
        write = percent
    else:
        found = [
            (one.place, one.value, cell_record(one))
            for one in values(select(cells, claim.cells), metric, claim.across, claim.by)
        ]
        write = plain
    groups: dict[str, list[tuple[Any, float, dict[str, Any]]]] = {}
    bound = {key, "processes", "threads_per_process"} if key == "threads" else {key}
    for place, value, record in found:
        rest = shown({name: part for name, part in place.items() if name not in bound})
        groups.setdefault(rest, []).append((place.get(key), value, record))
    steps, wrong, records = 0, [], []
    for group, members in groups.items():
        ordered = sorted(members, key=lambda member: member[0])
        records += [record for _, _, record in ordered]
        for (start, low, _), (end, high, record) in pairwise(ordered):
            steps += 1
            record["is_inside"] = _goes(direction, low, high)
            if not record["is_inside"]:
                wrong.append(
                    f"{group + ', ' if group else ''}{key.replace('_', ' ')} {start} to {end}: "
                    f"{write(low)} to {write(high)}"
                )
    if not steps:
        return {
            "verdict": OPEN,
            "reason": "Fewer than two levels: no trend can be seen.",
            "recomputed": OPEN,
            "cells": records,
            "n_cells": len(records),
        }
    along = key.replace("_", " ")
    text = f"It {direction} at {steps - len(wrong)} of {steps} steps along {along}."
    if wrong:
        text += f" Not at: {'; '.join(wrong)}."
    series = [value for _, value, _ in found]
    return {
        "verdict": FAILS if wrong else HOLDS,
        "reason": text,
        "cells": records,
        "n_cells": len(records),
        "n_inside": steps - len(wrong),
        "low": tidy(min(series)),
        "high": tidy(max(series)),
        "recomputed": f"{claim.direction} at {steps - len(wrong)} of {steps} steps",
    }


def _goes(direction: str, before: float, after: float) -> bool:
    return {
        "rises": after > before,
        "falls": after < before,
        "grows": abs(after) > abs(before),
        "shrinks": abs(after) < abs(before),
    }[direction]


def proportional(claim: Claim, cells: pd.DataFrame, band: Limits) -> dict[str, Any]:
    """Judge y proportional to x by the exponent b of y = a x^b, least squares on logarithms."""
    key = given(claim.along)
    found = [
        one
        for one in values(select(cells, claim.cells), given(claim.metric))
        if isinstance(one.place.get(key), int | float)
    ]
    levels = [float(one.place[key]) for one in found]
    if len(set(levels)) < 2 or min(levels) <= 0 or min(one.value for one in found) <= 0:
        return {
            "verdict": OPEN,
            "reason": "Fewer than two positive levels: no proportion can be seen.",
            "recomputed": OPEN,
        }
    exponent = float(np.polyfit(np.log(levels), np.log([one.value for one in found]), 1)[0])
    each = [one.value / level for one, level in zip(found, levels, strict=True)]
    records = [
        {
            **cell_record(one),
            "value": tidy(one.value / level),
            "arithmetic": f"{one.working} / {level:g} = {plain(share)} for each, "
            f"{percent(share / each[0] - 1)} "
            f"against the first",
        }
        for one, level, share in zip(found, levels, each, strict=True)
    ]
    inside = (band.low is None or exponent >= band.low) and (band.high is None or exponent <= band.high)
    along = key.replace("_", " ")
    reason = (
        f"Least squares on logarithms give {claim.metric} proportional to {along} to the power "
        f"{exponent:.3f}; "
        f"the power must lie {_ends(band)}. Per unit the last cell stands at "
        f"{percent(each[-1] / each[0] - 1)} against the first."
    )
    return {
        "verdict": HOLDS if inside else FAILS,
        "reason": reason,
        "cells": records,
        "n_cells": len(records),
        "mean": tidy(exponent),
        "low": tidy(min(each)),
        "high": tidy(max(each)),
        "recomputed": f"power {exponent:.2f}",
    }


def peak(claim: Claim, cells: pd.DataFrame, band: Limits) -> dict[str, Any]:
    """Judge at which level of a key a metric is highest; at the last level a peak is not seen."""
    key = given(claim.along)
    found = values(select(cells, claim.cells), given(claim.metric), claim.across, claim.by)
    ordered = sorted((one for one in found if key in one.place), key=lambda one: one.place[key])
    if len(ordered) < 2:
        return {"verdict": OPEN, "reason": "Fewer than two levels: no peak can be seen.", "recomputed": OPEN}
    top = max(ordered, key=lambda one: one.value)
    level, along = top.place[key], key.replace("_", " ")
    records = [{**cell_record(one), "is_inside": one is top} for one in ordered]
    result: dict[str, Any] = {
        "cells": records,
        "n_cells": len(records),
        "recomputed": f"highest at {along} {level}",
    }
    if top is ordered[-1]:
        text = f"Highest at the last level, {along} {level}: whether it rises further is not known."
        is_below = band.high is not None and level > band.high
        return result | {"verdict": FAILS if is_below else OPEN, "reason": text}
    held = (band.low is None or level >= band.low) and (band.high is None or level <= band.high)
    text = f"Highest at {along} {level}, with {plain(top.value)}."
    return result | {"verdict": HOLDS if held else FAILS, "reason": text}


def same_effect(claim: Claim, cells: pd.DataFrame, band: Limits | None) -> dict[str, Any]:
    """Judge whether a key changes two groups alike: each effect of one in the point band of the other's.

    Effects are against the first level of the key.
    """
    key = given(claim.along)
    one, other = (
        _from_first(claim, select(select(cells, claim.cells), side)) for side in (claim.one, claim.other)
    )
    pairs = [(a, b) for a in one for b in other if a.place[key] == b.place[key]]
    if not pairs:
        return {"verdict": OPEN, "reason": "The two have no level in common.", "recomputed": OPEN}
    records: list[dict[str, Any]] = []
    for mine, theirs in pairs:
        allowed = point_band(theirs.effect)
        records.append(
            {
                **pair_record(mine),
                "is_inside": given(allowed.low) <= mine.effect <= given(allowed.high),
                "other_baseline": pair_record(theirs)["baseline"],
                "other_treatment": pair_record(theirs)["treatment"],
                "where": f"{key.replace('_', ' ')} {mine.place[key]}",
                "arithmetic": f"{pair_record(mine)['arithmetic']}, beside "
                f"{pair_record(theirs)['arithmetic']}",
            }
        )
    inside = sum(record["is_inside"] for record in records)
    return {
        "verdict": HOLDS if inside == len(records) else FAILS,
        "cells": records,
        "n_cells": len(records),
        "n_inside": inside,
        "low": tidy(min(a.effect for a, _ in pairs)),
        "high": tidy(max(a.effect for a, _ in pairs)),
        "reason": "Each effect must lie in the band around the other's effect (2 percentage points or a "
        "fifth of it); "
        f"{inside} of {len(records)} do.",
        "recomputed": "; ".join(f"{percent(a.effect, 1)} beside {percent(b.effect, 1)}" for a, b in pairs),
    }


def _from_first(claim: Claim, cells: pd.DataFrame) -> list[Pair]:
    key, found = given(claim.along), values(cells, given(claim.metric))
    first: Cell = min(found, key=lambda cell: cell.place[key])
    rest = [cell for cell in found if cell is not first]
    return pair([first], rest, {key})[0]


def unit(claim: Claim, cells: pd.DataFrame, band: Limits) -> dict[str, Any]:
    """Judge which of several metrics a published number is, by which of them lies in its band."""
    fits, records = [], []
    point = given(claim.band).point
    claimed = float(point) if isinstance(point, int | float) else None
    for metric in claim.candidates:
        for one in values(select(cells, claim.cells), metric, claim.across, claim.by):
            inside = given(band.low) <= one.value <= given(band.high)
            records.append(
                {
                    **cell_record(one),
                    "where": f"as {metric}",
                    "is_inside": inside,
                    "arithmetic": one.working + _times(one.value, claimed),
                }
            )
            fits += [metric] if inside else []
    held = claim.metric in fits
    text = f"Published as {claim.metric}. " + (
        f"It fits {' and '.join(dict.fromkeys(fits))}." if fits else "It fits none of the metrics printed."
    )
    return {
        "verdict": HOLDS if held else FAILS,
        "reason": text,
        "cells": records,
        "n_cells": len(records),
        "n_inside": len(fits),
        "recomputed": f"fits {', '.join(dict.fromkeys(fits)) or 'none'}, "
        f"{'as' if held else 'not'} {claim.metric}",
    }


def _times(value: float, claimed: float | None) -> str:
    """Write how many times a published number a value is; nothing without one, or over zero."""
    return f": {plain(value / claimed)} times the published number" if claimed else ""


def _ends(band: Limits) -> str:
    if band.low is None or band.high is None:
        return f"above {band.low:g}" if band.high is None else f"below {band.high:g}"
    return f"in {band.low:g} to {band.high:g}"
