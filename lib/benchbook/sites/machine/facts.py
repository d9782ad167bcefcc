"""What this machine is, and the counters that tell whether it was itself while we measured."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psutil

from benchbook.sites.agent.facts import VERSION, first, number, read
from benchbook.sites.agent.files import says
from benchbook.sites.lab import free_bytes
from benchbook.sites.processes import procfs


def facts() -> dict[str, Any]:
    """Return what stays the same from run to run: processor, memory, kernel, tools. Unknown is None."""
    return {
        "cpu_model": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_mib": psutil.virtual_memory().total >> 20,
        "kernel": platform.release(),
        "system": system_name(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "transparent_hugepages": first(r"\[(\w+)\]", read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "swappiness": number("/proc/sys/vm/swappiness"),
        "swap_mib": psutil.swap_memory().total >> 20,
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "congestion_control": read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "virtualization": virtualization(),
        "cgroup": cgroup_version(),
        "sysbench": tool_version("sysbench", "--version"),
    }


def moment(folder: Path) -> dict[str, Any]:
    """Return what changes from hour to hour: load, free memory, and the disk a folder is on."""
    disk = next(
        (
            part
            for part in sorted(psutil.disk_partitions(all=True), key=lambda part: -len(part.mountpoint))
            if folder.is_relative_to(part.mountpoint)
        ),
        None,
    )
    return {
        "load_1min": os.getloadavg()[0],
        "memory_available_mib": psutil.virtual_memory().available >> 20,
        "disk_free_mib": free_bytes(folder) >> 20,
        "disk": disk.device if disk else None,
        "filesystem": disk.fstype if disk else None,
    }


def busy() -> str:
    """Say in one line how busy this machine is: load, and the pressure of the last ten seconds."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    text = f"load {load:.1f} on {cores} core{'s' * (cores != 1)}"
    pressure = re.search(r"some avg10=([0-9.]+)", read("/proc/pressure/cpu") or "")
    if pressure:
        text += f", programs waited for a core {float(pressure[1]):.0f} % of the last ten seconds"
    return f"{text}: {'busy, so expect wider intervals' if load > cores / 2 else 'quiet'}"


def cpu_model() -> str | None:
    """Return the name of the processor with what tells it from others of that name."""
    return procfs.processor(read("/proc/cpuinfo") or "") or platform.processor() or None


def system_name() -> str:
    """Return the operating system with its version."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"


def virtualization() -> str | None:
    """Return what hypervisor the processor reports, `none` on bare metal, or None if that cannot be seen."""
    if shutil.which("systemd-detect-virt"):
        said = subprocess.run(
            ["systemd-detect-virt"], capture_output=True, text=True, timeout=10
        ).stdout.strip()
        if said:
            return said
    text = read("/proc/cpuinfo")
    if text is None:
        return None
    return "yes" if re.search(r"^flags\s*:.*\bhypervisor\b", text, re.MULTILINE) else "none"


def cgroup_version() -> int | None:
    """Return the version of control groups in use, or None."""
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return 2
    return 1 if Path("/sys/fs/cgroup/cpu").exists() else None


def tool_version(*argv: str) -> str | None:
    """Return the first version number a tool prints, or None if it is not installed."""
    return first(VERSION, says(list(argv), os.environ))
