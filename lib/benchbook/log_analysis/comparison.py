"""Runs of logs beside each other: means, changes with intervals by Welch or by pairs, scaling, and claims.

An interval needs two runs on each side; seconds of one run are no repetitions, so they never make one.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchbook.core.util.errors import BenchbookError, did_you_mean
from benchbook.core.util.grouping import group_by
from benchbook.core.util.number_format import format_percent, format_percent_range
from benchbook.log_analysis.caveats import Caveat, caveats_of_set
from benchbook.log_analysis.layout import Layout, find_arm, identify_runs
from benchbook.log_analysis.runs import LogRun, SkippedFile, collect_runs, join_processes

if TYPE_CHECKING:
    from benchbook.compare.stats.equivalence import EquivalenceBand

LEVEL = 0.95
SEEN_EFFECT = 0.05
MIN_LEVELS_TO_SCALE = 3
# A level within this share of the highest throughput is as good: the knee is the first of them.
KNEE = 0.95


@dataclass(frozen=True)
class Change:
    """Change of an arm in one cell, as logarithms; `reason` explains a lack of interval."""

    log_mean: float
    log_low: float | None
    log_high: float | None
    n: int
    method: str
    reason: str | None

    @property
    def effect(self) -> float:
        """Change as a fraction: -0.058 is 5.8 % lower."""
        return math.expm1(self.log_mean)

    @property
    def low(self) -> float | None:
        """Lower end as a fraction."""
        return None if self.log_low is None else math.expm1(self.log_low)

    @property
    def high(self) -> float | None:
        """Upper end as a fraction."""
        return None if self.log_high is None else math.expm1(self.log_high)


@dataclass(frozen=True)
class LogCell:
    """All runs of one arm at one level of a workload, and the change against the baseline."""

    workload: str
    level: int
    arm: str
    runs: tuple[LogRun, ...]
    change: Change | None = None

    @property
    def n(self) -> int:
        return len(self.runs)

    def mean(self, metric: str) -> float:
        """Arithmetic mean of a field over the runs."""
        return statistics.fmean(getattr(run, metric) for run in self.runs)

    @property
    def variation(self) -> float | None:
        """Coefficient of variation of the throughput; None for one run."""
        rates = [run.qps for run in self.runs]
        return statistics.stdev(rates) / statistics.fmean(rates) if len(rates) > 1 else None


@dataclass
class LogSet:
    """Everything that is read out of some logs; `cells` hold the comparison, in the order of its rows."""

    runs: list[LogRun]
    left_out: list[SkippedFile]
    layout: Layout
    cells: list[LogCell]
    caveats: list[Caveat]
    scaling: list[ScalingSeries]
    files: int
    silent_files: int
    claims: list[tuple[str, str]] = field(default_factory=list)

    @property
    def arms(self) -> tuple[str, ...]:
        """Arms in their order, the baseline first."""
        return self.layout.arms

    def cell(self, workload: str, level: int, arm: str) -> LogCell | None:
        """One cell; None if the arm has no run there."""
        return next((c for c in self.cells if (c.workload, c.level, c.arm) == (workload, level, arm)), None)

    @property
    def rows(self) -> list[tuple[str, int]]:
        """Workloads and levels in their order."""
        return list(dict.fromkeys((cell.workload, cell.level) for cell in self.cells))


@dataclass(frozen=True)
class ScalingSeries:
    """Throughput and latency of an arm over its levels; `law` is the USL, or `refused` the reason."""

    arm: str
    workload: str
    levels: tuple[int, ...]
    qps: tuple[float, ...]
    latency_ms: tuple[float, ...]
    peak_level: int
    knee_level: int
    law: Any | None
    refused: str | None


def read_logs(
    paths: Sequence[Any],
    by: str | None = None,
    arm_globs: Sequence[tuple[str, str]] = (),
    baseline: str | None = None,
    keeps_series: bool = False,
) -> LogSet:
    """Runs of some paths, identified and compared; see `identify_runs` for the options."""
    collection = collect_runs(paths, keeps_series)
    runs, layout = identify_runs(collection.runs, collection.texts, by, arm_globs, baseline)
    runs = join_processes(runs)
    order = {arm: place for place, arm in enumerate(layout.arms)}
    runs.sort(key=lambda run: (run.workload, run.level, order[run.arm], run.repeat, run.path, run.line))
    cells = compare_cells(runs, layout)
    caveats = [*caveats_of_set(runs, layout.arms), *_unlike_transactions(cells, layout.arms)]
    caveats += (caveat for run in runs for caveat in run.caveats)
    return LogSet(
        runs, collection.left_out, layout, cells, caveats, [*_find_scaling(cells)], collection.files,
        collection.silent_files,
    )  # fmt: skip


def compare_cells(runs: Sequence[LogRun], layout: Layout) -> list[LogCell]:
    """Cells in the order of workload, level and arm."""
    groups = group_by(runs, lambda run: (run.workload, run.level, run.arm))
    cells = []
    for (workload, level, arm), members in groups.items():
        base = groups.get((workload, level, layout.arms[0]))
        change = compare_runs(members, base, layout.is_paired) if base and arm != layout.arms[0] else None
        cells.append(LogCell(workload, level, arm, tuple(members), change))
    return cells


def compare_runs(runs: Sequence[LogRun], base: Sequence[LogRun], is_paired: bool) -> Change | None:
    """Change of throughput; None if a run did nothing."""
    if any(run.qps <= 0 for run in (*runs, *base)):
        return None
    if is_paired and (differences := _paired_differences(runs, base)):
        n = len(differences)
        error = statistics.stdev(differences) / math.sqrt(n)
        return _build_change(statistics.fmean(differences), error, n - 1, n, "pairs")
    logs = [[math.log(run.qps) for run in side] for side in (runs, base)]
    difference, n = statistics.fmean(logs[0]) - statistics.fmean(logs[1]), min(map(len, logs))
    if n < 2:
        whose = "" if len(runs) == len(base) else " of the arm" if len(runs) < 2 else " of the baseline"
        return Change(difference, None, None, n, "none", f"one run{whose}: no interval")
    parts = [statistics.variance(side) / len(side) for side in logs]
    whole = sum(parts)
    below = sum(part**2 / (len(side) - 1) for part, side in zip(parts, logs, strict=True))
    return _build_change(difference, math.sqrt(whole), whole**2 / (below or 1.0), n, "Welch")


def _paired_differences(runs: Sequence[LogRun], base: Sequence[LogRun]) -> list[float]:
    """Difference of each run from the baseline's of the same repetition; empty unless each has one."""
    partners = {run.repeat: math.log(run.qps) for run in base}
    if len(runs) < 2 or len(partners) < len(base) or {run.repeat for run in runs} != partners.keys():
        return []
    return [math.log(run.qps) - partners[run.repeat] for run in runs]


