"""What V12 to V14 ask of the time between two runs: settings, tables and counters of each server.

A server is held to what it was when it was first seen, and its counters to where the run before left them.
Each function returns faults as sentences; none means all held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchbook.read.evidence import Evidence, Missing

UPTIME_ROUNDING_S = 1.5
QUOTA_ROUNDING = 1e-3
"""What a quota in cores may differ by from the one asked: kernels keep it in microseconds of a period."""


def settings(run: Evidence) -> list[str]:
    """Each variable of the server that is not what it was at the start, or was changed in the run."""
    by_hand = _unasked(run, "settings")
    found = [f"server variable {name} was set to {value} by hand before the runs" for name, value in by_hand]
    return found + [f"server variable {changes}" for changes in _changed(run, "settings")]


def tables(run: Evidence) -> list[str]:
    """Each table, column, index, trigger and event that is not what it was, or was changed in the run."""
    found = [
        f"{name} is not ours and was there before the runs ({what})" for name, what in _unasked(run, "tables")
    ]
    return found + _changed(run, "tables")


def arm(run: Evidence) -> list[str]:
    """Each sign of the arm's parts that is not what it was when its servers were started."""
    then, now = run.get("identity_at_start"), run.get("identity_before")
    return [
        f"{name} changed from {then.get(name)!r} to {now.get(name)!r} between the runs"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]


def quotas(run: Evidence) -> list[str]:
    """Each part that had another quota of processor time than its arm asks for, by the kernel's own word."""
    asked, found = (run.plan.get("arm_setting") or {}).get("cpu") or {}, []
    for name, group in sorted(run.get("identity_before").items()):
        if not name.endswith("_group") or not isinstance(group, Mapping) or "quota_cores" not in group:
            continue
        part = name.removesuffix("_group")
        quota = (asked.get("server" if part.startswith("server") else "proxy") or {}).get("quota")
        had = group["quota_cores"]
        if (had is None) != (quota is None) or (quota and abs(had - quota) > QUOTA_ROUNDING):
            shown = ["no quota" if one is None else f"a quota of {one:g} cores" for one in (had, quota)]
            found.append(f"the {part} had {shown[0]}, its arm asks for {shown[1]}")
    return found


def between(run: Evidence) -> list[str]:
    """Each sign that a server did something for others since the run before; of several, each named."""
    found = []
    for number, one in enumerate(run.servers):
        name = f"server {number}: " if len(run.servers) > 1 else ""
        found += [name + changes for changes in _between(one)]
    return found


def not_held(run: Evidence) -> list[str]:
    """What of a server could not be held between the runs, with the reason."""
    state = run.seen.get("state")
    if not isinstance(state, dict):
        return []
    lacking = {**(state.get("not_held") or {}), **((state.get("between") or {}).get("not_held") or {})}
    sampled = ["rows not counted, a sample was: too many"] if run.seen.get("sample_before") else []
    return sampled + [f"not held between the runs: {what} ({why})" for what, why in sorted(lacking.items())]


def _changed(run: Evidence, kind: str) -> list[str]:
    start, before, after = (run.get("state", kind, when) for when in ("at_start", "before", "after"))
    seen = run.get("state", kind)
    found = []
    for was, now, key, when in (
        (start, before, "changed_between", "between the runs"),
        (before, after, "changed_in_run", "in the run"),
    ):
        if was != now:
            items = seen.get(key) or {}
            changes = [f"{_sentence(name, *change)} {when}" for name, change in sorted(items.items())]
            found += changes or [f"{kind}: the digest changed {when}"]
    return found


def _unasked(run: Evidence, kind: str) -> list[tuple[str, str]]:
    """Return what a stranger had made when the server was first seen; older runs have no such list."""
    told = (run.get("state").get("unasked") or {}).get(kind) or {}
    return sorted(told.items())


def _sentence(name: str, was: Any, now: Any) -> str:
    if was is None:
        return f"{name} was added ({now})"
    return f"{name} was removed (it was {was})" if now is None else f"{name} was {was}, is {now}"


def _between(run: Evidence) -> list[str]:
    state = run.get("state")
    seen = run.get("state", "between")
    found = [
        f"{table} was written to between the runs ({now or 'gone'})"
        for table, (_, now) in sorted((state.get("written_between") or {}).items())
    ]
    if not seen:
        raise Missing("the server's counters at the end of the run before are not known")
    short_s = seen["seconds"] - seen["uptime_s"]
    if short_s > UPTIME_ROUNDING_S:
        found.append(f"the server was started again between the runs: its uptime lacks {short_s:.0f} s")
    if seen["is_shared"]:
        return found
    found += [f"{name} grew by {count} between the runs" for name, count in seen["counters"].items()]
    if seen["own"] is not None and seen["connections"] is not None:
        probes = seen["refused"] if (run.seen.get("arrangement") or {}).get("has_probes") else 0
        foreign = seen["connections"] - seen["own"] - probes
        if foreign:
            found.append(f"{foreign} connections that are not ours were made between the runs")
    return found
