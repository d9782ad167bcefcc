"""One planned run → one sealed run folder with everything that was seen."""

from __future__ import annotations

import datetime
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from benchbook.core import files, runfolder
from benchbook.core.model import PlannedRun
from benchbook.measure import ledger, sysbench

# sysbench gives its threads 30 s to connect; the rest is for the last transactions to end.
THREAD_INIT_S = 30
GRACE_S = 10
COUNT_ROWS_UP_TO = 1_000_000
MIB = 1024 * 1024


@dataclass(frozen=True)
class Run:
    """What a run needs: its plan, the arm as it stands, and one open administrative connection."""

    planned: PlannedRun
    site: Any
    arm: str
    connection: Connection
    limits: dict[str, Any]


def execute(run: Run, into: Path, attempt: int) -> runfolder.RunFolder:
    """Run sysbench once and return its sealed folder, still named `RUN_ID.part`.

    Whatever happens to sysbench is evidence and no error: the folder says it. Errors of the site, such as
    a server that is gone, are raised after the folder is sealed as far as it goes.
    """
    planned, site = run.planned, run.site
    endpoint = site.up(run.arm)
    part = runfolder.begin(into, planned.to_dict())
    evidence: dict[str, Any] = {
        "attempt": attempt,
        "limits": run.limits,
        "tls": {
            "asked": endpoint.tls,
            "cipher": "" if endpoint.tls == "off" else ledger.cipher(run.connection),
        },
    }
    mark = site.log_mark(run.arm)
    countable = planned.tables * planned.table_size <= COUNT_ROWS_UP_TO
    evidence["free_bytes_before"] = psutil.disk_usage(str(into)).free
    evidence["identity_before"] = site.identity(run.arm)
    evidence["rows_before"] = ledger.rows(run.connection, planned.tables) if countable else None
    foreign = ledger.foreign_sessions(run.connection)
    before, uptime_before = ledger.snapshot(run.connection)
    argv = sysbench.run(endpoint, planned)
    entered = time.monotonic()
    with site.during(run.arm) as arrangement:
        if "load" in arrangement:
            arrangement["load"]["sessions_before"] = _connected(run.connection)
        started_wall, started = time.time(), time.monotonic()
        client = site.client(argv, part / runfolder.OUT, part / runfolder.ERR, cwd=part, arm=run.arm)
        watch = site.watch(run.arm, client, part / runfolder.MONITOR)
        watch.start()
        try:
            longest_s = planned.discard_s + planned.run_s + THREAD_INIT_S + GRACE_S
            exit_code, ended_by = _wait(client.popen, longest_s)
        finally:
            ended_wall, ended = time.time(), time.monotonic()
            if client.popen.poll() is None:
                client.popen.kill()
                client.popen.wait()
            watch.stop()
        if "load" in arrangement and ended_by != "deadline":
            arrangement["load"]["sessions_after"] = _connected(run.connection)
    evidence |= {
        "argv": argv,
        "exit_code": exit_code,
        "ended_by": ended_by,
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
        "uptime_before_s": uptime_before,
        "beside_s": (time.monotonic() - entered) - (ended - started),
        "arrangement": arrangement,
    }
    evidence |= _after(run, before, countable, foreign, ended_by == "deadline", arrangement)
    evidence |= {
        "oom_kills": watch.oom_kills,
        "server_log_errors": site.log_errors(mark, run.arm),
        "free_bytes_after": psutil.disk_usage(str(into)).free,
    }
    files.write_json(part / runfolder.EVIDENCE, evidence)
    return runfolder.seal(part, attempt)


def _after(
    run: Run,
    before: dict[str, int],
    countable: bool,
    foreign: int,
    is_late: bool,
    arrangement: dict[str, Any],
) -> dict[str, Any]:
    """Look at the server again; a server that no longer answers is told in the ledger's reason."""
    try:
        if is_late:
            # A server that hangs would hold our session for ever; the site starts it anew instead.
            run.site.up(run.arm)
        _settled(run.connection)
        after, uptime = ledger.snapshot(run.connection)
        # A proxy that asks whether the server lives drops its connection before it logs in.
        key = "Aborted_connects"
        probes = after[key] - before[key] if arrangement.get("has_probes") else 0
        own = probes + (arrangement.get("load", {}).get("connections") or 0)
        # A site far away may have lost our session and opened it anew.
        own += arrangement.get("reconnects", 0)
        return {
            "ledger": {
                **ledger.held(run.connection),
                "before": before,
                "after": after,
                "own_connections": own,
                **ledger.absent(run.connection),
            },
            "uptime_after_s": uptime,
            "rows_after": ledger.rows(run.connection, run.planned.tables) if countable else None,
            "foreign_sessions": foreign + ledger.foreign_sessions(run.connection),
            "identity_after": run.site.identity(run.arm),
            "server_answers": True,
        }
    except Exception as error:
        reason = f"the server does not answer after the run: {type(error).__name__}"
        return {
            "ledger": {
                "available": True,
                "reason": reason,
                "before": before,
                "after": None,
                "own_connections": 0,
            },
            "uptime_after_s": None,
            "rows_after": None,
            "foreign_sessions": foreign,
            "identity_after": None,
            "server_answers": False,
        }


def _connected(connection: Connection) -> int | None:
    """Return how many sessions the server has; None where it no longer answers."""
    try:
        return ledger.connected(connection)
    except SQLAlchemyError:
        return None


def _settled(connection: Connection, wait_s: float = 5.0) -> None:
    """Wait until the client's sessions have left the server, so that counters stand still."""
    deadline = time.monotonic() + wait_s
    while ledger.foreign_sessions(connection) and time.monotonic() < deadline:
        time.sleep(0.01)


def _wait(popen: subprocess.Popen[bytes], deadline_s: float) -> tuple[int, str]:
    """Wait for sysbench, end it after the deadline, gently and then not; return exit code and who did it."""
    steps: list[tuple[float, Callable[[], None]]] = [
        (deadline_s, lambda: popen.send_signal(signal.SIGTERM)),
        (5.0, popen.kill),
        (30.0, lambda: None),
    ]
    ended_by = "itself"
    for seconds, act in steps:
        try:
            code = popen.wait(timeout=seconds)
            return code, ended_by if code >= 0 or ended_by == "deadline" else "signal"
        except subprocess.TimeoutExpired:
            ended_by = "deadline"
            # A stopped process takes no signal but CONT and KILL.
            act()
    return -signal.SIGKILL, "deadline"


def _utc(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")
