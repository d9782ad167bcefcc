"""Parts of an arm on every kind of site, their chain, and parts that arms share.

What only one kind of site knows of a part's place is in its `where`. Names and ports follow the order in
which parts are asked for: the first is `server` on the study's own port.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from benchbook.core.study import registry
from benchbook.core.study.engines import data_groups
from benchbook.core.study.study_arm import Arm, Kernel

Where = TypeVar("Where")
# Kinds of parts between server and client that are no proxy.
HOPS = ("relay", "service")


@dataclass(frozen=True)
class ChainPart(Generic[Where]):
    """One part: a server or a whole cluster, a hop before it, a client, a neighbour.

    `to` is the part behind it, `program` what runs there, `rank` counts parts of its role from 0. `variant`
    sets a server's engine and data apart, `prepared` is the copy of its data. `arm` is the first that asked.
    """

    name: str
    kind: str
    port: int
    where: Where
    rank: int = 0
    to: "ChainPart[Where] | None" = None
    program: str = ""
    cpus: tuple[int, ...] | None = None
    kernel: Kernel | None = None
    variant: str = ""
    prepared: str = "snapshot"
    arm: str = field(default="", compare=False)


@dataclass(frozen=True)
class Chain(Generic[Where]):
    """All parts of one arm. `hops` run from the first server to the clients' end."""

    arm: Arm = field(compare=False)
    servers: tuple[ChainPart[Where], ...]
    hops: tuple[ChainPart[Where], ...] = ()
    clients: tuple[ChainPart[Where], ...] = ()
    neighbour: ChainPart[Where] | None = None

    @property
    def server(self) -> ChainPart[Where]:
        return self.servers[0]

    @property
    def others(self) -> tuple[ChainPart[Where], ...]:
        return self.servers[1:]

    @property
    def parts(self) -> tuple[ChainPart[Where], ...]:
        """Servers and hops, from the first server to the clients' end."""
        return (*self.servers, *self.hops)

    @property
    def entry(self) -> ChainPart[Where]:
        """The part that the first client connects to."""
        return self.hops[-1] if self.hops else self.server

    @property
    def client(self) -> ChainPart[Where]:
        return self.clients[0]

    @property
    def proxy(self) -> ChainPart[Where] | None:
        return next((part for part in self.hops if part.kind not in HOPS), None)

    @property
    def by_role(self) -> dict[str, ChainPart[Where]]:
        """First server, proxy if there is one, and first client."""
        firsts = {"server": self.server, "proxy": self.proxy, "client": self.client}
        return {role: part for role, part in firsts.items() if part is not None}

    @property
    def by_socket(self) -> bool:
        """True if clients come over the servers' own sockets instead of a network."""
        return self.arm.access == registry.SOCKET

    def hop(self, kind: str) -> ChainPart[Where] | None:
        return next((part for part in self.hops if part.kind == kind), None)


class Arranged(Generic[Where]):
    """The parts of a study, each made once; ports are counted at each place from `first_port` on."""

    def __init__(self, first_port: int) -> None:
        self._ports: Counter[str] = Counter()
        self._first_port = first_port
        self._ranks: Counter[str] = Counter()
        self._made: dict[Hashable, ChainPart[Where]] = {}

    def once(
        self,
        role: str,
        kind: str,
        ports: int = 1,
        places: Collection[str] = ("",),
        apart: Hashable = (),
        *,
        where: Where | Callable[[int], Where],
        port: int | None = None,
        **rest: Any,
    ) -> ChainPart[Where]:
        """The part that is asked for alike, made at need; its ports, or its own `port`, are alike at all
        places. What is asked for besides, and sets parts apart, is `apart`; by which arm does not."""
        asked = (value for name, value in rest.items() if name != "arm")
        key = (kind, apart, None if callable(where) else where, *asked)
        if key not in self._made:
            taken = max(self._ports[place] for place in places)
            for place in places:
                self._ports[place] = taken + (ports if port is None else 0)
            rank, self._ranks[role] = self._ranks[role], self._ranks[role] + 1
            at = self._first_port + taken if port is None else port
            there = where(at) if callable(where) else where
            self._made[key] = ChainPart(number_role(role, rank), kind, at, there, rank, **rest)
        return self._made[key]


def number_role(role: str, rank: int) -> str:
    """Name of one of a role: server, server-2, server-3."""
    return role if rank == 0 else f"{role}-{rank + 1}"


def describe_proxy(arm: Arm) -> str:
    """Requests to an arm's proxy, as text that tells proxies apart."""
    return arm.proxy.model_dump_json(exclude_defaults=True) if arm.proxy is not None else ""


def name_copies(arms: Mapping[str, Arm]) -> dict[str, str]:
    """Name of each arm's prepared copy of its data; arms with the same data share one."""
    return {arm: number_role("snapshot", rank) for rank, each in enumerate(data_groups(arms)) for arm in each}
