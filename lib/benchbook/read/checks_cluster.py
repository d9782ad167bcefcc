"""Check V24: the stores of a TiDB cluster were up, and the leaders of its regions stayed where they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from benchbook.core.params import Limits
from benchbook.read.evidence import Evidence, Missing

UP = "Up"


def cluster(run: Evidence, limits: Limits) -> list[str]:
    """V24: every part of a TiDB cluster was up before and after, and no leader moved between its stores.

    Regions that were made by a split in the run have no place before it. Arms without a cluster have nothing
    to show; a leader that moved away and back is not seen.
    """
    seen = (run.seen.get("arrangement") or {}).get("cluster")
    if seen is None:
        if "identity_before" not in run.seen:
            raise Missing("which server it was is not known")
        if "cluster" in (run.seen["identity_before"] or {}):
            raise Missing("the cluster's stores and leaders were not looked at")
        return []
    faults: list[str] = []
    for when in ("before", "after"):
        faults += [f"{said} {when} the run" for said in _down(seen[when])]
    return faults + moved(seen["before"].get("leaders") or {}, seen["after"].get("leaders") or {})


def moved(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> list[str]:
    """Return, for each pair of stores, how many leaders went from one to the other; regions without a leader
    are told apart."""
    found = [
        f"{count} region{'s' if count > 1 else ''} had no leader {when} the run"
        for when, count in _without(before, after)
    ]
    ways = Counter(
        (store, after[region])
        for region, store in before.items()
        if store is not None and after.get(region) not in (None, store)
    )
    return found + [
        f"{count} leader{'s' if count > 1 else ''} moved from {one} to {other}"
        for (one, other), count in sorted(ways.items())
    ]


def _without(*looks: Mapping[str, str | None]) -> list[tuple[str, int]]:
    counted = [list(look.values()).count(None) for look in looks]
    return [(when, count) for when, count in zip(("before", "after"), counted, strict=True) if count]


def _down(look: Mapping[str, Any]) -> list[str]:
    """Return each part that was not up; a store's process may have ended long before PD says so."""
    ended = list(look["ended"])
    found = [f"{name} had ended" for name in ended]
    found += [
        f"{name} was {one['state']}"
        for name, one in sorted((look.get("stores") or {}).items())
        if one["state"] != UP and name not in ended
    ]
    return found + ([look["reason"]] if look.get("reason") else [])
