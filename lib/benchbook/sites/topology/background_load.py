"""Tasks beside an arm's runs on this machine: clients, connections, a neighbour, a capture."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from benchbook.core.study.study_arm import Load, Neighbour
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.contract import Start
from benchbook.sites.processes import process
from benchbook.sites.processes.spawn import ANYWHERE, ProcessPlacement

# A program beside a run, with a record of its processor seconds and of whether it stayed.
Running = contextlib.AbstractContextManager[tuple[Any, dict[str, Any]]]
ROLE, NEIGHBOUR = "driver", "neighbour"
START_S = 60.0
# Even a slow server lets in this many a second.
SLOWEST_PER_S = 100
STOP_S = 30.0
# Beside the connections: libraries, logs, tables, and those of sysbench.
OTHER_FILES = 1024


def start_client(lab: labs.Lab, start: Start, where: ProcessPlacement = ANYWHERE) -> process.Child:
    """Load client, supervised like a server; its program begins at once, at a moment, or when let go on."""
    argv, note = start.argv, None
    if start.held or start.begin_at is not None:
        # Each arm of a group has its first client.
        note = lab.run / f"begun-{start.out.parent.name}-{start.number}"
        argv = process.defer_command(argv, start.begin_at, note)
    role = "client" if start.number == 0 else f"client-{start.number}"
    its = {"out": start.out, "err": start.err, "cwd": start.cwd, "env": start.env}
    return replace(lab.start(role, argv, **its, append=False, where=where), note=note)


@contextlib.contextmanager
def run_driver(
    load: Load,
    to: tuple[str, int],
    lab: labs.Lab,
    run: Callable[[str, list[str]], Running],
    read_output: Callable[[Any], str],
) -> Iterator[dict[str, Any]]:
    """Keep a driver's program up while the block runs; idle connections are open before it begins.

    `run` starts the driver with its arguments, `read_output` has all that it has written so far, and the file
    `driver_log` at its end. Yields a record that has at first `idle.opened`, and afterwards what was held to
    the end, what was made in each second, how many connections the server must have counted, and whether the
    driver stayed. It says what could not be opened: judging the run decides.
    """
    numbers = (load.idle_connections, load.new_connections_per_s)
    with run(ROLE, [f"{to[0]}:{to[1]}", labs.SCHEMA, str(lab.secret), *map(str, numbers)]) as (driver, kept):
        first: dict[str, Any] = {"error": "the driver did not begin in time", "opened": 0, "took_s": None}
        deadline = time.monotonic() + START_S + load.idle_connections / SLOWEST_PER_S
        while driver.popen.poll() is None and time.monotonic() < deadline:
            if opened := next((line for line in _parse_lines(read_output(driver)) if "opened" in line), None):
                first = opened
                break
            time.sleep(0.02)
        idle = {"asked": load.idle_connections, "opened": first["opened"], "took_s": first["took_s"]}
        record = {"error": first["error"]} | ({"idle": idle} if load.idle_connections else {})
        yield record
    text = out.read_text("utf-8", "replace") if (out := driver_log(lab)).exists() else ""
    record |= summarize_driver(_parse_lines(text), load, record) | kept


def driver_log(lab: labs.Lab) -> Path:
    """File of a lab that has all that the driver of a load wrote, at its end."""
    return lab.run / f"{ROLE}.log"


def find_pid(lab: labs.Lab, role: str = ROLE) -> int | None:
    """Process of a driver or a neighbour, if there is one now."""
    child = process.read_pidfile(lab.pidfile(role))
    return child.pid if child is not None and child.is_alive else None


def summarize_driver(lines: list[dict[str, Any]], load: Load, begun: dict[str, Any]) -> dict[str, Any]:
    """Results of a whole run from a driver's lines; a driver that was killed has no last line."""
    last = next((line for line in lines if "held" in line), {})
    error = last.get("error") or begun.get("error") or ""
    counts = {name: last.get(name) for name in ("connections", "failed")}
    driver: dict[str, Any] = counts | {"error": error}
    if load.idle_connections:
        driver["idle"] = {**begun.get("idle", {}), "held": last.get("held"), "lost": last.get("lost")}
    if load.new_connections_per_s:
        results = [int(line["made"]) for line in lines if "second_at" in line]
        driver["short"] = {
            "asked_per_s": load.new_connections_per_s,
            "achieved_per_s": round(sum(results) / len(results), 2) if results else None,
            "lowest_per_s": min(results, default=None),
            "per_s": results,
        }
    return driver


def too_few_files(load: Load, is_proxied: bool, most: int, where: str) -> str | None:
    """Reason if `most` open files (negative: any) are too few for a load, or None."""
    needed = load.connections * (2 if is_proxied else 1) + OTHER_FILES
    if most < 0 or needed <= most:
        return None
    who = "a proxy, which has two for each, needs" if is_proxied else "the server needs"
    remedy = f"`ulimit -Hn {needed}` {where}"
    return f"{load.connections} connections: {who} {needed} open files, {most} are allowed; {remedy}"


def _parse_lines(text: str) -> list[dict[str, Any]]:
    """Complete lines; others are a traceback or still being written."""
    lines = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            statement = json.loads(line)
            if isinstance(statement, dict):
                lines.append(statement)
    return lines


@contextlib.contextmanager
def run_neighbour(neighbour: Neighbour, run: Callable[[str, list[str]], Running]) -> Iterator[dict[str, Any]]:
    """Compute beside while the block runs; the record has threads, their CPU seconds, if they stayed."""
    argv = ["sysbench", "cpu", f"--threads={neighbour.processes}", "--time=0", "--events=0", "run"]
    with run(NEIGHBOUR, argv) as (_, record):
        record |= {"threads": neighbour.processes, "shares": neighbour.shares}
        yield record


@contextlib.contextmanager
def run_program(
    lab: labs.Lab, role: str, argv: Sequence[str], where: ProcessPlacement, grace_s: float
) -> Iterator[tuple[process.Child, dict[str, Any]]]:
    """Run a program while the block runs; yield it, and a record of the processor seconds that it got and of
    whether it `stayed`, filled when it has ended. What it prints is in `run/ROLE.log` of the lab."""
    record: dict[str, Any] = {}
    child = lab.start(role, argv, pidfile=lab.pidfile(role), where=where, append=False)
    try:
        yield child, record
    finally:
        record |= {"cpu_s": None, "stayed": child.is_alive}
        with contextlib.suppress(psutil.Error):
            record["cpu_s"] = round(sum(psutil.Process(child.pid).cpu_times()[:2]), 3)
        process.stop_child(child, grace_s=grace_s)
        lab.pidfile(role).unlink(missing_ok=True)


MIB = 1024 * 1024


@contextlib.contextmanager
def capture_traffic(proxy: Any) -> Iterator[dict[str, Any]]:
    """Capture all traffic through a proxy into a folder of its machine while the block runs. The record has
    afterwards whether it went on to the end (`stayed`), the MiB, and what the proxy says went wrong."""
    record: dict[str, Any] = {}
    machine, name = proxy.machine, f"{proxy.role}/capture"
    machine.remove(name)
    try:
        with proxy.capturing(str(proxy.folder / "capture"), record):
            yield record
    finally:
        with contextlib.suppress(SiteError):
            record["written_mib"] = round(machine.usage(name) / MIB, 3)
            machine.remove(name)
