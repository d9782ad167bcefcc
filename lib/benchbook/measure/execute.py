"""One planned run → one sealed run folder with everything that was seen."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from benchbook.core import files, runfolder
from benchbook.core.model import PlannedRun
from benchbook.measure import books, clients, ledger, state

# sysbench gives its threads 30 s to connect; the rest is for the last transactions to end.
THREAD_INIT_S = 30
GRACE_S = 10
COUNT_ROWS_UP_TO = 1_000_000
MIB = 1024 * 1024


@dataclass(frozen=True)
class Run:
    """What a run needs: its plan, the arm as it stands, and one open administrative connection to each of the
    arm's servers: `connection` to the first, `others` to those after it."""

    planned: PlannedRun
    site: Any
    arm: str
    connection: Connection
    limits: dict[str, Any]
    others: tuple[Connection, ...] = ()


def execute(run: Run, into: Path, attempt: int) -> runfolder.RunFolder:
    """Make one run, of one sysbench or of several, and return its sealed folder, still named `RUN_ID.part`.

    Whatever happens to sysbench is evidence and no error: the folder says it. Errors of the site, such as
    a server that is gone, are raised after the folder is sealed as far as it goes.
    """
    planned, site = run.planned, run.site
    endpoints = site.endpoints(run.arm)
    part = runfolder.begin(into, planned.to_dict())
    asked = endpoints[0].tls
    evidence: dict[str, Any] = {
        "attempt": attempt,
        "limits": run.limits,
        "tls": {"asked": asked, "cipher": "" if asked == "off" else ledger.cipher(run.connection)},
    }
    mark = site.log_mark(run.arm)
    tables = planned.tables if planned.tables * planned.table_size <= COUNT_ROWS_UP_TO else None
    evidence["free_bytes_before"] = psutil.disk_usage(str(into)).free
    evidence["identity_before"] = site.identity(run.arm)
    evidence["identity_at_start"] = state.arm_at_start(run.connection, run.arm, evidence["identity_before"])
    was = [books.before(connection, tables) for connection in (run.connection, *run.others)]
    entered = time.monotonic()
    with site.during(run.arm) as arrangement:
        if "load" in arrangement:
            arrangement["load"]["sessions_before"] = _connected(run.connection)
        started_wall, started = time.time(), time.monotonic()
        running, begin_at = clients.start(site, run.arm, planned, endpoints, part)
        if begin_at is not None:
            started_wall, started = started_wall + begin_at - started, begin_at
        first, *others = (one.client for one in running)
        watch = site.watch(run.arm, first, part / runfolder.MONITOR, others)
        watch.start()
        try:
            clients.wait(running, planned.discard_s + planned.run_s + THREAD_INIT_S + GRACE_S)
        finally:
            ended_wall, ended = time.time(), time.monotonic()
            clients.kill(running)
            watch.stop()
        is_late = any(one.ended_by == "deadline" for one in running)
        if "load" in arrangement and not is_late:
            arrangement["load"]["sessions_after"] = _connected(run.connection)
    failed = clients.first_failed(running)
    evidence |= {
        "argv": running[0].argv,
        "exit_code": failed.exit_code,
        "ended_by": failed.ended_by,
        "started_utc": _utc(started_wall),
        "ended_utc": _utc(ended_wall),
        "started_monotonic_s": started,
        "ended_monotonic_s": ended,
        "sysbench_s": ended - started,
        "clock_step_s": watch.clock_step_s,
        "client": {
            "runqueue_wait_s": watch.runqueue_wait_s,
            "threads": planned.threads,
            "cpu_s": watch.client_cpu_s,
            "allowance_cores": site.allowance(run.arm),
        },
        "machine_cores": watch.cores,
        "longest_pause_ms": watch.longest_pause_ms,
        "steal_pct": watch.steal_pct,
        "beside_s": (time.monotonic() - entered) - (ended - started),
        "arrangement": arrangement,
    }
    if not others:
        evidence |= running[0].with_options()
    else:
        waits = watch.runqueue_waits_s
        threads = planned.threads // len(running)
        evidence["clients"] = [one.record(threads, waits[one.number]) for one in running]
        evidence["start_spread_ms"] = clients.spread_ms(running)
    evidence |= _after(run, was, tables, is_late, arrangement)
    evidence |= {
        "oom_kills": watch.oom_kills,
        "server_log_errors": site.log_errors(mark, run.arm),
        "free_bytes_after": psutil.disk_usage(str(into)).free,
    }
    files.write_json(part / runfolder.EVIDENCE, evidence)
    return runfolder.seal(part, attempt)


def _after(
    run: Run,
    was: Sequence[books.Record],
    tables: int | None,
    is_late: bool,
    arrangement: Mapping[str, Any],
) -> dict[str, Any]:
    """Look at the servers again; one that no longer answers is told in the ledger's reason."""
    try:
        if is_late:
            # A server that hangs would hold our session for ever; the site starts it anew instead.
            run.site.up(run.arm)
    except Exception as error:
        gone = [books.silent(one, error) for one in was]
        return books.together(gone) | {"identity_after": None}
    looks = zip((run.connection, *run.others), was, strict=True)
    each = [
        books.after(connection, one, tables, arrangement, number)
        for number, (connection, one) in enumerate(looks)
    ]
    return books.together(each) | {"identity_after": _identity(run)}


def _identity(run: Run) -> dict[str, Any] | None:
    """Return what the arm's parts say they are after a run; None where one of them is gone."""
    try:
        return run.site.identity(run.arm)
    except Exception:
        return None


def _connected(connection: Connection) -> int | None:
    """Return how many sessions the server has; None where it no longer answers."""
    try:
        return ledger.connected(connection)
    except SQLAlchemyError:
        return None


def _utc(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")
