"""Cost of a query for each part of an arm: one judged run → its rows of the table `costs`."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchbook.core.util import numeric_equality
from benchbook.read.evidence import Evidence
from benchbook.read.log import require_printed
from benchbook.read.schemas import SCHEMAS

Columns = dict[str, float]
SAMPLED = [name for name in SCHEMAS["monitor"] if name != "run_id"]
# Runs made before bytes were counted have none of these.
LATER = {"received_mib_s", "sent_mib_s"}
MONITOR = csv.ConvertOptions(
    column_types={name: pa.string() if name == "part" else pa.float64() for name in SAMPLED}
)
PARTS = ("client", "proxy", "server", "tidb", "tikv", "pd")
# What is kept of a part's second, and times what it gives the unit of a query.
OF_SECOND = {
    "cpu_us": ("cpu_cores", 1e6), "system_us": ("system_cores", 1e6),
    "voluntary": ("voluntary_per_s", 1.0), "involuntary": ("involuntary_per_s", 1.0),
    "wait_us": ("wait_cores", 1e6), "received_bytes": ("received_mib_s", float(1 << 20)),
    "sent_bytes": ("sent_mib_s", float(1 << 20)), "read_bytes": ("read_kib_s", 1024.0),
    "written_bytes": ("written_kib_s", 1024.0), "major_faults": ("major_faults_per_s", 1.0),
}  # fmt: skip
OF_TURNS = {
    "cpu_us": ("cpu_s", 1e6), "system_us": ("system_s", 1e6), "wait_us": ("wait_s", 1e6),
    **{name: (name, 1.0) for name in ("voluntary", "involuntary", "read_bytes", "written_bytes",
                                      "major_faults")},
}  # fmt: skip
# What the kernel counts in the discard, and tells of a second of processor time.
COUNTED = ("instructions", "cycles", "llc_misses")
# The engines' counters that tell the same thing; an engine without one has none of them.
OF_SERVER: dict[str, tuple[tuple[str, ...], float]] = {
    "row_reads": (
        ("Handler_read_first", "Handler_read_key", "Handler_read_last", "Handler_read_next",
         "Handler_read_prev", "Handler_read_rnd", "Handler_read_rnd_next", "tup_returned", "tup_fetched"),
        1.0,
    ),
    "page_reads": (("Innodb_buffer_pool_reads", "blks_read"), 1.0),
    "log_bytes": (("Innodb_os_log_written", "wal_bytes"), 1.0),
    "fsyncs": (("Innodb_data_fsyncs",), 1.0),
    "lock_wait_us": (("Innodb_row_lock_time",), 1e3),
    "requests": (("kv_requests",), 1.0),
}  # fmt: skip


# A check, the tidy table and what binds a run ask one after the other.
@lru_cache(maxsize=2)
def monitor_table(text: str) -> pa.Table:
    """`monitor.csv` as a table without `run_id`; raises ValueError if it is none."""
    try:
        source = pa.py_buffer(text.encode())
        table = csv.read_csv(source, csv.ReadOptions(use_threads=False), convert_options=MONITOR)
        for name in sorted(LATER.difference(table.column_names)):
            table = table.append_column(name, pa.nulls(len(table), pa.float64()))
        return table.select(SAMPLED)
    except (pa.ArrowInvalid, KeyError) as error:
        raise ValueError(f"monitor.csv: {error}") from error


def build_rows(run: Evidence, monitor: str, qps: float) -> list[dict[str, Any]]:
    """A row for each part with its resource use per query; NaN for unknown values.

    In turns both ends of each turn were read; of a whole run the seconds of its window are taken. The
    server's own counters are of the whole run, and of no arm where several had one server. The processor's
    events were counted in the discard; a query has as many of them as its processor time had there.
    """
    parts = by_part(run, monitor)
    of_server = _of_server(run)
    counted: Mapping[str, Any] = run.observed.get("counted") or {}
    rows, first = [], to_number(run.observed.get("read_kib_first_s"))
    for part, used in parts.items():
        server_work = of_server if part == "server" else dict.fromkeys(OF_SERVER, math.nan)
        a_query = {name: used[name] / qps if qps else math.nan for name in OF_SECOND}
        events = counted.get(part) or {}
        counted_us = 1e6 * to_number(events.get("cpu_s")) or math.nan
        rows.append({
            "part": part,
            "busy_cores": used["cpu_us"] / 1e6,
            **a_query,
            **{name: a_query["cpu_us"] * to_number(events.get(name)) / counted_us for name in COUNTED},
            "threads": used["threads"],
            "first_read_bytes": 1024 * first if part == "server" else math.nan,
            **server_work,
        })  # fmt: skip
    return rows


def by_part(run: Evidence, monitor: str) -> dict[str, Columns]:
    """Resource use of each part in a second of its arm's time."""
    if run.is_in_turns:
        return _in_turns(run)
    table = csv.read_csv(pa.py_buffer(monitor.encode()), csv.ReadOptions(use_threads=False))
    seconds = table["second"].to_numpy().astype(float)
    begin, end = run.clock_s[0], require_printed(run.final.total_time_s, "total time")
    # A sample covers the second before it.
    inside = (seconds >= begin + 0.5) & (seconds <= end + 0.5)
    parts = np.array(table["part"].to_pylist(), dtype=object)
    columns = {}
    read = OF_SECOND | {"threads": ("threads", 1.0)}
    for part in PARTS:
        if (mine := inside & (parts == part)).any():
            columns[part] = {
                name: unit * _column_mean(table, key, mine) for name, (key, unit) in read.items()
            }
    return columns


def _in_turns(run: Evidence) -> dict[str, Columns]:
    observed = run.get("turns")
    costs, seconds = observed.get("costs") or {}, observed["active_s"]
    turns = {}
    for part, cpu_s in observed["cpu_s"].items():
        report = costs.get(part) or {"cpu_s": cpu_s}
        turns[part] = {
            name: to_number(report.get(key)) * unit / seconds if seconds else math.nan
            for name, (key, unit) in OF_TURNS.items()
        }
        turns[part] |= dict.fromkeys(("received_bytes", "sent_bytes"), math.nan)
        turns[part]["threads"] = to_number(report.get("threads"))
    return turns


def _column_mean(table: pa.Table, column: str, mine: np.ndarray) -> float:
    if column not in table.column_names or pa.types.is_null(table[column].type):
        return math.nan
    return nan_mean(table[column].to_numpy().astype(float)[mine])


def nan_mean(values: np.ndarray) -> float:
    """Mean of the values that are known; NaN if there is none."""
    finite = values[~np.isnan(values)]
    return numeric_equality.exact_mean(finite) if finite.size else math.nan


def _of_server(run: Evidence) -> Columns:
    """Server counters per query over the whole run; NaN if it served other arms too."""
    work: Mapping[str, Any] = run.observed.get("work") or {}
    before, after = work.get("before") or {}, work.get("after") or {}
    queries = sum(block.queries or 0 for block in run.log.summaries)
    if run.observed.get("beside") or not queries:
        before = after = {}
    server = {}
    for column, (counters, unit) in OF_SERVER.items():
        growths = [after[name] - before[name] for name in counters if name in after and name in before]
        server[column] = unit * sum(growths) / queries if growths else math.nan
    return server


def to_number(value: Any) -> float:
    """A number, NaN for None."""
    return math.nan if value is None else float(value)
