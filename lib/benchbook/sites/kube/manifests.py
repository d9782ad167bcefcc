"""Study and arm → manifests, as plain data and as YAML: pure, so that all that is applied can be read first.

None of them holds an account: agents write these into the pods.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from benchbook.core.study import Study
from benchbook.sites.kube import pods
from benchbook.sites.kube import proxy as proxies
from benchbook.sites.kube.layout import SERVICE_PORT, Chain, Names, Part, asked, service_of


def of_study(names: Names) -> list[dict[str, Any]]:
    """Return what all arms share: the namespace."""
    whole = {"name": names.namespace, "labels": dict(names.labels)}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": whole}]


def of_server(study: Study, names: Names, server: Part) -> list[dict[str, Any]]:
    """Return a server's Service, and the StatefulSet that holds it."""
    template = pods.server(study, server, digest({}))
    storage = asked(study).storage
    whole = _stateful(names, server, template)
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


def of_arm(study: Study, names: Names, chain: Chain, address: str | None = None) -> list[dict[str, Any]]:
    """Return all manifests of one arm; `address` is what a proxy leads to, None the server's Service."""
    found = [manifest for server in chain.servers for manifest in of_server(study, names, server)]
    if chain.arm.access == "load_balancer":
        found.append(service(names, chain.server, service_of(chain)))
    if chain.proxy is not None:
        found += of_proxy(study, names, chain.proxy, address)
    for part in (chain.neighbour, *chain.clients):
        if part is not None:
            found.append(of_client(study, names, part))
    return found


def of_client(study: Study, names: Names, part: Part) -> dict[str, Any]:
    """Return the StatefulSet that holds a pod in which load is made."""
    return _stateful(names, part, pods.client(study, part, digest({})))


def of_proxy(study: Study, names: Names, proxy: Part, address: str | None) -> list[dict[str, Any]]:
    """Return a proxy's settings and the StatefulSet that holds it."""
    assert proxy.to is not None
    leads_to = address or f"{proxy.to.name}.{names.namespace}.svc"
    behind, cores = proxy.to.port if address else SERVICE_PORT, proxy.where.room.limit_cpu
    files = proxies.of(proxy.program).files(proxy.port, leads_to, behind, cores)
    return [
        names.manifest("ConfigMap", proxy.name, proxy.name, data=files),
        _stateful(names, proxy, pods.proxy(study, proxy, digest(files))),
    ]


def digest(files: Mapping[str, str]) -> str:
    """Return the digest of a pod's files."""
    return hashlib.sha256(json.dumps(dict(files), sort_keys=True).encode()).hexdigest()


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


def _stateful(names: Names, part: Part, template: dict[str, Any]) -> dict[str, Any]:
    labels = dict(names.labels) | {"benchbook/part": part.name}
    # Whoever waits for the pod must know it from the one that is about to be replaced.
    whole = json.dumps([template["metadata"]["annotations"][pods.DIGEST], template["spec"]], sort_keys=True)
    digest = hashlib.sha256(whole.encode()).hexdigest()
    template = template | {"metadata": {"annotations": {pods.DIGEST: digest}, "labels": labels}}
    spec = {
        "replicas": 1,
        "serviceName": part.name,
        "selector": {"matchLabels": labels},
        "template": template,
    }
    return names.manifest("StatefulSet", part.name, part.name, "apps/v1", spec=spec)
