"""A program of ours that runs beside a server while an arm is measured, and the record of what it took."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import psutil

from benchbook.sites.lab import Lab
from benchbook.sites.processes import process
from benchbook.sites.processes.before_exec import Where


@contextlib.contextmanager
def beside(
    lab: Lab, role: str, argv: Sequence[str], where: Where, keep: tuple[int, ...], grace_s: float
) -> Iterator[tuple[process.Child, dict[str, Any]]]:
    """Run a program while the block runs; yield it, and a record of the processor seconds that it got and of
    whether it `stayed`, filled when it has ended. What it prints is in `run/ROLE.log` of the lab."""
    record: dict[str, Any] = {}
    child = process.start(
        role,
        argv,
        token=lab.token,
        folder=lab.folder,
        out=lab.run / f"{role}.log",
        pidfile=lab.pidfile(role),
        where=where,
        keep=keep,
        append=False,
    )
    try:
        yield child, record
    finally:
        record |= {"cpu_s": None, "stayed": child.is_alive}
        with contextlib.suppress(psutil.Error):
            record["cpu_s"] = round(sum(psutil.Process(child.pid).cpu_times()[:2]), 3)
        process.stop(child, grace_s=grace_s)
        lab.pidfile(role).unlink(missing_ok=True)
