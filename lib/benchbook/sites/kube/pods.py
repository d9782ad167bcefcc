"""The pods of a study: what each container runs, mounts, may use, and where it may be put. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchbook.core.study import Study
from benchbook.core.study_kubernetes import Kubernetes
from benchbook.sites.kube import proxy as proxies
from benchbook.sites.kube.layout import Part, Room, asked

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


def server(study: Study, part: Part, digest: str) -> dict[str, Any]:
    """Return the template of a server's pod, which waits to be told; `digest` is that of no files."""
    here = asked(study)
    container = {
        "name": "server",
        "image": here.images.server,
        "imagePullPolicy": "IfNotPresent",
        "command": OF_SERVER,
        **_ports(part),
        "resources": resources(part.where.room),
        "volumeMounts": [{"name": "data", "mountPath": HOME}],
    }
    volumes: list[dict[str, Any]] = []
    if here.storage.storage_class is None:
        volumes = [{"name": "data", "emptyDir": {}}]
    return _template(here, part, container, volumes, SERVER_GRACE_S, digest)


def proxy(study: Study, part: Part, digest: str) -> dict[str, Any]:
    """Return the template of a proxy's pod; `digest` is that of its settings."""
    here = asked(study)
    container = {
        "name": "proxy",
        "image": here.images.proxy,
        "imagePullPolicy": "IfNotPresent",
        "command": proxies.of(part.program).command(CONFIG),
        "ports": [{"name": "sql", "containerPort": part.port, "protocol": "TCP"}],
        "resources": resources(part.where.room),
        "volumeMounts": [{"name": "config", "mountPath": CONFIG, "readOnly": True}],
    }
    volumes = [{"name": "config", "configMap": {"name": part.name}}]
    return _template(here, part, container, volumes, GRACE_S, digest)


def client(study: Study, part: Part, digest: str) -> dict[str, Any]:
    """Return the template of a pod in which load is made: the client's, or the neighbour's."""
    here = asked(study)
    container = {
        "name": part.kind,
        "image": here.images.client,
        "imagePullPolicy": "IfNotPresent",
        "command": IDLE,
        "resources": resources(part.where.room),
        "volumeMounts": [{"name": "jobs", "mountPath": HOME}],
    }
    return _template(here, part, container, [{"name": "jobs", "emptyDir": {}}], GRACE_S, digest)


def resources(room: Room) -> dict[str, Any]:
    """Return requests and limits as Kubernetes writes them; nothing said is nothing asked."""
    sides = {
        "requests": {"cpu": room.request_cpu, "memory": room.request_mib},
        "limits": {"cpu": room.limit_cpu, "memory": room.limit_mib},
    }
    written = {
        side: {
            key: f"{round(value * 1000)}m" if key == "cpu" else f"{value}Mi"
            for key, value in asked_for.items()
            if value is not None
        }
        for side, asked_for in sides.items()
    }
    return {side: values for side, values in written.items() if values}


def _ports(part: Part) -> dict[str, Any]:
    """Return a server's port for people to read; one of the node would be reserved even in its sleep."""
    if part.where.network == "host":
        return {}
    return {"ports": [{"name": "sql", "containerPort": part.port, "protocol": "TCP"}]}


def tolerations(here: Kubernetes) -> list[dict[str, Any]]:
    """Return the taints that pods put up with, as Kubernetes writes them."""
    return [
        {
            "key": one.key,
            "operator": "Equal" if one.value is not None else "Exists",
            **({"value": one.value} if one.value is not None else {}),
            **({"effect": one.effect} if one.effect is not None else {}),
        }
        for one in here.tolerations
    ]


def _template(
    here: Kubernetes,
    part: Part,
    container: dict[str, Any],
    volumes: list[dict[str, Any]],
    grace_s: int,
    digest: str,
) -> dict[str, Any]:
    affinity, is_host = _affinity(part), part.where.network == "host"
    spec = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_s,
        "containers": [container],
        "volumes": volumes,
        **({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if is_host else {}),
        **({"nodeSelector": dict(part.where.nodes)} if part.where.nodes else {}),
        **({"tolerations": tolerations(here)} if here.tolerations else {}),
        **({"affinity": affinity} if affinity else {}),
    }
    return {"metadata": {"annotations": {DIGEST: digest}}, "spec": spec}


def _affinity(part: Part) -> dict[str, Any]:
    """Put a neighbour on its server's node; client and proxy away from servers where there is a choice."""
    if part.where.beside is not None:
        term = _term("In", part.where.beside)
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if part.kind == "server":
        return {}
    term = _term("NotIn", part.name)
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
        }
    }


def _term(operator: str, part: str) -> dict[str, Any]:
    asked = {"key": "benchbook/part", "operator": operator, "values": [part]}
    return {"labelSelector": {"matchExpressions": [asked]}, "topologyKey": HOSTNAME}
