"""What each kind of claim asks of a study's cells: sums of logarithms, each with the band it must lie in.

A step of a trend is the difference of two logarithms, a proportion is a slope, which least squares make a
weighted sum. So every kind is decided as an effect is: one number a block, an interval over blocks, a band.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import pandas as pd

from benchbook.compare.claimed import judged_by, limits
from benchbook.compare.study_cells import OF_THREADS, OF_WORKLOAD, Unfit, chosen
from benchbook.compare.verdicts import PRACTICAL, Band
from benchbook.core.claim import Claim, Selector
from benchbook.core.errors import given

# Arm, workload, threads, and which side's way of putting seconds together; threads 0 is the busiest level.
Place = tuple[str, str, int, Literal["baseline", "treatment"]]
BUSIEST = 0


@dataclass(frozen=True)
class Bounds:
    """Between which logarithms (or plain numbers, for a power) a part must lie."""

    log_low: float
    log_high: float


@dataclass(frozen=True)
class Part:
    """One number that a claim asks for: `weights` of logarithms, and where their sum must lie.

    `scale` is `share` for a ratio less one, `value` for the metric itself, `power` for an exponent. `beside`
    has the weights of what the rule needs: `size` gives the part the sign of that effect, because an effect
    that grows grows away from nothing; `alike` takes as its band the point band of that effect.
    """

    where: str
    weights: Mapping[Place, float]
    bounds: Bounds
    scale: Literal["share", "value", "power"] = "share"
    rule: Literal["band", "size", "alike"] = "band"
    beside: Mapping[Place, float] = field(default_factory=dict)


def parts(claim: Claim, cells: pd.DataFrame) -> list[Part]:
    """Return what a claim asks of these cells; Unfit with the reason where they can't be asked it."""
    meant = _where(claim, chosen(cells, claim.cells))
    found = _KINDS[claim.kind](claim, meant)
    if not found:
        raise Unfit("no cell of the study is what it speaks of")
    return found


def _where(claim: Claim, cells: pd.DataFrame) -> pd.DataFrame:
    """Keep the cells that meet the conditions on keys; those on metrics are met before."""
    for one in claim.where:
        if one.key is None:
            continue
        if one.key not in cells:
            raise Unfit(f"the study does not vary {one.key.replace('_', ' ')}")
        values = cells[one.key]
        cells = cells[
            (values > (-math.inf if one.above is None else one.above))
            & (values < (math.inf if one.below is None else one.below))
        ]
    return cells


def _effect(claim: Claim, cells: pd.DataFrame) -> list[Part]:
    baseline, treatments = _arms(claim.baseline, cells), _arms(claim.treatment, cells)
    if len(baseline) != 1:
        raise Unfit("it speaks of several baselines")
    bounds = _of_shares(given(limits(claim)))
    found = []
    for arm in treatments:
        for workload in dict.fromkeys(cells.loc[cells["name"] == arm, "workload"]):
            levels = _shared(cells, (*baseline, arm), workload)
            if levels:
                weights = _mean_effect(baseline[0], arm, workload, levels)
                found.append(Part(f"{arm} against {baseline[0]}, {workload}", weights, bounds))
    return found


def _mean_effect(baseline: str, treatment: str, workload: str, levels: Sequence[int]) -> dict[Place, float]:
    share = 1 / len(levels)
    return {
        **{(treatment, workload, threads, "treatment"): share for threads in levels},
        **{(baseline, workload, threads, "baseline"): -share for threads in levels},
    }


def _value(claim: Claim, cells: pd.DataFrame) -> list[Part]:
    band = given(limits(claim))
    bounds = Bounds(_log(band.low, -math.inf), _log(band.high, math.inf))
    is_mean = judged_by(claim) in ("mean", None)
    found = []
    for (arm, workload), own in cells.groupby(["name", "workload"], sort=False):
        levels = sorted(own["threads"])
        for group in [levels] if is_mean else [[level] for level in levels]:
            weights: dict[Place, float] = {
                (arm, workload, threads, "treatment"): 1 / len(group) for threads in group
            }
            found.append(Part(f"{arm}, {workload}, {_levels(group)}", weights, bounds, "value"))
    return found


