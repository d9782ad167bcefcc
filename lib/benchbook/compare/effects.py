"""An effect with everything that speaks for and against it: interval, threads, second opinion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd
from scipy.special import stdtr

from benchbook.compare import edges
from benchbook.compare.intervals import (
    Interval,
    RankInterval,
    ThreadTest,
    block_interval,
    signed_rank_interval,
    t_interval,
    thread_test,
)
from benchbook.compare.pairs import BlockRatios
from benchbook.core.errors import given

DEPENDS_P = 0.05


@dataclass(frozen=True)
class Level:
    """The effect at one thread level, at the confidence of the look."""

    threads: int
    interval: Interval
    second_opinion: RankInterval | None


@dataclass(frozen=True)
class Effect:
    """The effect of one contrast over all its thread levels, and each level by itself.

    `interval` decides; `second_opinion` may only take a decision away. `levels` has the same two for each
    thread level; `by_threads` pairs a level with its exploratory interval. `spread` is the standard deviation
    of a block's log ratio.
    """

    contrast: BlockRatios
    interval: Interval
    second_opinion: RankInterval | None
    by_threads: tuple[tuple[int, Interval], ...]
    depends_on_threads: ThreadTest | None
    levels: tuple[Level, ...] = ()

    @property
    def depends(self) -> bool:
        """Whether the effect was shown to change with the number of threads."""
        return self.depends_on_threads is not None and edges.is_below(self.depends_on_threads.p, DEPENDS_P)

    @property
    def has_headline(self) -> bool:
        """Whether one number may stand for all thread levels: not if their signs are shown to differ."""
        effects = [interval.log_mean for _, interval in self.by_threads if interval.log_mean is not None]
        return not (self.depends and edges.is_below(min(effects), 0) and edges.is_above(max(effects), 0))

    @property
    def spread(self) -> float | None:
        """Standard deviation of the log ratio of a block; None where it is unknown."""
        if self.interval.standard_error is None:
            return None
        return self.interval.standard_error * math.sqrt(self.interval.n)


def effect(contrast: BlockRatios, level: float, per_thread_level: float) -> Effect:
    """Estimate the effect of a contrast, blocks being the unit."""
    ratios = contrast.ratios
    if contrast.refusal:
        interval = Interval(0, level, reason=contrast.refusal)
    else:
        interval = block_interval(ratios, level)
    return Effect(
        contrast,
        interval,
        signed_rank_interval(ratios.mean(axis=1).to_numpy(), level),
        tuple((int(threads), t_interval(ratios[threads].to_numpy(), per_thread_level)) for threads in ratios),
        thread_test(ratios),
        ()
        if contrast.is_pooled
        else tuple(_level(int(threads), ratios[threads], level) for threads in ratios),
    )


def _level(threads: int, ratios: pd.Series, level: float) -> Level:
    values = ratios.to_numpy()
    return Level(threads, t_interval(values, level), signed_rank_interval(values, level))


def p_value(interval: Interval) -> float | None:
    """Return the two-sided p value of "no effect"; None where there is no interval."""
    if interval.standard_error is None or interval.df is None:
        return None
    return float(2 * stdtr(interval.df, -abs(given(interval.log_mean)) / interval.standard_error))
