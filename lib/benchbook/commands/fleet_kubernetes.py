"""Sessions of a fleet in a Kubernetes cluster: an Indexed Job, a pod on a node of its own for each session.

Commit and archives go through the API: no volume, no registry. A pod that is not asked any more ends itself.
"""

from __future__ import annotations

import copy
import io
import shlex
import tarfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubernetes import client
from pydantic import Field

from benchbook.commands import fleet_sessions
from benchbook.core.artifacts.record import NotRecorded
from benchbook.core.study import study_variants
from benchbook.core.study.study_base import Model
from benchbook.core.util import yaml_file
from benchbook.core.util.errors import SiteError
from benchbook.sites.kube import wait
from benchbook.sites.kube.api import LOST, ApiUnavailable, KubernetesCluster, wait_for
from benchbook.sites.kube.placement import MANAGER

POLL_S = 3.0
PIECE = 1 << 16
LABEL = "benchbook/fleet"
INDEX = "batch.kubernetes.io/job-completion-index"
# So long an API that went away is waited for; pods that were not asked for so long end by themselves.
AWAY_S, LEASE_S = 600, 3600
GONE_S = 120
SOON = ("ContainerCreating", "PodInitializing", "phase Pending")
ASK = "touch /session/asked; cat /session/sessions.tar 2>/dev/null"
# What a lost connection leaves of it never takes its name.
TAKE = 'p=/session/tree.$$; head -c {0} >$p; [ "$(wc -c <$p)" -eq {0} ] && mv $p /session/tree.tar.gz'
SCRIPT = Path(__file__).with_name("fleet_pod.sh").read_text(encoding="utf-8")


class ClusterPlace(Model):
    """Place of a fleet's pods, in a file that `--on` names. The cluster is that of the kubeconfig."""

    image: str
    """Image with Python, git and what the study measures; `--setup` runs in it."""
    namespace: str = "default"
    """Namespace of the Job, which must be there."""
    context: str | None = None
    """Context of the kubeconfig; null takes its current one."""
    resources: dict[str, dict[str, str]] = Field({}, examples=[{"requests": {"cpu": "4"}}])
    """Requests and limits of a pod. Alike, of whole cores and with memory, nobody takes cores from it."""
    hours: int = Field(24, ge=1, le=720, examples=[24])
    """Longest time of the Job in hours; then the cluster ends it, whoever asks."""
    pod: dict[str, Any] = Field({}, examples=[{"nodeSelector": {"pool": "c2"}}])
    """More of a pod, as Kubernetes has it: nodeSelector, tolerations, volumes and so on; null takes out."""
    container: dict[str, Any] = Field({}, examples=[{"securityContext": {"privileged": True}}])
    """More of its container, such as volumeMounts and securityContext."""

    @property
    def is_guaranteed(self) -> bool:
        """True if a pod gets whole cores under a static CPU manager: QoS Guaranteed."""
        limits = self.resources.get("limits", {})
        is_whole = limits.get("cpu", "").isdigit() and "memory" in limits
        return is_whole and self.resources.get("requests", limits) == limits


def build_manifest(place: ClusterPlace, token: str, sessions: int, script: str) -> dict[str, Any]:
    """Manifest of a fleet's Job: each index one session, once more if it fails."""
    manifest = copy.deepcopy(yaml_file.read_mapping(Path(__file__).with_name("fleet_job.yaml")).data)
    spec = manifest["spec"]
    template, labels = spec["template"], {"app.kubernetes.io/managed-by": MANAGER, LABEL: token}
    manifest.update(metadata={"name": f"fleet-{token}", "namespace": place.namespace, "labels": labels})
    spec.update(dict.fromkeys(("completions", "parallelism", "maxFailedIndexes"), sessions))
    spec.update(ttlSecondsAfterFinished=LEASE_S, activeDeadlineSeconds=3600 * place.hours)
    template["metadata"].update(labels=labels)
    pod = template["spec"]
    apart = {"labelSelector": {"matchLabels": {LABEL: token}}, "topologyKey": "kubernetes.io/hostname"}
    pod.update(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}})
    (container,), tolerations = pod["containers"], pod.pop("tolerations")
    container.update(image=place.image, command=["sh", "-c", script], resources=place.resources)
    study_variants.apply_patch(container, place.container)
    study_variants.apply_patch(pod, place.pod)
    pod.update(tolerations=[*pod.get("tolerations", ()), *tolerations])
    return manifest


