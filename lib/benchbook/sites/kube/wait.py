"""Wait for what the cluster makes, say what it waits for, and name the cause when it does not come."""

from __future__ import annotations

import time
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites.kube.api import Cluster
from benchbook.sites.kube.manifests import DIGEST

# What does not mend itself; given a little time, since a node may be starting.
HOPELESS = {
    "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
}  # fmt: skip
PATIENCE_S = 20.0
PAUSE_S = 0.2
TOLD_EVERY_S = 15.0


class Waiting:
    """A wait for `what`, told of now and then. `wait_s` is the longest wait without anything that moves."""

    def __init__(self, what: str, wait_s: float) -> None:
        self.what, self.wait_s = what, wait_s
        self.began = self.moved = self.told_at = time.monotonic()
        self.stuck_since: float | None = None
        self.told = ""

    @property
    def lasted_s(self) -> float:
        return time.monotonic() - self.began

    def is_over(self, lacking: str, is_stuck: bool, has_moved: bool = False) -> bool:
        """Say, by what is `lacking` still, whether to give up; else say what that is and pause."""
        now = time.monotonic()
        self.moved = now if has_moved else self.moved
        self.stuck_since = (self.stuck_since or now) if is_stuck else None
        if now - self.moved > self.wait_s or now - (self.stuck_since or now) > PATIENCE_S:
            return True
        if (lacking != self.told and now - self.began > 3) or now - self.told_at > TOLD_EVERY_S:
            print(f"{self.what}: {lacking}, {now - self.began:.0f} s")
            self.told, self.told_at = lacking, now
        time.sleep(PAUSE_S)
        return False


def running(cluster: Cluster, namespace: str, pod: str, digest: str | None, wait_s: float) -> Any:
    """Wait until a pod made of the right files runs, and return it; SiteError with its events if it won't."""
    waiting = Waiting(pod, wait_s)
    while (lacking := state(found := look(cluster, namespace, pod), digest)) is not None:
        if waiting.is_over(lacking, is_hopeless(lacking)):
            seen = "; ".join(events(cluster, namespace, pod)) or "no events"
            raise SiteError(
                f"{pod} does not run after {waiting.lasted_s:.0f} s: {lacking}. Its events: {seen}. "
                f"It said: {last_words(cluster, namespace, pod) or 'nothing'}"
            )
    return found


def is_hopeless(state: str) -> bool:
    """Say whether what a pod lacks does not mend itself."""
    return state.partition(":")[0] in HOPELESS


def look(cluster: Cluster, namespace: str, pod: str) -> Any | None:
    """Return a pod as the cluster sees it now, or None if there is none."""
    found = cluster.ask(cluster.core.list_namespaced_pod, namespace, field_selector=f"metadata.name={pod}")
    return found.items[0] if found.items else None


def events(cluster: Cluster, namespace: str, name: str) -> list[str]:
    """Return the last few events of an object, oldest first."""
    try:
        found = cluster.ask(
            cluster.core.list_namespaced_event, namespace, field_selector=f"involvedObject.name={name}"
        ).items
    except SiteError:
        return []
    return list(dict.fromkeys(f"{one.reason}: {one.message}" for one in found))[-4:]


def last_words(cluster: Cluster, namespace: str, pod: str) -> str:
    """Return the last lines that a pod's container printed before it ended, or that it has printed now."""
    read = cluster.core.read_namespaced_pod_log
    for is_previous in (True, False):
        try:
            said = cluster.ask(read, pod, namespace, previous=is_previous, tail_lines=5)
        except SiteError:
            continue
        if said:
            return str(said).strip()[-600:]
    return ""


def state(pod: Any | None, digest: str | None = None) -> str | None:
    """Say what a pod still lacks; None if it runs as asked."""
    if pod is None:
        return "not made yet"
    if pod.metadata.deletion_timestamp is not None:
        return "an earlier one is ending"
    if digest is not None and (pod.metadata.annotations or {}).get(DIGEST) != digest:
        return "an earlier one is to be replaced"
    for status in pod.status.container_statuses or ():
        if status.state.waiting is not None:
            reason, message = status.state.waiting.reason, status.state.waiting.message
            return f"{reason}: {message}" if message else f"{reason}:"
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status != "True":
            return f"{condition.reason}: {condition.message}"
    statuses = pod.status.container_statuses or ()
    if pod.status.phase != "Running" or not statuses or not all(one.ready for one in statuses):
        return f"phase {pod.status.phase}"
    return None


def tells(pod: Any) -> dict[str, Any]:
    """Return what tells a pod from any other, and from itself before a restart."""
    statuses = pod.status.container_statuses or ()
    ended = [one.last_state.terminated for one in statuses if one.last_state.terminated is not None]
    return {
        "pod": pod.metadata.uid,
        "node": pod.spec.node_name,
        "image": str(pod.spec.containers[0].image),
        "restarts": sum(one.restart_count for one in statuses),
        "last_end": f"{ended[0].reason} at {ended[0].finished_at}" if ended else "none",
        "ending": pod.metadata.deletion_timestamp is not None,
    }


def same(now: Any, before: Any) -> bool:
    """Say whether a pod is the one it was: neither made again, nor restarted, nor ending."""
    its, statuses = tells(now), now.status.container_statuses
    return its == tells(before) and not its["ending"] and bool(statuses and statuses[0].ready)
