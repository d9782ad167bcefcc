"""Take one output of sysbench apart, line by line, and say whether it is whole.

One pass over the lines with the table of `grammar`; nothing is searched for, so a line that sysbench does not
print, or prints elsewhere, is always noticed.
"""

from __future__ import annotations

from benchbook.read import grammar
from benchbook.read.interval_line import database_interval, parse_interval_line
from benchbook.read.log import SysbenchLog
from benchbook.read.reader import Reader

__all__ = ["parse", "parse_interval_line"]


def parse(text: str) -> SysbenchLog:
    """Return what the stdout of sysbench (run, prepare, prewarm, cleanup) holds, and its status."""
    reader = Reader()
    lines = text.split("\n")
    tail = lines.pop()
    interval, bar = grammar.INTERVAL.fullmatch, grammar.KINDS["bar"].line.fullmatch
    for number, line in enumerate(lines, 1):
        if line[12:14] == " |" and (match := bar(line)) is not None and reader.takes_bars:
            reader.bars.append(match.groups())
        elif line[:2] == "[ " and (match := interval(line)) is not None:
            reader.interval(database_interval(number, match.groups()))
        else:
            reader.other(number, line)
    return reader.finish(text, tail, len(lines))
