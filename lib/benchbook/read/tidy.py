"""Run folders → tidy tables and Parquet files, the same bytes from the same folders.

A run is read only if its files are those of its manifest, its plan is the schedule's, and it is valid when
judged again. Whatever is left out stands in the table `refused` with the reason. Memory holds a few batches,
however many runs there are: each is one row group, and they are the same however many processes read them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study import custom_scripts
from benchbook.core.study.params import Limits
from benchbook.core.util import files, numeric_equality
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.parallel import Each
from benchbook.read import costs, rows
from benchbook.read.evidence import Evidence
from benchbook.read.schemas import SCHEMAS
from benchbook.read.validity import judge_run

ARROW = {
    "str": pa.string(), "bool": pa.bool_(), **dict.fromkeys(("int", "Int"), pa.int64()),
    **dict.fromkeys(("float", "derived"), pa.float64()),
}  # fmt: skip
# What a plan has as its schedule does, and what it is where a plan leaves it out.
COMPARED: dict[str, Any] = {
    **dict.fromkeys(("block", "group", "arm", "workload", "threads", "seed", "discard_s", "run_s")),
    **{"order": "runs", "turn_ms": 0},
}
SERIES = ("turns", "intervals", "histograms", "monitor")
NAMED = 20
PARQUET: dict[str, Any] = {"compression": "zstd", "compression_level": 3, "version": "2.6",
                           "data_page_version": "1.0"}  # fmt: skip


def read_study(
    raw_dir: Path, void_dir: Path, schedule: pd.DataFrame, limits: Limits | Mapping[str, Any] | None = None
) -> dict[str, pa.Table]:
    """Tables of `SCHEMAS` for a study, in memory; a run that can't be used is in `refused` alone."""
    scheduled = sort_schedule(schedule)
    of_runs = read_runs(raw_dir, Limits.model_validate(limits or {}), scheduled)
    parts = [of_runs, read_rest(raw_dir, void_dir, scheduled)]
    tables = {name: concat_parts(name, [part[name] for part in parts]) for name in SCHEMAS}
    return tables | {"runs": since_first(tables["runs"])}


