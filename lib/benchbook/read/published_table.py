"""One file of a published source to cells, collecting every mistake in it."""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pandas as pd

from benchbook.core.published.source import SCALES, Number, PublishedTable, SourceSpec
from benchbook.core.published.table_cells import THREADS
from benchbook.core.util.errors import did_you_mean
from benchbook.read.intervals import SERIES, parse_interval_line

NUMBER = re.compile(r"-?\d+(\.\d+)?")
MAGNITUDE = re.compile(r"(-?\d+(?:\.\d+)?) ?([kKMG])")
EXPONENTS = {"k": 3, "K": 3, "M": 6, "G": 9}
SEPARATED = re.compile(r"-?\d{1,3}([ ,'_\N{NO-BREAK SPACE}]\d{3})+(\.\d+)?")


def unit_suffix(metric: str) -> str | None:
    """Part of a metric's name that says its unit, if the project knows that unit."""
    if metric.endswith("_per_s"):
        return None
    ends = (end for end in SCALES if metric == end or (end.startswith("_") and metric.endswith(end)))
    return next(ends, None)


class TableReader:
    """Turn one file into cells, collecting every mistake."""

    def __init__(self, loaded: SourceSpec, name: str, table: PublishedTable, file: str) -> None:
        self.source, self.name, self.table, self.file = loaded, name, table, file
        self.errors: list[str] = []
        self.unknown: set[tuple[str, str]] = set()
        self.text = pd.DataFrame()

    def complain(self, number: int, heading: str, value: str, wrong: str) -> None:
        self.errors.append(f"{self.file}:{number}: {heading}: {value}: {wrong}")

    def numbers(self, text: str) -> list[Number]:
        """Printed numbers."""
        if self.table.file.endswith(".log"):
            rows, mistakes = interval_numbers(text, self.name, self.table.at)
            for number, line, wrong in mistakes:
                self.complain(number, "line", line, wrong)
            self.text = pd.DataFrame({"line": text.splitlines()})
            return _with_half_units(rows)
        header, *body = [*csv.reader(io.StringIO(text))] or [[]]
        while body and not body[-1]:
            body.pop()
        if tuple(header) != self.table.columns:
            wanted = ",".join(self.table.columns)
            self.complain(1, "header", ",".join(header), f"not the columns of source.yaml; write {wanted}")
            return []
        if not body:
            self.complain(2, "rows", "none", "the table is empty; write its rows below the header")
        whole = [*self._whole_rows(header, body)]
        if not all(heading in self.source.columns for heading in header):
            return []
        self.text = pd.DataFrame([fields for _, fields in whole], columns=header, dtype=str)
        numbers = [cell for number, fields in whole for cell in self._row(number, fields)]
        self._check_places(numbers)
        return _with_half_units(numbers)

    def _whole_rows(self, header: list[str], body: list[list[str]]) -> Iterator[tuple[int, dict[str, str]]]:
        for number, row in enumerate(body, start=2):
            if len(row) == len(header):
                yield number, dict(zip(header, row, strict=True))
            else:
                wrong = f"{len(row)} fields; write {len(header)}, quote a text with a comma"
                self.complain(number, "row", ",".join(row), wrong)

    def _row(self, number: int, fields: Mapping[str, str]) -> Iterator[Number]:
        place: dict[str, Any] = dict(self.table.at)
        for heading, printed in fields.items():
            if self.source.columns[heading].role == "key":
                name = self.source.columns[heading].metric or heading
                place[name] = self._key(number, heading, name, printed)
        processes, each = place.get("processes"), place.get("threads_per_process")
        if isinstance(processes, int) and isinstance(each, int):
            place.setdefault("threads", processes * each)
        for heading, printed in fields.items():
            column = self.source.columns[heading]
            if column.role not in ("metric", "growth"):
                continue
            metric = column.metric or heading
            end = unit_suffix(metric)
            scale = SCALES[end].get(str(column.unit), 1.0) if end else 1.0
            value = self._number(number, heading, printed) * scale
            yield Number(
                table=self.name, row=number - 1, heading=heading, metric=metric, value=value, printed=printed,
                half_unit=math.nan, unit=column.unit, role=column.role, at={**place, **column.at},
            )  # fmt: skip

    def _key(self, number: int, heading: str, name: str, printed: str) -> object:
        names = {"arm": self.source.arms, "workload": self.source.workloads}.get(name)
        if names is not None:
            if printed not in names and (heading, printed) not in self.unknown:
                self.unknown.add((heading, printed))
                remedy = did_you_mean(printed, names)
                remedy += " Correct it" if remedy.endswith("?") else ""
                wrong = f"no such {name}; {remedy}, or add it under {name}s"
                self.complain(number, heading, printed, wrong)
            return printed
        if name in ("threads", "processes", "threads_per_process") and not re.fullmatch(r"[1-9]\d*", printed):
            wrong = "not a whole number of threads; write digits only, such as 150"
            self.complain(number, heading, printed, wrong)
        elif SEPARATED.fullmatch(printed):
            wrong = f"has a thousands separator; write {re.sub(r'[^0-9.-]', '', printed)}"
            self.complain(number, heading, printed, wrong)
        if not NUMBER.fullmatch(printed):
            return printed
        return float(printed) if "." in printed else int(printed)

    def _number(self, number: int, heading: str, printed: str) -> float:
        if NUMBER.fullmatch(printed):
            return float(printed)
        if printed == "":
            return float("nan")
        printed_minus = printed.replace("\N{MINUS SIGN}", "-")
        digits = re.sub(r"[^0-9.-]", "", printed_minus) or "digits"
        if SEPARATED.fullmatch(printed):
            wrong = f"has a thousands separator; write {digits}"
        elif NUMBER.fullmatch(printed_minus):
            wrong = f"has a typographic minus; write {digits}"
        elif magnitude := MAGNITUDE.fullmatch(printed):
            whole = Decimal(magnitude[1]).scaleb(EXPONENTS[magnitude[2]])
            wrong = f"is abbreviated; write the number in full: {whole:f}"
        elif re.match(r"-?[\d.]+\s*\D+$", printed):
            wrong = f"holds its unit; write {digits}, the unit stands in source.yaml"
        else:
            wrong = "not a number; write digits with a point, or nothing where the document prints none"
        self.complain(number, heading, printed, wrong)
        return float("nan")

    def _check_places(self, numbers: list[Number]) -> None:
        observations: dict[frozenset[tuple[str, str]], Number] = {}
        levels: dict[frozenset[tuple[str, str]], int] = {}
        alike: set[tuple[str, str]] = set()
        repeated: dict[int, tuple[int, str]] = {}
        for number in numbers:
            shown = ", ".join(f"{key} {value}" for key, value in number.at.items())
            identity = frozenset(
                (key, str(value)) for key, value in {**number.at, "metric": number.metric}.items()
            )
            line = number.row + 1
            if (first := observations.get(identity)) is not None:
                headings = (first.heading, number.heading)
                if first.row != number.row:
                    repeated.setdefault(line, (first.row + 1, shown))
                elif headings not in alike:
                    alike.add(headings)
                    wrong = (
                        f"{number.metric} of the same cells as {first.heading}; write what tells them apart "
                        f"under columns: {number.heading}, such as at: {{arm: NAME}}, or another metric"
                    )
                    self.complain(1, "column", number.heading, wrong)
                continue
            observations[identity] = number
            threads = number.key("threads")
            group = frozenset(part for part in identity if part[0] not in THREADS)
            if isinstance(threads, int):
                if threads < levels.get(group, 0) and not self.table.is_unordered:
                    wrong = (
                        f"less than {levels[group]} in the row above; correct it, "
                        "or write is_unordered: true for the table if the document prints it so"
                    )
                    self.complain(line, "threads", str(threads), wrong)
                levels[group] = threads
        if repeated:
            line, (first_line, shown) = next(iter(repeated.items()))
            lines = ", ".join(map(str, repeated))
            wrong = (
                f"the same cells as an earlier row, as line {line} and line {first_line} ({shown}); number "
                "repetitions in a column `run`, or add the column that tells them apart, or keep one"
            )
            self.complain(line, "lines" if len(repeated) > 1 else "line", lines, wrong)


