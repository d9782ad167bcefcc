"""Study and arm → manifests, as plain data and as YAML: pure, and without accounts, which agents write."""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_kubernetes import Kubernetes
from benchbook.core.util.errors import require_value
from benchbook.sites.kube import placement
from benchbook.sites.kube.placement import SERVICE_PORT, Chain, Part, ResourceLimits, StudyNames
from benchbook.sites.proxies.proxy import load_pod as proxy_pod

HOME = "/var/lib/benchbook"
CONFIG = "/etc/benchbook"
HOSTNAME = "kubernetes.io/hostname"
# A mounted file follows its ConfigMap late and unseen; with this, other files are another pod.
DIGEST = "benchbook/digest"
# A server writes its buffers out; a client has nothing to keep.
SERVER_GRACE_S, GRACE_S = 60, 2
# The first process where an agent does all the rest: it collects what ends, which the kernel gives to it.
IDLE = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 60 & wait $!; done"]
OF_SERVER = ["sh", "-c", Path(__file__).with_name("pod").joinpath("server.sh").read_text("utf-8")]


def build_study(names: StudyNames) -> list[dict[str, Any]]:
    """Manifests that all arms share: the namespace."""
    whole = {"name": names.namespace, "labels": dict(names.labels)}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": whole}]


def build_server(study: StudySpec, names: StudyNames, server: Part) -> list[dict[str, Any]]:
    """A server's Service, and the StatefulSet that holds it."""
    storage, whole = placement.get_section(study).storage, build_stateful(study, names, server)
    if storage.storage_class is not None:
        spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage.storage_class}
        spec |= {"resources": {"requests": {"storage": f"{storage.size_gib}Gi"}}}
        claim = {"metadata": {"name": "data", "labels": dict(names.labels)}, "spec": spec}
        whole["spec"]["volumeClaimTemplates"] = [claim]
    return [build_service(names, server), whole]


def build_service(names: StudyNames, server: Part, balancer: str | None = None) -> dict[str, Any]:
    """The Service of a server; with the name `balancer` one that is reached from outside."""
    spec = {
        "type": "LoadBalancer" if balancer else "ClusterIP",
        "selector": {"benchbook/lab": dict(names.labels)["benchbook/lab"], "benchbook/part": server.name},
        "ports": [{"name": "sql", "port": SERVICE_PORT, "targetPort": server.port, "protocol": "TCP"}],
    }
    return names.manifest("Service", balancer or server.name, server.name, spec=spec)


def build_arm(study: StudySpec, names: StudyNames, chain: Chain) -> list[dict[str, Any]]:
    """All manifests of one arm; its proxy leads to the server's Service."""
    arm = [manifest for server in chain.servers for manifest in build_server(study, names, server)]
    if chain.arm.access == "load_balancer":
        arm.append(build_service(names, chain.server, placement.service_of(chain)))
    if chain.proxy is not None:
        arm += build_proxy(study, names, chain.proxy)
    others = filter(None, (chain.neighbour, *chain.clients))
    return [*arm, *(build_stateful(study, names, part) for part in others)]


