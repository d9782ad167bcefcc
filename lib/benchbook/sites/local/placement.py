"""From a study's arms to the parts that make them on this machine, shared by arms that ask alike."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from benchbook.core.study import descriptors, registry
from benchbook.core.study.engines import data_variant
from benchbook.core.study.study_arm import LOWEST_SHARES, Arm, Cpu
from benchbook.sites.local.cgroups import CORE_SHARES
from benchbook.sites.topology import parts
from benchbook.sites.topology.parts import Arranged, describe_proxy, name_copies

SERVICE_PORT = 3306


@dataclass(frozen=True)
class LabPlacement:
    """A part's weight and quota of cores (None: no control group), pod, and distance on the pod's cable."""

    quota: float | None = None
    shares: int | None = None
    is_pod: bool = False
    latency_ms: float | None = None


Part = parts.ChainPart[LabPlacement]
Chain = parts.Chain[LabPlacement]


def suits_netem(arms: Mapping[str, Arm]) -> bool:
    """True if netem could make the distance of all arms: it acts on a pod's cable alone."""
    return all(arm.zones is not None and arm.network == "pod" for arm in arms.values())


def build_chains(
    arms: Mapping[str, Arm],
    port: int,
    cpus: Mapping[str, list[int] | None],
    has_netem: bool = False,
    first: int = 0,
    ports: Mapping[str, int] = MappingProxyType({}),
    apart: Collection[str] = (),
) -> dict[str, Chain]:
    """Chain of parts of each arm; `cpus` are the cores of server, proxy and client (None: all).

    `ports` is how many each server of an arm takes, one if it is not said. Places are given from the arm at
    `first` on, so that another number lets arms change places. Those of `apart` share no server. With
    `has_netem` distance is a matter of the pod's cable, if it can be so in all arms; else of a hop.
    """
    is_cable = has_netem and suits_netem(arms)
    arranged, prepared = Arranged[LabPlacement](port), name_copies(arms)

    def build(name: str) -> Chain:
        arm = arms[name]
        rooms = {role: _choose_cores(arm.cpu.get(role), cpus[role]) for role in ("server", "proxy", "client")}
        cores, quota = rooms["server"]
        distance = arm.zones.latency_ms if arm.zones is not None else None
        cable = distance if is_cable else None
        where = LabPlacement(quota, _choose_shares(arm, cores, quota), arm.network == "pod", cable)
        variant, alone = data_variant(arm), (name,) if name in apart else ()
        servers = tuple(
            arranged.once(
                "server", "server", ports.get(name, 1), apart=number or alone, prepared=prepared[name],
                cpus=cores, kernel=arm.kernel, variant=variant, where=where,
            )
            for number in range(arm.servers)
        )  # fmt: skip
        hops: list[Part] = []
        cores, quota = rooms["proxy"]
        if distance is not None and not is_cable:
            where = LabPlacement(latency_ms=distance)
            hops.append(arranged.once("relay", "relay", where=where, cpus=cores, to=servers[0]))
        behind = hops[-1] if hops else servers[0]
        if arm.access in registry.THROUGH_SERVICE:
            behind = arranged.once("service", "service", where=LabPlacement(), port=SERVICE_PORT, to=behind)
            hops.append(behind)
        if (of := descriptors.find_intermediary(arm.access)) is not None:
            # Memory that a proxy took for one arm's connections must not be seen in another's.
            key = (describe_proxy(arm), arm.load, *(servers[1:] if of.fails_over else ()))
            where = _weigh_part(quota)
            part = arranged.once("proxy", arm.access, of.ports, apart=key, where=where, cpus=cores, to=behind)
            hops.append(part)
        cores, quota = rooms["client"]
        client = Part("client", "client", 0, _weigh_part(quota), cpus=cores)
        return Chain(arm, servers, tuple(hops), (client,))

    names = list(arms)
    turned = names[first % len(names) :] + names[: first % len(names)]
    chains = {name: build(name) for name in turned}
    return {name: chains[name] for name in arms}


def _weigh_part(quota: float | None) -> LabPlacement:
    return LabPlacement(quota, None if quota is None else CORE_SHARES)


def _choose_cores(cpu: Cpu | None, inputs: list[int] | None) -> tuple[tuple[int, ...] | None, float | None]:
    """Cores and quota that an arm asks for, or else the cores that all have."""
    cores, quota = (cpu.cores, cpu.quota) if cpu is not None else (None, None)
    return tuple(inputs) if cores is None and inputs is not None else cores, quota


def _choose_shares(arm: Arm, cores: tuple[int, ...] | None, quota: float | None) -> int | None:
    """Weight of the server; None if it needs no control group at all."""
    if arm.qos == "best_effort":
        return LOWEST_SHARES
    if arm.qos == "guaranteed":
        return round(CORE_SHARES * (quota or len(cores or ()) or os.cpu_count() or 1))
    return CORE_SHARES if quota is not None or arm.neighbour is not None else None


def split_cpus(how: str, cores: list[int]) -> dict[str, list[int] | None]:
    """Cores of server, proxy and client: halves for `split`; None: all of them."""
    if how != "split" or len(cores) < 2:
        return {"server": None, "proxy": None, "client": None}
    half = len(cores) // 2
    return {"server": cores[:half], "proxy": cores[half:], "client": cores[half:]}
