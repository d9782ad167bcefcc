"""Why hosts can't make an arm: by study and inventory alone, and by what a host says of itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from benchbook.core import registry
from benchbook.core.engines import engine_of
from benchbook.core.inventory import Target
from benchbook.core.study import Study
from benchbook.core.study_arm import Arm
from benchbook.sites.agent.facts import Look
from benchbook.sites.arms.loads import too_few_files
from benchbook.sites.hosts.roles import having, needed, roles


def of(study: Study, name: str, hosts: Mapping[str, Target]) -> Iterator[str]:
    """Yield why an arm can't be made on these hosts, by study and inventory."""
    arm = study.arms[name]
    if engine_of(study, name).binary is not None:
        instead = "write `programs` in the inventory, or remove it"
        yield registry.refusal("engine.binary", study.site.kind, ("local",), remedy=instead)
    for role, host in arm.hosts.items():
        if host not in hosts or role not in hosts[host].roles:
            yield f"hosts.{role}: {host}: no host of the inventory with this name has the role {role}"
    yield from registry.refused(study.site.kind, arm)
    if arm.load is not None and study.site.tls != "off":
        yield "load: not supported with site.tls; leave that out"
    if study.site.tiup is not None and (arm.kernel is not None or "server" in arm.cpu):
        yield "kernel and cpu.server: not supported with site.tiup; write numa"
    if study.site.tiup is not None and arm.data is not None and arm.data.prewarm is not None:
        yield "data.prewarm: not supported with site.tiup, whose cluster runs on between blocks; remove it"
    for needed_role, number in roles(study, arm).items():
        there = len(having(hosts, needed_role))
        if there < number and number == 1:
            yield f"no host of the inventory has the role {needed_role}"
        elif there < number:
            yield f"{number} hosts with the role {needed_role} are needed, the inventory has {there}"


def of_host(study: Study, arm: str, role: str, look: Look) -> Iterator[str]:
    """Yield what a host lacks for a role of an arm, by what it said of itself."""
    yield from absent(needed(study, arm, role), look)
    if (what := of_root(study, arm, role)) and not look.is_root:
        yield f"{what} need root there"
    if why := files(study.arms[arm], role, look.open_files):
        yield why


def absent(programs: Iterable[str], look: Look) -> Iterator[str]:
    """Yield which of some programs a host lacks."""
    for program in programs:
        if not look.tools[program]:
            yield (
                f"{program} is not installed there; install it, or write its path under `programs` in the "
                "inventory"
            )


def of_root(study: Study, arm: str, role: str) -> str | None:
    """Return what on a host with a role only root can do or see, or None."""
    role = role.partition("-")[0]
    if study.site.tiup is not None and role in ("server", "tikv", "pd"):
        return "processes and logs of a cluster"
    return "kernel settings" if study.arms[arm].kernel is not None and role == "server" else None


def files(arm: Arm, role: str, most: int) -> str | None:
    """Return why a host that lets a program open so many files (-1: any number) can't bear an arm's load."""
    if arm.load is None:
        return None
    return too_few_files(arm.load, role.partition("-")[0] == "proxy", most, "for that user there")
