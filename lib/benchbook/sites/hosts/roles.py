"""Roles of a study's hosts, needs of each role, and reasons against an arm; pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from benchbook.core.study import descriptors, inventory, registry
from benchbook.core.study.engines import engine_of
from benchbook.core.study.inventory import Target
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_arm import Arm
from benchbook.core.util.errors import InputErrors, require_value
from benchbook.core.util.plural import count
from benchbook.sites.agent.facts import HostSnapshot
from benchbook.sites.topology.background_load import too_few_files

# What a host needs for its role; what a server needs depends on the engine.
TOOLS = {"client": ("sysbench",), "control": ("tiup",)}


def list_needed(study: StudySpec, arm: str, role: str) -> tuple[str, ...]:
    """Programs that a host needs for a role of an arm; `server-2` is a server too."""
    role = role.partition("-")[0]
    if role == "server" and study.site.tiup is None:
        return descriptors.find_engine(engine_of(study, arm).name).programs
    return descriptors.find_proxy(study.arms[arm].access).programs if role == "proxy" else TOOLS.get(role, ())


def list_programs(
    studies: Iterable[StudySpec], of_role: Callable[[StudySpec, str, str], Iterable[str]] = list_needed
) -> dict[str, tuple[str, ...]]:
    """Programs that hosts need for each role in some studies, in the words of `of_role`."""
    results: dict[str, dict[str, None]] = {}
    for study in studies:
        for name, arm in study.arms.items():
            for role in count_roles(study, arm):
                results.setdefault(role, {}).update(dict.fromkeys(of_role(study, name, role)))
    return {role: tuple(wanted) for role, wanted in results.items()}


def count_roles(study: StudySpec, arm: Arm) -> dict[str, int]:
    """Number of hosts of each role that an arm needs; one host may have several roles."""
    tiup = study.site.tiup
    roles = {"server": arm.servers if tiup is None else tiup.tidb.hosts, "client": 1}
    if arm.access in descriptors.load_proxies():
        roles["proxy"] = 1
    if tiup is not None:
        roles |= {"tikv": tiup.tikv.hosts, "pd": tiup.pd.hosts, "control": 1}
    return roles


def summarize_needs(study: StudySpec) -> str:
    """Hosts and programs that a study needs, and the inventory's hosts by role, as text."""
    lines, most = ["  needs"], _count_most(study)
    wanted = list_programs([study], _describe_needs)
    for role, number in most.items():
        message = ": ".join(filter(None, [count(number, "host"), ", ".join(wanted[role])]))
        lines.append(f"    {role:10}{message}")
    clients = max(arm.clients for arm in study.arms.values())
    if clients > 1:
        lines.append(f"    {clients} clients at a time, shared out over the hosts with the role client")
    try:
        hosts = inventory.load_hosts(require_value(study.site.inventory))
    except InputErrors as error:
        return "\n".join([*lines, f"  inventory   {error.errors[0]}"])
    for role in inventory.ROLES:
        if role in most:
            there = [f"{name} ({hosts[name].host})" for name in find_hosts(hosts, role)]
            lines.append(f"  {role:12}{', '.join(there) or 'none'}")
    return "\n".join(lines)


def _count_most(study: StudySpec) -> dict[str, int]:
    """Number of hosts of each role that a study needs: the most of an arm, and all that arms name."""
    most: Counter[str] = Counter()
    for arm in study.arms.values():
        most |= Counter(count_roles(study, arm))
    named = {role: {arm.hosts.get(role) for arm in study.arms.values()} for role in most}  # type: ignore[call-overload]
    return {role: max(number, len(named[role])) for role, number in most.items()}


def find_hosts(hosts: Mapping[str, Target], role: str, first: str | None = None) -> list[str]:
    """Names of the hosts with a role, in the inventory's order except a `first` one."""
    results = [name for name, target in hosts.items() if role in target.roles]
    return [first, *(name for name in results if name != first)] if first else results


def _describe_needs(study: StudySpec, name: str, role: str) -> list[str]:
    """Needs of a host for a role in words, with the required version."""
    arm = study.arms[name]
    if role == "proxy" and arm.proxy is not None and arm.proxy.version is not None:
        return [f"{arm.access} {arm.proxy.version}"]
    if role in ("server", "tikv", "pd") and study.site.tiup is not None:
        return [f"TiDB {engine_of(study, name).version}, put there by tiup"]
    return list(list_needed(study, name, role))


def infeasible_reasons(study: StudySpec, name: str, hosts: Mapping[str, Target]) -> Iterator[str]:
    """Reasons against an arm on these hosts, by study and inventory."""
    arm = study.arms[name]
    if engine_of(study, name).binary is not None:
        instead = "write `programs` in the inventory, or remove it"
        yield registry.format_refusal("engine.binary", study.site.kind, ("local",), remedy=instead)
    for role, host in arm.hosts.items():
        needed_role = role.rstrip("0123456789")
        if host not in hosts or needed_role not in hosts[host].roles:
            yield f"hosts.{role}: {host}: no host of the inventory with this name has the role {needed_role}"
    yield from _find_conflicts(study, arm)
    for needed_role, number in count_roles(study, arm).items():
        there = len(find_hosts(hosts, needed_role))
        if there < number and number == 1:
            yield f"no host of the inventory has the role {needed_role}"
        elif there < number:
            yield f"{number} hosts with the role {needed_role} are needed, the inventory has {there}"


def _find_conflicts(study: StudySpec, arm: Arm) -> Iterator[str]:
    """Settings of an arm that its kind of site, or another setting of that, rules out."""
    yield from (sentence for _, sentence in registry.find_refusals(study.site.kind, arm))
    if arm.load is not None and study.site.tls != "off":
        yield "load: not supported with site.tls; leave that out"
    if study.site.tiup is None:
        return
    if arm.kernel is not None or "server" in arm.cpu:
        yield "kernel and cpu.server: not supported with site.tiup; write numa"
    if arm.data is not None and arm.data.prewarm is not None:
        yield "data.prewarm: not supported with site.tiup, whose cluster runs on between blocks; remove it"


def obstacles_of(study: StudySpec, arm: str, role: str, look: HostSnapshot) -> Iterator[str]:
    """Missing needs of a host for a role of an arm, by the host's own facts."""
    yield from find_missing(list_needed(study, arm, role), look)
    if (what := of_root(study, arm, role)) and not look.is_root:
        yield f"{what} need root there"
    if why := short_of_files(study.arms[arm], role, look.open_files):
        yield why


def find_missing(programs: Iterable[str], look: HostSnapshot) -> Iterator[str]:
    """Programs that a host lacks, each with a remedy."""
    for program in programs:
        if not look.tools[program]:
            yield (
                f"{program} is not installed there; install it, or write its path under `programs` in the "
                "inventory"
            )


def of_root(study: StudySpec, arm: str, role: str) -> str | None:
    """Actions on a host with a role that need root, or None."""
    role = role.partition("-")[0]
    if study.site.tiup is not None and role in ("server", "tikv", "pd"):
        return "processes and logs of a cluster"
    return "kernel settings" if study.arms[arm].kernel is not None and role == "server" else None


def short_of_files(arm: Arm, role: str, most: int) -> str | None:
    """Reason if a host's limit of open files (-1: any) is too low for an arm's load, or None."""
    if arm.load is None:
        return None
    return too_few_files(arm.load, role.partition("-")[0] == "proxy", most, "for that user there")
