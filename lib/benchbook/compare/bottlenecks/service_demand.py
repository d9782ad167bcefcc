"""Service demand of each part of an arm, its saturated cores, and differences in work."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import NO_SPREAD, t_interval
from benchbook.compare.text.sentences import NOTHING
from benchbook.core.artifacts.bottlenecks import CellCosts, CoreGroup, CostEstimate, PartCost
from benchbook.core.study import descriptors
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import join_words

FULL, NEARLY = 0.95, 0.9
"""Share of a part's cores from which they are full, with no end below the other; under that they are not."""
EXACT, MOST = 0.1, 1 / 3
"""Shares of an effect by which what is predicted may miss it: whatever its interval, and at the most."""
PARTS = ("client", "proxy", "server")
Parts = tuple[str, ...]
COLUMNS = (
    "cpu_us", "system_us", "voluntary", "involuntary", "wait_us", "received_bytes", "sent_bytes",
    "read_bytes", "written_bytes", "major_faults", "instructions", "cycles", "llc_misses",
    "row_reads", "page_reads", "log_bytes", "fsyncs", "lock_wait_us", "requests",
)  # fmt: skip


@dataclass(frozen=True)
class ArmCell:
    """Values of an arm at one workload and level, by block, in the order of blocks.

    `busy` are the machine's cores, by all programs; a neighbour is another program on the server's cores.
    With errors a statement may have been sent again. `begins` is cold, warm or None; `fits`: all data fit.
    `costs` has by part a frame of the table `costs`; `rooms` the parts on each set of cores, and its size.
    """

    workload: str
    threads: int
    arm: str
    is_closed: bool
    qps: pd.Series
    steal: pd.Series
    busy: pd.Series
    has_neighbour: bool
    has_errors: bool
    turn_ms: float | None
    begins: str | None
    engine: str | None
    fits: bool
    costs: dict[str, pd.DataFrame]
    rooms: tuple[tuple[Parts, float], ...]

    @property
    def others(self) -> pd.Series:
        """Cores kept busy by programs of no part of the arm; NaN in turns, as seconds hold all arms."""
        return self.busy - self.cost(list(self.costs), "busy_cores")

    @property
    def has_own_work(self) -> bool:
        """True if many threads of its engine work for one query, and for none."""
        return bool(self.engine and descriptors.find_engine(self.engine).has_own_work)

    @property
    def latency_us(self) -> pd.Series:
        """Mean time of a query (Little 1961: threads over throughput)."""
        return 1e6 * self.threads / self.qps

    def cost(self, parts: Sequence[str], column: str = "cpu_us") -> pd.Series:
        """Service demand of some parts together, those that the arm has, by block."""
        mine = [self.costs[part][column] for part in parts if part in self.costs]
        return sum(mine[1:], mine[0]) if mine else pd.Series(dtype=float)

    def used(self, parts: Sequence[str], cores: float) -> pd.Series:
        """Utilization of some cores by the parts on them, as a share of available cores."""
        return self.cost(parts, "busy_cores") / self.left(cores)

    def left(self, cores: float) -> pd.Series:
        """Available cores: some cores net of steal, by block."""
        return cores * (1 - self.steal.fillna(0.0) / 100)


def estimate_mean(
    values: pd.Series | np.ndarray, level: float, of: Callable[[float], float] = float
) -> CostEstimate | None:
    """Mean over blocks with its t interval, each put through `of`; None if a block lacks."""
    interval = t_interval(np.asarray(values, dtype=float), level)
    if interval.log_mean is None:
        return None
    ends = [None if end is None else of(end) for end in (interval.log_low, interval.log_high)]
    return CostEstimate(value=of(interval.log_mean), low=ends[0], high=ends[1], n=interval.n)


def relative_change(treated: pd.Series, base: pd.Series, level: float) -> CostEstimate | None:
    """Change of a mean of logarithms inside the blocks of both, as a fraction."""
    both = pd.concat([treated, base], axis=1, join="inner")
    if not (both > 0).all(axis=None):
        return None
    return estimate_mean(np.log(both.iloc[:, 0] / both.iloc[:, 1]), level, math.expm1)


