"""Report lines printed in a document to cells, through the parser that reads our own logs."""

from __future__ import annotations

from benchbook.read.sysbench_log import parse_interval_line

UNITS = {
    "tps": "1/s",
    "qps": "1/s",
    "reads_per_s": "1/s",
    "writes_per_s": "1/s",
    "other_per_s": "1/s",
    "errors_per_s": "1/s",
    "reconnects_per_s": "1/s",
}


def cells(text: str) -> tuple[list[dict[str, object]], list[tuple[int, str, str]]]:
    """Return one dict a printed number, and (line number, line, wrong) for lines sysbench does not print.

    Each line is a row; its label is the key `second`. The latency is named by its percentile, such as
    `latency_p95_ms`.
    """
    rows: list[dict[str, object]] = []
    wrong: list[tuple[int, str, str]] = []
    seen: dict[float, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        interval = parse_interval_line(line)
        if interval is None:
            wrong.append(
                (number, line, "not a report line of sysbench; copy the line as printed, one a line")
            )
            continue
        if interval.second in seen:
            wrong.append(
                (
                    number,
                    line,
                    f"second {interval.second:.0f} given twice, first on line {seen[interval.second]}; "
                    "keep one",
                )
            )
        seen.setdefault(interval.second, number)
        place = {"threads": int(interval.threads), "second": int(interval.second), "row": number}
        printed = {name: (getattr(interval, name), unit) for name, unit in UNITS.items()}
        printed[f"latency_p{interval.percentile}_ms"] = (interval.latency_percentile_ms, "ms")
        rows += [
            {
                **place,
                "heading": name,
                "metric": name,
                "value": value,
                "printed": f"{value:.2f}",
                "unit": unit,
            }
            for name, (value, unit) in printed.items()
            if value is not None
        ]
    return rows, wrong
