"""Actions on a part in the middle of a run, carried out by a timer of the main thread."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy

from benchbook.core.study.study_cluster import ArmEvent, Event
from benchbook.core.util.errors import SiteError

Record = dict[str, Any]
Steps = Iterator[float]


@contextlib.contextmanager
def carry_out(
    place: str, request: Event | ArmEvent | None, begin_steps: Callable[[Record], Steps]
) -> Iterator[Record | None]:
    """Carry an event out while the block runs; the record has each step's time, or the error."""
    if request is None:
        yield None
        return
    if threading.current_thread() is not threading.main_thread():
        raise SiteError(f"{place}: is carried out in the main thread; make the run there")
    record: Record = {"asked": request.model_dump(), "error": "the run ended before it"}
    steps = begin_steps(record)

    def step(*_: object) -> None:
        try:
            wait_s = next(steps, None)
        except (SiteError, OSError, ValueError, KeyError, sqlalchemy.exc.SQLAlchemyError) as error:
            record["error"], wait_s = f"{type(error).__name__}: {error}", None
        if wait_s is not None:
            signal.setitimer(signal.ITIMER_REAL, wait_s)

    before = signal.signal(signal.SIGALRM, step)
    signal.setitimer(signal.ITIMER_REAL, request.at_s)
    try:
        yield record
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def disturb_server(server: Any, arm_event: ArmEvent | None, record: Record) -> Steps:
    """End a server and start it again, or set its variables and set them back."""
    assert arm_event is not None
    if arm_event.what == "set":
        yield from _set_variables(server, arm_event, record)
        return
    child = server.running()
    record |= {"pid_before": child.pid, "killed_s": time.monotonic()}
    if arm_event.what == "kill":
        os.kill(child.pid, signal.SIGKILL)
    else:
        server.stop()
    record["error"] = "the run ended before the server was started again"
    yield max(0.001, arm_event.back_after_s - (time.monotonic() - record["killed_s"]))
    record["started_s"] = time.monotonic()
    server.ensure()
    record |= {"ready_s": time.monotonic(), "pid_after": server.running().pid}
    del record["error"]


def _set_variables(server: Any, arm_event: ArmEvent, record: Record) -> Steps:
    with server.admin().connect() as connection:
        values = {name: connection.exec_driver_sql(f"SELECT @@GLOBAL.{name}") for name in arm_event.settings}
        was = {name: value.scalar_one() for name, value in values.items()}
    record |= {"was": {name: str(value) for name, value in was.items()}, "killed_s": time.monotonic()}
    for settings, key in ((dict(arm_event.settings), "set_s"), (was, "ready_s")):
        if key == "ready_s":
            record["started_s"] = time.monotonic()
        with server.admin().connect() as connection:
            for name, value in settings.items():
                connection.exec_driver_sql(f"SET GLOBAL {name} = %s", (value,))
        record[key] = time.monotonic()
        if key == "set_s":
            record["error"] = "the run ended before the settings were taken back"
            yield arm_event.back_after_s
    del record["error"]
