"""From a study's arms to the parts that make them: servers, hops, services and proxies, each made once.

Arms that ask for the same server share it, and so on towards the client; what differs gets a part of its own.
Names and ports follow the order of the arms, so the first server is always `server` on the study's own port.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.core import registry
from benchbook.core.engines import variant
from benchbook.core.study_arm import Arm, Cpu, Kernel, Load, Neighbour
from benchbook.sites.arms.arrange import Arranged, Slot, copies
from benchbook.sites.local.cgroups import CORE_SHARES, LOWEST_SHARES

SERVICE_PORT = 3306


@dataclass(frozen=True)
class Part:
    """One part: `kind` server, relay, service or a way of access; `to` is the part behind it.

    `quota` and `shares` of None leave the part where it is started; otherwise it gets a control group. `rank`
    counts parts of its kind from 0. `variant` is what sets a server's engine and data apart (`study_engine`),
    `prepared` the copy of its data.
    """

    name: str
    kind: str
    rank: int
    port: int
    to: Part | None = None
    cpus: tuple[int, ...] | None = None
    quota: float | None = None
    shares: int | None = None
    is_pod: bool = False
    kernel: Kernel | None = None
    latency_ms: float | None = None
    variant: str = ""
    prepared: str = "snapshot"


@dataclass(frozen=True)
class Chain:
    """All that one arm needs; `parts` run from the server to what the client connects to.

    `others` are its servers after the first, which clients reach directly. With `by_socket` they come over
    the servers' own sockets instead of a network.
    """

    parts: tuple[Part, ...]
    neighbour: Neighbour | None
    client: Part
    load: Load | None = None
    captures: bool = False
    others: tuple[Part, ...] = ()
    by_socket: bool = False

    @property
    def server(self) -> Part:
        """The server at the end."""
        return self.parts[0]

    @property
    def servers(self) -> tuple[Part, ...]:
        """All servers, the first one first."""
        return (self.server, *self.others)

    @property
    def every(self) -> tuple[Part, ...]:
        """All parts of the arm."""
        return (*self.parts, *self.others)

    @property
    def entry(self) -> Part:
        """What the client connects to."""
        return self.parts[-1]

    def of(self, *kinds: str) -> Part | None:
        """Return the part of one of these kinds, or None."""
        return next((part for part in self.parts if part.kind in kinds), None)

    @property
    def proxy(self) -> Part | None:
        """The proxy, if there is one."""
        return self.of(*(name for name, target in registry.ACCESS.items() if target is not None))


def suits_netem(arms: Mapping[str, Arm]) -> bool:
    """Say whether netem could make the distance of all arms: it holds back what a pod's cable carries."""
    return all(arm.zones is not None and arm.network == "pod" for arm in arms.values())


def chains(
    arms: Mapping[str, Arm],
    port: int,
    cpus: Mapping[str, list[int] | None],
    has_netem: bool = False,
    engine: str = "mariadb",
    first: int = 0,
    ports: Mapping[str, int] | None = None,
    apart: Collection[str] = (),
) -> dict[str, Chain]:
    """Return each arm's chain of parts; `cpus` are the cores of server, proxy and client (None: all).

    `engine` is the study's; an arm may name another; `ports` is how many the servers of an arm take, where
    they are a cluster. Places (folders, ports, addresses) are given from the
    arm at `first` on, so that another number lets arms change places. Those of `apart` share no server.
    With `has_netem` distance is a matter of the pod's cable, if it can be so in all arms; else of a hop.
    """
    is_cable = has_netem and suits_netem(arms)
    arranged, prepared = Arranged[Part](port), copies(arms)

    def share(
        key: tuple[Any, ...], kind: str, listens: bool, program: str = "", wide: int = 0, **rest: Any
    ) -> Part:
        role = kind if kind in ("server", "relay", "service") else "proxy"

        def make(slot: Slot) -> Part:
            return Part(slot.name, kind, slot.rank, slot.port if listens else SERVICE_PORT, **rest)

        ports = (wide or registry.PORTS.get(program or kind, 1)) if listens else 0
        return arranged.once(key, role, make, ports)

    names = list(arms)
    turned = names[first % len(names) :] + names[: first % len(names)]
    found = {
        name: _chain(
            *(arms[name], cpus, share, is_cable, engine, prepared[name], (ports or {}).get(name, 0)),
            alone=(name,) if name in apart else (),
        )
        for name in turned
    }
    return {name: found[name] for name in arms}