def _trend(claim: Claim, cells: pd.DataFrame) -> list[Part]:
    along, found = str(claim.along), []
    if along not in cells:
        raise Unfit(f"the study does not vary {along.replace('_', ' ')}")
    if claim.baseline is not None:
        pairs = [
            (base, arm) for base in _arms(claim.baseline, cells) for arm in _arms(claim.treatment, cells)
        ]
        groups = [
            (f"{arm} against {base}, {workload}", _of_pair(base, arm, str(workload), cells, along))
            for base, arm in pairs
            for workload in dict.fromkeys(cells["workload"])
        ]
    else:
        groups = _groups(cells, along)
    bounds = Bounds(0.0, math.inf) if claim.direction in ("rises", "grows") else Bounds(-math.inf, 0.0)
    by_size = claim.baseline is not None and claim.direction in ("grows", "shrinks")
    for where, levels in groups:
        if len(levels) < 2:
            continue
        overall = _sum([(weights, 1 / len(levels)) for _, weights in levels])
        for (start, before), (end, after) in pairwise(levels):
            step = f"{where}, {along.replace('_', ' ')} {start:g} to {end:g}"
            weights = _sum([(after, 1), (before, -1)])
            found.append(
                Part(step, weights, bounds, rule="size", beside=overall)
                if by_size
                else Part(step, weights, bounds)
            )
    if not found:
        raise Unfit(f"it has fewer than two levels of {along.replace('_', ' ')}")
    return found


def _of_pair(
    baseline: str, treatment: str, workload: str, cells: pd.DataFrame, along: str
) -> list[tuple[float, dict[Place, float]]]:
    own = cells[(cells["name"] == treatment) & (cells["workload"] == workload)]
    shared = _shared(cells, (baseline, treatment), workload)
    levels = own[own["threads"].isin(shared)].sort_values(along)
    return [
        (float(row[along]), _mean_effect(baseline, treatment, workload, [int(row["threads"])]))
        for _, row in levels.iterrows()
    ]


def _groups(cells: pd.DataFrame, along: str) -> list[tuple[str, list[tuple[float, dict[Place, float]]]]]:
    """Return series along a key, in each of which nothing else changes."""
    owner = "threads" if along in OF_THREADS else "workload" if along in OF_WORKLOAD else "name"
    rest = [key for key in ("name", "workload", "threads") if key != owner]
    groups = []
    for held, own in cells.dropna(subset=[along]).groupby(rest, sort=False):
        if own[along].duplicated().any():
            raise Unfit(f"two {owner}s have the same {along.replace('_', ' ')}")
        where = ", ".join(
            _levels([one]) if key == "threads" else str(one) for key, one in zip(rest, held, strict=True)
        )
        levels = [(float(row[along]), {_place(row): 1.0}) for _, row in own.sort_values(along).iterrows()]
        groups.append((where, levels))
    return groups


def _proportional(claim: Claim, cells: pd.DataFrame) -> list[Part]:
    along, found = str(claim.along), []
    if along not in cells:
        raise Unfit(f"the study does not vary {along.replace('_', ' ')}")
    band = given(limits(claim))
    bounds = Bounds(-math.inf if band.low is None else band.low, math.inf if band.high is None else band.high)
    for workload, own in cells.dropna(subset=[along]).groupby("workload", sort=False):
        levels = own.drop_duplicates("name").set_index("name")[along].astype(float).map(math.log)
        spread = levels - levels.mean()
        if spread.abs().max() < 1e-9:
            raise Unfit(f"it has fewer than two levels of {along.replace('_', ' ')}")
        squares = float((spread**2).sum())
        weights: dict[Place, float] = {
            (str(arm), str(workload), BUSIEST, "treatment"): value / squares for arm, value in spread.items()
        }
        found.append(Part(f"{workload}, at each arm's highest QPS", weights, bounds, "power"))
    return found


