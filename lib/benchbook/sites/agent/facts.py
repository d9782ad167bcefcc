"""Facts of this host: processor, memory, disks, clock, tools. None for one that can't be read."""

from __future__ import annotations

import contextlib
import os
import platform
import pwd
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchbook.sites.agent import files
from benchbook.sites.processes import cgroup_limits, procfs
from benchbook.sites.processes.process import PLAIN
from benchbook.sites.workspace import free_bytes

SYS = Path("/sys")
NONE: dict[str, str] = {}
# What is looked for on a host, by the name of its version among the facts: its `programs`, and what asks the
# first of them (`by`), as `core.study.descriptors` has it.
Asked = Mapping[str, Mapping[str, Sequence[str]]]
# The facts that every machine has, so that a report finds them where it always does.
TOLD = (
    *("cpu_model", "cores", "memory_mib", "kernel", "system", "architecture", "governor", "swap_mib"),
    *("transparent_hugepages", "swappiness", "clocksource"),
)
# The first number with a point in what a program prints of itself.
VERSION = r"(\d+\.\d+[\w.~+-]*)"
# Percent of the last ten seconds in which some program waited (Documentation/accounting/psi.rst).
SOME = r"^some avg10=([0-9.]+)"


class HostSnapshot(NamedTuple):
    """All that a doctor asks of a host."""

    facts: dict[str, Any]
    moment: dict[str, Any]
    tools: dict[str, str | None]
    user: str
    home: str
    is_root: bool
    python: str
    wall_s: float
    open_files: int


def collect_facts(folder: Path, requests: Asked, programs: dict[str, str] = NONE) -> dict[str, Any]:
    """Facts that stay the same from run to run; the disk is that of `folder`."""
    memory, hugepages = read_meminfo(), read_stripped(SYS / "kernel/mm/transparent_hugepage/enabled")
    nodes = sorted((SYS / "devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:]))
    return {
        "hostname": platform.node(),
        "cpu_model": procfs.parse_processor(read_stripped("/proc/cpuinfo") or ""),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "numa": {path.name: read_stripped(path / "cpulist") for path in nodes},
        "memory_mib": memory.get("MemTotal", 0) >> 10,
        "swap_mib": memory.get("SwapTotal", 0) >> 10,
        "kernel": platform.release(),
        "system": find_first_group(r'^PRETTY_NAME="?([^"\n]+)', read_stripped("/etc/os-release")),
        "architecture": platform.machine(),
        "governor": read_stripped(SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "transparent_hugepages": find_first_group(r"\[(\w+)\]", hugepages),
        "swappiness": read_number("/proc/sys/vm/swappiness"),
        "somaxconn": read_number("/proc/sys/net/core/somaxconn"),
        # A kubelet or a container runtime changes these two for everybody, and may leave them so.
        "overcommit_memory": read_number("/proc/sys/vm/overcommit_memory"),
        "ip_forward": read_number("/proc/sys/net/ipv4/ip_forward"),
        "clocksource": read_stripped(SYS / "devices/system/clocksource/clocksource0/current_clocksource"),
        "disk": describe_disk(folder),
        "group_limits": cgroup_limits.describe_limits(os.getpid()),
        **{name: read_tool_version(of["programs"][0], of["by"], programs) for name, of in requests.items()},
    }


def read_moment(folder: Path) -> dict[str, Any]:
    """Facts that change from hour to hour."""
    return {
        "load_1min": os.getloadavg()[0],
        "memory_available_mib": read_meminfo().get("MemAvailable", 0) >> 10,
        "disk_free_mib": free_bytes(folder) >> 20,
    }


def inspect_host(folder: Path, requests: Asked, programs: dict[str, str] = NONE) -> HostSnapshot:
    """All facts that a doctor asks for, without starting anything here."""
    account, names = pwd.getpwuid(os.geteuid()), [name for of in requests.values() for name in of["programs"]]
    return HostSnapshot(
        facts=collect_facts(folder, requests, programs),
        moment=read_moment(folder),
        tools={name: find_program(name, programs) for name in names},
        user=account.pw_name,
        home=account.pw_dir,
        is_root=os.geteuid() == 0,
        python=platform.python_version(),
        wall_s=time.time(),
        open_files=files.open_files(),
    )


def find_program(name: str, programs: dict[str, str] = NONE) -> str | None:
    """Path of a program: the one in `programs`, else from the usual places, servers' included."""
    argument = programs.get(name)
    return shutil.which(argument) if argument else next(iter(files.find_programs(name)), None)


def read_tool_version(name: str, by: Sequence[str], programs: dict[str, str] = NONE) -> str | None:
    """Version that a program prints for the arguments `by`; None if it is not installed."""
    path = find_program(name, programs)
    if path is None:
        return None
    env = dict(PLAIN)
    # In a container an account may have a number alone.
    with contextlib.suppress(KeyError):
        env["HOME"] = pwd.getpwuid(os.geteuid()).pw_dir
    # A program that was built without being told its version has none to tell.
    return find_first_group(VERSION, files.read_output([path, *by], env))


def describe_disk(folder: Path) -> dict[str, Any] | None:
    """Device, file system and kind of the disk that a folder is on."""
    lines = [line.partition(" - ") for line in (read_stripped("/proc/self/mountinfo") or "").splitlines()]
    mounts = [(left.split(), right.split()) for left, _, right in lines]
    above = [mount for mount in mounts if f"{folder}/".startswith(mount[0][4].rstrip("/") + "/")]
    if not above:
        return None
    # What was mounted over another, later, is what is seen there.
    mount, (kind, device, *_) = max(reversed(above), key=lambda row: len(row[0][4]))
    block = (SYS / "dev/block" / mount[2]).resolve()
    queue = next((path / "queue" for path in (block, block.parent) if (path / "queue").is_dir()), None)
    return {
        "device": device,
        "filesystem": kind,
        "options": mount[5],
        "rotational": read_number(queue / "rotational") if queue else None,
        "scheduler": find_first_group(r"\[([\w-]+)\]", read_stripped(queue / "scheduler")) if queue else None,
        "model": read_stripped(block / "device/model") or read_stripped(block.parent / "device/model"),
    }


def read_meminfo() -> dict[str, int]:
    """The kernel's figures of memory, in KiB by its own names."""
    lines = (line.split() for line in (read_stripped(procfs.PROC / "meminfo") or "").splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1}


def read_stripped(path: str | Path) -> str | None:
    """Text of a file without space around it; None if it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def find_first_group(pattern: str, text: str | None) -> str | None:
    """First group of a pattern in a text; None without a match."""
    match = re.search(pattern, text or "", re.MULTILINE)
    return match[1] if match else None


def read_number(path: str | Path) -> int | None:
    """Number that a file holds; None if it holds none."""
    text = read_stripped(path)
    return int(text) if text and text.isdigit() else None
