"""Arms that this machine can make, before anything starts, and reasons against the others."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchbook.core.study import descriptors
from benchbook.core.study.engines import program_of
from benchbook.core.study.study_arm import Arm, Kernel, Load
from benchbook.core.study.study_sections import Engine
from benchbook.sites import load
from benchbook.sites.agent import files, kernel
from benchbook.sites.engines import packages
from benchbook.sites.local.placement import Chain, suits_netem
from benchbook.sites.machine import capabilities, local_machine
from benchbook.sites.processes import procfs
from benchbook.sites.topology import background_load

CLIENT_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
# With fewer, one of our ports is hardly ever among them.
MANY = 4000
NOFILE_LIMIT = kernel.SYSCTL / "fs/nr_open"
# The right to raise a limit above its hard value (capabilities(7)).
CAP_SYS_RESOURCE = 24
PODS = ("network namespaces", "veth and bridge")
NEEDED_BY = {"pod": PODS, "service": (*PODS, "iptables NAT"), "group": ("cpu quota",)}


def infeasible_reasons(arm: Arm, chain: Chain, engine: Engine | None = None) -> list[str]:
    """Reasons against an arm here, each with a remedy; nothing if it can be made."""
    results = list(_check_arm(arm, chain))
    if engine is not None and engine.cluster is not None and engine.cluster.zones_ms is not None:
        results += _check_abilities(*NEEDED_BY["service"])
    if engine is not None and (why := packages.find_obstacle(engine)) is not None:
        return [*results, why]
    if engine is not None and engine.build is None and (reason := load(program_of(engine)).obstacle(engine)):
        results.append(reason)
    return list(dict.fromkeys(results))


def has_netem(arms: Mapping[str, Arm]) -> bool:
    """True if the kernel can make the distance of all arms itself; asked only if there is any."""
    netem = (ability for ability in capabilities.check_network() if ability.name == "netem")
    return suits_netem(arms) and any(ability.ok for ability in netem)


def _check_arm(arm: Arm, chain: Chain) -> Iterator[str]:
    needs = {"pod": chain.server.where.is_pod, "service": chain.hop("service") is not None}
    parts = (*chain.parts, chain.client)
    needs["group"] = any(part.where.shares is not None for part in parts) or arm.neighbour is not None
    for need in filter(needs.__getitem__, needs):
        yield from _check_abilities(*NEEDED_BY[need])
    yield from _check_proxy(arm)
    if arm.load is not None:
        yield from _check_load(arm.load, chain)
    ours = os.sched_getaffinity(0)
    if absent := sorted({core for part in parts for core in part.cpus or ()} - ours):
        yield f"core {absent[0]} is not there or not ours; write cores of {sorted(ours)}"
    if arm.kernel is not None:
        yield from _check_kernel(arm.kernel)


def _check_proxy(arm: Arm) -> Iterator[str]:
    if (proxy := descriptors.find_intermediary(arm.access)) is None:
        return
    if reason := load(proxy.code).obstacle(arm.proxy):
        yield reason
    elif arm.capture:
        program = Path(local_machine.find_program(proxy.programs[0]) or "").resolve()
        yield from filter(None, [load(proxy.code).unable_to_capture(program)])


def _check_load(load: Load, chain: Chain) -> Iterator[str]:
    """A file for every connection in server and driver, two in a proxy; and ports that clients don't get."""
    first, last = map(int, CLIENT_PORTS.read_text(encoding="ascii").split())
    # A connection that is closed keeps its client's port for a minute (tcp(7), TIME_WAIT).
    taken = load.idle_connections + 60 * load.new_connections_per_s
    if taken > MANY and first <= chain.server.port <= last:
        yield (
            f"site.port: {chain.server.port} is one that the kernel gives to clients ({first} to {last}), "
            f"and up to {taken} of these are taken; write one below {first}"
        )
    is_proxied = chain.proxy is not None or chain.hop("relay") is not None
    if why := background_load.too_few_files(load, is_proxied, files.open_files(), "where you log in"):
        yield why


def _check_abilities(*names: str) -> Iterator[str]:
    abilities = {each.name: each for each in (*capabilities.check_network(), capabilities.cpu_quota())}
    for name in names:
        if not abilities[name].ok:
            yield f"{name}: {abilities[name].detail}; {abilities[name].remedy}"


def _check_kernel(profile: Kernel) -> Iterator[str]:
    if os.geteuid() != 0:
        yield "kernel settings are root's; run as root"
        return
    for key, name in (kernel.OF_NAMESPACE | kernel.OF_MACHINE).items():
        if getattr(profile, key) is not None and not os.access(kernel.SYSCTL / name, os.W_OK):
            yield f"kernel.{key}: {kernel.SYSCTL / name} can't be written; leave the key out"
    request, hard = profile.nofile, files.open_files()
    if request is None or hard < 0 or request <= hard:
        return
    most = int(NOFILE_LIMIT.read_text(encoding="ascii"))
    if request > most:
        yield f"open files: the kernel allows {most}; `sysctl fs.nr_open={request}`"
    if not procfs.has_capability(CAP_SYS_RESOURCE):
        yield (
            f"open files: {hard} allowed and no right to raise that; `ulimit -Hn {request}` where you log in"
        )
