"""A noisy neighbour: a process that computes all the time beside a server, and the record of what it took."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from benchbook.core.study_arm import Neighbour
from benchbook.sites import lab as labs
from benchbook.sites.processes import process
from benchbook.sites.processes.before_exec import Where

BINARY = "sysbench"
ROLE = "neighbour"


@contextlib.contextmanager
def beside(
    lab: labs.Lab,
    asked: Neighbour | None,
    cpus: tuple[int, ...] | None,
    group: Path | None,
    keep: tuple[int, ...] = (),
) -> Iterator[dict[str, Any]]:
    """Compute on the given cores, in the given control group, while the block runs.

    Yields a record that has, afterwards, the busy threads asked for, the processor seconds they got, and
    whether they were there to the end; empty without a neighbour.
    """
    record: dict[str, Any] = {}
    if asked is None:
        yield record
        return
    child = process.start(
        ROLE,
        [BINARY, "cpu", f"--threads={asked.processes}", "--time=0", "--events=0", "run"],
        token=lab.token,
        folder=lab.folder,
        out=lab.run / f"{ROLE}.log",
        pidfile=lab.pidfile(ROLE),
        where=Where(cpus, (group,) if group is not None else ()),
        keep=keep,
        append=False,
    )
    try:
        yield record
    finally:
        record |= {
            "threads": asked.processes,
            "shares": asked.shares,
            "cpu_s": None,
            "stayed": child.is_alive,
        }
        with contextlib.suppress(psutil.Error):
            record["cpu_s"] = round(sum(psutil.Process(child.pid).cpu_times()[:2]), 3)
        process.stop(child, grace_s=1.0)
        lab.pidfile(ROLE).unlink(missing_ok=True)
