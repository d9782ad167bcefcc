"""What these hosts can make of a study's arms, what each needs, and why an arm can't be made; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchbook.core import inventory, registry
from benchbook.core.engines import engine_of
from benchbook.core.errors import InputErrors
from benchbook.core.inventory import Target
from benchbook.core.study import Study
from benchbook.core.study_arm import Arm
from benchbook.sites.loads import files_needed
from benchbook.sites.proxies.haproxy import FOR_SYSBENCH

# What an arm may ask for here; anything else that it sets leaves it out by name.
KNOWN = frozenset({
    "access", "capture", "clients", "cpu", "data", "engine", "hosts", "kernel", "load", "numa",
    "options_by", "parts", "proxy", "servers",
})  # fmt: skip
WAYS = ("direct", *registry.PROXIES)
# What a host needs for its role; what a server needs depends on the engine.
TOOLS = {"proxy": ("haproxy",), "client": ("sysbench",), "control": ("tiup",)}
# What is asked of a host before a study is at hand.
OF_ROLE = {"server": registry.PROGRAMS["mariadb"], **TOOLS}


def needed(study: Study, arm: str, role: str) -> tuple[str, ...]:
    """Return the programs that a host needs for a role of an arm; `server-2` is a server too."""
    role = role.partition("-")[0]
    if role == "server":
        return () if study.site.tiup is not None else registry.PROGRAMS[engine_of(study, arm).name]
    return (study.arms[arm].access,) if role == "proxy" else TOOLS.get(role, ())


def lacking(study: Study, arm: str, role: str, look: Mapping[str, Any]) -> str | None:
    """Return what a host lacks for a role of an arm, by what it said of itself, or None."""
    absent = [tool for tool in needed(study, arm, role) if not look["tools"][tool]]
    if absent:
        return f"{absent[0]} is not installed there"
    if (what := of_root(study, arm, role)) and not look["is_root"]:
        return f"{what} need root there"
    return files(study.arms[arm], role, look["open_files"])


def of_root(study: Study, arm: str, role: str) -> str | None:
    """Return what on a host with a role only root can do or see, or None."""
    role = role.partition("-")[0]
    if study.site.tiup is not None and role in ("server", "tikv", "pd"):
        return "processes and logs of a cluster"
    return "kernel settings" if study.arms[arm].kernel is not None and role == "server" else None


def obstacle(study: Study, name: str, hosts: Mapping[str, Target]) -> str | None:
    """Return why an arm can't be made on these hosts, or None."""
    arm = study.arms[name]
    if engine_of(study, name).binary is not None:
        return "engine.binary is not used on the site ssh; write `programs` in the inventory, or remove it"
    if arm.access not in WAYS:
        return f"access {arm.access} is not made on the site ssh; it knows {', '.join(WAYS)}"
    for key in arm.setting:
        if key not in KNOWN:
            return f"{key} is not made on the site ssh"
    for role, host in arm.hosts.items():
        if host not in hosts or role not in hosts[host].roles:
            return f"hosts.{role}: {host}: no host of the inventory with this name has the role {role}"
    if any(cpu.quota is not None for cpu in arm.cpu.values()):
        return "cpu.quota is not made on the site ssh; cores are"
    if arm.load is not None and study.site.tls != "off":
        return "load is not made over TLS; leave site.tls out"
    if arm.load is not None and arm.access == "haproxy":
        asked = arm.proxy.settings.get("maxconn") if arm.proxy is not None else None
        needed = arm.load.connections + FOR_SYSBENCH
        if asked is not None and needed > int(asked):
            return f"arms.{name}.proxy.settings.maxconn: {asked} are too few; write at least {needed}"
    if study.site.tiup is not None and (arm.kernel is not None or "server" in arm.cpu):
        return "kernel and cpu.server are not made for a cluster; numa is"
    if study.site.tiup is not None and arm.data is not None and arm.data.prewarm is not None:
        return "data.prewarm is not made for a cluster, which is not started anew for each block"
    for role, number in roles(study, arm).items():
        there = len(having(hosts, role))
        if there < number and number == 1:
            return f"no host of the inventory has the role {role}"
        if there < number:
            return f"{number} hosts with the role {role} are needed, the inventory has {there}"
    return None


def files(arm: Arm, role: str, most: int) -> str | None:
    """Return why a host that lets a program open so many files (-1: any number) can't bear an arm's load."""
    if arm.load is None or most < 0:
        return None
    needed = files_needed(arm.load, is_proxied=role.partition("-")[0] == "proxy")
    if needed <= most:
        return None
    return f"{needed} open files are needed, {most} are allowed; raise `ulimit -Hn` for that user there"


def roles(study: Study, arm: Arm) -> dict[str, int]:
    """Return how many hosts of each role an arm needs; one host may have several roles."""
    tiup = study.site.tiup
    found = {"server": arm.servers if tiup is None else tiup.tidb.hosts, "client": 1}
    if arm.access != "direct":
        found["proxy"] = 1
    if tiup is not None:
        found |= {"tikv": tiup.tikv.hosts, "pd": tiup.pd.hosts, "control": 1}
    return found


def summary(study: Study) -> str:
    """Say what hosts and programs a study needs, which host of the inventory has which role, and which arms
    can't be made on them."""
    assert study.site.inventory is not None
    lines = ["  needs"]
    most: dict[str, int] = {}
    programs: dict[str, dict[str, None]] = {}
    for name, arm in study.arms.items():
        for role, number in roles(study, arm).items():
            named = {one.hosts.get(role) for one in study.arms.values()}  # type: ignore[call-overload]
            most[role] = max(most.get(role, 0), number, len(named))
            programs.setdefault(role, {}).update(dict.fromkeys(_told(study, name, role)))
    for role, number in most.items():
        told = ", ".join(programs[role])
        lines.append(f"    {role:10}{number} host{'s' * (number > 1)}{': ' + told if told else ''}")
    clients = max(arm.clients for arm in study.arms.values())
    if clients > 1:
        lines.append(f"    {clients} clients at a time, shared out over the hosts with the role client")
    try:
        hosts = inventory.load(study.site.inventory)
    except InputErrors as error:
        return "\n".join([*lines, f"  inventory   {error.errors[0]}"])
    for role in inventory.ROLES:
        if role in most:
            named = [f"{name} ({hosts[name].host})" for name in having(hosts, role)]
            lines.append(f"  {role:12}{', '.join(named) or 'none'}")
    for name in study.arms:
        if why := obstacle(study, name, hosts):
            lines.append(f"  not made    {name}: {why}")
    return "\n".join(lines)


def having(hosts: Mapping[str, Target], role: str, first: str | None = None) -> list[str]:
    """Return the names of the hosts with a role, in the inventory's order but for one that is named."""
    found = [name for name, target in hosts.items() if role in target.roles]
    return [first, *(name for name in found if name != first)] if first else found


def host_of(hosts: Mapping[str, Target], role: str, arm: Arm) -> str:
    """Return the host that has a role in an arm: the one it names, or the first."""
    return (having(hosts, role, arm.hosts.get(role)) or [""])[0]  # type: ignore[call-overload]


def _told(study: Study, name: str, role: str) -> list[str]:
    """Return in words what a host needs for a role, with the version that is asked for."""
    arm = study.arms[name]
    if role == "proxy" and arm.proxy is not None and arm.proxy.version is not None:
        return [f"{arm.access} {arm.proxy.version}"]
    if role in ("server", "tikv", "pd") and study.site.tiup is not None:
        return [f"TiDB {engine_of(study, name).version}, put there by tiup"]
    return list(needed(study, name, role))
