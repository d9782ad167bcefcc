"""Base of all parts of a study in a cluster: its namespace, its accounts, the record of both."""

import getpass
import json
import threading
from collections.abc import Callable
from typing import Any

from kubernetes import client

from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.kube import manifests, placement, wait
from benchbook.sites.kube.agent import PodHost
from benchbook.sites.kube.api import KubernetesCluster, wait_for
from benchbook.sites.kube.manifests import DIGEST
from benchbook.sites.kube.placement import Part, pod_of

GONE_S = 180.0


class StudyNamespace:
    """A study's place in a cluster; nothing is asked of the cluster before `prepare`."""

    def __init__(self, study: StudySpec, lab: labs.Lab) -> None:
        self.study, self.lab = study, lab
        self.here = placement.get_section(study)
        self.cluster = KubernetesCluster(self.here.context)
        self.names = placement.build_names(lab.folder.name, lab.token)
        self.namespace = self.names.namespace
        self.applied: dict[str, list[dict[str, Any]]] = {}
        self._hosts: dict[str, PodHost] = {}
        self._over = threading.Event()

    def prepare(self) -> None:
        """Make the namespace, or find it; SiteError if the name is somebody else's."""

        def ready() -> bool:
            if (namespace := find_namespace(self.cluster, self.namespace)) is None:
                return True
            if (namespace.metadata.labels or {}).get("benchbook/lab") != self.lab.token:
                raise SiteError(f"the namespace {self.namespace} is there and is not ours; rename the study")
            return bool(namespace.status.phase == "Active")

        if not wait_for(ready, GONE_S):
            raise SiteError(f"the namespace {self.namespace} is ending and does not end; look at its objects")
        record = {"kubeconfig": str(self.cluster.file), "context": self.here.context}
        record |= {"namespace": self.namespace, "token": self.lab.token}
        labs.write_private(self.lab.folder / placement.RECORD, json.dumps(record))
        self.apply("study", manifests.build_study(self.names))

    def apply(self, what: str, objects: list[dict[str, Any]]) -> None:
        """Apply manifests, unless the very same were applied under this name by us already."""
        if self.applied.get(what) != objects:
            for manifest in objects:
                self.cluster.apply(manifest)
            self.applied[what] = objects

    def host(self, pod: Any) -> PodHost:
        """A pod for its agent's actions and reports; the agent is begun and kept."""
        name, first = pod.metadata.name, pod.spec.containers[0].name
        pod_host = self._hosts.get(name)
        if pod_host is None or pod_host.is_gone or wait.pod_identity(pod_host.pod) != wait.pod_identity(pod):
            has_python = first in ("client", "neighbour") or self.here.client_in == "server"
            pod_host = self._hosts[name] = PodHost(self.cluster, pod, self.lab, self.here, not has_python)
            pod_host.begin(f"{getpass.getuser()}, {self.lab.folder}")
            threading.Thread(target=pod_host.keep, args=(self._over,), daemon=True).start()
        return pod_host

    def look(self, pod: str) -> Any | None:
        return wait.find_pod(self.cluster, self.namespace, pod)

    def run(self, pod: str, *argv: str) -> str:
        return self.cluster.must(self.namespace, pod, argv)

    def up(self, part: Part, results: list[dict[str, Any]]) -> Any:
        """Apply the manifests of a part, the last one its pod's holder; returns the pod once it runs."""
        self.apply(part.name, results)
        digest = results[-1]["spec"]["template"]["metadata"]["annotations"][DIGEST]
        return wait.wait_until_running(self.cluster, self.namespace, pod_of(part), digest, self.here.wait_s)

    def end(self) -> None:
        """Let all agents go: they end with their pods, or their children with their lease."""
        self._over.set()
        for host in self._hosts.values():
            host.close()

    def text(self, name: str) -> str:
        return manifests.render_yaml(self.applied.get(name, []))

    def sweep(self, wait_s: float = GONE_S) -> None:
        """Remove the StatefulSets of parts that hold no data, and wait until their pods are gone."""
        apps, list_pods = client.AppsV1Api(self.cluster.api), self.cluster.core.list_namespaced_pod
        if find_namespace(self.cluster, self.namespace) is None:
            return
        ours = self._without_data(apps.list_namespaced_stateful_set)
        for name in ours:
            self.applied.pop(name, None)
            delete = apps.delete_namespaced_stateful_set
            self.cluster.ask(delete, name, self.namespace, propagation_policy="Background")
        if ours and wait_s and not wait_for(lambda: not self._without_data(list_pods), wait_s):
            left = ", ".join(self._without_data(list_pods))
            raise SiteError(f"{self.namespace}: pods do not end: {left}")

    def remove(self, wait_s: float = GONE_S) -> bool:
        self.applied.clear()
        return remove_namespace(self.cluster, self.namespace, self.lab.token, wait_s)

    def _without_data(self, list_objects: Callable[..., Any]) -> list[str]:
        """Names of our objects of a kind that hold clients, neighbours and proxies."""
        items = self.cluster.ask(list_objects, self.namespace, label_selector=self.names.selector).items
        names = [str(item.metadata.name) for item in items]
        return [name for name in names if name.partition("-")[0] in ("client", "neighbour", "proxy")]


def find_namespace(cluster: KubernetesCluster, namespace: str) -> Any | None:
    """A namespace as the cluster sees it, or None."""
    field = f"metadata.name={namespace}"
    items = cluster.ask(cluster.core.list_namespace, field_selector=field).items
    return items[0] if items else None


def remove_namespace(cluster: KubernetesCluster, namespace: str, token: str, wait_s: float = GONE_S) -> bool:
    """Remove a namespace that carries a token, and no other; True if it is gone after `wait_s`."""
    existing = find_namespace(cluster, namespace)
    if existing is None:
        return True
    if (existing.metadata.labels or {}).get("benchbook/lab") != token:
        raise SiteError(f"the namespace {namespace} is not ours; it is left alone")
    if existing.metadata.deletion_timestamp is None:
        cluster.ask(cluster.core.delete_namespace, namespace)
    return bool(wait_for(lambda: find_namespace(cluster, namespace) is None, wait_s)) if wait_s else False
