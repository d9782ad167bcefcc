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

GONE_S = 10.0


@contextlib.contextmanager
def within(cluster: Any, asked: Event | None) -> Iterator[dict[str, Any] | None]:
    """Carry an event out while the block runs; the record says when each step was, or what went wrong.

    Moments are on the machine's monotonic clock, in seconds. None where nothing is asked for.
    """
    if asked is None:
        yield None
        return
    record: dict[str, Any] = {"asked": asked.model_dump()}
    over = threading.Event()
    acting = threading.Thread(target=_act, args=(cluster, asked, time.monotonic(), over, record), daemon=True)
    acting.start()
    try:
        yield record
    finally:
        over.set()
        # A start that is under way is waited for, so that nothing is left half done.
        acting.join()


def _act(cluster: Any, asked: Event, begun_s: float, over: threading.Event, record: dict[str, Any]) -> None:
    try:
        if over.wait(begun_s + asked.at_s - time.monotonic()):
            raise SiteError("the run ended before it")
        led = list(cluster.pd.placement.state()["leaders"].values())
        name = max(cluster.stores, key=led.count)
        store = cluster.stores[name]
        child = store.running()
        record |= {"store": name, "led": led.count(name), "regions": len(led), "pid_before": child.pid}
        os.kill(child.pid, signal.SIGKILL)
        record["killed_s"] = time.monotonic()
        deadline = time.monotonic() + GONE_S
        while store.is_up and time.monotonic() < deadline:
            time.sleep(0.01)
        if over.wait(record["killed_s"] + asked.back_after_s - time.monotonic()):
            raise SiteError(f"the run ended before {name} was started again")
        record["started_s"] = time.monotonic()
        store.start()
        record |= {"ready_s": time.monotonic(), "pid_after": store.running().pid}
    except (SiteError, OSError, ValueError, KeyError) as error:
        record["error"] = f"{type(error).__name__}: {error}"
