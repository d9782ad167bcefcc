"""Sessions of a fleet in a Kubernetes cluster: an Indexed Job, a pod on a node of its own for each session.

The Job makes a lost pod once more. A pod waits for this clone's commit, measures, and stays until its archive
is taken; both go through the API, so that no volume and no registry is needed.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes import client
from pydantic import Field

from benchbook.commands import record as recording
from benchbook.core import sizes
from benchbook.core.errors import BenchbookError, SiteError
from benchbook.core.study_base import Model
from benchbook.sites.kube.api import LOST, Cluster
from benchbook.sites.kube.layout import MANAGER

POLL_S = 3.0
PIECE = 1 << 16
LABEL = "benchbook/fleet"
INDEX = "batch.kubernetes.io/job-completion-index"
# After so long without a node its session is made again on another.
LOST_NODE_S = 60
SCRIPT = """set -eu
mkdir -p /session/fleet
cd /session/fleet
until [ -e /session/tree.tar.gz ]; do sleep 1; done
tar xzf /session/tree.tar.gz --no-same-owner
{setup}
export PATH="$PWD/.venv/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin" BENCHBOOK_ROOT="$PWD" PYTHONPATH="$PWD/lib"
benchbook session {study} {words}
mv data/record/{study}/*.tar.xz /session/session.tar.xz
until [ -e /session/taken ]; do sleep 1; done
"""


class Place(Model):
    """Where the pods of a fleet run, in a file that `--on` names. The cluster is that of the kubeconfig."""

    image: str
    """Image with Python, git and what the study measures; `--setup` runs in it."""
    namespace: str = "default"
    """Namespace of the Job, which must be there."""
    context: str | None = None
    """Context of the kubeconfig; null takes its current one."""
    resources: dict[str, dict[str, str]] = Field({}, examples=[{"requests": {"cpu": "4"}}])
    """Requests and limits of a pod."""
    pod: dict[str, Any] = Field({}, examples=[{"nodeSelector": {"pool": "c2"}}])
    """More of a pod, as Kubernetes has it: nodeSelector, tolerations, volumes and so on; null takes out."""
    container: dict[str, Any] = Field({}, examples=[{"securityContext": {"privileged": True}}])
    """More of its container, such as volumeMounts and securityContext."""


def job(place: Place, token: str, sessions: int, script: str) -> dict[str, Any]:
    """Return the manifest of a fleet's Job: each index one session, once more if it fails."""
    labels = {"app.kubernetes.io/managed-by": MANAGER, LABEL: token}
    apart = {"labelSelector": {"matchLabels": {LABEL: token}}, "topologyKey": "kubernetes.io/hostname"}
    container: dict[str, Any] = {
        "name": "session",
        "image": place.image,
        "command": ["sh", "-c", script],
        "resources": place.resources,
    }
    sizes.patch(container, place.container)
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 5,
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
        "containers": [container],
    }
    own = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": LOST_NODE_S}
        for why in ("not-ready", "unreachable")
    ]  # fmt: skip
    sizes.patch(pod, place.pod)
    pod["tolerations"] = [*pod.get("tolerations", ()), *own]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"fleet-{token}", "namespace": place.namespace, "labels": labels},
        "spec": {
            "completions": sessions,
            "parallelism": sessions,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 1,
            "maxFailedIndexes": sessions,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


@dataclass
class InCluster:
    """A fleet's sessions in a cluster; `tree` is this clone's commit, packed."""

    place: Place
    study: str
    token: str
    tree: Path
    setup: str
    words: str
    say: Callable[[str], None]
    cluster: Cluster = field(init=False)
    sent: set[str] = field(default_factory=set)
    last: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def measure(self, sessions: int) -> int:
        """Measure so many sessions and take them into the record as they end; return how many were."""
        self.cluster = Cluster(self.place.context)
        named = {"study": shlex.quote(self.study), "setup": self.setup, "words": self.words}
        self.cluster.apply(job(self.place, self.token, sessions, SCRIPT.format(**named)))
        batch, name = client.BatchV1Api(self.cluster.api), (f"fleet-{self.token}", self.place.namespace)
        try:
            while True:
                for pod in self._pods():
                    # A pod that is lost meanwhile is made again by the Job.
                    with contextlib.suppress(SiteError, *LOST):
                        self._attend(pod)
                status = self.cluster.ask(batch.read_namespaced_job_status, *name).status
                if len(self.taken) == sessions or any(
                    one.type in ("Complete", "Failed") and one.status == "True"
                    for one in status.conditions or ()
                ):
                    break
                time.sleep(POLL_S)
            if status.failed_indexes:
                self.say(f"lost or failed at the second attempt: sessions {status.failed_indexes}")
        finally:
            self.cluster.ask(batch.delete_namespaced_job, *name, propagation_policy="Background")
        return len(self.taken)

    def _pods(self) -> list[Any]:
        label = f"{LABEL}={self.token}"
        listed = self.cluster.ask(
            self.cluster.core.list_namespaced_pod, self.place.namespace, label_selector=label
        )
        return [one for one in listed.items if one.status.phase == "Running"]

    def _attend(self, pod: Any) -> None:
        """Send a pod what it lacks, pass on what it says, and take its archive once it is there."""
        space, name = self.place.namespace, pod.metadata.name
        index = pod.metadata.annotations[INDEX]
        if index in self.taken:
            return
        if pod.metadata.uid not in self.sent:
            self._send(name)
            self.sent.add(pod.metadata.uid)
            self.say(f"{pod.spec.node_name}: session {index} begins")
        read = self.cluster.core.read_namespaced_pod_log
        line = self.cluster.ask(read, name, space, tail_lines=1).strip()
        if line and line != self.last.get(name):
            self.last[name] = line
            self.say(f"{pod.spec.node_name}: {line}")
        found = self.cluster.run(space, name, ["cat", "/session/session.tar.xz"])
        if found.code == 0:
            file = self.tree.with_name(f"{name}.tar.xz")
            file.write_bytes(found.out)
            try:
                self.say(recording.take(file))
                self.taken.add(index)
            except BenchbookError as error:
                self.say(f"{pod.spec.node_name}: {error}")
            self.cluster.run(space, name, ["touch", "/session/taken"])

    def _send(self, pod: str) -> None:
        size = self.tree.stat().st_size
        into = f"head -c {size} >/session/tree.part && mv /session/tree.part /session/tree.tar.gz"
        opened = self.cluster.open(self.place.namespace, pod, ["sh", "-c", into], has_stdin=True)
        with self.tree.open("rb") as source:
            for piece in iter(lambda: source.read(PIECE), b""):
                opened.write_stdin(piece)
        opened.run_forever(timeout=60)
        if opened.returncode != 0:
            raise SiteError(f"{pod}: this clone's commit did not arrive there; look at its disk")
