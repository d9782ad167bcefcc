"""What this machine is, and the counters that tell whether it was itself while we measured."""

from __future__ import annotations

import os
import platform
import re
import time
from pathlib import Path
from typing import Any

import psutil

from benchbook.core.util.plural import count
from benchbook.sites.agent import facts as agent
from benchbook.sites.agent.facts import SOME, first, read
from benchbook.sites.agent.files import says
from benchbook.sites.processes import procfs

LOOK_S = 5.0
MOST_WAITING_PCT = 40.0
MOST_LOAD = 2.0
"""Load of a minute for each core, which a study before leaves behind, too."""


def facts() -> dict[str, Any]:
    """Return what stays the same from run to run: processor, memory, kernel, tools. Unknown is None."""
    found = agent.facts(Path("/"), {})
    return {name: found[name] for name in agent.TOLD} | {
        "cpu_model": cpu_model(),
        "memory_mib": psutil.virtual_memory().total >> 20,
        "system": system_name(),
        "python": platform.python_version(),
        "congestion_control": read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "virtualization": virtualization(),
        "cgroup": cgroup_version(),
        "sysbench": agent.tool("sysbench", ("--version",)),
    }


def moment(folder: Path) -> dict[str, Any]:
    """Return what changes from hour to hour: load, free memory, and the disk a folder is on."""
    disk = agent.disk(folder) or {}
    return agent.moment(folder) | {"disk": disk.get("device"), "filesystem": disk.get("filesystem")}


def busy() -> str:
    """Say in one line how busy this machine is: load, and the pressure of the last ten seconds."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    text = f"load {load:.1f} on {cores} core{'s' * (cores != 1)}"
    if waited_pct := first(SOME, read("/proc/pressure/cpu")):
        text += f", programs waited for a core {float(waited_pct):.0f} % of the last ten seconds"
    return f"{text}: {'busy, so expect wider intervals' if load > cores / 2 else 'quiet'}"


def beyond_use(most_steal_pct: float) -> list[str]:
    """Watch this machine for `LOOK_S` seconds; return why it is too busy to measure on, with what to do."""
    began, stalled = time.monotonic(), _stalled_s()
    steal_pct = getattr(psutil.cpu_times_percent(LOOK_S), "steal", 0.0)
    waited_pct = 100 * (_stalled_s() - stalled) / (time.monotonic() - began)
    return too_busy(steal_pct, most_steal_pct, waited_pct, os.getloadavg()[0], os.cpu_count() or 1)


def too_busy(
    steal_pct: float, most_steal_pct: float, waited_pct: float, load: float, cores: int
) -> list[str]:
    """Return in words what of steal, waiting for a core and load is beyond use."""
    found = []
    if steal_pct > most_steal_pct:
        found.append(
            f"the host gave {steal_pct:.0f} % of this machine's time to others (steal; at most "
            f"{most_steal_pct:g} %): come back at another hour, or take another machine"
        )
    if waited_pct > MOST_WAITING_PCT:
        found.append(
            f"programs waited for a core in {waited_pct:.0f} % of {LOOK_S:g} seconds (at most "
            f"{MOST_WAITING_PCT:g} %): end what runs beside, which `top` shows"
        )
    if load > MOST_LOAD * cores:
        found.append(
            f"load {load:.1f} on {count(cores, 'core')} (at most {MOST_LOAD:g} a core): wait a minute, or "
            "end what runs beside"
        )
    return found


def _stalled_s() -> float:
    """Return the seconds for which programs waited for a core since the start; 0 where no kernel tells."""
    return int(first(r"some .*total=(\d+)", read("/proc/pressure/cpu")) or 0) / 1e6


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
    said = says(["systemd-detect-virt"], os.environ).strip()
    # One word; what it can't tell it says in a sentence.
    if re.fullmatch(r"[\w-]+", said):
        return said
    text = read("/proc/cpuinfo")
    if text is None:
        return None
    return "yes" if first(r"^flags\s*:.*\b(hypervisor)\b", text) else "none"


def cgroup_version() -> int | None:
    """Return the version of control groups in use, or None."""
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return 2
    return 1 if Path("/sys/fs/cgroup/cpu").exists() else None
