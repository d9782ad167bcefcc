"""Names for study files, the place of their code, and the abilities of each kind of site.

A kind of site is a room in `sites` and one line here, named as text and loaded by `sites` when used. Engines
and proxies say what they are themselves (`core.study.descriptors`).

On most kinds an arm that asks for what its kind does not make is a mistake in the study file. Hosts leave
such an arm out and measure the others (`sites.hosts.obstacles`), unless what it asks for belongs to one kind
of site alone.
"""

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


def list_access() -> list[str]:
    """All ways of access, sorted: those that are no proxy, and the proxies."""
    return sorted({*WAYS, *descriptors.load_proxies()})


_OF_CLIENTS = frozenset({"access: direct", "clients", "options_by"})
_OF_SERVERS = _OF_CLIENTS | {"event", "servers"}
_OF_MACHINES = _OF_SERVERS | {"capture", "cpu.cores", "data", "engine", "kernel", "load"}
_OF_NETWORKS = _OF_SERVERS | {"access: load_balancer", "access: service"}
_OF_NETWORKS |= {"cpu.quota", "neighbour", "network", "qos"}
# Proxies beside these are made where their own traits say.
MAKES: dict[str, frozenset[str]] = {
    "existing": _OF_CLIENTS | {"endpoint", "engine"},
    "kubernetes": _OF_NETWORKS | {"parts", "placement", "resources"},
    "local": _OF_MACHINES | _OF_NETWORKS | {"access: socket", "proxy", "zones"},
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


def engine_names(study: Any) -> set[str]:
    """Names of all engines of a study's arms."""
    requests = (arm.engine.name for arm in study.arms.values() if arm.engine is not None)
    return {study.engine.name, *filter(None, requests)}


def is_supported(kind: str, what: str) -> bool:
    """True if a kind of site makes a part of an arm, by its name in `MAKES`."""
    proxy = descriptors.load_proxies().get(what.removeprefix("access: "))
    return what in MAKES[kind] if proxy is None else kind in proxy.sites


def format_refusal(what: str, kind: str, able: Iterable[str], why: str = "", remedy: str = "") -> str:
    """Sentence for a part not made on a kind of site; `able` are the kinds that make it."""
    because = f": {why}" if why else ""
    return f"{what}: not supported with site.kind: {kind}{because}; {remedy or format_remedy(able)}"


def format_remedy(able: Iterable[str]) -> str:
    """Remedy: the kinds of site to write instead."""
    return f"write site.kind: {' or '.join(sorted(able))}"


def find_mistakes(kind: str, arms: Mapping[str, Any]) -> Iterator[str]:
    """Faults of a study: parts its arms ask for that its kind of site does not make."""
    for name, arm in arms.items():
        for what, sentence in find_refusals(kind, arm):
            if kind != LEAVES_OUT or what in _OF_ONE:
                yield f"arms.{name}.{sentence}"


def find_refusals(kind: str, arm: Any) -> Iterator[tuple[str, str]]:
    """Parts of an arm that a kind of site does not make, and `key: reason; remedy`."""
    for what, key in _list_parts(arm.setting):
        if not is_supported(kind, what):
            why, remedy = _INSTEAD.get((what, kind), (_WHY.get(what, ""), ""))
            if kind == "existing":
                why, remedy = "only clients are ours there", "write endpoint, and stands_in_for"
            able = [text for text in MAKES if is_supported(text, what)]
            yield what, format_refusal(key, kind, able, why, remedy or f"remove it, or {format_remedy(able)}")


def _list_parts(setting: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Parts that an arm asks for, by their names in `MAKES`, and the keys in the study file."""
    for key, value in setting.items():
        if key == "access":
            yield f"access: {value}", f"access: {value}"
        elif key == "cpu":
            for part, room in value.items():
                yield from ((f"cpu.{item}", f"cpu.{part}.{item}") for item in room)
        else:
            yield key, key
