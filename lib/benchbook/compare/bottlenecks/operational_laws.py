"""Laws that numbers must obey together: of a printed row, and of a study's parts.

No measurement can break them whose parts were seen and counted rightly.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from benchbook.compare.bottlenecks import service_demand
from benchbook.compare.bottlenecks.service_demand import ArmCell, estimate_mean
from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import MIN_BLOCKS
from benchbook.compare.text.worked_arithmetic import (
    build_check,
    check_number,
    render_detail,
    summarize_checks,
)
from benchbook.core.artifacts.bottlenecks import Causes, Law
from benchbook.core.artifacts.findings import CellCheck
from benchbook.core.published.source import Number
from benchbook.core.util import histogram
from benchbook.core.util.grouping import group_by
from benchbook.core.util.number_format import format_plain, join_words

LITTLE_TOLERANCE = 0.01
PERCENTILE = re.compile(r"latency_p(\d+)_ms")
STATEMENTS_TOLERANCE = 0.01


def littles_law(numbers: Sequence[Number], statements: Mapping[str, float]) -> list[CellCheck]:
    """Compare threads / transactions a second with the printed mean latency; more than 1 % is flagged.

    Where only QPS is printed, transactions are QPS / `statements` (by workload, as the QPS counts them).
    Little (1961): in a closed loop the number of clients is throughput times time. A difference that the
    rounding of the two printed numbers can explain is not flagged.
    """
    name, result, unknown, n = "Little's law", [], [], 0
    rows = _pair_rates(numbers, "latency_avg_ms")
    for rate, latency in rows.values():
        if not (work := _latency_numerator(rate, statements)):
            continue
        if 0 in (rate.value, latency.value):
            what = "latency" if rate.value else "throughput"
            text = f"The {what} is 0, so there is nothing to hold against it."
            unknown.append(check_number(name, None, rate, text, True))
            continue
        n += 1
        low = work / (rate.value + rate.half_unit) / (latency.value + latency.half_unit)
        high = work / max(rate.value - rate.half_unit, 1e-9) / max(latency.value - latency.half_unit, 1e-9)
        if low > 1 + LITTLE_TOLERANCE or high < 1 - LITTLE_TOLERANCE:
            count = 1.0 if rate.metric == "tps" else statements[rate.at["workload"]]
            text = render_detail("little", rate=rate, latency=latency, work=work, statements=count)
            result.append(check_number(name, False, rate, text, True))
    bounded = _check_percentiles(numbers, statements, set(rows))
    text = "Cells that agree within 1 % or their rounding"
    agreeing = summarize_checks(name, n - len(result), text, len(result)) if n or not bounded else []
    return [*result, *unknown, *agreeing, *bounded]


def _check_percentiles(
    numbers: Sequence[Number], statements: Mapping[str, float], with_mean: set[tuple[Any, ...]]
) -> list[CellCheck]:
    """Checks by Little's law in rows without a mean: it is at least a twentieth of the 95th percentile."""
    name, result, n = "Little's law", [], 0
    metrics = {number.metric for number in numbers if re.fullmatch(r"latency_p\d\d_ms", number.metric)}
    for metric in sorted(metrics):
        least = (100 - _percentile_number(metric)) / 100
        for place, (rate, latency) in _pair_rates(numbers, metric).items():
            if place in with_mean or not rate.value or not (work := _latency_numerator(rate, statements)):
                continue
            n += 1
            mean = work / rate.value
            if mean < least * (latency.value - latency.half_unit) / histogram.RATIO:
                text = render_detail("bound", rate=rate, latency=latency, mean=mean, least=least)
                result.append(check_number(name, False, rate, text, True))
    text = "Cells without a mean whose percentile leaves room for that of the law"
    return [*result, *(summarize_checks(name, n - len(result), text, len(result)) if n else [])]


def percentile_grid(numbers: Sequence[Number]) -> list[CellCheck]:
    """Look for percentiles that sysbench's histogram cannot give; an average of several leaves its grid."""
    name, grid, n, coarse = "percentile grid", [], 0, 0
    for number in numbers:
        if not re.fullmatch(r"latency_p\d+_ms", number.metric) or not number.value > 0:
            continue
        if number.half_unit > max(0.005, 0.25 * (histogram.RATIO - 1) * number.value):
            coarse += 1
            continue
        n += 1
        if not histogram.is_on_grid(number.value):
            near = histogram.value_of(histogram.bucket_of(number.value))
            grid.append(check_number(name, False, number, render_detail("grid", one=number, near=near)))
    if coarse and n == len(grid):
        text = f"{coarse} percentiles are too coarsely rounded to tell."
        return [*grid, build_check(name, None, "nowhere", text)]
    text = "Percentiles on sysbench's grid" + (f" ({coarse} too coarsely rounded to tell)" if coarse else "")
    return [*grid, *summarize_checks(name, n - len(grid), text, len(grid))]


