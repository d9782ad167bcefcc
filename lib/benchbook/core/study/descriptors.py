"""Descriptors of engines and proxies, and their discovery; no name of one stands here.

Ours are the modules of `benchbook.sites.descriptors`; those of other packages are entry points of the groups
`benchbook.engines` and `benchbook.proxies`. Each is a `TRAITS`, which imports nothing but this floor.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from benchbook.core.util.errors import BenchbookError, InputErrors, did_you_mean

OURS = "benchbook.sites.descriptors"
LOAD_BALANCER = "load_balancer"
# The kind of site that makes pods.
POD_SITE = "kubernetes"
# sysbench's drivers.
MYSQL, PGSQL = "mysql", "pgsql"
# Programs that hosts need beside those of engines and proxies.
BESIDE = ("sysbench", "tiup")
Settings = Mapping[str, Any]
TEXT = ("character set", "order of text")
"""What columns say of their text; some engines have no setting for it."""
MEANINGS = (
    "memory for pages", "a commit waits for the disk", "torn pages are mended", "size of the log",
    "isolation", *TEXT,
)  # fmt: skip
"""What settings of different engines are about, in the words of a report."""


@dataclass(frozen=True, kw_only=True)
class _Descriptor:
    """Common properties of engines and proxies. Those without a default here, each must state."""

    name: str
    """Its name in study files, and its key in facts."""
    product: str
    """Its name for readers."""
    code: str
    """Its class as MODULE:CLASS, loaded when it is used."""
    programs: tuple[str, ...]
    """Programs that a machine needs for it; the first says the version."""
    sites: frozenset[str]
    """Kinds of site on which it is made."""
    version_by: tuple[str, ...] = ("--version",)
    """What asks its program for the version."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Packages with its programs by package manager, where they aren't named like the first program."""
    account: str = "nobody"
    """User that it runs as where we are root."""
    ports: int = 1
    """TCP ports in a row that it takes."""
    is_basic: bool = False
    """The studies that come with us need it, so `make doctor` fails without it."""


@dataclass(frozen=True, kw_only=True)
class EngineDescriptor(_Descriptor):
    """One engine."""

    driver: str
    """sysbench's driver for it."""
    reserved: Callable[[Settings], list[str]]
    """Returns, sorted, the settings that no study may make: where it listens, lives and writes."""
    has_backends: bool
    """It begins a process for each session, which a clock of turns can't let stand still."""
    has_own_work: bool
    """It works on after it has answered: what it collects late, another's turn would pay for."""
    leaves_gaps: bool
    """It leaves gaps between the ids it gives, so that rows are loaded with ids of our own."""
    tells_settings: bool
    """Its facts say of each setting what was asked for, under the name that the study gives it."""
    must_limit_connections: bool
    """A study with many connections beside sysbench's must set `max_connections`."""
    meanings: Mapping[str, Settings]
    """Its settings for each of `MEANINGS`, each as engines are compared; none where nothing compares."""
    text: tuple[str, str]
    """Character set and collation of columns whose text compares with that of other engines."""
    example: str
    """YAML below `engine:` with which `benchbook new` begins a study, a key a line."""
    said_by: str | None
    """A word in the version of a server that others run, in lower case; None: none is known by it."""
    apart: tuple[str, ...] = ()
    """Debian's packages that have its program and what it needs beside libraries; `{major}` is filled in."""
    closed_since: str | None = None
    """First version that lets nobody in over a network before it has accounts; None: each does."""
    has_checksum: bool = False
    """Its own checksum of a table is the same for the same rows on all of its servers."""
    has_items: bool = False
    """It has a settings file with items beside variables: names with a dash."""
    has_socket: bool = False
    """Clients on its own machine may reach it over a Unix socket."""
    encrypts: bool = False
    """It takes our certificates (`site.tls`)."""
    runs_own_scripts: bool = False
    """Own scripts of sysbench are held to its tables and counters."""
    cluster: str | None = None
    """What makes a cluster of it on this machine (`engine.cluster`), as MODULE:CLASS."""
    clusters_by: frozenset[str] = frozenset()
    """What else makes clusters of it: keys of the section `site`."""
    moving: frozenset[str] = frozenset()
    """Its variables that change by themselves, or from start to start, beside those of MySQL's family."""
    uncounted: frozenset[str] = frozenset()
    """Counters of the ledger that some version of it does not have; none of another may be missing."""
    block_overhead_s: float = 4.0
    """Seconds between blocks in which data are put back and a server starts, as measured."""

    def __post_init__(self) -> None:
        if set(self.meanings) != set(MEANINGS):
            raise BenchbookError(f"{self.name}: `meanings` says not just {', '.join(MEANINGS)}")


