"""One line a measurement: ours, the alternative, their ratio, the goal and whether it is met."""

import argparse
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from benchbook.compare.stats.intervals import Interval

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Row:
    """One measurement; `met` is None where there is no goal."""

    name: str
    ours: str
    alternative: str = ""
    ratio: str = ""
    goal: str = ""
    met: bool | None = None


def show(rows: Iterable[Row]) -> None:
    """Print rows as a table."""
    lines = [[field.name for field in fields(Row)]]
    lines += [[*astuple(row)[:-1], "" if row.met is None else "yes" if row.met else "NO"] for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def format_interval(interval: Interval) -> str:
    """Effect with its interval in percent, or the reason against one."""
    if not interval.is_known:
        return str(interval.reason)
    effect, low, high = (100 * (end or 0.0) for end in (interval.effect, interval.low, interval.high))
    return f"{effect:+.1f} % [{low:+.1f}, {high:+.1f}]"


def machine() -> str:
    """Say in one line where and when this was measured, and how busy the machine was."""
    try:
        named = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="ascii"))
        model = named[1] if named else "unknown processor"
    except OSError:
        model = platform.processor()
    load = os.getloadavg()[0]
    busy = f", BUSY: load {load:.1f} before the start" if load > 0.5 else ""
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} × {model}, Python {platform.python_version()}{busy}"
    )


def main(measure: Callable[[bool], list[Row]], text: str) -> None:
    """Measure and print; `--full` takes its time, `--quick` (the default) does not."""
    parser = argparse.ArgumentParser(description=text)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="more repetitions and larger sizes")
    size.add_argument("--quick", action="store_true", help="the default")
    is_full = parser.parse_args().full
    print(machine(), file=sys.stderr)
    show(measure(is_full))
