"""From a study's arms and an inventory to parts on hosts; pure. `obstacles` says what can't be made so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchbook.core import registry
from benchbook.core.engines import engine_of, variant
from benchbook.core.inventory import Target
from benchbook.core.study import Study
from benchbook.core.study_arm import Arm, Kernel
from benchbook.core.study_hosts import Numa
from benchbook.sites.arms.arrange import Arranged, Slot, copies, numbered
from benchbook.sites.hosts import obstacles, roles

# A cluster has the same ports on all its hosts: TiDB's first, then TiKV's, PD's, and those of its exporters.
CLUSTER_PORTS, TIKV_AT, PD_AT, EXPORTERS_AT = 64, 32, 60, 62


@dataclass(frozen=True)
class Place:
    """Where clients or proxies connect to, on which host; `node` is the NUMA node it is bound to."""

    host: str
    address: str
    port: int
    node: int | None = None


@dataclass(frozen=True)
class Part:
    """A server, a whole cluster or a proxy; `address` is where others reach it, on its first host.

    `program` is what runs there. `to` is what a proxy relays to, `asked` what an arm says of it. `places` are
    the TiDB of a cluster, `others` its hosts of the other roles. `variant` sets engine and data apart.
    `connections` are the most beside sysbench's in any arm: all proxies are set alike, and bear them.
    """

    name: str
    kind: str
    host: str
    address: str
    port: int
    cpus: tuple[int, ...] | None = None
    kernel: Kernel | None = None
    to: Part | None = None
    program: str = "mariadb"
    arm: str = field(default="", compare=False)
    variant: str = ""
    prepared: str = "snapshot"
    places: tuple[Place, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    connections: int = 0

    @property
    def reached_at(self) -> tuple[Place, ...]:
        """Where it is connected to."""
        return self.places or (Place(self.host, self.address, self.port),)


@dataclass(frozen=True)
class Chain:
    """All that an arm needs: servers, proxy if any, and the hosts of its clients."""

    servers: tuple[Part, ...]
    proxy: Part | None
    clients: tuple[str, ...]
    client_cpus: tuple[int, ...] | None
    endpoints: tuple[Place, ...]

    @property
    def server(self) -> Part:
        """The first server."""
        return self.servers[0]

    @property
    def client(self) -> str:
        """The host of the first client."""
        return self.clients[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Servers and proxy, from the server to what the client connects to."""
        return (*self.servers, self.proxy) if self.proxy else self.servers

    @property
    def entry(self) -> Place:
        """What the first client connects to."""
        return self.endpoints[0]

    @property
    def server_hosts(self) -> tuple[str, ...]:
        """The hosts that clients' statements end on, each once."""
        return tuple(dict.fromkeys(place.host for one in self.servers for place in one.reached_at))

    @property
    def hosts(self) -> dict[str, str]:
        """The host of each role; of several the second is `server-2`, and so on."""
        found = dict(_numbered("server", self.server_hosts))
        for role in ("tikv", "pd", "control"):
            named = [name for one in self.servers for what, name in one.others if what == role]
            found |= dict(_numbered(role, named))
        if self.proxy:
            found["proxy"] = self.proxy.host
        return found | dict(_numbered("client", tuple(dict.fromkeys(self.clients))))


def chains(study: Study, hosts: Mapping[str, Target]) -> dict[str, Chain]:
    """Return the chain of each arm that can be made; arms that ask for the same server share it.

    The first host with a role has it, if the arm names no other. Parts of a host take the ports from
    `site.port` on, in the arms' order.
    """
    makes = _Makes(study, hosts)
    return {name: makes.chain(name) for name in study.arms if not any(obstacles.of(study, name, hosts))}


def hops(chain: Chain) -> dict[str, list[dict[str, Any]]]:
    """Return, by host, what its agent counts the bytes of: sockets of its own parts, on whichever side."""
    found: dict[str, list[dict[str, Any]]] = {}
    for part in chain.parts:
        for place in part.reached_at:
            hop = {"part": part.kind, "host": place.address, "port": place.port}
            found.setdefault(place.host, []).append({**hop, "is_own": True})
            if chain.proxy is not None and part is not chain.proxy:
                behind = {**hop, "part": "proxy", "is_behind": True}
                found.setdefault(chain.proxy.host, []).append(behind)
    return found


