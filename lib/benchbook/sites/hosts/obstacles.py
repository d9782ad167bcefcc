"""Why hosts can't make an arm: by study and inventory alone, and by what a host says of itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core import registry
from benchbook.core.engines import engine_of
from benchbook.core.inventory import Target
from benchbook.core.study import Study
from benchbook.core.study_arm import Arm
from benchbook.sites.arms.loads import files_needed
from benchbook.sites.hosts.roles import having, needed, roles
from benchbook.sites.proxies.haproxy import FOR_SYSBENCH

# What an arm may ask for here; anything else that it sets leaves it out by name.
KNOWN = frozenset({
    "access", "capture", "clients", "cpu", "data", "engine", "hosts", "kernel", "load", "numa",
    "options_by", "parts", "proxy", "servers",
})  # fmt: skip
WAYS = ("direct", *registry.PROXIES)


def of(study: Study, name: str, hosts: Mapping[str, Target]) -> Iterator[str]:
    """Yield why an arm can't be made on these hosts, by study and inventory."""
    arm = study.arms[name]
    if engine_of(study, name).binary is not None:
        yield "engine.binary is not used on the site ssh; write `programs` in the inventory, or remove it"
    if arm.access not in WAYS:
        yield f"access {arm.access} is not made on the site ssh; it knows {', '.join(WAYS)}"
    for key in arm.setting:
        if key not in KNOWN:
            yield f"{key} is not made on the site ssh"
    for role, host in arm.hosts.items():
        if host not in hosts or role not in hosts[host].roles:
            yield f"hosts.{role}: {host}: no host of the inventory with this name has the role {role}"
    if any(cpu.quota is not None for cpu in arm.cpu.values()):
        yield "cpu.quota is not made on the site ssh; cores are"
    if arm.load is not None and study.site.tls != "off":
        yield "load is not made over TLS; leave site.tls out"
    if arm.load is not None and arm.access == "haproxy":
        asked = arm.proxy.settings.get("maxconn") if arm.proxy is not None else None
        least = arm.load.connections + FOR_SYSBENCH
        if asked is not None and least > int(asked):
            yield f"arms.{name}.proxy.settings.maxconn: {asked} are too few; write at least {least}"
    if study.site.tiup is not None and (arm.kernel is not None or "server" in arm.cpu):
        yield "kernel and cpu.server are not made for a cluster; numa is"
    if study.site.tiup is not None and arm.data is not None and arm.data.prewarm is not None:
        yield "data.prewarm is not made for a cluster, which is not started anew for each block"
    for role, number in roles(study, arm).items() if arm.access in WAYS else ():
        there = len(having(hosts, role))
        if there < number and number == 1:
            yield f"no host of the inventory has the role {role}"
        elif there < number:
            yield f"{number} hosts with the role {role} are needed, the inventory has {there}"


def of_host(study: Study, arm: str, role: str, look: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a host lacks for a role of an arm, by what it said of itself."""
    for tool in needed(study, arm, role):
        if not look["tools"][tool]:
            yield f"{tool} is not installed there"
    if (what := of_root(study, arm, role)) and not look["is_root"]:
        yield f"{what} need root there"
    if why := files(study.arms[arm], role, look["open_files"]):
        yield why


def of_root(study: Study, arm: str, role: str) -> str | None:
    """Return what on a host with a role only root can do or see, or None."""
    role = role.partition("-")[0]
    if study.site.tiup is not None and role in ("server", "tikv", "pd"):
        return "processes and logs of a cluster"
    return "kernel settings" if study.arms[arm].kernel is not None and role == "server" else None


def files(arm: Arm, role: str, most: int) -> str | None:
    """Return why a host that lets a program open so many files (-1: any number) can't bear an arm's load."""
    if arm.load is None or most < 0:
        return None
    least = files_needed(arm.load, is_proxied=role.partition("-")[0] == "proxy")
    if least <= most:
        return None
    return f"{least} open files are needed, {most} are allowed; raise `ulimit -Hn` for that user there"
