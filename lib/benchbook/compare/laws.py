"""Laws that numbers of one row must obey together: throughput and latency, statements, percentiles, order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.compare.arithmetic import percent, plain
from benchbook.compare.checking import Check, check, place_of, summary
from benchbook.core import histogram
from benchbook.core.cells import written
from benchbook.core.source import CUT, keys

LITTLE_TOLERANCE = 0.01
STATEMENTS_TOLERANCE = 0.01


def littles_law(cells: pd.DataFrame, statements: Mapping[str, float]) -> list[Check]:
    """Compare threads / transactions a second with the printed mean latency; more than 1 % is flagged.

    Where only QPS is printed, transactions are QPS / `statements` (by workload, as the QPS counts them).
    Little (1961): in a closed loop the number of clients is throughput times time. A difference that the
    rounding of the two printed numbers can explain is not flagged.
    """
    name, found, unknown, n = "Little's law", [], [], 0
    by_tps, by_qps = (
        {
            (line["table"], line["row"], place_of(line)): line
            for line in _wide(cells, (rate, "latency_avg_ms"))
        }
        for rate in ("tps", "qps")
    )
    for place, line in (by_qps | by_tps).items():
        is_tps = place in by_tps
        count = 1.0 if is_tps else statements.get(line["workload"])
        if not count or not _number(line.get("threads")):
            continue
        rate, rate_half, shown_rate = line["tps" if is_tps else "qps"]
        latency, latency_half, shown_latency = line["latency_avg_ms"]
        if not rate or not latency:
            where, what = f"{line['table']}, {place_of(line)}", "latency" if rate else "throughput"
            text = f"The {what} is 0, so there is nothing to hold against it."
            unknown.append(check(name, None, where, text, [line["table"]], line["row"]))
            continue
        n += 1
        work = 1000 * line["threads"] * count
        low = work / (rate + rate_half) / (latency + latency_half)
        high = work / max(rate - rate_half, 1e-9) / max(latency - latency_half, 1e-9)
        if low > 1 + LITTLE_TOLERANCE or high < 1 - LITTLE_TOLERANCE:
            factor = "" if count == 1 else f" x {count:g} statements"
            detail = (
                f"{line['threads']} threads{factor} / {shown_rate} {'TPS' if is_tps else 'QPS'} = "
                f"{work / rate:.2f} ms, printed {shown_latency} ms: ratio {work / rate / latency:.4f}, "
                f"throughput {percent(rate * latency / work - 1, 1)} against what that latency gives."
            )
            where = f"{line['table']}, {place_of(line)}"
            found.append(check(name, False, where, detail, [line["table"]], line["row"]))
    bounded = _of_percentiles(cells, statements, {*by_tps, *by_qps})
    text = "Cells that agree within 1 % or their rounding"
    agreeing = summary(name, n - len(found), text, len(found)) if n or not bounded else []
    return [*found, *unknown, *agreeing, *bounded]


def _of_percentiles(
    cells: pd.DataFrame, statements: Mapping[str, float], with_mean: set[tuple[Any, Any, str]]
) -> list[Check]:
    """Hold percentiles against Little's law where no mean is printed, of which there may be none.

    Of the transactions 5 % take the 95th percentile or longer, so the mean is at least a twentieth of it. A
    percentile stands for a bucket 1.8 % wide.
    """
    name, found, n = "Little's law", [], 0
    for metric in sorted({one for one in cells["metric"] if re.fullmatch(r"latency_p\d\d_ms", one)}):
        least = (100 - int(metric[len("latency_p") : -len("_ms")])) / 100
        rows = {
            (line["table"], line["row"], place_of(line)): (rate, line)
            for rate in ("qps", "tps")
            for line in _wide(cells, (rate, metric))
        }
        for place, (rate, line) in rows.items():
            count = 1.0 if rate == "tps" else statements.get(line["workload"])
            if place in with_mean or not count or not _number(line.get("threads")) or not line[rate][0]:
                continue
            n += 1
            mean = 1000 * line["threads"] * count / line[rate][0]
            value, half, text = line[metric]
            if mean < least * (value - half) / histogram.RATIO:
                detail = (
                    f"{line['threads']} threads at {line[rate][2]} {rate.upper()} have a mean of {mean:.2f} "
                    f"ms. As {least:.0%} take the printed {text} ms ({metric}) or longer, it is "
                    f"{least * value:.2f} ms at least."
                )
                where = f"{line['table']}, {place_of(line)}"
                found.append(check(name, False, where, detail, [line["table"]], line["row"]))
    text = "Cells without a mean whose percentile leaves room for that of the law"
    return [*found, *(summary(name, n - len(found), text, len(found)) if n else [])]


def percentile_grid(cells: pd.DataFrame) -> list[Check]:
    """Look for percentiles that sysbench's histogram cannot give; an average of several leaves its grid."""
    name, found, n, coarse = "percentile grid", [], 0, 0
    chosen = cells[cells["metric"].str.fullmatch(r"latency_p\d+_ms") & cells["value"].notna()]
    for line in chosen.to_dict("records"):
        if line["value"] <= 0:
            continue
        if line["half_unit"] > max(0.005, 0.25 * (histogram.RATIO - 1) * line["value"]):
            coarse += 1
            continue
        n += 1
        if not histogram.is_on_grid(line["value"]):
            near = histogram.value_of(histogram.bucket_of(line["value"]))
            found.append(
                check(
                    name,
                    False,
                    f"{line['table']}, {place_of(line)}",
                    f"{line['printed']} ({line['metric']}) is not a value of sysbench's histogram; the "
                    "nearest is "
                    f"{near:.2f} ms. An average of several percentiles looks like this.",
                    [line["table"]],
                )
            )
    if coarse and n == len(found):
        found.append(check(name, None, "nowhere", f"{coarse} percentiles are too coarsely rounded to tell."))
        return found
    text = "Percentiles on sysbench's grid" + (f" ({coarse} too coarsely rounded to tell)" if coarse else "")
    return [*found, *summary(name, n - len(found), text, len(found))]


