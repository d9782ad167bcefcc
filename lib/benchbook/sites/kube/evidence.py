"""Evidence of an arm in a cluster, by its server, its pods, their nodes and the cluster."""

from collections.abc import Mapping
from typing import Any

from benchbook.core.artifacts.applied_config import digest_text
from benchbook.core.study import descriptors
from benchbook.core.util.errors import SiteError, require_value
from benchbook.sites.agent.facts import VERSION, find_first_group
from benchbook.sites.kube import wait
from benchbook.sites.kube.facts import describe_cluster
from benchbook.sites.kube.placement import Chain, count_outside, in_pods, pod_of, service_of
from benchbook.sites.kube.runtime import KubernetesRuntime
from benchbook.sites.processes import procfs

# Told of every server, since the sources set them.
SYSCTLS = ("net.core.somaxconn", "net.ipv4.tcp_syncookies", "vm.swappiness")


def describe_arrangement(
    arms: KubernetesRuntime, chain: Chain, servers: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Facts of an arm's pods, their nodes and the cluster; `servers` are those of servers after the first."""
    server, setting = arms.get(chain.server), chain.arm
    lives = server.ensure()
    mine = arms.pod(chain.client) if chain.clients else None
    node = arms.node(lives.spec.node_name)
    client_node, sysbench = _inspect_client(arms, chain, lives, mine)
    several = _describe_others(arms, chain, lives.spec.node_name, servers)
    made_by = f"kube-proxy, {node.get('kube_proxy') or 'its mode is not seen'}"
    return {
        "site": {"kind": "kubernetes", **_locate_client(arms, chain, lives, mine)},
        "service": {"made_by": made_by} if service_of(chain) is not None else None,
        "qos": setting.qos,
        "qos_class": lives.status.qos_class,
        "resources": _format_resources(lives.spec.containers[0].resources),
        "neighbour": setting.neighbour.model_dump() if setting.neighbour is not None else None,
        **({"cores": arms.cores_in_force(chain)} if arms.space.here.split_cores else {}),
        **several,
        "cluster": describe_cluster(arms.space.cluster),
        "node": node,
        "client_node": client_node,
        "machine": {
            "cpu_model": procfs.parse_processor(server.run("cat", "/proc/cpuinfo")),
            "cores": node.get("cores"),
            "memory_mib": node.get("memory_mib"),
            "kernel": server.run("uname", "-r"),
            "sysbench": sysbench,
        },
        "kernel": _check_kernel(arms, server, setting.network),
        "moment": {
            "manifests": {name: digest_text(text) for name, text in list_manifests(arms, chain)},
            "server_node": lives.spec.node_name,
            "client_node": mine.spec.node_name if mine is not None else None,
            "image": lives.status.container_statuses[0].image_id,
            "load": server.run("cat", "/proc/loadavg"),
        },
    }


def collect_identity(arms: KubernetesRuntime, chain: Chain) -> dict[str, Any]:
    """Marks that tell an arm's pods from any others, and the target of its Service."""
    identity = arms.get(chain.server).identity()
    identity |= {part.name: arms.get(part).identity() for part in chain.others}
    for part in (chain.proxy, *chain.clients):
        if part is None:
            continue
        kind = part.name if part in chain.clients[1:] else part.kind
        pod = arms.space.look(pod_of(part))
        messages = wait.pod_identity(pod) if pod is not None else {"pod": "gone"}
        identity |= {f"{kind}_{key}": messages.get(key) for key in ("pod", "node", "restarts")}
    if (service := service_of(chain)) is not None:
        name, _, _ = arms.get(chain.server).service(service)
        identity["service_leads_to"] = arms.ends(name)
    return identity


def list_manifests(arms: KubernetesRuntime, chain: Chain) -> list[tuple[str, str]]:
    """Applied manifests of an arm, a file a part, with the contents of Secrets left out."""
    names = ["study", *(part.name for part in in_pods(chain))]
    names += [hop.name for hop in chain.hops if hop.name not in names]
    return [(f"{name}.yaml", text) for name in names if (text := arms.space.text(name))]


def _describe_others(
    arms: KubernetesRuntime, chain: Chain, node: str, servers: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Versions and places of servers after the first, and places of such clients."""
    if not chain.others and not chain.clients[1:]:
        return {}
    pods = {part.name: arms.get(part).ensure() for part in chain.others}
    pods |= {part.name: arms.pod(part) for part in chain.clients[1:]}
    words = {True: "on the first server's node", False: "on another node"}
    places = {name: words[pod.spec.node_name == node] for name, pod in pods.items()}
    others = {name: {"version": of["version"], "place": places.pop(name)} for name, of in servers.items()}
    return {"servers": others, "clients": places}


def describe_proxy(arms: KubernetesRuntime, chain: Chain) -> dict[str, Any] | None:
    """Facts of an arm's proxy, by its pod."""
    if chain.proxy is None:
        return None
    pod, of = arms.pod(chain.proxy), descriptors.find_proxy(chain.proxy.program)
    output = arms.space.run(pod.metadata.name, of.programs[0], *of.version_by)
    return {
        "name": of.name,
        "version": find_first_group(VERSION, output),
        "image": arms.space.here.images.proxy,
        "resources": _format_resources(pod.spec.containers[0].resources),
    }


def _check_kernel(arms: KubernetesRuntime, server: Any, network: str) -> dict[str, Any]:
    """Kernel settings and open files of the server's pod; SiteError if others were asked for."""
    gke = arms.space.here.gke
    wanted = dict(gke.sysctls) if gke is not None else {}
    if gke is not None and gke.open_files is not None:
        wanted["open_files"] = gke.open_files
    kernel: dict[str, Any] = {}
    for name in sorted({*SYSCTLS, *wanted} - {"open_files"}):
        text = server.run("sh", "-c", f"cat /proc/sys/{name.replace('.', '/')} 2>/dev/null || true").strip()
        kernel[name] = int(text) if text.isdigit() else text or None
    limit = find_first_group(r"^Max open files\s+(\d+)", server.run("cat", "/proc/1/limits"))
    kernel["open_files"] = int(limit) if limit is not None else None
    for key, value in wanted.items():
        # A pod's network has settings of its own.
        is_its_own = network != "host" and key.startswith("net.")
        if not is_its_own and kernel[key] not in (None, value):
            raise SiteError(
                f"site.kubernetes.gke: {key}: {value} was asked for and the server's pod has {kernel[key]}; "
                "run `benchbook cluster STUDY up` again, and `make down` so that pods start again"
            )
    return kernel


def _inspect_client(
    arms: KubernetesRuntime, chain: Chain, lives: Any, mine: Any | None
) -> tuple[dict[str, Any] | None, str | None]:
    """Facts of the client's host or node, None without a pod of its own, and sysbench's version there."""
    if count_outside(chain):
        outside = require_value(arms.outside)
        facts = outside.look(outside.names[0]).facts
        return facts, facts["sysbench"]
    sysbench = arms.space.run((mine or lives).metadata.name, "sysbench", "--version")
    node = arms.node(mine.spec.node_name) if mine is not None else None
    return node, find_first_group(VERSION, sysbench)


def _locate_client(arms: KubernetesRuntime, chain: Chain, lives: Any, mine: Any | None) -> dict[str, str]:
    if count_outside(chain):
        return {"client": "on a host outside the cluster", "client_network": "the host's"}
    if mine is None:
        return {"client": "in the server's container", "client_network": "the server's socket"}
    is_beside = lives.spec.node_name == mine.spec.node_name
    place = "on the server's node" if is_beside else "on another node"
    return {"client": place, "client_network": "pod"}


def _format_resources(resources: Any) -> dict[str, Any] | None:
    requests = {"requests": resources.requests, "limits": resources.limits} if resources is not None else {}
    return {key: dict(value) for key, value in requests.items() if value} or None
