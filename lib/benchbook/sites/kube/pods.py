"""The pods of a study: what each container runs, mounts, may use, and where it may be put. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchbook.core.study import Study
from benchbook.core.study_kubernetes import Kubernetes
from benchbook.sites.kube.layout import Part, Resources, asked
from benchbook.sites.proxies import pod as proxy_pod

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


def spec(study: Study, part: Part) -> dict[str, Any]:
    """Return what a part's pod is made of: a server waits to be told, a client for its agent."""
    here, is_host = asked(study), part.where.network == "host"
    image, command, grace_s = here.images.client, IDLE, GRACE_S
    mount: dict[str, Any] = {"name": "data", "mountPath": HOME}
    volume: dict[str, Any] = {"name": "data", "emptyDir": {}}
    if part.kind == "server":
        image, command, grace_s = here.images.server, OF_SERVER, SERVER_GRACE_S
    elif part.kind == "proxy":
        image, command = here.images.proxy, proxy_pod.of(part.program).command(CONFIG)
        mount = {"name": "config", "mountPath": CONFIG, "readOnly": True}
        volume = {"name": "config", "configMap": {"name": part.name}}
    # For people to read; one of the node would be reserved even in its sleep.
    has_port = part.kind in ("server", "proxy") and not is_host
    port = {"name": "sql", "containerPort": part.port, "protocol": "TCP"}
    container = {
        "name": part.kind,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        **({"ports": [port]} if has_port else {}),
        "resources": resources(part.where.resources),
        "volumeMounts": [mount],
    }
    is_claimed = part.kind == "server" and here.storage.storage_class is not None
    affinity = _affinity(part)
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_s,
        "containers": [container],
        "volumes": [] if is_claimed else [volume],
        **({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if is_host else {}),
        **({"nodeSelector": dict(part.where.nodes)} if part.where.nodes else {}),
        **({"tolerations": tolerations(here)} if here.tolerations else {}),
        **({"affinity": affinity} if affinity else {}),
    }


def resources(given: Resources) -> dict[str, Any]:
    """Return requests and limits as Kubernetes writes them; nothing said is nothing asked."""
    found: dict[str, dict[str, str]] = {}
    for side, cpu, mib in (
        ("requests", given.request_cpu, given.request_mib),
        ("limits", given.limit_cpu, given.limit_mib),
    ):
        asked_for = {"cpu": f"{round(cpu * 1000)}m"} if cpu is not None else {}
        asked_for |= {"memory": f"{mib}Mi"} if mib is not None else {}
        found |= {side: asked_for} if asked_for else {}
    return found


def tolerations(here: Kubernetes) -> list[dict[str, Any]]:
    """Return the taints that pods put up with, as Kubernetes writes them."""
    return [
        one.model_dump(exclude_none=True) | {"operator": "Exists" if one.value is None else "Equal"}
        for one in here.tolerations
    ]


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
