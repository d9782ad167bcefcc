"""A real server for benchmarks: a lab, a lock and ports of their own, and nothing left afterwards."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from benchbook import sites
from benchbook.commands import machine_noise
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data

PORT = 35810
# How busy the machine is, is not the question here.
LIMITS = {
    "steal_pct": 100.0, "client_wait": 10.0, "client_cpu": 1.0, "pause_ms": 60_000.0, "overrun_s": 30.0,
    "clock_step_s": 60.0,
}  # fmt: skip


def study(**changes: Any) -> StudySpec:
    """Return a study of the baseline and a proxy with short runs, with other sections as given."""
    return StudySpec.model_validate(
        {
            "title": "A benchmark of the benchmark",
            "question": "What does a run cost?",
            "site": {"port": PORT},
            "engine": {},
            "arms": {"direct": {"access": "direct"}, "haproxy": {"access": "haproxy"}},
            "aa": None,
            "dataset": {"tables": 2, "table_size": 20_000},
            "workloads": {"oltp_point_select": {}, "oltp_read_write": {}},
            "threads": [4],
            "plan": {"seed": 3, "blocks": 2, "discard_s": 1, "run_s": 2, "order": "runs"},
            "warm_up": {"pilot_s": 0},
            "claims": [],
        }
        | changes
    )


@contextmanager
def place() -> Iterator[Path]:
    """Yield a folder for a lab and for results, with a lock of its own; nothing of it stays."""
    with mock.patch.dict(os.environ), machine_noise.make_lab("bb-bench-") as base:
        os.environ["BENCHBOOK_LOCK"] = str(base / "machine.lock")
        yield base


@contextmanager
def opened(of: StudySpec) -> Iterator[tuple[Any, Path]]:
    """Yield the site of a study with its data loaded, and a folder for results."""
    with place() as base, sites.open_site(of, base / "lab") as site:
        dataset.load_data(site, plan_data(of))
        yield site, base
