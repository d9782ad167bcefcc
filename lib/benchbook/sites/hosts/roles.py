"""Which roles the hosts of a study have, how many it needs of each, and what programs; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchbook.core import inventory, traits
from benchbook.core.engines import engine_of
from benchbook.core.errors import InputErrors
from benchbook.core.inventory import Target
from benchbook.core.study import Study
from benchbook.core.study_arm import Arm

# What a host needs for its role; what a server needs depends on the engine.
TOOLS = {"client": ("sysbench",), "control": ("tiup",)}


def needed(study: Study, arm: str, role: str) -> tuple[str, ...]:
    """Return the programs that a host needs for a role of an arm; `server-2` is a server too."""
    role = role.partition("-")[0]
    if role == "server":
        return () if study.site.tiup is not None else traits.engine(engine_of(study, arm).name).programs
    return traits.proxy(study.arms[arm].access).programs if role == "proxy" else TOOLS.get(role, ())


def programs(studies: Iterable[Study]) -> dict[str, tuple[str, ...]]:
    """Return the programs that hosts need for each role in some studies."""
    found: dict[str, dict[str, None]] = {}
    for study in studies:
        for name, arm in study.arms.items():
            for role in roles(study, arm):
                found.setdefault(role, {}).update(dict.fromkeys(needed(study, name, role)))
    return {role: tuple(wanted) for role, wanted in found.items()}


def roles(study: Study, arm: Arm) -> dict[str, int]:
    """Return how many hosts of each role an arm needs; one host may have several roles."""
    tiup = study.site.tiup
    found = {"server": arm.servers if tiup is None else tiup.tidb.hosts, "client": 1}
    if arm.access in traits.proxies():
        found["proxy"] = 1
    if tiup is not None:
        found |= {"tikv": tiup.tikv.hosts, "pd": tiup.pd.hosts, "control": 1}
    return found


def summary(study: Study) -> str:
    """Say what hosts and programs a study needs, and which host of the inventory has which role."""
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
            there = [f"{name} ({hosts[name].host})" for name in having(hosts, role)]
            lines.append(f"  {role:12}{', '.join(there) or 'none'}")
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
