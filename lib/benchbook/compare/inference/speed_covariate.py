"""The machine's speed as a covariate of effects: analysis of covariance with one slope for a study.

Before each turn the clock makes a short loop that no arm can change. The slope is found from how each arm's
own throughput moves from block to block, never from the difference between arms, so equal arms stay equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import fdtrc

from benchbook.compare.stats import pairs
from benchbook.compare.stats.intervals import Interval, t_interval
from benchbook.core.artifacts.findings import FindingData, SpeedAdjusted
from benchbook.core.util.number_format import format_percent, format_percent_range

CELL = ["workload", "threads", "arm"]
LEAST_ROWS, LEAST_SHARE, MOST_P = 20, 0.1, 0.001
"""Runs, share of their variance that speed explains, and its error probability: registered before any
study was looked at. With less the covariate is left out, since it would only add noise."""


@dataclass(frozen=True)
class Slope:
    """Change of log throughput with the log of the machine's speed, and the share of variance it explains."""

    slope: float
    share: float
    p: float
    rows: int

    @property
    def is_used(self) -> bool:
        """True if the covariate helps, by the registered rule."""
        return self.rows >= LEAST_ROWS and self.share >= LEAST_SHARE and self.p <= MOST_P and self.slope > 0


def speed_slope(runs: pd.DataFrame) -> Slope | None:
    """Slope of log qps on log machine_speed within workload, threads and arm; None if that was not measured.

    `runs` has a row a run with block, workload, threads, arm, qps and machine_speed.
    """
    if "machine_speed" not in runs:
        return None
    usable = runs[(runs.machine_speed > 0) & (runs.qps > 0)]
    if usable.empty:
        return None
    logs = np.log(usable[["machine_speed", "qps"]].astype(float)).set_axis(["x", "y"], axis=1)
    logs -= logs.groupby([usable[name] for name in CELL]).transform("mean")
    df = len(logs) - usable.groupby(CELL).ngroups - 1
    squares = float((logs.x**2).sum())
    if df < 1 or not squares:
        return None
    slope = float((logs.x * logs.y).sum()) / squares
    whole, rest = float((logs.y**2).sum()), float(((logs.y - slope * logs.x) ** 2).sum())
    if not whole or not rest:
        return None
    return Slope(slope, 1 - rest / whole, float(fdtrc(1, df, (whole - rest) / (rest / df))), len(logs))


def adjusted_interval(ratios: pd.DataFrame, speeds: pd.DataFrame, slope: Slope, level: float) -> Interval:
    """Interval of an effect with the machine's speed taken out.

    `ratios` and `speeds` hold ln(treatment / baseline) of qps and of machine_speed, one row a block, one
    column a thread level.
    """
    return t_interval((ratios - slope.slope * speeds.loc[ratios.index]).mean(axis=1).to_numpy(), level)


def with_adjusted(findings: Sequence[FindingData], runs: pd.DataFrame) -> list[FindingData]:
    """Effects; those on throughput get an interval adjusted for machine speed, if that helps."""
    slope = speed_slope(runs)
    if slope is None or not slope.is_used:
        return list(findings)
    return [_adjust_finding(finding, runs, slope) for finding in findings]


def _adjust_finding(finding: FindingData, runs: pd.DataFrame, slope: Slope) -> FindingData:
    if finding.metric != "qps" or finding.low is None:
        return finding
    cell = (runs, finding.baseline, finding.treatment, finding.workload, finding.threads)
    ratios = pairs.block_ratios(*cell).first(finding.n).ratios
    speeds = pairs.block_ratios(*cell, "machine_speed").ratios
    if not ratios.index.isin(speeds.index).all():
        return finding
    interval = adjusted_interval(ratios, speeds, slope, finding.level)
    if not interval.is_known:
        return finding
    numbers = {name: getattr(interval, name) for name in ("effect", "low", "high")}
    effect = f"{format_percent(interval.effect)} ({format_percent_range(interval.low, interval.high)})"
    share = f"{100 * slope.share:.0f} % of the variance between runs of one cell"
    text = f"adjusted for the machine's speed: {effect}; speed explains {share}; for information only"
    adjusted = SpeedAdjusted(**numbers, slope=slope.slope, share=slope.share)
    return finding.model_copy(update={"speed_adjusted": adjusted, "warnings": [*finding.warnings, text]})
