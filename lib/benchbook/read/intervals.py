"""The report lines of one output: a sequence of `Interval`, kept as columns where lines are alike.

A log holds hundreds of report lines that differ in their digits alone. Those are recognised and read
together, as arrays; any that differ otherwise are read one by one. That lines are alike is proven, not
assumed: without their digits they are the same text, and between their numbers stands the same number of
characters as in a first line that matches the grammar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from benchbook.core.source import Number
from benchbook.read import grammar

DIGITS = b"0123456789"
# The numbers of a report line in their order; those of `GRAINED` have two decimals, each a group of digits.
FIELDS = ("second", "threads", "tps", "qps", "reads_per_s", "writes_per_s", "other_per_s", "percentile",
          "latency_percentile_ms", "errors_per_s", "reconnects_per_s")  # fmt: skip
GRAINED = tuple(name not in ("second", "threads", "percentile") for name in FIELDS)
WHOLE = np.cumsum([0, *(1 + has for has in GRAINED)])[:-1]
GROUPS = len(FIELDS) + sum(GRAINED)
LONGEST = 9
# What of a line is no float.
KINDS: dict[str, Callable[[Any], Any]] = {"line": int, "threads": int, "percentile": int, "is_hook": bool}

Columns = dict[str, NDArray[np.float64]]


class Interval(NamedTuple):
    """One report line: rates per second, latencies in ms; None for what this kind of line does not have.

    `second` is the label as printed. Lines of tests without a database carry their events per second in
    `tps`. `is_hook`: printed by one of sysbench's report hooks, whose cumulative line has 0 threads.
    """

    line: int
    second: float
    threads: int
    tps: float
    qps: float | None = None
    reads_per_s: float | None = None
    writes_per_s: float | None = None
    other_per_s: float | None = None
    percentile: int | None = None
    latency_percentile_ms: float | None = None
    errors_per_s: float | None = None
    reconnects_per_s: float | None = None
    queue_length: int | None = None
    concurrency: int | None = None
    is_hook: bool = False


def columns(text: str, line: int) -> Columns | None:
    """Return whole lines as columns, with `line` as the number of the first; None if they are not alike."""
    end = text.index("\n") + 1
    match = grammar.INTERVAL.fullmatch(text[: end - 1])
    if match is None or "-" in text or not text.isascii():
        return None
    data = text.encode("ascii")
    count = data.count(b"\n")
    if data.translate(None, DIGITS) != data[:end].translate(None, DIGITS) * count:
        return None
    codes = np.frombuffer(data, dtype=np.uint8) - np.uint8(48)
    is_digit = codes < 10
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
    if edges.size != 2 * GROUPS * count:
        return None
    ends = edges[1::2].reshape(count, GROUPS)
    # Counted from the end of the line before, so that all lines can be compared with the first.
    gaps = np.diff(edges, prepend=-1)[::2].reshape(count, GROUPS)
    lengths = (edges[1::2] - edges[::2]).reshape(count, GROUPS)
    hundredths = WHOLE[np.array(GRAINED)] + 1
    if (gaps != gaps[0]).any() or (lengths[:, hundredths] != 2).any() or lengths.max() > LONGEST:
        return None
    whole = _numbers(codes, ends[:, WHOLE], lengths[:, WHOLE])
    two = ends[:, hundredths]
    grains = 10 * codes[two - 2].astype(np.int64) + codes[two - 1]
    found = whole.astype(float)
    # A quotient of whole numbers is rounded as the text of the decimal number is.
    found[:, GRAINED] = (100 * whole[:, GRAINED] + grains) / 100
    every = dict(zip(FIELDS, found.T, strict=True))
    every["line"] = np.arange(line, line + count, dtype=float)
    every["is_hook"] = np.full(count, float(not match.groups()[9]))
    return every


def _numbers(
    codes: NDArray[np.uint8], ends: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return groups of digits as numbers, place by place; nine digits fit 32 bits."""
    numbers = np.zeros(ends.shape, dtype=np.int32)
    longest = lengths.max(axis=0)
    for place in range(int(longest.max())):
        wide = np.flatnonzero(longest > place)
        # Where a number is shorter, what stands there is no digit of it, and may be no digit at all.
        digits = codes.take(ends[:, wide] - (1 + place), mode="clip")
        numbers[:, wide] += (digits * (lengths[:, wide] > place)).astype(np.int32) * np.int32(10**place)
    return numbers.astype(np.int64)


