"""Parsing in batches: the bytes of one process, of several, and the values of the tables in memory."""

import os
import time
from functools import partial

import pandas as pd
import pytest

from benchbook.core.util import parallel
from benchbook.core.util.errors import BenchbookError
from benchbook.read import tidy
from tests.goldens import assert_golden
from tests.read import synthetic
from tests.read.test_tidy import plans, study, write


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(tidy, "RUNS_A_BATCH", 3)


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_bytes_do_not_tell_how_many_processes_read_them(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "WORTH_IT", 1)
    raw, void, schedule = study(tmp_path, plans(8))
    tidy.parse_study(raw, void, schedule, tmp_path / "one")
    with parallel.map_tasks(len(schedule), cores=2) as each:
        assert each is not map
        tidy.parse_study(raw, void, schedule, tmp_path / "two", each=each)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


def test_batches_hold_what_the_tables_in_memory_hold(tmp_path):
    raw, void, schedule = study(tmp_path, plans(8))
    schedule = schedule[schedule.position != 7]
    (raw / plans(8)[7]["run_id"]).rename(tmp_path / "away")
    (raw / plans(8)[4]["run_id"] / "sysbench.out").write_text("cut")
    found = tidy.parse_study(raw, void, schedule, tmp_path / "batches")
    write(tidy.read_study(raw, void, schedule), tmp_path / "whole")
    batches, whole = tidy.load_tables(tmp_path / "batches"), tidy.load_tables(tmp_path / "whole")
    for name, table in whole.items():
        pd.testing.assert_frame_equal(batches[name], table)
        assert found.rows[name] == len(table)
    assert (len(batches["runs"]), found.refused["status"].to_pylist()) == (6, ["broken"])


def test_a_stranger_stops_it_before_anything_is_written(tmp_path):
    raw, void, schedule = study(tmp_path, plans(4))
    with pytest.raises(BenchbookError, match=plans(4)[3]["run_id"]):
        tidy.parse_study(raw, void, schedule[schedule.position != 3], tmp_path / "tidy")
    assert not (tmp_path / "tidy").exists()


@pytest.mark.parametrize("place", ["sysbench.out", "plan.json", "more"])
def test_a_fifo_or_a_link_is_named_at_once_and_nothing_waits_for_it(tmp_path, place):
    raw, void, schedule = study(tmp_path, plans(4))
    run = plans(4)[1]["run_id"]
    (raw / run / place).unlink(missing_ok=True)
    os.mkfifo(raw / run / place)
    began = time.monotonic()
    with pytest.raises(BenchbookError, match=rf"^raw/{run}/{place} is a FIFO: "):
        tidy.parse_study(raw, void, schedule, tmp_path / "tidy")
    (raw / run / place).unlink()
    (raw / run / place).symlink_to("/dev/zero")
    with pytest.raises(BenchbookError, match=f"raw/{run}/{place} is a symbolic link"):
        tidy.parse_study(raw, void, schedule, tmp_path / "tidy")
    # The checks that run-matrix asks see it too, and do not wait either.
    refused = tidy.read_study(raw, void, schedule)["refused"].to_pylist()
    assert [(row["status"], "symbolic link" in row["reasons"]) for row in refused] == [("broken", True)]
    assert time.monotonic() - began < 60, "a FIFO keeps its reader waiting for ever"


def test_a_note_in_void_that_is_a_fifo_is_named_at_once(tmp_path):
    raw, void, schedule = study(tmp_path, plans(4))
    void.mkdir()
    os.mkfifo(void / "b01-read.a1.void.json")
    with pytest.raises(BenchbookError) as caught:
        tidy.parse_study(raw, void, schedule, tmp_path / "tidy")
    assert_golden("irregular_folders.txt", f"{caught.value}\n")


def test_a_study_without_any_run_has_empty_tables(tmp_path):
    schedule = pd.DataFrame([{**synthetic.planned(), "position": 0}])
    found = tidy.parse_study(tmp_path / "raw", tmp_path / "void", schedule, tmp_path / "tidy")
    assert found.rows["runs"] == 0 and found.refused["status"].to_pylist() == ["missing"]
    assert len(tidy.load_tables(tmp_path / "tidy")["intervals"]) == 0


def test_results_come_in_order_and_only_a_few_ahead(monkeypatch):
    monkeypatch.setattr(parallel, "WORTH_IT", 1)
    asked = []

    def tasks():
        for number in range(40):
            asked.append(number)
            yield number

    with parallel.map_tasks(40, cores=2) as each:
        results = iter(each(partial(divmod, 100), (number + 1 for number in tasks())))
        assert next(results) == (100, 0)
        assert len(asked) <= 1 + 2 * parallel.AHEAD + 1
        assert list(results) == [divmod(100, number) for number in range(2, 41)]
