"""Tidy tables made by hand: runs whose ratios are exactly what a test says."""

import itertools

import pandas as pd
import pytest

from benchbook.core.study import descriptors
from tests import small
from tests.found import runs


def _runs(ratios, workload="oltp_point_select", baseline="direct", base_qps=1000.0, **columns):
    """Build runs from {arm: {threads: [ratio by block]}}; the baseline makes `base_qps` × threads."""
    rows = []
    threads = sorted({level for by_threads in ratios.values() for level in by_threads})
    blocks = max(len(values) for by_threads in ratios.values() for values in by_threads.values())
    for block, level in itertools.product(range(1, blocks + 1), threads):
        for arm in [baseline, *ratios]:
            ratio = 1.0 if arm == baseline else ratios[arm].get(level, [None] * blocks)[block - 1]
            if ratio is None:
                continue
            position, group = len(rows), f"b{block:02d}-{workload}-t{level:04d}"
            rows.append({
                "run_id": f"{group}-{arm}", "block": block, "position": position, "group": group, "arm": arm,
                "workload": workload, "threads": level, "started_s": 10.0 * position, "sysbench_s": 10.0,
                "qps": base_qps * level * ratio, "steal_pct": 0.1, "warnings": "", **columns,
            })  # fmt: skip
    return runs(rows)


@pytest.fixture
def make_runs():
    return _runs


@pytest.fixture
def make_study():
    def make(arms=("direct", "haproxy"), threads=(4,), aa=None, workloads=None, settings=None, **plan):
        proxies = descriptors.load_proxies()
        accessed = {arm: {"access": arm if arm in proxies else "direct"} for arm in arms}
        return small.study(
            engine={"settings": settings or {}},
            arms=arms if isinstance(arms, dict) else accessed,
            aa=aa and {name: tuple(values) for name, values in aa.items()},
            dataset={"tables": 1, "table_size": 100},
            workloads=workloads or {"oltp_point_select": {}},
            threads=list(threads),
            plan={"seed": 1, "blocks": 5, "discard_s": 15, "run_s": 60} | plan,
            warm_up={},
        )

    return make


@pytest.fixture
def no_voids():
    columns = ["run_id", "attempt", "block", "arm", "workload", "threads", "status", "reasons", "folder"]
    return pd.DataFrame(columns=columns)


@pytest.fixture
def no_histograms():
    return pd.DataFrame(columns=["run_id", "bucket", "value_ms", "count"])
