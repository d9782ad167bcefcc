"""Hosts of an inventory as a site: real servers, proxies and clients there, each under its host's agent."""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy

from benchbook.core.study import inventory
from benchbook.core.study.model import Endpoint
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import InputErrors, SiteError, require_value
from benchbook.sites.agent import microbenchmarks
from benchbook.sites.agent.facts import TOLD
from benchbook.sites.contract import Start
from benchbook.sites.engines import tls
from benchbook.sites.hosts import machine, placement, roles
from benchbook.sites.hosts.host import AccessRefused
from benchbook.sites.hosts.load_client import RemoteClient
from benchbook.sites.hosts.placement import HostPlacement
from benchbook.sites.hosts.runtime import HostsRuntime
from benchbook.sites.hosts.watch import RemoteWatch
from benchbook.sites.machine import lock
from benchbook.sites.topology.site import ArrangedSite


class HostsSite(ArrangedSite[HostPlacement]):
    """The arms of one study on the hosts of its inventory. Nothing connects before the first question."""

    runtime: HostsRuntime

    def __init__(self, study: StudySpec, lab: Path) -> None:
        super().__init__(study, lab)
        self.targets = inventory.load_hosts(require_value(study.site.inventory))
        self.chains = placement.build_chains(study, self.targets)

    def _is_here(self) -> bool:
        return any(lock.is_local_address(target.host) for target in self.targets.values())

    def _open(self) -> None:
        self.runtime = HostsRuntime(self.study, self.lab, self.chains, self.targets)

    def _close(self, error: BaseException | None) -> None:
        self.runtime.end()

    @classmethod
    def needs(cls, name: str, study: StudySpec) -> str:
        return roles.summarize_needs(study)

    @classmethod
    def foreseeable_obstacles(cls, study: StudySpec, arm: str) -> list[str]:
        """Reasons against an arm by study and inventory; an unreadable inventory is reported itself."""
        try:
            hosts = inventory.load_hosts(require_value(study.site.inventory))
        except InputErrors:
            return []
        return list(roles.infeasible_reasons(study, arm, hosts))

    def obstacles(self, arm: str) -> list[str]:
        """Raise Refused if a host refuses our login or can't be trusted: no reason to skip an arm."""
        if reasons := list(roles.infeasible_reasons(self.study, arm, self.targets)):
            return reasons
        for role, name in placement.hosts_of(self._chain(arm)).items():
            try:
                look = self.runtime.look(name)
            except AccessRefused:
                raise
            except SiteError as error:
                return [str(error)]
            reasons += [f"{name}: {why}" for why in roles.obstacles_of(self.study, arm, role, look)]
        return reasons

    @property
    def ready_s(self) -> float:  # type: ignore[override]  # asked of the hosts, each time
        return self.runtime.ready_s

    def endpoints(self, arm: str) -> list[Endpoint]:
        chain = self._chain(arm)
        self.runtime.retry_after_loss(lambda: self.runtime.ensure(chain))
        ends = placement.list_endpoints(chain)
        return self._share_out(arm, [(place.address, place.port, None) for place in ends])

    def machines(self) -> dict[str, Any]:
        """Figures of each host of the arms; one that can't be reached is left out."""
        results: dict[str, Any] = {}
        names = {name for chain in self.chains.values() for name in placement.hosts_of(chain).values()}
        for name in sorted(names):
            with contextlib.suppress(SiteError):
                there = self.runtime.machine(name)
                argv = microbenchmarks.build_command(str(there.folder), "python3")
                results[name] = {"probes": microbenchmarks.parse_figures(there.says(argv))}
        servers = [placement.hosts_of(chain)["server"] for chain in self.chains.values()]
        first = next((name for name in servers if name in results), None)
        return {**results[first], "hosts": results} if first is not None else {}

    def facts(self, arm: str) -> dict[str, Any]:
        """`machine` is the server's, `servers` are those after it."""
        chain, site, facts = self._chain(arm), self.study.site, super().facts(arm)
        roles = placement.hosts_of(chain)
        looks = {role: self.runtime.host(name).look_again() for role, name in roles.items()}
        hosts = {role: {"name": roles[role], **look.facts, "python": None} for role, look in looks.items()}
        server, entry = looks["server"].facts, placement.list_endpoints(chain)[0]
        cluster = facts["engine"].pop("cluster", None)
        parts = chain.by_role.items()
        moments = {role: look.moment for role, look in looks.items()}
        for role, moment in moments.items():
            # The lead of the host's wall clock over ours.
            offset = machine.measure_offset(self.runtime.host(roles[role]), "wall_s", time.time)
            lead = (round(1000 * seconds, 3) for seconds in (offset.ahead_s, offset.round_trip_s))
            moments[role] = moment | {"clock": dict(zip(("offset_ms", "round_trip_ms"), lead, strict=True))}
        return facts | {
            "site": {"kind": "ssh", "port": site.port, "inventory": site.inventory},
            **({"encryption": site.tls} if site.tls != "off" else {}),
            **({"cluster": cluster} if cluster else {}),
            "cpu": {role: {"cores": list(part.cpus) if part.cpus else None} for role, part in parts},
            "kernel": self.runtime.kernel.get(chain.server.where.host) or None,
            "machine": {name: server[name] for name in TOLD}
            | {"sysbench": looks["client"].facts["sysbench"]},
            "hosts": hosts,
            "moment": {"endpoint": f"{entry.address}:{entry.port}", "hosts": moments},
        }

    def admin(self, arm: str | None = None, server: int = 0) -> sqlalchemy.Engine:
        chain = self._chain(arm)
        if chain.server.where.places and chain.arm.servers > 1:
            return self._server(arm).admin(server)  # type: ignore[no-any-return]
        return super().admin(arm, server)

    def allowance(self, arm: str) -> float:
        chain = self._chain(arm)
        cores = (self.runtime.look(name).facts["cores"] for name in placement.client_hosts(chain))
        return float(len(chain.client.cpus or ()) or sum(cores))

    def client(self, start: Start) -> RemoteClient:
        chain = self._chain(start.arm)
        inputs = tls.read_client(self.lab) if self.study.site.tls != "off" else None
        host = self.runtime.host(chain.clients[start.number].where.host)
        remote_client = RemoteClient(host, start, chain.client.cpus, inputs)
        if remote_client.clock is not None:
            self.runtime.errors_ms.append(round(500 * remote_client.clock.round_trip_s, 3))
        return remote_client

    def watch(self, arm: str, clients: Sequence[RemoteClient], path: Path) -> RemoteWatch:
        chain = self._chain(arm)
        roles = {role: self.runtime.host(name) for role, name in placement.hosts_of(chain).items()}
        pids, hops = self.runtime.processes(chain), placement.list_hops(chain)
        return RemoteWatch(roles, pids, clients, path, hops, self.runtime.families(chain))

    def restore(self, label: str | None = None) -> None:
        self.runtime.retry_after_loss(lambda: super(HostsSite, self).restore(label))

    def look(self) -> None:
        for part in self.runtime.alive.values():
            if part.child is not None:
                part.running()

    def _chain(self, arm: str | None) -> placement.Chain:
        name = self.study.baseline if arm is None else arm
        if name not in self.chains:
            why = "; ".join(roles.infeasible_reasons(self.study, name, self.targets))
            raise SiteError(f"{name}: {why}; leave the arm out, or make it possible")
        return self.chains[name]
