"""Wait for objects of the cluster, report their state, and name the cause if they don't come."""

import contextlib
import time
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites.kube.api import KubernetesCluster
from benchbook.sites.kube.manifests import DIGEST

# What does not mend itself; given a little time, since a node may be starting.
HOPELESS = {
    "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
}  # fmt: skip
PATIENCE_S, PAUSE_S, TOLD_EVERY_S = 20.0, 0.2, 15.0


class Waiting:
    """A wait with a name, told of now and then. `wait_s` is the longest wait without progress."""

    def __init__(self, what: str, wait_s: float) -> None:
        self.what, self.wait_s = what, wait_s
        self.began = self.moved = self.reported_at = time.monotonic()
        self.stuck_since: float | None = None
        self.reported = ""

    @property
    def lasted_s(self) -> float:
        return time.monotonic() - self.began

    def is_over(self, lacking: str, is_stuck: bool, has_moved: bool = False) -> bool:
        """True if it is time to give up, by the state still `lacking`; else report it and pause."""
        now = time.monotonic()
        self.moved = now if has_moved else self.moved
        self.stuck_since = (self.stuck_since or now) if is_stuck else None
        if now - self.moved > self.wait_s or now - (self.stuck_since or now) > PATIENCE_S:
            return True
        if (lacking != self.reported and now - self.began > 3) or now - self.reported_at > TOLD_EVERY_S:
            print(f"{self.what}: {lacking}, {now - self.began:.0f} s")
            self.reported, self.reported_at = lacking, now
        time.sleep(PAUSE_S)
        return False


def wait_until_running(
    cluster: KubernetesCluster, namespace: str, pod: str, digest: str | None, wait_s: float
) -> Any:
    """Wait until a pod made of the right files runs, and return it; SiteError with its events if it won't."""
    waiting = Waiting(pod, wait_s)
    while (lacking := describe_lack(until_running := find_pod(cluster, namespace, pod), digest)) is not None:
        if waiting.is_over(lacking, is_hopeless(lacking)):
            observed = "; ".join(list_events(cluster, namespace, pod)) or "no events"
            raise SiteError(
                f"{pod} does not run after {waiting.lasted_s:.0f} s: {lacking}. Its events: {observed}. "
                f"It said: {read_last_lines(cluster, namespace, pod) or 'nothing'}"
            )
    return until_running


def is_hopeless(state: str) -> bool:
    """True if a pod's lack does not mend itself."""
    return state.partition(":")[0] in HOPELESS


def find_pod(cluster: KubernetesCluster, namespace: str, pod: str) -> Any | None:
    """A pod as the cluster sees it now, or None if there is none."""
    result = cluster.ask(cluster.core.list_namespaced_pod, namespace, field_selector=f"metadata.name={pod}")
    return result.items[0] if result.items else None


def list_events(cluster: KubernetesCluster, namespace: str, name: str) -> list[str]:
    """The last few events of an object, oldest first."""
    try:
        field = f"involvedObject.name={name}"
        items = cluster.ask(cluster.core.list_namespaced_event, namespace, field_selector=field).items
    except SiteError:
        return []
    return list(dict.fromkeys(f"{item.reason}: {item.message}" for item in items))[-4:]


def read_last_lines(cluster: KubernetesCluster, namespace: str, pod: str) -> str:
    """Last lines that a pod's container printed before it ended, or that it has printed now."""
    read = cluster.core.read_namespaced_pod_log
    for is_previous in (True, False):
        with contextlib.suppress(SiteError):
            if statement := cluster.ask(read, pod, namespace, previous=is_previous, tail_lines=5):
                return str(statement).strip()[-600:]
    return ""


def describe_lack(pod: Any | None, digest: str | None = None) -> str | None:
    """The lack of a pod, in words; None if it runs as asked."""
    if pod is None:
        return "not made yet"
    if pod.metadata.deletion_timestamp is not None:
        return "an earlier one is ending"
    if digest is not None and (pod.metadata.annotations or {}).get(DIGEST) != digest:
        return "an earlier one is to be replaced"
    containers = pod.status.container_statuses or ()
    for waiting in filter(None, (container.state.waiting for container in containers)):
        return f"{waiting.reason}: {waiting.message}" if waiting.message else f"{waiting.reason}:"
    return _describe_phase(pod.status)


def _describe_phase(status: Any) -> str | None:
    """The lack of a pod none of whose containers waits: it has no node, or is in another phase."""
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status != "True":
            return f"{condition.reason}: {condition.message}"
    containers = status.container_statuses
    is_ready = containers and all(container.ready for container in containers)
    return None if status.phase == "Running" and is_ready else f"phase {status.phase}"


def pod_identity(pod: Any) -> dict[str, Any]:
    """Marks that tell a pod from any other, and from itself before a restart."""
    statuses = pod.status.container_statuses or ()
    ended = [status.last_state.terminated for status in statuses if status.last_state.terminated is not None]
    return {
        "pod": pod.metadata.uid,
        "node": pod.spec.node_name,
        "image": str(pod.spec.containers[0].image),
        "restarts": sum(status.restart_count for status in statuses),
        "last_end": f"{ended[0].reason} at {ended[0].finished_at}" if ended else "none",
        "ending": pod.metadata.deletion_timestamp is not None,
    }


def is_same_pod(now: Any, before: Any) -> bool:
    """True if a pod is the same: neither made again, nor restarted, nor ending."""
    its, statuses = pod_identity(now), now.status.container_statuses
    return its == pod_identity(before) and not its["ending"] and bool(statuses and statuses[0].ready)
