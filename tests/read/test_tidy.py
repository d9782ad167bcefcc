"""Tidy tables: the right numbers from the right runs, and nothing left out without a word."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchbook.core.artifacts import run_folder
from benchbook.core.util import histogram
from benchbook.core.util.errors import BenchbookError
from benchbook.read import costs, rows, tidy, validity
from benchbook.read.schemas import SCHEMAS
from tests.read import corpus, synthetic

KEYS = ("run_id", "block", "position", "group", "arm", "workload", "threads", "seed")


def plans(count: int = 4) -> list[dict]:
    made = []
    for at in range(count):
        arm, block = ("direct", "haproxy")[at % 2], at // 2 + 1
        group = f"b{block:02d}-read-t0004"
        run_id = f"{group}-{arm}-{at:010x}"
        made.append(synthetic.planned(run_id=run_id, position=at, block=block, group=group, arm=arm))
    return made


def study(tmp_path: Path, runs: list[dict], changed: dict | None = None) -> tuple[Path, Path, pd.DataFrame]:
    raw, void = tmp_path / "raw", tmp_path / "void"
    for plan in runs:
        started = {"started_utc": f"2026-01-05T10:00:{10 + plan['position']}.000+00:00", "machine_cores": 2}
        out = synthetic.output(tps=100 + plan["position"])
        synthetic.folder(raw, plan, out, {**started, **(changed or {})})
    return raw, void, pd.DataFrame([{key: plan[key] for key in KEYS} for plan in runs])


def write(tables, into: Path) -> None:
    """Write tables as files, whole, where `tidy.parse_study` writes them batch by batch."""
    into.mkdir(parents=True, exist_ok=True)
    for name in SCHEMAS:
        table = tables[name].cast(tidy.schema_of(name))
        pq.write_table(table, into / f"{name}.parquet", **tidy.PARQUET)


def frames(tmp_path: Path, tables) -> dict[str, pd.DataFrame]:
    write(tables, tmp_path / "tidy")
    return tidy.load_tables(tmp_path / "tidy")


@pytest.fixture(scope="module")
def four(tmp_path_factory) -> tuple[Path, Path, pd.DataFrame]:
    """Folders and schedule of four runs, which no test changes."""
    return study(tmp_path_factory.mktemp("four"), plans())


@pytest.fixture(scope="module")
def whole(four, tmp_path_factory) -> dict[str, pd.DataFrame]:
    return frames(tmp_path_factory.mktemp("whole"), tidy.read_study(*four))


def test_runs_cover_the_window_alone(whole):
    run = whole["runs"].iloc[2]
    # 102 transactions a second, 20 statements each, 5 s after 2 s of discard.
    assert (run.transactions, run.queries, run.reads, run.writes, run.other) == (510, 10200, 7140, 2040, 1020)
    assert (run.measured_s, run.tps, run.qps) == (5.0, 102.0, 2040.0)
    assert (run.discard_s, run.run_s, run.sysbench_s) == (2.0, 5.0, 7.0)
    # 4 threads and 102 transactions a second: 39.22 ms each, in the bucket of 38.94 ms.
    assert run.latency_p95_ms == run.latency_p99_ms == histogram.value_of(587)
    assert (run.printed_percentile, run.printed_percentile_ms) == (99, 38.94)
    assert (run.started_s, run.folder) == (2.0, f"raw/{run.run_id}")
    assert (run.ledger, run.warnings, run.attempt) == ("agrees", "", 1)


def test_use_of_cores_is_the_mean_of_the_window(whole):
    run = whole["runs"].iloc[0]
    assert run.cpu_client_cores == pytest.approx(0.3)
    assert run.cpu_server_cores == pytest.approx(1.2)
    assert np.isnan(run.cpu_proxy_cores)
    # 1.6 of 2 cores
    assert run.cpu_machine_pct == pytest.approx(80)
    assert run.steal_pct == pytest.approx(0.5)


def load_columns(lines: list[str], more: str = "") -> dict:
    """What is read of a monitor's lines, which go on after 2 s of discard to the end at 7 s."""
    head = f"second,part,cpu_cores,rss_mib,steal_pct,psi_cpu_pct,psi_io_pct,psi_memory_pct{more}"
    monitor = costs.monitor_table("\n".join([head, *lines]) + "\n")
    return rows._load_columns(monitor, 2, 7.0, {"machine_cores": 2, "steal_pct": 0.0})


def test_tidb_tikv_and_pd_are_told_apart_from_the_server_they_are_together(whole):
    assert np.isnan(whole["runs"].cpu_tidb_cores).all(), "one process is no TiDB without its storage"
    used = {"tidb": (1.5, 100), "tikv": (4.0, 900), "pd": (0.25, 50), "server": (5.75, 1050)}
    each = [(second, part, *use) for second in (4, 5) for part, use in used.items()]
    seen = load_columns([f"{second}.0,{part},{cores},{mib},,,," for second, part, cores, mib in each])
    for part, (cores, mib) in used.items():
        assert (seen[f"cpu_{part}_cores"], seen[f"memory_{part}_mib"]) == (cores, mib)