def statements_per_transaction(cells: pd.DataFrame, statements: Mapping[str, float]) -> list[Check]:
    """Compare QPS / TPS with the statements that the workload's script sends in one transaction.

    Where cells have `cut`, the share of their transactions that their window may have cut through, they may
    differ by so much more.
    """
    name, found, n, is_cut = "statements per transaction", [], 0, False
    for line in _wide(cells, ("qps", "tps")):
        count = statements.get(line["workload"])
        if not count or line["tps"][0] == 0:
            continue
        n += 1
        ratio = line["qps"][0] / line["tps"][0]
        off = abs(ratio / count - 1) - STATEMENTS_TOLERANCE
        is_cut |= 0 < off <= line.get(CUT, 0.0)
        if off > line.get(CUT, 0.0):
            found.append(
                check(
                    name,
                    False,
                    f"{line['table']}, {place_of(line)}",
                    f"{line['qps'][2]} / {line['tps'][2]} = {ratio:.3f} statements, the "
                    "script sends "
                    f"{count:g}.",
                    [line["table"]],
                )
            )
    text = "Cells that agree within 1 %" + (" or what their windows cut through" if is_cut else "")
    return [*found, *summary(name, n - len(found), text, len(found))]


def latency_order(cells: pd.DataFrame) -> list[Check]:
    """Check minimum <= mean <= maximum, and no percentile above the maximum by more than its bucket."""
    name, found, n = "order of latencies", [], 0
    for (table, _), group in cells[cells["metric"].str.startswith("latency_")].groupby(
        ["table", "row"], sort=False
    ):
        by = {line["metric"]: line["value"] for line in group.to_dict("records")}
        low, mean, high = (by.get(f"latency_{part}_ms") for part in ("min", "avg", "max"))
        parts = [part for part in (low, mean, high) if part is not None]
        if len(parts) < 2:
            continue
        n += 1
        over = [m for m, v in by.items() if "_p" in m and high is not None and v > high * histogram.RATIO]
        if parts != sorted(parts) or over:
            written = ", ".join(f"{metric} {plain(value)}" for metric, value in by.items())
            found.append(
                check(
                    name, False, f"{table}, {place_of(group.iloc[0].to_dict())}", f"{written}.", [str(table)]
                )
            )
    return [*found, *summary(name, n - len(found), "Rows in order", len(found))]


def _wide(cells: pd.DataFrame, metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield rows that have all of the metrics, each as (value, half of its last place, printed text)."""
    chosen = cells[cells["metric"].isin(metrics) & cells["value"].notna()]
    names = keys(chosen)
    # Thousands of small groups, for which pandas takes a hundred times as long as Python itself.
    rows: dict[tuple[Any, Any], dict[tuple[str, ...], list[dict[str, Any]]]] = {}
    for line in chosen.to_dict("records"):
        place = rows.setdefault((line["table"], line["row"]), {})
        place.setdefault(tuple(str(line[name]) for name in names), []).append(line)
    for lines in (lines for row in rows.values() for lines in row.values()):
        if {line["metric"] for line in lines} == set(metrics):
            yield {
                **lines[0],
                **{line["metric"]: (line["value"], line["half_unit"], written(line)) for line in lines},
            }


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not pd.isna(value)