class _Makes:
    """Makes parts, each once."""

    def __init__(self, study: Study, hosts: Mapping[str, Target]) -> None:
        self.study, self.hosts = study, hosts
        self.arranged = Arranged[Part](study.site.port)
        self.prepared = copies(study.arms)

    def chain(self, name: str) -> Chain:
        arm = self.study.arms[name]
        cores = {part: cpu.cores for part, cpu in arm.cpu.items()}
        is_cluster = self.study.site.tiup is not None
        if is_cluster:
            servers: tuple[Part, ...] = (self._cluster(name, arm),)
        else:
            first = roles.host_of(self.hosts, "server", arm)
            rest = [one for one in roles.having(self.hosts, "server") if one != first]
            servers = tuple(
                self._server(name, arm, host, cores.get("server")) for host in (first, *rest)[: arm.servers]
            )
        proxy = self._proxy(name, arm, servers[0], cores.get("proxy")) if arm.access != "direct" else None
        machines = [roles.host_of(self.hosts, "client", arm)]
        if "client" not in arm.hosts:
            machines += [one for one in roles.having(self.hosts, "client") if one not in machines]
        clients = tuple(machines[number % len(machines)] for number in range(arm.clients))
        ends = [place for one in (servers if proxy is None else (proxy,)) for place in one.reached_at]
        ends = ends[: arm.servers]
        taken = tuple(ends[number % len(ends)] for number in range(arm.clients))
        return Chain(servers, proxy, clients, cores.get("client"), taken)

    def _share(self, key: tuple[object, ...], kind: str, host: str, ports: int, **rest: object) -> Part:
        def make(slot: Slot) -> Part:
            return Part(slot.name, kind, host, self.hosts[host].address, slot.port, **rest)  # type: ignore[arg-type]

        return self.arranged.once(key, kind, make, ports, [host])

    def _server(self, name: str, arm: Arm, host: str, cpus: tuple[int, ...] | None) -> Part:
        program, made = engine_of(self.study, name).name, variant(arm)
        return self._share(
            *(("server", host, cpus, arm.kernel, made), "server", host, registry.PORTS.get(program, 1)),
            **{"cpus": cpus, "kernel": arm.kernel, "program": program, "arm": name, "variant": made},
            prepared=self.prepared[name],
        )

    def _proxy(self, name: str, arm: Arm, server: Part, cpus: tuple[int, ...] | None) -> Part:
        host = roles.host_of(self.hosts, "proxy", arm)
        said = arm.proxy.model_dump_json(exclude_defaults=True) if arm.proxy is not None else ""
        # Memory that a proxy took for one arm's connections must not be seen in another's.
        key = ("proxy", arm.access, host, cpus, server, said, arm.load)
        return self._share(
            *(key, "proxy", host, registry.PORTS.get(arm.access, 1)),
            **{"cpus": cpus, "to": server, "program": arm.access, "arm": name, "variant": said},
            connections=max(
                (one.load.connections for one in self.study.arms.values() if one.load), default=0
            ),
        )

    def _cluster(self, name: str, arm: Arm) -> Part:
        tiup, made = self.study.site.tiup, variant(arm)
        assert tiup is not None
        asked = {"server": tiup.tidb.hosts, "tikv": tiup.tikv.hosts, "pd": tiup.pd.hosts, "control": 1}
        chosen = {
            role: roles.having(self.hosts, role, arm.hosts.get("server") if role == "server" else None)[:n]
            for role, n in asked.items()
        }
        used = {host for named in chosen.values() for host in named}
        nodes = (arm.numa or Numa()).tidb or (None,)
        others = tuple((role, host) for role in ("tikv", "pd", "control") for host in chosen[role])

        def make(slot: Slot) -> Part:
            places = tuple(
                Place(host, self.hosts[host].address, slot.port + 2 * rank, node)
                for host in chosen["server"]
                for rank, node in enumerate(nodes)
            )
            first = places[0]
            return Part(
                *(slot.name, "server", first.host, first.address, first.port),
                **{"program": "cluster", "arm": name, "variant": made, "prepared": self.prepared[name]},
                places=places,
                others=others,
            )

        return self.arranged.once(("cluster", made), "server", make, CLUSTER_PORTS, used)


def _numbered(role: str, names: tuple[str, ...] | list[str]) -> Iterator[tuple[str, str]]:
    for rank, name in enumerate(names):
        yield numbered(role, rank), name
