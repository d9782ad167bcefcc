"""Checks of runs with several clients or servers: each by itself, and that they were one run.

What a client printed is judged for each client, what a server counted for each server against the clients
that used it: sums alone would not show a client that went astray. Where there is one of them, its check is
the run's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Literal

from benchbook.core import several
from benchbook.core.params import Limits
from benchbook.read import checks_machine
from benchbook.read.evidence import Evidence, Excused, Missing

Check = Callable[[Evidence, Limits], list[str]]


def of_clients(check: Check) -> Check:
    """Return a check that is made for each client, and names it."""
    return _of_each(check, "client")


def of_servers(check: Check) -> Check:
    """Return a check that is made for each server, and names it."""
    return _of_each(check, "server")


def _of_each(check: Check, part: Literal["client", "server"]) -> Check:
    """Wrap a check of one client or server; pages describe it with the check's own words."""

    @wraps(check)
    def of_all(run: Evidence, limits: Limits) -> list[str]:
        return _each(check, part, run.clients if part == "client" else run.servers, limits)

    return of_all


def client(run: Evidence, limits: Limits) -> list[str]:
    """V15: the clients got the cores they asked for, together and each, and had some to spare."""
    faults = checks_machine.client(run, limits)
    for number, one in enumerate(run.clients if len(run.clients) > 1 else ()):
        waited = one.seen.get("runqueue_wait_s")
        if waited is None or one.log.final is None or not one.log.final.total_time_s:
            continue
        share = waited / (one.asked("threads") * one.log.final.total_time_s)
        if share > limits.client_wait:
            most = f"at most {limits.client_wait:g} s"
            faults.append(f"client {number}: threads waited {share:.2f} s for a core each second, {most}")
    return faults


def beginning(run: Evidence, limits: Limits) -> list[str]:
    """V22: all clients of the plan ran, and began at one moment, so that their windows are one."""
    if not run.seen:
        raise Missing("nothing was recorded")
    setting = run.plan.get("arm_setting")
    asked, servers = several.clients(setting), several.servers(setting)
    if asked == 1:
        return []
    known = run.get("clients")
    faults = [] if len(known) == asked else [f"{len(known)} clients ran, {asked} asked"]
    faults += [
        f"client {number} used server {one.get('server')}, not {several.server_of(number, servers)}"
        for number, one in enumerate(known)
        if one.get("server") != several.server_of(number, servers)
    ]
    spread = run.get("start_spread_ms")
    if spread > limits.start_spread_ms:
        faults.append(f"the clients began {spread:.0f} ms apart, at most {limits.start_spread_ms:g} ms")
    return faults


def _each(check: Check, kind: str, views: Sequence[Evidence], limits: Limits) -> list[str]:
    if len(views) == 1:
        return check(views[0], limits)
    faults: list[str] = []
    missing: list[str] = []
    excused: list[str] = []
    for number, view in enumerate(views):
        try:
            faults += [f"{kind} {number}: {fault}" for fault in check(view, limits)]
        except Excused as excuse:
            excused.append(str(excuse))
        except Missing as lack:
            missing.append(f"{kind} {number}: {lack}")
    if faults:
        return faults + missing
    if missing:
        raise Missing("; ".join(missing))
    if excused:
        raise Excused("; ".join(dict.fromkeys(excused)))
    return []
