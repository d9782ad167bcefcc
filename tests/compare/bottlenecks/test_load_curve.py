"""Load curves: cores and latency at each offered rate, and no percentile without events beyond it."""

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.bottlenecks.load_curve import build_load_curve
from benchbook.compare.stats.latency import pooled_percentile
from benchbook.core.artifacts.bottlenecks import Causes
from benchbook.core.util import histogram

EVENTS = {"at-10": 100, "at-20": 200, "at-40": 20_000}


def rated_cells(*names: str) -> tuple[Causes, pd.DataFrame, pd.DataFrame]:
    """Cells of one arm with four blocks; the server uses 0.1 cores at the first rate, 0.2 at the second."""
    runs = [
        {
            "run_id": f"{name}-{block}", "workload": name, "threads": 16, "arm": "direct", "block": block,
            "rate": int(name[3:]), "events": EVENTS[name], "queries": 5 * EVENTS[name],
        }
        for name in names
        for block in range(4)
    ]  # fmt: skip
    # Nine of ten take 1 ms, the others 10 ms, and in the last block 20 ms.
    counts = [
        {"run_id": run["run_id"], "bucket": histogram.bucket_of(ms), "count": run["events"] * share // 10}
        for run in runs
        for ms, share in ((1.0, 9), (20.0 if run["block"] == 3 else 10.0, 1))
    ]
    cells = [
        {
            "workload": name, "threads": 16, "arm": "direct", "latency_us": None, "qps": {"value": 1, "n": 4},
            "parts": [{"part": "server", "busy_cores": {"value": 0.1 * place, "n": 4}, "a_query": {}}],
            "places": [],
        }
        for place, name in enumerate(names, 1)
    ]  # fmt: skip
    causes = Causes.model_validate({"level": 0.98, "cells": cells, "contrasts": [], "physics": []})
    return causes, pd.DataFrame(runs), pd.DataFrame(counts)


def test_a_load_curve_has_cores_and_percentiles_at_each_offered_rate():
    curve = build_load_curve(*rated_cells(*EVENTS)).set_index(["offered_qps", "metric"])
    # 10, 20 and 40 transactions a second of 5 queries.
    cores = curve.xs("cpu_server_cores", level="metric")
    assert cores.value.to_dict() == pytest.approx({50.0: 0.1, 100.0: 0.2, 200.0: 0.3})
    # 4 blocks of 100 or 200 events leave 4 and 8 beyond p99, 4 of 20,000 leave 800.
    p99 = curve.xs("latency_p99_ms", level="metric")
    assert p99.value.isna().tolist() == [True, True, False]
    # The slowest hundredth of all lies inside the quarter of the tenth that took 20 ms.
    assert p99.value.iloc[2] == pytest.approx(20, rel=0.02) and p99.n.iloc[2] == 4
    assert p99.low.iloc[2] < p99.value.iloc[2] < p99.high.iloc[2]
    assert curve.loc[(200.0, "latency_p50_ms"), "value"] == pytest.approx(1, rel=0.02)


def test_two_rates_or_no_costs_are_no_curve():
    causes, *tables = rated_cells("at-10", "at-20")
    assert build_load_curve(causes, *tables).empty
    assert build_load_curve(None, *rated_cells(*EVENTS)[1:]).empty


def test_the_interval_of_a_pooled_percentile_covers_what_blocks_differ_by():
    """98 % intervals of five blocks, shifted by chance, hold the true p99 nearly always."""
    random = np.random.default_rng(3)

    def block() -> np.ndarray:
        latencies = random.lognormal(0, 0.5, 2000) * np.exp(random.normal(0, 0.05))
        return np.bincount(histogram.bucket_of(latencies), minlength=histogram.BUCKETS)

    true = pooled_percentile(np.array([block() for _ in range(500)]), 99, 0.98)
    found = [pooled_percentile(np.array([block() for _ in range(5)]), 99, 0.98) for _ in range(40)]
    assert true is not None
    assert sum(one.low <= true.value <= one.high for one in found if one is not None) >= 37
    two = pooled_percentile(np.array([10 * block() for _ in range(2)]), 99, 0.98)
    assert two is not None and two.low is None