def _build_change(mean: float, error: float, df: float, n: int, method: str) -> Change:
    if error < 1e-12:
        return Change(mean, None, None, n, method, "all runs are alike: no interval")
    # Loaded here, because most people first come with one run of each kind.
    from scipy.special import stdtrit

    half = float(stdtrit(df, (1 + LEVEL) / 2)) * error
    return Change(mean, mean - half, mean + half, n, method, None)


def needed_spread(cells: Sequence[LogCell]) -> str | None:
    """Spread between runs that would show a change of 5 %, beside the runs' actual spread."""
    counts = [cell.change.n for cell in cells if cell.change is not None]
    if not counts:
        return None
    n, sought = min(counts), format_percent(SEEN_EFFECT, 0, False)
    if n < 2:
        three, five = _spread_that_shows(3), _spread_that_shows(5)
        return (
            f"One run tells no spread. With 3 runs a cell a change of {sought} shows if runs "
            f"spread by at most {format_percent(three, signed=False)} (CV), "
            f"with 5 runs by {format_percent(five, signed=False)}."
        )
    variations = [cell.variation for cell in cells if cell.variation is not None]
    usual = math.sqrt(statistics.fmean(value**2 for value in variations))
    more = next((str(runs) for runs in range(2, 201) if _spread_that_shows(runs) >= usual), "more than 200")
    least = format_percent(_spread_that_shows(n), signed=False)
    return (
        f"Runs of a cell spread by {format_percent(usual, signed=False)} (CV). With {n} runs a cell, a "
        f"change of {sought} shows if they spread by at most {least}; "
        f"with theirs it takes {more} runs a cell."
    )