def _with_half_units(numbers: list[Number]) -> list[Number]:
    """Cells with half of the last printed place; a zero that was dropped (2.3 among 2.30) counts."""
    columns: dict[str, list[str]] = {}
    for cell in numbers:
        columns.setdefault(cell.heading, []).append(cell.printed)
    usual = {heading: _common_decimals(texts) for heading, texts in columns.items()}
    half_units = []
    for cell in numbers:
        _, point, decimals = cell.printed.partition(".")
        places = max(usual[cell.heading], len(decimals)) if point else usual[cell.heading]
        printed = float(cell.printed) if NUMBER.fullmatch(cell.printed) else math.nan
        scale = cell.value / printed if printed else 1.0
        half_units.append(cell._replace(half_unit=0.5 * 10.0**-places * scale))
    return half_units


def _common_decimals(texts: list[str]) -> int:
    """Decimals that most numbers of a column have; negative for zeros that end all, as in 23300, 31400."""
    decimals = [len(text.partition(".")[2]) for text in texts if text]
    usual = max(sorted(set(decimals)), key=decimals.count, default=0)
    whole = [text for text in texts if text.strip("0")]
    if usual or len(whole) < 2 or any("." in text for text in whole):
        return usual
    return -min(len(text) - len(text.rstrip("0")) for text in whole)


def interval_numbers(
    text: str, table: str, at: Mapping[str, Any]
) -> tuple[list[Number], list[tuple[int, str, str]]]:
    """A table's numbers, a row a line with the key `second`, and (line number, line, wrong) of others' lines.

    The latency is named by its percentile, such as `latency_p95_ms`.
    """
    rows: list[Number] = []
    wrong: list[tuple[int, str, str]] = []
    observations: dict[float, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if (interval := parse_interval_line(line.strip(), number)) is None:
            what = "not a report line of sysbench; copy the line as printed, one a line"
            wrong.append((number, line, what))
            continue
        if (first := observations.get(interval.second)) is not None:
            what = f"second {interval.second:.0f} given twice, first on line {first}; keep one"
            wrong.append((number, line, what))
        observations.setdefault(interval.second, number)
        place = {**at, "threads": int(interval.threads), "second": int(interval.second)}
        printed = {name: (getattr(interval, name), "1/s") for name in SERIES}
        printed[f"latency_p{interval.percentile}_ms"] = (interval.latency_percentile_ms, "ms")
        rows += [
            Number(table, number, name, name, value, f"{value:.2f}", math.nan, unit, "metric", place)
            for name, (value, unit) in printed.items()
            if value is not None
        ]
    return rows, wrong