def mean_difference(treated: pd.Series, base: pd.Series, level: float) -> CostEstimate | None:
    """Mean difference inside the blocks of both."""
    both = pd.concat([treated, base], axis=1, join="inner")
    return estimate_mean(both.iloc[:, 0] - both.iloc[:, 1], level)


def is_decided(estimate: CostEstimate | None) -> bool:
    """True if a difference is above or below zero with its whole interval."""
    return estimate is not None and tolerance.sign_of_interval(estimate.low, estimate.high) != 0


def explains_effect(predicted: pd.Series, observed: pd.Series, level: float) -> bool:
    """True where a prediction by block has the size of the observed effect, and not its direction alone.

    They differ by a tenth at the most, or by a third and the blocks show no difference of both.
    """
    both = pd.concat([predicted, observed], axis=1, join="inner").dropna()
    mine, other = (estimate_mean(both.iloc[:, column], level) for column in (0, 1))
    if mine is None or other is None or not is_decided(other):
        return False
    is_exact = both.iloc[:, 0].std() < NO_SPREAD
    low, high = (mine.value, mine.value) if is_exact else (mine.low, mine.high)
    if tolerance.sign_of_interval(low, high) == 0:
        return False
    # Of the other direction a prediction misses by more than the whole effect.
    missed = abs(mine.value - other.value) / abs(other.value)
    if tolerance.is_below(missed, EXACT) or tolerance.is_above(missed, MOST):
        return missed < MOST
    rest = require_value(estimate_mean(both.iloc[:, 1] - both.iloc[:, 0], level))
    return rest.low is not None and not is_decided(rest)


FEWEST_RATES = 3
"""Rates from which a line through a part's cores is drawn."""


def fit_cores(cells: Sequence[CellCosts], arm: str, part: str) -> tuple[float, float] | None:
    """Line of a part's busy cores against queries a second, by least squares over the rates asked for.

    Cores at no query, and microseconds of a further query; None below three rates.
    """
    rated = [cell for cell in cells if cell.arm == arm and cell.latency_us is None]
    costs = [(cell.qps.value, cost) for cell in rated for cost in cell.parts]
    points = [(qps, cost.busy_cores.value) for qps, cost in costs if cost.part == part]
    if len({rate for rate, _ in points}) < FEWEST_RATES:
        return None
    rates, cores = np.array(points).T
    intercept, slope = np.polynomial.polynomial.polyfit(rates, cores, 1)
    return float(intercept), 1e6 * float(slope)


def summarize_cell(cell: ArmCell, level: float) -> CellCosts:
    """Cell in the form of findings.json."""
    parts = []
    for part, cost in cell.costs.items():
        estimates = {name: estimate_mean(cost[name], level) for name in COLUMNS}
        a_query = {name: estimate for name, estimate in estimates.items() if estimate is not None}
        if (busy := estimate_mean(cost["busy_cores"], level)) is not None:
            parts.append(PartCost(part=part, busy_cores=busy, a_query=a_query))
    return CellCosts(
        **{key: getattr(cell, key) for key in ("workload", "threads", "arm")},
        qps=require_value(estimate_mean(cell.qps, level)),
        latency_us=estimate_mean(cell.latency_us, level) if cell.is_closed else None,
        parts=tuple(parts),
        places=core_resources(cell, level),
    )


def core_resources(cell: ArmCell, level: float) -> tuple[CoreGroup, ...]:
    """Sets of cores with the parts on them, their utilization, and saturation."""
    result = []
    for parts, cores in cell.rooms:
        used = estimate_mean(cell.used(parts, cores), level)
        if used is None:
            continue
        may_be = used.value >= NEARLY or (used.high is not None and used.high >= FULL)
        is_full: bool | None = None if may_be else False
        if used.value >= FULL and used.low is not None and used.low >= NEARLY:
            is_full = True
        result.append(CoreGroup(parts=parts, cores=cores, used=used, is_full=is_full))
    return tuple(result)


