"""The section of a study file on making its arms in a Kubernetes cluster."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from benchbook.core.study.study_base import Model, Name, Scalar
from benchbook.core.util import number_format

# What a node can be chosen for. PD and TiKV are parts of a TiDB cluster; its `server` is TiDB.
Role = Literal["server", "proxy", "client", "pd", "tikv"]
Label = Annotated[
    str, Field(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
]
LabelValue = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")]
Selector = dict[Label, LabelValue]
Image = Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._/:@-]{0,255}$")]


class Images(Model):
    """Image references; every image must hold `sh` and `sleep`."""

    server: Image = "mariadb:10.11"
    """Image of the server, with its programs in the PATH (docs/kubernetes.md), such as `postgres:15`."""
    client: Image = "localhost/benchbook-client:1"
    """Image of client and neighbour: `sysbench` and `python3`; `tools/images/client` builds one."""
    proxy: Image = "haproxy:2.6"
    """Image of the proxy, with its program in the PATH."""


class GuaranteedResources(Model):
    """Processor and memory of a pod: requests and limits alike."""

    cpu: float | None = Field(None, ge=0.01, le=4096, examples=[55.5])
    """Cores; null asks for none."""
    memory_mib: int | None = Field(None, ge=16, le=100_000_000, examples=[153600])
    """Memory in MiB; null asks for none."""


class PodResources(Model):
    """Requests and limits of one arm's server pod, each by itself; a lone limit is requested, too."""

    requests: GuaranteedResources = GuaranteedResources()
    """Cores and memory that are kept for it."""
    limits: GuaranteedResources = GuaranteedResources()
    """Cores and memory that it may use at the most; beyond the cores it is throttled."""


class Toleration(Model):
    """A taint of nodes that pods of this study put up with."""

    key: Label
    """Key of the taint."""
    value: LabelValue | None = None
    """Value of the taint; null takes any."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; null takes any."""


class Storage(Model):
    """Place of the servers' data."""

    storage_class: Name | None = Field(None, examples=["local-storage"])
    """Storage class of the claims; null keeps the data in the pod's own folder on its node (emptyDir)."""
    size_gib: int = Field(20, ge=1, le=100_000, examples=[300])
    """Size of a claim in GiB; the prepared copy lies beside the data, so twice the data and some."""


KNOWN: dict[str, Any] = tomllib.loads(Path(__file__).with_name("kubernetes.toml").read_text("utf-8"))
OPERATORS, NEWEST = KNOWN["operators"], KNOWN["newest"]


def parse_release(version: str) -> tuple[int, ...]:
    """A version of TiDB such as v3.0.1 as numbers."""
    return tuple(int(number) for number in version.removeprefix("v").split("."))


def operator_versions(version: str) -> tuple[str, ...]:
    """Versions of TiDB Operator for a version of TiDB such as v3.0.1, the recommended first."""
    released = parse_release(version)
    return next((tuple(OPERATORS[since]) for since in OPERATORS if released >= parse_release(since)), ())


class TidbPart(Model):
    """One part of a TiDB cluster: its number, and its settings."""

    replicas: int = Field(3, ge=1, le=99, examples=[3])
    """Number of pods."""
    config: dict[str, Scalar | tuple[str, ...]] = Field({})
    """Settings in the part's own names with dots, such as `rocksdb.defaultcf.block-cache-size`."""


