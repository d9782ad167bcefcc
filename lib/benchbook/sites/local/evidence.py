"""What an arm's arrangement is, as the kernel and the parts tell it, and how it held during a run."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from benchbook.core.study.study import Study
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.local import cgroups
from benchbook.sites.local.placement import Chain, Part
from benchbook.sites.local.runtime import Parts
from benchbook.sites.machine import facts as machine
from benchbook.sites.processes import procfs
from benchbook.sites.topology import background_load, events
from benchbook.sites.topology.parts import of_others

PINGS = 21


def facts(
    parts: Parts, chain: Chain, study: Study, arm: str, cpus: Mapping[str, list[int] | None]
) -> dict[str, Any]:
    """Return what an arm is found to be: engine, proxy, hops, arrangement, machine, and the moment."""
    proxy, relay, service = chain.proxy, chain.hop("relay"), chain.hop("service")
    setting = study.arms[arm]
    found = {
        "arm": arm,
        "access": setting.access,
        "site": {
            "kind": "local",
            "port": study.site.port,
            "cpus": dict(cpus),
            "priority": study.site.priority,
        },
        "engine": parts.get(chain.server).facts(),
        "proxy": parts.get(proxy).facts() if proxy is not None else None,
        "network": setting.network,
        "service": parts.get(service).facts() if service is not None else None,
        "zones": _distance(parts, chain),
        "qos": setting.qos,
        "neighbour": setting.neighbour.model_dump() if setting.neighbour is not None else None,
        "cpu": {
            part: {
                "cores": list(one.cpus) if one.cpus else None,
                **(group.in_force() if (group := parts.group(one)) is not None else {}),
            }
            for part, one in _parts(chain).items()
        },
        "kernel": _kernel(parts, chain.server) if chain.server.kernel is not None else None,
        **({"event": setting.event.model_dump()} if setting.event is not None else {}),
        "machine": machine.facts(),
        "moment": machine.moment(parts.lab.folder),
    }
    if relay is not None:
        found["moment"]["ping_ms"] = {
            "through the hop": ping_ms(parts, relay),
            "beside it": ping_ms(parts, chain.server),
        }
    if cluster := parts.get(chain.server).moment():
        found["moment"]["cluster"] = cluster
    host, port = parts.address(chain.entry)
    found["moment"]["endpoint"] = "the server's socket" if chain.by_socket else f"{host}:{port}"
    if chain.others:
        # Each reads its own settings back, and is refused where it did not take them.
        said = {part.name: parts.get(part).facts() for part in chain.others}
        found["servers"] = of_others(said)
    return found


def identity(parts: Parts, chain: Chain) -> dict[str, Any]:
    """What tells an arm's parts from others, with the place (cores, nice, groups, limits) of each process."""
    found: dict[str, Any] = {"place": procfs.place(os.getpid())}
    for part in chain.parts:
        said = parts.get(part).identity()
        found |= {part.name: said} if part in chain.others else said
        child = parts.get(part).child
        if child is not None:
            found[f"{part.name}_place"] = procfs.place(child.pid)
        group = parts.group(part)
        if group is not None:
            kind = part.name if part in chain.others else part.kind
            found[f"{kind}_group"] = group.in_force()
            inside = (group.folder / "cgroup.procs").read_text(encoding="ascii").split()
            if str(pid := parts.get(part).child.pid) not in inside:
                raise SiteError(
                    f"pid {pid} has left its control group {group.folder}; call site.up(arm) again"
                )
    for part in chain.servers if chain.server.where.is_pod else ():
        name = f"{part.name}_namespace" if part in chain.others else "namespace"
        found[name] = _namespace(parts, part)
    return found


def neighbour_of(arm: str) -> str:
    """Role of an arm's neighbour: arms in turns have theirs at the same time."""
    return f"{background_load.NEIGHBOUR}-{arm}"


