"""Limits that others set on a process's control groups, up to the root, and their effect.

Both versions of the kernel's interface (cgroups(7)). Quota and weight of the groups that we make ourselves
(`sites.local.cgroups`) are none of them. Python's own library alone: this file is also carried to hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

UNLIMITED = 1 << 60
"""From here on a limit in bytes is version 1's way to say none."""
USUAL_WEIGHTS = {"cpu.weight": 100, "cpu.shares": 1024}
BYTES = ("memory.max", "memory.high", "memory.limit_in_bytes")
DISKS = (
    "io.max", "blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device",
)  # fmt: skip
OURS = re.compile(r"/benchbook-[0-9a-f]{8}(/[^/]+)?")


class ControlGroup(NamedTuple):
    """One group: its folder, the folder of the root, and its path from there."""

    folder: str
    root: str
    path: str

    def read(self, name: str, folder: str | None = None) -> str:
        """Text of one of its files; empty if there is none."""
        try:
            with open(f"{folder or self.folder}/{name}", encoding="ascii") as file:
                return file.read().strip()
        except (OSError, ValueError):
            return ""


def list_groups(pid: int) -> list[ControlGroup]:
    """Groups of a process by all controllers, each with those above it; none if it is gone."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            mounts = dict(filter(None, map(_parse_mount, file)))
    except OSError:
        return []
    result = {}
    for _, controllers, path in lines:
        top, root = mounts.get(_sort_controllers(controllers), ("", ""))
        # A container may see a group of the whole machine as its root.
        inside = path.removeprefix(top.rstrip("/"))
        parts = [part for part in inside.split("/") if part]
        for depth in range(len(parts), -1, -1) if root and ".." not in parts else ():
            text = "/".join(("", *parts[:depth]))
            result[root + text] = ControlGroup(root + text, root, text or "/")
    return list(result.values())


def _parse_mount(line: str) -> tuple[str, tuple[str, str]] | None:
    """Controllers of a line of mountinfo, mounted group and mount point; None for other lines."""
    left, _, right = line.partition(" - ")
    words, options = left.split(), right.split()
    if options[:1] == ["cgroup2"]:
        return "", (words[3], words[4])
    if options[:1] != ["cgroup"]:
        return None
    # What is mounted with a name, such as systemd's, limits nothing.
    named = [word for word in options[-1].split(",") if word not in ("rw", "ro", "xattr")]
    return _sort_controllers(",".join(named)), (words[3], words[4])


def _sort_controllers(controllers: str) -> str:
    return ",".join(sorted(controllers.split(",")))


def describe_limits(pid: int) -> list[str]:
    """Limits that others set on a process, in words, each with the path of its group."""
    return sorted({f"{limit} at {group.path}" for group in list_groups(pid) for limit in _iter_limits(group)})


def _iter_limits(group: ControlGroup) -> Iterator[str]:
    ours = OURS.fullmatch(group.path)
    if (quota := _read_quota(group)) is not None and not (ours and ours[1]):
        yield f"a CPU quota of {quota:g} cores"
    for name, usual in USUAL_WEIGHTS.items():
        if (weight := group.read(name)) not in ("", str(usual)) and not ours:
            yield f"a CPU weight of {weight} ({usual} is usual)"
    for name in BYTES:
        if (most := group.read(name)).isdigit() and int(most) < UNLIMITED:
            yield f"a memory limit ({name}) of {int(most) / (1 << 20):g} MiB"
    cores = group.read("cpuset.cpus")
    if cores and cores != group.read("cpuset.cpus", group.root):
        yield f"a set of cores ({cores})"
    for name in DISKS:
        if text := group.read(name):
            yield f"a limit of disks ({name} {' '.join(text.split())})"


def _read_quota(group: ControlGroup) -> float | None:
    """Cores that a group's quota is worth, by either version of the interface; None without one."""
    quota, _, period = group.read("cpu.max").partition(" ")
    if not period:
        quota, period = group.read("cpu.cfs_quota_us"), group.read("cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


class Throttling(NamedTuple):
    """Throttling of a group so far: periods of its quota, their seconds, hits of a memory limit."""

    periods: int
    seconds: float
    memory: int


def held_back(pids: Iterable[int]) -> dict[str, Throttling]:
    """Throttling of the groups of some processes so far, by path; our own groups are left out."""
    throttlings: dict[str, Throttling] = {}
    groups = {group.folder: group for pid in pids for group in list_groups(pid)}
    for group in groups.values():
        counts = _parse_counts(group.read("cpu.stat")) | _parse_counts(group.read("memory.events"))
        seconds = counts.get("throttled_time", 0) / 1e9 + counts.get("throttled_usec", 0) / 1e6
        memory = counts.get("high", 0) + counts.get("max", 0) + int(group.read("memory.failcnt") or 0)
        was = throttlings.get(group.path, Throttling(0, 0.0, 0))
        ours = OURS.fullmatch(group.path)
        periods = 0 if ours and ours[1] else counts.get("nr_throttled", 0)
        seconds = was.seconds + (seconds if periods else 0.0)
        throttlings[group.path] = Throttling(was.periods + periods, seconds, was.memory + memory)
    return throttlings


def diff_throttling(
    before: Mapping[str, Throttling], after: Mapping[str, Throttling]
) -> dict[str, dict[str, Any]]:
    """Throttling of groups between two readings, by path; only groups that were throttled."""
    throttling = {}
    for path, now in after.items():
        was = before.get(path, now)
        each = {name: round(getattr(now, name) - getattr(was, name), 6) for name in Throttling._fields}
        if any(value > 0 for value in each.values()):
            throttling[path] = each
    return throttling


def _parse_counts(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