def build_stateful(
    study: StudySpec, names: StudyNames, part: Part, files: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The StatefulSet that holds a part's pod; `files` are those of its settings."""
    spec = build_pod(study, part)
    # Whoever waits for the pod must know it from the one that is about to be replaced.
    whole = json.dumps([dict(files), spec], sort_keys=True).encode()
    labels = dict(names.labels) | {"benchbook/part": part.name}
    metadata = {"annotations": {DIGEST: hashlib.sha256(whole).hexdigest()}, "labels": labels}
    held: dict[str, Any] = {"replicas": 1, "serviceName": part.name, "selector": {"matchLabels": labels}}
    held |= {"template": {"metadata": metadata, "spec": spec}}
    return names.manifest("StatefulSet", part.name, part.name, "apps/v1", spec=held)


def build_proxy(
    study: StudySpec, names: StudyNames, proxy: Part, address: str | None = None
) -> list[dict[str, Any]]:
    """A proxy's settings and its StatefulSet; it leads to `address`, None: the server's Service."""
    to, cores = require_value(proxy.to), proxy.where.resources.limit_cpu
    leads_to, behind = (address, to.port) if address else (f"{to.name}.{names.namespace}.svc", SERVICE_PORT)
    files = proxy_pod(proxy.program).files(proxy.port, leads_to, behind, cores)
    config = names.manifest("ConfigMap", proxy.name, proxy.name, data=files)
    return [config, build_stateful(study, names, proxy, files)]


def build_pod(study: StudySpec, part: Part) -> dict[str, Any]:
    """Spec of a part's pod: a server waits for its orders, a client for its agent."""
    here, is_host = placement.get_section(study), part.where.network == "host"
    image, command, grace_s = here.images.client, IDLE, GRACE_S
    mount: dict[str, Any] = {"name": "data", "mountPath": HOME}
    volume: dict[str, Any] = {"name": "data", "emptyDir": {}}
    if part.kind == "server":
        image, command, grace_s = here.images.server, OF_SERVER, SERVER_GRACE_S
    elif part.kind == "proxy":
        image, command = here.images.proxy, proxy_pod(part.program).command(CONFIG)
        mount = {"name": "config", "mountPath": CONFIG, "readOnly": True}
        volume = {"name": "config", "configMap": {"name": part.name}}
    # For people to read; one of the node would be reserved even in its sleep.
    has_port = part.kind in ("server", "proxy") and not is_host
    port = {"name": "sql", "containerPort": part.port, "protocol": "TCP"}
    container: dict[str, Any] = {"name": part.kind, "image": image, "imagePullPolicy": "IfNotPresent"}
    container |= {"command": command, **({"ports": [port]} if has_port else {})}
    container |= {"resources": format_resources(part.where.resources), "volumeMounts": [mount]}
    is_claimed = part.kind == "server" and here.storage.storage_class is not None
    affinity = _build_affinity(part)
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_s,
        "containers": [container],
        "volumes": [] if is_claimed else [volume],
        **({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if is_host else {}),
        **({"nodeSelector": dict(part.where.nodes)} if part.where.nodes else {}),
        **({"tolerations": format_tolerations(here)} if here.tolerations else {}),
        **({"affinity": affinity} if affinity else {}),
    }


def format_resources(where: ResourceLimits) -> dict[str, Any]:
    """Requests and limits as Kubernetes writes them; an empty value asks for nothing."""
    sides = {"requests": (where.request_cpu, where.request_mib), "limits": (where.limit_cpu, where.limit_mib)}
    resources: dict[str, dict[str, str]] = {}
    for side, (cpu, mib) in sides.items():
        if cpu is not None:
            resources.setdefault(side, {})["cpu"] = f"{round(cpu * 1000)}m"
        if mib is not None:
            resources.setdefault(side, {})["memory"] = f"{mib}Mi"
    return resources


def format_tolerations(here: Kubernetes) -> list[dict[str, Any]]:
    """The taints that pods put up with, as Kubernetes writes them."""
    return [
        toleration.model_dump(exclude_none=True)
        | {"operator": "Exists" if toleration.value is None else "Equal"}
        for toleration in here.tolerations
    ]


def _build_affinity(part: Part) -> dict[str, Any]:
    """Put a neighbour on its server's node; client and proxy away from servers if possible."""
    if part.where.beside is not None:
        term = build_term({"benchbook/part": part.where.beside})
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if part.kind == "server":
        return {}
    term = {"weight": 100, "podAffinityTerm": build_term({"benchbook/part": part.name}, "NotIn")}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def build_term(labels: Mapping[str, str], operator: str = "In") -> dict[str, Any]:
    """Term of an affinity: a node's pods that have labels, with `NotIn` those without them."""
    terms = [{"key": key, "operator": operator, "values": [value]} for key, value in labels.items()]
    return {"labelSelector": {"matchExpressions": terms}, "topologyKey": HOSTNAME}


def render_yaml(manifests: list[dict[str, Any]]) -> str:
    """Manifests as YAML documents."""
    yaml, stream = YAML(), io.StringIO()
    yaml.explicit_start = True
    yaml.width = 110
    yaml.dump_all(map(_to_plain, manifests), stream)
    return stream.getvalue()


def _to_plain(value: Any) -> Any:
    """Plain data without shared parts, and files with their lines kept."""
    if isinstance(value, Mapping):
        return {key: _to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    return LiteralScalarString(value) if isinstance(value, str) and "\n" in value else value
