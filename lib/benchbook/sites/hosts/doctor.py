"""Abilities of each host of an inventory, with reasons and remedies. Starts nothing there."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchbook.core.study import descriptors, inventory, load
from benchbook.core.study.inventory import Target
from benchbook.core.study.study import StudySpec
from benchbook.core.util import paths
from benchbook.core.util.errors import InputErrors, SiteError
from benchbook.sites.agent.facts import HostSnapshot
from benchbook.sites.hosts import roles
from benchbook.sites.machine.capabilities import Ability, judge_optional

FREE_MIB, OPEN_FILES, CLOCK_S = 5 << 10, 8192, 0.5


def examine() -> list[Ability]:
    """Abilities of all hosts in inventories that study files name; none without any."""
    named: dict[str, dict[str, StudySpec]] = {}
    chosen: set[str] = set()
    with contextlib.suppress(InputErrors):
        chosen = set(load.load_params().studies)
    for name in paths.list_studies():
        # Most studies name none, and to check a whole study takes a while.
        text = paths.study_paths(name).file.read_text(encoding="utf-8", errors="replace")
        if "inventory:" not in text and "outside:" not in text:
            continue
        with contextlib.suppress(InputErrors):
            study = load.load_study(name)
            inventory_of = study.site.inventory or _find_outside(study)
            if inventory_of and (name in chosen or inventory.inventory_file(inventory_of).is_file()):
                named.setdefault(inventory_of, {})[name] = study
    abilities: list[Ability] = []
    for name, studies in sorted(named.items()):
        users = [study for item, study in studies.items() if item in chosen]
        abilities += of_inventory(name, users or list(studies.values()))
    return abilities


def of_inventory(name: str, studies: Sequence[StudySpec] = ()) -> list[Ability]:
    """Abilities of an inventory's hosts, with the programs that studies need for their roles."""
    is_outside = any(map(_find_outside, studies))
    try:
        targets = inventory.load_hosts(name, ("client",)) if is_outside else inventory.load_hosts(name)
    except InputErrors as error:
        label = f"inventory {name}"
        return [Ability(label, False, text, "see docs/ssh.md", is_needed=False) for text in error.errors]
    wanted = {"client": roles.TOOLS["client"]} if is_outside else roles.list_programs(studies)
    with ThreadPoolExecutor(max_workers=16) as pool:
        requests = list(pool.map(_inspect_target, targets.values()))
    pairs = zip(targets.values(), requests, strict=True)
    return [ability for pair in pairs for ability in _judge_target(*pair, wanted)]


def _find_outside(study: StudySpec) -> str | None:
    return study.site.kubernetes.outside if study.site.kubernetes is not None else None


def _inspect_target(target: Target) -> tuple[HostSnapshot, float] | str:
    # The libraries for SSH take half a second to load; whoever has no hosts need not wait for them.
    from benchbook.sites.hosts.host import Host

    host = Host(target, "doctor", "")
    try:
        sent = time.time()
        host_snapshot = host.look()
        # The answer takes a while, so a clock is off only by more than that.
        late = max(sent - host_snapshot.wall_s, host_snapshot.wall_s - time.time(), 0.0)
        return host_snapshot, late
    except SiteError as error:
        return str(error)
    finally:
        host.close()


def _judge_target(
    target: Target, request: tuple[HostSnapshot, float] | str, wanted: Mapping[str, Iterable[str]]
) -> Iterator[Ability]:
    name = target.name
    if isinstance(request, str):
        statement, _, remedy = request.rpartition("; ")
        yield Ability(f"{name}: ssh", False, statement or request, remedy, is_needed=False)
        return
    host_snapshot, late_s = request
    names = {of["programs"][0]: name for name, of in descriptors.required_programs().items()}
    facts, held = host_snapshot.facts, ", ".join(target.roles)
    detail = f"{target.user}@{target.host}, {facts['system']}, {facts['cores']} cores, {held}"
    yield Ability(f"{name}: ssh", True, detail, is_needed=False)
    for tool in dict.fromkeys(text for role in target.roles for text in wanted.get(role, ())):
        path, package = host_snapshot.tools.get(tool), descriptors.packages_with(tool).get("apt-get", tool)
        version = facts.get(names.get(tool, "")) or path
        remedy = f"`apt-get install {package}` on {name}, or name its path under `programs`"
        yield judge_optional(f"{name}: {tool}", path is not None, version or "not installed", remedy)
    free = host_snapshot.moment["disk_free_mib"]
    remedy = "free some space, or name a `folder` on another disk in the inventory"
    yield judge_optional(f"{name}: disk", free >= FREE_MIB, f"{free >> 10} GiB free", remedy)
    files = host_snapshot.open_files
    detail, remedy = "no limit" if files < 0 else f"{files} allowed", "raise `ulimit -Hn` for this user"
    yield judge_optional(f"{name}: open files", files < 0 or files >= OPEN_FILES, detail, remedy)
    detail = f"less than {late_s + 0.001:.3f} s off"
    yield judge_optional(f"{name}: clock", late_s < CLOCK_S, detail, "keep it by NTP, such as chrony")
    if "server" in target.roles and not host_snapshot.is_root:
        detail = f"{host_snapshot.user} is not root: no kernel settings, and the server runs as this user"
        yield Ability(f"{name}: rights", True, detail, is_needed=False)