class Intervals(Sequence[Interval]):
    """Report lines in their order; `column` gives one field of all, without making an `Interval` of each."""

    def __init__(self) -> None:
        self._parts: list[Columns | list[Interval]] = []
        self._rows: list[Interval] | None = None

    def append(self, interval: Interval) -> None:
        """Add one line."""
        if not self._parts or isinstance(self._parts[-1], dict):
            self._parts.append([])
        self._parts[-1].append(interval)  # type: ignore[union-attr]
        self._rows = None

    def add(self, found: Columns) -> None:
        """Add many lines as columns."""
        self._parts.append(found)
        self._rows = None

    def replace_last(self, interval: Interval) -> None:
        """Put another line in the place of the last."""
        last = self._parts.pop()
        rows = list(_rows(last)) if isinstance(last, dict) else last
        rows[-1] = interval
        self._parts.append(rows)
        self._rows = None

    @property
    def last(self) -> Interval | None:
        """The last line, None without any."""
        if not self._parts:
            return None
        part = self._parts[-1]
        return self._all()[-1] if isinstance(part, dict) else part[-1]

    @property
    def plain(self) -> Columns | None:
        """All lines as columns if all were alike, else None."""
        parts = [part for part in self._parts if isinstance(part, dict)]
        if not parts or len(parts) < len(self._parts):
            return None
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one field of all lines; NaN where a line does not have it."""
        parts = [
            part.get(name, np.full(part["line"].size, np.nan))
            if isinstance(part, dict)
            else np.array([getattr(interval, name) for interval in part], dtype=float)
            for part in self._parts
        ]
        return np.concatenate(parts) if parts else np.array([], dtype=float)

    def __len__(self) -> int:
        return sum(part["line"].size if isinstance(part, dict) else len(part) for part in self._parts)

    def __iter__(self) -> Iterator[Interval]:
        return iter(self._all())

    @overload
    def __getitem__(self, at: int) -> Interval: ...

    @overload
    def __getitem__(self, at: slice) -> list[Interval]: ...

    def __getitem__(self, at: Any) -> Any:
        return self._all()[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _all(self) -> list[Interval]:
        if self._rows is None:
            self._rows = []
            for part in self._parts:
                self._rows += _rows(part) if isinstance(part, dict) else part
        return self._rows


def _rows(part: Columns) -> Iterator[Interval]:
    lists = [list(map(KINDS.get(name, float), values.tolist())) for name, values in part.items()]
    for values in zip(*lists, strict=True):
        yield Interval(**dict(zip(part, values, strict=True)))


NO_DB = ("second", "threads", "tps", "percentile", "latency_percentile_ms")
OF_05 = ("second", "threads", "tps", "reads_per_s", "writes_per_s", "latency_percentile_ms", "percentile",
         "errors_per_s", "reconnects_per_s")  # fmt: skip


def parse_interval_line(text: str) -> Interval | None:
    """Return one report line of sysbench 0.5, 1.0 or 1.1, cut out of any document, or None if it is none."""
    line = text.strip()
    if (match := grammar.INTERVAL.fullmatch(line)) is not None:
        return database_interval(1, match.groups())
    for form, names in ((grammar.INTERVAL_NO_DB, NO_DB), (grammar.INTERVAL_05, OF_05)):
        if (match := form.fullmatch(line)) is not None:
            return _interval(1, names, match.groups())
    return None


def database_interval(number: int, matched: tuple[str, ...]) -> Interval:
    """Return the report line of a database test from what `grammar.INTERVAL` caught in line `number`."""
    return _interval(number, FIELDS, (*matched[:9], *matched[10:]), is_hook=not matched[9])


def _interval(number: int, names: Sequence[str], values: Sequence[str], is_hook: bool = False) -> Interval:
    told: dict[str, Any] = {
        name: KINDS.get(name, float)(value) for name, value in zip(names, values, strict=True)
    }
    return Interval(line=number, **told, is_hook=is_hook)


SERIES = ("tps", "qps", "reads_per_s", "writes_per_s", "other_per_s", "errors_per_s", "reconnects_per_s")


def numbers(text: str, table: str, at: Mapping[str, Any]) -> tuple[list[Number], list[tuple[int, str, str]]]:
    """Return a table's numbers, and (line number, line, wrong) for lines sysbench does not print.

    Each line is a row; its label is the key `second`. The latency is named by its percentile, such as
    `latency_p95_ms`.
    """
    rows: list[Number] = []
    wrong: list[tuple[int, str, str]] = []
    seen: dict[float, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        interval = parse_interval_line(line)
        if interval is None:
            what = "not a report line of sysbench; copy the line as printed, one a line"
            wrong.append((number, line, what))
            continue
        if (first := seen.get(interval.second)) is not None:
            what = f"second {interval.second:.0f} given twice, first on line {first}; keep one"
            wrong.append((number, line, what))
        seen.setdefault(interval.second, number)
        place = {**at, "threads": int(interval.threads), "second": int(interval.second)}
        printed = {name: (getattr(interval, name), "1/s") for name in SERIES}
        printed[f"latency_p{interval.percentile}_ms"] = (interval.latency_percentile_ms, "ms")
        rows += [
            Number(table, number, name, name, value, f"{value:.2f}", math.nan, unit, "metric", place)
            for name, (value, unit) in printed.items()
            if value is not None
        ]
    return rows, wrong
