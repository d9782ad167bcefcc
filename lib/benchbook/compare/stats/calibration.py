"""Calibration results: false alarms of equal arms, known effects by both orders, turn lengths.

A campaign is one study of one cell. Its log ratios, one a block, are all that is needed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv, chdtri, stdtrit

from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import Interval, t_interval
from benchbook.compare.text.sentences import render_paragraphs

SAME, KNOWN, LENGTHS = "same", "known", "lengths"
KINDS = (SAME, KNOWN, LENGTHS)
LEVEL = 0.98
"""Confidence of a campaign's interval: of a hundred campaigns of equal arms two leave out zero."""
MOST_ALARMS = 0.06
"""Share of the campaigns of equal arms that may leave out zero."""
OF_SHARES = 0.95
"""Confidence of the interval of a share or a spread."""
ROWS = "rows"
"""The known effect whose sides are two workloads on equal arms; those of all others are two arms."""


@dataclass(frozen=True)
class Share:
    """Count out of a total, and the exact 95 % interval (Clopper and Pearson) of the share."""

    number: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share itself."""
        return self.number / self.of


def share_of(flags: Sequence[bool]) -> Share | None:
    """Number of true values as a share; None of no values."""
    number, of, tail = sum(flags), len(flags), (1 - OF_SHARES) / 2
    if not of:
        return None
    low = float(betaincinv(number, of - number + 1, tail)) if number else 0.0
    high = float(betaincinv(number + 1, of - number, 1 - tail)) if number < of else 1.0
    return Share(number, of, low, high)


def log_ratios(
    runs: pd.DataFrame, baseline: str, treatment: str, metric: str = "qps", side: str = "arm"
) -> pd.Series:
    """Return ln(treatment / baseline) of a metric for each block, the mean over its cells.

    `side` is the column that tells treatment from baseline.
    """
    index = [name for name in ("block", "workload", "threads", "arm") if name != side]
    wide = runs.pivot_table(index=index, columns=side, values=metric)
    return np.log(wide[treatment] / wide[baseline]).dropna().groupby("block").mean()


def text_of(ratios: Sequence[float]) -> str:
    """Write log ratios as a table keeps them: `0.01234567 -0.00200000`."""
    return " ".join(f"{ratio:.8f}" for ratio in ratios)


def ratios_of(text: str) -> np.ndarray:
    """Return the log ratios that `text_of` wrote."""
    return np.array([float(item) for item in text.split()])


_NUMBERS = ("effect", "low", "high", "difference", "times")


def count_false_alarms(table: pd.DataFrame) -> Share | None:
    """Count of equal-arm campaigns with an interval that leaves out zero, with its exact interval;
    None where no campaign has an interval."""
    ends = table[["low", "high"]].dropna().to_numpy()
    return share_of([tolerance.is_outside(low, high, 0, 0) for low, high in ends])


def compare_orders(table: pd.DataFrame) -> pd.DataFrame:
    """Comparison of both orders for each known effect, a row each: effects with intervals, their
    difference with its interval, whether that holds zero, and how many times the seconds of turns whole runs
    need for the same error.

    The blocks of repeated campaigns are taken together, since servers and clients start again in each.
    """
    rows = []
    for (what, engine, workload), campaigns in table.groupby(["what", "engine", "workload"], sort=False):
        by = {}
        for order, part in campaigns.groupby("order"):
            ratios = np.concatenate([ratios_of(text) for text in part.log_ratios])
            # With the active seconds of a block.
            by[order] = ratios, float(part.active_s.sum()) / max(len(ratios), 1)
        if not {"turns", "runs"} <= set(by):
            continue
        intervals = {order: t_interval(ratios, LEVEL) for order, (ratios, _) in by.items()}
        rows.append(
            {
                "what": what,
                "engine": engine,
                "workload": workload,
                **{
                    f"{order}_{name}": getattr(intervals[order], name)
                    for order in ("turns", "runs")
                    for name in ("effect", "low", "high", "n")
                },
                **_effect_difference(intervals["turns"], intervals["runs"]),
                "times": _time_ratio(by["turns"], by["runs"]),
            }
        )
    table = pd.DataFrame(rows)
    # Without an interval there is none, and a column of such alone would be no numbers.
    return table.astype({name: float for name in table if name.endswith(_NUMBERS)})


def estimate_spreads(table: pd.DataFrame) -> pd.DataFrame:
    """Spread of a block's log ratio for each length of a turn, pooled over campaigns, with its
    interval, and the number of campaigns and blocks."""
    rows = []
    for turn_ms, campaigns in table.groupby("turn_ms"):
        parts = [ratios for ratios in map(ratios_of, campaigns["log_ratios"]) if len(ratios) > 1]
        df = sum(len(part) - 1 for part in parts)
        if not df:
            continue
        squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
        tail = (1 - OF_SHARES) / 2
        ends = [math.sqrt(squares / chdtri(df, probability)) for probability in (tail, 1 - tail)]
        blocks = df + len(parts)
        rows.append((int(turn_ms), math.sqrt(squares / df), *ends, len(parts), blocks))
    return pd.DataFrame(rows, columns=["turn_ms", "spread", "low", "high", "campaigns", "blocks"])


def mean_time_ratio(table: pd.DataFrame) -> float | None:
    """Ratio of measuring times of whole runs and turns for the same error: the geometric mean over
    known effects, None without any."""
    orders = compare_orders(table)
    ratios = orders.times.dropna() if len(orders) else pd.Series(dtype=float)
    return float(np.exp(np.log(ratios).mean())) if len(ratios) else None


def _effect_difference(turns: Interval, runs: Interval) -> dict[str, Any]:
    """Effect of turns over that of whole runs, less one, with Welch's interval."""
    if turns.standard_error is None or runs.standard_error is None:
        return dict.fromkeys(("difference", "difference_low", "difference_high", "is_same"))
    parts = [interval.standard_error**2 for interval in (turns, runs) if interval.standard_error is not None]
    error = math.sqrt(sum(parts))
    df = error**4 / sum(
        part**2 / (interval.n - 1) for part, interval in zip(parts, (turns, runs), strict=True)
    )
    mean = (turns.log_mean or 0.0) - (runs.log_mean or 0.0)
    half = float(stdtrit(df, (1 + LEVEL) / 2)) * error
    ends = {"difference": mean, "difference_low": mean - half, "difference_high": mean + half}
    return {name: math.expm1(value) for name, value in ends.items()} | {
        "is_same": tolerance.is_below(abs(mean), half)
    }


def _time_ratio(turns: tuple[np.ndarray, float], runs: tuple[np.ndarray, float]) -> float | None:
    """Ratio of variances at equal active seconds; None if it is unknown."""
    if min(len(turns[0]), len(runs[0])) < 2 or not turns[0].std():
        return None
    per_second = [float(ratios.var(ddof=1)) * seconds for ratios, seconds in (runs, turns)]
    return per_second[0] / per_second[1]


def render_sentences(table: pd.DataFrame) -> list[str]:
    """Results of the campaigns in a table, a sentence for each of the three questions with data."""
    campaigns = table[table.kind == KNOWN]
    return render_paragraphs(
        "calibration.j2",
        alarms=count_false_alarms(table[table.kind == SAME]),
        most_alarms=MOST_ALARMS,
        known=list(compare_orders(campaigns).itertuples()),
        times=mean_time_ratio(campaigns),
        lengths=list(estimate_spreads(table[table.kind == LENGTHS]).itertuples()),
        level=LEVEL,
        of_shares=OF_SHARES,
    )
