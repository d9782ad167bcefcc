"""All tables by name. Each function takes findings, tidy tables or fact files and returns a `Table`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.compare import words
from benchbook.core.audit import Audit
from benchbook.core.findings import ByThreads, Contrast, Finding, Findings, Level
from benchbook.show import numbers, opposite
from benchbook.show.load_tables import dips, leaders, parts, stability
from benchbook.show.markup import slug
from benchbook.show.run_tables import cell_anchor, cells
from benchbook.show.shape import ORDER
from benchbook.show.table import Column, Notes, Table, long, tabulated

_NO_ARMS: Mapping[str, str] = {}

__all__ = [
    "asked", "cells", "checks", "contrast", "differences", "dips", "effects", "facts", "leaders",
    "loading", "parts", "scaling", "stability", "threads",
]  # fmt: skip


def effects(findings: Findings) -> Table:
    """List every finding, A/A first: effect, interval, n, label, claim, verdict; warnings as footnotes."""
    listed = [found for found in (findings.aa, *findings.findings) if found]
    given = {"has_aa": findings.aa is not None, "level": confidence(listed)}
    return tabulated("findings", listed, notes=Notes("findings"), contrast=contrast, below=_below, **given)


def asked(findings: Findings) -> list[Table]:
    """List what the study came to for claims that its findings do not answer as they stand."""
    return [tabulated("claims", findings.claims, opposite=opposite)] if findings.claims else []


def contrast(found: Contrast) -> str:
    """Name a finding by what it compares, in words: HAProxy against direct connections on point selects."""
    treatment, baseline = words.of(found, "treatment"), words.of(found, "baseline")
    workload = words.of(found, "workload")
    if found.treatment.endswith(words.AGAIN):
        return f"A/A: {baseline}, twice, on {workload}"
    return f"{treatment} against {baseline} on {workload}"


def _below(found: Finding) -> str:
    """Lead from an effect to what it is made of: its thread counts if they are listed, else its cells."""
    levels = levels_of(found)
    if len(levels) > 1 and not found.treatment.endswith(words.AGAIN):
        return f"#{_level_anchor(found, levels[0])}"
    return f"#{cell_anchor(found.workload, min(found.threads))}"


def _level_anchor(found: Finding, point: Level | ByThreads) -> str:
    return f"level-{slug(found.id)}-{point.threads}"


def levels_of(found: Finding) -> Sequence[Level | ByThreads]:
    """Return the decided thread levels; where none was decided, exploratory ones."""
    return found.levels or found.by_threads


def threads(findings: Findings) -> Table:
    """List the effect at every thread level with its label; why a level is not decided is a footnote."""
    rows = [(found, point) for found in findings.findings for point in levels_of(found)]
    anchors = {"level_anchor": _level_anchor, "cell_anchor": cell_anchor}
    given = {"contrast": contrast, "level": confidence([point for _, point in rows]), **anchors}
    return tabulated("by-threads", rows, notes=Notes("by-threads"), **given)


def confidence(entries: Sequence[Contrast | Level | ByThreads]) -> str:
    """Name the levels of confidence that intervals have."""
    return numbers.listing([numbers.level(level) for level in sorted({one.level for one in entries})])


def differences(findings: Findings, arms: Mapping[str, str]) -> Table:
    """List every fact in which the arms, given with their readable names, differ, as it was reported."""
    entries = findings.facts_differ
    known = [arm for arm in arms if any(arm in entry.values for entry in entries)]
    rows = [[entry.fact, *(_value(entry.values.get(arm)) for arm in known)] for entry in entries]
    return tabulated("differences", rows, of_arms=[long(arms[arm]) for arm in known])


def checks(found: Findings | Audit) -> Table:
    """List the consistency checks: failed ones first, then passed, then those with nothing to check."""
    listed = sorted(found.checks, key=lambda one: ORDER[one.passed])
    return tabulated("checks", listed, is_of_document=isinstance(found, Audit))


def scaling(findings: Findings) -> Table:
    """List the highest throughput of every arm and workload, and the fitted peak or why there is none."""
    entries = findings.scaling or []
    names = {kind: words.labels(findings, kind) for kind in ("arms", "workloads")}
    return tabulated("scaling", entries, is_fitted=any(entry.peak_qps for entry in entries), **names)


def facts(
    tree: Mapping[str, Any] | None, title: str, anchor: str, arms: Mapping[str, str] = _NO_ARMS
) -> Table:
    """List what servers and hosts reported of themselves, one row a fact; nested names are joined by dots.

    If the facts stand below the arms' names (or below `arms`), each arm has a column. A setting that was
    asked for and read back takes one row, with who asked for it. `arms` has readable names.
    """
    tree = tree or {}
    below = tree["arms"] if isinstance(tree.get("arms"), Mapping) else tree
    named = [arm for arm in arms if isinstance(below.get(arm), Mapping)]
    shared = {key: value for key, value in tree.items() if key != "arms" and key not in named}
    sides = {arm: dict(_leaves(below[arm])) for arm in named} or {"Value": {}}
    own = dict.fromkeys(name for side in sides.values() for name in side)
    rows = [[name, *(_value(side.get(name)) for side in sides.values())] for name in own]
    for name, value in _leaves(shared if named else tree):
        rows += [[name, *[_value(value)] * len(sides)]] if name else []
    columns = [Column("Fact"), *(long(arms.get(side, side)) for side in sides)]
    return Table(anchor, title, columns, rows, empty="Not recorded.", is_folded=True)


def _leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, Mapping) and set(tree) == {"asked", "from", "got"}:
        asked = "" if tree["asked"] == tree["got"] else f", asked for as {_value(tree['asked'])}"
        yield name, f"{_value(tree['got'])}{asked} ({tree['from']})"
    elif isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key))
    elif isinstance(tree, list) and tree and all(isinstance(item, Mapping) for item in tree):
        for place, item in enumerate(tree, 1):
            yield f"{name} {place}", ", ".join(f"{key}: {_value(value)}" for key, value in item.items())
    else:
        yield name, tree


def _value(value: Any) -> str:
    if value is None:
        return "not reported"
    if isinstance(value, list) and value:
        return ", ".join(map(_value, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def loading(dataset: Mapping[str, Any] | None, names: Mapping[str, str]) -> list[Table]:
    """Return how long loading took for each copy of the data, as a table; none where it was not timed.

    `dataset` is the content of `dataset.json`: `loads` by arm with `index` and `seconds`, `tables` and
    `table_size`. `names` are those of the arms.
    """
    loads: Mapping[str, Mapping[str, Any]] = (dataset or {}).get("loads") or {}
    if not dataset or not loads:
        return []
    copies: dict[tuple[str, float], list[str]] = {}
    for arm, load in loads.items():
        copies.setdefault((load["index"], load["seconds"]), []).append(names.get(arm, arm))
    given = {"is_shared": any(len(arms) > 1 for arms in copies.values())}
    return [tabulated("loading", copies.items(), many=dataset["tables"] * dataset["table_size"], **given)]