def test_bytes_and_memory_are_those_of_the_window_and_older_runs_have_no_bytes(whole):
    assert np.isnan(whole["runs"].received_server_mib_s).all()
    assert set(whole["runs"].memory_server_mib) == {300.0}
    # Second 2 is the discard's, second 9 comes after the end: 10 and 30 MiB/s are left, 20 on average.
    lines = [f"{second}.0,proxy,0.5,{memory},,,,,{rate},{rate}" for second, memory, rate in (
        (2, 900, 99.0), (4, 50, 10.0), (5, 70, 30.0), (9, 900, 99.0)
    )]  # fmt: skip
    seen = load_columns(lines, ",received_mib_s,sent_mib_s")
    assert (seen["received_proxy_mib_s"], seen["memory_proxy_mib"]) == (20.0, 70.0)
    assert np.isnan(seen["sent_server_mib_s"])


def test_the_lowest_qps_is_that_of_five_seconds_of_the_window(whole):
    # Runs of 100, 101, 102 and 103 transactions of 20 statements a second; a window of 5 s is one stretch.
    assert list(whole["runs"].lowest_qps) == [2000.0, 2020.0, 2040.0, 2060.0]
    out = synthetic.output(run_s=12).splitlines()
    slow = [line.replace("qps: 2000.00", "qps: 1000.00") if line.startswith("[ 9s") else line for line in out]
    judged = validity.judge_run(corpus.healthy("\n".join(slow) + "\n", synthetic.planned(run_s=10)))
    # Seconds 3 to 7 have 2000, 8 to 12 one of 1000: (4 x 2000 + 1000) / 5.
    assert rows._lowest_mean(judged) == 1800.0


def test_series_know_their_run_and_what_is_discarded(whole):
    intervals = whole["intervals"]
    assert list(intervals.run_id.unique()) == list(whole["runs"].run_id)
    first = intervals[intervals.run_id == whole["runs"].run_id[0]]
    assert list(first.second) == [1, 2, 3, 4, 5, 6, 7]
    assert list(first.is_discarded) == [True, True, False, False, False, False, False]
    assert first.queue_length.isna().all()
    counts = whole["histograms"].groupby("run_id")["count"].sum()
    assert list(counts[whole["runs"].run_id]) == list(whole["runs"].events)
    monitor = whole["monitor"]
    assert set(monitor.part) == {"client", "server", "machine"}
    assert monitor[monitor.part == "client"].psi_cpu_pct.isna().all()


def test_columns_are_those_of_the_schemas(whole):
    kinds = {"int": "int64", "float": "float64", "bool": "bool", "Int": "Int64"}
    for name, columns in SCHEMAS.items():
        assert list(whole[name].columns) == list(columns)
        for column, (kind, _, _) in columns.items():
            assert str(whole[name][column].dtype) == kinds.get(kind, str(whole[name][column].dtype)), column


def test_units_stand_in_the_names():
    ends = {"us": "_us", "ms": "_ms", "s": ("_s", "second"), "%": "_pct", "MiB": "_mib", "MiB/s": "_mib_s",
            "cores": "_cores", "1/s": ("_per_s", "qps", "tps"), "B": "_bytes", "1/ms": "_speed"}  # fmt: skip
    for columns in SCHEMAS.values():
        for column, (_, unit, meaning) in columns.items():
            assert not unit or column.endswith(ends[unit]), column
            assert meaning


def test_the_same_folders_give_the_same_bytes(tmp_path):
    raw, void, schedule = study(tmp_path, plans())
    for name in ("a", "b"):
        copy = tmp_path / name / "raw"
        shutil.copytree(raw, copy)
        order = schedule if name == "a" else schedule.iloc[::-1]
        tidy.parse_study(copy, void, order, tmp_path / name / "tidy")
    for table in SCHEMAS:
        one, two = (tmp_path / name / "tidy" / f"{table}.parquet" for name in ("a", "b"))
        assert one.read_bytes() == two.read_bytes()


def test_missing_runs_and_strangers_are_named(tmp_path):
    runs = plans()
    raw, void, schedule = study(tmp_path, runs)
    shutil.rmtree(raw / runs[1]["run_id"])
    tables = tidy.read_study(raw, void, schedule[schedule.position != 3])
    refused = [(row["run_id"], row["status"]) for row in tables["refused"].to_pylist()]
    assert refused == [(runs[1]["run_id"], "missing"), (runs[3]["run_id"], "stranger")]
    assert len(tables["runs"]) == 2
    with pytest.raises(BenchbookError, match=runs[3]["run_id"]):
        tidy.refuse_strangers(tables)
    # Twenty of the 22 are named.
    with pytest.raises(BenchbookError, match=" and 2 more; move"):
        tidy.refuse_strangers({"refused": pa.concat_tables([tables["refused"]] * 22)})