@dataclass
class InCluster:
    """A fleet's sessions in a cluster; `tree` is this clone's commit, packed."""

    place: ClusterPlace
    studies: Sequence[str]
    token: str
    setup: str
    words: str
    tree: Path
    folder: Path
    cluster: KubernetesCluster = field(init=False)
    batch: client.BatchV1Api = field(init=False)
    job: tuple[str, str] = field(init=False)
    sent: set[str] = field(default_factory=set)
    last: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    began: dict[str, NotRecorded] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def measure(self, sessions: int) -> int:
        """Measure so many sessions and record them as they end; return the number recorded."""
        self.cluster = KubernetesCluster(self.place.context)
        self.batch = client.BatchV1Api(self.cluster.api)
        self.job = (f"fleet-{self.token}", self.place.namespace)
        print(fleet_sessions.describe_occasions(sessions, self._machine_types(), "machine type"))
        if not self.place.is_guaranteed:
            print("pods share cores: resources.limits has no whole cores and memory, alike in requests")
        named = {"studies": shlex.join(self.studies), "setup": self.setup, "words": self.words}
        script = SCRIPT.format(**named, lease=LEASE_S)
        self.cluster.apply(build_manifest(self.place, self.token, sessions, script))
        # What has arrived is recorded beside: nobody waits for it longer than a lease.
        with ThreadPoolExecutor(1) as recorder:
            taken = [recorder.submit(self._take, [file]) for file in sorted(self.folder.glob("*.tar.xz"))]
            try:
                self._attend_all(sessions, lambda files: taken.append(recorder.submit(self._take, files)))
            finally:
                self._remove()
        return sum(future.result() for future in taken)

    def _take(self, files: Sequence[Path]) -> int:
        return fleet_sessions.take_brought(fleet_sessions.FetchedSessions([*files]), self.studies)

    def _machine_types(self) -> list[str]:
        """Machine type of each node that pods may go to; none if rights don't show them."""
        selector = ",".join(f"{key}={value}" for key, value in self.place.pod.get("nodeSelector", {}).items())
        try:
            items = self.cluster.ask(self.cluster.core.list_node, label_selector=selector).items
        except SiteError:
            return []
        labels_of_nodes = (node.metadata.labels or {} for node in items)
        return [labels.get("node.kubernetes.io/instance-type", "not known") for labels in labels_of_nodes]

    def _attend_all(self, sessions: int, take: Callable[[list[Path]], object]) -> None:
        """Attend to the pods until the archives of each session have arrived, or it is lost."""
        over: set[str] = set()
        while len(self.ended | over) < sessions:
            time.sleep(POLL_S)
            for pod in self._pods():
                try:
                    files = self._attend(pod)
                except (SiteError, *LOST) as error:
                    # A pod that is lost meanwhile is made again by the Job.
                    self._tell(pod, str(error))
                    continue
                if files:
                    self.ended.add(pod.metadata.annotations[INDEX])
                    take(files)
            status = self._ask(self.batch.read_namespaced_job_status, *self.job).status
            lost = parse_indexes(status.failed_indexes or "") - self.ended
            # Before a resumed fleet some had been taken already.
            over = lost | parse_indexes(status.completed_indexes or "")
        for index in lost & self.began.keys():
            self._count_lost(index)
        if lost:
            print(f"lost or failed at the second attempt: session {', '.join(sorted(lost, key=int))}")

    def _count_lost(self, index: str) -> None:
        for study in self.studies:
            print(fleet_sessions.count_lost(study, self.began[index]))

    def _attend(self, pod: Any) -> list[Path]:
        """Send a pod the files it lacks and pass on its output; return its archives once they exist."""
        space, name, node = self.place.namespace, pod.metadata.name, pod.spec.node_name
        index, uid = pod.metadata.annotations[INDEX], pod.metadata.uid
        if pod.metadata.deletion_timestamp is not None or pod.status.phase != "Running":
            self._tell_unready(pod)
        elif index in self.ended:
            self.cluster.run(space, name, ["touch", "/session/taken"])
        elif uid not in self.sent:
            self._send(name)
            again = f", once more, after its end on {self.nodes[index]}" if index in self.nodes else ""
            if again:
                self._count_lost(index)
            self.sent.add(uid)
            self.nodes[index] = node
            begun, why = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"), f"its pod on {node} was lost"
            self.began[index] = NotRecorded(begun=begun, processor="not known", why=why)
            self._tell(pod, f"session {index} begins{again}")
        else:
            read = self.cluster.core.read_namespaced_pod_log
            self._tell(pod, str(self.cluster.ask(read, name, space, tail_lines=1)).strip())
            command_result = self.cluster.run(space, name, ["sh", "-c", ASK])
            if command_result.code == 0:
                files = self._unpack(command_result.out, f"{node}-session-{index}")
                self._tell(pod, f"session {index} is packed: {len(command_result.out) / 1e3:.0f} kB")
                return files
        return []

    def _unpack(self, packed: bytes, name: str) -> list[Path]:
        """Write the archives that a pod packed into the fleet's folder; that is when they have arrived."""
        files = []
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            for member in tar:
                held = tar.extractfile(member)
                if held is not None:
                    files.append(self.folder / f"{name}-{Path(member.name).name}")
                    files[-1].write_bytes(held.read())
        return files

    def _tell_unready(self, pod: Any) -> None:
        """Print each thing a pod awaits in vain, and the last lines of one that failed."""
        index, lacking = pod.metadata.annotations[INDEX], wait.describe_lack(pod) or ""
        if pod.status.phase == "Failed":
            last = wait.read_last_lines(self.cluster, self.place.namespace, pod.metadata.name)
            self._tell(pod, f"session {index} ended: {pod.status.message or last}")
        elif pod.status.phase == "Pending" and not lacking.startswith(SOON):
            self._tell(pod, f"session {index} waits: {lacking}")

    def _tell(self, pod: Any, text: str) -> None:
        """Say something of a pod by its node, unless that was the line before."""
        if text and text != self.last.get(pod.metadata.uid):
            self.last[pod.metadata.uid] = text
            print(f"{pod.spec.node_name or self.place.namespace}: {text}")

    def _pods(self) -> list[Any]:
        label, listed = f"{LABEL}={self.token}", self.cluster.core.list_namespaced_pod
        return list(self._ask(listed, self.place.namespace, label_selector=label).items)

    def _ask(self, call: Callable[..., Any], *words: Any, **options: Any) -> Any:
        """Ask the cluster; if its API is gone, wait for it, with a line about that."""
        deadline, is_told = time.monotonic() + AWAY_S, False
        while True:
            try:
                return self.cluster.ask(call, *words, **options)
            except ApiUnavailable as error:
                if time.monotonic() > deadline:
                    raise
                if not is_told:
                    print(f"{error}; waits for it, the sessions go on")
                is_told = True
                time.sleep(POLL_S)

    def _remove(self) -> None:
        """Remove the Job, wait until its pods are gone, and print those that are not."""
        try:
            self._ask(self.batch.delete_namespaced_job, *self.job, propagation_policy="Background")
            wait_for(lambda: not self._pods(), GONE_S, POLL_S)
            left = [f"{pod.metadata.name} on {pod.spec.node_name}" for pod in self._pods()]
        except SiteError as error:
            raise SiteError(f"{error}; what is left there: the Job {' in '.join(self.job)}") from None
        if left:
            print(f"not gone after {GONE_S} s, since the node does not answer: {', '.join(left)}")

    def _send(self, pod: str) -> None:
        into = TAKE.format(self.tree.stat().st_size)
        opened = self.cluster.open(self.place.namespace, pod, ["sh", "-c", into], has_stdin=True)
        with self.tree.open("rb") as source:
            for piece in iter(lambda: source.read(PIECE), b""):
                opened.write_stdin(piece)
        opened.run_forever(timeout=60)
        if opened.returncode != 0:
            raise SiteError(f"{pod}: this clone's commit did not arrive there; look at its disk")


def parse_indexes(text: str) -> set[str]:
    """Indexes that a Job's status lists, such as `0,3-5`, one by one."""
    spans = [item.split("-") for item in text.split(",") if item]
    return {str(index) for span in spans for index in range(int(span[0]), int(span[-1]) + 1)}
