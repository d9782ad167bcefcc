"""Planned runs → sealed run folders with everything that was seen: one run alone, or a group in turns."""

import csv
import datetime
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from benchbook.core.artifacts import run_folder
from benchbook.core.study import interleaving
from benchbook.core.study.model import Endpoint, PlannedRun
from benchbook.core.util import files
from benchbook.measure import clients, custom_data, server_drift, statement_counters
from benchbook.sites.contract import Site
from benchbook.sites.engines import dialect

# sysbench gives its threads 30 s to connect; the rest is for the last transactions to end.
THREAD_INIT_S = 30
GRACE_S = 10
COUNTED = 0.8
"""Share of the discard in which the processor's events are counted."""
COUNT_ROWS_UP_TO = 1_000_000


def tables_to_count(tables: int, table_size: int) -> int | None:
    """Number of tables to count before and after a run; None if they are too large."""
    return tables if tables * table_size <= COUNT_ROWS_UP_TO else None


@dataclass(frozen=True)
class RunContext:
    """Needs of a run: its plan, the arm as it stands, and an open session with each server."""

    planned: PlannedRun
    site: Site
    arm: str
    connections: tuple[Connection, ...]
    """The session with each of the arm's servers, in their order."""
    limits: dict[str, Any]
    begins: str | None = None
    rows_before_restart: Mapping[Connection, statement_counters.Record] = field(default_factory=dict)
    """What the rows of a server were that was started again since, to begin cold."""


def execute_run(context: RunContext, into: Path, attempt: int) -> run_folder.RunFolder:
    """Make one run, of one sysbench or of several; return its sealed folder, still `RUN_ID.part`."""
    return execute_together([context], into, [attempt])[0]


def execute_together(
    contexts: Sequence[RunContext], into: Path, attempts: Sequence[int]
) -> list[run_folder.RunFolder]:
    """Make the runs of one group at once, in turns, or one run; return their sealed folders, still `.part`.

    Whatever happens to sysbench is evidence and no error: the folder says it. Errors of the site, such as
    a server that is gone, are raised after the folder is sealed as far as it goes.
    """
    # All are looked at before the first client starts and after the last has ended: no look is counted.
    group = [_inspect_arm(context, into, tries) for context, tries in zip(contexts, attempts, strict=True)]
    before = _record_before(group)
    entered = time.monotonic()
    with ExitStack() as stack:
        of_arms: dict[str, dict[str, Any]] = {}
        for run in group:
            # The baseline and its twin are one arm, which has what it has beside it once.
            if run.context.arm not in of_arms:
                of_arms[run.context.arm] = stack.enter_context(run.context.site.during(run.context.arm))
            run.arrangement = of_arms[run.context.arm]
            _note_sessions(run, "sessions_before")
        turned = _run_clients(group)
        for run in group:
            if not run.is_late:
                _note_sessions(run, "sessions_after")
    beside_s = time.monotonic() - entered
    for run in group:
        run.evidence |= _collect_evidence(run, beside_s)
        if turned is not None:
            run.evidence |= clients.evidence_of_turns(turned, run.context.planned, run.evidence)
            clients.write_turns(turned, run.part)
    _attach_peer_outputs(group)
    counters = _record_after(group, before)
    return [_seal_run(run, into, of_servers) for run, of_servers in zip(group, counters, strict=True)]


@dataclass
class RunInProgress:
    """A run in progress: observations before it, its clients, and the moments of begin and end."""

    context: RunContext
    part: Path
    attempt: int
    endpoints: list[Endpoint]
    evidence: dict[str, Any]
    mark: Any
    tables: int | None
    arrangement: dict[str, Any] = field(default_factory=dict)
    running: list[clients.RunningClient] = field(default_factory=list)
    watch: Any = None
    started: tuple[float, float] = (0.0, 0.0)
    ended: tuple[float, float] = (0.0, 0.0)

    @property
    def is_late(self) -> bool:
        """True if a client had to be ended because time was over."""
        return any(client.ended_by == "deadline" for client in self.running)


