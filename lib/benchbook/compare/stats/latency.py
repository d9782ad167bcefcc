"""Percentiles of merged latency histograms, finer than their buckets of 1.8 %, to be compared between arms.

Percentiles are never averaged: counts are added, then the percentile is taken.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchbook.compare.stats.intervals import MIN_BLOCKS, t_quantile
from benchbook.core.artifacts.bottlenecks import CostEstimate
from benchbook.core.util import histogram

MIN_EVENTS_BEYOND = 100
RESAMPLES = 200
# Stands in the column threads where all thread levels are pooled.
POOLED = 0


@dataclass(frozen=True)
class Percentiles:
    """Percentile of each run, or of each arm and block if single runs have too few events.

    `table` has the columns run_id, block, group, arm, workload, threads and the metric (ms); in a pooled
    table threads is 0 and run_id lists several ids. `reason` says why a table is pooled or empty.
    """

    table: pd.DataFrame
    is_pooled: bool
    reason: str | None


def percentile_ms(counts: NDArray[np.int64], percentile: float) -> float | None:
    """Percentile in ms of 1024 counts, interpolated inside its bucket; None off the scale.

    The first and the last bucket also hold everything beyond the scale (1 µs, 100 s), so a percentile that
    falls there is unknown.
    """
    bucket = histogram.bucket_percentile(counts, percentile)
    if bucket is None or not 0 < histogram.bucket_of(bucket) < histogram.BUCKETS - 1:
        return None
    return histogram.interpolate_percentile(counts, percentile)


def has_enough_events(events: int, percentile: float) -> bool:
    """True if at least 100 events lie beyond a percentile."""
    # A ten-thousandth of an event absorbs the rounding of 1 - 99/100.
    return events * (1 - percentile / 100) >= MIN_EVENTS_BEYOND - 1e-4


def compute_percentiles(
    runs: pd.DataFrame, histograms: pd.DataFrame, workload: str, threads: Sequence[int], percentile: float
) -> Percentiles:
    """One percentile of every run of a workload; too short runs of an arm are pooled by block.

    `histograms` has the columns run_id, bucket, count. Only arms measured at all of `threads` take part.
    Pooling is decided once for all runs, so that all arms are treated alike; an arm that misses a thread
    level in a block gets no pooled value there.
    """
    metric = metric_name(percentile)
    columns = ["run_id", "block", "group", "arm", "workload", "threads"]
    chosen = runs.loc[(runs.workload == workload) & runs.threads.isin(threads), columns]
    complete = [arm for arm, part in chosen.groupby("arm") if set(part.threads) == set(threads)]
    chosen = chosen[chosen.arm.isin(complete)].reset_index(drop=True)
    counts = {run_id: dense_counts(part) for run_id, part in histograms.groupby("run_id")}
    nothing = np.zeros(histogram.BUCKETS, dtype=np.int64)
    chosen["counts"] = [counts.get(run_id, nothing) for run_id in chosen.run_id]
    if _all_enough(chosen, percentile):
        return Percentiles(_select_measured(chosen, metric, percentile), False, None)
    pooled = _pool_histograms(chosen, len(threads))
    if _all_enough(pooled, percentile):
        reason = f"single runs are too short for p{percentile:g}; each block's runs of an arm are pooled"
        return Percentiles(_select_measured(pooled, metric, percentile), True, reason)
    reason = f"a block has fewer than {MIN_EVENTS_BEYOND} events beyond p{percentile:g}; measure longer"
    return Percentiles(_select_measured(chosen.iloc[:0], metric, percentile), False, reason)


def metric_name(percentile: float) -> str:
    """Name of a percentile as a metric: 99 is latency_p99_ms."""
    return f"latency_p{percentile:g}_ms".replace(".", "_")


def dense_counts(part: pd.DataFrame) -> NDArray[np.int64]:
    """Count of every bucket of one run's histogram."""
    return np.bincount(part.bucket, weights=part["count"], minlength=histogram.BUCKETS).astype(np.int64)


def pooled_percentile(counts: NDArray[np.int64], percentile: float, level: float) -> CostEstimate | None:
    """Percentile in ms of the added-up histograms of an arm's blocks; None below 100 events beyond it.

    `counts` has a row a block. The interval, on the log scale, is Student's t times the standard error of a
    bootstrap over blocks, widened by √(n / (n − 1)): percentiles of few resampled blocks are too narrow
    (Hesterberg 2015). It has no ends below three blocks.
    """
    blocks = len(counts)
    total = counts.sum(axis=0) if blocks else np.zeros(histogram.BUCKETS, dtype=np.int64)
    value = percentile_ms(total, percentile) if has_enough_events(int(total.sum()), percentile) else None
    if value is None:
        return None
    times = np.random.default_rng(0).multinomial(blocks, np.full(blocks, 1 / blocks), RESAMPLES)
    resampled = [percentile_ms(weights @ counts, percentile) for weights in times]
    if blocks < MIN_BLOCKS or None in resampled:
        return CostEstimate(value=value, n=blocks)
    error = float(np.log(np.array(resampled, dtype=float)).std(ddof=1)) * math.sqrt(blocks / (blocks - 1))
    factor = math.exp(t_quantile((1 + level) / 2, blocks - 1) * error)
    return CostEstimate(value=value, low=value / factor, high=value * factor, n=blocks)


def _all_enough(table: pd.DataFrame, percentile: float) -> bool:
    events = [int(counts.sum()) for counts in table.counts]
    return bool(events) and has_enough_events(min(events), percentile)


def _select_measured(table: pd.DataFrame, metric: str, percentile: float) -> pd.DataFrame:
    values = [percentile_ms(counts, percentile) for counts in table.counts]
    return table.drop(columns="counts").assign(**{metric: pd.Series(values, index=table.index, dtype=float)})


def _pool_histograms(chosen: pd.DataFrame, levels: int) -> pd.DataFrame:
    rows = [
        {
            "run_id": " ".join(sorted(part.run_id)),
            "block": block,
            "group": f"block {block}",
            "arm": arm,
            "workload": part.workload.iloc[0],
            "threads": POOLED,
            "counts": histogram.merge_counts(*part.counts),
        }
        for (block, arm), part in chosen.groupby(["block", "arm"])
        if len(part) == levels
    ]
    return pd.DataFrame(rows, columns=chosen.columns)
