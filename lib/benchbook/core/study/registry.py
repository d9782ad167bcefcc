"""What can be named in a study file, where its code is, and what of an arm each kind of site makes.

A kind of site is a room in `sites` and one line here, named as text and loaded by `sites` when used. Engines
and proxies say what they are themselves (`core.study.descriptors`).

On most kinds an arm that asks for what its kind does not make is a mistake in the study file. Hosts leave
such an arm out and measure the others (`sites.hosts.obstacles`), unless what it asks for belongs to one kind
of site alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchbook.core.study import descriptors

SITES = {
    "local": "benchbook.sites.local.site:LocalSite",
    "kubernetes": "benchbook.sites.kube.site:KubernetesSite",
    "ssh": "benchbook.sites.hosts.site:HostsSite",
    "existing": "benchbook.sites.external.site:ExistingSite",
}
# Ways of access that are no proxy. A service is a rule of the kernel (`sites.local.running`), a socket a file
# of the server's own machine.
DIRECT, SERVICE, SOCKET = "direct", "service", "socket"
WAYS = frozenset({DIRECT, SERVICE, SOCKET, descriptors.LOAD_BALANCER})
# Reached through a virtual address that the kernel rewrites to the server's.
THROUGH_SERVICE = frozenset({SERVICE, descriptors.LOAD_BALANCER})


def access() -> list[str]:
    """Return all ways of access, sorted: those that are no proxy, and the proxies."""
    return sorted({*WAYS, *descriptors.proxies()})


_OF_CLIENTS = frozenset({"access: direct", "clients", "options_by"})
_OF_SERVERS = _OF_CLIENTS | {"servers"}
_OF_MACHINES = _OF_SERVERS | {"capture", "cpu.cores", "data", "engine", "kernel", "load"}
_OF_NETWORKS = _OF_SERVERS | {"access: load_balancer", "access: service"}
_OF_NETWORKS |= {"cpu.quota", "neighbour", "network", "qos"}
# Proxies beside these are made where their own traits say.
MAKES: dict[str, frozenset[str]] = {
    "existing": _OF_CLIENTS | {"endpoint", "engine"},
    "kubernetes": _OF_NETWORKS | {"parts", "placement", "resources"},
    "local": _OF_MACHINES | _OF_NETWORKS | {"access: socket", "event", "proxy", "zones"},
    "ssh": _OF_MACHINES | {"hosts", "numa", "parts", "proxy"},
}
LEAVES_OUT = "ssh"
"""The kind of site that leaves an arm out which it does not make."""
_OF_ONE = frozenset({"access: socket", "endpoint", "hosts", "placement", "resources"})
# Why a kind does not make something, and what to write instead, where there is more to say than which does.
_INSTEAD = {
    ("cpu.cores", "kubernetes"): ("a pod chooses no cores", "write quota"),
    ("cpu.quota", "ssh"): ("", "write cores"),
    ("kernel", "kubernetes"): ("kernel settings are the nodes'", "set them there, or in gke.sysctls"),
    ("resources", "local"): ("they are a pod's", "write cpu.server.quota"),
    ("resources", "ssh"): ("they are a pod's", "write cpu.server.cores"),
    ("zones", "kubernetes"): ("a cluster has real zones", "choose them by placement.nodes"),
}
_WHY = {
    "access: socket": "clients on other machines can't use it",
    "endpoint": "it names a server that others run",
    "hosts": "they are names of an inventory",
    "numa": "it binds parts of a cluster on hosts",
    "placement": "nodes are a cluster's",
    "proxy": "its proxies are not started by their settings",
}


def engines(study: Any) -> set[str]:
    """Return the names of all engines of a study's arms."""
    asked = (arm.engine.name for arm in study.arms.values() if arm.engine is not None)
    return {study.engine.name, *filter(None, asked)}


def makes(kind: str, what: str) -> bool:
    """Say whether a kind of site makes something of an arm, as `MAKES` calls it."""
    proxy = descriptors.proxies().get(what.removeprefix("access: "))
    return what in MAKES[kind] if proxy is None else kind in proxy.sites


def refusal(what: str, kind: str, able: Iterable[str], why: str = "", remedy: str = "") -> str:
    """Return the sentence for what is not made on a kind of site; `able` are the kinds that make it."""
    because = f": {why}" if why else ""
    return f"{what}: not supported with site.kind: {kind}{because}; {remedy or to_write(able)}"


def to_write(able: Iterable[str]) -> str:
    """Say which kind of site to write instead."""
    return f"write site.kind: {' or '.join(sorted(able))}"


def mistakes(kind: str, arms: Mapping[str, Any]) -> Iterator[str]:
    """Yield what makes a study wrong: what its arms ask for that its kind of site does not make."""
    for name, arm in arms.items():
        for what, sentence in refused(kind, arm):
            if kind != LEAVES_OUT or what in _OF_ONE:
                yield f"arms.{name}.{sentence}"


def refused(kind: str, arm: Any) -> Iterator[tuple[str, str]]:
    """Yield what an arm asks for that a kind of site does not make, and `key: reason; what to write`."""
    for what, key in _asked(arm.setting):
        if not makes(kind, what):
            why, remedy = _INSTEAD.get((what, kind), (_WHY.get(what, ""), ""))
            if kind == "existing":
                why, remedy = "only clients are ours there", "write endpoint, and stands_in_for"
            able = [one for one in MAKES if makes(one, what)]
            yield what, refusal(key, kind, able, why, remedy or f"remove it, or {to_write(able)}")


def _asked(setting: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what an arm asks for, as `MAKES` calls it, and its key in the study file."""
    for key, value in setting.items():
        if key == "access":
            yield f"access: {value}", f"access: {value}"
        elif key == "cpu":
            yield from ((f"cpu.{one}", f"cpu.{part}.{one}") for part, room in value.items() for one in room)
        else:
            yield key, key
