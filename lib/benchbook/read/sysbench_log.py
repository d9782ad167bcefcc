"""Parse one output of sysbench line by line, and judge its completeness.

Nothing is searched for, so a line that sysbench does not print, or prints elsewhere, is always noticed.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import numpy as np

from benchbook.core.util.histogram import buckets_of_printed
from benchbook.read import grammar, log_consistency
from benchbook.read.intervals import Columns, Intervals, ReportLine, parse_columns, parse_interval_line
from benchbook.read.log import Concern, Header, Histogram, Level, Message, Problem, Summary, SysbenchLog


def parse_log(text: str) -> SysbenchLog:
    """Log from the stdout of `sysbench run`, with its status."""
    return read_lines(Reader(), text)


def read_lines(reader: Reader, text: str) -> SysbenchLog:
    """The log of a text by the rules of a reader that has taken nothing yet."""
    number = position = 0
    for block in grammar.REPORTS.finditer(text):
        number = reader.lines(text[position : block.start()].split("\n")[:-1], number)
        position = block.start()
        if reader.takes_intervals:
            reader.reports.append(columns := parse_columns(block.group(), number + 1))
            number, position = number + columns["line"].size, block.end()
    *lines, tail = text[position:].split("\n")
    number = reader.lines(lines, number)
    reader.close_block()
    if "\0" in text or "\ufffd" in text:
        reader.object("grammar", None, "bytes that are no text")
    if tail:
        reader.object("end", number + 1, f"ends inside a line: {quote_line(tail)}")
    elif not text:
        reader.object("end", None, "nothing was printed")
    elif not reader.is_over or reader.state != reader.grammar.block_end:
        last = reader.state.rstrip("~")
        reader.object("end", number, f"ends after {last!r}, the last totals are not whole")
    return _assemble_log(reader)


def _assemble_log(reader: Reader) -> SysbenchLog:
    """The log of everything that a reader has taken, with its status."""
    histogram = reader.histogram()
    messages = tuple(Message(line, level, "\n".join(parts)) for line, level, parts in reader.messages)
    for message in messages:
        if message.level in reader.failures:
            reader.object("message", message.line, quote_line(message.text))
    log = SysbenchLog(
        status="complete",
        problems=(),
        header=Header(**reader.header),
        intervals=Intervals(reader.reports),
        histogram=histogram,
        summaries=tuple(reader.summaries),
        messages=messages,
    )
    problems = reader.problems or log_consistency.find_disagreements(log)
    problems = tuple(sorted(problems, key=lambda problem: (problem.concern != "message", problem.line or 0)))
    if not problems:
        return log
    is_failed = problems[0].concern == "message"
    return replace(log, status="failed" if is_failed else "truncated", problems=problems)


SHOWN = 120
LEVELS: dict[str, Level] = {"FATAL": "fatal", "ALERT": "alert", "WARNING": "warning", "DEBUG": "debug"}
BLOCK_STARTS = frozenset({"histogram", "sql", "general", "throughput", "unfinished"})
OF_HEADER = frozenset(field.name for field in fields(Header))


class Reader:
    """The state machine: its state, and everything it has read so far."""

    def __init__(self, rules: grammar.Grammar = grammar.STRICT) -> None:
        self.grammar = rules
        self.failures: tuple[str, ...] = grammar.FAILURES
        self.state = "start"
        self.header: dict[str, Any] = {}
        self.block: dict[str, Any] | None = None
        self.reports: list[Columns | list[ReportLine]] = []
        self.bars: list[tuple[str, ...]] = []
        self.bars_line = 0
        self.summaries: list[Summary] = []
        self.messages: list[tuple[int, Level, list[str]]] = []
        self.last_message_line = 0
        self.last_chatter_line = 0
        self.problems: list[Problem] = []
        self.takes_bars = False
        self.is_started = False
        self.is_over = False

    def object(self, concern: Concern, line: int | None, text: str) -> None:
        self.problems.append(Problem(concern, line, text))

    def lines(self, lines: list[str], before: int) -> int:
        """Take lines one by one; return the number of the last."""
        bar = grammar.BAR.fullmatch
        for number, line in enumerate(lines, before + 1):
            # Most lines are of two kinds, which are known at first sight.
            if line[12:14] == " |" and (match := bar(line)) is not None and self.takes_bars:
                self.bars.append(match.groups())
            elif line[:2] == "[ " and (report := parse_interval_line(line, number)) is not None:
                self.interval(report)
            else:
                self.other(number, line)
        return before + len(lines)

    @property
    def takes_intervals(self) -> bool:
        """True if a report line may stand here."""
        is_of_checkpoint = self.block is None or self.block["is_checkpoint"]
        return self.is_started and not self.is_over and is_of_checkpoint

    def interval(self, interval: ReportLine) -> None:
        if not self.takes_intervals:
            when = "after the last totals began" if self.is_started else "before the threads started"
            self.object("grammar", interval.line, f"a report line {when}")
        if not self.reports or isinstance(self.reports[-1], dict):
            self.reports.append([])
        self.reports[-1].append(interval)  # type: ignore[union-attr]

    def other(self, number: int, line: str) -> None:
        """Take any line that is neither a report line nor a bar of the histogram."""
        if line == "" and self.state in self.grammar.blank_after:
            self.state += "~"
            return
        for name in self.grammar.followers.get(self.state, ()):
            if (statements := self.grammar.read_fields(name, line)) is not None:
                self.take(name, number, statements)
                return
        if (mark := grammar.MARKED.search(line)) is not None:
            if mark.start():
                self.object("grammar", number, f"a message inside another line: {quote_line(line)}")
            self.messages.append((number, LEVELS[mark.group(1)], [line[mark.start() :]]))
            self.last_message_line = number
        elif grammar.REPEATED.fullmatch(line):
            self.repeated(number, line)
        elif line in grammar.CHATTER:
            self.last_chatter_line = number
        elif (match := grammar.QUEUE.fullmatch(line)) is not None:
            self.take_queue_line(match, number)
        elif not self.continued(number, line):
            self.refuse_misplaced(number, line)

    def take(self, name: str, number: int, statements: dict[str, Any]) -> None:
        """Enter the state of a line and keep its values."""
        # The bars are so many that `lines` takes them itself, from the heading on.
        self.takes_bars = name == "histogram_head"
        self.state = "bar" if self.takes_bars else name
        if name == "started":
            self.is_started = True
        elif name == "warming" and statements["warm_up_s"] != self.header.get("warm_up_s"):
            self.object("grammar", number, "a warm-up that the options do not have")
        elif name == "checkpoint" or (name in BLOCK_STARTS and self.block is None):
            if self.is_over:
                self.object("grammar", number, "more totals after the last ones")
            self.close_block()
            self.block = {"line": number, "is_checkpoint": name == "checkpoint"}
        if name == "histogram":
            self.bars_line = number
        if statements.keys() <= OF_HEADER:
            self.header |= statements
        elif self.block is not None:
            self.block |= statements
        if name == "thread_time":
            self.is_over = self.is_over or (self.block is not None and not self.block["is_checkpoint"])
            self.close_block()

    def histogram(self) -> Histogram | None:
        """The bars as a histogram; None if there are none, or none of sysbench's."""
        if not self.bars:
            if self.bars_line:
                self.object("grammar", self.bars_line, "a histogram without bars")
            return None
        try:
            buckets = buckets_of_printed([value for value, _ in self.bars])
        except ValueError as error:
            self.object("grammar", self.bars_line, f"histogram: {error}")
            return None
        return Histogram(self.bars_line, buckets, np.array([int(count) for _, count in self.bars], np.int64))

    def close_block(self) -> None:
        if self.block is not None:
            self.summaries.append(Summary(**self.block))
            self.block = None

    def repeated(self, number: int, line: str) -> None:
        # Equal successive messages are printed once; a blank line at the end of one block swallows the blank
        # line at the start of the next.
        if self.last_chatter_line == number - 1:
            return
        if self.state == self.grammar.block_end:
            self.state += "~"
        else:
            self.messages.append((number, "repeated", [line]))

    def take_queue_line(self, match: re.Match[str], number: int) -> None:
        """Take the queue line of `--rate`, part of the report line before it."""
        second, queue, concurrency = match.groups()
        rows = self.reports[-1] if self.reports and isinstance(self.reports[-1], list) else []
        if not rows or rows[-1].second != float(second) or rows[-1].queue_length is not None:
            self.object("grammar", number, f"a queue line without its report line: {quote_line(match[0])}")
        else:
            rows[-1] = rows[-1]._replace(queue_length=int(queue), concurrency=int(concurrency))

    def continued(self, number: int, line: str) -> bool:
        """Take a further line of a message that spans several (a failing statement is printed as it is)."""
        follows = self.messages and self.last_message_line == number - 1
        if not follows or self.messages[-1][1] not in grammar.FAILURES:
            return False
        if any(self.grammar.read_fields(name, line) is not None for name in self.grammar.kinds):
            return False
        self.messages[-1][2].append(line)
        self.last_message_line = number
        return True

    def refuse_misplaced(self, number: int, line: str) -> None:
        for name in self.grammar.kinds:
            if (statements := self.grammar.read_fields(name, line)) is not None:
                after = self.state.rstrip("~")
                self.object("grammar", number, f"{quote_line(line)} can't come after {after!r}")
                self.take(name, number, statements)
                return
        what = "a blank line too many" if line == "" else f"no line of sysbench: {quote_line(line)}"
        self.object("grammar", number, what)


def quote_line(line: str) -> str:
    """A line as a reason may quote it."""
    return repr(line if len(line) <= SHOWN else line[: SHOWN - 1] + "…")
