"""Universal Scalability Law, and the gate in front of it: without the right data only the observed maximum.

X(N) = γN / (1 + α(N-1) + βN(N-1)) (Gunther, "Guerrilla Capacity Planning"). N/X is linear in γ, α
and β, which gives a start that cannot be missed; log residuals then weigh all levels alike.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import fdtrc

from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import NO_SPREAD, Interval, residual_mean_square, t_interval
from benchbook.compare.text.worked_arithmetic import CellCheck, build_check, render_detail, summarize_checks
from benchbook.core.artifacts import findings
from benchbook.core.artifacts.findings import Scaling
from benchbook.core.published.source import Number
from benchbook.core.published.table_cells import THREADS, describe_place
from benchbook.core.util import numeric_equality
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import format_plain

MIN_LEVELS = 6
LEVEL = 0.95
LACK_OF_FIT_P = 0.05
NO_DATA = "no block with a throughput at all levels"


@dataclass(frozen=True)
class UslFit:
    """A fitted law: `gamma` in qps of one thread, `alpha` contention, `beta` coherency."""

    gamma: float
    alpha: float
    beta: float

    def qps(self, threads: np.ndarray | float) -> np.ndarray | float:
        """Throughput at a number of threads."""
        return self.gamma * threads / (1 + self.alpha * (threads - 1) + self.beta * threads * (threads - 1))

    @property
    def peak_threads(self) -> float | None:
        """Threads of the highest throughput; None if the law has no peak."""
        if self.beta <= 0 or self.alpha >= 1:
            return None
        return math.sqrt((1 - self.alpha) / self.beta)


def fit_usl(threads: Sequence[float] | np.ndarray, qps: Sequence[float] | np.ndarray) -> UslFit:
    """Fit the law to positive throughputs by least squares of log residuals."""
    # scipy.optimize takes a third of a second to load, and most studies have too few levels to be fitted.
    from scipy.optimize import least_squares, nnls

    n = np.asarray(threads, dtype=float)
    x = np.asarray(qps, dtype=float)
    weights = x / n
    design = np.column_stack([np.ones_like(n), n - 1, n * (n - 1)])
    start, _ = nnls(design * weights[:, None], np.ones_like(n))
    # Coefficients differ by orders of magnitude, so each is fitted in units of its own contribution.
    scale = 1 / (design * weights[:, None]).max(axis=0)

    def residuals(coefficients: np.ndarray) -> np.ndarray:
        return np.log(x) - np.log(n) + np.log(design @ (coefficients * scale))

    lower = [1e-9, 0, 0]
    ends = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-14)
    polished = least_squares(residuals, np.maximum(start / scale, lower), bounds=(lower, np.inf), **ends)
    c0, c1, c2 = polished.x * scale
    return UslFit(float(1 / c0), float(c1 / c0), float(c2 / c0))


def describe_scaling(runs: pd.DataFrame, arm: str, workload: str) -> Scaling:
    """Scaling of an arm, from runs with the columns block, arm, workload, threads and qps.

    The law is fitted only with six thread levels that begin with 1, a throughput shown to fall after
    its maximum, and no lack of fit beyond the noise between blocks (F test). Intervals come from one
    fit per block and hold n = blocks.
    """
    chosen = runs[(runs.arm == arm) & (runs.workload == workload)]
    table = chosen.pivot_table(index="block", columns="threads", values="qps", aggfunc="mean").dropna()
    levels = table.columns.astype(int).tolist()
    nothing = dict.fromkeys(("observed_max_qps", "observed_max_threads", "usl", "peak_threads", "peak_qps"))
    results: dict[str, Any] = {"arm": arm, "workload": workload, "threads": levels, **nothing}
    if table.empty or (table <= 0).to_numpy().any():
        return Scaling(**results, reason=NO_DATA)
    means = np.exp(np.log(table).mean())
    top = int(means.map(numeric_equality.round_significant).idxmax())
    results |= {"observed_max_qps": float(means.max()), "observed_max_threads": top}
    if reason := _refuse_fit(np.log(table), top):
        return Scaling(**results, reason=reason)
    law = fit_usl(levels, means.to_numpy())
    if reason := _lack_of_fit(np.log(table), law):
        return Scaling(**results, reason=reason)
    peaks = [fit_usl(levels, row) for row in table.to_numpy()]
    if None in [fit.peak_threads for fit in (law, *peaks)]:
        return Scaling(**results, reason="the law has no peak in some blocks")
    tops = [require_value(peak.peak_threads) for peak in peaks]
    at_peak = t_interval(list(map(math.log, tops)), LEVEL)
    highest = [math.log(peak.qps(threads)) for peak, threads in zip(peaks, tops, strict=True)]
    results |= {
        "usl": findings.UslParameters(gamma_qps=law.gamma, alpha=law.alpha, beta=law.beta),
        "peak_threads": _to_peak(at_peak),
        "peak_qps": _to_peak(t_interval(highest, LEVEL)),
    }
    return Scaling(**results, reason=at_peak.reason)


def _to_peak(interval: Interval) -> findings.Peak:
    """Turn an interval of logarithms into the value itself with its ends."""
    low, high = (None if log is None else math.exp(log) for log in (interval.log_low, interval.log_high))
    value = math.exp(require_value(interval.log_mean))
    return findings.Peak(value=value, low=low, high=high, level=interval.level, n=interval.n)


def _refuse_fit(logs: pd.DataFrame, top: int) -> str | None:
    levels = list(logs.columns)
    if len(levels) < MIN_LEVELS or levels[0] != 1:
        return f"the scalability law needs {MIN_LEVELS} thread levels that begin with 1"
    fall = t_interval((logs[top] - logs[levels[-1]]).to_numpy(), LEVEL)
    if top == levels[-1] or not fall.is_known or not tolerance.is_above(require_value(fall.log_low), 0):
        return "no point past the knee: throughput is not shown to fall after its maximum"
    return None


def _lack_of_fit(logs: pd.DataFrame, law: UslFit) -> str | None:
    levels = logs.columns.to_numpy(dtype=float)
    noise, df2 = residual_mean_square(logs)
    df1 = len(levels) - 3
    misfit = len(logs) * float(((logs.mean() - np.log(law.qps(levels))) ** 2).sum()) / df1
    if noise < NO_SPREAD**2:
        return None if misfit < NO_SPREAD else "lack of fit: the blocks agree, but not with the law"
    p = float(fdtrc(df1, df2, misfit / noise))
    if not tolerance.is_above(p, LACK_OF_FIT_P):
        return f"lack of fit: the law misses the levels by more than noise (p = {p:.2g})"
    return None


COLLAPSE = 1 / 3
RATES = ("qps", "tps")
# A law that misses a printed number by more than this share does not describe it.
MISS = 0.05


def find_collapses(numbers: Sequence[Number]) -> list[CellCheck]:
    """Name drops of throughput by more than a third between neighbouring levels of threads.

    It is a collapse where some processor works more at the same time, or where none is printed.
    """
    name, result, n = "collapse", [], 0
    for where, series in _find_series(numbers):
        n += 1
        for before, after in pairwise(series):
            drop = after.value / before.value - 1 if before.value else 0.0
            busy = _busier_processors(numbers, before, after)
            if not tolerance.is_below(drop, -COLLAPSE) or busy == "":
                continue
            text = render_detail("collapse", before=before, after=after, drop=drop, busy=busy)
            result.append(build_check(name, False, where, text, [after.table], after.row))
    others = n - len({check.where for check in result})
    return [*result, *summarize_checks(name, others, "Series that do not", len(result))]


def check_scalability(numbers: Sequence[Number]) -> list[CellCheck]:
    """Fit of the Universal Scalability Law to each series, or the reason for its refusal.

    Without repetitions nothing tells noise from a bend, so that a fit describes the printed numbers alone: it
    fails where it misses one by more than 5 %.
    """
    name, checks = "scalability law", []
    refused: dict[str, list[str]] = {}
    for where, series in _find_series(numbers):
        levels, values = [float(number.threads) for number in series], [number.value for number in series]
        if reason := _refuse_series(levels, values):
            refused.setdefault(reason, []).append(where)
            continue
        law = fit_usl(levels, values)
        miss = float(max(abs(law.qps(np.array(levels)) / np.array(values) - 1)))
        text = render_detail("law", law=law, metric=series[0].metric, miss=miss)
        checks.append(build_check(name, bool(miss <= MISS), where, text, [series[0].table]))
    for reason, places in refused.items():
        text = f"Not fitted, as {reason}: {'; '.join(places)}."
        checks.append(build_check(name, None, f"{len(places)} series", text))
    return checks or summarize_checks(name, 0, "")


def _refuse_series(levels: Sequence[float], values: Sequence[float]) -> str | None:
    if len(levels) < MIN_LEVELS or levels[0] != 1:
        return f"the law needs {MIN_LEVELS} thread levels that begin with 1"
    if min(values) <= 0:
        return "a throughput is 0"
    if max(values) == values[-1]:
        return "it has no point past the knee (throughput does not fall after its maximum)"
    return None


def _find_series(numbers: Sequence[Number]) -> Iterator[tuple[str, list[Number]]]:
    """Series of two thread levels or more: place, and the numbers of its rate by threads."""
    groups: dict[str, list[Number]] = {}
    for number in numbers:
        if number.metric in RATES and number.is_given and isinstance(number.key("threads"), int | float):
            rest = describe_place({key: value for key, value in number.at.items() if key not in THREADS})
            groups.setdefault(f"{number.table}, {rest}, {number.metric.upper()}", []).append(number)
    for where, series in groups.items():
        ordered = sorted(series, key=lambda item: float(item.threads))
        if len({number.threads for number in ordered}) == len(ordered) > 1:
            yield where, ordered


def _busier_processors(numbers: Sequence[Number], before: Number, after: Number) -> str:
    """Processors that work more in the second of two rows; empty if no printed one does."""
    was, now = (_printed_processors(numbers, row) for row in (before, after))
    if not was.keys() & now.keys():
        return "no processor time is printed beside it"
    more = []
    for metric, value in was.items():
        if metric in now and now[metric] > value:
            part = metric.removeprefix("cpu_").removesuffix("_pct")
            more.append(f"{part} uses more CPU ({format_plain(value)} to {format_plain(now[metric])})")
    return ", ".join(more)


def _printed_processors(numbers: Sequence[Number], row: Number) -> dict[str, float]:
    """Processor times printed in the row of a number, by metric."""
    of_row = (each for each in numbers if (each.table, each.row) == (row.table, row.row))
    return {each.metric: each.value for each in of_row if each.metric.startswith("cpu_") and each.is_given}
