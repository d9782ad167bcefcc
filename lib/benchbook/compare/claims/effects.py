"""Published effects that one contrast of a study answers: they are judged as findings, with all their doubts.

What needs more than one number (each of several cells, a mean over several contrasts, cells that meet a
condition) is put to the study's cells instead (`measured`).
"""

from __future__ import annotations

from dataclasses import dataclass

from benchbook.compare.claims.bands import limits
from benchbook.compare.claims.estimands import Asked
from benchbook.compare.claims.metrics import LOADING, is_compared, ours
from benchbook.compare.stats.equivalence import Band
from benchbook.core.published.claim import Claim, number
from benchbook.core.util.errors import given


@dataclass(frozen=True)
class ClaimedEffect:
    """A claim about one contrast of a study.

    `id` is `source/claim`; `value` is the effect that was claimed as a fraction (the middle of a range, a
    bound), of which only the sign is used. `threads` None means all thread levels of the study, `workloads`
    None all its workloads. Contrasts with the same id share one error level. `metric` is one of `runs`, or of
    `metrics.DERIVED`.
    """

    id: str
    baseline: str
    treatment: str
    value: float
    band: Band
    workloads: tuple[str, ...] | None = None
    threads: tuple[int, ...] | None = None
    metric: str = "qps"


def is_contrast(claim: Claim) -> bool:
    """Tell whether a claim is an effect of runs; values of single seconds and the time of loading are not."""
    is_mean = claim.across is None or (claim.by == "mean" and claim.baseline_by in (None, "mean"))
    return claim.kind == "effect" and is_mean and claim.metric != LOADING and not claim.where


def of(name: str, claim: Claim, asked: Asked) -> list[ClaimedEffect]:
    """Return the contrasts that answer a claim, each by one number; none where only cells answer it.

    A mean must be that of one contrast, over its thread levels. Where each cell must lie in the band, each
    must be all that its contrast has.
    """
    parts = [part for part in asked.parts if part.decides]
    contrasts = [
        {(one.baseline.at[0], *one.cell.at[:2]) for one in part.items if one.baseline} for part in parts
    ]
    is_one = all(len(one) == 1 for one in contrasts) and len(set.union(*contrasts)) == len(parts)
    if not is_contrast(claim) or not is_compared(given(claim.metric)) or not is_one or asked.must == "most":
        return []
    band = given(claim.band)
    amounts = band.range or [one for one in (band.point, band.above, band.below) if one is not None]
    value = sum(map(number, amounts)) / len(amounts)
    found = []
    for part, contrast in zip(parts, contrasts, strict=True):
        baseline, treatment, workload = contrast.pop()
        threads = tuple(one.cell.at[2] for one in part.items)
        allowed, metric = given(limits(claim)), ours(given(claim.metric))
        found.append(ClaimedEffect(name, baseline, treatment, value, allowed, (workload,), threads, metric))
    return found
