"""What a study does to a cluster in the middle of a run: a store is killed, and started again."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.core.study_cluster import Event


@contextlib.contextmanager
def within(cluster: Any, asked: Event | None) -> Iterator[dict[str, Any] | None]:
    """Carry an event out while the block runs; the record says when each step was, or what went wrong.

    Moments are on the machine's monotonic clock, in seconds. None where nothing is asked for. A program dies
    with the thread that started it, so the steps are taken in the main thread, when a timer interrupts it.
    """
    if asked is None:
        yield None
        return
    if threading.current_thread() is not threading.main_thread():
        raise SiteError("engine.cluster.event: is carried out in the main thread; make the run there")
    record: dict[str, Any] = {"asked": asked.model_dump(), "error": "the run ended before it"}
    steps = _steps(cluster, asked, record)

    def step(*_: object) -> None:
        try:
            wait_s = next(steps, None)
        except (SiteError, OSError, ValueError, KeyError) as error:
            record["error"], wait_s = f"{type(error).__name__}: {error}", None
        if wait_s is not None:
            signal.setitimer(signal.ITIMER_REAL, wait_s)

    before = signal.signal(signal.SIGALRM, step)
    signal.setitimer(signal.ITIMER_REAL, asked.at_s)
    try:
        yield record
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _steps(cluster: Any, asked: Event, record: dict[str, Any]) -> Iterator[float]:
    """Kill the store that leads most regions, yield how long to wait, and start it again."""
    led = list(cluster.pd.placement.state().leaders.values())
    name = max(cluster.stores, key=led.count)
    store = cluster.stores[name]
    child = store.running()
    record |= {"store": name, "led": led.count(name), "regions": len(led), "pid_before": child.pid}
    os.kill(child.pid, signal.SIGKILL)
    record |= {"killed_s": time.monotonic(), "error": f"the run ended before {name} was started again"}
    yield asked.back_after_s
    record["started_s"] = time.monotonic()
    store.start()
    record |= {"ready_s": time.monotonic(), "pid_after": store.running().pid}
    del record["error"]
