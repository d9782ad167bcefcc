"""Published claims put to the arms of a study: which of them it can answer, and with which band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.compare.claimed import limits
from benchbook.compare.verdicts import Band
from benchbook.core import claim as published
from benchbook.core.study import Study

METRICS = ("qps", "latency_p95_ms", "latency_p99_ms")


@dataclass(frozen=True)
class ClaimedEffect:
    """A claim about one contrast of a study.

    `id` is `source/claim`; `value` is the effect that was claimed as a fraction (the middle of a range, a
    bound), of which only the sign is used. `threads` None means all thread levels of the study, `workloads`
    None all its workloads. Contrasts with the same id share one error level.
    """

    id: str
    baseline: str
    treatment: str
    value: float
    band: Band
    workloads: tuple[str, ...] | None = None
    threads: tuple[int, ...] | None = None
    metric: str = "qps"


def answerable(study: Study, claims: Mapping[str, published.Claim]) -> tuple[list[ClaimedEffect], list[str]]:
    """Return the claims that a study can answer, and a sentence for each that it cannot.

    `claims` has the ids `source/claim` that the study names. A claim is answered where it speaks of an
    effect between two arms that the study has under the same names, at workloads and thread levels that
    it measures.
    """
    found, left = [], []
    for name, claim in claims.items():
        reason = _obstacle(study, claim)
        if reason:
            left.append(f"Claim {name} is not answered: {reason}.")
            continue
        cells = claim.cells or {}
        workloads, threads = _several(cells.get("workload")), _several(cells.get("threads"))
        found.append(
            ClaimedEffect(
                name,
                str(claim.baseline["arm"]),
                str(claim.treatment["arm"]),
                _middle(claim.band),
                limits(claim),
                workloads
                and tuple(one for one in study.workloads if {one, study.script(one)} & set(workloads)),
                threads,
                claim.metric,
            )
        )
    return found, left


def _obstacle(study: Study, claim: published.Claim) -> str | None:
    """Say what keeps a claim from being answered; None if nothing does."""
    if claim.kind != "effect":
        return f"it is of kind {claim.kind}, not an effect between two arms"
    if claim.metric not in METRICS:
        return f"its metric {claim.metric} is not compared"
    if claim.where:
        return "it holds under conditions that a study does not look at"
    for selector in (claim.baseline, claim.treatment):
        if set(selector) != {"arm"} or selector["arm"] not in study.arms:
            wanted = ", ".join(f"{key} {value}" for key, value in selector.items())
            return f"the study has no arm for {wanted}"
    cells = dict(claim.cells or {})
    threads, workloads = _several(cells.pop("threads", None)), _several(cells.pop("workload", None))
    if cells:
        return f"the study does not vary {', '.join(sorted(cells))}"
    if threads and not set(threads) <= set(study.threads):
        return "its thread counts are not all measured"
    known = {*study.workloads, *(study.script(one) for one in study.workloads)}
    if workloads and not set(workloads) & known:
        return "its workloads are not measured"
    return None


def _middle(band: published.Band) -> float:
    given = band.range or [one for one in (band.point, band.above, band.below) if one is not None]
    return sum(published.number(one) for one in given) / len(given)


def _several(value: Any) -> tuple[Any, ...] | None:
    if value is None:
        return None
    return value if isinstance(value, tuple) else (value,)
