"""Load curves: busy cores of each part and latency percentiles of each arm, against the offered rate."""

import numpy as np
import pandas as pd

from benchbook.compare.bottlenecks.service_demand import FEWEST_RATES
from benchbook.compare.stats.latency import dense_counts, metric_name, pooled_percentile
from benchbook.core.artifacts.bottlenecks import Causes

PERCENTILES = 50.0, 99.0
KEYS = ["workload", "threads", "arm"]


def build_load_curve(causes: Causes | None, runs: pd.DataFrame, histograms: pd.DataFrame) -> pd.DataFrame:
    """A row for each cell with an offered rate and each of its metrics; none below three rates.

    The metric is `cpu_PART_cores` or `latency_pN_ms`; value, low and high are NaN where they are not known.
    Offered queries/s are sysbench's transactions/s times the queries of a transaction.
    """
    columns = [*KEYS, "offered_qps", "metric", "value", "low", "high", "n"]
    rated = runs[runs.rate > 0] if "rate" in runs else runs.iloc[:0]
    if causes is None or rated.empty or rated.rate.nunique() < FEWEST_RATES:
        return pd.DataFrame(columns=columns)
    costs = {(cell.workload, cell.threads, cell.arm): cell for cell in causes.cells}
    rows = []
    for key, cell in rated.groupby(KEYS, sort=False):
        if key not in costs:
            continue
        offered = cell.rate.iloc[0] * cell.queries.sum() / cell.events.sum()
        parts = {f"cpu_{part.part}_cores": part.busy_cores for part in costs[key].parts}
        of_cell = histograms[histograms.run_id.isin(cell.run_id)]
        counts = np.array([dense_counts(of_run) for _, of_run in of_cell.groupby("run_id")])
        latencies = {metric_name(p): pooled_percentile(counts, p, causes.level) for p in PERCENTILES}
        place = {**dict(zip(KEYS, key, strict=True)), "offered_qps": offered}
        for metric, estimate in {**parts, **latencies}.items():
            rows.append({**place, "metric": metric, **(estimate.model_dump() if estimate else {})})
    return pd.DataFrame(rows, columns=columns).sort_values(["arm", "metric", "offered_qps"], kind="stable")
