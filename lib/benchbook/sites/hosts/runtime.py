"""The hosts and parts of one study while they are up, and tasks beside a run of it."""

import contextlib
import functools
import getpass
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchbook.core.study import descriptors
from benchbook.core.study.engines import engine_of
from benchbook.core.study.inventory import Target
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_arm import Kernel
from benchbook.core.util.errors import SiteError
from benchbook.sites import load
from benchbook.sites.agent import kernel
from benchbook.sites.hosts import agent_zipapp, clean
from benchbook.sites.hosts.cluster import TiupCluster
from benchbook.sites.hosts.host import AccessRefused, Host, Unreachable
from benchbook.sites.hosts.load_client import RemoteClient, run_alongside
from benchbook.sites.hosts.machine import OnHost, measure_offset
from benchbook.sites.hosts.placement import Chain, HostPlacement, Part, client_hosts, hosts_of, reached_at
from benchbook.sites.processes.spawn import ProcessPlacement
from benchbook.sites.topology import background_load
from benchbook.sites.topology.runtime import ArmRuntime
from benchbook.sites.workspace import Lab, PartLocation, lab_id

# What a client's start asks of its host, one after the other, and what the program takes to be ready there.
CALLS, READY_S = 25, 2.0
# Seconds before another try after a host or a part was lost.
AGAIN_S = (1.0, 3.0)


