"""A service as a part of a lab: a virtual address whose packets the kernel sends on to the server."""

from __future__ import annotations

from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.local.network import Network
from benchbook.sites.machine.supervised import Made


class Service(Made):
    """One virtual address with one server behind it. There is no process; the rule is made by `ensure`."""

    child = None

    def __init__(
        self, network: Network, name: str, rank: int, port: int, address: str, server_port: int
    ) -> None:
        self.network, self.role, self.rank, self.port = network, name, rank, port
        self.address, self.server_port = address, server_port

    def ensure(self) -> None:
        """Make the rule unless it is there."""
        self.network.service(self.role, self.rank, self.port, self.address, self.server_port)

    def stop(self) -> bool:
        """Do nothing: a rule costs nothing while it is unused, and goes when the site is closed."""
        return True

    def packets(self) -> int:
        """Return how many connections took the rule since it was made."""
        return self.network.packets(self.role)

    def identity(self) -> dict[str, Any]:
        """Return what the kernel does with the virtual address; SiteError if the rule is gone."""
        rules = self.network.named(self.role)
        if not rules:
            raise SiteError("the service's rule is gone; call site.up(arm) again")
        return {"service": sorted(" ".join((rule.chain, *rule.words)) for rule in rules)}

    def facts(self) -> dict[str, Any]:
        """Return how the service is made."""
        return {"made_by": "DNAT in the nat table, chains OUTPUT and PREROUTING", "port": self.port}
