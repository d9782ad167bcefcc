"""Clients outside the cluster, on hosts of an inventory: a balancer really gets their traffic."""

import contextlib
import functools
from collections.abc import Container

from benchbook.core.study import inventory
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.contract import Start
from benchbook.sites.hosts import roles
from benchbook.sites.hosts.host import AccessRefused, Host
from benchbook.sites.hosts.load_client import RemoteClient
from benchbook.sites.hosts.machine import FarSocket
from benchbook.sites.hosts.runtime import HostsRuntime
from benchbook.sites.kube.api import wait_for

GREETING_S = 5.0


class ExternalClients(HostsRuntime):
    """The hosts outside a study's cluster. Nothing is connected to before the first question."""

    def __init__(self, study: StudySpec, lab: labs.Lab, name: str) -> None:
        targets = inventory.load_hosts(name, ("client",))
        self.names = [host for host, target in targets.items() if "client" in target.roles]
        super().__init__(study, lab, {}, targets)
        self._reached: set[tuple[str, str, int]] = set()

    def lacking(self, clients: int, nodes: Container[str]) -> str | None:
        """Reason against these hosts as clients of an arm, or None; `nodes` are addresses of nodes."""
        for name in self.names[:clients]:
            target = self.targets[name]
            if target.host in nodes or target.address in nodes:
                return f"{name}: a node of the cluster, whose kube-proxy leads it past the balancer"
            try:
                for why in roles.find_missing(("sysbench",), self.look(name)):
                    return f"{name}: {why}"
            except AccessRefused:
                raise
            except SiteError as error:
                return str(error)
        return None

    def must_reach(self, clients: int, address: str, port: int, wait_s: float) -> None:
        """Wait until a server greets each client's host at an address; SiteError if none does in time."""
        for name in self.names[:clients]:
            # A provider gives the address before it leads anywhere.
            greeted = functools.partial(_is_greeted, self.host(name), address, port)
            if (name, address, port) not in self._reached and not wait_for(greeted, wait_s, 1.0):
                raise SiteError(
                    f"{name}: no server answers at {address}:{port} after {wait_s:g} s; see that the "
                    "balancer's address can be reached from there (routes, firewall)"
                )
            self._reached.add((name, address, port))

    def cores(self, clients: int) -> float:
        return float(sum(self.look(name).facts["cores"] for name in self.names[:clients]))

    def client(self, start: Start) -> RemoteClient:
        """Start a load client on its host: they have them in turn."""
        return RemoteClient(self.host(self.names[start.number % len(self.names)]), start)


def _is_greeted(host: Host, address: str, port: int) -> bool:
    """True if a server speaks first to a host that connects to it, as in MySQL's protocol."""
    greeting = b""
    with contextlib.suppress(OSError):
        link = FarSocket(host, (address, port))
        with contextlib.closing(link), contextlib.suppress(OSError):
            link.settimeout(GREETING_S)
            greeting = link.receive()
        # It is closed with the next request; a session that stays open would be seen in the first run.
        host.call("hello")
    return bool(greeting)
