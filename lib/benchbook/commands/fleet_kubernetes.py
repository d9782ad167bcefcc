"""Sessions of a fleet in a Kubernetes cluster: an Indexed Job, a pod on a node of its own for each session.

The Job makes a lost pod once more. A pod waits for this clone's commit, measures, and stays until its archive
is taken; both go through the API, so that no volume and no registry is needed. A pod that is not
asked any more ends by itself.
"""

from __future__ import annotations

import copy
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes import client
from pydantic import Field

from benchbook.commands import record as recording
from benchbook.core.study import study_variants
from benchbook.core.study.study_base import Model
from benchbook.core.util import yaml_file
from benchbook.core.util.errors import BenchbookError, SiteError
from benchbook.sites.kube import wait
from benchbook.sites.kube.api import LOST, Away, Cluster, wait_for
from benchbook.sites.kube.placement import MANAGER

POLL_S = 3.0
PIECE = 1 << 16
LABEL = "benchbook/fleet"
INDEX = "batch.kubernetes.io/job-completion-index"
# So long an API that went away is waited for; pods that were not asked for so long end by themselves.
AWAY_S, LEASE_S = 600, 3600
GONE_S = 120
SOON = ("ContainerCreating", "PodInitializing", "phase Pending")
ASK = "touch /session/asked; cat /session/session.tar.xz 2>/dev/null"
# What a lost connection leaves of it never takes its name.
TAKE = 'p=/session/tree.$$; head -c {0} >$p; [ "$(wc -c <$p)" -eq {0} ] && mv $p /session/tree.tar.gz'
SCRIPT = Path(__file__).with_name("fleet_pod.sh").read_text(encoding="utf-8")


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


def manifest(place: Place, token: str, sessions: int, script: str) -> dict[str, Any]:
    """Return the manifest of a fleet's Job: each index one session, once more if it fails."""
    made = copy.deepcopy(yaml_file.read(Path(__file__).with_name("fleet_job.yaml")).data)
    spec = made["spec"]
    template, labels = spec["template"], {"app.kubernetes.io/managed-by": MANAGER, LABEL: token}
    made.update(metadata={"name": f"fleet-{token}", "namespace": place.namespace, "labels": labels})
    spec.update(dict.fromkeys(("completions", "parallelism", "maxFailedIndexes"), sessions))
    spec.update(ttlSecondsAfterFinished=LEASE_S)
    template.update(metadata={"labels": labels})
    pod = template["spec"]
    apart = {"labelSelector": {"matchLabels": {LABEL: token}}, "topologyKey": "kubernetes.io/hostname"}
    pod.update(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}})
    (container,), own = pod["containers"], pod.pop("tolerations")
    container.update(image=place.image, command=["sh", "-c", script], resources=place.resources)
    study_variants.patch(container, place.container)
    study_variants.patch(pod, place.pod)
    pod.update(tolerations=[*pod.get("tolerations", ()), *own])
    return made