def statements_per_transaction(numbers: Sequence[Number], statements: Mapping[str, float]) -> list[CellCheck]:
    """Compare QPS / TPS with the statements that the workload's script sends in one transaction.

    Where cells have `cut`, the share of their transactions that their window may have cut through, they may
    differ by so much more.
    """
    name, result, n, is_cut = "statements per transaction", [], 0, False
    for qps, tps in _join_metrics(numbers, ("qps", "tps")):
        count = statements.get(qps.at["workload"])
        if not count or tps.value == 0:
            continue
        n += 1
        ratio = qps.value / tps.value
        off = abs(ratio / count - 1) - STATEMENTS_TOLERANCE
        is_cut |= 0 < off <= qps.cut
        if off > qps.cut:
            text = f"{qps.written} / {tps.written} = {ratio:.3f} statements, the script sends {count:g}."
            result.append(check_number(name, False, qps, text))
    text = "Cells that agree within 1 %" + (" or what their windows cut through" if is_cut else "")
    return [*result, *summarize_checks(name, n - len(result), text, len(result))]


def latency_order(numbers: Sequence[Number]) -> list[CellCheck]:
    """Check minimum <= mean <= maximum, percentiles that rise with their number, none above the maximum.

    A percentile stands for a bucket 1.8 % wide. Arms that stand side by side in a row are held apart.
    """
    name, result, n = "order of latencies", [], 0
    latencies = (number for number in numbers if number.metric.startswith("latency_"))
    for row in group_by(latencies, _row_key).values():
        # Turns have neither maximum nor percentiles.
        by = {cell.metric: cell.value for cell in row if not math.isnan(cell.value)}
        parts, percentiles = _ordered_latencies(by)
        n += max(len(parts), len(percentiles)) > 1
        falls = [after * histogram.RATIO < before for before, after in pairwise(percentiles)]
        if parts != sorted(parts) or any(falls):
            message = ", ".join(f"{metric} {format_plain(value)}" for metric, value in by.items())
            result.append(check_number(name, False, row[0], f"{message}."))
    return [*result, *summarize_checks(name, n - len(result), "Rows in order", len(result))]


def _ordered_latencies(by: Mapping[str, float]) -> tuple[list[float], list[float]]:
    """Minimum, mean and maximum of a row, and its percentiles by their numbers with the maximum behind."""
    parts = [by[metric] for metric in ("latency_min_ms", "latency_avg_ms", "latency_max_ms") if metric in by]
    numbered = sorted(filter(PERCENTILE.fullmatch, by), key=_percentile_number)
    highest = ["latency_max_ms"] if numbered and "latency_max_ms" in by else []
    return parts, [by[metric] for metric in (*numbered, *highest)]


def _percentile_number(metric: str) -> float:
    """Number of a percentile by its name: p999 is the 99.9th."""
    digits = metric.removeprefix("latency_p").removesuffix("_ms")
    return 100.0 if digits == "100" else float(f"{digits[:2]}.{digits[2:]}")


def _latency_numerator(rate: Number, statements: Mapping[str, float]) -> float:
    """1000 x threads x statements of a row's rate, the numerator of its mean latency; 0: unknown."""
    threads, count = rate.at.get("threads"), 1.0
    if rate.metric == "qps":
        count = statements.get(rate.at.get("workload", ""), 0.0)
    return 1000 * threads * count if isinstance(threads, int | float) else 0.0


def _pair_rates(numbers: Sequence[Number], metric: str) -> dict[tuple[Any, ...], list[Number]]:
    """Rates by place, TPS if both are printed, each with another metric of its row."""
    rows = (row for rate in ("qps", "tps") for row in _join_metrics(numbers, (rate, metric)))
    return {_row_key(row[0]): row for row in rows}


def _row_key(number: Number) -> tuple[Any, ...]:
    return number.table, number.row, frozenset(number.at.items())


def _join_metrics(numbers: Sequence[Number], metrics: Sequence[str]) -> Iterator[list[Number]]:
    """Numbers of the rows that have all of the metrics, in the order of these."""
    printed = (number for number in numbers if number.metric in metrics and number.is_given)
    for group in group_by(printed, _row_key).values():
        row = {number.metric: number for number in group}
        if len(row) == len(metrics):
            yield [row[name] for name in metrics]


SLACK = 0.02
"""Share by which clocks that are read one after the other may differ."""
TICKS = 0.5
"""Share of a part's time that a machine's books, made tick by tick, tell at the least where the part sleeps
between two ticks; two thirds were measured of two programs that wake each other for each query."""
BYTES = 0.01
"""Share by which the bytes of a query may differ between arms with the same statements."""
OWN = 0.05
"""Threads of a part's own, such as those that write in the background, which may wait too."""
PAGES = 0.01
"""Pages a query from which data that fit were read from the disk all the same."""

Told = Iterator[str | None]


