"""Study and arm → manifests, as plain data and as YAML: pure, so that all that is applied can be read first.

None of them holds an account: agents write these into the pods.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from benchbook.core.study import Study
from benchbook.sites.kube import pods
from benchbook.sites.kube.layout import SERVICE_PORT, Chain, Names, Part, asked, service_of
from benchbook.sites.proxies import pod as proxy_pod


def of_study(names: Names) -> list[dict[str, Any]]:
    """Return what all arms share: the namespace."""
    whole = {"name": names.namespace, "labels": dict(names.labels)}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": whole}]


def of_server(study: Study, names: Names, server: Part) -> list[dict[str, Any]]:
    """Return a server's Service, and the StatefulSet that holds it."""
    storage, whole = asked(study).storage, stateful(study, names, server)
    if storage.storage_class is not None:
        whole["spec"]["volumeClaimTemplates"] = [
            {
                "metadata": {"name": "data", "labels": dict(names.labels)},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": storage.storage_class,
                    "resources": {"requests": {"storage": f"{storage.size_gib}Gi"}},
                },
            }
        ]
    return [service(names, server), whole]


def service(names: Names, server: Part, balancer: str | None = None) -> dict[str, Any]:
    """Return the Service of a server; under the name `balancer` one that is reached from outside."""
    spec = {
        "type": "LoadBalancer" if balancer else "ClusterIP",
        "selector": {"benchbook/lab": dict(names.labels)["benchbook/lab"], "benchbook/part": server.name},
        "ports": [{"name": "sql", "port": SERVICE_PORT, "targetPort": server.port, "protocol": "TCP"}],
    }
    return names.manifest("Service", balancer or server.name, server.name, spec=spec)


def of_arm(study: Study, names: Names, chain: Chain) -> list[dict[str, Any]]:
    """Return all manifests of one arm; its proxy leads to the server's Service."""
    found = [manifest for server in chain.servers for manifest in of_server(study, names, server)]
    if chain.arm.access == "load_balancer":
        found.append(service(names, chain.server, service_of(chain)))
    if chain.proxy is not None:
        found += of_proxy(study, names, chain.proxy)
    for part in (chain.neighbour, *chain.clients):
        if part is not None:
            found.append(stateful(study, names, part))
    return found


def stateful(
    study: Study, names: Names, part: Part, files: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the StatefulSet that holds a part's pod; `files` are those of its settings."""
    spec = pods.spec(study, part)
    # Whoever waits for the pod must know it from the one that is about to be replaced.
    whole = json.dumps([dict(files), spec], sort_keys=True).encode()
    labels = dict(names.labels) | {"benchbook/part": part.name}
    metadata = {"annotations": {pods.DIGEST: hashlib.sha256(whole).hexdigest()}, "labels": labels}
    held = {
        "replicas": 1,
        "serviceName": part.name,
        "selector": {"matchLabels": labels},
        "template": {"metadata": metadata, "spec": spec},
    }
    return names.manifest("StatefulSet", part.name, part.name, "apps/v1", spec=held)


def of_proxy(study: Study, names: Names, proxy: Part, address: str | None = None) -> list[dict[str, Any]]:
    """Return a proxy's settings and what holds it; it leads to `address`, None: to the server's Service."""
    assert proxy.to is not None
    leads_to = address or f"{proxy.to.name}.{names.namespace}.svc"
    behind, cores = proxy.to.port if address else SERVICE_PORT, proxy.where.resources.limit_cpu
    files = proxy_pod.of(proxy.program).files(proxy.port, leads_to, behind, cores)
    return [
        names.manifest("ConfigMap", proxy.name, proxy.name, data=files),
        stateful(study, names, proxy, files),
    ]


def text(manifests: list[dict[str, Any]]) -> str:
    """Return manifests as YAML documents."""
    yaml, stream = YAML(), io.StringIO()
    yaml.explicit_start = True
    yaml.width = 110
    for manifest in manifests:
        yaml.dump(_readable(manifest), stream)
    return stream.getvalue()


def _readable(value: Any) -> Any:
    """Return plain data in which nothing is shared and files keep their lines."""
    if isinstance(value, Mapping):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return LiteralScalarString(value) if isinstance(value, str) and "\n" in value else value
