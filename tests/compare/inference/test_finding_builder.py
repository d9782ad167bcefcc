"""What a percentile rests on: events beyond it, and whether one pause of the machine made them."""

from typing import Any

import pandas as pd

from benchbook.compare.inference import finding_builder
from benchbook.core.artifacts.findings import FindingData
from benchbook.core.util import histogram
from tests.compare.cases import assert_cases
from tests.found import finding

NAMES = {"direct": "direct connections", "haproxy": "HAProxy"}


def find_support(seconds: dict[str, list[float]], printed: int, metric: str) -> FindingData:
    """Entry of two runs, one an arm; `seconds` has by arm the percentile of each second."""
    runs = [{"run_id": arm, "arm": arm, "printed_percentile": printed} for arm in seconds]
    counts = [
        {"run_id": run, "bucket": histogram.bucket_of(ms), "count": many}
        for run in seconds
        for ms, many in ((0.2, 9_800), (5.0, 200))
    ]
    series = [
        {"run_id": run, "second": place + 1.0, "latency_percentile_ms": ms, "is_discarded": place == 0}
        for run, values in seconds.items()
        for place, ms in enumerate(values)
    ]
    tables = {"runs": runs, "histograms": counts, "intervals": series}
    tidy = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    entry = finding(metric=metric, baseline="direct", treatment="haproxy", runs=[*seconds])
    (found,) = finding_builder.with_support([entry], tidy, NAMES)
    return found


def test_events_beyond_a_percentile_are_counted_with_their_pauses() -> None:
    def describe(case: dict[str, Any]) -> list[str]:
        seconds = {arm: case[arm] for arm in NAMES}
        found = find_support(seconds, case.get("printed", 99), "latency_p99_ms")
        lines = [", ".join(f"{key} {value}" for key, value in one.plain.items()) for one in found.support]
        return [*lines, *(found.warnings or ["no warning"])]

    assert_cases("tail_support", describe, part="cases")


def test_a_rate_and_a_median_have_no_such_support() -> None:
    for metric in ("qps", "latency_p50_ms"):
        assert find_support(dict.fromkeys(NAMES, [5.0] * 8), 99, metric).support is None
