"""What is read of pilots, and when runs began: seconds from the first of them."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from benchbook.read import tidy
from benchbook.read.sysbench_log import parse_log
from tests.read import synthetic


@pytest.fixture
def pilots(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Two pilots: of five seconds at 100 transactions a second, and of three at 50, which has errors."""
    monkeypatch.setattr(tidy, "Evidence", SimpleNamespace(of=lambda folder: folder))
    monkeypatch.setattr(tidy.custom_scripts, "is_own", lambda script: script.endswith(".lua"))
    asked = {"threads": 4, "discard_s": 0}
    each = [
        ("direct", "mine", synthetic.output(**asked), 5.25),
        ("proxy", "mine", synthetic.output(**asked, run_s=3, tps=50, errors=2), 3.5),
        ("proxy", "oltp_read_only", synthetic.output(**asked), 5.0),
    ]
    return [
        SimpleNamespace(
            planned=SimpleNamespace(
                arm=arm, workload=workload, threads=4, script="mine.lua" if workload == "mine" else workload
            ),
            get={"sysbench_s": took_s}.__getitem__,
            log=parse_log(text),
            out=text,
        )
        for arm, workload, text, took_s in each
    ]


def test_pilots_have_a_row_a_second_and_the_time_that_their_client_took_to_start(pilots):
    found = tidy.pilot_series(pilots[:2])
    assert list(found.second) == [1, 2, 3, 4, 5, 1, 2, 3] and set(found.pilot) == {1}
    assert list(found.groupby("arm").tps.first()) == [100.0, 50.0]
    # 5.25 s of which sysbench counts 5; 3.5 of which it counts 3.
    starting = found.groupby("arm").starting_s.first()
    assert list(starting) == pytest.approx([0.25, 0.5], abs=0.01)
    # Twenty statements in a transaction.
    assert list(found.groupby("arm").qps.first()) == [2000.0, 1000.0]


def test_a_pilot_without_a_total_time_tells_no_start(pilots):
    cut = pilots[0]
    cut.log = parse_log(cut.out.partition("SQL statistics")[0])
    assert tidy.pilot_series([cut]).starting_s.isna().all()


def test_events_of_own_scripts_are_counted_and_those_of_sysbenchs_are_not(pilots):
    found = tidy.pilot_totals(pilots)
    assert list(found) == ["mine"]
    first, second = found["mine"]
    # 500 transactions of 14 reads, 4 writes and 2 others; 150, two of which failed.
    assert first == {"threads": 4, "events": 500, "reads": 7000, "writes": 2000, "other": 1000, "errors": 0}
    assert (second["events"], second["errors"]) == (150, 2)


def test_runs_and_servers_started_so_long_after_the_first_run():
    columns = {"started_s": [103.25, 100.5, 100.50049], "server_started_s": [90.0, 100.0, None]}
    found = tidy.since_first(pa.table({name: pa.array(one, pa.float64()) for name, one in columns.items()}))
    assert found["started_s"].to_pylist() == [2.75, 0.0, 0.0]
    first, second, unknown = found["server_started_s"].to_pylist()
    assert (first, second) == (-10.5, -0.5) and (unknown is None or unknown != unknown)
    none = pa.table({name: pa.array([], pa.float64()) for name in columns})
    assert tidy.since_first(none).num_rows == 0
