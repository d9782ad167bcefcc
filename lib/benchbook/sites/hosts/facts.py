"""What an arm on hosts is found to be, in the words that an arm on one machine has, and the hosts besides."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from benchbook.core.study import Study
from benchbook.sites.agent.facts import Look
from benchbook.sites.hosts import through_agent
from benchbook.sites.hosts.arrange import Chain, Place, hosts_of
from benchbook.sites.hosts.host import Host

# Names of this machine's own facts, so that a report finds them where it always does.
OF_SERVER = (
    *("cpu_model", "cores", "memory_mib", "kernel", "system", "architecture", "governor", "swap_mib"),
    *("transparent_hugepages", "swappiness", "clocksource"),
)


def facts(
    study: Study,
    arm: str,
    chain: Chain,
    parts: Mapping[str, dict[str, Any]],
    looks: Mapping[str, Look],
    kernel: dict[str, int],
    others: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """Return what stays the same at the next start; `machine` is the server's, `others` servers after it."""
    setting = study.arms[arm]
    server = looks["server"].facts
    names = hosts_of(chain)
    cluster = parts["server"].get("cluster")
    return {
        "arm": arm,
        "access": setting.access,
        "site": {"kind": "ssh", "port": study.site.port, "inventory": study.site.inventory},
        **({"encryption": study.site.tls} if study.site.tls != "off" else {}),
        **({"cluster": cluster} if cluster else {}),
        "engine": {key: value for key, value in parts["server"].items() if key != "cluster"},
        **({"servers": others} if others else {}),
        "proxy": parts.get("proxy"),
        "network": setting.network,
        "cpu": {
            "server": {"cores": _cores(chain.server.cpus)},
            **({"proxy": {"cores": _cores(chain.proxy.cpus)}} if chain.proxy else {}),
            "client": {"cores": _cores(chain.client.cpus)},
        },
        "kernel": kernel or None,
        "machine": {name: server[name] for name in OF_SERVER}
        | {"sysbench": looks["client"].facts["sysbench"]},
        "hosts": {role: {"name": names[role], **look.facts, "python": None} for role, look in looks.items()},
    }


def moment(looks: Mapping[str, Look], hosts: Mapping[str, Host], entry: Place) -> dict[str, Any]:
    """Return what changes by the hour: load and space of the hosts, their clocks, the endpoint."""
    return {
        "endpoint": f"{entry.address}:{entry.port}",
        "hosts": {role: look.moment | {"clock": clock(hosts[role])} for role, look in looks.items()},
    }


def clock(host: Host) -> dict[str, float]:
    """Return how far a host's wall clock is ahead of ours in ms."""
    found = through_agent.clock(host, "wall_s", time.time)
    return {"offset_ms": round(1000 * found.ahead_s, 3), "round_trip_ms": round(1000 * found.round_trip_s, 3)}


def _cores(cpus: tuple[int, ...] | None) -> list[int] | None:
    return list(cpus) if cpus else None