KINDS = {
    "page_reads": ("pages read from disk", 0.01),
    "read_bytes": ("bytes read from disk", 100.0),
    "row_reads": ("rows and keys read", 0.1),
    "log_bytes": ("bytes logged", 10.0),
    "fsyncs": ("fsyncs", 0.01),
    "lock_wait_us": ("µs of lock waits", 1.0),
    "instructions": ("instructions", 1000.0),
    "llc_misses": ("last-level cache misses", 1.0),
}
"""What a server does for a query that is worth a word beside its cost, and from which difference on."""
WAITED = ("page_reads", "read_bytes", "fsyncs", "lock_wait_us")
"""What of it a query waits for."""
OF_KERNEL = ("read_bytes", "instructions", "llc_misses")
"""What of it the kernel counts, alike for all engines."""
WORTH = 1.1
"""Times by which such work, or a part's cores, must differ at the least."""
ONCE = 0.75, 1.5
"""Stops a query of a thread that only waits for the next one."""
STOPS = 0.5
"""Stops a query from which a thread waits for something else."""


@dataclass(frozen=True)
class Work:
    """One kind of work that differs: its amount in a query, and the direction of the difference."""

    kind: str
    description: str
    is_more: bool


def changed_work(base: ArmCell, treated: ArmCell, level: float) -> list[Work]:
    """Kinds of the server's work for a query that differ: decided, and by a tenth at the least."""
    works: list[Work] = []
    for name, (what, least) in KINDS.items():
        # Each engine counts in its own way, and pages are what the bytes consist of.
        if name not in OF_KERNEL and base.engine != treated.engine:
            continue
        if name == "read_bytes" and any(work.kind == "page_reads" for work in works):
            continue
        was, now = base.cost(["server"], name), treated.cost(["server"], name)
        if not is_decided(mean_difference(now, was, level)):
            continue
        low, high = sorted((float(was.mean()), float(now.mean())))
        if high >= WORTH * low and high - low >= least:
            message = f"{what} per query {_format_number(was.mean())} → {_format_number(now.mean())}"
            works.append(Work(name, message, bool(now.mean() > was.mean())))
    return works


def parenthetical(work: Sequence[Work], is_more: bool, only_waited: bool = False) -> str:
    """The server's work that goes one way, in brackets, to stand behind the effect that it explains."""
    changes = [change for change in work if change.is_more == is_more]
    messages = [change.description for change in changes if change.kind in WAITED or not only_waited]
    return f" (on the server, {join_words(messages[:2])})" if messages else ""


def waiting_side(base: ArmCell, treated: ArmCell, is_more: bool, level: float) -> str | None:
    """The one of client and server that waits half a time a query more, or less; None for both or neither.

    A thread that serves one connection stops once a query, to wait for the next. Where there is a proxy, what
    passes through in pieces stops those at both its sides; some engines' threads stop for work of their own.
    """
    if base.has_own_work or treated.has_own_work or "proxy" in {*base.costs, *treated.costs}:
        return None
    sides = [part for part in ("client", "server") if _waits_again(base, treated, part, is_more, level)]
    return sides[0] if len(sides) == 1 else None


def _waits_again(base: ArmCell, treated: ArmCell, part: str, is_more: bool, level: float) -> bool:
    """True if a part's threads, which stop once a query in one arm, stop more or less in the other."""
    was, now = (cell.cost([part], "voluntary") for cell in (base, treated))
    more = mean_difference(now, was, level)
    if more is None or not is_decided(more) or abs(more.value) < STOPS:
        return False
    return (more.value > 0) == is_more and ONCE[0] <= min(was.mean(), now.mean()) <= ONCE[1]


def _format_number(value: float) -> str:
    if value < NOTHING:
        return "almost none"
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"
