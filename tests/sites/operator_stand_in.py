"""What TiDB Operator makes of a `TidbCluster`, made by a test: pods with its labels, and the status.

There are no images of PD and TiKV here: those are pods that wait, and each TiDB has its embedded storage. All
of it is in a real cluster, and what is under test can't tell it from the operator's.
"""

from __future__ import annotations

import threading
from typing import Any

from kubernetes import client

from benchbook.core.errors import SiteError
from benchbook.sites.kube import tidb, wait
from benchbook.sites.kube.api import Cluster

PLURAL = "tidbclusters"
READY = {"status": "True", "reason": "Ready", "message": "TiDB cluster is fully up and running"}
WAITING = {"status": "False", "reason": "PDUnhealthy", "message": "PD(s) are not healthy"}
TIDB = (
    "mkdir -p /d && exec tidb-server -store=unistore -path=/d -host=0.0.0.0 -P=4000 -status=10080 "
    "-config=/etc/tidb/tidb.toml"
)


class Operator(threading.Thread):
    """Make a namespace's TidbClusters, until `stop`; with `image` None all images are nowhere."""

    def __init__(self, namespace: str, image: str | None) -> None:
        super().__init__(daemon=True)
        self.namespace, self.image = namespace, image
        self.cluster = Cluster()
        self._over = threading.Event()
        self.trouble: Exception | None = None

    def run(self) -> None:
        """Look once in a while, as the operator does."""
        while not self._over.wait(0.5):
            try:
                for one in self._all():
                    self._make(one)
            except SiteError as error:
                self.trouble = error

    def stop(self) -> None:
        """End at once; what was made stays."""
        self._over.set()
        self.join()

    def _all(self) -> list[dict[str, Any]]:
        group, _, version = tidb.API.partition("/")
        listed = client.CustomObjectsApi(self.cluster.api).list_namespaced_custom_object
        return self.cluster.ask(listed, group, version, self.namespace, PLURAL)["items"]

    def _make(self, resource: dict[str, Any]) -> None:
        name, spec = resource["metadata"]["name"], resource["spec"]
        for part in tidb.PARTS:
            for manifest in self._part(name, part, spec):
                self.cluster.apply(manifest)
        pods = self.cluster.core.list_namespaced_pod
        mine = self.cluster.ask(pods, self.namespace, label_selector=f"{tidb.INSTANCE}={name}").items
        wanted = sum(spec[part]["replicas"] for part in tidb.PARTS)
        is_ready = len(mine) == wanted and all(wait.state(pod) is None for pod in mine)
        status = {"conditions": [{"type": "Ready", **(READY if is_ready else WAITING)}]}
        group, _, version = tidb.API.partition("/")
        patch = client.CustomObjectsApi(self.cluster.api).patch_namespaced_custom_object
        self.cluster.ask(patch, group, version, self.namespace, PLURAL, name, {"status": status})

    def _part(self, name: str, part: str, spec: dict[str, Any]) -> list[dict[str, Any]]:
        labels = {tidb.INSTANCE: name, tidb.COMPONENT: part}
        meta = {"name": f"{name}-{part}", "namespace": self.namespace, "labels": labels}
        container: dict[str, Any] = {
            "name": part,
            "image": self.image or "localhost/nowhere:1",
            "imagePullPolicy": "IfNotPresent" if self.image else "Never",
            "command": ["sh", "-c", TIDB if part == "tidb" else "exec sleep 3600"],
        }
        volumes = []
        if part == "tidb":
            container["readinessProbe"] = {"tcpSocket": {"port": 4000}, "periodSeconds": 1}
            container["volumeMounts"] = [{"name": "config", "mountPath": "/etc/tidb"}]
            volumes = [{"name": "config", "configMap": {"name": f"{name}-tidb"}}]
        template = {
            "metadata": {"labels": labels},
            "spec": {
                "containers": [container],
                "volumes": volumes,
                "hostNetwork": bool(spec.get("hostNetwork")),
                "terminationGracePeriodSeconds": 1,
            },
        }
        found: list[dict[str, Any]] = [
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": meta,
                "spec": {
                    "replicas": spec[part]["replicas"],
                    "serviceName": f"{name}-{part}",
                    "selector": {"matchLabels": labels},
                    "template": template,
                },
            }
        ]
        if part == "tidb":
            ports = [{"name": "mysql-client", "port": 4000, "targetPort": 4000, "protocol": "TCP"}]
            found += [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": meta,
                    "spec": {"type": "ClusterIP", "selector": labels, "ports": ports},
                },
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": meta,
                    "data": {"tidb.toml": spec["tidb"]["config"]},
                },
            ]
        return found
