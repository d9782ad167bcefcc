"""The report lines of one output, read together where they are alike, and one field of all as an array."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchbook.read import grammar


class ReportLine(NamedTuple):
    """One report line: rates per second, latencies in ms; None for fields this kind of line lacks.

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


# The numbers of a report line in their order, and what of it is no float.
FIELDS = ("second", "threads", "tps", "qps", "reads_per_s", "writes_per_s", "other_per_s", "percentile",
          "latency_percentile_ms", "errors_per_s", "reconnects_per_s")  # fmt: skip
KINDS: dict[str, Callable[[Any], Any]] = {"line": int, "threads": int, "percentile": int, "is_hook": bool}
NUMBERS_ALONE = bytes(code if chr(code) in "0123456789." else ord(" ") for code in range(256))
Columns = dict[str, NDArray[np.float64]]


def parse_columns(block: str, line: int) -> Columns:
    """Lines matched by `grammar.REPORTS` as columns, with `line` as the number of the first."""
    words = block.encode().translate(NUMBERS_ALONE).split()
    results = dict(zip(FIELDS, np.array(words, dtype=float).reshape(-1, len(FIELDS)).T, strict=True))
    lines = np.arange(line, line + len(results["second"]), dtype=float)
    return results | {"line": lines, "is_hook": np.zeros(len(lines))}


class Intervals:
    """Report lines in their order, from rows and from columns of them."""

    def __init__(self, parts: Iterable[Columns | list[ReportLine]] = ()) -> None:
        self._parts = list(parts)
        self._columns: Columns = {}

    def column(self, name: str) -> NDArray[np.float64]:
        """One field of all lines; NaN for lines that lack it."""
        if name not in self._columns:
            parts = (
                part.get(name, np.full(part["line"].size, np.nan))
                if isinstance(part, dict)
                else np.array([getattr(interval, name) for interval in part], dtype=float)
                for part in self._parts or [[]]
            )
            self._columns[name] = np.concatenate([*parts])
        return self._columns[name]

    @cached_property
    def _rows(self) -> list[ReportLine]:
        reports: list[ReportLine] = []
        for part in self._parts:
            if isinstance(part, dict):
                lists = [map(KINDS.get(name, float), values.tolist()) for name, values in part.items()]
                reports += (
                    ReportLine(**dict(zip(part, row, strict=True))) for row in zip(*lists, strict=True)
                )
            else:
                reports += part
        return reports

    def __len__(self) -> int:
        return self.column("line").size

    def __iter__(self) -> Iterator[ReportLine]:
        return iter(self._rows)

    def __getitem__(self, at: Any) -> Any:
        return self._rows[at]


# The forms of a report line, each with what it says in its order.
FORMS = (
    (grammar.INTERVAL, (*FIELDS[:9], "is_hook", *FIELDS[9:])),
    (grammar.INTERVAL_NO_DB, ("second", "threads", "tps", "percentile", "latency_percentile_ms")),
    (grammar.INTERVAL_05, ("second", "threads", "tps", "reads_per_s", "writes_per_s",
                           "latency_percentile_ms", "percentile", "errors_per_s", "reconnects_per_s")),
)  # fmt: skip
# What report hooks print, as CSV and in the order of their JSON.
HOOK_FIELDS = (*FIELDS[:7], *FIELDS[8:])


def parse_interval_line(line: str, number: int = 1) -> ReportLine | None:
    """Line `number` if it is a report line of sysbench 0.5, 1.0 or 1.1, or None."""
    for form, names in FORMS:
        if (match := form.fullmatch(line)) is not None:
            pairs = zip(names, match.groups(), strict=True)
            filled = {name: KINDS.get(name, float)(value) for name, value in pairs if value is not None}
            return ReportLine(number, **filled)
    return None


def parse_hook_values(values: Sequence[str], number: int) -> ReportLine:
    """Report line of `sysbench.report_csv` or `report_json` that begins on line `number`."""
    pairs = zip(HOOK_FIELDS, values, strict=True)
    return ReportLine(number, **{name: KINDS.get(name, float)(value) for name, value in pairs}, is_hook=True)


# What a report line counts in a second, and which total it adds to.
SERIES = {
    "tps": "events", "qps": "queries", "reads_per_s": "reads", "writes_per_s": "writes",
    "other_per_s": "other", "errors_per_s": "ignored_errors", "reconnects_per_s": "reconnects",
}  # fmt: skip
