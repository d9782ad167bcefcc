"""What each event of an own script consists of, as its pilots showed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KINDS = ("reads", "writes", "other")


def learned(totals: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return for each workload the statements of one event, by kind; nothing where they differ by event.

    `totals` has for each workload the sums over its pilots of events, reads, writes, other and errors. Only a
    whole number that all events share is a rule: a mixture is held by the ledger alone.
    """
    found: dict[str, dict[str, int]] = {}
    for workload, sums in totals.items():
        events = sums["events"]
        is_even = events > 0 and not sums["errors"] and not any(sums[kind] % events for kind in KINDS)
        found[workload] = {kind: sums[kind] // events for kind in KINDS} if is_even else {}
    return found


def record(own: Mapping[str, Any], totals: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Return what `warm_up.json` keeps of own scripts, under `own`; nothing where a study has none."""
    return {"own": {**own, "statements": learned(totals)}} if own else {}


def of(warm_up: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what plans carry of own scripts, from `warm_up.json`: `files` by digest, and `statements`."""
    own = warm_up.get("own") or {}
    return {
        workload: {"files": one["sha256"], "statements": own["statements"].get(workload, {})}
        for workload, one in own.get("scripts", {}).items()
    }
