"""A TiDB cluster as TiDB Operator takes it: a `TidbCluster` (v1alpha1) for each distinct server. Pure.

PD, TiKV and TiDB get their settings in their own names. The operator makes pods, Services and claims of it;
it must be in the Kubernetes cluster, and each part must have as many nodes as it has pods. Arms that differ
in access alone share a cluster: on the network of their nodes two would meet on its ports.
"""

import hashlib
import json
from typing import Any

from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_kubernetes import Kubernetes, Role, parse_release
from benchbook.core.util.errors import require_value
from benchbook.sites.kube import manifests, placement
from benchbook.sites.kube.manifests import build_term, format_resources, format_tolerations
from benchbook.sites.kube.placement import Chain, StudyNames, choose_resources, get_section, service_of
from benchbook.sites.settings import must_be_free
from benchbook.sites.tidb import config

API, KIND = "pingcap.com/v1alpha1", "TidbCluster"
# What the operator calls the parts, and the role whose nodes each takes.
PARTS: dict[str, Role] = {"pd": "pd", "tikv": "tikv", "tidb": "server"}
ZONE = "topology.kubernetes.io/zone"
# The labels that the operator gives its pods.
INSTANCE, COMPONENT = "app.kubernetes.io/instance", "app.kubernetes.io/component"
MYSQL_PORT = 4000  # as the operator gives it
STORED = ("pd", "tikv")
# The first TiKV that takes `--advertise-status-addr`, which `enableDynamicConfiguration` makes the operator
# pass; an older one ends with a word about an unknown argument.
TELLS_STATUS_ADDRESS = (4, 0, 1)
# The variable of its pods that tells them from those of earlier settings: a TidbCluster says that it is ready
# until the operator has seen that it was changed.
MADE_AS = "BENCHBOOK_MADE_AS"


def build_arm(study: StudySpec, names: StudyNames, name: str, chain: Chain) -> list[dict[str, Any]]:
    """Manifests of one arm: its cluster, the Service reached from outside, and its clients."""
    outside = [build_balancer(names, chain)] if chain.arm.access == "load_balancer" else []
    clients = [manifests.build_stateful(study, names, part) for part in chain.clients]
    return [build_cluster(study, names, name), *outside, *clients]


def build_cluster(study: StudySpec, names: StudyNames, name: str) -> dict[str, Any]:
    """TidbCluster of an arm, of a study that asks for one."""
    here, arm, server = get_section(study), study.arms[name], placement.build_chains(study)[name].server
    tidb = require_value(here.tidb)
    spec: dict[str, Any] = {
        "version": tidb.version,
        "timezone": "UTC",
        "configUpdateStrategy": "RollingUpdate",
        # Removed with the study: all of it can be loaded again.
        "pvReclaimPolicy": "Delete",
        "enableDynamicConfiguration": parse_release(tidb.version) >= TELLS_STATUS_ADDRESS,
        "hostNetwork": arm.network == "host",
        "imagePullPolicy": "IfNotPresent",
        "discovery": {},
        # Old operators name a scheduler of their own unless told otherwise, which nobody installs for us.
        "schedulerName": "default-scheduler",
    }
    if arm.placement is not None and arm.placement.spread:
        spec["topologySpreadConstraints"] = [{"topologyKey": ZONE}]
    wanted, nodes = config.of_parts(tidb, arm.parts), placement.select_nodes(here, arm)
    for part, role in PARTS.items():
        spec[part] = {
            "baseImage": f"pingcap/{part}",
            "replicas": getattr(tidb, part).replicas,
            # A part that failed is an invalid run, not one more part.
            "maxFailoverCount": 0,
            "config": config.render_toml(wanted[part]) if wanted[part] else "",
            "affinity": _build_affinity(server.name, part),
            **_choose_room(here, part, dict(nodes.get(role, ()))),
        }
    spec["tidb"] |= format_resources(choose_resources(arm, here))
    # Beside the slow log's own container a command could not be run without its name; the log is off anyway.
    spec["tidb"]["separateSlowLog"] = False
    spec["tidb"]["config"] = config.render_toml(dict(build_settings(study, name).items) | wanted["tidb"])
    spec["tidb"]["service"] = {"type": "ClusterIP", "exposeStatus": True}
    shared = {key: value for key, value in spec.items() if key not in PARTS}
    for part in PARTS:
        # Of everything that its pods are made of; their number is no part of it.
        settings = {key: value for key, value in spec[part].items() if key != "replicas"}
        digest = hashlib.sha256(json.dumps([shared, settings], sort_keys=True).encode()).hexdigest()
        spec[part]["env"] = [{"name": MADE_AS, "value": digest}]
    return names.manifest(KIND, server.name, api=API, spec=spec)


def _choose_room(here: Kubernetes, part: str, labels: dict[str, str]) -> dict[str, Any]:
    """Storage of a part's pods, and the nodes that take them, by labels and taints."""
    spec: dict[str, Any] = {}
    if part in STORED:
        spec["requests"] = {"storage": f"{here.storage.size_gib}Gi"}
        if here.storage.storage_class is not None:
            spec["storageClassName"] = here.storage.storage_class
    if labels:
        spec["nodeSelector"] = labels
    if here.tolerations:
        spec["tolerations"] = format_tolerations(here)
    return spec


def build_settings(study: StudySpec, arm: str) -> config.TidbSettings:
    """Settings asked of every TiDB of an arm, with those of its own part on top."""
    tidb = require_value(get_section(study).tidb)
    must_be_free(study.engine)
    wanted = config.of_parts(tidb, study.arms[arm].parts)["tidb"].items()
    items = {key: value for key, value in wanted if config.is_item(key) and not isinstance(value, tuple)}
    return config.complete_settings({**study.engine.settings, **items}, tidb.version.removeprefix("v"))


def build_balancer(names: StudyNames, chain: Chain) -> dict[str, Any]:
    """The Service that makes a cluster reachable from outside, without a hop from node to node."""
    spec = {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "selector": {INSTANCE: chain.server.name, COMPONENT: "tidb"},
        "ports": [{"name": "mysql", "port": MYSQL_PORT, "targetPort": MYSQL_PORT, "protocol": "TCP"}],
    }
    return names.manifest("Service", service_of(chain) or "", spec=spec)


def _build_affinity(name: str, part: str) -> dict[str, Any]:
    """Put each pod of a part on a node of its own, as the parts of the published clusters were."""
    # Two clusters may share nodes: they are told apart by the operator's own label.
    term = build_term({INSTANCE: name, COMPONENT: part})
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
