"""Abilities of this machine that arms may need, each tried in a place that goes away with the trial."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchbook.sites import machine
from benchbook.sites.process import PATH

PACKAGES = {
    "apt-get": {"sysbench": "sysbench", "mariadbd": "mariadb-server", "haproxy": "haproxy", "tc": "iproute2"},
    "dnf": {"sysbench": "sysbench", "mariadbd": "mariadb-server", "haproxy": "haproxy", "tc": "iproute-tc"},
    "brew": {"sysbench": "sysbench", "mariadbd": "mariadb", "haproxy": "haproxy"},
}


@dataclass(frozen=True)
class Ability:
    """One thing this machine can do or can't, and what to do about it; `is_needed` by the local site."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    is_needed: bool = True


def manager() -> str | None:
    """Return the package manager of this system: apt-get, dnf or brew, or None."""
    return next((name for name in PACKAGES if shutil.which(name)), None)


def install_command(tool: str) -> str:
    """Return the command that installs a tool here."""
    name = manager()
    if name is None:
        return f"install {tool} with your system's package manager"
    package = PACKAGES[name].get(tool, tool)
    sudo = "" if name == "brew" or os.geteuid() == 0 else "sudo "
    return f"{sudo}{name} install {package}"


def judge(name: str, ok: bool, detail: str, remedy: str, is_needed: bool = True) -> Ability:
    """Return an ability; the remedy only where it is wanted."""
    return Ability(name, ok, detail, "" if ok else remedy, is_needed)


@cache
def network() -> tuple[Ability, ...]:
    """Return what can be made of networks: namespaces, cables and bridges, rules, delays."""
    links = "ip link add bb0 type veth peer name bb1 && ip link add bb2 type bridge"
    rule = "-t nat -A OUTPUT -p tcp -d 10.0.0.1 -m comment --comment x -j DNAT --to-destination 10.0.0.2:1"
    netem = "use a kernel with sch_netem; a delaying proxy can stand in for it"
    return (
        trial("network namespaces", ["true"], "run as root"),
        trial("veth and bridge", ["sh", "-c", links], "run as root, with these kernel modules"),
        trial("iptables NAT", ["iptables", *rule.split()], install_command("iptables")),
        trial("netem", ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"], netem),
    )


def trial(name: str, argv: list[str], remedy: str) -> Ability:
    """Try a command in a network namespace that goes away with it."""
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{PATH}", "LC_ALL": "C"}
    quiet = {"capture_output": True, "text": True, "timeout": 10, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(["unshare", "--net", *argv], env=env, **quiet)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Ability(name, False, str(error), install_command("unshare"), is_needed=False)
    works = done.returncode == 0
    said = "works" if works else (done.stderr.strip().splitlines() or ["refused"])[-1]
    return judge(name, works, said, remedy, is_needed=False)


def cpu_quota() -> Ability:
    """Say whether processes can be given quota and weight."""
    version = machine.cgroup_version()
    folder = Path("/sys/fs/cgroup") / ("cpu" if version == 1 else "")
    can = version is not None and os.access(folder, os.W_OK)
    detail = f"control groups version {version}" if version else "no control groups"
    return judge("cpu quota", can, detail, "run as root on a system with control groups", is_needed=False)