@contextlib.contextmanager
def during(parts: Parts, chain: Chain, arm: str) -> Iterator[dict[str, Any]]:
    """Run an arm's neighbour and load while the block runs; the record yielded is filled when it ends."""
    record: dict[str, Any] = {}
    service = chain.hop("service")
    groups = {name: its for name, part in _parts(chain).items() if (its := parts.group(part)) is not None}
    packets = parts.get(service).packets() if service is not None else 0
    held = {name: its.throttled() for name, its in groups.items()}
    asked, group = chain.arm.neighbour, None
    if asked is not None:
        group = cgroups.make(parts.lab.token, neighbour_of(arm), quota=None, shares=asked.shares).folder
    busy = background_load.neighbour(parts.lab, asked, chain.server.cpus, group, neighbour_of(arm))
    entry = parts.address(chain.entry)
    proxy = parts.get(chain.proxy) if chain.proxy is not None else None
    load = background_load.connections(parts.lab, chain.arm.load, entry, chain.client.cpus)
    caught = background_load.capture(proxy, chain.arm.capture)
    server = parts.get(chain.server)
    whole, planned = server.beside(), chain.arm.event
    disturb = partial(events.disturb_server, server, planned)
    event = events.carry_out("arms.event", planned, disturb)
    with busy as beside, load as borne, caught as captured, whole as cluster, event as carried_out:
        record |= {"cluster": cluster} if cluster else {}
        record |= {"event": carried_out} if carried_out is not None else {}
        record |= {"load": borne} if borne else {}
        record |= {"capture": captured} if captured else {}
        yield record
    if chain.proxy is not None and parts.get(chain.proxy).pools_sessions:
        record["pools_sessions"] = True
    # A proxy that is up, of whichever arm, may ask this server now and then whether it lives.
    names = {one.proxy.name for one in parts.chains.values() if one.server == chain.server and one.proxy}
    up = [one for name, one in parts.alive.items() if name in names and one.child is not None]
    if any(one.has_probes for one in up):
        record["has_probes"] = True
    if beside:
        record["neighbour"] = beside
    if service is not None:
        record["service"] = {"connections": parts.get(service).packets() - packets}
    if held:
        record["throttled"] = {
            name: procfs.throttled_since(held[name], its.throttled()) for name, its in groups.items()
        }


def _distance(parts: Parts, chain: Chain) -> dict[str, Any] | None:
    """Return what makes the distance to the server: a relay, or netem on a pod's cable; None: nothing."""
    if (relay := chain.hop("relay")) is not None:
        return parts.get(relay).facts()
    far = chain.server.where.latency_ms
    return None if far is None else {"latency_ms": far, "made_by": "netem on both ends of the pod's cable"}


def _parts(chain: Chain) -> dict[str, Part]:
    proxy = chain.proxy
    return {"server": chain.server, **({"proxy": proxy} if proxy else {}), "client": chain.client}


def _kernel(parts: Parts, server: Part) -> dict[str, int]:
    """Return the kernel settings made for a server as they are now, with the open files it may have."""
    found = dict(parts.kernel.get(server.name, {}))
    if server.kernel is not None and server.kernel.nofile is not None:
        pid = parts.get(server).child.pid
        allowed = procfs.open_files_limit(pid)
        if allowed != server.kernel.nofile:
            raise SiteError(
                f"kernel.nofile: asked {server.kernel.nofile}, the server may open {allowed} files; "
                "write a value it can hold"
            )
        found["nofile"] = allowed
    return found


def _namespace(parts: Parts, part: Part) -> str:
    """Return the server's network namespace, as the kernel numbers it; SiteError if it is not the pod's."""
    child = parts.get(part).child
    path = parts.network.pod(part.rank + 1)[0]
    its = os.readlink(f"/proc/{child.pid}/ns/net") if child is not None else ""
    if its != f"net:[{path.stat().st_ino}]":
        raise SiteError(f"the server is in namespace {its or 'none'}, not in {path}; call site.up(arm) again")
    return its


def ping_ms(parts: Parts, part: Part) -> float:
    """Return the median time of an empty command there and back, in milliseconds; costs one connection."""
    account: dict[str, Any] = {"user": labs.USER, "password": parts.lab.password(), "database": labs.SCHEMA}
    taken = []
    with parts.machine.connect(parts.address(part), read_timeout=30, **account) as connection:
        for _ in range(PINGS):
            begun = time.perf_counter()
            connection.ping(reconnect=False)
            taken.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(taken), 4)
