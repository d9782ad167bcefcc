"""What each host of an inventory can do, what it can't, why, and what changes that. Starts nothing there."""

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
from benchbook.sites.agent.facts import Look
from benchbook.sites.hosts import roles
from benchbook.sites.machine.capabilities import Ability, judge

FREE_MIB = 5 << 10
OPEN_FILES = 8192
CLOCK_S = 0.5


def examine() -> list[Ability]:
    """Abilities of hosts in inventories that studies name, those of the pipeline first; none without any."""
    named: dict[str, dict[str, Study]] = {}
    asked: set[str] = set()
    with contextlib.suppress(InputErrors):
        asked = set(load.params().studies)
    for name in paths.studies():
        # Most studies name none, and to check a whole study takes a while.
        text = paths.study(name).file.read_text(encoding="utf-8", errors="replace")
        if "inventory:" not in text and "outside:" not in text:
            continue
        with contextlib.suppress(InputErrors):
            study = load.study(name)
            inventory_of = study.site.inventory or _outside(study)
            if inventory_of and (name in asked or inventory.file(inventory_of).is_file()):
                named.setdefault(inventory_of, {})[name] = study
    found: list[Ability] = []
    for name, studies in sorted(named.items()):
        own = [study for one, study in studies.items() if one in asked]
        found += of_inventory(name, own or list(studies.values()))
    return found


def of_inventory(name: str, studies: Sequence[Study] = ()) -> list[Ability]:
    """Return the abilities of an inventory's hosts, with the programs that studies need for their roles."""
    is_outside = any(map(_outside, studies))
    try:
        targets = inventory.load(name, ("client",)) if is_outside else inventory.load(name)
    except InputErrors as error:
        return [
            Ability(f"inventory {name}", False, one, "see docs/ssh.md", is_needed=False)
            for one in error.errors
        ]
    wanted = {"client": roles.TOOLS["client"]} if is_outside else roles.programs(studies)
    with ThreadPoolExecutor(max_workers=16) as pool:
        asked = list(pool.map(_look, targets.values()))
    return [
        ability
        for target, found in zip(targets.values(), asked, strict=True)
        for ability in _judged(target, found, wanted)
    ]


def _outside(study: Study) -> str | None:
    return study.site.kubernetes.outside if study.site.kubernetes is not None else None


def _look(target: Target) -> tuple[Look, float] | str:
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


def _judged(
    target: Target, asked: tuple[Look, float] | str, wanted: Mapping[str, Iterable[str]]
) -> Iterator[Ability]:
    name = target.name
    if isinstance(asked, str):
        said, _, remedy = asked.rpartition("; ")
        yield Ability(f"{name}: ssh", False, said or asked, remedy, is_needed=False)
        return
    found, late_s = asked
    names = {one["programs"][0]: name for name, one in descriptors.asked_of_hosts().items()}
    facts, held = found.facts, ", ".join(target.roles)
    detail = f"{target.user}@{target.host}, {facts['system']}, {facts['cores']} cores, {held}"
    yield Ability(f"{name}: ssh", True, detail, is_needed=False)
    for tool in dict.fromkeys(one for role in target.roles for one in wanted.get(role, ())):
        path, package = found.tools.get(tool), descriptors.installing(tool).get("apt-get", tool)
        version = facts.get(names.get(tool, "")) or path
        remedy = f"`apt-get install {package}` on {name}, or name its path under `programs`"
        yield judge(f"{name}: {tool}", path is not None, version or "not installed", remedy, False)
    free = found.moment["disk_free_mib"]
    remedy = "free some space, or name a `folder` on another disk in the inventory"
    yield judge(f"{name}: disk", free >= FREE_MIB, f"{free >> 10} GiB free", remedy, False)
    files = found.open_files
    detail = "no limit" if files < 0 else f"{files} allowed"
    yield judge(
        f"{name}: open files",
        files < 0 or files >= OPEN_FILES,
        detail,
        "raise `ulimit -Hn` for this user",
        False,
    )
    detail = f"less than {late_s + 0.001:.3f} s off"
    yield judge(f"{name}: clock", late_s < CLOCK_S, detail, "keep it by NTP, such as chrony", False)
    if "server" in target.roles and not found.is_root:
        detail = f"{found.user} is not root: no kernel settings, and the server runs as this user"
        yield Ability(f"{name}: rights", True, detail, is_needed=False)
