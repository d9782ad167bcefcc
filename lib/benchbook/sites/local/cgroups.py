"""Control groups of a lab: quota and weight of its parts, for versions 1 and 2 of the kernel's interface.

All are below one group `benchbook-ID`, which weighs as much as all cores, as `kubepods` does on a Kubernetes
node, so that parts weigh against each other and not against the rest of the machine. Weights are shares of
version 1 (1024 a core); version 2 takes a weight of 1 to 10000, into which Kubernetes turns shares by the
formula used here (KEP-2254).
"""

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from benchbook.core.util.errors import SiteError
from benchbook.sites.machine import facts as machine
from benchbook.sites.processes import procfs
from benchbook.sites.workspace import lab_id

ROOT = Path("/sys/fs/cgroup")
PERIOD_US, LONG_PERIOD_US, LEAST_US = 10_000, 100_000, 1_000
"""A quota's period, of which what is left when an arm stands still is a fiftieth of a slow turn; that of
quotas which would be less than the kernel's least in it, a millisecond."""
CORE_SHARES = 1024


@dataclass(frozen=True)
class CpuControlGroup:
    """One control group, by the kernel's interface of one version."""

    folder: Path
    version: int

    def in_force(self) -> dict[str, float | int | None]:
        """Quota in cores with its period in milliseconds, and weight, as the kernel has them now."""
        if self.version == 2:
            most, period = _read_text(self.folder / "cpu.max").split()
            heavy = {"weight": int(_read_text(self.folder / "cpu.weight"))}
        else:
            most, period = (_read_text(self.folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
            heavy = {"shares": int(_read_text(self.folder / "cpu.shares"))}
        if most in ("max", "-1"):
            return {"quota_cores": None, **heavy}
        return {"quota_cores": int(most) / int(period), "period_ms": int(period) / 1000, **heavy}

    def weigh(self, shares: int) -> tuple[str, int]:
        """Name and value of the weight that its version has for shares."""
        return ("weight", to_weight(shares)) if self.version == 2 else ("shares", shares)

    def set_weight(self, shares: int) -> None:
        name, weight = self.weigh(shares)
        _write_text(self.folder / f"cpu.{name}", str(weight))

    def is_limited(self, quota: float | None, shares: int) -> bool:
        """True if quota and weight are in force, as exactly as the kernel can hold them."""
        got, (name, weight) = self.in_force(), self.weigh(shares)
        cores = got["quota_cores"]
        is_same = cores == quota if quota is None or cores is None else abs(cores - quota) < 1e-4
        return is_same and got[name] == weight

    def set_quota(self, quota: float | None) -> None:
        """Limit it to so many cores; None: to no number of them."""
        period_us = LONG_PERIOD_US if quota is not None and quota * PERIOD_US < LEAST_US else PERIOD_US
        most = -1 if quota is None else round(quota * period_us)
        if self.version == 2:
            _write_text(self.folder / "cpu.max", f"{'max' if most < 0 else most} {period_us}")
        else:
            _write_text(self.folder / "cpu.cfs_period_us", str(period_us))
            _write_text(self.folder / "cpu.cfs_quota_us", str(most))

    def must_hold(self, pid: int) -> None:
        """Raise SiteError if a process is not in it."""
        if str(pid) not in _read_text(self.folder / "cgroup.procs").split():
            raise SiteError(f"pid {pid} has left its control group {self.folder}; call site.up(arm) again")

    def throttled(self) -> dict[str, float | int]:
        """Number of periods, number of those with the group held back, and the time held back."""
        return procfs.parse_throttling(_read_text(self.folder / "cpu.stat"))


def to_weight(shares: int) -> int:
    """Weight of version 2 for shares of version 1 (KEP-2254)."""
    return 1 + ((shares - 2) * 9999) // 262142


def create_group(
    token: str, name: str, *, quota: float | None, shares: int, root: Path = ROOT, version: int | None = None
) -> CpuControlGroup:
    """Make a group of a lab, or find it, and set its limits; SiteError if one is not in force."""
    version = version or machine.cgroup_version() or 0
    above = {1: root / "cpu", 2: root}.get(version)
    if above is None:
        raise SiteError("this machine has no control groups for the processor; leave out cpu.quota and qos")
    parent = above / f"benchbook-{lab_id(token)}"
    group, whole = (CpuControlGroup(folder, version) for folder in (parent / name, parent))
    try:
        parent.mkdir(exist_ok=True)
        if version == 2:
            for folder in (above, parent):
                _write_text(folder / "cgroup.subtree_control", "+cpu")
        whole.set_weight(CORE_SHARES * (os.cpu_count() or 1))
        group.folder.mkdir(exist_ok=True)
        group.set_weight(shares)
        group.set_quota(quota)
        is_limited = group.is_limited(quota, shares)
    except (OSError, ValueError) as error:
        raise SiteError(
            f"{group.folder}: the control group could not be set: {error}; run as root on a system whose "
            "control groups have the processor, or leave out cpu.quota, qos and neighbour"
        ) from None
    if not is_limited:
        raise SiteError(
            f"{group.folder}: asked for a quota of {quota} cores and {shares} shares, the kernel has "
            f"{group.in_force()}; write values that it can hold"
        )
    return group


def list_groups(id: str, root: Path = ROOT) -> list[Path]:
    """Groups of a lab, children first."""
    tops = [folder / f"benchbook-{id}" for folder in (root, root / "cpu")]
    there = filter(Path.is_dir, tops)
    return [path for top in there for path in (*sorted(filter(Path.is_dir, top.iterdir())), top)]


def remove_groups(id: str, root: Path = ROOT, wait_s: float = 2.0) -> list[str]:
    """Remove the groups of a lab, all empty of processes by now; returns their names."""
    groups, deadline = list_groups(id, root), time.monotonic() + wait_s
    # A process that was just reaped leaves its group a moment later.
    while (left := list_groups(id, root)) and time.monotonic() < deadline:
        for path in left:
            with contextlib.suppress(OSError):
                path.rmdir()
        if list_groups(id, root):
            time.sleep(0.02)
    return [f"control group {path}" for path in groups if not path.exists()]


def _read_text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def _write_text(path: Path, value: str) -> None:
    path.write_text(value, encoding="ascii")