def _inspect_arm(context: RunContext, into: Path, attempt: int) -> RunInProgress:
    """Begin a run's folder and look at its arm before anything starts."""
    planned, site, connection = context.planned, context.site, context.connections[0]
    endpoints = list(site.endpoints(context.arm))
    part = run_folder.begin_folder(into, planned.to_dict())
    request = endpoints[0].tls
    cipher = "" if request == "off" else dialect.get_dialect(connection).cipher(connection)
    script, mark = custom_data.of_run(site, planned.workload), site.log_mark(context.arm)
    free_bytes, identity = psutil.disk_usage(str(into)).free, site.identity(context.arm)
    evidence: dict[str, Any] = {
        "attempt": attempt,
        "limits": context.limits,
        "tls": {"asked": request, "cipher": cipher},
        **({} if script is None else {"script": script.digests()}),
        "begins": context.begins,
        "free_bytes_before": free_bytes,
        "identity_before": identity,
        "identity_at_start": server_drift.arm_at_start(connection, context.arm, identity),
    }
    tables = tables_to_count(planned.tables, planned.table_size)
    return RunInProgress(context, part, attempt, endpoints, evidence, mark, tables)


def _record_before(group: Sequence[RunInProgress]) -> dict[Connection, statement_counters.Record]:
    """Look at each server of a group once, for any arm; counters hold no extra look of an arm."""
    before: dict[Connection, statement_counters.Record] = {}
    for run in group:
        rows = run.context.rows_before_restart
        for key in run.context.connections:
            if key not in before:
                before[key] = statement_counters.record_before(key, run.tables, rows.get(key))
    return before


def _run_clients(group: Sequence[RunInProgress]) -> dict[str, Any] | None:
    """Start the clients of a group, and end them when it is over; return the clock's record of turns."""
    turned = None
    try:
        for run in group:
            _start_clients(run)
        if group[0].context.planned.order == interleaving.TURNS:
            turned = clients.take_turns({run.context.planned.arm: run for run in group})
        for run in group:
            most_s = sum(interleaving.clock_seconds(run.context.planned)) + THREAD_INIT_S + GRACE_S
            advance = partial(run.context.site.advance_event, run.started[1])
            clients.wait_for_clients(run.running, most_s, advance)
    finally:
        for run in group:
            _end_run(run)
    return turned


def _start_clients(run: RunInProgress) -> None:
    """Start the clients of a run and the processes that watch them."""
    site, arm, planned = run.context.site, run.context.arm, run.context.planned
    wall, monotonic = time.time(), time.monotonic()
    run.running, begin_at = clients.start_clients(site, arm, planned, run.endpoints, run.part)
    if begin_at is not None:
        wall, monotonic = wall + begin_at - monotonic, begin_at
    run.started = (wall, monotonic)
    run.watch = site.watch(arm, [client.process for client in run.running], run.part / run_folder.MONITOR)
    # Clients on other machines may begin a little before they are watched.
    run.watch.counts_s = 0.0 if planned.turn_ms else COUNTED * planned.discard_s
    run.watch.start()


def _end_run(run: RunInProgress) -> None:
    """Write down the moment of a run's end, end all that still runs, and stop watching."""
    run.ended = (time.time(), time.monotonic())
    clients.kill_clients(run.running)
    # Far away the word that it has ended comes late, and it stood still before its turns.
    ran = run.running[0].process.ran_s if run.running else None
    if ran is not None:
        ahead = run.ended[0] - run.ended[1]
        run.started, run.ended = ((ahead + moment, moment) for moment in ran)
    if run.watch is not None:
        run.watch.stop()


def _collect_evidence(run: RunInProgress, beside_s: float) -> dict[str, Any]:
    """Observations of a run's clients and machine during the run."""
    planned, watch, running = run.context.planned, run.watch, run.running
    failed = clients.first_failed(running)
    sysbench_s = run.ended[1] - run.started[1]
    results: dict[str, Any] = {
        "argv": running[0].argv,
        "exit_code": failed.exit_code,
        "ended_by": failed.ended_by,
        "started_utc": _format_utc(run.started[0]),
        "ended_utc": _format_utc(run.ended[0]),
        "started_monotonic_s": run.started[1],
        "ended_monotonic_s": run.ended[1],
        "sysbench_s": sysbench_s,
        "clock_step_s": watch.clock_step_s,
        "client": {
            "runqueue_wait_s": watch.runqueue_wait_s,
            "threads": planned.threads,
            "cpu_s": watch.client_cpu_s,
            "allowance_cores": run.context.site.allowance(run.context.arm),
        },
        "machine_cores": watch.cores,
        "longest_pause_ms": watch.longest_pause_ms,
        "strangers": watch.strangers,
        "steal_pct": watch.steal_pct,
        "beside_s": beside_s - sysbench_s,
        "arrangement": run.arrangement,
        **({"counted": watch.counted} if watch.counted else {}),
    }
    if len(running) == 1:
        return results | running[0].with_options()
    waits = watch.runqueue_waits_s
    threads = planned.threads // len(running)
    results["clients"] = [client.record(threads, waits[client.number]) for client in running]
    return results | {"start_spread_ms": clients.spread_ms(running)}