class HostsRuntime(ArmRuntime[HostPlacement]):
    """Hosts with their agents, and parts on them."""

    def __init__(
        self, study: StudySpec, lab: Lab, chains: Mapping[str, Chain], targets: Mapping[str, Target]
    ) -> None:
        super().__init__(study, lab, chains)
        self.targets = targets
        self._hosts: dict[str, Host] = {}
        self.look = functools.cache(lambda name: self.host(name).look_again())
        """Facts of a host by its name, from the first request to it."""
        self.kernel: dict[str, dict[str, int]] = {}
        """By host the kernel settings that were made there, as it has them."""
        self.errors_ms: list[float] = []
        """By how much the clock of each client's host may be off in the present run."""
        self._over = threading.Event()

    def host(self, name: str) -> Host:
        """A host with a running agent and a kept lease; begun anew after the host's restart."""
        host = self._hosts.get(name)
        if host is None or host.is_gone:
            host = host or Host(self.targets[name], lab_id(self.lab.token), self.lab.token)
            # Noted before anything is started there, so that `down` knows where to look whatever ends us.
            clean.note_host(self.lab.run, host)
            # As others on this host are told of us.
            host.begin(f"{getpass.getuser()}@{socket.gethostname()}, {self.lab.folder}")
            self._hosts[name] = host
            threading.Thread(target=host.keep, args=(self._over,), daemon=True).start()
            # What ran there has ended with the agent.
            for component in self.alive.values():
                if component.machine.host == name:
                    component.child = None
        return host

    def machine(self, name: str) -> OnHost:
        return OnHost(self.host(name), self.look(name), self.lab)

    def get(self, part: Part) -> Any:
        self.host(part.where.host)
        return super().get(part)

    def addresses(self, part: Part) -> list[tuple[str, int]]:
        return [(place.address, place.port) for place in reached_at(part)]

    def _make(self, part: Part) -> Any:
        machine, peers = self.machine(part.where.host), functools.partial(self._peers, part)
        nofile = part.kernel.nofile if part.kernel is not None else None
        where, address = ProcessPlacement(part.cpus, nofile=nofile), part.where.address
        place = PartLocation(part.name, address, part.port, where, peers, self.connections, part.prepared)
        if part.kind == "proxy":
            return self._make_proxy(part, part.program, machine, place)
        if part.program == "cluster":
            names = {place.host for place in part.where.places} | {name for _, name in part.where.others}
            return TiupCluster(self.study, part, {name: self.machine(name) for name in names}, peers)
        engine = engine_of(self.study, part.arm)
        chain = next(item for item in self.chains.values() if part in item.servers)
        is_closed = self.study.site.tls == "required"
        tls_from = {"tls_from": lambda: self.machine(chain.client.where.host)} if is_closed else {}
        return load(descriptors.find_engine(part.program).code)(machine, engine, place, **tls_from)

    def ensure(self, chain: Chain) -> None:
        """Start the missing parts of an arm, and check that its client reaches this very server."""
        for server in chain.servers:
            if server.kernel is not None:
                self._set_kernel(self.host(server.where.host), server.kernel)
        for part in chain.parts:
            item, was = self.get(part), self.get(part).child
            server = item if part.kind == "server" else self.get(chain.server)
            item.ensure()
            is_new = item.child != was
            for name, place in itertools.product(client_hosts(chain) if is_new else (), reached_at(part)):
                if not server.seen_from(self.machine(name), place.address, place.port):
                    item.stop()
                    raise SiteError(
                        f"{place.address}:{place.port}, seen from {name}, is another server than ours; "
                        "correct `address` in the inventory, or set another site.port in the study"
                    )

    def retry_after_loss(self, do: Callable[[], None]) -> None:
        """Do something, and again after the loss of a host or a part; other errors are raised."""
        for wait_s in (*AGAIN_S, None):
            try:
                return do()
            except (AccessRefused, Unreachable):
                raise
            except SiteError:
                # What ran on a host that was started again has ended with its agent: both are started again.
                lost = [part for part in self.alive.values() if part.child is not None and not part.is_up]
                is_gone = any(host.is_gone for host in self._hosts.values())
                if wait_s is None or not (lost or is_gone):
                    raise
            time.sleep(wait_s)

    @property
    def ready_s(self) -> float:
        """Seconds until all clients of an arm can be ready: files sent, clocks compared."""
        hosts = {name for chain in self.chains.values() for name in client_hosts(chain)}
        slowest = max(measure_offset(self.host(name), rounds=3).round_trip_s for name in hosts)
        return READY_S + CALLS * slowest * max(len(chain.clients) for chain in self.chains.values())

    def end(self) -> None:
        """Stop all, end the agents, and let the hosts go; an unreachable one is reported."""
        self._over.set()
        with contextlib.suppress(SiteError):
            self.stop()
        for host in self._hosts.values():
            try:
                clean.end_host(self.lab.run, host)
            except SiteError as trouble:
                print(f"{trouble}; `make down` tries again")
            host.close()

    def _set_kernel(self, host: Host, profile: Kernel) -> None:
        def put(key: str, name: str, value: int) -> int:
            return int(host.call("sysctl", name=name, value=value))

        self.kernel.setdefault(host.name, {}).update(kernel.set_all(profile, put, host.name))

    def _peers(self, server: Part) -> list[str]:
        """Source addresses of a server's connections: those of its clients and proxies."""
        roles = [hosts_of(chain).items() for chain in self.chains.values() if server in chain.parts]
        used = {name for role, name in itertools.chain(*roles) if role.startswith(("client", "proxy"))}
        pairs = itertools.product(used, self.addresses(server))
        return sorted({self.machine(name).source(*address) for name, address in pairs})

    @contextlib.contextmanager
    def run_alongside(self, arm: str) -> Iterator[dict[str, Any]]:
        """Record, beside the tasks of all kinds of site, lost connections and the errors of clocks."""
        roles = hosts_of(self.chains[arm])
        before = {name: len(self.host(name).outages) for name in roles.values()}
        self.errors_ms.clear()
        with super().run_alongside(arm) as record:
            record["hosts"] = roles
            yield record
        # How far off the beginning of each of several clients may be, as clocks were compared.
        if self.errors_ms:
            record["begun_known_to_ms"] = self.errors_ms
        lost = {name: self.host(name).outages[count:] for name, count in before.items()}
        if any(lost.values()):
            record["connection_lost"] = {name: outages for name, outages in lost.items() if outages}

    def _run_beside(self, arm: str, role: str, words: list[str]) -> background_load.Running:
        client = self.chains[arm].client
        # It ends with the agent, and goes on while we are cut off.
        argv = ["python3", f"../../{agent_zipapp.build_name()}", "drive", *words]
        host, out = self.host(client.where.host), background_load.driver_log(self.lab)
        return run_alongside(host, argv, out, background_load.STOP_S, client.cpus)

    def _read_driver(self, driver: RemoteClient) -> str:
        return str(driver.host.call("read", name=f"{driver.job}/out") or "")
