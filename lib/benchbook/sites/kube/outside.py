"""Clients outside the cluster, on hosts of an inventory: what comes to a load balancer really comes to it.

A pod, or a node with kube-proxy, that dials a balancer's address is led to the Service by its own kernel, so
the balancer would not be measured (Kubernetes issues 66607 and 115931).
"""

from __future__ import annotations

import csv
import functools
import getpass
import socket
import time
import uuid
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from benchbook.core import inventory
from benchbook.core.errors import SiteError
from benchbook.core.study import Study
from benchbook.sites import lab as labs
from benchbook.sites.contract import Start
from benchbook.sites.hosts import obstacles
from benchbook.sites.hosts.client import RemoteClient
from benchbook.sites.hosts.connect import Refused
from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.running import Running
from benchbook.sites.hosts.stream import FarSocket
from benchbook.sites.hosts.watch import RemoteWatch
from benchbook.sites.kube import watch
from benchbook.sites.kube.api import Cluster, wait_for
from benchbook.sites.machine.monitor import COLUMNS

GREETING_S = 5.0


class Outside:
    """The hosts outside a study's cluster. Nothing is connected to before the first question."""

    def __init__(self, study: Study, lab: labs.Lab, name: str) -> None:
        targets = inventory.load(name, ("client",))
        self.names = [host for host, target in targets.items() if "client" in target.roles]
        owner = f"{getpass.getuser()}@{socket.gethostname()}, {lab.folder}"
        self._running = Running(study, targets, lab, owner)
        self._reached: set[tuple[str, str, int]] = set()

    def host(self, number: int) -> Host:
        """Return the host of a client: they have them in turn."""
        return self._running.host(self.names[number % len(self.names)])

    def look(self, number: int) -> dict[str, Any]:
        """Return what the host of a client was when it was first asked."""
        return self._running.look(self.names[number % len(self.names)])

    def lacking(self, clients: int, nodes: Container[str]) -> str | None:
        """Return why these hosts can't be the clients of an arm, or None; `nodes` are addresses of nodes."""
        for number in range(min(clients, len(self.names))):
            name = self.names[number]
            target = self._running.targets[name]
            if target.host in nodes or target.address in nodes:
                return f"{name}: a node of the cluster, whose kube-proxy leads it past the balancer"
            try:
                for why in obstacles.absent(("sysbench",), self.look(number)):
                    return f"{name}: {why}"
            except Refused:
                raise
            except SiteError as error:
                return str(error)
        return None

    def must_reach(self, clients: int, address: str, port: int, wait_s: float) -> None:
        """Wait until a server greets each client's host at an address; SiteError if none does in time."""
        for number in range(min(clients, len(self.names))):
            host, place = self.host(number), (self.names[number], address, port)
            if place in self._reached:
                continue
            # A provider gives the address before it leads anywhere.
            if not wait_for(functools.partial(_greets, host, address, port), wait_s, 1.0):
                raise SiteError(
                    f"{host.name}: no server answers at {address}:{port} after {wait_s:g} s; see that the "
                    "balancer's address can be reached from there (routes, firewall)"
                )
            self._reached.add(place)

    def cores(self, clients: int) -> float:
        """Return the cores of all hosts on which an arm's clients are."""
        used = range(min(clients, len(self.names)))
        return float(sum(self.look(number)["facts"]["cores"] for number in used))

    def client(self, start: Start) -> RemoteClient:
        """Start a load client on its host."""
        return RemoteClient(self.host(start.number), start)

    def end(self) -> None:
        """End the agents and let the hosts go."""
        self._running.end()


def _greets(host: Host, address: str, port: int) -> bool:
    """Say whether a server that a host connects to says something first, as MySQL's protocol has it."""
    try:
        link = FarSocket(host, (address, port))
    except OSError:
        return False
    try:
        link.settimeout(GREETING_S)
        return bool(link.receive())
    except OSError:
        return False
    finally:
        link.close()
        # It is closed with the next request; a session that stays open would be seen in the first run.
        host.call("hello")


class OutsideWatch(watch.PodWatch):
    """Watch clients on hosts outside and an arm's pods; `stop` comes after the clients have been waited for.

    The machine is that of the first server, `machine_client` the first client's host. Bytes are not counted.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        clients: Sequence[RemoteClient],
        parts: Sequence[tuple[str, str, int]],
        path: Path,
    ) -> None:
        super().__init__(cluster, namespace, (), parts, path)
        hosts = dict.fromkeys(client.host for client in clients)
        roles = {"client" if rank == 0 else f"client-{rank + 1}": host for rank, host in enumerate(hosts)}
        self._remote = RemoteWatch(roles, {}, clients, path)
        self._token, self._zero = uuid.uuid4().hex[:12], 0.0

    @property
    def _name(self) -> str:
        return self._token

    def start(self) -> None:
        self._zero = time.monotonic()
        self._remote.start()
        super().start()

    def stop(self) -> None:
        far = self._remote
        far.stop()
        with self.path.open(encoding="utf-8", newline="") as stream:
            seen: list[dict[str, Any]] = list(csv.DictReader(stream))
        for name in ("longest_pause_ms", "steal_pct", "oom_kills", "client_cpu_s", "clock_step_s"):
            setattr(self, name, getattr(far, name))
        self.cores, self.runqueue_waits_s = far.cores, list(far.runqueue_waits_s)
        for row in seen:
            row["second"] = float(row["second"])
            row["part"] = "machine_client" if row["part"] == "machine" else row["part"]
        seen += watch.together(self.of_parts(self._zero))
        seen.sort(key=lambda row: (row["second"], row["part"]))
        with self.path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(seen)
