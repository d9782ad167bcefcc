"""What TiDB Operator makes of a `TidbCluster`, made by a test: pods with its labels, and the status.

The operator alone is stood in for: PD, the stores and TiDB are real programs, built from their Go modules,
with unistore in place of TiKV, one part after another as the operator starts them. All of it is in a real
cluster. On one node of a test cluster parts share the node, which the operator's own pods would refuse.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from kubernetes import client

from benchbook.core.util.errors import SiteError
from benchbook.sites.kube import tidb_manifests, wait
from benchbook.sites.kube.api import KubernetesCluster
from benchbook.sites.kube.tidb_cluster import PodPlacementDriver
from benchbook.sites.machine.contract import Request
from benchbook.sites.tidb import status

PLURAL = "tidbclusters"
# Of the kinds that are not in v1.
APIS = {
    **dict.fromkeys(("Deployment", "StatefulSet"), "apps/v1"),
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
    "StorageClass": "storage.k8s.io/v1",
}
READY = {"status": "True", "reason": "Ready", "message": "TiDB cluster is fully up and running"}
WAITING = {"status": "False", "reason": "PDUnhealthy", "message": "PD(s) are not healthy"}
# Its Service has PD found by the others: a test cluster has no DNS. KNOWN is what kubelets call it by.
PD_AT = "${KNOWN_PD_SERVICE_HOST}:2379"
COMMANDS = {
    "pd": (
        "exec pd-server --name=$HOSTNAME --data-dir=/d/pd --config=/etc/part/part.toml "
        "--client-urls=http://0.0.0.0:2379 --advertise-client-urls=http://$POD_IP:2379 "
        "--peer-urls=http://0.0.0.0:2380 --advertise-peer-urls=http://$POD_IP:2380 "
        "--initial-cluster=$HOSTNAME=http://$POD_IP:2380"
    ),
    "tikv": (
        f"exec tikv-server --pd=http://{PD_AT} --addr=0.0.0.0:20160 --advertise-addr=$POD_IP:20160 "
        "--status-addr=0.0.0.0:20180 --data-dir=/d/tikv --capacity=0 --config=/etc/part/part.toml"
    ),
    "tidb": (
        f"exec tidb-server --store=tikv --path={PD_AT} --host=0.0.0.0 --advertise-address=$POD_IP "
        "--config=/etc/part/part.toml"
    ),
}
PORTS = {"pd": 2379, "tikv": 20160, "tidb": 4000}


class Operator(threading.Thread):
    """Make a namespace's TidbClusters within a `with`; with `image` None all images are nowhere.

    What was made stays.
    """

    def __init__(self, namespace: str, image: str | None) -> None:
        super().__init__(daemon=True)
        self.namespace, self.image = namespace, image
        self.cluster = KubernetesCluster()
        self._over = threading.Event()
        self.trouble: Exception | None = None
        self._made: set[str] = set()

    def run(self) -> None:
        """Look once in a while, as the operator does."""
        while not self._over.wait(0.5):
            try:
                for one in self._all():
                    self._make(one)
            except SiteError as error:
                self.trouble = error

    def __enter__(self) -> Operator:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self.join()

    def _all(self) -> list[dict[str, Any]]:
        group, _, version = tidb_manifests.API.partition("/")
        listed = client.CustomObjectsApi(self.cluster.api).list_namespaced_custom_object
        return self.cluster.ask(listed, group, version, self.namespace, PLURAL)["items"]

    def _make(self, resource: dict[str, Any]) -> None:
        name, spec = resource["metadata"]["name"], resource["spec"]
        is_ready = True
        for part in tidb_manifests.PARTS:
            for manifest in self._part(name, part, spec):
                self.cluster.apply(manifest)
            label = f"{tidb_manifests.INSTANCE}={name},{tidb_manifests.COMPONENT}={part}"
            pods = self.cluster.core.list_namespaced_pod
            mine = self.cluster.ask(pods, self.namespace, label_selector=label).items
            is_ready = len(mine) == spec[part]["replicas"] and all(
                wait.describe_lack(pod) is None for pod in mine
            )
            if part == "tikv" and name not in self._made and any(_restarts(pod) for pod in mine):
                self._begin_again(name)
                return
            if part == "tikv" and is_ready and name not in self._made:
                is_ready = self._is_placed(name, mine)
            if not is_ready:
                break
        if is_ready:
            self._made.add(name)
        status = {"conditions": [{"type": "Ready", **(READY if is_ready else WAITING)}]}
        group, _, version = tidb_manifests.API.partition("/")
        patch = client.CustomObjectsApi(self.cluster.api).patch_namespaced_custom_object
        self.cluster.ask(patch, group, version, self.namespace, PLURAL, name, {"status": status})

    def request(self, address: str, port: int, asked: Request) -> str:
        """Ask a pod over HTTP from inside it."""
        url = f"http://127.0.0.1:{port}{asked.path}"
        return self.cluster.must(self.namespace, address, ["wget", "-qO-", url])

    def _is_placed(self, name: str, pods: list[Any]) -> bool:
        """Say whether PD has every region on all stores: unistore may end where a split comes before that."""
        names = {str(pod.status.pod_ip): pod.metadata.name for pod in pods}
        try:
            state = PodPlacementDriver(f"{name}-pd-0", PORTS["pd"], names, self).state()
        except (SiteError, OSError, ValueError):
            return False
        return not status.find_faults(state, len(pods), len(pods))

    def _begin_again(self, name: str) -> None:
        """Remove the parts with their data, as the lab does where a new store ended by itself."""
        remove = client.AppsV1Api(self.cluster.api).delete_namespaced_stateful_set
        for part in reversed(tidb_manifests.PARTS):
            with contextlib.suppress(SiteError):
                self.cluster.ask(remove, f"{name}-{part}", self.namespace, propagation_policy="Foreground")

    def _part(self, name: str, part: str, spec: dict[str, Any]) -> list[dict[str, Any]]:
        labels = {tidb_manifests.INSTANCE: name, tidb_manifests.COMPONENT: part}
        meta = {"name": f"{name}-{part}", "namespace": self.namespace, "labels": labels}
        known = name.upper().replace("-", "_")
        own_address = {"fieldRef": {"fieldPath": "status.podIP"}}
        places = {"config": "/etc/part", "data": "/d"}
        container: dict[str, Any] = {
            "name": part,
            "image": self.image or "localhost/nowhere:1",
            "imagePullPolicy": "IfNotPresent" if self.image else "Never",
            "command": ["sh", "-c", COMMANDS[part].replace("KNOWN", known)],
            "env": [{"name": "POD_IP", "valueFrom": own_address}, *spec[part]["env"]],
            "readinessProbe": {"tcpSocket": {"port": PORTS[part]}, "periodSeconds": 1},
            "volumeMounts": [{"name": one, "mountPath": path} for one, path in places.items()],
        }
        # What a store has written outlives its container, as in the operator's volumes.
        config = {"name": "config", "configMap": {"name": f"{name}-{part}"}}
        held = {"containers": [container], "volumes": [config, {"name": "data", "emptyDir": {}}]}
        template = {"metadata": {"labels": labels}, "spec": held | {"terminationGracePeriodSeconds": 1}}
        ports = [{"name": "main", "port": PORTS[part], "targetPort": PORTS[part], "protocol": "TCP"}]
        held = {"replicas": spec[part]["replicas"], "serviceName": f"{name}-{part}"}
        held |= {"selector": {"matchLabels": labels}, "template": template}
        return [
            resource("ConfigMap", meta, data={"part.toml": spec[part]["config"]}),
            resource("Service", meta, spec={"type": "ClusterIP", "selector": labels, "ports": ports}),
            resource("StatefulSet", meta, spec=held),
        ]


def resource(kind: str, meta: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Return a manifest."""
    return {"apiVersion": APIS.get(kind, "v1"), "kind": kind, "metadata": meta, **rest}


def _restarts(pod: Any) -> int:
    return sum(one.restart_count for one in pod.status.container_statuses or ())