def check_physics(cells: Sequence[ArmCell], baseline: str, level: float) -> Iterator[Law]:
    """Laws with their violations; passed is None if nothing recorded can tell.

    Utilisation law: queries a second times the cost of a query is busy cores, no more than there are. Little
    (1961): queries a second times the time that a query is at work in a part, or waits there for a core, are
    its queries at once, no more than there are threads. The same statements carry the same bytes. What fits
    in memory is not read from the disk, and what was not read before is.
    """
    bases = {(cell.workload, cell.threads): cell for cell in cells if cell.arm == baseline}
    checks: Mapping[str, Callable[..., Told]] = {
        "busy cores are no more than there are": _check_utilization,
        "a part has no more queries at once than there are threads": _check_concurrency,
        "a query carries the same bytes in all arms": _check_bytes,
        "data that fit in memory are not read from the disk": _check_warm,
        "what was not read before is read from the disk": _check_cold,
    }
    for law, check in checks.items():
        checked = [
            (message, cell)
            for cell in cells
            for message in check(cell, bases.get((cell.workload, cell.threads)), level)
        ]
        broken = [f"{what} ({at.arm}, {at.workload}, {at.threads} threads)" for what, at in checked if what]
        detail = join_words(broken) or f"{len(checked)} checked"
        if checked:
            yield Law(law=law, passed=not broken, detail=detail)
        else:
            yield Law(law=law, passed=None, detail="nothing recorded can tell")


def list_violations(causes: Causes | None) -> list[str]:
    """Violated laws of a study in words; such a study has no headline."""
    laws = causes.physics if causes else ()
    return [f"{law.law}, but {law.detail}" for law in laws if law.passed is False]


def _check_utilization(cell: ArmCell, base: ArmCell | None, level: float) -> Told:
    """CellCheck of utilization; a query under way at the end of a turn has part of its cost behind it."""
    for parts, cores in cell.rooms:
        busy = estimate_mean(cell.cost(parts, "busy_cores"), level)
        if busy is None:
            continue
        behind = cell.threads * float(cell.cost(parts).mean()) / (1e3 * cell.turn_ms) if cell.turn_ms else 0.0
        is_broken = tolerance.is_above(busy.value, cores * (1 + SLACK) + behind)
        yield f"{join_words(list(parts))} used {busy.value:.2f} of {cores:g} cores" if is_broken else None
    machine, own_value = float(cell.busy.mean()), float((cell.busy - cell.others).mean())
    resources = service_demand.core_resources(cell, level)
    full = [part for resource in resources if resource.is_full for part in resource.parts]
    awake = float(cell.cost(full, "busy_cores").mean()) if full else 0.0
    if tolerance.is_above(awake + TICKS * (own_value - awake), machine * (1 + SLACK) + OWN):
        yield f"all parts used {own_value:.2f} cores, and the whole machine {machine:.2f}"


def _check_concurrency(cell: ArmCell, base: ArmCell | None, level: float) -> Told:
    # Between its turns an arm's threads wait for the other arms'.
    for part in cell.costs if cell.is_closed and cell.turn_ms is None else ():
        # Each thread of such a server waits for a core by itself.
        if part == "server" and cell.has_own_work:
            continue
        waited = estimate_mean(cell.qps * (cell.cost([part]) + cell.cost([part], "wait_us")) / 1e6, level)
        if waited is not None:
            is_broken = tolerance.is_above(waited.value, cell.threads * (1 + SLACK) + OWN)
            yield f"{waited.value:.2f} queries at once in the {part}" if is_broken else None


def _check_bytes(cell: ArmCell, base: ArmCell | None, level: float) -> Told:
    # Engines of two families say the same in other words.
    if base is None or base is cell or cell.has_errors or base.has_errors or cell.engine != base.engine:
        return
    for way in ("received_bytes", "sent_bytes"):
        mine, its = (side.cost(["server"], way) for side in (cell, base))
        estimate = service_demand.relative_change(mine, its, level)
        if estimate is None or estimate.n < MIN_BLOCKS:
            continue
        low, high = (estimate.value if end is None else end for end in (estimate.low, estimate.high))
        is_broken = tolerance.is_outside(low, high, -BYTES, BYTES)
        yield f"{100 * estimate.value:+.1f} % {way.replace('_', ' ')}" if is_broken else None


def _check_warm(cell: ArmCell, base: ArmCell | None, level: float) -> Told:
    pages = cell.cost(["server"], "page_reads")
    if cell.begins == "warm" and cell.fits and pages.notna().any():
        yield f"{pages.mean():.3f} pages a query" if tolerance.is_above(float(pages.mean()), PAGES) else None


def _check_cold(cell: ArmCell, base: ArmCell | None, level: float) -> Told:
    first, pages = (cell.cost(["server"], name).dropna() for name in ("first_read_bytes", "page_reads"))
    if cell.begins == "cold" and len(first):
        yield None if (first > 0).all() else "nothing was read in a run's first second"
    elif cell.begins == "cold" and len(pages):
        yield None if (pages > 0).all() else "no page was read"
