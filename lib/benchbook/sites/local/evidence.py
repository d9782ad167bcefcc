"""Evidence of an arm's arrangement, by the kernel and the parts, and its state during a run."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core.util.errors import SiteError, require_value
from benchbook.sites import workspace as labs
from benchbook.sites.local import cgroups
from benchbook.sites.local.placement import Chain, Part
from benchbook.sites.local.runtime import LocalRuntime
from benchbook.sites.machine import facts as machine
from benchbook.sites.processes import procfs
from benchbook.sites.processes.spawn import ProcessPlacement
from benchbook.sites.topology import background_load

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
            part: {
                "cores": list(map_part.cpus) if map_part.cpus else None,
                **(group.in_force() if (group := parts.group(map_part)) is not None else {}),
            }
            for part, map_part in _map_parts(chain).items()
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


def name_neighbour(arm: str) -> str:
    """Role of an arm's neighbour: arms in turns have theirs at the same time."""
    return f"{background_load.NEIGHBOUR}-{arm}"


@contextlib.contextmanager
def run_alongside(parts: LocalRuntime, chain: Chain, arm: str) -> Iterator[dict[str, Any]]:
    """Run an arm's neighbour and load while the block runs; the record yielded is filled when it ends."""
    record: dict[str, Any] = {}
    service = chain.hop("service")
    groups = {name: its for name, part in _map_parts(chain).items() if (its := parts.group(part)) is not None}
    packets = parts.get(service).packets() if service is not None else 0
    held = {name: its.throttled() for name, its in groups.items()}
    neighbour, role = chain.arm.neighbour, name_neighbour(arm)

    def run(argv: list[str]) -> background_load.Running:
        shares = require_value(neighbour).shares
        group = cgroups.create_group(parts.lab.token, role, quota=None, shares=shares)
        where = ProcessPlacement(chain.server.cpus, (group.folder,))
        return background_load.run_program(parts.lab, role, argv, where, 1.0)

    busy = background_load.run_neighbour(neighbour, run)
    entry = parts.address(chain.entry)
    proxy = parts.get(chain.proxy) if chain.proxy is not None else None
    load = background_load.hold_connections(parts.lab, chain.arm.load, entry, chain.client.cpus)
    caught = background_load.capture_traffic(proxy, chain.arm.capture)
    with busy as beside, load as borne, caught as captured:
        record |= {"load": borne} if borne else {}
        record |= {"capture": captured} if captured else {}
        yield record
    record |= parts.describe_proxies(chain)
    if beside:
        record["neighbour"] = beside
    if service is not None:
        record["service"] = {"connections": parts.get(service).packets() - packets}
    if held:
        record["throttled"] = {
            name: procfs.throttled_since(held[name], its.throttled()) for name, its in groups.items()
        }


def _describe_distance(parts: LocalRuntime, chain: Chain) -> dict[str, Any] | None:
    """Cause of the distance to the server: a relay, or netem on a pod's cable; None: no distance."""
    if (relay := chain.hop("relay")) is not None:
        return parts.get(relay).facts()
    far = chain.server.where.latency_ms
    return None if far is None else {"latency_ms": far, "made_by": "netem on both ends of the pod's cable"}


def _map_parts(chain: Chain) -> dict[str, Part]:
    proxy = chain.proxy
    return {"server": chain.server, **({"proxy": proxy} if proxy else {}), "client": chain.client}


def _check_kernel(parts: LocalRuntime, server: Part) -> dict[str, int]:
    """Present kernel settings made for a server, with the number of open files it may have."""
    kernel = dict(parts.kernel.get(server.name, {}))
    if server.kernel is not None and server.kernel.nofile is not None:
        pid = parts.get(server).child.pid
        allowed = procfs.open_files_limit(pid)
        if allowed != server.kernel.nofile:
            raise SiteError(
                f"kernel.nofile: asked {server.kernel.nofile}, the server may open {allowed} files; "
                "write a value it can hold"
            )
        kernel["nofile"] = allowed
    return kernel


def measure_ping(parts: LocalRuntime, part: Part) -> float:
    """Return the median time of an empty command there and back, in milliseconds; costs one connection."""
    account: dict[str, Any] = {"user": labs.USER, "password": parts.lab.password(), "database": labs.SCHEMA}
    taken = []
    with parts.machine.connect(parts.address(part), read_timeout=30, **account) as connection:
        for _ in range(PINGS):
            begun = time.perf_counter()
            connection.ping(reconnect=False)
            taken.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(taken), 4)
