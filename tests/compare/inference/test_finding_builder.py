"""What a percentile rests on: events beyond it, and whether one pause of the machine made them."""

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.inference import finding_builder
from benchbook.core.util import histogram
from tests.found import finding

NAMES = {"direct": "direct connections", "haproxy": "HAProxy"}


def entry(metric="latency_p99_ms"):
    return finding(metric=metric, baseline="direct", treatment="haproxy", runs=["a", "b"])


def tidy(seconds: dict[str, list[float]], printed=99) -> dict[str, pd.DataFrame]:
    """Two runs of 10,000 events, 200 of them of 5 ms and others of 0.2 ms; `seconds` has the p99 of each."""
    runs = [
        {"run_id": run, "arm": arm, "printed_percentile": printed}
        for run, arm in (("a", "direct"), ("b", "haproxy"))
    ]
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
    return {"runs": pd.DataFrame(runs), "histograms": pd.DataFrame(counts), "intervals": pd.DataFrame(series)}


# The first second is discarded, whatever it shows.
EVEN = [9.0, 5.0, 0.3, 5.2, 0.3, 6.0, 0.3, 5.0]
ONE = [0.3, 0.3, 0.3, 24.0, 0.4, 0.3, 0.3, 0.2]


def test_one_second_that_holds_all_that_is_slow_is_one_pause():
    (found,) = finding_builder.with_support([entry()], tidy({"a": EVEN, "b": ONE}), NAMES)
    # Of 10,000 events 100 lie beyond p99. Four seconds apart from each other reach the 5 ms, then one.
    assert [one.plain for one in found.support] == [
        {"arm": "direct", "runs": 1, "events_beyond": 100, "pauses": 4, "by_one_pause": 0},
        {"arm": "haproxy", "runs": 1, "events_beyond": 100, "pauses": 1, "by_one_pause": 1},
    ]
    assert found.warnings == ["In 1 of 1 run of HAProxy, one pause alone holds all events beyond p99."]


def test_two_seconds_in_a_row_are_one_pause_and_three_are_not():
    two, three = ([0.3, *[7.0] * many, *[0.3] * (7 - many)] for many in (2, 3))
    (found,) = finding_builder.with_support([entry()], tidy({"a": two, "b": three}), NAMES)
    assert [one.by_one_pause for one in found.support] == [1, 0]
    assert [one.pauses for one in found.support] == [1, 1]


# A lower percentile is printed, too few seconds, several clients.
@pytest.mark.parametrize(("seconds", "printed"), [(ONE, 95), (ONE[:5], 99), ([0.3, *[np.nan] * 7], 99)])
def test_pauses_are_not_counted_where_the_seconds_cannot_tell(seconds, printed):
    (found,) = finding_builder.with_support([entry()], tidy({"a": seconds, "b": seconds}, printed), NAMES)
    seen = [(one.events_beyond, one.pauses, one.by_one_pause) for one in found.support]
    assert (seen, found.warnings) == ([(100, None, None)] * 2, [])


def test_a_rate_and_a_median_have_no_such_support():
    for metric in ("qps", "latency_p50_ms"):
        (found,) = finding_builder.with_support([entry(metric)], tidy({"a": EVEN, "b": ONE}), NAMES)
        assert found.support is None