@dataclass(frozen=True, kw_only=True)
class ProxyDescriptor(_Descriptor):
    """One proxy."""

    driver: str | None
    """The one driver of sysbench that it serves; None: it relays bytes and serves all."""
    relays_tls: bool
    """Encrypted sessions go through it."""
    refused: Callable[[Settings, int], str | None]
    """Returns why a study's settings can't be taken with so many connections beside sysbench's, as `NAME:
    reason; what to write`, or None."""
    sites: frozenset[str] = frozenset({"local", "ssh"})
    spreads: bool = False
    """It shares connections out over all servers of a cluster that it is given; a rule leads to one."""
    fails_over: bool = False
    """Of several servers of an arm it leads to the first, and to the others while that one is gone."""
    has_children: bool = False
    """Processes that it starts do its work, which a clock of turns can't let stand still."""
    captures: bool = False
    """It can record the traffic that goes through it: its class has `capturing`."""
    is_balancer: bool = False
    """It is what a load balancer on this machine is made of."""
    pod: str | None = None
    """What makes it in a pod, as MODULE:CLASS; each that is made in a cluster must say."""

    def __post_init__(self) -> None:
        if POD_SITE in self.sites and self.pod is None:
            raise BenchbookError(f"{self.name}: made with site.kind: {POD_SITE}, and `pod` says no class")


T = TypeVar("T", EngineDescriptor, ProxyDescriptor)


def find_engine(name: str) -> EngineDescriptor:
    """Descriptor of an engine; InputErrors with the nearest name if there is none of this name."""
    return _require_installed(load_engines(), "engine", name)


def find_proxy(name: str) -> ProxyDescriptor:
    """Descriptor of a proxy; InputErrors with the nearest name if there is none of this name."""
    return _require_installed(load_proxies(), "proxy", name)


@cache
def load_engines() -> Mapping[str, EngineDescriptor]:
    """All engines by name, sorted; BenchbookError if one can't be loaded or two share a name."""
    return _load_all("benchbook.engines", EngineDescriptor)


@cache
def load_proxies() -> Mapping[str, ProxyDescriptor]:
    """All proxies by name, sorted; BenchbookError if one can't be loaded or two share a name."""
    return _load_all("benchbook.proxies", ProxyDescriptor)


def find_intermediary(access: str) -> ProxyDescriptor | None:
    """Proxy of a kind of access; None: no program runs between client and server."""
    if access == LOAD_BALANCER:
        return next(proxy for proxy in load_proxies().values() if proxy.is_balancer)
    return load_proxies().get(access)


def product_name(name: str) -> str:
    """Name of an engine's or a proxy's product for readers; any other name as it is."""
    result = load_engines().get(name) or load_proxies().get(name)
    return result.product if result is not None else name


def allow_only(*words: str) -> Callable[[Settings, int], str | None]:
    """Function that refuses all settings but those of some names, for `Proxy.refused`."""

    def refused(requests: Settings, connections: int = 0) -> str | None:
        odd = sorted(set(requests) - set(words))
        instead = f"use {', '.join(words)}" if words else "remove it"
        return f"{odd[0]}: not taken; {instead}" if odd else None

    return refused


def is_leading_out(value: Any) -> bool:
    """True if a setting's value leads out of a server's own folder."""
    return isinstance(value, str) and ("/" in value or ".." in value or "\\" in value)


def required_programs() -> dict[str, dict[str, list[str]]]:
    """Needs of a host by engine and proxy: `programs`, and arguments for the first (`by`)."""
    every = (*load_engines().values(), *load_proxies().values())
    results = {of.name: {"programs": [*of.programs], "by": [*of.version_by]} for of in every}
    return {name: {"programs": [name], "by": ["--version"]} for name in BESIDE} | results


def list_programs() -> list[str]:
    """All programs that a host may need, sorted."""
    return sorted({name for program in required_programs().values() for name in program["programs"]})


def packages_with(program: str) -> Mapping[str, str]:
    """Packages with a program of an engine or a proxy, by package manager."""
    every = (*load_engines().values(), *load_proxies().values())
    return next((item.packages for item in every if program in item.programs), {})


def find_reserved(place: str, name: str, settings: Settings) -> Iterator[str]:
    """Each setting under a path of the study that its engine reserves, with the remedy."""
    why = "it says, or is short for what says, where the server listens, lives or writes"
    remedy = "remove it, or write in full the variable that is meant"
    for key in find_engine(name).reserved(settings):
        yield f"{place}.settings.{key}: not a study's to set: {why}; {remedy}"


def _load_all(group: str, kind: type[T]) -> dict[str, T]:
    results: dict[str, T] = {}
    modules = pkgutil.iter_modules(importlib.import_module(OURS).__path__, f"{OURS}.")
    ours: list[tuple[str, Any]] = [(each.name, importlib.import_module(each.name).TRAITS) for each in modules]
    for place, item in (*ours, *_load_foreign(group, kind)):
        if isinstance(item, kind):
            if item.name in results:
                raise BenchbookError(f"{place}: another {kind.__name__} is named {item.name}; rename one")
            results[item.name] = item
    return dict(sorted(results.items()))


def _load_foreign(group: str, kind: type[T]) -> Iterator[tuple[str, Any]]:
    for point in entry_points(group=group):
        package = point.dist.name if point.dist is not None else "?"
        place = f"{group}: {point.name} of package {package}"
        try:
            item = point.load()
        except Exception as error:
            raise BenchbookError(f"{place}: {error!r}; mend or uninstall the package") from error
        if not isinstance(item, kind):
            what = f"{kind.__name__} of core.study.descriptors"
            raise BenchbookError(f"{place}: {point.value} is no {what}; name one")
        yield place, item


def _require_installed(there: Mapping[str, T], what: str, name: str) -> T:
    if name not in there:
        raise InputErrors([f"{what}: {name}: not installed; {did_you_mean(name, there)}"])
    return there[name]