def sort_schedule(schedule: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a schedule in the order of runs in all tables."""
    return schedule.sort_values("position").to_dict("records")


def read_runs(raw_dir: Path, limits: Limits, scheduled: Sequence[dict[str, Any]]) -> dict[str, pa.Table]:
    """Tables of some runs; `started_s` still counts from the epoch."""
    return _build_tables(result for row in scheduled for result in _read_run(raw_dir, limits, row))


def read_rest(raw_dir: Path, void_dir: Path, scheduled: Sequence[dict[str, Any]]) -> dict[str, pa.Table]:
    """Tables of the folders beside the scheduled runs: strangers and voids."""
    planned = {row["run_id"]: row for row in scheduled}
    names = [folder.name for folder in run_folder.list_folders(raw_dir) if folder.name not in planned]
    why = ["not in the schedule"]
    strangers = [_refuse_run(name, "stranger", why, f"{raw_dir.name}/{name}") for name in names]
    notes = sorted(void_dir.glob(f"*.{run_folder.VOID}")) if void_dir.is_dir() else []
    return _build_tables([*strangers, *(_read_void(note, planned) for note in notes)])


def since_first(runs: pa.Table) -> pa.Table:
    """Table of runs with `started_s` and `server_started_s` counted from the first run."""
    started = runs["started_s"].to_numpy()
    first = started.min() if started.size else 0.0
    for name in ("started_s", "server_started_s"):
        place = runs.column_names.index(name)
        since = np.round(runs[name].to_numpy() - first, 3)
        runs = runs.set_column(place, runs.schema.field(place), pa.array(since, pa.float64()))
    return runs


def pilot_series(folders: Iterable[RunFolder]) -> pd.DataFrame:
    """Arm, workload, threads, pilot (1), starting_s, second (from 1), qps and tps of pilots, one row a
    second; starting_s are the seconds that its client took beside its own clock, to start and to end."""
    rows = []
    for run in map(Evidence.of, folders):
        planned, log = run.planned, run.log
        total_s = log.final.total_time_s if log.final is not None else None
        starting_s = np.nan if total_s is None else run.get("sysbench_s") - total_s
        cell = (planned.arm, planned.workload, planned.threads, 1, starting_s)
        rows += [(*cell, second, line.qps, line.tps) for second, line in enumerate(log.intervals, start=1)]
    columns = ["arm", "workload", "threads", "pilot", "starting_s", "second", "qps", "tps"]
    return pd.DataFrame(rows, columns=columns)


def pilot_totals(folders: Iterable[RunFolder]) -> dict[str, list[dict[str, int]]]:
    """Threads, events, reads, writes, other and errors of every pilot, by workload with an own script.

    A pilot without whole totals has no event."""
    totals: dict[str, list[dict[str, int]]] = {}
    names = {name: name for name in ("events", "reads", "writes", "other")} | {"errors": "ignored_errors"}
    for run in map(Evidence.of, folders):
        if custom_scripts.is_own(run.planned.script):
            blocks = run.log.summaries
            sums = {key: sum(getattr(block, name) or 0 for block in blocks) for key, name in names.items()}
            totals.setdefault(run.planned.workload, []).append({"threads": run.planned.threads, **sums})
    return totals


def refuse_strangers(tables: Mapping[str, pa.Table]) -> None:
    """Raise BenchbookError if any run folder is not in the schedule, naming up to twenty."""
    refused = tables["refused"].to_pylist()
    if names := [row["folder"] for row in refused if row["status"] == "stranger"]:
        raise BenchbookError(f"not in the schedule: {_join_some(names, ', ')}; move these folders away")


def _join_some(texts: Sequence[str], between: str) -> str:
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return f"{between.join(texts[:NAMED])}{more}"


def load_tables(from_dir: Path, *names: str) -> dict[str, pd.DataFrame]:
    """Tables left by `parse_study`, or those named, as frames with the types of `SCHEMAS`."""
    frames = {}
    for name in names or SCHEMAS:
        columns = SCHEMAS[name]
        table = pq.read_table(files.require_path(from_dir / f"{name}.parquet"))
        if table.column_names != list(columns):
            raise ValueError(f"{from_dir / name}.parquet: columns of another version; run parse again")
        frame = table.to_pandas(integer_object_nulls=False)
        frames[name] = frame.astype({key: "Int64" for key, (kind, *_) in columns.items() if kind == "Int"})
    return frames


def schema_of(name: str) -> pa.Schema:
    """A table's Arrow schema, with unit and meaning beside each column."""
    return pa.schema(
        pa.field(column, ARROW[kind], metadata={"unit": unit, "meaning": meaning})
        for column, (kind, unit, meaning) in SCHEMAS[name].items()
    )


# A table's name with a row of it; of a series with the rows of one run, which are kept as arrays.
Found = tuple[str, Any]


def _build_tables(results: Iterable[Found]) -> dict[str, pa.Table]:
    """All tables; `concat_parts` gives series the types of their schema."""
    parts: dict[str, list[Any]] = {name: [] for name in SCHEMAS}
    for name, part in results:
        parts[name].append(part)
    parts["voids"].sort(key=lambda row: (row["run_id"], row["attempt"]))
    tables: dict[str, pa.Table] = {}
    for name, part in parts.items():
        if name in SERIES:
            tables[name] = pa.concat_tables(part) if part else schema_of(name).empty_table()
            continue
        # Derived numbers have the digits that their schema states.
        derived = [column for column, (kind, _, _) in SCHEMAS[name].items() if kind == "derived"]
        for row, column in product(part, derived):
            row[column] = numeric_equality.round_significant(row[column], numeric_equality.DERIVED)
        tables[name] = pa.Table.from_pylist(part, schema=schema_of(name))
    return tables


def _read_run(raw_dir: Path, limits: Limits, scheduled: dict[str, Any]) -> Iterator[Found]:
    """Tables of one scheduled run, or the reason for its refusal."""
    run_id = scheduled["run_id"]
    folder, place = RunFolder(raw_dir / run_id), f"{raw_dir.name}/{run_id}"
    if not folder.path.is_dir():
        yield _refuse_run(run_id, "missing", ["no run folder"], "")
        return
    judged = judge_run(folder, limits)
    plan, broken = judged.evidence.plan, judged.evidence.broken
    differs = [
        f"{name} is {plan.get(name, usual)!r}, the schedule has {scheduled[name]!r}"
        for name, usual in COMPARED.items()
        if name in scheduled and plan.get(name, usual) != scheduled[name]
    ]
    if broken or differs or judged.status != "valid":
        status = "broken" if broken else "differs" if differs else judged.status
        yield _refuse_run(run_id, status, list(broken) or differs or judged.reasons, place)
        return
    try:
        text = folder.text(run_folder.MONITOR)
        monitor = costs.monitor_table(text)
        row = rows.run_row(judged, scheduled, monitor, place)
        spent = costs.build_rows(judged.evidence, text, row["qps"])
    except (ValueError, KeyError, TypeError) as error:
        yield _refuse_run(run_id, "broken", [f"{type(error).__name__}: {error}"], place)
        return
    yield "runs", row
    yield from (("costs", {"run_id": run_id, **values}) for values in spent)
    yield _build_series("turns", run_id, rows.turn_columns(judged))
    yield _build_series("intervals", run_id, rows.interval_columns(judged))
    yield _build_series("histograms", run_id, rows.histogram_columns(judged))
    yield _build_series("monitor", run_id, dict(zip(monitor.column_names, monitor.columns, strict=True)))


def _read_void(note: Path, planned: Mapping[str, dict[str, Any]]) -> Found:
    """Reason for a folder's exclusion; one not about a scheduled run's validity is only listed."""
    record = run_folder.read_note(note)
    place = f"{note.parent.name}/{note.name.removesuffix('.' + run_folder.VOID)}"
    scheduled = planned.get(record.run_id)
    if scheduled is None or record.status not in run_folder.COUNTED:
        return _refuse_run(record.run_id, record.status, record.reasons, place)
    cell = {name: scheduled[name] for name in ("run_id", "block", "arm", "workload", "threads")}
    void = {"attempt": record.attempt, "status": record.status, "reasons": "; ".join(record.reasons)}
    return "voids", {**cell, **void, "folder": place}


def _refuse_run(run_id: str, status: str, reasons: Sequence[str], folder: str) -> Found:
    return "refused", {"run_id": run_id, "status": status, "reasons": "; ".join(reasons), "folder": folder}


def _build_series(name: str, run_id: str, columns: Mapping[str, Any]) -> Found:
    """Series of one run as a table; its id is stored once, not on every row."""
    arrays = {}
    for column, (kind, _, _) in SCHEMAS[name].items():
        if column == "run_id":
            length = len(next(iter(columns.values())))
            arrays[column] = pa.DictionaryArray.from_arrays(np.zeros(length, dtype=np.int32), [run_id])
        else:
            # Of what may be absent NaN is nothing.
            values = columns[column]
            arrays[column] = pa.array(values, from_pandas=True) if kind == "Int" else values
    return name, pa.table(arrays)


def concat_parts(name: str, parts: Sequence[pa.Table]) -> pa.Table:
    """One table made of its parts, with its schema and in one piece."""
    schema = schema_of(name)
    return pa.concat_tables([part.cast(schema) for part in parts]).combine_chunks()


RUNS_A_BATCH = 50


@dataclass(frozen=True)
class Parsed:
    """Result of parsing a study's folders: `rows` of each table, and tables `voids` and `refused`."""

    rows: dict[str, int]
    voids: pa.Table
    refused: pa.Table


def parse_study(
    raw_dir: Path,
    void_dir: Path,
    schedule: pd.DataFrame,
    into: Path,
    limits: Limits | Mapping[str, Any] | None = None,
    each: Each = map,
) -> Parsed:
    """Write the tables of `SCHEMAS` for a study, each complete or not at all; report the refusals.

    `schedule` has the columns run_id, block, position, group, arm, workload, threads, seed. `each` is `map`
    or anything like it that keeps the order, such as one of several processes. Raise BenchbookError,
    before anything is read, if a run folder is not in the schedule or something there is no plain file.
    """
    _refuse_irregular(raw_dir, void_dir)
    scheduled = sort_schedule(schedule)
    rest = read_rest(raw_dir, void_dir, scheduled)
    refuse_strangers(rest)
    batches = [scheduled[at : at + RUNS_A_BATCH] for at in range(0, len(scheduled), RUNS_A_BATCH)]
    into.mkdir(parents=True, exist_ok=True)
    parts = {name: into / f"{name}.part" for name in SCHEMAS}
    rows = dict.fromkeys(SCHEMAS, 0)
    held: dict[str, list[pa.Table]] = {name: [rest[name]] for name in SCHEMAS if name not in SERIES}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(pq.ParquetWriter(part, schema_of(name), **PARQUET))
            for name, part in parts.items()
        }
        for tables in each(partial(read_runs, raw_dir, Limits.model_validate(limits or {})), batches):
            for name, table in tables.items():
                rows[name] += len(table)
                if name not in held:
                    writers[name].write_table(concat_parts(name, [table]))
                elif len(table):
                    held[name].insert(-1, table)
        small = {name: concat_parts(name, results) for name, results in held.items()}
        small["runs"] = since_first(small["runs"])
        for name, table in small.items():
            rows[name] = len(table)
            writers[name].write_table(table)
    for name, part in parts.items():
        part.replace(into / f"{name}.parquet")
    return Parsed(rows, small["voids"], small["refused"])


def _refuse_irregular(*folders: Path) -> None:
    results = [
        f"{folder.name}/{name} is {kind}"
        for folder in filter(Path.is_dir, folders)
        for name, kind in files.walk_tree(folder)
        if kind not in (None, files.FOLDER)
    ]
    if results:
        raise BenchbookError(
            f"{_join_some(results, '; ')}: run folders hold plain files only; put the files themselves there "
            "(`dvc config cache.type reflink,copy` and `dvc checkout --relink` do it for links into DVC's "
            "cache)"
        )
