"""Run folders → tidy Parquet files, batch by batch: memory holds a few batches, however many runs there are.

Each batch is one row group. Batches are the same however they are read, so the bytes do not tell whether
one process read them or several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchbook.core import files
from benchbook.core.params import Limits
from benchbook.read import tidy
from benchbook.read.schemas import SCHEMAS

RUNS_A_BATCH = 50
Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True)
class Parsed:
    """What became of a study's folders: `rows` of each table, and the tables `voids` and `refused`."""

    rows: dict[str, int]
    voids: pa.Table
    refused: pa.Table


def parse(
    raw_dir: Path,
    void_dir: Path,
    schedule: pd.DataFrame,
    into: Path,
    limits: Limits | Mapping[str, Any] | None = None,
    each: Each = map,
) -> Parsed:
    """Write the tables of `SCHEMAS` for a study, each complete or not at all, and say what was left out.

    `schedule` has the columns run_id, block, position, group, arm, workload, threads, seed. `each` is `map`
    or anything like it that keeps the order, such as one of several processes. Raise StrangersError,
    before anything is read, if a run folder is not in the schedule or something there is no plain file.
    """
    _refuse_irregular(raw_dir, void_dir)
    scheduled = tidy.in_order(schedule)
    rest = tidy.read_rest(raw_dir, void_dir, scheduled)
    tidy.refuse_strangers(rest)
    batches = [scheduled[at : at + RUNS_A_BATCH] for at in range(0, len(scheduled), RUNS_A_BATCH)]
    into.mkdir(parents=True, exist_ok=True)
    parts = {name: into / f"{name}.part" for name in SCHEMAS}
    rows = dict.fromkeys(SCHEMAS, 0)
    held: dict[str, list[pa.Table]] = {name: [rest[name]] for name in SCHEMAS if name not in tidy.SERIES}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(pq.ParquetWriter(parts[name], tidy.schema_of(name), **tidy.PARQUET))
            for name in SCHEMAS
        }
        for tables in each(partial(tidy.read_runs, raw_dir, tidy.checked(limits)), batches):
            for name, table in tables.items():
                rows[name] += len(table)
                if name not in held:
                    writers[name].write_table(tidy.whole(name, [table]))
                elif len(table):
                    held[name].insert(-1, table)
        small = {name: tidy.whole(name, found) for name, found in held.items()}
        small["runs"] = tidy.since_first(small["runs"])
        for name, table in small.items():
            rows[name] = len(table)
            writers[name].write_table(table)
    for name, part in parts.items():
        part.replace(into / f"{name}.parquet")
    return Parsed(rows, small["voids"], small["refused"])


def _refuse_irregular(*folders: Path) -> None:
    found = [
        f"{path.relative_to(folder.parent)} is {kind}"
        for folder in folders
        if folder.is_dir()
        for path, kind in files.irregular(folder)
    ]
    if found:
        more = f" and {len(found) - tidy.NAMED} more" if len(found) > tidy.NAMED else ""
        raise tidy.StrangersError(
            f"{'; '.join(found[: tidy.NAMED])}{more}: run folders hold plain files only; put the files "
            "themselves there (`dvc config cache.type reflink,copy` and `dvc checkout --relink` do it for "
            "links into DVC's cache)"
        )
