"""Abilities of this machine: present, missing, with the reason and the command that helps."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchbook.core.artifacts import record
from benchbook.core.study import descriptors
from benchbook.sites import load
from benchbook.sites.agent import files, microbenchmarks
from benchbook.sites.agent.facts import VERSION, find_first_group
from benchbook.sites.machine import capabilities, local_machine, lock
from benchbook.sites.machine import facts as machine
from benchbook.sites.machine.capabilities import Ability, find_manager, install_command, judge_ability
from benchbook.sites.processes import procfs
from benchbook.sites.topology import background_load
from benchbook.sites.workspace import find_nearest, free_bytes, lab_root

GIB = 1 << 30
# Reading the wall clock through these does not ask the hypervisor or a slow chip.
FAST_CLOCKS = {"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "timebase"}


def examine(port: int = 23060) -> list[Ability]:
    """All abilities, needed ones first; never raises because something is missing."""
    facts = machine.collect_facts()
    abilities = [*_check_system(facts)]
    if sys.platform == "linux":
        abilities += [*_check_rights(), *map(_check_port, (port, port + 1))]
        abilities += [*_check_shared(facts), _check_machine()]
        abilities += [*capabilities.check_network(), capabilities.cpu_quota()]
    go = find_first_group(VERSION, files.read_output(["go", "version"], os.environ))
    detail = f"{go or 'not installed'}; only for TiDB, which is built from its Go module"
    abilities += [
        capabilities.judge_optional("go", go is not None, detail, install_command("go")),
        *(_check_engine(engine) for engine in descriptors.load_engines().values() if "local" in engine.sites),
        *map(_check_proxy, descriptors.load_proxies().values()),
        Ability("containers", True, "neither Docker nor Kubernetes is needed", is_needed=False),
    ]
    return sorted(abilities, key=lambda ability: not ability.is_needed)


def _check_system(facts: Mapping[str, Any]) -> Iterator[Ability]:
    """Abilities to check on any system: the system itself, Python, sysbench, memory and disk."""
    name, is_linux = machine.system_name(), sys.platform == "linux"
    observed = find_manager() or "no known package manager"
    detail = f"{name}, {observed}" if is_linux else f"{name}: servers can be supervised on Linux only"
    remedy = "measure on Linux or in a Linux virtual machine; reports and analysis work here as they are"
    yield judge_ability("system", is_linux, detail, remedy)
    is_new = sys.version_info >= (3, 11)
    yield judge_ability("python", is_new, platform.python_version(), "install Python 3.11 or newer")
    text = facts["sysbench"]
    yield judge_ability("sysbench", text is not None, text or "not installed", install_command("sysbench"))
    total = facts["memory_mib"]
    yield judge_ability("memory", total >= 1900, f"{total} MiB", "use a machine with 2 GiB or more")
    root = lab_root(Path.cwd())
    free = free_bytes(root)
    remedy = "free some space, or name a folder on another disk in BENCHBOOK_LAB_DIR"
    yield judge_ability("disk", free >= 5 * GIB, f"{free / GIB:.1f} GiB free for {root}", remedy)


def _check_rights() -> Iterator[Ability]:
    """Rights of this process: cores, users, open files."""
    count, is_root = len(os.sched_getaffinity(0)), os.geteuid() == 0
    note = f"{count}; `cpus: split` halves them between server and client"
    remedy = "give it a second core, or client and server compete for one"
    yield judge_ability("cores", count >= 2, note, remedy)
    sudo = "installed" if shutil.which("sudo") else "not installed"
    ordinary = f"an ordinary user, servers run as you; sudo is {sudo}"
    yield Ability("rights", True, "root; servers run as their own users" if is_root else ordinary)
    hard = files.open_files()
    behind = (hard - background_load.OTHER_FILES) // 2
    note = f"{hard} allowed, {behind} connections of a load behind a proxy" if hard >= 0 else "no limit"
    line = "* hard nofile 65536"
    remedy = f"as root, put the line `{line}` into /etc/security/limits.d/benchbook.conf; then log in again"
    enough = hard < 0 or hard >= 8192
    yield judge_ability("open files", enough, note, "`ulimit -Hn 65536` in this shell" if is_root else remedy)


def _check_port(number: int) -> Ability:
    there = files.find_listeners(number)
    held = [_describe_process(values["pid"]) for values in there if values["pid"]]
    detail = f"taken by {', '.join(held) or 'a process of another user'}" if there else "free"
    remedy = "`make down` if it is ours, else another site.port"
    return judge_ability(f"port {number}", not there, detail, remedy)


def _describe_process(pid: int) -> str:
    return f"pid {pid}: {procfs.read_command(pid)}"


def _check_shared(facts: Mapping[str, Any]) -> Iterator[Ability]:
    """Things that all programs here share: the lock of measuring, the clock, the packets' pacing."""
    held = [_describe_process(pid) for pid in procfs.opened_by(lock.lock_file())]
    detail = f"held by {', '.join(held)}" if held else "free"
    yield judge_ability("lock", not held, detail, "wait until it ends, or `make down` if it was left behind")
    source = facts["clocksource"]
    remedy = "see `dmesg | grep clocksource`; reading this clock costs time in every event"
    yield capabilities.judge_optional("clock", source in FAST_CLOCKS, source or "unknown", remedy)
    # BBR paces on loopback too: results of a MiB came at half the speed when we looked.
    used = facts["congestion_control"]
    command = capabilities.as_root("sysctl -w net.ipv4.tcp_congestion_control=cubic")
    remedy = f"{command}; large results wait for the pace otherwise"
    yield capabilities.judge_optional("congestion control", used != "bbr", used or "unknown", remedy)


def _check_machine() -> Ability:
    """Traits of the machine that differ between machines with the same processor's name."""
    here = microbenchmarks.measure_here(find_nearest(lab_root(Path.cwd())))
    studies = record.read_index().studies.values()
    recorded = [session.machine.probes for study in studies for session in study.sessions.values()]
    message = ", ".join(microbenchmarks.describe_figures(here, recorded))
    wakes = [values["wake_other_core_us"] for values in recorded if "wake_other_core_us" in values]
    if wakes and (here.get("wake_other_core_us") or 0.0) > max(wakes):
        message += "; waking takes longer than on those: what depends on the machine may differ"
    remedy = "run `benchbook doctor` again when less goes on, as results will vary"
    return capabilities.judge_optional("machine", bool(message), message or "it can't be measured", remedy)


def _check_proxy(of: descriptors.ProxyDescriptor) -> Ability:
    kind, name = load(of.code), of.name
    if of.is_basic:
        text = kind.installed()
        return judge_ability(name, text is not None, text or "not installed", install_command(of.programs[0]))
    path, why = local_machine.find_program(of.programs[0]), kind.obstacle()
    is_old = path is not None and kind.unable_to_capture(Path(path).resolve()) is not None
    detail = f"{path}{'; too old to capture traffic' if is_old else ''}"
    remedy = f"{(why or '').partition('; ')[2]}; without it such arms are skipped"
    missing = f"not found; only for arms with `access: {name}`"
    return capabilities.judge_optional(name, path is not None, detail if path else missing, remedy)


def _check_engine(of: descriptors.EngineDescriptor) -> Ability:
    result, brings = load(of.code).standing()
    report = result or "not installed"
    if of.is_basic:
        return judge_ability(of.programs[0], result is not None, report, brings)
    detail = f"{report}; only for `engine.name: {of.name}`"
    remedy = f"{brings}; without it such arms are skipped"
    return capabilities.judge_optional(of.name, result is not None, detail, remedy)
