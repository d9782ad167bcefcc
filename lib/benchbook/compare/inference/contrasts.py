"""Contrasts of a study, and the source of the numbers of each."""

import math
from collections.abc import Sequence
from dataclasses import replace

from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.claims.metrics import DERIVED
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference.decisions import (
    EffectDecision,
    Hypothesis,
    estimate_effect,
    judge_candidates,
)
from benchbook.compare.stats.equivalence import reached_look
from benchbook.compare.stats.latency import POOLED, compute_percentiles, metric_name
from benchbook.compare.stats.pairs import BlockRatios, block_ratios
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import require_value

PERCENTILES = {metric_name(percentile): percentile for percentile in (50.0, 95.0, 99.0)}


def compared_metrics(study: StudySpec, workload: str) -> tuple[str, ...]:
    """Metrics compared at a workload: QPS of a closed loop, latency percentiles at a fixed rate.

    At a fixed rate QPS is what was asked for; in a closed loop latency is just threads over throughput. So
    neither is a finding there.
    """
    return tuple(PERCENTILES) if study.workloads[workload].rate else ("qps",)


def contrast_candidates(evidence: StudyEvidence, claims: Sequence[ClaimedEffect]) -> list[Hypothesis]:
    """Every treatment against the baseline, each with the claim that it answers if there is one.

    Further claims, and claims about other baselines or fewer threads, follow as contrasts of their own.
    """
    study, candidates = evidence.study, list[Hypothesis]()
    of_arms = [claim for claim in claims if {claim.baseline, claim.treatment} <= set(study.arms)]
    for workload in study.workloads:
        about = [claim for claim in of_arms if claim.workloads is None or workload in claim.workloads]
        usual = compared_metrics(study, workload)
        for metric in usual:
            candidates += _candidates_of_metric(evidence, workload, metric, about)
        # Latency in a closed loop is threads over throughput, so a claim about it finds no answer there.
        others = (claim for claim in about if claim.metric not in (*usual, *PERCENTILES, "qps"))
        candidates += [_extra_candidate(evidence, claim, workload) for claim in others]
    return candidates


def _candidates_of_metric(
    evidence: StudyEvidence, workload: str, metric: str, claims: Sequence[ClaimedEffect]
) -> list[Hypothesis]:
    """Every treatment against the baseline by one metric, then the claims that none of these answers."""
    study, candidates = evidence.study, list[Hypothesis]()
    waiting = [claim for claim in claims if claim.metric == metric]
    for treatment in study.treatments:
        of_whole = (claim for claim in waiting if _is_of_whole(claim, treatment, study))
        place = (study.baseline, treatment, workload, metric)
        candidates.append(build_contrast(evidence, *place, claim=next(of_whole, None)))
        waiting = [claim for claim in waiting if claim is not candidates[-1].claim]
    return [*candidates, *(_extra_candidate(evidence, claim, workload) for claim in waiting)]


def _extra_candidate(evidence: StudyEvidence, claim: ClaimedEffect, workload: str) -> Hypothesis:
    place = (claim.baseline, claim.treatment, workload, claim.metric)
    return replace(build_contrast(evidence, *place, claim.threads, claim), is_extra=True)


def build_contrast(
    evidence: StudyEvidence,
    baseline: str,
    treatment: str,
    workload: str,
    metric: str,
    threads: Sequence[int] | None = None,
    claim: ClaimedEffect | None = None,
) -> Hypothesis:
    """Contrast of any two arms of a study before it is judged, over some thread levels or all."""
    analysis, levels = evidence.analysis, threads or evidence.study.threads
    ratios = _block_ratios(evidence, baseline, treatment, workload, metric, levels)
    look = reached_look(ratios.n, analysis.looks)
    used = ratios if look is None else ratios.first(look)
    return Hypothesis(estimate_effect(used, analysis.level, analysis.per_thread_level), ratios.n, look, claim)


def judge_contrasts(
    evidence: StudyEvidence, claims: Sequence[ClaimedEffect], first_look: int
) -> tuple[list[EffectDecision], list[EffectDecision]]:
    """Judge all contrasts of a study and its A/A pairs; these may withhold results of contrasts."""
    study, twin = evidence.study, evidence.study.twin or ""
    twins: list[Hypothesis] = []
    # The baseline against itself, for each workload that has an A/A pair.
    for workload in study.workloads if twin else ():
        levels = [level for level in study.threads if study.has_twin(workload, level)]
        for metric in compared_metrics(study, workload) if levels else ():
            twins.append(build_contrast(evidence, study.baseline, twin, workload, metric, levels))
    judged = judge_candidates(contrast_candidates(evidence, claims), first_look, twins=twins)
    return judged, judge_candidates(twins, first_look, is_one_family=True)


def _is_of_whole(claim: ClaimedEffect, treatment: str, study: StudySpec) -> bool:
    """True if a claim is about a treatment over the study's baseline, at all of its thread levels."""
    is_contrast = (claim.baseline, claim.treatment) == (study.baseline, treatment)
    return is_contrast and set(claim.threads or study.threads) == set(study.threads)


def _block_ratios(
    evidence: StudyEvidence, baseline: str, treatment: str, workload: str, metric: str, threads: Sequence[int]
) -> BlockRatios:
    runs = evidence.runs
    if metric in DERIVED:
        over, under = (runs[column] for column in DERIVED[metric])
        # Infinity is refused with its place; a number that is missing would leave out its block alone.
        runs = runs.assign(**{metric: (over / under).where(under != 0, math.inf)})
    if metric not in PERCENTILES:
        return block_ratios(runs, baseline, treatment, workload, threads, metric)
    runs, histograms = runs[runs.arm.isin([baseline, treatment])], require_value(evidence.histograms)
    taken = compute_percentiles(runs, histograms, workload, threads, PERCENTILES[metric])
    levels = [POOLED] if taken.is_pooled else threads
    ratios = block_ratios(taken.table, baseline, treatment, workload, levels, metric)
    requested = tuple(sorted(threads))
    if taken.is_pooled or taken.reason is None:
        return replace(ratios, threads=requested, note=taken.reason)
    # Checks of archives count the remarks of a finding, so one on its blocks stays beside the reason.
    note = f"no block has a p{PERCENTILES[metric]:g} of both arms"
    return replace(ratios, threads=requested, refusal=taken.reason, note=note)