def _chain(
    arm: Arm,
    cpus: Mapping[str, list[int] | None],
    share: Callable[..., Part],
    is_cable: bool,
    engine: str,
    prepared: str,
    wide: int,
    alone: tuple[str, ...] = (),
) -> Chain:
    rooms = {part: _room(arm.cpu.get(part), cpus[part]) for part in ("server", "proxy", "client")}
    kernel = arm.kernel
    cores, quota = rooms["server"]
    shares = _shares(arm, cores, quota)
    is_pod = arm.network == "pod"
    delay = arm.zones.latency_ms if arm.zones is not None and is_cable else None
    own = {"cpus": cores, "quota": quota, "shares": shares, "is_pod": is_pod}
    own |= {"kernel": kernel, "latency_ms": delay, "variant": variant(arm), "prepared": prepared}
    program = (arm.engine.name if arm.engine is not None else None) or engine
    parts = [share(("server", *own.values(), *alone), "server", True, program, wide, **own)]
    others = tuple(
        share(("server", *own.values(), number), "server", True, program, **own)
        for number in range(1, arm.servers)
    )
    proxy_cores, proxy_quota = rooms["proxy"]
    weight = None if proxy_quota is None else CORE_SHARES
    room = {"cpus": proxy_cores, "quota": proxy_quota, "shares": weight}
    if arm.zones is not None and not is_cable:
        delay = arm.zones.latency_ms
        key = ("relay", delay, proxy_cores, parts[-1])
        parts.append(share(key, "relay", True, to=parts[-1], cpus=proxy_cores, latency_ms=delay))
    if arm.access in registry.THROUGH_SERVICE:
        parts.append(share(("service", parts[-1]), "service", False, to=parts[-1]))
    if registry.ACCESS[arm.access] is not None:
        # Memory that a proxy took for one arm's connections must not be seen in another's.
        key = (arm.access, proxy_cores, proxy_quota, parts[-1], arm.load)
        parts.append(share(key, arm.access, True, to=parts[-1], **room))
    cores, quota = rooms["client"]
    client = Part("client", "client", 0, 0, None, cores, quota, None if quota is None else CORE_SHARES)
    by_socket = arm.access == registry.SOCKET
    return Chain(tuple(parts), arm.neighbour, client, arm.load, arm.capture, others, by_socket)


def _room(asked: Cpu | None, given: list[int] | None) -> tuple[tuple[int, ...] | None, float | None]:
    cores = asked.cores if asked is not None else None
    if cores is None and given is not None:
        cores = tuple(given)
    return cores, asked.quota if asked is not None else None


def _shares(arm: Arm, cores: tuple[int, ...] | None, quota: float | None) -> int | None:
    """Return the server's weight; None where it needs no control group at all."""
    if arm.qos == "best_effort":
        return LOWEST_SHARES
    if arm.qos == "guaranteed":
        return round(CORE_SHARES * (quota or len(cores or ()) or os.cpu_count() or 1))
    return CORE_SHARES if quota is not None or arm.neighbour is not None else None


def split_cpus(how: str, cores: list[int]) -> dict[str, list[int] | None]:
    """Return the cores of server, proxy and client: halves for `split`; None: all of them."""
    if how != "split" or len(cores) < 2:
        return {"server": None, "proxy": None, "client": None}
    half = len(cores) // 2
    return {"server": cores[:half], "proxy": cores[half:], "client": cores[half:]}
