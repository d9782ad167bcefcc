"""What a treatment changed, in one sentence made of its rows: each number holds for every cell it names.

A level, workload or metric is left out only where the sentence is true of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchbook.compare.text import labels
from benchbook.compare.text.results_table import ResultRow, rows_of_finding
from benchbook.core.artifacts.findings import Finding
from benchbook.core.util.number_format import (
    format_count,
    format_level,
    format_percent_range,
    join_words,
)

# What a sentence says of cells that are not higher or lower, in the order in which it says it.
_QUIET = {
    "no practical difference": "no practical difference",
    "not shown": "no difference was shown",
    "no useful interval": "no useful interval",
    "not decided yet": "nothing is decided yet",
    "not computed": "no number",
}
RATES = {"qps": "queries/s", "tps": "transactions/s"}


@dataclass(frozen=True)
class Conclusion:
    """A sentence on one treatment and metric, with the rows that it covers."""

    text: str
    rows: tuple[ResultRow, ...]


def summarize_rows(rows: Iterable[ResultRow]) -> list[Conclusion]:
    """One sentence for each treatment, baseline and metric, in the order of the rows."""
    groups: dict[tuple[str, str, str], list[ResultRow]] = {}
    for row in rows:
        groups.setdefault((row.treatment, row.baseline, row.metric), []).append(row)
    return [Conclusion(_write_sentence(group), tuple(group)) for group in groups.values()]


def describe_finding(finding: Finding) -> str:
    """Sentence on one finding, made of its own rows."""
    return " ".join(conclusion.text for conclusion in summarize_rows(rows_of_finding(finding)))


def name_metric(metric: str) -> str:
    """Metric as a table or a sentence names it: queries/s, p95 latency."""
    return RATES.get(metric) or labels.label_metric(metric)


def _write_sentence(rows: Sequence[ResultRow]) -> str:
    cells = _cells_of(rows)
    first = rows[0]
    treatment, baseline = labels.in_sentence(first.treatment), labels.in_sentence(first.baseline)
    subject = f"{name_metric(first.metric)} {'were' if first.metric in RATES else 'was'}"
    pair = f"with {treatment} than with {baseline}"
    clauses: list[str] = []
    for label in ("lower", "higher"):
        if covered := [row for row in cells if row.label == label]:
            sizes = [row.change.value or 0.0 for row in covered]
            amount = format_percent_range(min(sizes), max(sizes), signed=False)
            statement = f"{amount} {label}" if clauses else f"{subject} {amount} {label} {pair}"
            clauses.append(f"{statement} {_name_places(covered, cells)}{_name_intervals(covered)}")
    for label, words in _QUIET.items():
        if covered := [row for row in cells if row.label == label]:
            between = "" if clauses else f" in {name_metric(first.metric)} between {treatment} and {baseline}"
            if label in ("no useful interval", "not decided yet", "not computed") and between:
                between = f" for {name_metric(first.metric)} with {treatment} against {baseline}"
            clauses.append(f"{words}{between} {_name_places(covered, cells)}{_name_intervals(covered)}")
    text = "; ".join(clauses)
    return f"{text[:1].upper()}{text[1:]}."


def _cells_of(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Rows that a sentence is about: decided levels, else all levels together."""
    levels = [row for row in rows if row.threads is not None]
    by_itself = {(row.workload) for row in levels}
    shown = {row.workload for row in levels if row.label in ("higher", "lower", "no practical difference")}
    whole = [
        row
        for row in rows
        if row.threads is None
        and (row.workload not in by_itself or (row.workload not in shown and row.label not in _QUIET))
    ]
    return [*levels, *whole]


def _name_places(covered: Sequence[ResultRow], cells: Sequence[ResultRow]) -> str:
    """Workloads and levels of some cells: `at 1 thread on point selects and read-write transactions`."""
    by_level: dict[int | None, tuple[str, ...]] = {}
    by_workload: dict[str, tuple[int | None, ...]] = {}
    for row in covered:
        by_level[row.threads] = (*by_level.get(row.threads, ()), row.workload)
        by_workload[row.workload] = (*by_workload.get(row.workload, ()), row.threads)
    levels: dict[tuple[str, ...], list[int | None]] = {}
    for threads, workloads in by_level.items():
        levels.setdefault(workloads, []).append(threads)
    workloads_at: dict[tuple[int | None, ...], list[str]] = {}
    for workload, at in by_workload.items():
        workloads_at.setdefault(at, []).append(workload)
    if len(levels) <= len(workloads_at):
        places = [(at, list(workloads)) for workloads, at in levels.items()]
    else:
        places = [(list(at), workloads) for at, workloads in workloads_at.items()]
    every = list(dict.fromkeys(row.workload for row in cells))
    return ", and ".join(f"{_name_levels(at)} on {_name_workloads(on, every)}" for at, on in places)


def _name_levels(levels: Sequence[int | None]) -> str:
    numbers = [f"{level:,}" for level in levels if level is not None]
    if not numbers:
        return "over all thread levels together"
    noun = "thread" if numbers == ["1"] else "threads"
    return f"at {join_words(numbers)} {noun}" + (" and over all levels" if None in levels else "")


def _name_workloads(workloads: Sequence[str], every: Sequence[str]) -> str:
    if len(every) > 2 and len(workloads) == len(every):
        return f"all {len(every)} workloads"
    return join_words(workloads)


def _name_intervals(covered: Sequence[ResultRow]) -> str:
    """Interval, level and blocks of some cells, in brackets; of several the ends that hold all of them."""
    estimates = [row.change for row in covered if row.change.ends]
    if not estimates:
        reasons = list(dict.fromkeys(note.rstrip(".") for row in covered for note in row.notes))
        return f" ({'; '.join(reasons)})" if reasons else ""
    low, high = (
        min(estimate.low or 0.0 for estimate in estimates),
        max(estimate.high or 0.0 for estimate in estimates),
    )
    noun = "interval" if len(estimates) == 1 else "intervals within"
    level = join_words(
        [format_level(level) for level in sorted({estimate.level or 0.0 for estimate in estimates})]
    )
    blocks = sorted({estimate.n for estimate in estimates})
    many = format_count(blocks[0], "block") if len(blocks) == 1 else f"{blocks[0]} to {blocks[-1]} blocks"
    return f" ({level} {noun} {format_percent_range(low, high)}, {many})"