class OperatorCluster(Model):
    """A TiDB cluster by TiDB Operator, required in Kubernetes; `benchbook cluster STUDY
    up` installs it on GKE."""

    version: str = Field("v7.5.1", pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+$", examples=["v3.0.1"])
    """Version of PD, TiKV and TiDB."""
    operator: str | None = Field(None, pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", examples=["1.3.10"])
    """Version of TiDB Operator, one that its maker supports with `version`; null: the recommended one."""
    pd: TidbPart = TidbPart()
    """The placement driver."""
    tikv: TidbPart = TidbPart()
    """The storage."""
    tidb: TidbPart = TidbPart()
    """The servers that clients connect to."""

    @property
    def operator_version(self) -> str:
        """The version of TiDB Operator that is used."""
        return self.operator or NEWEST[operator_versions(self.version)[0]]

    @model_validator(mode="after")
    def _require_supported_version(self) -> OperatorCluster:
        named = operator_versions(self.version)
        if not named:
            raise ValueError(f"version: {self.version}: no TidbCluster supports it; write v3.0.0 or newer")
        if self.operator is not None and self.operator.rpartition(".")[0] not in named:
            why = f"its maker does not support TiDB {self.version} with it"
            remedy = f"write a version of {', '.join(named)}, or leave it out for {NEWEST[named[0]]}"
            raise ValueError(f"operator: {self.operator}: {why}; {remedy}")
        return self


class Kubernetes(Model):
    """Arms in a Kubernetes cluster. Kubeconfig: the one that BENCHBOOK_KUBECONFIG names, else
    KUBECONFIG, else that of the home folder."""

    context: str | None = Field(None, min_length=1, max_length=253, examples=["gke_project_zone_name"])
    """Context of the kubeconfig; null takes its current one."""
    images: Images = Images()
    """Image references."""
    server: GuaranteedResources = GuaranteedResources()
    """What a server with `qos: guaranteed` gets; an arm's `cpu.server.quota` goes before `cpu`."""
    client: GuaranteedResources = GuaranteedResources()
    """What the client's pod gets."""
    client_in: Literal["pod", "server"] = "pod"
    """Where sysbench runs: in a `pod` of its own, or in the `server`'s container and over its socket; that
    image must then hold `sysbench` and `python3`."""
    cpu_manager: Literal["none", "static"] | None = None
    """CPU manager that the kubelets of the servers' nodes must have; null accepts any and records it."""
    split_cores: bool = False
    """Keep servers on the first half of their node's cores, clients and proxies on the other: for a cluster
    whose parts share a node."""
    outside: Name | None = Field(None, examples=["outside"])
    """Name of an inventory (docs/ssh.md) whose client hosts, outside the cluster, make the load of arms with
    `access: load_balancer`; null: no such arms."""
    nodes: dict[Role, Selector] = Field({}, examples=[{"server": {"pool": "c2"}}])
    """Labels that the nodes of `server`, `proxy`, `client`, `pd` and `tikv` must have."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that all pods put up with."""
    storage: Storage = Storage()
    """Where the data of servers is."""
    keep_data: bool = True
    """Keep the servers' pods asleep with their data between the stages, until `make down`; false removes
    everything at the end of each stage and loads again."""
    wait_s: int = Field(300, ge=10, le=7200, examples=[300])
    """Longest wait in seconds for a pod to run or a load balancer to get its address."""
    tidb: OperatorCluster | None = None
    """TiDB by TiDB Operator, for `engine.name: tidb`; null: one pod with TiDB's embedded storage."""
    gke: Gke | None = None
    """The cluster itself on Google Kubernetes Engine; null: it is there already."""

    def nodes_of(self, arm: Any) -> dict[Role, Selector]:
        """Labels that nodes of each role must have for an arm, if any are asked for."""
        placed = arm.placement.nodes if arm.placement is not None else {}
        return {role: labels for role, labels in {**self.nodes, **placed}.items() if labels}


class NodePlacement(Model):
    """Place of an arm's parts in a cluster."""

    nodes: dict[Role, Selector] = Field({}, examples=[{"server": {"cloud.google.com/gke-nodepool": "cos"}}])
    """Labels of nodes, for this arm in place of those in `site.kubernetes.nodes`."""
    spread: bool = False
    """Spread the parts of a TiDB cluster evenly over zones."""

    @field_validator("nodes")
    @classmethod
    def _some(cls, values: dict[str, Any]) -> dict[str, Any]:
        empty = [role for role, labels in values.items() if not labels]
        if empty:
            raise ValueError(f"{empty[0]}: no labels; write some, or remove the key")
        return values


def find_refusals(study: Any) -> Iterator[str]:
    """Keys of an arm that a cluster can't serve, each as `path.to.key: fault; remedy`."""
    if study.site.kind != "kubernetes":
        return
    here: Kubernetes = study.site.kubernetes or Kubernetes()
    for name, arm in study.arms.items():
        for text in (*_of_guaranteed(arm, here), *_of_resources(arm), *_of_client(arm, here)):
            yield f"arms.{name}.{text}"
    in_server = here.client_in == "server"
    if in_server and here.tidb is not None:
        yield "site.kubernetes.client_in: server: not made in pods of TiDB Operator; write pod"
    if here.split_cores and (in_server or here.tidb is not None):
        why = "not made for pods of TiDB Operator, nor for a client in the server's container"
        yield f"site.kubernetes.split_cores: {why}; remove it"
    if here.tidb is not None and here.gke is not None:
        yield from _find_crowded(here, here.tidb, here.gke, study.arms)


def _of_guaranteed(arm: Any, here: Kubernetes) -> Iterator[str]:
    """Cores and memory that a guaranteed arm's pod can't have."""
    if arm.qos != "guaranteed":
        return
    cores = getattr(arm.cpu.get("server"), "quota", None) or here.server.cpu or 0
    if not (cores and here.server.memory_mib):
        remedy = "write cpu and memory_mib under site.kubernetes.server"
        yield f"qos: guaranteed: its cores and memory are missing; {remedy}"
    if here.cpu_manager == "static" and cores % 1:
        why = "a static CPU manager gives whole cores alone, and this server would share its own"
        yield f"qos: guaranteed: {cores:g} cores: {why}; write a whole number, or cpu_manager: none"


def _of_resources(arm: Any) -> Iterator[str]:
    """Requests and limits of an arm that its pod can't have."""
    if arm.resources is None:
        return
    if arm.qos != "none" or "server" in arm.cpu:
        yield "resources: said by qos or cpu.server, too; write one of them"
    for what, least in arm.resources.requests:
        most = getattr(arm.resources.limits, what)
        if least and most and least > most:
            yield f"resources.requests.{what}: {least:g}: above the limit; write {most:g} or less"


def _of_client(arm: Any, here: Kubernetes) -> Iterator[str]:
    """Clients of an arm that its pods can't be, and ways to the server that they can't take."""
    if here.client_in == "server" and arm.access != "direct":
        why = "with client_in: server sysbench is in the server's container"
        yield f"access: {arm.access}: {why}; write direct"
    if here.client_in == "server" and "client" in arm.cpu:
        yield "cpu.client: with client_in: server the client has no limits; remove it"
    if arm.access == "load_balancer" and here.outside is None:
        why = "a pod or node of the cluster that dials a balancer's address never leaves it (kube-proxy leads"
        why += " it to the Service), so the Service would be measured"
        remedy = "write site.kubernetes.outside, the inventory of a client outside the cluster"
        yield f"access: load_balancer: {why}; {remedy}"


def _find_crowded(
    kubernetes: Kubernetes, tidb: OperatorCluster, gke: Gke, arms: Mapping[str, Any]
) -> Iterator[str]:
    """Parts of arms' TiDB clusters that find too few nodes in their pools.

    Pods of one part are put on nodes of their own; on the network of their nodes those of two clusters too,
    since both want the same ports.
    """
    roles: dict[Role, TidbPart] = {"pd": tidb.pd, "tikv": tidb.tikv, "server": tidb.tidb}
    taken: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for name, arm in arms.items():
        placed = kubernetes.nodes_of(arm)
        cluster = repr((arm.network, arm.qos, arm.cpu.get("server"), arm.parts, sorted(
            (role, sorted(placed.get(role, {}).items())) for role in roles
        ), arm.placement is not None and arm.placement.spread))  # fmt: skip
        for role, part in roles.items():
            pool = placed.get(role, {}).get("benchbook-pool")
            if pool not in gke.pools:
                continue
            nodes = gke.pools[pool].nodes * len(gke.pools[pool].zones or gke.zones)
            others = taken[pool, role]
            beside = others.total() - others[cluster]
            wanted = part.replicas + (beside if arm.network == "host" else 0)
            if wanted > nodes:
                why = f"pool {pool} has {nodes} nodes and {wanted} pods need one each"
                remedy = f"give this arm's {role} a pool of its own, or the pool more nodes"
                yield f"arms.{name}.placement.nodes.{role}: {why}; {remedy}"
            if arm.network == "host":
                others[cluster] = part.replicas


GkeName = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$")]
Zone = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+[0-9]+-[a-z]$", examples=["us-central1-a"])]
Sysctl = Annotated[str, Field(pattern=r"^(net|vm|fs|kernel)(\.[a-z0-9_-]+)+$")]
TAKEN_BY_GKE = frozenset(KNOWN["gke"]["sysctls"])


class NodePool(Model):
    """Nodes of one kind."""

    machine: str = Field(pattern=r"^[a-z][a-z0-9]*-[a-z]+(-[0-9]+)?$", examples=["c2-standard-16"])
    """Machine type."""
    image: Literal["COS_CONTAINERD", "UBUNTU_CONTAINERD"] = "COS_CONTAINERD"
    """System of the nodes."""
    nodes: int = Field(1, ge=1, le=1000, examples=[3])
    """Nodes in each zone."""
    zones: tuple[Zone, ...] | None = None
    """Zones of this pool; null takes those of the cluster."""
    local_ssds: int = Field(0, ge=0, le=32, examples=[1])
    """Local SSDs of each node, which a DaemonSet formats and mounts with `ssd_options`. A machine type takes
    certain numbers only: `c2-standard-16` 2, 4 or 8."""
    ssd_interface: Literal["nvme", "scsi"] = "nvme"
    """How local SSDs are attached: `nvme` as raw blocks (`--local-nvme-ssd-block`), or `scsi`
    (`--local-ssd-count`)."""
    cpu_manager: Literal["none", "static"] = "none"
    """CPU manager of the nodes' kubelets: `static` gives guaranteed pods with whole cores their own cores."""

    @model_validator(mode="after")
    def _refuse_disk_count(self) -> NodePool:
        family, cpus = self.machine.split("-")[0], self.machine.rpartition("-")[2]
        disks = KNOWN["local_ssds"].get(family, {}) if cpus.isdigit() else {}
        taken = [numbers for least, numbers in disks.items() if int(cpus) >= int(least)]
        if self.local_ssds and taken and self.local_ssds not in taken[-1]:
            why = f"{self.machine} takes {number_format.join_words(taken[-1], 'or')}"
            raise ValueError(f"local_ssds: {self.local_ssds}: {why}; write one of these")
        return self


class Gke(Model):
    """The cluster itself, made through `gcloud` when asked, and taken down by `make down` once confirmed."""

    name: GkeName = "benchbook"
    """Name of the cluster."""
    project: str | None = Field(None, pattern=r"^[a-z][-a-z0-9]{4,28}[a-z0-9]$", examples=["my-project"])
    """Project; null takes the one that gcloud is set to."""
    zones: tuple[Zone, ...] = Field(min_length=1, examples=[["us-central1-a"]])
    """Zones: with one the cluster is zonal, with several it is that of their region with nodes in all."""
    version: str | None = Field(None, pattern=r"^[0-9]+\.[0-9]+(\.[-0-9a-z.]+)?$", examples=["1.31"])
    """Version of Kubernetes; null takes the provider's default and records it."""
    pools: dict[GkeName, NodePool] = Field(min_length=1)
    """Pools by name; their nodes carry the label `benchbook-pool=NAME`."""
    ssd_options: str = Field("defaults", pattern=r"^[a-z0-9,=_]{1,200}$", examples=["defaults,noatime"])
    """Mount options of local SSDs."""
    sysctls: dict[Sysctl, int] = Field({}, examples=[{"net.core.somaxconn": 32768}])
    """Kernel settings of all nodes, read back: through GKE's node system configuration where that takes them,
    else by a privileged DaemonSet (`vm.swappiness`, `net.ipv4.tcp_syncookies`)."""
    open_files: int | None = Field(None, ge=1024, le=1_073_741_816, examples=[1_000_000])
    """Open files that containers of all nodes may have, set on containerd and read back; null leaves it."""

    @property
    def by_configuration(self) -> dict[str, int]:
        """Kernel settings that GKE's node system configuration takes."""
        return {name: value for name, value in self.sysctls.items() if name in TAKEN_BY_GKE}

    @property
    def by_hand(self) -> dict[str, int]:
        """Kernel settings that only a privileged container can make."""
        return {name: value for name, value in self.sysctls.items() if name not in TAKEN_BY_GKE}

    @property
    def region(self) -> str:
        """The region of the first zone."""
        return self.zones[0].rpartition("-")[0]

    @model_validator(mode="after")
    def _require_one_region(self) -> Gke:
        requests = {zone for pool in self.pools.values() for zone in pool.zones or ()} | set(self.zones)
        elsewhere = sorted(zone for zone in requests if zone.rpartition("-")[0] != self.region)
        if elsewhere:
            raise ValueError(f"zones: {elsewhere[0]}: not in {self.region}; a cluster has one region")
        return self
