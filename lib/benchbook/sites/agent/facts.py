"""What this host is: processor, memory, disks, clock, tools. What can't be seen is None."""

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
from benchbook.sites.processes import control_groups, procfs
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


class Look(NamedTuple):
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


def facts(folder: Path, asked: Asked, programs: dict[str, str] = NONE) -> dict[str, Any]:
    """What stays the same from run to run; `folder` says which disk, `programs` where some programs are."""
    memory = meminfo()
    nodes = sorted((SYS / "devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:]))
    return {
        "hostname": platform.node(),
        "cpu_model": procfs.processor(read("/proc/cpuinfo") or ""),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "numa": {path.name: read(path / "cpulist") for path in nodes},
        "memory_mib": memory.get("MemTotal", 0) >> 10,
        "swap_mib": memory.get("SwapTotal", 0) >> 10,
        "kernel": platform.release(),
        "system": first(r'^PRETTY_NAME="?([^"\n]+)', read("/etc/os-release")),
        "architecture": platform.machine(),
        "governor": read(SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "transparent_hugepages": first(r"\[(\w+)\]", read(SYS / "kernel/mm/transparent_hugepage/enabled")),
        "swappiness": number("/proc/sys/vm/swappiness"),
        "somaxconn": number("/proc/sys/net/core/somaxconn"),
        # A kubelet or a container runtime changes these two for everybody, and may leave them so.
        "overcommit_memory": number("/proc/sys/vm/overcommit_memory"),
        "ip_forward": number("/proc/sys/net/ipv4/ip_forward"),
        "clocksource": read(SYS / "devices/system/clocksource/clocksource0/current_clocksource"),
        "disk": disk(folder),
        "group_limits": control_groups.limits(os.getpid()),
        **{name: tool(one["programs"][0], one["by"], programs) for name, one in asked.items()},
    }


def moment(folder: Path) -> dict[str, Any]:
    """Return what changes from hour to hour."""
    return {
        "load_1min": os.getloadavg()[0],
        "memory_available_mib": meminfo().get("MemAvailable", 0) >> 10,
        "disk_free_mib": free_bytes(folder) >> 20,
    }


def look(folder: Path, asked: Asked, programs: dict[str, str] = NONE) -> Look:
    """Return all that a doctor asks, without anything being started here."""
    return Look(
        facts=facts(folder, asked, programs),
        moment=moment(folder),
        tools={name: which(name, programs) for one in asked.values() for name in one["programs"]},
        user=_account().pw_name,
        home=_account().pw_dir,
        is_root=os.geteuid() == 0,
        python=platform.python_version(),
        wall_s=time.time(),
        open_files=files.open_files(),
    )


def which(name: str, programs: dict[str, str] = NONE) -> str | None:
    """Return the path of a program: the one given, else where servers live too."""
    given = programs.get(name)
    return shutil.which(given) if given else next(iter(files.programs(name)), None)


def tool(name: str, by: Sequence[str], programs: dict[str, str] = NONE) -> str | None:
    """Return the version that a program prints when it is asked `by`, or None if it is not installed."""
    path = which(name, programs)
    if path is None:
        return None
    env = dict(PLAIN)
    # In a container an account may have a number alone.
    with contextlib.suppress(KeyError):
        env["HOME"] = _account().pw_dir
    said = files.says([path, *by], env)
    # A program that was built without being told its version has none to tell.
    return first(VERSION, said)


def disk(folder: Path) -> dict[str, Any] | None:
    """Return device, file system and kind of the disk that a folder is on."""
    found, best = None, -1
    for line in (read("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        place, words = left.split()[4], right.split()
        # What was mounted over another, later, is what is seen there.
        if len(place) >= best and (str(folder) + "/").startswith(place.rstrip("/") + "/"):
            found, best = (left.split()[2], words[0], words[1], left.split()[5]), len(place)
    if found is None:
        return None
    numbers, kind, device, options = found
    block = (SYS / "dev/block" / numbers).resolve()
    queue = next((one / "queue" for one in (block, block.parent) if (one / "queue").is_dir()), None)
    return {
        "device": device,
        "filesystem": kind,
        "options": options,
        "rotational": number(queue / "rotational") if queue else None,
        "scheduler": first(r"\[([\w-]+)\]", read(queue / "scheduler")) if queue else None,
        "model": read(block / "device/model") or read(block.parent / "device/model"),
    }


def meminfo() -> dict[str, int]:
    """Return what the kernel says of memory, in KiB by its own names."""
    lines = (line.split() for line in (read(procfs.PROC / "meminfo") or "").splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1}


def _account() -> pwd.struct_passwd:
    return pwd.getpwuid(os.geteuid())


def read(path: str | Path) -> str | None:
    """Return the text of a file without space around it, or None where it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def first(pattern: str, text: str | None) -> str | None:
    """Return the first group of a pattern in a text, or None where it is not in it."""
    match = re.search(pattern, text or "", re.MULTILINE)
    return match[1] if match else None


def number(path: str | Path) -> int | None:
    """Return the number that a file holds, or None where it holds none."""
    text = read(path)
    return int(text) if text and text.isdigit() else None
