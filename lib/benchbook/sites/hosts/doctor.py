"""What each host of an inventory can do, what it can't, why, and what changes that. Starts nothing there."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchbook.core import inventory, load, paths
from benchbook.core.errors import InputErrors, SiteError
from benchbook.core.inventory import Target
from benchbook.sites.hosts import roles
from benchbook.sites.machine.abilities import Ability, judge

PACKAGES = {"mariadbd": "mariadb-server", "mariadb-install-db": "mariadb-server"}
FREE_MIB = 5 << 10
OPEN_FILES = 8192
CLOCK_S = 0.5


def examine() -> list[Ability]:
    """Return the abilities of all hosts in inventories that study files name; none without any.

    An inventory that isn't there is told only if a study that the pipeline runs names it.
    """
    named: set[str] = set()
    asked: set[str] = set()
    with contextlib.suppress(InputErrors):
        asked = set(load.params().studies)
    for name in paths.studies():
        # Most studies name none, and to check a whole study takes a while.
        if "inventory:" not in paths.study(name).file.read_text(encoding="utf-8", errors="replace"):
            continue
        with contextlib.suppress(InputErrors):
            inventory_of = load.study(name).site.inventory
            if inventory_of and (name in asked or inventory.file(inventory_of).is_file()):
                named.add(inventory_of)
    return [ability for name in sorted(named) for ability in of_inventory(name)]


def of_inventory(name: str) -> list[Ability]:
    """Return the abilities of the hosts of one inventory, all asked at once."""
    try:
        targets = inventory.load(name)
    except InputErrors as error:
        return [
            Ability(f"inventory {name}", False, one, "see docs/ssh.md", is_needed=False)
            for one in error.errors
        ]
    is_cluster = any("control" in target.roles for target in targets.values())
    with ThreadPoolExecutor(max_workers=16) as pool:
        asked = list(pool.map(_look, targets.values()))
    return [
        ability
        for target, found in zip(targets.values(), asked, strict=True)
        for ability in _judged(target, found, is_cluster)
    ]


def _look(target: Target) -> dict[str, Any] | str:
    # The libraries for SSH take half a second to load; whoever has no hosts need not wait for them.
    from benchbook.sites.hosts.host import Host

    host = Host(target, "doctor", "")
    try:
        sent = time.time()
        found = host.look()
        # The answer takes a while, so a clock is off only by more than that.
        late = max(sent - found["wall_s"], found["wall_s"] - time.time(), 0.0)
        return {**found, "clock_s": late}
    except SiteError as error:
        return str(error)
    finally:
        host.close()


def _judged(target: Target, found: dict[str, Any] | str, is_cluster: bool = False) -> Iterator[Ability]:
    name = target.name
    if isinstance(found, str):
        said, _, remedy = found.rpartition("; ")
        yield Ability(f"{name}: ssh", False, said or found, remedy, is_needed=False)
        return
    facts, held = found["facts"], ", ".join(target.roles)
    detail = f"{target.user}@{target.host}, {facts['system']}, {facts['cores']} cores, {held}"
    yield Ability(f"{name}: ssh", True, detail, is_needed=False)
    for role in target.roles:
        # tiup puts a cluster's own programs where they are needed.
        wanted = () if role == "server" and is_cluster else roles.OF_ROLE.get(role, ())
        for tool in wanted:
            path, package = found["tools"][tool], PACKAGES.get(tool, tool)
            version = facts.get({"mariadbd": "mariadb"}.get(tool, tool)) or path
            remedy = f"`apt-get install {package}` on {name}, or name its path under `programs`"
            yield judge(f"{name}: {tool}", path is not None, version or "not installed", remedy, False)
    free = found["moment"]["disk_free_mib"]
    remedy = "free some space, or name a `folder` on another disk in the inventory"
    yield judge(f"{name}: disk", free >= FREE_MIB, f"{free >> 10} GiB free", remedy, False)
    files = found["open_files"]
    detail = "no limit" if files < 0 else f"{files} allowed"
    yield judge(
        f"{name}: open files",
        files < 0 or files >= OPEN_FILES,
        detail,
        "raise `ulimit -Hn` for this user",
        False,
    )
    detail = f"less than {found['clock_s'] + 0.001:.3f} s off"
    yield judge(f"{name}: clock", found["clock_s"] < CLOCK_S, detail, "keep it by NTP, such as chrony", False)
    if "server" in target.roles and not found["is_root"]:
        detail = f"{found['user']} is not root: no kernel settings, and the server runs as this user"
        yield Ability(f"{name}: rights", True, detail, is_needed=False)
