"""Arms of a study file: every factor that can be varied on one site, each with its role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from benchbook.core.study import descriptors, registry, study_base
from benchbook.core.study.study_base import Model, Name, check_names, known_names, require_distinct
from benchbook.core.study.study_cluster import ArmCluster, ArmEvent
from benchbook.core.study.study_hosts import ArmAddress, HostProxy, Numa, PartSettings
from benchbook.core.study.study_kubernetes import NodePlacement, PodResources
from benchbook.core.study.study_sections import EngineName, Settings


class ArmBuild(Model):
    """Changes of the study's build by this arm."""

    repo: str | None = None
    """Another clone; null: as the study says."""
    ref: str | None = Field(None, examples=["main"])
    """Another commit, branch or tag; null: as the study says."""
    command: str | None = None
    """What builds it; null: as the study says."""
    binary: str | None = None
    """Path of what was built; null: as the study says."""


class ArmEngine(Model):
    """Changes of the study's engine by this arm; it gets a server and data of its own."""

    name: EngineName | None = None
    """Another engine; nothing of the study's version, binary and settings then holds for this arm."""
    version: str | None = Field(None, pattern=r"^[0-9]+(\.[0-9A-Za-z]+)*$", examples=["6.6"])
    """Another version, from the left; null: as the study says."""
    binary: str | None = None
    """Path of another server binary; null: as the study says."""
    build: ArmBuild | None = None
    """What this arm changes of the commit that is built; null: nothing."""
    settings: Settings = Field({})
    """Settings of this arm, on top of the study's."""
    cluster: ArmCluster | None = None
    """What this arm changes of the study's cluster; null: nothing."""


class ArmData(Model):
    """Loading and warming of this arm's data, if that is the factor the study varies."""

    index: Literal["after", "before"] = "after"
    """Secondary index made `after` the rows are loaded, as sysbench does, or `before`."""
    analyze: bool | None = None
    """Run ANALYZE TABLE after loading; null: as `warm_up.analyze` says."""
    prewarm: bool | None = None
    """Read all tables and indexes into memory before each block; null: as `warm_up.prewarm` says."""


ELSEWHERE = "What you run yourself is measured as it stands: site.kind: existing with an endpoint for each"
ELSEWHERE += " arm (`benchbook new --about servers`)"
Access = Annotated[str, *known_names("access (of no package here)", registry.list_access, ELSEWHERE)]
Core = Annotated[int, Field(ge=0, le=4095, examples=[0])]
LOWEST_SHARES = 2
"""Weight of a server whose arm asks for best effort, and of no other: the lowest that a kernel takes."""
PRESENTATION = ("name",)
"""What of an arm is for readers alone: neither a run nor what was promised before it depends on it."""
UNMEASURED = (*PRESENTATION, "stands_in_for", "plays", "illustrates")
"""What of an arm changes no run."""


PARTS_ON_HOSTS = ("server", "proxy", "client", *(f"client{number}" for number in range(2, 17)))
PartOnHost = Annotated[str, check_names("part", lambda: PARTS_ON_HOSTS)]


class Cpu(Model):
    """Limits of one part (server, proxy or client) on its use of the processor."""

    quota: float | None = Field(None, ge=0.01, le=4096, examples=[0.5])
    """Processor time in cores (0.5: half of one core's time), held by a control group; null: no quota."""
    cores: Annotated[tuple[Core, ...], Field(min_length=1), AfterValidator(require_distinct)] | None = None
    """Numbers of the cores that may be used; null: as `site.cpus` says."""


class Neighbour(Model):
    """Another tenant of the machine that computes all the time while this arm is measured."""

    processes: int = Field(ge=1, le=4096, examples=[1])
    """Busy threads, on the server's cores."""
    shares: int = Field(LOWEST_SHARES, ge=LOWEST_SHARES, le=262_144, examples=[LOWEST_SHARES])
    """Weight of all of them together against the server's; 2 is that of a Kubernetes pod without requests."""


class ZoneDistance(Model):
    """Distance between the server and the client or proxy that reaches it."""

    latency_ms: float = Field(ge=0, le=1000, examples=[1.0])
    """Milliseconds added in each direction; 0 leaves the hop in place, as the baseline needs it."""


