"""TiDB's settings, divided between its file and its variables."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.sites import settings
from benchbook.sites.settings import Value, format_value


@dataclass(frozen=True)
class TidbSettings:
    """Settings asked of one server: items of its file, and variables."""

    items: dict[str, Value]
    variables: dict[str, Value]

    def taken(
        self,
        mine: Mapping[str, Value],
        items: Mapping[str, Any],
        variables: Mapping[str, str],
        may_lack: bool = False,
    ) -> dict[str, dict[str, str | None]]:
        """Asked and got of each setting (`mine`: the study's); SettingsDiffer unless others `may_lack`."""
        requests = self.items | self.variables
        there = {key: (items if is_item(key) else variables).get(key) for key in requests}
        got = {key: format_value(value) for key, value in there.items() if value is not None}
        wrong = settings.not_taken(requests, got.get)
        if may_lack:
            wrong = {key: two for key, two in wrong.items() if key in mine or two[1] is not None}
        return settings.verify_settings(requests, mine, got.get, wrong)


def is_item(name: str) -> bool:
    """True if a name is one of the settings file; system variables have neither dot nor dash."""
    return "." in name or "-" in name


def complete_settings(requests: Mapping[str, Value], version: str) -> TidbSettings:
    """Benchmark defaults of a version with a study's settings on top."""
    merged = settings.complete_settings(requests, "tidb", version=version)
    return TidbSettings(
        {name: value for name, value in sorted(merged.items()) if is_item(name)},
        {name: value for name, value in sorted(merged.items()) if not is_item(name)},
    )


def render_toml(items: Mapping[str, Value]) -> str:
    """Items of a settings file as TOML, each section once, as old parsers need it."""
    sections: dict[str, list[str]] = {}
    for name, value in sorted(items.items()):
        section, _, key = name.rpartition(".")
        # JSON writes numbers, text and truth as TOML does.
        sections.setdefault(section, []).append(f"{key}={json.dumps(value)}")
    lines = [line for name in sorted(sections) for line in ([f"[{name}]"] if name else []) + sections[name]]
    return "\n".join(lines) + "\n"


def of_parts(site: Any, overrides: Any) -> dict[str, dict[str, Any]]:
    """Settings of each part of a cluster: the site's, with those of an arm (None: none) on top."""
    return {
        part: {**getattr(site, part).config, **(getattr(overrides, part) if overrides is not None else {})}
        for part in ("pd", "tikv", "tidb")
    }
