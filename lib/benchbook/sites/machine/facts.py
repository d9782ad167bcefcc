"""Facts of this machine, and the counters that show if others disturbed a measurement."""

import contextlib
import os
import platform
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from benchbook.core.util.plural import count
from benchbook.sites.agent import facts as agent
from benchbook.sites.agent.facts import SOME, find_first_group, read_stripped
from benchbook.sites.agent.files import read_output
from benchbook.sites.processes import procfs

LOOK_S, BRIEF_S, PATIENCE_S = 5.0, 0.5, 120.0
MOST_WAITING_PCT, MOST_USED_PCT = 40.0, 75.0
LEAST_SHOWN = 0.1
"""Cores that a program beside must use to be named."""


def collect_facts() -> dict[str, Any]:
    """Facts that stay the same between runs: processor, memory, kernel, tools. Unknown is None."""
    facts = agent.collect_facts(Path("/"), {})
    return {name: facts[name] for name in agent.TOLD} | {
        "cpu_model": cpu_model(),
        "memory_mib": psutil.virtual_memory().total >> 20,
        "system": system_name(),
        "python": platform.python_version(),
        "congestion_control": read_stripped("/proc/sys/net/ipv4/tcp_congestion_control"),
        "virtualization": detect_virtualization(),
        "cgroup": cgroup_version(),
        "sysbench": agent.read_tool_version("sysbench", ("--version",)),
    }


def read_moment(folder: Path) -> dict[str, Any]:
    """Facts that change from hour to hour: load, free memory, and the disk a folder is on."""
    disk = agent.describe_disk(folder) or {}
    return agent.read_moment(folder) | {"disk": disk.get("device"), "filesystem": disk.get("filesystem")}


def describe_load() -> str:
    """Present use of this machine in one line: busy cores and pressure of the last seconds."""
    cores, idle_pct = os.cpu_count() or 1, psutil.cpu_times_percent(BRIEF_S).idle
    used = cores * (1 - idle_pct / 100)
    text = f"{used:.1f} of {count(cores, 'core')} in use"
    if waited_pct := find_first_group(SOME, read_stripped("/proc/pressure/cpu")):
        text += f", programs waited for a core {float(waited_pct):.0f} % of the last ten seconds"
    return f"{text}: {'busy: results will be less precise' if used > cores / 4 else 'quiet'}"


def wait_until_usable(most_steal_pct: float, say: Callable[[str], None] = print) -> list[str]:
    """Reasons against measuring after `PATIENCE_S`, with programs beside; none once it is quiet."""
    deadline, is_said = time.monotonic() + PATIENCE_S, False
    while reasons := beyond_use(most_steal_pct):
        if time.monotonic() > deadline:
            return [*reasons, *(f"beside: {text}" for text in find_busiest())]
        if not is_said:
            say(f"waiting up to {PATIENCE_S / 60:.0f} minutes for this machine: {'; '.join(reasons)}")
            is_said = True
    return []


def beyond_use(most_steal_pct: float) -> list[str]:
    """Reasons against measuring on this machine, from `LOOK_S` seconds; none if it is quiet."""
    began, stalled = time.monotonic(), _stalled_s()
    times = psutil.cpu_times_percent(LOOK_S)
    waited_pct = 100 * (_stalled_s() - stalled) / (time.monotonic() - began)
    return too_busy(getattr(times, "steal", 0.0), most_steal_pct, waited_pct, 100 - times.idle)


def too_busy(steal_pct: float, most_steal_pct: float, waited_pct: float, used_pct: float) -> list[str]:
    """Steal, waiting for a core and use beyond the bounds of a measurement, in words."""
    leave, end = "come back at another hour, or take another machine", "end what runs beside"
    steal = f"the host gave {{:.0f}} % of this machine's time to others (steal; at most {{:g}} %): {leave}"
    waits = f"programs waited for a core in {{:.0f}} % of {LOOK_S:g} seconds (at most {{:g}} %): {end}"
    use = f"{{:.0f}} % of the cores' time was in use (at most {{:g}} %): {end}"
    bounds = ((steal, steal_pct, most_steal_pct), (waits, waited_pct, MOST_WAITING_PCT))
    rows = (*bounds, (use, used_pct, MOST_USED_PCT))
    return [text.format(value, most) for text, value, most in rows if value > most]


def find_busiest(most: int = 3) -> list[str]:
    """Programs that use a core now, the busiest first: `mariadbd (pid 812) 0.9 cores`."""
    there = list(psutil.process_iter(["pid", "name"]))
    for item in there:
        with contextlib.suppress(psutil.Error):
            item.cpu_percent()
    time.sleep(BRIEF_S)
    used = []
    for item in there:
        with contextlib.suppress(psutil.Error):
            used.append((item.cpu_percent() / 100, item.info["name"], item.pid))
    busiest = sorted(used, reverse=True)[:most]
    return [f"{name} (pid {pid}) {cores:.1f} cores" for cores, name, pid in busiest if cores >= LEAST_SHOWN]


def _stalled_s() -> float:
    """Seconds that programs waited for a core since the start; 0 if no kernel tells."""
    return int(find_first_group(r"some .*total=(\d+)", read_stripped("/proc/pressure/cpu")) or 0) / 1e6


def cpu_model() -> str | None:
    """Name of the processor with the family, model and stepping that tell it from namesakes."""
    return procfs.parse_processor(read_stripped("/proc/cpuinfo") or "") or platform.processor() or None


def system_name() -> str:
    """Operating system with its version."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"


def detect_virtualization() -> str | None:
    """Hypervisor that the processor reports, `none` on bare metal, None if that can't be read."""
    virtualization = read_output(["systemd-detect-virt"], os.environ).strip()
    # One word; what it can't tell it says in a sentence.
    if re.fullmatch(r"[\w-]+", virtualization):
        return virtualization
    text = read_stripped("/proc/cpuinfo")
    if text is None:
        return None
    return "yes" if find_first_group(r"^flags\s*:.*\b(hypervisor)\b", text) else "none"


def cgroup_version() -> int | None:
    """Version of control groups in use, or None."""
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return 2
    return 1 if Path("/sys/fs/cgroup/cpu").exists() else None
