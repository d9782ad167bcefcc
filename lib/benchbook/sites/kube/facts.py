"""A cluster's report of itself and of the nodes of an arm; None for things it does not show."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from kubernetes import client
from kubernetes.utils import parse_quantity

from benchbook.core.util.errors import SiteError
from benchbook.sites.kube.api import KubernetesCluster

# Labels that tell of a node, the first that it has.
LABELS = {
    "machine_type": ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"),
    "zone": ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    "pool": ("benchbook-pool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "agentpool"),
}
# Known by the names of what runs in kube-system on each node.
NETWORKS = (
    "calico", "cilium", "flannel", "kindnet", "weave", "aws-node", "azure-cni", "netd", "antrea",
    "canal",
)  # fmt: skip
# Of the kubelet's settings those that change what a pod gets.
KUBELET = (
    "cpuManagerPolicy", "cpuCFSQuota", "cpuCFSQuotaPeriod", "topologyManagerPolicy",
    "memoryManagerPolicy", "cgroupDriver", "cgroupsPerQOS", "maxPods", "evictionHard",
    "systemReserved", "kubeReserved", "failSwapOn", "allowedUnsafeSysctls",
)  # fmt: skip
NOT_AVAILABLE = "not available"


def describe_cluster(of: KubernetesCluster) -> dict[str, Any]:
    """Version, pod networks and balancers of a cluster, as far as they can be seen."""
    pods = _list_items(of, of.core.list_namespaced_pod, "kube-system")
    networks = {name for pod in pods or () for name in NETWORKS if name in pod.metadata.name}
    network = ", ".join(sorted(networks)) or None
    return {"version": of.version(), "network": network, "load_balancers": has_balancers(of)}


def describe_node(of: KubernetesCluster, name: str) -> dict[str, Any]:
    """Facts of a node: machine type, zone, system, versions, kubelet's settings, proxy mode."""
    try:
        result = of.ask(of.core.read_node, name)
    except SiteError:
        return {"name": name, "rights": f"{NOT_AVAILABLE}: nodes may not be looked at"}
    labels, info = result.metadata.labels or {}, result.status.node_info
    return {
        **{key: next(filter(None, map(labels.get, names)), None) for key, names in LABELS.items()},
        "image": info.os_image,
        "kernel": info.kernel_version,
        "architecture": info.architecture,
        "runtime": info.container_runtime_version,
        "kubelet": info.kubelet_version,
        "cores": float(parse_quantity(result.status.capacity["cpu"])),
        "memory_mib": int(parse_quantity(result.status.capacity["memory"])) >> 20,
        "allocatable_cores": float(parse_quantity(result.status.allocatable["cpu"])),
        "kubelet_settings": parse_kubelet(of.raw(f"/api/v1/nodes/{name}/proxy/configz")),
        "kube_proxy": _proxy_mode(of, name),
    }


def parse_kubelet(statement: str | None) -> dict[str, Any] | str:
    """The kubelet's settings that matter, from its answer at `configz`."""
    try:
        result = json.loads(statement or "")["kubeletconfig"]
    except (ValueError, KeyError, TypeError):
        return f"{NOT_AVAILABLE}: the kubelet's settings may not be looked at"
    return {key: result[key] for key in KUBELET if key in result}


def has_balancers(of: KubernetesCluster) -> bool | None:
    """True if a provider behind the cluster gives load balancers; None if it can't be seen."""
    nodes = _list_items(of, of.core.list_node)
    services = _list_items(of, of.core.list_service_for_all_namespaces)
    if nodes is None or services is None:
        return None
    balancers = filter(None, (service.status.load_balancer for service in services))
    return any(it.ingress for it in balancers) or any(node.spec.provider_id for node in nodes)


def cpu_managers(of: KubernetesCluster, selector: Mapping[str, str]) -> dict[str, str | None]:
    """CPU manager of the kubelet of each node with some labels; None if it is not shown."""
    nodes = _list_items(of, of.core.list_node, label_selector=_format_selector(selector))
    names = [node.metadata.name for node in nodes or ()]
    statements = {name: parse_kubelet(of.raw(f"/api/v1/nodes/{name}/proxy/configz")) for name in names}
    return {
        name: item.get("cpuManagerPolicy", "none") if isinstance(item, dict) else None
        for name, item in statements.items()
    }


def find_shortage(
    of: KubernetesCluster, wanted: float, selector: Mapping[str, str], namespace: str
) -> str | None:
    """Reason that no node with some labels has room for a pod of so many cores, or None."""
    nodes = _list_items(of, of.core.list_node, label_selector=_format_selector(selector))
    pods = _list_items(of, of.core.list_pod_for_all_namespaces)
    if nodes is None or pods is None:
        return None
    if not nodes:
        return f"no node has the labels {_format_selector(selector)}"
    taken: dict[str, float] = defaultdict(float)
    for pod in pods:
        if pod.metadata.namespace != namespace and pod.status.phase in ("Pending", "Running"):
            taken[str(pod.spec.node_name)] += _sum_cores(pod)

    def free(node: Any) -> float:
        return float(parse_quantity(node.status.allocatable["cpu"])) - taken[node.metadata.name]

    most = max(nodes, key=free)
    if free(most) >= wanted:
        return None
    has = f"has {max(0.0, free(most)):.2f} of its {float(parse_quantity(most.status.capacity['cpu'])):g}"
    return (
        f"insufficient CPU: {wanted:g} cores are asked for, and {most.metadata.name}, which has most left, "
        f"{has}; write that or less"
    )


def _sum_cores(pod: Any) -> float:
    """Cores that the containers of a pod ask for."""
    requests = [(item.resources and item.resources.requests) or {} for item in pod.spec.containers]
    return sum(float(parse_quantity(request.get("cpu", "0"))) for request in requests)


def list_addresses(of: KubernetesCluster) -> frozenset[str]:
    """All addresses and names of the nodes; none if they may not be looked at."""
    nodes = _list_items(of, of.core.list_node)
    return frozenset(address.address for node in nodes or () for address in node.status.addresses or ())


def operator_version(of: KubernetesCluster) -> str | None:
    """Version of the TiDB Operator that runs in a cluster, by its image; None if none is seen."""
    label = "app.kubernetes.io/name=tidb-operator,app.kubernetes.io/component=controller-manager"
    read = client.AppsV1Api(of.api).list_deployment_for_all_namespaces
    items = _list_items(of, read, label_selector=label)
    images = [container.image for item in items or () for container in item.spec.template.spec.containers]
    tags = [re.search(r":v?([0-9]+\.[0-9]+\.[0-9]+)", image) for image in images]
    return next((tag[1] for tag in tags if tag), None)


def _list_items(
    of: KubernetesCluster, ask: Callable[..., Any], *words: str, **options: str
) -> list[Any] | None:
    """Items that the API lists; None if they may not be looked at."""
    try:
        return list(of.ask(ask, *words, **options).items)
    except SiteError:
        return None


def _format_selector(selector: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


def _proxy_mode(of: KubernetesCluster, name: str) -> str | None:
    """Implementation of Services: kube-proxy tells it on its own port, or its ConfigMap does."""
    statement = (of.raw(f"/api/v1/nodes/{name}:10249/proxy/proxyMode") or "").strip()
    if re.fullmatch(r"[a-z]+", statement):
        return statement
    statement = of.raw("/api/v1/namespaces/kube-system/configmaps/kube-proxy") or ""
    match = re.search(r'mode:\s*\\?"?([a-z]+)', statement)
    return match[1] if match else None
