"""The settings files of an archive held against the settings that its facts tell of each arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core import applied
from benchbook.evidence.unpacked import Unpacked


def settings(held: Unpacked) -> Iterator[str]:
    """Yield settings that facts.json tells otherwise than the files with which parts were started."""
    files_ = {digest: applied.settings(file) for file, digest in held.settings_files.items()}
    engines = {arm: facts.get("engine") or {} for arm, facts in held.facts.arms.items()}
    told = {
        arm: {
            name: one["asked"]
            for name, one in (engine.get("settings") or {}).items()
            if isinstance(one, Mapping) and "asked" in one
        }
        for arm, engine in engines.items()
    }
    files_of: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {
        (arm, "settings", str(engine.get("config_hash"))): told for arm, engine in engines.items()
    }
    for folder in held.folders:
        arm = held.study.deployed(held.plans[folder.name]["arm"])
        parts = (held.judged[folder.name].evidence.seen.get("identity_before") or {}).get("cluster")
        for part, one in parts.items() if isinstance(parts, Mapping) else ():
            key = f"{part.partition('-')[0]}_settings"
            of_key = {each: (engine.get("cluster") or {}).get(key) or {} for each, engine in engines.items()}
            files_of[arm, f"cluster.{key}", str(one.get("config_hash"))] = of_key
    by_file = set().union(*files_.values())
    for (arm, key, digest), of_arms in files_of.items():
        if (has := files_.get(digest)) is None:
            continue
        # What no file has is set once a server runs.
        for name in sorted({name for own in of_arms.values() for name in own} & by_file):
            due = applied.plain(of_arms[arm][name]) if name in of_arms[arm] else None
            if has.get(name) != due:
                yield f"facts.json: arms.{arm}.engine.{key}: {name} is {due}, its file has {has.get(name)}"
