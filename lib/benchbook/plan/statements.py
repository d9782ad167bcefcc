"""What each event of an own script consists of, as its pilots showed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KINDS = ("reads", "writes", "other")
MOST_OF_A_THREAD = 10
"""Statements of a kind with which a thread may begin; more of them can't be distinguished from a mixture."""


def learned(pilots: Mapping[str, Sequence[Mapping[str, int]]]) -> dict[str, dict[str, dict[str, int]]]:
    """Return for each workload the statements of one event under `event`, and those with which a thread
    begins under `thread`, by kind; nothing where events differ.

    `pilots` has for each workload of every pilot threads, events, reads, writes, other and errors. Only whole
    numbers that all pilots share are a rule: a mixture is held by the ledger alone.
    """
    found: dict[str, dict[str, dict[str, int]]] = {}
    for workload, counts in pilots.items():
        rules = [_rule(one) for one in counts]
        found[workload] = rules[0] if rules and all(one == rules[0] for one in rules) else {}
    return found


def _rule(one: Mapping[str, int]) -> dict[str, dict[str, int]]:
    events, threads = one["events"], one["threads"]
    if one["errors"] or events <= MOST_OF_A_THREAD * threads:
        return {}
    rests = {kind: one[kind] % events for kind in KINDS}
    if any(rest % threads or rest > MOST_OF_A_THREAD * threads for rest in rests.values()):
        return {}
    return {
        "event": {kind: one[kind] // events for kind in KINDS},
        "thread": {kind: rest // threads for kind, rest in rests.items()},
    }


def record(own: Mapping[str, Any], totals: Mapping[str, Sequence[Mapping[str, int]]]) -> dict[str, Any]:
    """Return what `warm_up.json` keeps of own scripts, under `own`; nothing where a study has none."""
    if not own:
        return {}
    return {"own": {**own, "statements": learned(totals)}}


def carried(warm_up: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what plans carry of own scripts, from `warm_up.json`: `files` and `statements`."""
    own = warm_up.get("own") or {}
    return {
        workload: {
            "files": one["sha256"],
            "statements": own["statements"].get(workload, {}),
        }
        for workload, one in own.get("scripts", {}).items()
    }