def _attach_peer_outputs(group: Sequence[RunInProgress]) -> None:
    """Keep with each run the plans and outputs of those that share its servers, whose counts are of all."""
    for run in group:
        sharers = [
            {
                "plan": other.context.planned.to_dict(),
                "clients": [_read_outputs(other, number) for number in range(len(other.endpoints))],
            }
            for other in group
            if other is not run and other.context.connections == run.context.connections
        ]
        if sharers:
            run.evidence["beside"] = sharers


def _read_outputs(run: RunInProgress, number: int) -> dict[str, str]:
    """Output and stderr of a client as they stand in its run's folder."""
    folder = run_folder.RunFolder(run.part)
    names = {"out": run_folder.OUT, "err": run_folder.ERR}
    names = {key: run_folder.client_file(number, name) for key, name in names.items()}
    return {key: folder.text(name) if (run.part / name).exists() else "" for key, name in names.items()}


def _seal_run(run: RunInProgress, into: Path, of_servers: Mapping[str, Any]) -> run_folder.RunFolder:
    """Write down all observations of a run and its servers, and seal its folder."""
    site, watch = run.context.site, run.watch
    evidence = run.evidence | {**of_servers, "identity_after": None}
    # One of the arm's parts may be gone.
    with suppress(Exception):
        evidence["identity_after"] = site.identity(run.context.arm)
    evidence["server_log_errors"] = site.log_errors(run.mark, run.context.arm)
    evidence |= {"oom_kills": watch.oom_kills, "free_bytes_after": psutil.disk_usage(str(into)).free}
    if run.context.begins is not None:
        evidence["read_kib_first_s"] = _read_at_first(run.part / run_folder.MONITOR)
    files.write_json(run.part / run_folder.EVIDENCE, evidence)
    return run_folder.seal_folder(run.part, run.attempt)


def _read_at_first(monitor: Path) -> float | None:
    """KiB that an arm's servers read from disk in the first second; None if not observed."""
    if not monitor.is_file():
        return None
    with monitor.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row.get("part") == "server"]
    return float(rows[0]["read_kib_s"]) if rows and rows[0].get("read_kib_s") else None


def _record_after(
    group: Sequence[RunInProgress], before: Mapping[Connection, statement_counters.Record]
) -> list[statement_counters.Record]:
    """Look at each server of a group once more; the ledger's reason names one that no longer answers."""
    results: dict[Connection, statement_counters.Record] = {}
    for run in group:
        sessions = run.context.connections
        try:
            if run.is_late:
                # A server that hangs would hold our session for ever; the site starts it again instead.
                run.context.site.up(run.context.arm)
        except Exception as error:
            results |= {key: statement_counters.record_silence(before[key], error) for key in sessions}
    for key, was in before.items():
        if key not in results:
            users = [run for run in group if key in run.context.connections]
            arrangement = statement_counters.merge_arrangements([run.arrangement for run in users])
            results[key] = statement_counters.record_after(key, was, users[0].tables, arrangement)
    of_runs = [[results[key] for key in run.context.connections] for run in group]
    return [*map(statement_counters.merge_records, of_runs)]


def _note_sessions(run: RunInProgress, key: str) -> None:
    """Note beside a run's load the number of sessions at its server; None if that no longer answers."""
    if "load" in run.arrangement:
        connection = run.context.connections[0]
        words, run.arrangement["load"][key] = dialect.get_dialect(connection), None
        with suppress(SQLAlchemyError), words.limit_waits(connection, statement_counters.ANSWER_S):
            run.arrangement["load"][key] = words.connected(connection)


def _format_utc(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")