def _same_effect(claim: Claim, cells: pd.DataFrame) -> list[Part]:
    """Compare what a key changes in two arms: the difference of both changes must be within the point band.

    How wide that is depends on the other's change, so it is 0.2 of it or 2 points, taken at evaluation.
    """
    along, found = str(claim.along), []
    if along not in cells:
        raise Unfit(f"the study does not vary {along.replace('_', ' ')}")
    one, other = (_arms(side, cells) for side in (claim.one, claim.other))
    if (len(one), len(other)) != (1, 1):
        raise Unfit("it speaks of several arms on one side")
    by_arm = {
        arm: dict(_groups(cells[cells["name"] == arm].assign(name=""), along)) for arm in (*one, *other)
    }
    for where in by_arm[one[0]]:
        mine, theirs = by_arm[one[0]][where], by_arm[other[0]].get(where, [])
        if len(mine) < 2 or [level for level, _ in mine] != [level for level, _ in theirs]:
            continue
        first, *rest = zip(mine, theirs, strict=True)
        for (level, top), (_, below) in rest:
            own = _sum([(top, 1), (first[0][1], -1)])
            its = _sum([(below, 1), (first[1][1], -1)])
            own, its = _in(own, one[0]), _in(its, other[0])
            label = f"{one[0]} beside {other[0]}, {along.replace('_', ' ')} {first[0][0]:g} to {level:g}"
            weights = _sum([(own, 1), (its, -1)])
            found.append(Part(label, weights, Bounds(-math.inf, math.inf), "share", "alike", its))
    if not found:
        raise Unfit(f"it has fewer than two levels of {along.replace('_', ' ')}")
    return found


def _peak(claim: Claim, cells: pd.DataFrame) -> list[Part]:
    """Ask that beyond the band nothing is gained over the last level inside it."""
    along, found = str(claim.along), []
    if along not in cells:
        raise Unfit(f"the study does not vary {along.replace('_', ' ')}")
    band = given(limits(claim))
    high = math.inf if band.high is None else band.high
    for where, levels in _groups(cells, along):
        inside = [one for one in levels if one[0] <= high]
        if not inside:
            continue
        last, base = inside[-1]
        for level, weights in levels[len(inside) :]:
            step = f"{where}, {along.replace('_', ' ')} {last:g} to {level:g}"
            bounds = Bounds(-math.inf, math.log1p(PRACTICAL))
            found.append(Part(step, _sum([(weights, 1), (base, -1)]), bounds))
    if not found:
        raise Unfit(f"it has no level of {along.replace('_', ' ')} beyond {high:g}, or none up to there")
    return found


def _text_only(claim: Claim, cells: pd.DataFrame) -> list[Part]:
    raise Unfit("it is a text without a number")


def _arms(selector: Selector | None, cells: pd.DataFrame) -> list[str]:
    """Return the arms that a selector means, in the study's order."""
    return list(dict.fromkeys(chosen(cells, selector)["name"]))


def _shared(cells: pd.DataFrame, arms: Sequence[str], workload: str) -> list[int]:
    own = cells[cells["workload"] == workload]
    levels = [set(own[own["name"] == arm]["threads"]) for arm in arms]
    return sorted(int(level) for level in set.intersection(*levels))


def _place(row: pd.Series) -> Place:
    return str(row["name"]), str(row["workload"]), int(row["threads"]), "treatment"


def _in(weights: Mapping[Place, float], arm: str) -> dict[Place, float]:
    return {(arm, *place[1:]): weight for place, weight in weights.items()}


def _sum(terms: Sequence[tuple[Mapping[Place, float], float]]) -> dict[Place, float]:
    total: dict[Place, float] = {}
    for weights, factor in terms:
        for place, weight in weights.items():
            total[place] = total.get(place, 0.0) + factor * weight
    return total


def _levels(levels: Sequence[int]) -> str:
    return f"{', '.join(map(str, levels))} thread{'' if list(levels) == [1] else 's'}"


def _of_shares(band: Band) -> Bounds:
    return Bounds(band.log_low, band.log_high)


def _log(value: float | None, otherwise: float) -> float:
    return otherwise if value is None or value <= 0 else math.log(value)


_KINDS: dict[str, Callable[[Claim, pd.DataFrame], list[Part]]] = {
    "effect": _effect,
    "value": _value,
    "unit": _value,
    "trend": _trend,
    "proportional": _proportional,
    "same_effect": _same_effect,
    "peak": _peak,
    "text_only": _text_only,
}
