"""Intervals on block log ratios: Student's t over blocks, pooled pairs, across threads, and by ranks.

t intervals on log ratios keep their coverage from three blocks on, where bootstrap intervals are far
too narrow (Hesterberg 2015, "What teachers should know about the bootstrap"). The second opinion is the
Hodges-Lehmann interval from Wilcoxon's signed-rank distribution (Hollander & Wolfe, "Nonparametric
Statistical Methods", section 3.3), which supposes of the noise only that block log ratios are symmetric.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import fdtrc, stdtrit

from benchbook.core.artifacts.findings import Depends

MIN_BLOCKS = 3
# Below this spread of log ratios the values are copies of each other up to rounding.
NO_SPREAD = 1e-12
SAME_RATIOS = "all blocks have the same ratio, so chance cannot be judged"


@dataclass(frozen=True)
class Interval:
    """Mean log ratio and its two-sided interval; `low` and `high` are None if `reason` is set.

    `log_mean`, `log_low`, `log_high` and `standard_error` are on the log scale; `effect`, `low` and
    `high` are fractions (0.061 is +6.1 %). n counts blocks.
    """

    n: int
    level: float
    log_mean: float | None = None
    log_low: float | None = None
    log_high: float | None = None
    standard_error: float | None = None
    df: float | None = None
    reason: str | None = None

    @property
    def effect(self) -> float | None:
        return _to_fraction(self.log_mean)

    @property
    def low(self) -> float | None:
        return _to_fraction(self.log_low)

    @property
    def high(self) -> float | None:
        return _to_fraction(self.log_high)

    @property
    def numbers(self) -> dict[str, Any]:
        """Numbers of the interval in the form of findings."""
        return {key: getattr(self, key) for key in ("effect", "low", "high", "level", "n")}

    @property
    def is_known(self) -> bool:
        """True if there is an interval at all."""
        return self.log_low is not None


def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t distribution."""
    return float(stdtrit(df, probability))


def t_interval(values: Sequence[float] | np.ndarray, level: float) -> Interval:
    """Mean ± t·s/√n of independent log ratios; no interval below three of them or without spread."""
    data = np.asarray(values, dtype=float)
    n = len(data)
    if not n:
        return Interval(0, level, reason="no complete block")
    if not np.isfinite(data).all():
        return Interval(n, level, reason="a block has no number")
    mean = float(data.mean())
    if n < MIN_BLOCKS:
        return Interval(n, level, mean, reason=f"an interval needs {MIN_BLOCKS} blocks")
    spread = float(data.std(ddof=1))
    if spread < NO_SPREAD:
        return Interval(n, level, mean, reason=SAME_RATIOS)
    standard_error = spread / math.sqrt(n)
    half = t_quantile((1 + level) / 2, n - 1) * standard_error
    return Interval(n, level, mean, mean - half, mean + half, standard_error, n - 1)


def block_interval(ratios: pd.DataFrame, level: float) -> Interval:
    """Interval of the mean over threads, blocks being the unit (arms stay up side by side)."""
    return t_interval(ratios.mean(axis=1).to_numpy(), level)


def residual_mean_square(table: pd.DataFrame) -> tuple[float, int]:
    """Residual of a complete table after row and column means: mean square, degrees of freedom."""
    rows, columns = table.shape
    values = table.to_numpy()
    residuals = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    df = (rows - 1) * (columns - 1)
    return (float((residuals**2).sum()) / df, df) if df else (math.nan, 0)


def thread_test(ratios: pd.DataFrame) -> Depends | None:
    """F test in a two-way table that the effect depends on threads; None if it cannot be tested."""
    blocks, levels = ratios.shape
    if blocks < 2 or levels < 2:
        return None
    residual, df2 = residual_mean_square(ratios)
    if residual < NO_SPREAD**2:
        return None
    df1 = levels - 1
    between = blocks * float(ratios.mean().var(ddof=1))
    f = between / residual
    return Depends(f=f, p=float(fdtrc(df1, df2, f)), df1=df1, df2=df2)


def _to_fraction(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else math.expm1(log_ratio)


@cache
def tail_probabilities(n: int) -> tuple[float, ...]:
    """P(W <= w) for w = 0, 1, … of the signed-rank sum of n values without effect."""
    counts = [1]
    for rank in range(1, n + 1):
        longer = counts + [0] * rank
        counts = [count + (longer[w - rank] if w >= rank else 0) for w, count in enumerate(longer)]
    return tuple(cumulative / 2**n for cumulative in accumulate(counts))


def signed_rank_interval(values: Sequence[float] | np.ndarray, level: float) -> Interval | None:
    """Pseudo-median with an exact interval of at least `level`; None for too few values.

    The smallest n is 6 at 95 % and 7 at 98 %: with fewer, even the widest interval covers less.
    """
    data = np.asarray(values, dtype=float)
    n = len(data)
    tail = (1 - level) / 2
    if n == 0 or not np.isfinite(data).all() or 0.5**n > tail:
        return None
    first, second = np.triu_indices(n)
    walsh = np.sort((data[first] + data[second]) / 2)
    cut = sum(probability <= tail for probability in tail_probabilities(n)) - 1
    return Interval(n, level, float(np.median(walsh)), float(walsh[cut]), float(walsh[-1 - cut]))
