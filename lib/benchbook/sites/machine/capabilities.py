"""Abilities of this machine that arms may need, each tried in a place that goes away with the trial."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchbook.core.study import descriptors
from benchbook.sites.machine import facts as machine
from benchbook.sites.processes.process import PATH

MANAGERS = ("apt-get", "dnf", "brew", "pacman", "apk", "zypper")
# Packages of the system's own tools that aren't named like them; engines and proxies say theirs themselves.
TC = dict.fromkeys(("apt-get", "pacman", "zypper"), "iproute2") | {"dnf": "iproute-tc", "apk": "iproute2-tc"}
PACKAGES = {"tc": TC, "unshare": {"apt-get": "util-linux"}}
# The word after the manager's name, where it is not `install`.
INSTALL = {"pacman": "-S --needed", "apk": "add"}

PRIVILEGED = "the container must be privileged (`docker run --privileged`)"


@dataclass(frozen=True)
class Ability:
    """One thing this machine can do or can't, and the remedy; `is_needed` by the local site."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    is_needed: bool = True


def find_manager() -> str | None:
    """Package manager of this system, one of `MANAGERS`, or None."""
    return next((name for name in MANAGERS if shutil.which(name)), None)


def install_command(tool: str) -> str:
    """Command that installs a tool here, as this user would type it."""
    name = find_manager()
    if name is None:
        return f"install {tool} with your system's package manager"
    package = {**descriptors.packages_with(tool), **PACKAGES.get(tool, {})}.get(name, tool)
    command = f"{name} {INSTALL.get(name, 'install')} {package}"
    return command if name == "brew" else as_root(command)


def as_root(command: str) -> str:
    """Command that needs root, as this user would type it."""
    if os.geteuid() == 0:
        return command
    return f"sudo {command}" if shutil.which("sudo") else f"as root: {command}"


def needs_root(otherwise: str) -> str:
    """Remedy for an action that needs root rights; `otherwise` is the remedy for root."""
    if os.geteuid() == 0:
        return otherwise
    how = "`sudo make repro`" if shutil.which("sudo") else "`make repro` as root"
    return f"{how}: only root may do this; without it arms that need it are skipped"


def judge_ability(name: str, ok: bool, detail: str, remedy: str, is_needed: bool = True) -> Ability:
    """An ability; the remedy only if it is wanted."""
    return Ability(name, ok, detail, "" if ok else remedy, is_needed)


judge_optional = partial(judge_ability, is_needed=False)


@cache
def check_network() -> tuple[Ability, ...]:
    """Network abilities: namespaces, cables and bridges, rules, delays."""
    links = "ip link add bb0 type veth peer name bb1 && ip link add bb2 type bridge"
    rule = "iptables -w -t nat -A OUTPUT -p tcp -d 10.0.0.1 -m comment --comment x"
    rule += " -j DNAT --to-destination 10.0.0.2:1"
    netem = "use a kernel with sch_netem; a delaying proxy can stand in for it"
    return (
        try_command("network namespaces", ["true"], PRIVILEGED),
        try_command("veth and bridge", ["sh", "-c", links], as_root("modprobe -a veth bridge")),
        try_command("iptables NAT", rule.split(), as_root("modprobe -a iptable_nat xt_comment")),
        try_command("netem", ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"], netem),
    )


def try_command(name: str, argv: list[str], remedy: str) -> Ability:
    """Try a command in a network namespace that goes away with it."""
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{PATH}", "LC_ALL": "C"}
    tools = ("unshare", argv[0])
    if missing := next((tool for tool in tools if not shutil.which(tool, path=env["PATH"])), None):
        return Ability(name, False, f"{missing} is not installed", install_command(missing), is_needed=False)
    quiet: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 10, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(["unshare", "--net", *argv], env=env, **quiet)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Ability(name, False, str(error), remedy, is_needed=False)
    works = done.returncode == 0
    statement = "works" if works else (done.stderr.strip().splitlines() or ["refused"])[-1]
    return judge_optional(name, works, statement, needs_root(remedy))


def cpu_quota() -> Ability:
    """Ability to give processes quota and weight."""
    version = machine.cgroup_version()
    folder = Path("/sys/fs/cgroup") / ("cpu" if version == 1 else "")
    can = version is not None and os.access(folder, os.W_OK)
    detail = f"control groups version {version}" if version else "no control groups"
    remedy = needs_root(PRIVILEGED) if version else "use a kernel with control groups"
    return judge_optional("cpu quota", can, detail, remedy)
