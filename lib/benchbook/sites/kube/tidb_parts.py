"""The pods of a TiDB cluster that TiDB Operator makes: when all are ready, and why they are not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.kube import wait
from benchbook.sites.kube.api import Cluster
from benchbook.sites.kube.tidb import COMPONENT, INSTANCE, PARTS
from benchbook.sites.tidb.status import Placement


@dataclass(frozen=True)
class PodPlacement(Placement):
    """A PD in a pod; `names` are the pods of the stores by their addresses."""

    def _name(self, address: str) -> str:
        host = address.rpartition(":")[0]
        # The operator's stores are known by their pod's name in the network of the cluster.
        is_number = host.replace(".", "").isdigit()
        return self.names.get(host, host if is_number else host.partition(".")[0])


NAMES = {"pd": "PD", "tikv": "TiKV", "tidb": "TiDB"}
PAUSE_S = 0.5
# An operator that is there does something within this.
SILENT_S = 30.0


def ready(
    cluster: Cluster,
    namespace: str,
    name: str,
    look: Callable[[], Mapping[str, Any] | None],
    wait_s: float,
) -> dict[str, list[Any]]:
    """Wait until a cluster is ready, and return its pods by part; `look` returns the custom resource.

    `wait_s` is the longest wait without one more pod that runs. SiteError names every pod that does not run,
    with its reason and events.
    """
    began = moved = told_at = time.monotonic()
    told, most, stuck_since = "", -1, None
    while True:
        if (resource := look()) is None:
            raise SiteError(f"TidbCluster {name} was removed by somebody else; run the stage again")
        found = pods(cluster, namespace, name)
        state = lacking(resource, found)
        if state is None:
            return found
        now = time.monotonic()
        running = sum(_running(resource["spec"], found).values())
        if running > most:
            most, moved = running, now
        states = (wait.state(pod) or "" for part in found.values() for pod in part)
        stuck = any(state.partition(":")[0] in wait.HOPELESS for state in states)
        stuck_since = (stuck_since or now) if stuck else None
        is_unseen = not resource.get("status") and now - began > min(SILENT_S, wait_s)
        is_stuck = stuck_since is not None and now - stuck_since > wait.PATIENCE_S
        if is_unseen or is_stuck or now - moved > wait_s:
            why = _whys(cluster, namespace, name, found)
            if is_unseen:
                why = "the operator takes no notice of it: does it run, and does it look at this namespace?"
            raise SiteError(f"TidbCluster {name} is not ready after {now - began:.0f} s: {state}. {why}")
        if (state != told and now - began > 3) or now - told_at > wait.TOLD_EVERY_S:
            print(f"TidbCluster {name}: {state}, {now - began:.0f} s")
            told, told_at = state, now
        time.sleep(PAUSE_S)


def pods(cluster: Cluster, namespace: str, name: str) -> dict[str, list[Any]]:
    """Return the pods of a cluster by part, in order of their numbers."""
    found: dict[str, list[Any]] = {part: [] for part in PARTS}
    label = f"{INSTANCE}={name}"
    for pod in cluster.ask(cluster.core.list_namespaced_pod, namespace, label_selector=label).items:
        found.setdefault((pod.metadata.labels or {}).get(COMPONENT, "other"), []).append(pod)

    def number(pod: Any) -> tuple[int, str]:
        last = pod.metadata.name.rpartition("-")[2]
        return (int(last) if last.isdigit() else 0, pod.metadata.name)

    return {part: sorted(some, key=number) for part, some in found.items()}


def lacking(resource: Mapping[str, Any], found: Mapping[str, list[Any]]) -> str | None:
    """Return how far a cluster is, in words; None if it is ready and all its pods run."""
    spec, status = resource["spec"], resource.get("status") or {}
    wanted = {part: int(spec[part]["replicas"]) for part in PARTS}
    running = _running(spec, found)
    ready = (one for one in status.get("conditions") or () if one["type"] == "Ready")
    said: Mapping[str, Any] = next(ready, {})
    # Pods may still be made again with other settings.
    sets = [(status.get(part) or {}).get("statefulSet") or {} for part in PARTS]
    is_moving = any(one.get("currentRevision") != one.get("updateRevision") for one in sets)
    if said.get("status") == "True" and running == wanted and not is_moving:
        return None
    counts = ", ".join(f"{NAMES[part]} {running[part]} of {wanted[part]}" for part in PARTS)
    return f"{counts}; the operator says: {said.get('message') or said.get('reason') or 'nothing yet'}"


def _running(spec: Mapping[str, Any], found: Mapping[str, list[Any]]) -> dict[str, int]:
    """Return how many pods of each part run that were made of what is asked now."""

    def is_as_asked(pod: Any, asked: Mapping[str, Any]) -> bool:
        env = {one.name: one.value for container in pod.spec.containers for one in container.env or ()}
        return wait.state(pod) is None and all(env.get(one["name"]) == one["value"] for one in asked["env"])

    return {part: sum(is_as_asked(pod, spec[part]) for pod in found[part]) for part in PARTS}


def _whys(cluster: Cluster, namespace: str, name: str, found: Mapping[str, list[Any]]) -> str:
    """Name every pod that does not run, why, and what the cluster says of it; else what it says of all."""
    told = []
    for part in found.values():
        for pod in part:
            state = wait.state(pod)
            if state is not None:
                seen = "; ".join(wait.events(cluster, namespace, pod.metadata.name)) or "none"
                told.append(f"{pod.metadata.name}: {state} (its events: {seen})")
    of_all = "; ".join(wait.events(cluster, namespace, name)) or "none"
    return ". ".join(told) or f"No pod of it is in trouble; its own events: {of_all}"
