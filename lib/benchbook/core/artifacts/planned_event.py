"""Planned event at the server or cluster of a run: its record in the run's evidence, and a line about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchbook.core.util.plural import count

_AT_SERVER = {
    "kill": ("killed", "started again"),
    "restart": ("ended", "started again"),
    "set": ("set otherwise", "set back"),
}


def find_event(observed: Mapping[str, Any]) -> dict[str, Any] | None:
    """Record of the event in a run's observations; None without one."""
    arrangement = observed.get("arrangement") or {}
    result = arrangement.get("event") or (arrangement.get("cluster") or {}).get("event")
    return result if isinstance(result, dict) else None


def describe_event(observed: Mapping[str, Any], count_errors: Callable[[], int]) -> str:
    """Course of an event with its moments in seconds of the run; empty if there was none or it broke off.

    `count_errors` returns the transactions that ended in an error; only an event at a server asks for them.
    """
    event, began = find_event(observed), observed.get("started_monotonic_s")
    if event is None or began is None or "ready_s" not in event:
        return ""
    killed, started, ready = (event[name] - began for name in ("killed_s", "started_s", "ready_s"))
    if "store" not in event:
        what, back = _AT_SERVER[event["asked"]["what"]]
        moments = f"{what} at {killed:.1f} s, {back} at {started:.1f} s, ready at {ready:.1f} s"
        return f"planned: the server was {moments}; {count(count_errors(), 'transaction')} ended in an error"
    return (
        f"planned: {event['store']}, which led {event['led']} of {event['regions']} regions, was killed at "
        f"{killed:.1f} s, started again at {started:.1f} s, and answered at {ready:.1f} s"
    )