class Kernel(Model):
    """Kernel settings as a source made them; `down` restores the earlier state."""

    somaxconn: int | None = Field(None, ge=1, le=2_147_483_647, examples=[32768])
    """net.core.somaxconn: longest queue of connections that wait to be accepted; null leaves it."""
    syncookies: int | None = Field(None, ge=0, le=2, examples=[0])
    """net.ipv4.tcp_syncookies; null leaves it."""
    swappiness: int | None = Field(None, ge=0, le=200, examples=[0])
    """vm.swappiness, which the whole machine shares; null leaves it."""
    nofile: int | None = Field(None, ge=1024, le=1_073_741_816, examples=[1000000])
    """Open files allowed to the server; null leaves it."""


class Load(Model):
    """Load on the server beside sysbench while this arm is measured, from a program of our own."""

    idle_connections: int = Field(0, ge=0, le=60_000, examples=[5000])
    """Connections that are opened before a run, held while it lasts, and never used."""
    new_connections_per_s: int = Field(0, ge=0, le=10_000, examples=[200])
    """Connections opened and closed each second; a run in which fewer than 95 % of them were made is
    invalid."""

    @property
    def connections(self) -> int:
        """Connections that may be open at once: those being opened may take two seconds."""
        return self.idle_connections + 2 * self.new_connections_per_s

    @model_validator(mode="after")
    def _some(self) -> Load:
        if not self.connections:
            raise ValueError("a load of nothing; ask for idle_connections or new_connections_per_s")
        return self


class Arm(Model):
    """One full setting of everything that is varied."""

    name: str | None = Field(None, min_length=1, max_length=40, pattern=r"^\S(.*\S)?$", examples=["TiDB 6.6"])
    """What readers see in place of the key, as inside a sentence: `TiDB 6.6`, `the c2 machine`. Data, run
    ids and files keep the key."""
    access: Access = "direct"
    """How the client reaches the server: `direct` over TCP, `socket` over its Unix socket, `service` by a
    virtual address that the kernel rewrites, a proxy, or `load_balancer`, a proxy in front of the service."""
    network: Literal["host", "pod"] = "host"
    """`host`: loopback; `pod`: a network namespace of its own behind a virtual cable and a bridge."""
    cpu: dict[Literal["server", "proxy", "client"], Cpu] = Field({})
    """Processor of `server`, `proxy` and `client`; parts left out take what `site.cpus` gives."""
    qos: Literal["none", "best_effort", "guaranteed"] = "none"
    """Weight of the server against its neighbour: `best_effort` the lowest there is, `guaranteed` that of its
    cores, `none` the kernel's own."""
    neighbour: Neighbour | None = None
    """A noisy neighbour on the server's cores; null: none."""
    zones: ZoneDistance | None = None
    """Distance to the server; null: no such hop. All arms of a study have one or none has."""
    kernel: Kernel | None = None
    """Kernel settings; null changes nothing."""
    engine: ArmEngine | None = None
    """What this arm changes of the study's engine, such as its version; null: nothing."""
    data: ArmData | None = None
    """How this arm's data are loaded and warmed; null: as in all other arms."""
    event: ArmEvent | None = None
    """What is done to this arm's server in the middle of each run; null: nothing."""
    load: Load | None = None
    """Connections beside sysbench's: idle ones, or new ones each second; null: none."""
    clients: int = Field(1, ge=1, le=16, examples=[3])
    """sysbench processes of one run, which begin together and share threads and rate. Client i uses server i
    modulo `servers`."""
    servers: int = Field(1, ge=1, le=16, examples=[3])
    """Servers of this arm, each with the same prepared data; the study's other arms use the first."""
    options_by: Literal["arguments", "file"] = "arguments"
    """How sysbench gets its options: as `arguments`, or from a `file` that is kept with the run."""
    capture: bool = False
    """The proxy records all traffic to disk while this arm is measured; only with `access: tiproxy`."""
    placement: NodePlacement | None = None
    """Nodes of this arm's parts in a cluster; null: as `site.kubernetes.nodes` says."""
    resources: PodResources | None = None
    """Requests and limits of this arm's server pod in place of `qos` and `cpu.server`; null: as these say."""
    hosts: dict[PartOnHost, Name] = Field({}, examples=[{"server": "db2"}])
    """Hosts of this arm's parts by their names in the inventory, with `site.kind: ssh`: `server`, `proxy`,
    `client`, of several clients `client2` and so on. A part left out is on the first host with its role, a
    client where the first is named on that one's."""
    proxy: HostProxy | None = None
    """Version and settings of this arm's proxy, with `site.kind` local or ssh; null: as the site has them."""
    numa: Numa | None = None
    """NUMA nodes of the parts of a cluster that `tiup` makes; null binds nothing."""
    parts: PartSettings | None = None
    """Settings of the parts of a TiDB cluster for this arm, on top of those of `site.tiup` or
    `site.kubernetes.tidb`; null: none."""
    endpoint: ArmAddress | None = None
    """Where this arm connects, with `site.kind: existing`; null: as `site.existing` says."""
    stands_in_for: str | None = Field(None, min_length=3, max_length=300)
    """What of a source this arm stands in for, and how it differs from it; the report says so."""
    plays: dict[str, str | int | float] = Field({}, examples=[{"arm": "haproxy"}])
    """What this arm is in the words of the sources whose claims the study answers, such as `{arm: haproxy}`;
    its own name and its load need not be named."""
    illustrates: Annotated[tuple[str, ...], AfterValidator(require_distinct)] = ()
    """Published claims, each `source/claim`, whose direction and size this arm shows without judging them."""

    @model_validator(mode="after")
    def _require_capturing_proxy(self) -> Arm:
        able = ", ".join(name for name, proxy in descriptors.load_proxies().items() if proxy.captures)
        if self.capture and self.access not in able.split(", "):
            raise ValueError(f"capture needs a proxy that can; write access: {able}, or remove capture")
        return self

    @property
    def setting(self) -> dict[str, object]:
        """Settings that affect a run, as plain data; keys at defaults are left out, so a new key never
        changes an old study's runs."""
        stated = self.model_dump(mode="json", exclude_defaults=True, exclude=set(UNMEASURED))
        return {"access": self.access} | stated

    def role(self, name: str) -> dict[str, str | int | float]:
        """Properties of an arm of this name for a claim, by the keys of a source."""
        load = self.load.model_dump(exclude_defaults=True) if self.load is not None else {}
        return {"arm": name, **load, **self.plays}