def test_an_edited_log_is_dropped_and_said(tmp_path):
    raw, void, schedule = study(tmp_path, plans())
    out = raw / schedule.run_id[2] / "sysbench.out"
    data = bytearray(out.read_bytes())
    data[-3] ^= 1
    out.write_bytes(data)
    tables = tidy.read_study(raw, void, schedule)
    assert schedule.run_id[2] not in tables["runs"]["run_id"].to_pylist()
    assert schedule.run_id[2] not in tables["intervals"]["run_id"].to_pylist()
    (refused,) = tables["refused"].to_pylist()
    assert refused["status"] == "broken"
    assert refused["reasons"] == "; ".join(run_folder.RunFolder(out.parent).verify())
    assert refused["reasons"].startswith("sysbench.out: ")


def test_runs_are_judged_again_by_the_limits_given(tmp_path):
    raw, void, schedule = study(tmp_path, plans(2), {"steal_pct": 3.0})
    assert len(tidy.read_study(raw, void, schedule)["runs"]) == 2
    tables = tidy.read_study(raw, void, schedule, {"steal_pct": 1.0})
    assert len(tables["runs"]) == 0
    assert {row["status"] for row in tables["refused"].to_pylist()} == {"invalid"}
    assert frames(tmp_path, tables)["intervals"].empty


@pytest.mark.parametrize(
    ("name", "other"),
    [("block", 3), ("group", "b09-read-t0004"), ("arm", "other"), ("workload", "write"), ("threads", 8),
     ("seed", 8), ("discard_s", 15), ("run_s", 45)],
)  # fmt: skip
def test_whatever_the_schedule_says_of_a_run_is_what_was_run(four, name, other):
    raw, void, schedule = four
    schedule = schedule.assign(discard_s=2, run_s=5)
    was, *others = schedule[name].tolist()
    schedule[name] = [other, *others]
    tables = tidy.read_study(raw, void, schedule)
    (refused,) = tables["refused"].to_pylist()
    refusal = refused["run_id"], refused["status"], refused["reasons"]
    reason = f"{name} is {was!r}, the schedule has {other!r}"
    assert refusal == (schedule["run_id"][0], "differs", reason)
    assert len(tables["runs"]) == 3


def test_a_moved_place_in_the_order_is_no_difference(four):
    raw, void, schedule = four
    schedule = schedule.assign(discard_s=2, run_s=5, position=schedule["position"] + 10)
    assert tidy.read_study(raw, void, schedule)["runs"]["position"].to_pylist() == [10, 11, 12, 13]


def test_voided_attempts_are_listed_with_their_reasons(tmp_path):
    runs = plans()
    raw, void, schedule = study(tmp_path, runs)
    again = runs[0]
    reasons = ["V14 alone: 1 foreign sessions on the server", "V20 pauses: x"]
    run_folder.void_folder(raw / again["run_id"], void, "invalid", reasons)
    synthetic.folder(raw, again, synthetic.output())
    run_folder.void_folder(raw / runs[1]["run_id"], void, "killed", ["the run was killed before it ended"])
    tables = tidy.read_study(raw, void, schedule)
    (voided,) = tables["voids"].to_pylist()
    assert voided["reasons"] == "; ".join(reasons)
    place = voided["arm"], voided["block"], voided["attempt"], voided["folder"]
    assert place == ("direct", 1, 1, f"void/{again['run_id']}.a1")
    assert {(row["run_id"], row["status"]) for row in tables["refused"].to_pylist()} == {
        (runs[1]["run_id"], "missing"),
        (runs[1]["run_id"], "killed"),
    }


def test_a_monitor_that_can_not_be_read_drops_the_run(tmp_path):
    raw, void, schedule = study(tmp_path, plans(1))
    folder = raw / schedule.run_id[0]
    (folder / "monitor.csv").write_text("second,part\n1,client,3\n")
    manifest = json.loads((folder / "manifest.json").read_text())
    digest = run_folder.files.digest_file(folder / "monitor.csv")
    manifest["files"]["monitor.csv"] = {"sha256": digest, "bytes": (folder / "monitor.csv").stat().st_size}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (refused,) = tidy.read_study(raw, void, schedule)["refused"].to_pylist()
    assert refused["status"] == "broken" and "monitor.csv" in refused["reasons"]


def test_an_empty_study_has_all_tables(tmp_path):
    schedule = pd.DataFrame(columns=list(KEYS))
    loaded = frames(tmp_path, tidy.read_study(tmp_path / "raw", tmp_path / "void", schedule))
    assert {name: len(frame) for name, frame in loaded.items()} == dict.fromkeys(SCHEMAS, 0)


def test_tables_of_another_version_are_refused(tmp_path):
    tables = tidy.read_study(*study(tmp_path, plans(1)))
    write(tables, tmp_path / "tidy")
    pd.DataFrame({"run_id": ["x"]}).to_parquet(tmp_path / "tidy" / "runs.parquet")
    with pytest.raises(ValueError, match="run parse again"):
        tidy.load_tables(tmp_path / "tidy")
