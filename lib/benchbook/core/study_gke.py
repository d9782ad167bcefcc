"""The section of a study file that says what cluster Google Kubernetes Engine is asked for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from benchbook.core.study_base import Model

GkeName = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$")]
Zone = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+[0-9]+-[a-z]$", examples=["us-central1-a"])]
Sysctl = Annotated[str, Field(pattern=r"^(net|vm|fs|kernel)(\.[a-z0-9_-]+)+$")]
# What GKE documents as settable by a node system configuration (LinuxNodeConfig.sysctls).
TAKEN_BY_GKE = frozenset(
    [f"net.core.{name}" for name in (
        "busy_poll", "busy_read", "netdev_max_backlog", "rmem_max", "wmem_default", "wmem_max",
        "optmem_max", "somaxconn",
    )]
    + [f"net.ipv4.{name}" for name in ("tcp_rmem", "tcp_wmem", "tcp_tw_reuse")]
)  # fmt: skip
_MANY = (16, 24)
# The numbers of local SSDs that Compute Engine documents for a machine type, by its family and from how many
# CPUs on. Families that are not here are not held to any.
LOCAL_SSDS: dict[str, dict[int, tuple[int, ...]]] = {
    "n1": {1: (*range(1, 9), *_MANY)},
    "n2": {2: (1, 2, 4, 8, *_MANY), 12: (2, 4, 8, *_MANY), 22: (4, 8, *_MANY), 42: (8, *_MANY), 82: _MANY},
    "n2d": {2: (1, 2, 4, 8, *_MANY), 32: (2, 4, 8, *_MANY), 64: (4, 8, *_MANY), 96: (8, *_MANY)},
    "c2": {4: (1, 2, 4, 8), 16: (2, 4, 8), 30: (4, 8), 60: (8,)},
    "c2d": {2: (1, 2, 4, 8), 32: (2, 4, 8), 56: (4, 8), 112: (8,)},
}


class Pool(Model):
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
    def _takes_so_many_disks(self) -> Pool:
        family, cpus = self.machine.split("-")[0], self.machine.rpartition("-")[2]
        known = LOCAL_SSDS.get(family, {}) if cpus.isdigit() else {}
        taken = [numbers for least, numbers in known.items() if int(cpus) >= least]
        if self.local_ssds and taken and self.local_ssds not in taken[-1]:
            *some, last = map(str, taken[-1])
            allowed = f"{', '.join(some)} or {last}" if some else last
            raise ValueError(
                f"local_ssds: {self.local_ssds}: {self.machine} takes {allowed}; write one of these"
            )
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
    pools: dict[GkeName, Pool] = Field(min_length=1)
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
    def _one_region(self) -> Gke:
        asked = {zone for pool in self.pools.values() for zone in pool.zones or ()} | set(self.zones)
        elsewhere = sorted(zone for zone in asked if zone.rpartition("-")[0] != self.region)
        if elsewhere:
            raise ValueError(f"zones: {elsewhere[0]}: not in {self.region}; a cluster has one region")
        return self
