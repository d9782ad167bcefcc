"""Load the tables and prove that they are there: sysbench's prepare exits 0 whatever happens."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import Connection, text

from benchbook.core.errors import BenchbookError
from benchbook.core.model import fingerprint
from benchbook.core.study import Study
from benchbook.measure import ledger, sysbench
from benchbook.measure.ledger import session

CHECKSUM_UP_TO = 5_000_000
LOAD_ROWS_A_SECOND = 2_000


class DatasetError(BenchbookError):
    """The tables are not what the study asks for."""


def ensure(site: Any, study: Study, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """Make sure the prepared data is there and is what it should be; return what it is.

    `known` is what prepare recorded. Data that is gone is loaded again from the study's seed, which gives
    the same rows; if it does not, DatasetError says so. Data that is there but differs is put back from
    the prepared copy. The result has the keys tables, table_size, seed, rows, indexes, checksums,
    fingerprint, and `events`: what was found and done, in words.
    """
    events: list[str] = []
    arm = study.baseline
    if site.has_snapshot(label(study)):
        site.up(arm)
        with session(site) as connection:
            found = problems(describe(connection, study), study)
        if found:
            events += [f"{problem}; the prepared copy is put back" for problem in found]
        site.restore(label(study))
        with session(site) as connection:
            state = describe(connection, study)
        wrong = problems(state, study) or _differs(state, known)
        if not wrong:
            return state | {"events": events}
        events += [f"the prepared copy: {problem}; the tables are loaded again" for problem in wrong]
    elif known is not None:
        events.append("the prepared copy is gone; the tables are loaded again from the study's seed")
    state = load(site, study)
    wrong = _differs(state, known)
    if wrong:
        raise DatasetError(
            f"the data could not be brought back as it was: {'; '.join(wrong)}. "
            "Run `dvc repro -f prepare@STUDY` to start anew"
        )
    return state | {"events": events}


def load(site: Any, study: Study) -> dict[str, Any]:
    """Create the schema, load every table, check rows, indexes and content, keep a copy; return what was
    loaded."""
    endpoint = site.up(study.baseline)
    data = study.dataset
    with session(site) as connection:
        _empty(connection)
    said = _load_tables(
        site,
        [sysbench.load(endpoint, table, data.table_size, data.seed) for table in range(1, data.tables + 1)],
        timeout_s=60 + data.tables * data.table_size / LOAD_ROWS_A_SECOND,
    )
    with session(site) as connection:
        state = describe(connection, study)
    wrong = problems(state, study)
    if wrong or said:
        raise DatasetError(
            "prepare failed: "
            + "; ".join([*wrong, *said[:3]])
            + ". Look at the server's log, then run the stage again"
        )
    site.snapshot(label(study))
    return state


def describe(connection: Connection, study: Study) -> dict[str, Any]:
    """Return rows, secondary indexes and checksums of the tables as they are."""
    data = study.dataset
    rows = ledger.rows(connection, data.tables)
    there = [name for name, count in rows.items() if count >= 0]
    indexes = {
        name: sorted(
            {str(row["Key_name"]) for row in connection.execute(text(f"SHOW INDEX FROM {name}")).mappings()}
        )
        for name in there
    }
    small = data.tables * data.table_size <= CHECKSUM_UP_TO
    checksums = (
        {
            name: int(connection.execute(text(f"CHECKSUM TABLE {name}")).first()[1])  # type: ignore[index]
            for name in there
        }
        if small
        else None
    )
    state = {
        "tables": data.tables,
        "table_size": data.table_size,
        "seed": data.seed,
        "rows": rows,
        "indexes": indexes,
        "checksums": checksums,
    }
    return state | {"fingerprint": fingerprint(state)}


def problems(state: dict[str, Any], study: Study) -> list[str]:
    """Return what is missing from the tables against the study, in words."""
    size = study.dataset.table_size
    found = []
    for number, (name, rows) in enumerate(state["rows"].items(), start=1):
        if rows < 0:
            found.append(f"{name} is missing")
        elif rows != size:
            found.append(f"{name} has {rows} rows, the study says {size}")
        elif f"k_{number}" not in state["indexes"].get(name, []):
            found.append(f"{name} has no index k_{number}")
    return found


def table(state: dict[str, Any]) -> pd.DataFrame:
    """Return what was loaded as a table, one row a table of the schema."""
    names = list(state["rows"])
    checksums = state["checksums"] or {}
    return pd.DataFrame(
        {
            "table": names,
            "rows": [state["rows"][name] for name in names],
            "indexes": [", ".join(state["indexes"].get(name, [])) for name in names],
            "checksum": [checksums.get(name, "not taken: too large") for name in names],
        }
    )


def analyze(connection: Connection, tables: int) -> list[dict[str, str]]:
    """Run ANALYZE TABLE on every table and return what the server answered."""
    answers = []
    for number in range(1, tables + 1):
        for row in connection.execute(text(f"ANALYZE TABLE sbtest{number}")).mappings():
            answers.append({key: str(row[key]) for key in ("Table", "Msg_type", "Msg_text")})
    return answers


def prewarm(connection: Connection, tables: int) -> None:
    """Read every row by primary key and every entry of the secondary index, so that both are in memory."""
    for number in range(1, tables + 1):
        connection.execute(text(f"SELECT COUNT(pad) FROM sbtest{number} FORCE INDEX (PRIMARY)")).scalar_one()
        connection.execute(text(f"SELECT COUNT(k) FROM sbtest{number} FORCE INDEX (k_{number})")).scalar_one()


def label(study: Study) -> str:
    """Return the name of the prepared copy: another data set is another copy."""
    data = study.dataset
    return f"{data.tables}x{data.table_size}-seed{data.seed}"


def _load_tables(site: Any, argvs: list[list[str]], timeout_s: float) -> list[str]:
    """Run the loaders, as many at a time as there are cores; return what went wrong, in sysbench's words."""
    said: list[str] = []
    waiting, deadline = list(enumerate(argvs)), time.monotonic() + timeout_s
    with tempfile.TemporaryDirectory() as scratch:
        running: dict[int, Any] = {}
        try:
            while waiting or running:
                while waiting and len(running) < (os.cpu_count() or 1):
                    number, argv = waiting.pop(0)
                    out, err = Path(scratch) / f"{number}.out", Path(scratch) / f"{number}.err"
                    running[number] = site.client(argv, out, err, cwd=Path(scratch))
                for number in [number for number, child in running.items() if child.popen.poll() is not None]:
                    code = running.pop(number).popen.returncode
                    text = "".join(
                        (Path(scratch) / f"{number}.{kind}").read_text("utf-8", "replace")
                        for kind in ("out", "err")
                    )
                    fatal = [line for line in text.splitlines() if "FATAL" in line]
                    said += fatal or ([f"sysbench ended with exit code {code}"] if code else [])
                if time.monotonic() > deadline:
                    return [*said, f"loading did not end within {timeout_s:.0f} s"]
                time.sleep(0.02)
        finally:
            for child in running.values():
                child.popen.kill()
                child.popen.wait()
    return said


def _differs(state: dict[str, Any], known: dict[str, Any] | None) -> list[str]:
    if known is None or known["fingerprint"] == state["fingerprint"]:
        return []
    return [
        f"{key} is {state[key]}, prepare recorded {known[key]}"
        for key in ("tables", "table_size", "seed", "rows", "indexes", "checksums")
        if state[key] != known[key]
    ]


def _empty(connection: Connection) -> None:
    for (name,) in connection.execute(text("SHOW TABLES")).all():
        if str(name).startswith("sbtest") and str(name)[6:].isdigit():
            connection.execute(text(f"DROP TABLE {name}"))
