"""What this machine can do, what it can't, why, and the command that changes it.

Looks only; what has to be tried is tried in a network namespace that goes away with its process.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

from benchbook.core import record, traits
from benchbook.sites import load
from benchbook.sites.agent import files, probes
from benchbook.sites.arms import loads
from benchbook.sites.lab import free_bytes, lab_root
from benchbook.sites.machine import abilities, here, lock
from benchbook.sites.machine import facts as machine
from benchbook.sites.machine.abilities import Ability, install_command, judge, manager
from benchbook.sites.processes import procfs
from benchbook.sites.processes.process import PATH

GIB = 1 << 30
# Reading the wall clock through these does not ask the hypervisor or a slow chip.
FAST_CLOCKS = {"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "timebase"}


def examine(port: int = 23060) -> list[Ability]:
    """Return all abilities, needed ones first; never raises because something is missing."""
    found = [_system(), _python(), _sysbench(), _memory(), _disk()]
    if sys.platform == "linux":
        found += [_cores(), _rights(), _open_files(), _port(port), _port(port + 1), _lock()]
        found += [_clock(), _machine(), _congestion(), *abilities.network(), abilities.cpu_quota()]
    found += [
        _go(),
        *(_engine(one) for one in traits.engines().values() if "local" in one.sites),
        *map(_proxy, traits.proxies().values()),
        Ability("containers", True, "neither Docker nor Kubernetes is needed", is_needed=False),
    ]
    return sorted(found, key=lambda ability: not ability.is_needed)


def _system() -> Ability:
    name = machine.system_name()
    if sys.platform == "linux":
        return Ability("system", True, f"{name}, {manager() or 'no known package manager'}")
    remedy = "measure on Linux or in a Linux virtual machine; reports and analysis work here as they are"
    return Ability("system", False, f"{name}: servers can be supervised on Linux only", remedy)


def _python() -> Ability:
    is_new = sys.version_info >= (3, 11)
    return judge("python", is_new, platform.python_version(), "install Python 3.11 or newer")


def _sysbench() -> Ability:
    found = _version("sysbench")
    return judge("sysbench", found is not None, found or "not installed", install_command("sysbench"))


def _version(name: str) -> str | None:
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{PATH}")
    return machine.tool_version(path, "--version") if path else None


def _memory() -> Ability:
    total = machine.facts()["memory_mib"]
    return judge("memory", total >= 1900, f"{total} MiB", "use a machine with 2 GiB or more")


def _disk() -> Ability:
    root = lab_root(Path.cwd())
    free = free_bytes(root)
    remedy = "free some space, or name a folder on another disk in BENCHBOOK_LAB_DIR"
    return judge("disk", free >= 5 * GIB, f"{free / GIB:.1f} GiB free for {root}", remedy)


def _cores() -> Ability:
    count = len(os.sched_getaffinity(0))
    detail = f"{count}; `cpus: split` halves them between server and client"
    return judge("cores", count >= 2, detail, "give it a second core, or client and server compete for one")


def _rights() -> Ability:
    if os.geteuid() == 0:
        return Ability("rights", True, "root; servers run as their own users")
    sudo = "installed" if shutil.which("sudo") else "not installed"
    return Ability("rights", True, f"an ordinary user, servers run as you; sudo is {sudo}")


def _open_files() -> Ability:
    hard = files.open_files()
    is_unlimited = hard < 0
    behind = (hard - loads.OTHER_FILES) // 2
    detail = "no limit" if is_unlimited else f"{hard} allowed, {behind} connections of a load behind a proxy"
    line = "* hard nofile 65536"
    remedy = (
        "`ulimit -Hn 65536` in this shell"
        if os.geteuid() == 0
        else f"as root, put the line `{line}` into /etc/security/limits.d/benchbook.conf; then log in again"
    )
    return judge("open files", is_unlimited or hard >= 8192, detail, remedy)


def _port(number: int) -> Ability:
    there = files.listeners(number)
    is_free, held = not there, [_named(one["pid"]) for one in there if one["pid"]]
    detail = "free" if is_free else f"taken by {', '.join(held) or 'a process of another user'}"
    return judge(f"port {number}", is_free, detail, "`make down` if it is ours, else another site.port")


def _lock() -> Ability:
    held = [_named(pid) for pid in procfs.opened_by(lock.lock_file())]
    detail = f"held by {', '.join(held)}" if held else "free"
    return judge("lock", not held, detail, "wait until it ends, or `make down` if it was left behind")


def _named(pid: int) -> str:
    return f"pid {pid}: {procfs.command(pid)}"


def _clock() -> Ability:
    source = machine.facts()["clocksource"]
    remedy = "see `dmesg | grep clocksource`; reading this clock costs time in every event"
    return judge("clock", source in FAST_CLOCKS, source or "unknown", remedy, is_needed=False)


def _machine() -> Ability:
    """Say what the machine is like: what differs between machines with the same processor's name."""
    root = lab_root(Path.cwd())
    found = probes.here(next(folder for folder in (root, *root.parents) if folder.is_dir()))
    known = [
        session.machine.probes
        for study in record.read().studies.values()
        for session in study.sessions.values()
    ]
    told = ", ".join(probes.words(found, known))
    wakes = [one["wake_other_core_us"] for one in known if "wake_other_core_us" in one]
    if wakes and (found.get("wake_other_core_us") or 0.0) > max(wakes):
        told += "; waking takes longer than on those: what depends on the machine may differ"
    remedy = "run `benchbook doctor` again when less goes on, as results will vary"
    return judge("machine", bool(told), told or "it can't be measured", remedy, is_needed=False)


def _congestion() -> Ability:
    """BBR paces what is sent, on loopback too: results of a MiB came at half the speed when we looked."""
    used = machine.facts()["congestion_control"]
    command = abilities.as_root("sysctl -w net.ipv4.tcp_congestion_control=cubic")
    remedy = f"{command}; large results wait for the pace otherwise"
    return judge("congestion control", used != "bbr", used or "unknown", remedy, is_needed=False)


def _proxy(of: traits.Proxy) -> Ability:
    kind, name = load(of.code), of.name
    if of.is_basic:
        found = kind.installed()
        return judge(name, found is not None, found or "not installed", install_command(of.programs[0]))
    path, why = here.find(of.programs[0]), kind.obstacle()
    is_old = path is not None and kind.unable_to_capture(Path(path).resolve()) is not None
    detail = f"{path}{'; too old to capture traffic' if is_old else ''}"
    remedy = f"{(why or '').partition('; ')[2]}; without it such arms are skipped"
    missing = f"not found; only for arms with `access: {name}`"
    return judge(name, path is not None, detail if path else missing, remedy, is_needed=False)


def _engine(of: traits.Engine) -> Ability:
    found, brings = load(of.code).standing()
    told = found or "not installed"
    if of.is_basic:
        return judge(of.programs[0], found is not None, told, brings)
    detail = f"{told}; only for `engine.name: {of.name}`"
    remedy = f"{brings}; without it such arms are skipped"
    return judge(of.name, found is not None, detail, remedy, is_needed=False)


def _go() -> Ability:
    found = machine.tool_version("go", "version")
    detail = f"{found or 'not installed'}; only for TiDB, which is built from its Go module"
    return judge("go", found is not None, detail, install_command("go"), is_needed=False)
