"""What a forger does to a run's files: change a value, and make all hashes again."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchbook.core import files, histogram
from benchbook.read.log import Summary
from benchbook.read.sysbench_log import parse

BLOCK = "SQL statistics:\n"
HISTOGRAM = re.compile(r"(distribution -+ count\n)(.*?)(\n \n)", re.DOTALL)
REPORT = re.compile(r"tps: ([\d.]+) qps: ([\d.]+) \(r/w/o: ([\d.]+)/([\d.]+)/([\d.]+)\)")


def seal(folder: Path) -> None:
    """Write a run's manifest again, as a forger would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in manifest["files"]:
        file = folder / name
        manifest["files"][name] = {"sha256": files.sha256(file), "bytes": file.stat().st_size}
    files.write_json(folder / "manifest.json", manifest)


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each value of a JSON document with its path; of a list the first two, which stand for all."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*at, key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value[:2]):
            yield from leaves(item, (*at, number))
    else:
        yield at, value


def other(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 2 * value + 3
    if isinstance(value, float):
        return 1.5 * value + 0.7
    if isinstance(value, str):
        return "f" * 64 if len(value) == 64 else f"{value}x"
    return 7 if value is None else ["x"]


def put(value: Any, at: tuple[Any, ...], changed: Any) -> None:
    """Put a value at a path of a JSON document."""
    for key in at[:-1]:
        value = value[key]
    value[at[-1]] = changed


def timed(text: str, checkpoint_s: float = 0.0, end_s: float = 0.0) -> str:
    """Let a log's checkpoint, or its end, come some seconds later, and all else be as it was."""
    head, first, last = text.split(BLOCK)
    for_each = {"first": (first, checkpoint_s), "last": (last, end_s)}
    made = {name: _later(block, seconds) for name, (block, seconds) in for_each.items()}
    return BLOCK.join([head, made["first"], made["last"]])


def _later(block: str, seconds: float) -> str:
    return re.sub(
        r"(total time: +)([\d.]+)", lambda found: f"{found[1]}{float(found[2]) + seconds:.4f}", block
    )


def moved(text: str, share: float) -> str:
    """Let a share of what a log has in its discard be done in its window, in both blocks and in every line.

    Those that are moved took the shortest time that there was, so that hardly any time moves with them.
    """
    log, (head, first, last) = parse(text), text.split(BLOCK)
    discard, window, threads, bars = log.checkpoints[0], log.final, log.header.threads, log.histogram
    assert window is not None and bars is not None and threads is not None
    many, least = int(share * discard.whole().events), int(bars.buckets[0])
    spent_ms = many * histogram.value_of(least)
    counts = bars.full().astype(int)
    counts[least] += many
    lines = [f"{histogram.value_of(at):12.3f} |{'':40} {counts[at]}" for at in np.flatnonzero(counts)]
    before = discard.whole().total_time_s
    blocks = (
        (discard, first, -many, -spent_ms, before),
        (window, last, many, spent_ms, window.whole().total_time_s - before),
    )
    first, last = (_restated(*one, threads) for one in blocks)
    first = HISTOGRAM.sub(lambda found: found[1] + "\n".join(lines) + found[3], first)
    tail_ms = histogram.percentile(counts, window.percentile)
    last = re.sub(r"(\d+th percentile: +)[\d.]+", rf"\g<1>{tail_ms:.2f}", last)
    more = 1 + many / window.whole().events
    # The window's lines stand below the totals of the discard.
    return BLOCK.join([_faster(head, 1 - share), _faster(first, more), last])


def _restated(block: Summary, text: str, many: int, spent_ms: float, seconds: float, threads: int) -> str:
    """Return a block's text with `many` more transactions, which took `spent_ms` in all."""
    whole = block.whole()
    each = {name: getattr(block, name) // block.events for name in ("reads", "writes", "other", "total")}
    events, sum_ms = whole.events + many, whole.latency_sum_ms + spent_ms
    queries = events * each["total"]
    named = {
        "read": f"{events * each['reads']}",
        "write": f"{events * each['writes']}",
        "other": f"{events * each['other']}",
        "total": f"{queries}",
        "transactions": f"{events} ({events / seconds:.2f} per sec.)",
        "queries": f"{queries} ({queries / seconds:.2f} per sec.)",
        "total number of events": f"{events}",
        "avg": f"{sum_ms / events:.2f}",
        "sum": f"{sum_ms:.2f}",
    }
    for name, value in named.items():
        text = re.sub(rf"^( +{name}: +).+$", rf"\g<1>{value}", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"(events \(avg/stddev\): +)[\d.]+", rf"\g<1>{events / threads:.4f}", text)
    return re.sub(r"(execution time \(avg/stddev\): +)[\d.]+", rf"\g<1>{sum_ms / threads / 1000:.4f}", text)


def _faster(text: str, factor: float) -> str:
    """Return report lines with so many times as many transactions."""

    def line(found: re.Match[str]) -> str:
        tps, qps, *each = (f"{factor * float(value):.2f}" for value in found.groups())
        return f"tps: {tps} qps: {qps} (r/w/o: {'/'.join(each)})"

    return REPORT.sub(line, text)
