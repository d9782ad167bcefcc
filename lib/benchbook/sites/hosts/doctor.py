"""Abilities of each host of an inventory, with reasons and remedies. Starts nothing there."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchbook.core.study import descriptors, inventory, load
from benchbook.core.study.inventory import Target
from benchbook.core.study.study import Study
from benchbook.core.util import paths
from benchbook.core.util.errors import InputErrors, SiteError
from benchbook.sites.agent.facts import HostSnapshot
from benchbook.sites.hosts import roles
from benchbook.sites.machine.capabilities import Ability, judge_ability

FREE_MIB = 5 << 10
OPEN_FILES = 8192
CLOCK_S = 0.5


def examine() -> list[Ability]:
    """Abilities of all hosts in inventories that study files name; none without any."""
    named: dict[str, dict[str, Study]] = {}
    asked: set[str] = set()
    with contextlib.suppress(InputErrors):
        asked = set(load.load_params().studies)
    for name in paths.list_studies():
        # Most studies name none, and to check a whole study takes a while.
        text = paths.study_paths(name).file.read_text(encoding="utf-8", errors="replace")
        if "inventory:" not in text and "outside:" not in text:
            continue
        with contextlib.suppress(InputErrors):
            study = load.load_study(name)
            inventory_of = study.site.inventory or _find_outside(study)
            if inventory_of and (name in asked or inventory.inventory_file(inventory_of).is_file()):
                named.setdefault(inventory_of, {})[name] = study
    found: list[Ability] = []
    for name, studies in sorted(named.items()):
        own = [study for one, study in studies.items() if one in asked]
        found += of_inventory(name, own or list(studies.values()))
    return found


def of_inventory(name: str, studies: Sequence[Study] = ()) -> list[Ability]:
    """Return the abilities of an inventory's hosts, with the programs that studies need for their roles."""
    is_outside = any(map(_find_outside, studies))
    try:
        targets = inventory.load_hosts(name, ("client",)) if is_outside else inventory.load_hosts(name)
    except InputErrors as error:
        return [
            Ability(f"inventory {name}", False, one, "see docs/ssh.md", is_needed=False)
            for one in error.errors
        ]
    wanted = {"client": roles.TOOLS["client"]} if is_outside else roles.list_programs(studies)
    with ThreadPoolExecutor(max_workers=16) as pool:
        asked = list(pool.map(_inspect_target, targets.values()))
    return [
        ability
        for target, found in zip(targets.values(), asked, strict=True)
        for ability in _judge_target(target, found, wanted)
    ]


def _find_outside(study: Study) -> str | None:
    return study.site.kubernetes.outside if study.site.kubernetes is not None else None


def _inspect_target(target: Target) -> tuple[HostSnapshot, float] | str:
    # The libraries for SSH take half a second to load; whoever has no hosts need not wait for them.
    from benchbook.sites.hosts.host import Host

    host = Host(target, "doctor", "")
    try:
        sent = time.time()
        found = host.look()
        # The answer takes a while, so a clock is off only by more than that.
        late = max(sent - found.wall_s, found.wall_s - time.time(), 0.0)
        return found, late
    except SiteError as error:
        return str(error)
    finally:
        host.close()


def _judge_target(
    target: Target, asked: tuple[HostSnapshot, float] | str, wanted: Mapping[str, Iterable[str]]
) -> Iterator[Ability]:
    name = target.name
    if isinstance(asked, str):
        said, _, remedy = asked.rpartition("; ")
        yield Ability(f"{name}: ssh", False, said or asked, remedy, is_needed=False)
        return
    found, late_s = asked
    names = {one["programs"][0]: name for name, one in descriptors.required_programs().items()}
    facts, held = found.facts, ", ".join(target.roles)
    detail = f"{target.user}@{target.host}, {facts['system']}, {facts['cores']} cores, {held}"
    yield Ability(f"{name}: ssh", True, detail, is_needed=False)
    for tool in dict.fromkeys(one for role in target.roles for one in wanted.get(role, ())):
        path, package = found.tools.get(tool), descriptors.packages_with(tool).get("apt-get", tool)
        version = facts.get(names.get(tool, "")) or path
        remedy = f"`apt-get install {package}` on {name}, or name its path under `programs`"
        yield judge_ability(f"{name}: {tool}", path is not None, version or "not installed", remedy, False)
    free = found.moment["disk_free_mib"]
    remedy = "free some space, or name a `folder` on another disk in the inventory"
    yield judge_ability(f"{name}: disk", free >= FREE_MIB, f"{free >> 10} GiB free", remedy, False)
    files = found.open_files
    detail = "no limit" if files < 0 else f"{files} allowed"
    yield judge_ability(
        f"{name}: open files",
        files < 0 or files >= OPEN_FILES,
        detail,
        "raise `ulimit -Hn` for this user",
        False,
    )
    detail = f"less than {late_s + 0.001:.3f} s off"
    yield judge_ability(f"{name}: clock", late_s < CLOCK_S, detail, "keep it by NTP, such as chrony", False)
    if "server" in target.roles and not found.is_root:
        detail = f"{found.user} is not root: no kernel settings, and the server runs as this user"
        yield Ability(f"{name}: rights", True, detail, is_needed=False)
