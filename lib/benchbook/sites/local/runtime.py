"""The parts of a lab while they run: each made when an arm first needs it, in its place."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchbook.core.study.engines import engine_of, program_of
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import SiteError, require_value
from benchbook.sites import load
from benchbook.sites import workspace as labs
from benchbook.sites.agent import kernel
from benchbook.sites.engines import packages
from benchbook.sites.local import cgroups, network
from benchbook.sites.local.placement import Chain, LabPlacement, Part
from benchbook.sites.machine import data_snapshots
from benchbook.sites.machine.local_machine import LocalMachine
from benchbook.sites.machine.supervised_process import Address, Component
from benchbook.sites.processes import procfs
from benchbook.sites.processes.spawn import ProcessPlacement
from benchbook.sites.processes.tcp_bytes import Hop
from benchbook.sites.topology import background_load
from benchbook.sites.topology.runtime import ArmRuntime


class LocalRuntime(ArmRuntime[LabPlacement]):
    """All parts of one lab by name."""

    def __init__(self, study: StudySpec, lab: labs.Lab, chains: dict[str, Chain]) -> None:
        super().__init__(study, lab, chains)
        self.machine = LocalMachine(lab)
        self.network = network.LabNetwork(lab.token)
        self._first: dict[str, Part] = {}
        self._groups: dict[str, cgroups.CpuControlGroup] = {}
        # Of each part, the settings that were made for it, as read back.
        self.kernel: dict[str, dict[str, int]] = {}

    @property
    def is_empty(self) -> bool:
        return all(part.child is None for part in self.alive.values())

    def forget(self, chains: dict[str, Chain], first: dict[str, Chain]) -> None:
        """Make all parts again from other chains; `first` are those with every part at its first place."""
        # The next arm in a namespace or group would inherit what the kernel holds for the part there now.
        self.clear()
        self.chains = chains
        pairs = ((chain.parts, first[arm].parts) for arm, chain in chains.items())
        self._first = {
            part.name: at for parts, places in pairs for part, at in zip(parts, places, strict=True)
        }
        self.alive.clear()

    def ensure(self, chain: Chain) -> None:
        """Start every part of an arm that does not run, from the server to the client."""
        for part in chain.parts:
            if part.where.is_pod and part.where.latency_ms is not None:
                self.network.pod(part.rank + 1)
                self.network.delay(part.rank + 1, part.where.latency_ms)
            if part.kernel is not None:
                namespace = self.network.pod(part.rank + 1)[0] if part.where.is_pod else None
                self.kernel[part.name] = network.set_kernel(part.kernel, namespace, self.lab.run)
            self.get(part).ensure()

    def address(self, part: Part) -> tuple[str, int]:
        if part.kind == "service":
            return self.network.virtual(part.rank), part.port
        if (result := self.alive.get(part.name)) is not None and result.addresses:
            return result.addresses[0]
        return (self.network.pod(part.rank + 1)[1] if part.where.is_pod else labs.LOOPBACK), part.port

    def addresses(self, part: Part) -> list[tuple[str, int]]:
        several = self.get(part).addresses if part.kind == "server" else ()
        return [*several] or [self.address(part)]

    def group(self, part: Part) -> cgroups.CpuControlGroup | None:
        """A part's control group, made at need; None if it has none."""
        quota, shares, name = part.where.quota, part.where.shares, part.name
        if shares is not None and name not in self._groups:
            self._groups[name] = cgroups.create_group(self.lab.token, name, quota=quota, shares=shares)
        return self._groups.get(name)

    def where(self, part: Part) -> ProcessPlacement:
        """Placement of a part's processes."""
        group = self.group(part)
        return ProcessPlacement(
            part.cpus,
            (group.folder,) if group is not None else (),
            self.network.pod(part.rank + 1)[0] if part.where.is_pod else None,
            part.kernel.nofile if part.kernel is not None else None,
        )

    def identity(self, chain: Chain) -> dict[str, Any]:
        """Marks of an arm's parts; its arrangement is proven to be in force."""
        identity = {"place": procfs.describe_placement(os.getpid()), **super().identity(chain)}
        for part in chain.parts:
            if (group := self.group(part)) is None:
                continue
            kind = part.name if part in chain.others else part.kind
            identity[f"{kind}_group"] = group.in_force()
            group.must_hold(self.get(part).child.pid)
        for part in chain.servers if chain.server.where.is_pod else ():
            name = f"{part.name}_namespace" if part in chain.others else "namespace"
            child, path = self.get(part).child, self.network.pod(part.rank + 1)[0]
            its = os.readlink(f"/proc/{child.pid}/ns/net") if child is not None else ""
            if its != f"net:[{path.stat().st_ino}]":
                where = f"the server is in namespace {its or 'none'}, not in {path}"
                raise SiteError(f"{where}; call site.up(arm) again")
            identity[name] = its
        return identity

    def hops(self, chain: Chain) -> list[Hop]:
        """Places that count the bytes of server and proxy, hops between as one; over a socket none."""
        if chain.by_socket:
            return []
        relay, service = chain.hop("relay"), chain.hop("service")
        inner = self.address(service if relay is None and service is not None else chain.server)
        hops = [Hop("server", *inner), *(Hop("server", *self.address(part)) for part in chain.others)]
        if relay is not None or chain.proxy is not None:
            ends = self.addresses(chain.server) if inner == self.address(chain.server) else [inner]
            hops += [Hop("proxy", *self.address(chain.entry))]
            hops += [Hop("proxy", *end, is_behind=True) for end in ends]
        hops += [Hop("server", *address) for address in self.addresses(chain.server)[1:]]
        below = self.get(chain.server).below
        return hops + [Hop(kind, *place) for kind, places in below.items() for place in places]

    @contextlib.contextmanager
    def run_alongside(self, arm: str) -> Iterator[dict[str, Any]]:
        """Count, beside the tasks of all kinds of site, connections to a service and throttled groups."""
        chain = self.chains[arm]
        service = self.get(hop) if (hop := chain.hop("service")) is not None else None
        groups = {role: its for role, part in chain.by_role.items() if (its := self.group(part)) is not None}
        packets = service.packets() if service is not None else 0
        held = {role: its.throttled() for role, its in groups.items()}
        with super().run_alongside(arm) as record:
            yield record
        if service is not None:
            record["service"] = {"connections": service.packets() - packets}
        if held:
            now = {role: its.throttled() for role, its in groups.items()}
            record["throttled"] = {role: procfs.throttled_since(was, now[role]) for role, was in held.items()}

    def _run_beside(self, arm: str, role: str, words: list[str]) -> background_load.Running:
        chain = self.chains[arm]
        if role == background_load.ROLE:
            argv = [sys.executable, "-m", "benchbook.sites.agent.connection_load", *words]
            where = ProcessPlacement(chain.client.cpus)
            return background_load.run_program(self.lab, role, argv, where, background_load.STOP_S)
        role, shares = name_neighbour(arm), require_value(chain.arm.neighbour).shares
        group = cgroups.create_group(self.lab.token, role, quota=None, shares=shares)
        where = ProcessPlacement(chain.server.cpus, (group.folder,))
        return background_load.run_program(self.lab, role, words, where, 1.0)

    def clear(self) -> list[str]:
        """Remove all of the lab in the kernel: rules, namespaces, links, groups, settings."""
        self.network = network.LabNetwork(self.lab.token)
        self._groups.clear()
        self.kernel.clear()
        return remove_leftovers(self.lab.token, self.lab.run)

    def _make(self, part: Part) -> Any:
        if part.kind == "service":
            return VirtualService(self.network, part, *self.address(require_value(part.to)))
        peers, address, where = self._list_peers(part), self.address(part), self.where(part)
        place = labs.PartLocation(part.name, *address, where, lambda: peers, self.connections, part.prepared)
        if part.kind == "server":
            return self._make_server(part, place)
        if part.kind == "relay":
            behind = ":".join(map(str, self.addresses(require_value(part.to))[0]))
            return network.DelayRelay(self.machine, place, behind, part.where.latency_ms or 0.0)
        proxy = self._make_proxy(part, part.kind, self.machine, place)
        if (first := self._first.get(part.name, part)) != part:
            proxy.moved = self._pair_addresses(part, first)
        return proxy

    def _list_peers(self, part: Part) -> tuple[str, ...]:
        """Sources of a part's connections: loopback, a server's socket, the bridge of pods."""
        mine = [chain for chain in self.chains.values() if part in chain.parts]
        peers = [] if part.where.is_pod else [labs.LOOPBACK]
        peers += [labs.OVER_SOCKET] if any(chain.by_socket for chain in mine) else []
        is_crossed = part.where.is_pod or any(chain.hop("service") is not None for chain in mine)
        return (*peers, self.network.gateway) if is_crossed else tuple(peers)

    def _make_server(self, part: Part, place: labs.PartLocation) -> Any:
        name = next(name for name, chain in self.chains.items() if part in chain.servers)
        engine = packages.resolve_engine(engine_of(self.study, self.study.deployed(name)))
        more: dict[str, Any] = {}
        if (cluster := engine.cluster) is not None and cluster.zones_ms is not None:
            place = replace(place, peers=lambda: (self.network.gateway,))
            zones = network.ClusterZones(self.network, part.rank, cluster.stores, cluster.zones_ms)
            more["zones"] = zones
        server = load(program_of(engine))(self.machine, engine, place, **more)
        data_snapshots.repair_data(server)
        return server

    def _pair_addresses(self, proxy: Part, first: Part) -> dict[Address, Address]:
        """Addresses of a proxy and of what is behind it, each with the one at the proxy's first place."""
        to, at = require_value(proxy.to), require_value(first.to)
        # A cluster's places go with it.
        several = self.get(to).addresses_at(at.port, at.rank) if to.kind == "server" else ()
        then = [*(several or [self.address(at)]), self.address(first)]
        pairs = dict(zip([*self.addresses(to), self.address(proxy)], then, strict=True))
        # A proxy's own interface is on the port after its own.
        return {(labs.LOOPBACK, proxy.port + 1): (labs.LOOPBACK, first.port + 1)} | pairs