def _spread_that_shows(n: int) -> float:
    """Greatest spread (CV) at which n runs a cell still show a change of `SEEN_EFFECT`."""
    from scipy.special import stdtrit

    return math.log1p(SEEN_EFFECT) / (float(stdtrit(2 * n - 2, (1 + LEVEL) / 2)) * math.sqrt(2 / n))


def _unlike_transactions(cells: Sequence[LogCell], arms: Sequence[str]) -> Iterator[Caveat]:
    """Caveats of arms with different queries in a transaction, so that their qps differ in work."""
    named: set[tuple[str, str]] = set()
    for (workload, level), row in group_by(cells, lambda cell: (cell.workload, cell.level)).items():
        each = {cell.arm: cell.mean("qps") / cell.mean("tps") for cell in row if cell.mean("tps") > 0}
        base = each.get(arms[0])
        for cell in row:
            mine = each.get(cell.arm)
            if base and mine and abs(mine / base - 1) > 0.01 and (workload, cell.arm) not in named:
                named.add((workload, cell.arm))
                text = f"{mine:.2f} queries a transaction, {arms[0]} {base:.2f}, at {level} threads"
                yield Caveat(cell.runs[0].path, cell.runs[0].line, "queries", f"{text}: compare tps")


def _find_scaling(cells: Sequence[LogCell]) -> Iterator[ScalingSeries]:
    for (arm, workload), members in group_by(cells, lambda cell: (cell.arm, cell.workload)).items():
        if len(members) < MIN_LEVELS_TO_SCALE:
            continue
        members.sort(key=lambda cell: cell.level)
        levels = tuple(cell.level for cell in members)
        rates = tuple(cell.mean("qps") for cell in members)
        peak = levels[rates.index(max(rates))]
        knee = next(level for level, rate in zip(levels, rates, strict=True) if rate >= KNEE * max(rates))
        latency_ms = tuple(cell.mean("avg_ms") for cell in members)
        yield ScalingSeries(arm, workload, levels, rates, latency_ms, peak, knee, *_fit_law(levels, rates))


def _fit_law(levels: Sequence[int], rates: Sequence[float]) -> tuple[Any | None, str | None]:
    # Most folders have too few levels, and the module brings pandas and scipy.
    if len(levels) < 6 or levels[0] != 1:
        return None, "the scalability law needs 6 levels that begin with 1 thread"
    if min(rates) <= 0:
        return None, "a throughput is 0"
    if max(rates) == rates[-1]:
        return None, "no level past the knee: throughput does not fall after its maximum"
    from benchbook.compare.stats.scaling import MISS, fit_usl

    law = fit_usl(levels, rates)
    miss = max(abs(float(law.qps(level)) / rate - 1) for level, rate in zip(levels, rates, strict=True))
    if miss > MISS:
        return None, f"the scalability law misses a level by {miss:.0%}"
    return law, None


_CLAIM = re.compile(
    r"\s*(?:(?P<arm>[^/=<>≥≤]+?)\s*/\s*(?P<base>[^=<>≥≤]+?))?\s*(?P<sign>=|>=|<=|>|<|≥|≤)\s*(?P<value>[+-]?\d+(?:\.\d+)?)\s*"
    r"(?P<unit>%|x|times)(?:\s+at\s+(?P<level>\d+)\s+threads?)?(?:\s+(?:of|for|on)\s+(?P<workload>\S+))?\s*"
)


