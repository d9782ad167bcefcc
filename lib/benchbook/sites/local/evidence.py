"""Evidence of an arm's arrangement, by the kernel and the parts."""

import statistics
import time
from collections.abc import Mapping
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.local.placement import Chain, Part
from benchbook.sites.local.runtime import LocalRuntime
from benchbook.sites.machine import facts as machine
from benchbook.sites.processes import procfs

PINGS = 21


def describe_arrangement(
    parts: LocalRuntime, chain: Chain, cpus: Mapping[str, list[int] | None]
) -> dict[str, Any]:
    """Facts of an arm's hops, arrangement, machine and moment, by observation."""
    relay, service, setting, site = chain.hop("relay"), chain.hop("service"), chain.arm, parts.study.site
    facts: dict[str, Any] = {
        "site": {"kind": "local", "port": site.port, "cpus": dict(cpus), "priority": site.priority},
        "service": parts.get(service).facts() if service is not None else None,
        "zones": _describe_distance(parts, chain),
        "qos": setting.qos,
        "neighbour": setting.neighbour.model_dump() if setting.neighbour is not None else None,
        "cpu": {
            role: {
                "cores": list(part.cpus) if part.cpus else None,
                **(group.in_force() if (group := parts.group(part)) is not None else {}),
            }
            for role, part in chain.by_role.items()
        },
        "kernel": _check_kernel(parts, chain.server) if chain.server.kernel is not None else None,
        "machine": machine.collect_facts(),
        "moment": machine.read_moment(parts.lab.folder),
    }
    if relay is not None:
        ends = {"through the hop": relay, "beside it": chain.server}
        facts["moment"]["ping_ms"] = {name: measure_ping(parts, part) for name, part in ends.items()}
    if cluster := parts.get(chain.server).moment():
        facts["moment"]["cluster"] = cluster
    host, port = parts.address(chain.entry)
    facts["moment"]["endpoint"] = "the server's socket" if chain.by_socket else f"{host}:{port}"
    return facts


def _describe_distance(parts: LocalRuntime, chain: Chain) -> dict[str, Any] | None:
    """Cause of the distance to the server: a relay, or netem on a pod's cable; None: no distance."""
    if (relay := chain.hop("relay")) is not None:
        return parts.get(relay).facts()
    far = chain.server.where.latency_ms
    return None if far is None else {"latency_ms": far, "made_by": "netem on both ends of the pod's cable"}


def _check_kernel(parts: LocalRuntime, server: Part) -> dict[str, int]:
    """Present kernel settings made for a server, with the number of open files it may have."""
    kernel = dict(parts.kernel.get(server.name, {}))
    if server.kernel is not None and server.kernel.nofile is not None:
        pid = parts.get(server).child.pid
        allowed = procfs.open_files_limit(pid)
        if allowed != server.kernel.nofile:
            fault = f"kernel.nofile: asked {server.kernel.nofile}, the server may open {allowed} files"
            raise SiteError(f"{fault}; write a value it can hold")
        kernel["nofile"] = allowed
    return kernel


def measure_ping(parts: LocalRuntime, part: Part) -> float:
    """Median time of an empty command there and back, in milliseconds; costs one connection."""
    account: dict[str, Any] = {"user": labs.USER, "password": parts.lab.password(), "database": labs.SCHEMA}
    taken = []
    with parts.machine.connect(parts.address(part), read_timeout=30, **account) as connection:
        for _ in range(PINGS):
            begun = time.perf_counter()
            connection.ping(reconnect=False)
            taken.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(taken), 4)
