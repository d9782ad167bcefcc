"""A load client on this machine, as every kind of site that has it here starts it."""

from __future__ import annotations

from collections.abc import Sequence

from benchbook.sites.contract import Start
from benchbook.sites.lab import Lab
from benchbook.sites.processes import process, start_at
from benchbook.sites.processes.before_exec import ANYWHERE, Where


def started(lab: Lab, start: Start, keep: Sequence[int], where: Where = ANYWHERE) -> start_at.Timed:
    """Start a load client, supervised like a server; with `begin_at` its program begins at that moment."""
    argv, note = start.argv, None
    if start.begin_at is not None:
        note = lab.run / f"begun-{start.number}"
        argv = start_at.waiting(argv, start.begin_at, note)
    child = process.start(
        "client" if start.number == 0 else f"client-{start.number}",
        argv,
        token=lab.token,
        folder=lab.folder,
        out=start.out,
        err=start.err,
        append=False,
        where=where,
        keep=keep,
        cwd=start.cwd,
        env=start.env,
    )
    return start_at.timed(child, note)
