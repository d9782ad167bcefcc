"""Take one output of sysbench apart, line by line, and say whether it is whole.

One pass over the lines with the table of `grammar`; nothing is searched for, so a line that sysbench does not
print, or prints elsewhere, is always noticed. Report lines that are alike are taken together. Then the
numbers are held against each other.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from benchbook.core.histogram import buckets_of_printed
from benchbook.read import arithmetic, grammar
from benchbook.read.intervals import columns
from benchbook.read.log import Header, Histogram, Message, Summary, SysbenchLog, ThreadStats
from benchbook.read.reader import Reader, shown
from benchbook.read.reports import database_interval, parse_interval_line

__all__ = ["parse", "parse_interval_line"]

# Lines that are alike, at first sight: of reports, of the histogram.
BLOCK = re.compile(
    r"^(?:(?:\[ \d{1,9}s \] thds: .*\n){8,}|(?:[ .\d]{12} \|.*\n){8,})", re.MULTILINE | re.ASCII
)


def parse(text: str) -> SysbenchLog:
    """Return what the stdout of sysbench (run, prepare, prewarm, cleanup) holds, and its status."""
    reader = Reader()
    number = position = 0
    for block in BLOCK.finditer(text):
        number = _lines(reader, text[position : block.start()].split("\n")[:-1], number)
        position = block.start()
        if taken := _taken(reader, block.group(), number + 1):
            number += taken
            position = block.end()
    *lines, tail = text[position:].split("\n")
    number = _lines(reader, lines, number)
    reader.close_block()
    _judge_end(reader, text, tail, number)
    return _assembled(reader)


def _taken(reader: Reader, block: str, line: int) -> int:
    """Take lines that are alike all at once; return how many, 0 if they must be read one by one."""
    if block[0] == "[":
        found = columns(block, line) if reader.takes_intervals else None
        if found is None:
            return 0
        reader.intervals.add(found)
        return found["line"].size
    bars = grammar.BARS.findall(block)
    if not reader.takes_bars or len(bars) != block.count("\n"):
        return 0
    reader.bars += bars
    return len(bars)


def _lines(reader: Reader, lines: list[str], before: int) -> int:
    """Take lines one by one; return the number of the last."""
    interval, bar = grammar.INTERVAL.fullmatch, grammar.A_BAR.fullmatch
    for number, line in enumerate(lines, before + 1):
        if line[12:14] == " |" and (match := bar(line)) is not None and reader.takes_bars:
            reader.bars.append(match.groups())
        elif line[:2] == "[ " and (match := interval(line)) is not None:
            reader.interval(database_interval(number, match.groups()))
        else:
            reader.other(number, line)
    return before + len(lines)


def _judge_end(reader: Reader, text: str, tail: str, lines: int) -> None:
    last_state = "stats_total~" if reader.header.get("is_debug") else "thread_time~"
    if "\0" in text or "\ufffd" in text:
        reader.object("grammar", None, "bytes that are no text")
    if tail:
        reader.object("end", lines + 1, f"ends inside a line: {shown(tail)}")
    elif not text:
        reader.object("end", None, "nothing was printed")
    elif reader.commands and "threads" not in reader.header:
        return
    elif not reader.is_over or reader.state != last_state:
        reader.object("end", lines, f"ends after {reader.state.rstrip('~')!r}, the last totals are not whole")


def _assembled(reader: Reader) -> SysbenchLog:
    histogram = _histogram(reader)
    messages = tuple(Message(line, level, "\n".join(parts)) for line, level, parts in reader.messages)
    for message in messages:
        if message.level in grammar.FAILURES:
            reader.object("message", message.line, shown(message.text))
    log = SysbenchLog(
        status="complete",
        problems=(),
        header=Header(**reader.header),
        intervals=reader.intervals,
        histogram=histogram,
        summaries=_with_stats(reader),
        messages=messages,
        commands=tuple(reader.commands),
    )
    found = reader.problems or arithmetic.disagreements(log)
    found = tuple(sorted(found, key=lambda problem: (problem.concern != "message", problem.line or 0)))
    if not found:
        return log
    return replace(log, status="failed" if found[0].concern == "message" else "truncated", problems=found)


def _histogram(reader: Reader) -> Histogram | None:
    if not reader.bars:
        if reader.bars_line:
            reader.object("grammar", reader.bars_line, "a histogram without bars")
        return None
    try:
        buckets = buckets_of_printed([value for value, _ in reader.bars])
    except ValueError as error:
        reader.object("grammar", reader.bars_line, f"histogram: {error}")
        return None
    counts = np.array([int(count) for _, count in reader.bars], dtype=np.int64)
    return Histogram(reader.bars_line, buckets, counts)


def _with_stats(reader: Reader) -> tuple[Summary, ...]:
    summaries = list(reader.summaries)
    for index in {stat[0] for stat in reader.stats if stat[0]}:
        whole = [stat for stat in reader.stats if stat[0] == index and len(stat) == 7]
        stats = tuple(ThreadStats(*stat[1:]) for stat in whole)
        summaries[index - 1] = replace(summaries[index - 1], thread_stats=stats)
    return tuple(summaries)