@dataclass
class InCluster:
    """A fleet's sessions in a cluster; `tree` is this clone's commit, packed."""

    place: Place
    study: str
    token: str
    tree: Path
    setup: str
    words: str
    say: Callable[[str], None] = print
    cluster: Cluster = field(init=False)
    batch: client.BatchV1Api = field(init=False)
    job: tuple[str, str] = field(init=False)
    sent: set[str] = field(default_factory=set)
    last: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    ended: dict[str, bool] = field(default_factory=dict)

    def measure(self, sessions: int) -> int:
        """Measure so many sessions and take them into the record as they end; return how many were."""
        self.cluster = Cluster(self.place.context)
        self.batch = client.BatchV1Api(self.cluster.api)
        self.job = (f"fleet-{self.token}", self.place.namespace)
        named = {"study": shlex.quote(self.study), "setup": self.setup, "words": self.words, "lease": LEASE_S}
        self.cluster.apply(manifest(self.place, self.token, sessions, SCRIPT.format(**named)))
        try:
            self._attend_all(sessions)
        finally:
            self._remove()
        return sum(self.ended.values())

    def _attend_all(self, sessions: int) -> None:
        """Attend to the pods until each session is recorded, refused or lost."""
        lost: set[str] = set()
        while len(self.ended.keys() | lost) < sessions:
            time.sleep(POLL_S)
            for pod in self._pods():
                try:
                    file = self._attend(pod)
                except (SiteError, *LOST) as error:
                    # A pod that is lost meanwhile is made again by the Job.
                    self._tell(pod, str(error))
                    continue
                if file is None:
                    continue
                index = pod.metadata.annotations[INDEX]
                try:
                    self.say(recording.take(file))
                    self.ended[index] = True
                except BenchbookError as error:
                    self.ended[index] = False
                    self._tell(pod, f"session {index}: {error}")
            status = self._ask(self.batch.read_namespaced_job_status, *self.job).status
            lost = numbers(status.failed_indexes or "") - self.ended.keys()
        if lost:
            self.say(f"lost or failed at the second attempt: session {', '.join(sorted(lost, key=int))}")

    def _attend(self, pod: Any) -> Path | None:
        """Send a pod what it lacks and pass on what it says; return its archive once it is there."""
        space, name, node = self.place.namespace, pod.metadata.name, pod.spec.node_name
        index, uid = pod.metadata.annotations[INDEX], pod.metadata.uid
        if pod.metadata.deletion_timestamp is not None or pod.status.phase != "Running":
            self._tell_unready(pod)
        elif index in self.ended:
            self.cluster.run(space, name, ["touch", "/session/taken"])
        elif uid not in self.sent:
            self._send(name)
            again = f", once more, after its end on {self.nodes[index]}" if index in self.nodes else ""
            self.sent.add(uid)
            self.nodes[index] = node
            self._tell(pod, f"session {index} begins{again}")
        else:
            read = self.cluster.core.read_namespaced_pod_log
            self._tell(pod, str(self.cluster.ask(read, name, space, tail_lines=1)).strip())
            found = self.cluster.run(space, name, ["sh", "-c", ASK])
            if found.code == 0:
                file = self.tree.with_name(f"{node}-session-{index}.tar.xz")
                file.write_bytes(found.out)
                self._tell(pod, f"session {index} is packed: {len(found.out) / 1e3:.0f} kB")
                return file
        return None

    def _tell_unready(self, pod: Any) -> None:
        """Say what a pod waits for that does not come by itself, and the last lines of one that failed."""
        index, lacking = pod.metadata.annotations[INDEX], wait.state(pod) or ""
        if pod.status.phase == "Failed":
            last = wait.last_words(self.cluster, self.place.namespace, pod.metadata.name)
            self._tell(pod, f"session {index} ended: {pod.status.message or last}")
        elif pod.status.phase == "Pending" and not lacking.startswith(SOON):
            self._tell(pod, f"session {index} waits: {lacking}")

    def _tell(self, pod: Any, text: str) -> None:
        """Say something of a pod by its node, unless that was the line before."""
        if text and text != self.last.get(pod.metadata.uid):
            self.last[pod.metadata.uid] = text
            self.say(f"{pod.spec.node_name or self.place.namespace}: {text}")

    def _pods(self) -> list[Any]:
        label, listed = f"{LABEL}={self.token}", self.cluster.core.list_namespaced_pod
        return list(self._ask(listed, self.place.namespace, label_selector=label).items)

    def _ask(self, call: Callable[..., Any], *words: Any, **options: Any) -> Any:
        """Ask the cluster; one whose API went away is waited for, in one line."""
        deadline, is_told = time.monotonic() + AWAY_S, False
        while True:
            try:
                return self.cluster.ask(call, *words, **options)
            except Away as error:
                if time.monotonic() > deadline:
                    raise
                if not is_told:
                    self.say(f"{error}; waits for it, the sessions go on")
                is_told = True
                time.sleep(POLL_S)

    def _remove(self) -> None:
        """Remove the Job, wait until its pods are gone, and say which are not."""
        try:
            self._ask(self.batch.delete_namespaced_job, *self.job, propagation_policy="Background")
            wait_for(lambda: not self._pods(), GONE_S, POLL_S)
            left = [f"{one.metadata.name} on {one.spec.node_name}" for one in self._pods()]
        except SiteError as error:
            raise SiteError(f"{error}; what is left there: the Job {' in '.join(self.job)}") from None
        if left:
            self.say(f"not gone after {GONE_S} s, since the node does not answer: {', '.join(left)}")

    def _send(self, pod: str) -> None:
        into = TAKE.format(self.tree.stat().st_size)
        opened = self.cluster.open(self.place.namespace, pod, ["sh", "-c", into], has_stdin=True)
        with self.tree.open("rb") as source:
            for piece in iter(lambda: source.read(PIECE), b""):
                opened.write_stdin(piece)
        opened.run_forever(timeout=60)
        if opened.returncode != 0:
            raise SiteError(f"{pod}: this clone's commit did not arrive there; look at its disk")


def numbers(text: str) -> set[str]:
    """Return the indexes that a Job's status lists, such as `0,3-5`, one by one."""
    spans = [one.split("-") for one in text.split(",") if one]
    return {str(index) for span in spans for index in range(int(span[0]), int(span[-1]) + 1)}