def judge_claim(logs: LogSet, text: str) -> str:
    """Verdict on a claim by these logs, with the numbers behind it. Raises BenchbookError."""
    from benchbook.compare.stats import equivalence
    from benchbook.compare.stats.intervals import Interval

    claim = _CLAIM.fullmatch(text)
    if claim is None:
        both = f"{logs.arms[-1]}/{logs.arms[0]}" if len(logs.arms) > 1 else "haproxy/direct"
        example = f'write "{both} = -5.8%" or "≥ 2x at 64 threads"'
        raise BenchbookError(f"--claim: {text}: not a claim; {example}")
    baseline, treated = _find_claimed_arms(text, claim, logs.arms)
    band = _find_claimed_band(claim)
    changes = [*_find_claimed_changes(logs, claim, treated, baseline)]
    if not changes:
        return f"{text}: can't be told from these logs: no level has runs of both arms"
    outcomes = {
        equivalence.judge_interval(Interval(each.n, LEVEL, each.log_mean, each.log_low, each.log_high), band)
        for _, each in changes
    }
    verdict = "does not hold" if "contradicted" in outcomes else "can't be told from these logs"
    verdict = "holds" if outcomes == {"confirmed"} else verdict
    parts = [f"{place} {format_percent(each.effect)} ({_describe_interval(each)})" for place, each in changes]
    shown = "; ".join(parts[:6]) + ("; …" if len(parts) > 6 else "")
    return f"{text}: {verdict} (allowed: {_describe_band(band)}; here: {shown})"


def _find_claimed_arms(text: str, claim: re.Match[str], arms: Sequence[str]) -> tuple[str, str]:
    """Baseline and arm of a claim, the only two where it names none. Raises BenchbookError."""
    if claim["arm"] is None:
        if len(arms) != 2:
            which = f"which arms? There are {', '.join(arms)}; write ARM/BASELINE first"
            raise BenchbookError(f"--claim: {text}: {which}")
        return arms[0], arms[1]
    names = {name: find_arm(name, arms) for name in claim.group("arm", "base")}
    for name, arm in names.items():
        if arm is None:
            raise BenchbookError(f"--claim: {name}: no arm; {did_you_mean(name, arms)}")
    return str(names[claim["base"]]), str(names[claim["arm"]])


def _find_claimed_changes(
    logs: LogSet, claim: re.Match[str], treated: str, baseline: str
) -> Iterator[tuple[str, Change]]:
    """Place and change of each cell that a claim is about and that both arms have runs in."""
    for workload, level in logs.rows:
        if int(claim["level"] or level) != level or (claim["workload"] or "") not in workload:
            continue
        here, base = (logs.cell(workload, level, arm) for arm in (treated, baseline))
        change = compare_runs(here.runs, base.runs, logs.layout.is_paired) if here and base else None
        if change is not None:
            yield f"{workload}, {level} threads", change


def _find_claimed_band(claim: re.Match[str]) -> EquivalenceBand:
    from benchbook.compare.stats import equivalence

    value, sign = float(claim["value"]), claim["sign"]
    share = value / 100 if claim["unit"] == "%" else value - 1
    if sign == "=":
        return equivalence.point_band(share)
    low, high = (share, None) if sign[0] in ">≥" else (None, share)
    return equivalence.EquivalenceBand(low, high, is_strict=sign in "<>")


def _describe_band(band: EquivalenceBand) -> str:
    low, high = (None if end is None else format_percent(end) for end in (band.low, band.high))
    return f"{low} to {high}" if low and high else f"above {low}" if low else f"below {high}"


def _describe_interval(change: Change) -> str:
    """The interval of a change, or the reason for its lack."""
    if change.low is None or change.high is None:
        return str(change.reason)
    return format_percent_range(change.low, change.high)
