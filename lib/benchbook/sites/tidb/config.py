"""TiDB's settings: what a benchmark starts from, which go into its file and which into its variables.

A name with a dot or a dash is an item of the settings file (`log.level`, `prepared-plan-cache.enabled`), any
other a system variable (`tidb_disable_txn_auto_retry`). Both are read back from the server and compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.core.errors import SettingsDiffer
from benchbook.sites.settings import Value, recorded, same, text

# What every TiDB of ours starts from unless the study says otherwise: value, first and last version, and why.
ALL = (0, 99)
OLD, NEW = (0, 6.0), (6.1, 99)
# Only these have anything that could be sent.
TELLING = (4.0, 99)
DEFAULTS: tuple[tuple[str, Value, tuple[float, float], str], ...] = (
    ("log.level", "error", ALL, "as both published reports have it: no log writing while measuring"),
    ("enable-telemetry", False, TELLING, "nothing is sent anywhere"),
    ("tidb_enable_telemetry", False, TELLING, "nothing is sent anywhere"),
    ("tidb_disable_txn_auto_retry", False, ALL, "as both published reports have it"),
    ("prepared-plan-cache.enabled", True, OLD, "as both published reports have it"),
    ("tidb_enable_prepared_plan_cache", True, NEW, "as both published reports have it"),
    ("performance.run-auto-analyze", False, OLD, "statistics change only when the warm-up makes them"),
    ("tidb_enable_auto_analyze", False, NEW, "statistics change only when the warm-up makes them"),
    ("log.enable-slow-log", False, (4.0, 6.0), "no log writing while measuring"),
    ("tidb_enable_slow_log", False, NEW, "no log writing while measuring"),
    ("skip_name_resolve", True, (5.2, 99), "no name server in the path of a connection"),
)


@dataclass(frozen=True)
class Asked:
    """What one server is asked to be: items of its file, and variables."""

    items: dict[str, Value]
    variables: dict[str, Value]

    def differences(self, items: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
        """Return {setting: (asked, got)} of those not taken; got is None if there is no such setting."""
        asked = {**self.items, **self.variables}
        found: dict[str, Any] = {}
        for key, value in asked.items():
            got = self.got(key, items, variables)
            if got is None or not same(value, got):
                found[key] = (value, got)
        return found

    def taken(
        self, mine: Mapping[str, Value], items: Mapping[str, Any], variables: Mapping[str, str]
    ) -> dict[str, dict[str, str | None]]:
        """Return asked and got of every setting; `mine` are the study's. SettingsDiffer if one differs."""
        if differing := self.differences(items, variables):
            raise SettingsDiffer(differing)
        return recorded(self.items | self.variables, mine, lambda key: self.got(key, items, variables))

    @staticmethod
    def got(key: str, items: Mapping[str, Any], variables: Mapping[str, str]) -> str | None:
        """Return what the server says about a setting, or None if it knows none of that name."""
        value = (items if is_item(key) else variables).get(key)
        return None if value is None else text(value)


def is_item(name: str) -> bool:
    """Say whether a name is one of the settings file; system variables have neither dot nor dash."""
    return "." in name or "-" in name


def complete(asked: Mapping[str, Value], version: str) -> Asked:
    """Return the benchmark defaults of a version with a study's settings on top."""
    number = float(".".join(version.split("-")[0].split(".")[:2]))
    merged = {name: value for name, value, (first, last), _ in DEFAULTS if first <= number <= last}
    merged |= asked
    return Asked(
        {name: value for name, value in sorted(merged.items()) if is_item(name)},
        {name: value for name, value in sorted(merged.items()) if not is_item(name)},
    )


def toml(items: Mapping[str, Value]) -> str:
    """Return items of a settings file as TOML, each section once, as old parsers need it."""
    sections: dict[str, list[str]] = {}
    for name, value in sorted(items.items()):
        section, _, key = name.rpartition(".")
        # JSON writes numbers, text and truth as TOML does.
        sections.setdefault(section, []).append(f"{key}={json.dumps(value)}")
    lines = [line for name in sorted(sections) for line in ([f"[{name}]"] if name else []) + sections[name]]
    return "\n".join(lines) + "\n"


def of_parts(site: Any, own: Any) -> dict[str, dict[str, Any]]:
    """Return the settings of each part of a cluster: the site's, with those of an arm (None: none) on top."""
    return {
        part: {**getattr(site, part).config, **(getattr(own, part) if own is not None else {})}
        for part in ("pd", "tikv", "tidb")
    }


def assignment(name: str, value: Value) -> tuple[str, Value]:
    """Return the statement that sets a variable, and its parameter; names hold word characters only."""
    return f"SET GLOBAL {name} = %s", text(value) if isinstance(value, bool) else value
