"""Run sysbench's loaders and say what went wrong: its own prepare exits 0 whatever happens."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchbook.core import traits
from benchbook.core.engines import engine_of
from benchbook.core.model import Endpoint
from benchbook.core.study import Study
from benchbook.measure import sysbench
from benchbook.sites.contract import Client, Site, Start

# The slowest that loading may be: a cluster whose parts are far apart takes seconds to agree on a table.
ROWS_A_SECOND, BEGIN_S, A_TABLE_S = 2_000, 60, 15


def argvs(study: Study, arm: str, endpoint: Endpoint) -> list[list[str]]:
    """Return the command line of each table's loader, in the order and with the ids that an arm asks for."""
    data, asked = study.dataset, study.arms[arm].data
    is_index_first = asked is not None and asked.index == "before"
    has_own_ids = traits.engine(engine_of(study, arm).name).leaves_gaps
    return [
        sysbench.load(endpoint, table, data.table_size, data.seed, is_index_first, has_own_ids)
        for table in range(1, data.tables + 1)
    ]


@contextlib.contextmanager
def started(site: Site, start: Start) -> Iterator[Client]:
    """Start a sysbench, and end it with the block if it has not ended by itself."""
    child = site.client(start)
    try:
        yield child
    finally:
        if child.popen.poll() is None:
            child.popen.kill()
            child.popen.wait()


def faults(out: Path, err: Path, code: int) -> list[str]:
    """Return what a sysbench that has ended calls fatal, or else its exit code if that is not 0."""
    text = "".join(file.read_text("utf-8", "replace") for file in (out, err))
    fatal = [line for line in text.splitlines() if "FATAL" in line]
    return fatal or ([f"sysbench ended with exit code {code}"] if code else [])


def load_tables(site: Site, study: Study, arm: str, endpoint: Endpoint) -> tuple[list[str], float]:
    """Run the loaders, as many at a time as there are cores; return what went wrong, and the seconds."""
    data = study.dataset
    started = time.monotonic()
    deadline = started + BEGIN_S + data.tables * (A_TABLE_S + data.table_size / ROWS_A_SECOND)
    failures: list[str] = []
    waiting = list(enumerate(argvs(study, arm, endpoint)))
    with tempfile.TemporaryDirectory() as scratch:
        running: dict[int, Any] = {}
        try:
            while waiting or running:
                while waiting and len(running) < (os.cpu_count() or 1):
                    number, argv = waiting.pop(0)
                    out, err = Path(scratch) / f"{number}.out", Path(scratch) / f"{number}.err"
                    running[number] = site.client(Start(argv, out, err, Path(scratch), arm=arm))
                for number in [number for number, child in running.items() if child.popen.poll() is not None]:
                    code = running.pop(number).popen.returncode
                    out, err = (Path(scratch) / f"{number}.{kind}" for kind in ("out", "err"))
                    failures += faults(out, err, code)
                if time.monotonic() > deadline:
                    return [
                        *failures,
                        f"loading did not end within {deadline - started:.0f} s",
                    ], deadline - started
                time.sleep(0.02)
        finally:
            for child in running.values():
                child.popen.kill()
                child.popen.wait()
    return failures, time.monotonic() - started
