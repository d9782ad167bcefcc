"""What was measured: programs with their versions, machines and data, settings, and the files applied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core import applied, traits
from benchbook.show import numbers
from benchbook.show.markup import Html
from benchbook.show.shape import shaped
from benchbook.show.table import Column, Table, long

Facts = Mapping[str, Any]
# TiDB writes a version of MySQL before its own, as in `8.0.11-TiDB-v8.5.0`.
_VERSIONS = (re.compile(r"TiDB-v?(\d[\w.]*)"), re.compile(r"^v?(\d+(?:\.\d+)*)"))
_MOST_MACHINES = 2


def of(facts: Facts | None, dataset: Facts | None) -> list[str]:
    """Return what facts.json and dataset.json hold of it; nothing of what they do not hold."""
    arms = list(((facts or {}).get("arms") or {}).values())
    programs = [f"{name} {numbers.listing(known)}" for name, known in _programs(arms).items()]
    machines = list(dict.fromkeys(_machines(arms)))
    if len(machines) > _MOST_MACHINES:
        machines = [f"{len(machines)} kinds of machine"]
    lines = [", ".join(programs), "; ".join(machines), *_data(dataset or {})]
    return [line for line in lines if line]


def beside(facts: Facts | None, names: Mapping[str, str]) -> list[Table]:
    """Lay the settings of different engines side by side by what they are about; none for one engine alone.

    `names` are those of the arms. A row each of `traits.MEANINGS`, those first
    that some arm leaves to its package or has nothing for.
    """
    arms = (facts or {}).get("arms") or {}
    known = {names.get(arm, arm): own["engine"] for arm, own in arms.items() if own.get("engine")}
    if len({engine["name"] for engine in known.values()}) < 2:
        return []
    rows = [[about, *(_set(engine, about) for engine in known.values())] for about in traits.MEANINGS]
    rows.sort(key=lambda row: all(is_stated for _, is_stated in row[1:]))
    return [
        Table(
            "settings-beside",
            "Settings by what they are about",
            [Column("What it is about"), *map(long, known)],
            [[row[0], *(text for text, _ in row[1:])] for row in rows],
        )
    ]


def _set(engine: Facts, about: str) -> tuple[str, bool]:
    """Return what an engine was set to in one respect, and whether that was stated."""
    names, settings = traits.engine(engine["name"]).meanings[about], engine.get("settings") or {}
    if not names:
        return "nothing that compares", False
    said = {**engine.get("unstated", {}), **{name: one["asked"] for name, one in settings.items()}}
    told = "; ".join(f"{name} = {said[name]}" for name in names if name in said)
    is_stated = any(name in settings for name in names)
    return (told if is_stated else f"not stated: {told or 'as its package has it'}"), is_stated


def _programs(arms: list[Facts]) -> dict[str, list[str]]:
    """Return the versions of each program in the order of the arms: engine, proxy, sysbench."""
    found: dict[str, list[str]] = {}
    named = [
        (traits.product(part["name"]), part.get("version"))
        for key in ("engine", "proxy")
        for part in (arm.get(key) for arm in arms)
        if part and part.get("name")
    ]
    named += [("sysbench", (arm.get("machine") or {}).get("sysbench")) for arm in arms]
    for name, version in named:
        if version and (short := _short(str(version))) not in found.setdefault(name, []):
            found[name].append(short)
    return found


def _short(version: str) -> str:
    matches = (form.search(version) for form in _VERSIONS)
    return next((match[1] for match in matches if match), version)


def _machines(arms: list[Facts]) -> Iterator[str]:
    for arm in arms:
        for one in (arm.get("machine"), *(arm.get("hosts") or {}).values()):
            if one and one.get("cores") and one.get("cpu_model"):
                yield f"{numbers.count(one['cores'], 'core')} of {one['cpu_model']}"


def _data(dataset: Facts) -> Iterator[str]:
    if dataset.get("tables") and dataset.get("table_size"):
        yield f"{numbers.count(dataset['tables'], 'table')} of {dataset['table_size']:,} rows"


def files(texts: Mapping[str, str], facts: Mapping[str, Any] | None, names: Mapping[str, str]) -> list[Html]:
    """Return one block with a folded text for each file of `data/STUDY/applied`; none if none was kept.

    `texts` are the files by name, `facts` is the content of `facts.json`, `names` those of the arms.
    """
    arms: dict[str, dict[str, None]] = {}
    for arm, own in ((facts or {}).get("arms") or {}).items():
        for _, sha256 in applied.digests(own):
            arms.setdefault(sha256, {})[names.get(arm, arm)] = None
    listed = [(name, text, ", ".join(arms.get(applied.digest(text), {}))) for name, text in texts.items()]
    return [shaped("applied.html.j2", listed=listed)] if listed else []