def without_presentation(arms: Any, keys: Sequence[str] = PRESENTATION) -> Any:
    """A study file's section `arms`, as parsed, without keys for readers alone, or other keys."""
    if not isinstance(arms, Mapping):
        return arms
    kept = dict(arms)
    for name, arm in arms.items():
        if isinstance(arm, Mapping):
            kept[name] = {key: value for key, value in arm.items() if key not in keys}
    return kept


def find_conflicts(arms: Mapping[str, Arm]) -> Iterator[str]:
    """Conflicts between arms, each as `path.to.key: fault; remedy`."""
    yield from _find_same_names(arms)
    if name := study_base.find_lacking({name: arm.zones for name, arm in arms.items()}):
        why = "another arm has the hop, so the hop itself would be compared"
        yield f"arms.{name}.zones: null: {why}; write {{latency_ms: 0}}"
    on_host = {name: arm for name, arm in arms.items() if arm.network == "host"}
    everywhere, there = ("all arms", arms), ("all arms on the host network", on_host)
    for key, (whose, those) in {"swappiness": everywhere, "somaxconn": there, "syncookies": there}.items():
        values = {name: getattr(arm.kernel, key, None) for name, arm in those.items()}
        first = next(iter(values.values()), None)
        if name := next((name for name, value in values.items() if value != first), ""):
            why = f"the machine has one value for {whose} and another asks for {first}"
            yield f"arms.{name}.kernel.{key}: {values[name]}: {why}; write the same in all of them"


def _find_same_names(arms: Mapping[str, Arm]) -> Iterator[str]:
    for name, arm in arms.items():
        same = [text for text, other in arms.items() if text != name and arm.name in (text, other.name)]
        if arm.name is not None and same:
            yield f"arms.{name}.name: {arm.name}: what arm {same[0]} is called; write another name"
