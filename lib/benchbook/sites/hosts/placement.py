"""From a study's arms and an inventory to parts on hosts; pure. See `obstacles` for refusals."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.core.study import descriptors
from benchbook.core.study.engines import data_variant, engine_of
from benchbook.core.study.inventory import Target
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_arm import Arm
from benchbook.core.study.study_hosts import Numa
from benchbook.sites.hosts import roles
from benchbook.sites.topology import parts
from benchbook.sites.topology.parts import Arranged, describe_proxy, name_copies, number_role

# A cluster has the same ports on all its hosts: TiDB's first, then TiKV's, PD's, and those of its exporters.
CLUSTER_PORTS, TIKV_AT, PD_AT, EXPORTERS_AT = 64, 32, 60, 62
# Roles of a cluster's hosts beside its TiDBs'.
BEHIND = ("tikv", "pd", "control")


@dataclass(frozen=True)
class HostEndpoint:
    """Address on a host for clients or proxies to connect to; `node` is its NUMA node."""

    host: str
    address: str
    port: int
    node: int | None = None


@dataclass(frozen=True)
class HostPlacement:
    """Placement of a part: its first host, with the address that others use."""

    host: str
    address: str
    places: tuple[HostEndpoint, ...] = ()
    others: tuple[tuple[str, str], ...] = ()


Part = parts.ChainPart[HostPlacement]
Chain = parts.Chain[HostPlacement]


def reached_at(part: Part) -> tuple[HostEndpoint, ...]:
    """Addresses that a part is connected to."""
    return part.where.places or (HostEndpoint(part.where.host, part.where.address, part.port),)


def list_endpoints(chain: Chain) -> tuple[HostEndpoint, ...]:
    """Address that each client of an arm connects to, in their order."""
    behind = (chain.proxy,) if chain.proxy else chain.servers
    ends = [place for part in behind for place in reached_at(part)][: chain.arm.servers]
    return tuple(ends[number % len(ends)] for number in range(len(chain.clients)))


def client_hosts(chain: Chain) -> tuple[str, ...]:
    """Hosts of an arm's clients, each once."""
    return tuple(dict.fromkeys(client.where.host for client in chain.clients))


def hosts_of(chain: Chain) -> dict[str, str]:
    """Host of each role of an arm; of several the second is `server-2`, and so on."""
    others = [other for server in chain.servers for other in server.where.others]
    # Clients' statements end on these.
    ends = dict.fromkeys(place.host for server in chain.servers for place in reached_at(server))
    named: dict[str, tuple[str, ...]] = {"server": tuple(ends)}
    for role in BEHIND:
        named[role] = tuple(name for what, name in others if what == role)
    named |= {"proxy": (chain.proxy.where.host,) if chain.proxy else (), "client": client_hosts(chain)}
    return {number_role(role, rank): name for role, names in named.items() for rank, name in enumerate(names)}


def build_chains(study: StudySpec, hosts: Mapping[str, Target]) -> dict[str, Chain]:
    """Chain of each arm that can be made; arms that ask for the same server share it."""
    build = _Makes(study, hosts).chain
    return {arm: build(arm) for arm in study.arms if not any(roles.infeasible_reasons(study, arm, hosts))}


def list_hops(chain: Chain) -> dict[str, list[dict[str, Any]]]:
    """By host, the sockets for its agent's byte counts: those of its own parts, on either side."""
    hops: dict[str, list[dict[str, Any]]] = {}
    for part in chain.parts:
        for place in reached_at(part):
            hop = {"part": part.kind, "host": place.address, "port": place.port}
            hops.setdefault(place.host, []).append({**hop, "is_own": True})
            if chain.proxy is not None and part is not chain.proxy:
                behind = {**hop, "part": "proxy", "is_behind": True}
                hops.setdefault(chain.proxy.where.host, []).append(behind)
    return hops


class _Makes:
    def __init__(self, study: StudySpec, hosts: Mapping[str, Target]) -> None:
        self.study, self.hosts = study, hosts
        self.arranged = Arranged[HostPlacement](study.site.port)
        self.prepared = name_copies(study.arms)

    def chain(self, name: str) -> Chain:
        arm = self.study.arms[name]
        cores = {part: cpu.cores for part, cpu in arm.cpu.items()}
        if self.study.site.tiup is not None:
            servers: tuple[Part, ...] = (self._cluster(name, arm),)
        else:
            there = roles.find_hosts(self.hosts, "server", arm.hosts.get("server"))[: arm.servers]
            servers = tuple(self._server(name, arm, host, cores.get("server")) for host in there)
        proxy = self._proxy(arm, servers, cores.get("proxy")) if arm.access != "direct" else None
        machines = roles.find_hosts(self.hosts, "client", arm.hosts.get("client"))
        machines = machines[:1] if "client" in arm.hosts else machines
        clients = tuple(self._client(arm, rank, machines, cores.get("client")) for rank in range(arm.clients))
        return Chain(arm, servers, (proxy,) if proxy is not None else (), clients)

    def _at(self, host: str) -> HostPlacement:
        return HostPlacement(host, self.hosts[host].address)

    def _client(self, arm: Arm, rank: int, machines: list[str], cpus: tuple[int, ...] | None) -> Part:
        stated = arm.hosts.get(f"client{rank + 1}")  # type: ignore[call-overload]
        where = self._at(stated or machines[rank % len(machines)])
        return Part(number_role("client", rank), "client", 0, where, rank=rank, cpus=cpus)

    def _server(self, name: str, arm: Arm, host: str, cpus: tuple[int, ...] | None) -> Part:
        program = engine_of(self.study, name).name
        return self.arranged.once(
            *("server", "server", descriptors.find_engine(program).ports, [host]),
            **dict[str, Any](where=self._at(host), cpus=cpus, kernel=arm.kernel, program=program, arm=name),
            variant=data_variant(arm),
            prepared=self.prepared[name],
        )

    def _proxy(self, arm: Arm, servers: tuple[Part, ...], cpus: tuple[int, ...] | None) -> Part:
        host = roles.find_hosts(self.hosts, "proxy", arm.hosts.get("proxy"))[0]
        # Memory that a proxy took for one arm's connections must not be seen in another's.
        apart = (servers, describe_proxy(arm), arm.load)
        return self.arranged.once(
            *("proxy", "proxy", descriptors.find_proxy(arm.access).ports, [host], apart),
            **dict[str, Any](where=self._at(host), cpus=cpus, to=servers[0], program=arm.access),
        )

    def _cluster(self, name: str, arm: Arm) -> Part:
        counts, variant = roles.count_roles(self.study, arm), data_variant(arm)
        chosen = {role: roles.find_hosts(self.hosts, role)[: counts[role]] for role in BEHIND}
        chosen["server"] = roles.find_hosts(self.hosts, "server", arm.hosts.get("server"))[: counts["server"]]
        used = {host for named in chosen.values() for host in named}
        nodes = (arm.numa or Numa()).tidb or (None,)
        others = tuple((role, host) for role in BEHIND for host in chosen[role])

        def where(port: int) -> HostPlacement:
            places = tuple(
                HostEndpoint(host, self.hosts[host].address, port + 2 * rank, node)
                for host in chosen["server"]
                for rank, node in enumerate(nodes)
            )
            return HostPlacement(places[0].host, places[0].address, places, others)

        options = dict[str, Any](arm=name, variant=variant, prepared=self.prepared[name], program="cluster")
        return self.arranged.once("server", "server", CLUSTER_PORTS, used, where=where, **options)
