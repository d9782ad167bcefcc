"""Precision of measuring on this machine now: equal arms, and arms made to differ, on real servers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.meta import sample_size
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.params import Limits
from benchbook.core.study.study import StudySpec
from benchbook.core.util import paths
from benchbook.measure import dataset, scheduler
from benchbook.measure.data_plan import plan_data
from benchbook.plan import schedule
from benchbook.read import tidy, validity
from benchbook.sites import open_site
from benchbook.sites.contract import Site
from benchbook.sites.processes import signal_handling
from benchbook.sites.topology import teardown
from benchbook.sites.workspace import lab_root

LEVEL = 0.98
EQUAL_ARMS: dict[str, Any] = {
    "title": "Calibration",
    "question": "Does a difference that is known come out as it is?",
    "engine": {"settings": {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "32M"}},
    "arms": {"one": {}, "other": {}},
    "aa": None,
    "dataset": {"tables": 2, "table_size": 10000},
    "workloads": {"oltp_point_select": {}},
    "threads": [4],
    "plan": {"seed": 7, "blocks": 3, "discard_s": 1, "run_s": 3, "max_repeats": 3},
    "warm_up": {"pilot_s": 0},
    "claims": [],
}
"""Study of one cell: a server against itself."""
MINUTES = 10
BLOCK_S = 13.0
"""Seconds of a block of one pair with a fresh start of its server, for the forecast."""


def build_study(parts: Mapping[str, Any] | None = None, port: int = 23990, **plan: Any) -> StudySpec:
    """A study of one cell: equal arms, unless `parts`, sections of a study, say otherwise."""
    inputs = {"site": {"port": port}, "plan": EQUAL_ARMS["plan"] | plan, **(parts or {})}
    return StudySpec.model_validate(EQUAL_ARMS | inputs)


def measure_runs(
    of: StudySpec, lab: Path, into: Path, limits: Limits | None = None, say: Callable[[str], None] = print
) -> pd.DataFrame:
    """Make all runs of a study in a lab, their folders below `into`; return the table of valid `runs`."""
    bounds = limits or Limits()
    runs = schedule.plan_runs("calibration", of, {})
    with open_site(of, lab) as site:
        if not site.has_snapshot(plan_data(of).label):
            dataset.load_data(site, plan_data(of))
        run_planned(of, runs, site, into, bounds, say)
    tables = tidy.read_study(into / "raw", into / "void", schedule.schedule_table(runs), bounds)
    return tables["runs"].to_pandas()


def run_planned(
    of: StudySpec,
    runs: list[PlannedRun],
    site: Site,
    into: Path,
    limits: Limits,
    say: Callable[[str], None] = lambda _: None,
    stop: scheduler.Stop | None = None,
) -> scheduler.MatrixRunner:
    """Make planned runs of a study, their folders below `into`; return a summary of the work done."""
    inputs = site, into / "raw", into / "void", partial(validity.judge_run, limits=limits)
    runner = scheduler.MatrixRunner(of, runs, *inputs, limits.model_dump(), say, stop=stop)
    return scheduler.run_missing(runner)


def log_ratios(
    runs: pd.DataFrame, baseline: str, treatment: str, metric: str = "qps", side: str = "arm"
) -> pd.Series:
    """ln(treatment / baseline) of a metric for each block, the mean over cells; `side` is their column."""
    index = [name for name in ("block", "workload", "threads", "arm") if name != side]
    wide = runs.pivot_table(index=index, columns=side, values=metric)
    return np.log(wide[treatment] / wide[baseline]).dropna().groupby("block").mean()


@contextmanager
def make_lab(prefix: str = "calibration-") -> Iterator[Path]:
    """Folder among this clone's labs that a server's user can reach, as a context; nothing of it stays."""
    root = lab_root(paths.find_root())
    teardown.sweep_labs(root)
    # Caught here, since a site in this folder would end the process as soon as it is left itself.
    with signal_handling.catch_signals():
        base = teardown.make_temporary(root, prefix)
        try:
            yield base
        finally:
            teardown.clear_folder(base)


def measure_noise() -> float:
    """Measure equal arms for half a minute; the least effect, a fraction, seen in `MINUTES` at 80 % power."""
    of = build_study()
    with make_lab() as base:
        runs = measure_runs(of, base / "lab", base, say=lambda _: None)
    ratios = log_ratios(runs, *of.arms)
    spread = sample_size.upper_spread_bound(float(ratios.std(ddof=1)), len(ratios))
    blocks = int(MINUTES * 60 / BLOCK_S)
    return sample_size.detectable_effect(spread, blocks, LEVEL) or math.inf
