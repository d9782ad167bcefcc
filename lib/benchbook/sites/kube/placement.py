"""From a study's arms to the parts that make them in a cluster; pure, and shared as on one machine."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.core.study import descriptors
from benchbook.core.study.engines import data_variant
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_arm import Arm
from benchbook.core.study.study_kubernetes import Kubernetes, Role
from benchbook.sites.topology import parts
from benchbook.sites.topology.parts import Arranged

SERVICE_PORT = 3306
# What a Service has after its server's name, by the way of access that it makes.
SERVICES = {"service": "", "load_balancer": "-balancer"}
MANAGER = "benchbook"
# The file of a lab that tells where its namespace is.
RECORD = "cluster.json"
# Weight of one core, as Kubernetes turns requests into shares.
CORE_SHARES = 1024
NAME_BYTES = 63

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ResourceLimits:
    """Resources of a pod: `requests` and `limits` in cores and MiB; None: not specified."""

    request_cpu: float | None = None
    request_mib: int | None = None
    limit_cpu: float | None = None
    limit_mib: int | None = None

    @property
    def qos_class(self) -> str:
        """The class that Kubernetes gives a pod with one such container."""
        pairs = ((self.request_cpu, self.limit_cpu), (self.request_mib, self.limit_mib))
        if not any(map(any, pairs)):
            return "BestEffort"
        return "Guaranteed" if all(pair and pair == other for pair, other in pairs) else "Burstable"


@dataclass(frozen=True)
class KubernetesPlacement:
    """Terms of a part's pod; a StatefulSet of the part's name holds it."""

    network: str = "pod"
    resources: ResourceLimits = ResourceLimits()
    nodes: Labels = ()
    spread: bool = False
    apart: str = ""
    beside: str | None = None


Part = parts.ChainPart[KubernetesPlacement]
Chain = parts.Chain[KubernetesPlacement]


def pod_of(part: Part) -> str:
    """Name of a part's pod."""
    return f"{part.name}-0"


def service_of(chain: Chain) -> str | None:
    """Name of the Service between client and server, or None."""
    chain_part = chain.hop("service")
    return chain_part.name if chain_part is not None else None


def in_pods(chain: Chain) -> tuple[Part, ...]:
    """Parts of an arm that are pods, from the servers to the clients."""
    chain_parts = (*chain.servers, chain.proxy, chain.neighbour, *chain.clients)
    return tuple(part for part in chain_parts if part is not None)


def count_outside(chain: Chain) -> int:
    """Number of an arm's clients on hosts outside: from inside a balancer leads to the Service."""
    return chain.arm.clients if chain.arm.access == "load_balancer" else 0


def count_inside(chain: Chain) -> int:
    """Number of an arm's clients that run in its servers' containers."""
    return 0 if chain.clients or count_outside(chain) else chain.arm.clients


@dataclass(frozen=True)
class StudyNames:
    """Marks of everything of one study: the namespace, and labels that only we give."""

    namespace: str
    labels: Labels

    @property
    def selector(self) -> str:
        return ",".join(f"{key}={value}" for key, value in self.labels)

    def manifest(self, kind: str, name: str, part: str = "", api: str = "v1", **rest: Any) -> dict[str, Any]:
        """A manifest of the namespace with our labels, and with that of its `part` if it has one."""
        labels = dict(self.labels) | ({"benchbook/part": part} if part else {})
        metadata = {"name": name, "namespace": self.namespace, "labels": labels}
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def build_names(study: str, token: str) -> StudyNames:
    """Namespace and labels of a study; `token` is its lab's, and nobody else has it."""
    id = token[:8]
    room = NAME_BYTES - len(MANAGER) - len(id) - 2
    middle = re.sub(r"[^a-z0-9]+", "-", study.lower())[:room].strip("-") or "study"
    label = study[:NAME_BYTES].strip("-_.")
    tags = {"app.kubernetes.io/managed-by": MANAGER, "benchbook/study": label, "benchbook/lab": token}
    return StudyNames(f"{MANAGER}-{middle}-{id}", tuple(sorted(tags.items())))


def get_section(study: StudySpec) -> Kubernetes:
    """The study's section for clusters; its defaults if it has none."""
    return study.site.kubernetes or Kubernetes()


