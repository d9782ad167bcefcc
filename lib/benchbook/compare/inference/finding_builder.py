"""One judged effect as an entry of findings.json."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.inference.contrasts import PERCENTILES
from benchbook.compare.inference.decisions import Effect, EffectDecision, Hypothesis, select_aa_pairs
from benchbook.compare.meta import sample_size
from benchbook.compare.stats.equivalence import benjamini_hochberg, p_value
from benchbook.compare.stats.latency import dense_counts, percentile_ms
from benchbook.core.artifacts import findings
from benchbook.core.artifacts.findings import BlocksNeeded, FindingData, PercentileSupport
from benchbook.core.study.params import Analysis
from benchbook.core.util import histogram
from benchbook.core.util.estimate import USEFUL_RATIO
from benchbook.core.util.plural import count

Cell = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class Context:
    """Values common to all entries of a study; `block_s` is the time of a block, in seconds.

    `names` has the readable names of arms and workloads, `skipped` the reason for each arm that was skipped.
    """

    baseline: str
    analysis: Analysis
    block_s: float | None
    names: findings.DisplayNames
    skipped: Mapping[str, str] = field(default_factory=dict)


def build_finding(judged: EffectDecision, context: Context, q_values: Mapping[Cell, float]) -> FindingData:
    """Finding of one judged effect, warnings included, numbers not yet rounded."""
    candidate = judged.candidate
    effect, claim = candidate.effect, candidate.claim
    contrast, interval, second = effect.contrast, effect.interval, effect.second_opinion
    runs = list(chain.from_iterable(contrast.run_ids.values()))
    arms, workloads, skipped = context.names.arms, context.names.workloads, context.skipped
    more = _blocks_needed(candidate, context, context.analysis.half_width)
    useful = math.sqrt(USEFUL_RATIO) - 1
    unused = candidate.complete - contrast.n
    waiting = f"{count(unused, 'block')} after the look at {contrast.n} wait for the next look"
    notes = filter(None, (waiting if unused else None, contrast.note))
    by_threads = () if contrast.is_pooled else effect.by_threads
    opinion, agrees = None, judged.second_opinion_agrees
    if second is not None:
        ends = {"low": second.low, "high": second.high}
        opinion = findings.SecondOpinion(method="signed-rank", **ends, agrees=agrees)
    detectable = effect.spread and sample_size.detectable_effect(effect.spread, interval.n, interval.level)
    return FindingData(
        id=_finding_id(candidate, context.baseline),
        **{key: getattr(contrast, key) for key in ("workload", "baseline", "treatment", "metric")},
        names=findings.ContrastNames(
            workload=workloads.get(contrast.workload, contrast.workload),
            baseline=arms.get(contrast.baseline, contrast.baseline),
            treatment=arms.get(contrast.treatment, contrast.treatment),
        ),
        threads=list(contrast.threads),
        **interval.numbers,
        reason=skipped.get(contrast.treatment) or skipped.get(contrast.baseline) or interval.reason,
        headline=effect.has_headline,
        blocks_to_useful=_blocks_needed(candidate, context, useful) if judged.withheld else None,
        levels=list(judged.levels),
        by_threads=[
            findings.ByThreads(threads=threads, **each.numbers, q=q_values.get(_cell_key(effect, threads)))
            for threads, each in by_threads
        ],
        depends_on_threads=effect.depends_on_threads,
        second_opinion=opinion,
        claim=claim.id if claim else None,
        band=(claim.band.low, claim.band.high) if claim else None,
        **{key: getattr(judged, key) for key in ("label", "withheld", "verdict", "direction")},
        more_blocks=more and more.model_copy(update={"for_half_width": context.analysis.half_width}),
        detectable_effect=detectable,
        runs=runs,
        pairs=len(runs) // 2,
        warnings=[*judged.notes, *contrast.dropped, *notes],
    )


def blocks_to_match_aa(finding: FindingData, aa_pairs: Sequence[FindingData]) -> FindingData:
    """Finding that needs as many blocks as its A/A pair, if the pair is the reason to withhold it."""
    mine = select_aa_pairs(finding, aa_pairs, lambda pair: pair)
    needs = [each.blocks_to_useful for each in (finding, *mine) if each.blocks_to_useful]
    if not finding.withheld or not needs:
        return finding
    return finding.model_copy(update={"blocks_to_useful": max(needs, key=lambda more: more.blocks)})


def _blocks_needed(candidate: Hypothesis, context: Context, half_width: float) -> BlocksNeeded | None:
    interval, spread, have = candidate.effect.interval, candidate.effect.spread, candidate.complete
    if spread is None:
        return None
    return sample_size.more_blocks(spread, interval.n, have, half_width, interval.level, context.block_s)


def q_values(candidates: Sequence[Hypothesis]) -> dict[Cell, float]:
    """Benjamini-Hochberg q values of all thread levels of all contrasts of a study, as one family."""
    p_values = {
        _cell_key(candidate.effect, threads): p
        for candidate in candidates
        for threads, interval in candidate.effect.by_threads
        if (p := p_value(interval)) is not None
    }
    return dict(zip(p_values, benjamini_hochberg(list(p_values.values())), strict=True))


def _cell_key(effect: Effect, threads: int) -> Cell:
    contrast = effect.contrast
    return contrast.workload, contrast.baseline, contrast.treatment, contrast.metric, threads


def _finding_id(candidate: Hypothesis, baseline: str) -> str:
    contrast, claim = candidate.effect.contrast, candidate.claim
    against = "" if contrast.baseline == baseline else f"-vs-{contrast.baseline}"
    whole = f"{contrast.workload}.{contrast.treatment}{against}.{contrast.metric}"
    if not candidate.is_extra or claim is None:
        return whole
    return f"{whole}.{''.join(letter if letter.isalnum() or letter in '_-' else '-' for letter in claim.id)}"


FEWEST_S = 5
"""Seconds of a run from which one of them alone says something."""
ONE_PAUSE_S = 2
"""Seconds in a row that one pause reaches, as it may lie on the border of two."""


def with_support(
    entries: Sequence[FindingData], tidy: Mapping[str, pd.DataFrame], names: Mapping[str, str]
) -> list[FindingData]:
    """Findings with `support` by arm if they are of a percentile beyond the median."""
    findings_with_support = []
    for entry in entries:
        percentile, warnings = PERCENTILES.get(entry.metric, 0), list(entry.warnings)
        supports = list(_support_by_arm(entry, tidy)) if percentile > 50 else None
        for support in supports or ():
            if support.by_one_pause:
                where = f"In {support.by_one_pause} of {count(support.runs, 'run')} of "
                where += names.get(support.arm, support.arm)
                warnings.append(f"{where}, one pause alone holds all events beyond p{percentile:g}.")
        changes = {"support": supports, "warnings": warnings}
        findings_with_support.append(entry.model_copy(update=changes))
    return findings_with_support


def _support_by_arm(entry: FindingData, tidy: Mapping[str, pd.DataFrame]) -> Iterator[PercentileSupport]:
    used = set(" ".join(entry.runs).split())
    every = (tidy[name] for name in ("runs", "histograms", "intervals"))
    runs, *tables = (table[table.run_id.isin(used)] for table in every)
    histograms, intervals = (dict(iter(table.groupby("run_id", observed=True))) for table in tables)
    for arm in (entry.baseline, entry.treatment):
        rows = []
        for run in runs[runs.arm == arm].to_dict("records"):
            counts, seconds = histograms.get(run["run_id"]), intervals.get(run["run_id"])
            rows.append(_tail_events(counts, seconds, run, PERCENTILES[entry.metric]))
        tails = pd.DataFrame(filter(None, rows), columns=["beyond", "pauses", "is_one"])
        is_told = tails.pauses.notna().all()
        if len(tails):
            yield PercentileSupport(
                arm=arm,
                runs=len(tails),
                events_beyond=int(tails.beyond.min()),
                pauses=int(tails.pauses.sum()) if is_told else None,
                by_one_pause=int(tails.is_one.sum()) if is_told else None,
            )


def _tail_events(
    counts: pd.DataFrame | None, seconds: pd.DataFrame | None, run: Mapping[str, Any], percentile: float
) -> tuple[int, int | None, bool | None] | None:
    """Events of a run beyond a percentile, the number of their pauses, and if one pause has them."""
    if counts is None:
        return None
    every = dense_counts(counts)
    if (bound := percentile_ms(every, percentile)) is None:
        return None
    beyond = round(int(every.sum()) * (1 - percentile / 100))
    # A second tells where its events beyond lie if its own percentile is no lower than the one in question.
    if seconds is None or run["printed_percentile"] < percentile:
        return beyond, None, None
    printed = seconds.loc[~seconds.is_discarded, "latency_percentile_ms"].to_numpy(dtype=float)
    if len(printed) < FEWEST_S or np.isnan(printed).any():
        return beyond, None, None
    slow = np.flatnonzero(histogram.bucket_of(printed) >= histogram.bucket_of(bound))
    pauses = int((np.diff(slow) > 1).sum()) + 1 if len(slow) else 0
    return beyond, pauses, pauses == 1 and len(slow) <= ONE_PAUSE_S
