"""A noisy neighbour: a process that computes all the time beside a server, and the record of what it took."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchbook.core.study_arm import Neighbour
from benchbook.sites import lab as labs
from benchbook.sites.arms import companion
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
    if asked is None:
        yield {}
        return
    argv = [BINARY, "cpu", f"--threads={asked.processes}", "--time=0", "--events=0", "run"]
    where = Where(cpus, (group,) if group is not None else ())
    with companion.beside(lab, ROLE, argv, where, keep, 1.0) as (_, record):
        record |= {"threads": asked.processes, "shares": asked.shares}
        yield record
