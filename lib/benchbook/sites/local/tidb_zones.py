"""Zones of a cluster on one machine: a network namespace each, and distance between them.

Each store is in a zone of its own. What reaches PD or a store from another zone is led through a relay in the
zone that it comes to, which holds every byte back, each way for as long; what stays in a zone goes straight.
Clients reach TiDB without a delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchbook.sites import lab as labs
from benchbook.sites.local.delay import Delay
from benchbook.sites.local.network import Network

# Namespaces of clusters come behind those of pods; ports of hops are a namespace's own.
FIRST, MOST, CLUSTERS, HOPS_AT = 70, 8, 10, 4000


@dataclass(frozen=True)
class Zones:
    """The zones of one cluster: `rank` is its number, `latency_ms` what is added each way between zones."""

    network: Network
    rank: int
    count: int
    latency_ms: float

    def place(self, place: labs.Place, zone: int) -> labs.Place:
        """Return a place moved into a zone."""
        namespace, address = self.network.pod(self._number(zone))
        return replace(place, address=address, where=replace(place.where, namespace=namespace))

    def address(self, zone: int) -> str:
        """Return the address of a zone; nothing is made for it."""
        return self.network.address(self._number(zone))

    def addresses(self, zone: int) -> list[str]:
        """Return the addresses of a zone wherever its cluster may be: arms change places between blocks."""
        return [self.network.address(FIRST + MOST * rank + zone) for rank in range(CLUSTERS)]

    def hop(self, member: Any, zone: int, number: int) -> Delay:
        """Return the hop before a part, with what leads there all that comes from other zones."""
        port, to = HOPS_AT + number, member.place
        self.network.redirect(self._number(zone), to.port, port)
        place = replace(to, name=f"{to.name}-hop", port=port)
        return Delay(member.machine, place, f"{to.address}:{to.port}", self.latency_ms)

    def facts(self, stores: Sequence[str], tidb: int) -> dict[str, Any]:
        """Return what the zones are, with the store that each TiDB shares its zone with."""
        made = "a delaying relay of our own in the zone that is reached"
        beside = [stores[rank % len(stores)] for rank in range(tidb)]
        return {"zones": self.count, "latency_ms": self.latency_ms, "made_by": made, "tidb_beside": beside}

    def _number(self, zone: int) -> int:
        return FIRST + MOST * self.rank + zone