def build_chains(study: StudySpec) -> dict[str, Chain]:
    """Parts of each arm."""
    here, arranged = get_section(study), Arranged[KubernetesPlacement](study.site.port)
    of_engine = descriptors.find_engine(study.engine.name).ports

    def share(
        kind: str, where: KubernetesPlacement, port: int | None = None, number: int = 0, **rest: Any
    ) -> Part:
        ports = of_engine if kind == "server" else 1
        return arranged.once(kind, kind, ports, apart=number, where=where, port=port, **rest)

    chains = {}
    for name, arm in study.arms.items():
        nodes = select_nodes(here, arm)
        spread = arm.placement is not None and arm.placement.spread
        apart = _describe_difference(arm, here, nodes)
        resources = choose_resources(arm, here)
        where = KubernetesPlacement(arm.network, resources, nodes.get("server", ()), spread, apart)
        servers = tuple(share("server", where, number=number) for number in range(arm.servers))
        hops: list[Part] = []
        if arm.access in SERVICES:
            name_of = servers[0].name + SERVICES[arm.access]
            hops.append(Part(name_of, "service", SERVICE_PORT, KubernetesPlacement(), to=servers[0]))
        if arm.access in descriptors.load_proxies():
            quota = arm.cpu["proxy"].quota if "proxy" in arm.cpu else None
            limited = ResourceLimits(request_cpu=quota, limit_cpu=quota)
            where = KubernetesPlacement("pod", limited, nodes.get("proxy", ()))
            hops.append(share("proxy", where, to=servers[0], program=arm.access))
        quota = arm.cpu["client"].quota if "client" in arm.cpu else here.client.cpu
        room = (quota, here.client.memory_mib)
        where = KubernetesPlacement("pod", ResourceLimits(*room, *room), nodes.get("client", ()))
        has_pods = arm.access != "load_balancer" and here.client_in != "server"
        clients = [share("client", where, 0, number) for number in range(arm.clients if has_pods else 0)]
        neighbour = _place_neighbour(arm, servers[0], share)
        chains[name] = Chain(arm, servers, tuple(hops), tuple(clients), neighbour)
    return chains


def select_nodes(here: Kubernetes, arm: Arm) -> dict[Role, Labels]:
    """Labels that nodes of each role must have for an arm, if any are asked for."""
    return {role: tuple(sorted(labels.items())) for role, labels in here.nodes_of(arm).items()}


def halve_cores(cores: int) -> dict[str, range]:
    """Halves of a node's cores: for servers, and for clients and proxies."""
    first, second = range(cores // 2), range(cores // 2, cores)
    return {"server": first, "client": second, "proxy": second}


def format_cores(cores: range) -> str:
    """Cores as `taskset` and the kernel write them."""
    return f"{cores[0]}-{cores[-1]}"


def choose_resources(arm: Arm, here: Kubernetes) -> ResourceLimits:
    """Resources of an arm's server: unspecified, equal requests and limits, or a limit alone."""
    quota = arm.cpu["server"].quota if "server" in arm.cpu else None
    if (pod_resources := arm.resources) is not None:
        low, top = pod_resources.requests, pod_resources.limits
        return ResourceLimits(low.cpu or top.cpu, low.memory_mib or top.memory_mib, top.cpu, top.memory_mib)
    if arm.qos == "guaranteed":
        room = (quota or here.server.cpu, here.server.memory_mib)
        return ResourceLimits(*room, *room)
    return ResourceLimits(request_cpu=quota, limit_cpu=quota)


def _describe_difference(arm: Arm, here: Kubernetes, nodes: Mapping[Role, Labels]) -> str:
    """Inputs that give an arm's server a pod of its own: a TiDB cluster's settings, else its event."""
    if here.tidb is None:
        return data_variant(arm)
    placed = {role: labels for role, labels in nodes.items() if role in ("pd", "tikv")}
    settings = arm.parts.model_dump(exclude_defaults=True) if arm.parts is not None else {}
    return json.dumps([placed, settings], sort_keys=True)


def _place_neighbour(arm: Arm, server: Part, share: Any) -> Part | None:
    if arm.neighbour is None:
        return None
    # Two shares are what a pod without requests has.
    cores = arm.neighbour.shares / CORE_SHARES if arm.neighbour.shares > 2 else None
    limits = ResourceLimits(request_cpu=cores)
    return share("neighbour", KubernetesPlacement("pod", limits, server.where.nodes, beside=server.name), 0)
