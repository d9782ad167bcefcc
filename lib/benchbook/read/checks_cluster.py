"""Check V24: stores of a TiDB cluster were up, and leaders of its regions stayed in place."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core.study.params import Limits
from benchbook.core.util.plural import count
from benchbook.read.evidence import Evidence, Missing

UP = "Up"
OF_SERVER = {"kill": ("killed", "started again"), "restart": ("ended", "started again"),
             "set": ("set otherwise", "set back")}  # fmt: skip
LATE_S = 2.0
"""Seconds by which the steps of a planned event may be later than planned."""


def check_cluster(run: Evidence, limits: Limits) -> Iterator[str]:
    """V24: every part of a TiDB cluster was up before and after, and no leader moved between its stores.

    Regions that were made by a split in the run have no place before it. Arms without a cluster have nothing
    to show; a leader that moved away and back is not seen. Where the plan has a store killed, it must have
    been, in time, and be back; leaders may then have moved. In a cluster that an operator manages, PD moves
    leaders as it does for anyone: that is said beside the run and does not void it.
    """
    observed = (run.observed.get("arrangement") or {}).get("cluster")
    if observed is None:
        yield from _check_without_look(run)
        return
    is_managed = observed.get("is_managed")
    for when in ("before", "after"):
        look = observed[when] | ({"reason": None} if is_managed else {})
        yield from (f"{fault} {when} the run" for fault in _look_faults(look))
    if not is_managed and (event := observed.get("event")) is not None:
        yield from _unlike_planned(event, run.get("started_monotonic_s"))
    elif not is_managed:
        yield from _count_moves(observed)


def _look_faults(look: Mapping[str, Any]) -> Iterator[str]:
    # A store's process may have ended long before PD says so.
    yield from (f"{name} had ended" for name in look["ended"])
    for name, item in sorted((look.get("stores") or {}).items()):
        if item["state"] != UP and name not in look["ended"]:
            yield f"{name} was {item['state']}"
    if lost := [*(look.get("leaders") or {}).values()].count(None):
        yield f"{count(lost, 'region')} had no leader"
    if look.get("reason"):
        yield look["reason"]


def _check_without_look(run: Evidence) -> Iterator[str]:
    """Faults of a planned event at a server; raises Missing if the run had a cluster of ours to look at."""
    if run.planned_event is not None:
        yield from _unlike_planned(run.planned_event, run.get("started_monotonic_s"))
    if "identity_before" not in run.observed:
        raise Missing("which server it was is not known")
    # Elsewhere a cluster is told by a name or number of its maker's, and no part is ours to look at.
    if isinstance((run.observed["identity_before"] or {}).get("cluster"), Mapping):
        raise Missing("the cluster's stores and leaders were not looked at")


def describe_moves(run: Evidence) -> list[str]:
    """Notes beside a run of a cluster: leaders moved by PD, and effects of a planned event."""
    observed = (run.observed.get("arrangement") or {}).get("cluster") or {}
    if observed.get("is_managed"):
        reasons = dict.fromkeys(observed[when].get("reason") for when in ("before", "after"))
        lacks = [f"stores and leaders were not looked at: {why}" for why in reasons if why]
        return [*_count_moves(observed), *lacks]
    event = describe_event(run)
    return [event] if event else []


def describe_event(run: Evidence) -> str:
    """Course of a planned event with its moments in seconds of the run; empty if none, or if it broke off."""
    event, began = run.planned_event, run.observed.get("started_monotonic_s")
    if event is None or began is None or "ready_s" not in event:
        return ""
    killed, started, ready = (event[name] - began for name in ("killed_s", "started_s", "ready_s"))
    if "store" not in event:
        what, back = OF_SERVER[event["asked"]["what"]]
        moments = f"{what} at {killed:.1f} s, {back} at {started:.1f} s, ready at {ready:.1f} s"
        lost = count(run.total("ignored_errors"), "transaction")
        return f"planned: the server was {moments}; {lost} ended in an error"
    return (
        f"planned: {event['store']}, which led {event['led']} of {event['regions']} regions, was killed at "
        f"{killed:.1f} s, started again at {started:.1f} s, and answered at {ready:.1f} s"
    )


def event_at_s(run: Evidence) -> float | None:
    """Second of a run of the planned kill of a store; None without such an event."""
    event, began = run.planned_event, run.observed.get("started_monotonic_s")
    return event["killed_s"] - began if event is not None and began and "killed_s" in event else None


def but_for_event(run: Evidence, identity: Mapping[str, Any], when: str) -> Mapping[str, Any]:
    """Identity without the process of the store that a planned event ended and started again.

    `when` is `before` or `after`: only the very process that the event's record names is left out.
    """
    event, cluster = run.planned_event, identity.get("cluster")
    if event is None:
        return identity
    in_cluster = cluster.get(event.get("store")) if isinstance(cluster, Mapping) else None
    server = in_cluster if "store" in event else identity
    if not isinstance(server, Mapping) or server.get("pid") != event.get(f"pid_{when}"):
        return identity
    kept = {key: value for key, value in server.items() if key not in ("pid", "started")}
    return {**identity, "cluster": {**(cluster or {}), event["store"]: kept}} if "store" in event else kept


def _unlike_planned(event: Mapping[str, Any], began_s: float) -> Iterator[str]:
    """Faults if an event was not as planned: not done, or not in time."""
    if event.get("error") or "ready_s" not in event:
        yield f"the planned event was not carried out: {event.get('error') or 'no reason is known'}"
        return
    request = event["asked"]
    steps = (
        ("killed", event["killed_s"] - began_s, request["at_s"]),
        ("started again", event["started_s"] - event["killed_s"], request["back_after_s"]),
    )
    for step, took, planned in steps:
        if abs(took - planned) > LATE_S:
            whose = event.get("store", "the server")
            yield f"{whose} was {step} after {took:.1f} s, {planned} s were planned"


def _count_moves(observed: Mapping[str, Any]) -> Iterator[str]:
    """Number of leaders that went from one store to the other, for each pair of stores."""
    before, after = (observed[when].get("leaders") or {} for when in ("before", "after"))
    ways = Counter(
        (store, after[region])
        for region, store in before.items()
        if store is not None and after.get(region) not in (None, store)
    )
    for (text, other), went in sorted(ways.items()):
        yield f"{count(went, 'leader')} moved from {text} to {other}"
