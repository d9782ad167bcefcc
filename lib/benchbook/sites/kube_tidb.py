"""A TiDB cluster as TiDB Operator takes it: one `TidbCluster` (v1alpha1) an arm. Pure.

PD, TiKV and TiDB get their settings in their own names. The operator makes pods, Services and claims of it;
it must be in the Kubernetes cluster, and each part must have as many nodes as it has pods.
"""

from __future__ import annotations

import json
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.core.study import Study
from benchbook.core.study_arm import Arm
from benchbook.core.study_kubernetes import Kubernetes, Selector, TidbPart
from benchbook.sites.kube_layout import Names, asked, room
from benchbook.sites.kube_pods import HOSTNAME, resources, tolerations

API, KIND = "pingcap.com/v1alpha1", "TidbCluster"
# What the operator calls the parts, and the role whose nodes each takes.
PARTS = {"pd": "pd", "tikv": "tikv", "tidb": "server"}
ZONE = "topology.kubernetes.io/zone"
MYSQL_PORT = 4000
STORED = ("pd", "tikv")


def cluster(study: Study, names: Names, name: str) -> dict[str, Any]:
    """Return the TidbCluster of an arm; SiteError where the study asks for none, or for what it can't be."""
    here, arm = asked(study), study.arms[name]
    if here.tidb is None:
        raise SiteError("site.kubernetes.tidb: missing; say how many PD, TiKV and TiDB there are to be")
    if arm.access not in ("direct", "service", "load_balancer"):
        raise SiteError(
            f"arms.{name}.access: {arm.access}: a TiDB cluster is reached by service or load_balancer"
        )
    spec: dict[str, Any] = {
        "version": here.tidb.version,
        "timezone": "UTC",
        "configUpdateStrategy": "RollingUpdate",
        # Removed with the study: all of it can be loaded again.
        "pvReclaimPolicy": "Delete",
        "enableDynamicConfiguration": True,
        "hostNetwork": arm.network == "host",
        "imagePullPolicy": here.images.pull,
        "discovery": {},
    }
    if arm.placement is not None and arm.placement.spread:
        spec["topologySpreadConstraints"] = [{"topologyKey": ZONE}]
    for part, role in PARTS.items():
        spec[part] = _part(name, part, getattr(here.tidb, part), here, arm, _nodes(here, arm, role))
    own = resources(room(arm, here))
    spec["tidb"] |= own
    spec["tidb"]["service"] = {
        "type": "LoadBalancer" if arm.access == "load_balancer" else "ClusterIP",
        "exposeStatus": True,
        # Without a second hop from the node that is asked to the one that has a pod.
        **({"externalTrafficPolicy": "Local"} if arm.access == "load_balancer" else {}),
    }
    return {
        "apiVersion": API,
        "kind": KIND,
        "metadata": {"name": name, "namespace": names.namespace, "labels": dict(names.labels)},
        "spec": spec,
    }


def endpoint(names: Names, name: str) -> tuple[str, int]:
    """Return where the operator puts the TiDB Service of an arm."""
    return f"{name}-tidb.{names.namespace}.svc", MYSQL_PORT


def toml(config: dict[str, Any]) -> str:
    """Return settings with dots in their names as TOML, sorted; a name with dots is a path there too."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in sorted(config.items()))


def _part(
    name: str, part: str, said: TidbPart, here: Kubernetes, arm: Arm, nodes: Selector
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "baseImage": f"pingcap/{part}",
        "replicas": said.replicas,
        # A part that failed is an invalid run, not one more part.
        "maxFailoverCount": 0,
        "config": toml(dict(said.config)),
        "affinity": _apart(name, part),
    }
    if part in STORED:
        found["requests"] = {"storage": f"{here.storage.size_gib}Gi"}
        if here.storage.storage_class is not None:
            found["storageClassName"] = here.storage.storage_class
    if nodes:
        found["nodeSelector"] = dict(nodes)
    if here.tolerations:
        found["tolerations"] = tolerations(here)
    return found


def _nodes(here: Kubernetes, arm: Arm, role: str) -> Selector:
    placed = arm.placement.nodes if arm.placement is not None else {}
    return placed.get(role) or here.nodes.get(role, {})  # type: ignore[call-overload]


def _apart(name: str, part: str) -> dict[str, Any]:
    """Put each pod of a part on a node of its own, as the parts of the published clusters were."""
    term = {
        "labelSelector": {
            "matchExpressions": [
                # The clusters of two arms share nodes: they are told apart by the operator's own label.
                {"key": "app.kubernetes.io/instance", "operator": "In", "values": [name]},
                {"key": "app.kubernetes.io/component", "operator": "In", "values": [part]},
            ]
        },
        "topologyKey": HOSTNAME,
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _value(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "[" + ", ".join(json.dumps(item) for item in value) + "]"
    return json.dumps(value) if isinstance(value, str) else str(value).lower()