def name_neighbour(arm: str) -> str:
    """Role of an arm's neighbour: arms in turns have theirs at the same time."""
    return f"{background_load.NEIGHBOUR}-{arm}"


class VirtualService(Component):
    """One virtual address with one server behind it. There is no process; the rule is made by `ensure`."""

    child = None

    def __init__(self, network: network.LabNetwork, part: Part, address: str, server_port: int) -> None:
        self.network, self.role, self.rank, self.port = network, part.name, part.rank, part.port
        self.address, self.server_port = address, server_port

    def ensure(self) -> None:
        self.network.service(self.role, self.rank, self.port, self.address, self.server_port)

    def stop(self) -> bool:
        """Do nothing: a rule costs nothing while it is unused, and goes when the site is closed."""
        return True

    def packets(self) -> int:
        return self.network.packets(self.role)

    def identity(self) -> dict[str, Any]:
        """Rules of the kernel for the virtual address; SiteError if they are gone."""
        rules = self.network.named(self.role)
        if not rules:
            raise SiteError("the service's rule is gone; call site.up(arm) again")
        return {"service": sorted(" ".join((rule.chain, *rule.words)) for rule in rules)}

    def facts(self) -> dict[str, Any]:
        return {"made_by": "DNAT in the nat table, chains OUTPUT and PREROUTING", "port": self.port}


def remove_leftovers(token: str, records: Path) -> list[str]:
    """Remove everything in the kernel that carries a lab's id; returns the removed, in words."""
    id = labs.lab_id(token)
    return [*network.remove_objects(id), *cgroups.remove_groups(id), *kernel.restore_settings(records)]


def list_leftovers(token: str, records: Path) -> list[str]:
    """Everything of a lab in the kernel, in words."""
    id = labs.lab_id(token)
    groups = [f"control group {path}" for path in cgroups.list_groups(id)]
    changed = [f"{name}, which was {value}" for name, value in kernel.read_changes(records).items()]
    return [*network.list_objects(id), *groups, *changed]
