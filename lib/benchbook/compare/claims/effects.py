"""Published effects that one contrast of a study answers: they are judged as findings, with all doubts."""

from dataclasses import dataclass

from benchbook.compare.claims.bands import claim_limits
from benchbook.compare.claims.estimands import ClaimTest
from benchbook.compare.claims.metrics import LOADING, is_compared, metric_column
from benchbook.compare.claims.study_cells import list_contrasts
from benchbook.compare.stats.equivalence import EquivalenceBand
from benchbook.core.published.claim import ClaimSpec, parse_amount
from benchbook.core.util.errors import require_value


@dataclass(frozen=True)
class ClaimedEffect:
    """A claim about one contrast of a study; contrasts with one `id` (`source/claim`) share an error level.

    `value` is the effect that was claimed as a fraction, of which only the sign is used. `threads` and
    `workloads` None mean all of the study; `metric` is one of `runs`, or of `metrics.DERIVED`.
    """

    id: str
    baseline: str
    treatment: str
    value: float
    band: EquivalenceBand
    workloads: tuple[str, ...] | None = None
    threads: tuple[int, ...] | None = None
    metric: str = "qps"


def is_contrast(claim: ClaimSpec) -> bool:
    """True for an effect of runs; false for values of single seconds and for loading time."""
    is_mean = claim.across is None or (claim.by == "mean" and claim.baseline_by in (None, "mean"))
    return claim.kind == "effect" and is_mean and claim.metric != LOADING and not claim.where


def match_contrasts(name: str, claim: ClaimSpec, claim_test: ClaimTest) -> list[ClaimedEffect]:
    """Contrasts that answer a claim, each by one number; none if only cells answer it.

    A mean must be that of one contrast, over its thread levels. Where each cell must lie in the band, each
    must be all that its contrast has.
    """
    if not is_contrast(claim) or not is_compared(require_value(claim.metric)) or claim_test.must == "most":
        return []
    parts = [part for part in claim_test.parts if part.decides]
    contrasts = [list_contrasts(part.items) for part in parts]
    if any(len(rows) != 1 for rows in contrasts) or len(set.union(*contrasts)) != len(parts):
        return []
    band, allowed = require_value(claim.band), require_value(claim_limits(claim))
    amounts = band.range or [item for item in (band.point, band.above, band.below) if item is not None]
    value = sum(map(parse_amount, amounts)) / len(amounts)
    effects = []
    for part, ((baseline, treatment, workload),) in zip(parts, contrasts, strict=True):
        threads, metric = tuple(item.cell.at[2] for item in part.items), metric_column(str(claim.metric))
        effects.append(ClaimedEffect(name, baseline, treatment, value, allowed, (workload,), threads, metric))
    return effects
