"""All tables by name. Each function takes findings, tidy tables or fact files and returns a `Table`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.compare.stats import stalls
from benchbook.compare.text import labels
from benchbook.compare.text.results_table import levels_of
from benchbook.core.artifacts.findings import ByThreads, Contrast, Finding, Findings, Level
from benchbook.core.artifacts.run_folder import EVIDENCE, RunFolder
from benchbook.core.published.audit import Audit
from benchbook.core.util import number_format
from benchbook.show import direction_notes
from benchbook.show.evidence import Evidence
from benchbook.show.markup import slug
from benchbook.show.run_tables import cell_anchor
from benchbook.show.run_tables import cells as cells
from benchbook.show.table import Column, Notes, Table, long, tabulated
from benchbook.show.templating import ORDER

_NO_ARMS: Mapping[str, str] = {}
UNISTORE = "unistore"


def effects(findings: Findings) -> Table:
    """List every finding, A/A first: effect, interval, n, label, claim, verdict; warnings as footnotes."""
    listed = [found for found in (findings.aa, *findings.findings) if found]
    given = {"has_aa": findings.aa is not None, "level": confidence(listed)}
    return tabulated("findings", listed, notes=Notes("findings"), contrast=contrast, below=_below, **given)


def asked(findings: Findings) -> list[Table]:
    """List what the study came to for claims that its findings do not answer as they stand."""
    return [tabulated("claims", findings.claims, opposite=direction_notes)] if findings.claims else []


def contrast(found: Contrast) -> str:
    """Name a finding by what it compares, in words: HAProxy against direct connections on point selects."""
    treatment, baseline = labels.of(found, "treatment"), labels.of(found, "baseline")
    workload = labels.of(found, "workload")
    if found.treatment.endswith(labels.AGAIN):
        return f"A/A: {baseline}, twice, on {workload}"
    return f"{treatment} against {baseline} on {workload}"


def _below(found: Finding) -> str:
    """Lead from an effect to what it is made of: its thread counts if they are listed, else its cells."""
    levels = levels_of(found)
    if len(levels) > 1 and not found.treatment.endswith(labels.AGAIN):
        return f"#{_level_anchor(found, levels[0])}"
    return f"#{cell_anchor(found.workload, min(found.threads))}"


def _level_anchor(found: Finding, point: Level | ByThreads) -> str:
    return f"level-{slug(found.id)}-{point.threads}"


def threads(findings: Findings) -> Table:
    """List the effect at every thread level with its label; why a level is not decided is a footnote."""
    rows = [(found, point) for found in findings.findings for point in levels_of(found)]
    anchors = {"level_anchor": _level_anchor, "cell_anchor": cell_anchor}
    given = {"contrast": contrast, "level": confidence([point for _, point in rows]), **anchors}
    return tabulated("by-threads", rows, notes=Notes("by-threads"), **given)


def confidence(entries: Sequence[Contrast | Level | ByThreads]) -> str:
    """Name the levels of confidence that intervals have."""
    return number_format.join_words(
        [number_format.format_level(level) for level in sorted({one.level for one in entries})]
    )


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
    names = {kind: labels.labels(findings, kind) for kind in ("arms", "workloads")}
    return tabulated("scaling", entries, is_fitted=any(entry.peak_qps for entry in entries), **names)


def facts(
    tree: Mapping[str, Any] | None, title: str, anchor: str, arms: Mapping[str, str] = _NO_ARMS
) -> Table:
    """List what servers and hosts reported of themselves, one row a fact; nested names are joined by dots.

    What stands below the `arms`, given with their readable names, has a column for each. A setting that was
    asked for and read back takes one row, with who asked for it.
    """
    tree = tree or {}
    sides = {arm: dict(_leaves(tree["arms"][arm])) for arm in arms if arm in tree["arms"]}
    names = dict.fromkeys(name for side in sides.values() for name in side)
    rows = [[name, *(_value(side.get(name)) for side in sides.values())] for name in names]
    shared = {key: value for key, value in tree.items() if not sides or key != "arms"}
    rows += [[name, *[_value(value)] * max(len(sides), 1)] for name, value in _leaves(shared) if name]
    columns = [Column("Fact"), *([long(arms[arm]) for arm in sides] or [long("Value")])]
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


def parts(seen: Evidence) -> Table:
    """List what client, proxy and server used in each cell: medians over its runs.

    Bytes are those that TCP carried, without headers. A proxy's are of both its sides. The facts say what the
    stores of a cluster are: on one machine unistore, which speaks TiKV's protocol.
    """
    runs, _ = seen.drawn
    engines = [arm.get("engine") or {} for arm in seen.facts["arms"].values()]
    is_unistore = any(str(engine.get("storage") or "").startswith(UNISTORE) for engine in engines)
    stores = f"store ({UNISTORE})" if is_unistore else "TiKV"
    present = [name for name in runs if runs[name].notna().any()]
    cells_of = runs.groupby(["workload", "threads", "arm"], sort=True)
    return tabulated("parts", cells_of, stores=stores, present=present)


def stability(seen: Evidence) -> list[Table]:
    """List every run of five minutes or more: its slowest second, its stalls, and the levels it stayed at.

    No table where all runs are shorter.
    """
    runs, _ = seen.drawn
    about = runs.set_index("run_id")
    rows = [(about.loc[one.run_id], one) for one in stalls.long_runs(runs, seen.intervals)]
    return [tabulated("stability", rows)] if rows else []


def dips(seen: Evidence) -> list[Table]:
    """List what an event in the middle of each run cost, beside runs without it over the same seconds.

    No table where no arm has an event.
    """
    about = seen.runs.set_index("run_id")
    found = stalls.dips(seen.runs, seen.intervals, stalls.events(seen.facts["arms"]))
    rows = [(about.loc[one.run_id], one) for one in found]
    return [tabulated("dips", rows, arms=seen.named)] if rows else []


def leaders(seen: Evidence) -> list[Table]:
    """Return how many regions each store led, and how many of them beside TiDB, as a table; none for a study
    without clusters."""
    arms, names = seen.facts["arms"], labels.labels(seen.findings, "arms")
    rows = []
    for arm, looks in _looks(seen).items():
        own = arms.get(arm) or arms.get(arm.removesuffix(labels.AGAIN)) or {}
        # The store that each TiDB shares a zone with, where there are zones; each TiDB is asked as much.
        zones = ((own.get("engine") or {}).get("cluster") or {}).get("zones") or {}
        beside = zones.get("tidb_beside") or ()
        near = [sum(look[store] for store in beside) / look.total() for look in looks if beside]
        share = number_format.format_decimal(100 * sum(near) / len(near) / len(beside)) if beside else ""
        stores = sorted(set().union(*looks))
        led = ", ".join(f"{store} {_span([look[store] for look in looks])}" for store in stores)
        regions = _span([look.total() for look in looks])
        rows.append([names.get(arm, arm), len(looks), regions, led, share])
    return [tabulated("leaders", rows, has_zones=any(row[-1] for row in rows))] if rows else []


def throttling(seen: Evidence) -> list[Table]:
    """How often and how long limits of processor time held parts back in the runs; none without any limit."""
    if not any(map(_may_be_limited, seen.facts["arms"].values())):
        return []
    names, found = labels.labels(seen.findings, "arms"), dict[tuple[str, str], list[dict[str, float]]]()
    for arm, folder in zip(seen.runs.arm, seen.runs.folder, strict=True):
        for part, held in (_arrangement(seen, folder).get("throttled") or {}).items():
            if held["periods"]:
                found.setdefault((names.get(arm, arm), part), []).append(held)
    return [tabulated("throttling", list(found.items()))] if found else []


def _may_be_limited(arm: Mapping[str, Any]) -> bool:
    # A pod may have a limit that no study asked for.
    quotas = [(part or {}).get("quota_cores") for part in (arm.get("cpu") or {}).values()]
    return any(quotas) or "qos_class" in arm


def _arrangement(seen: Evidence, name: str) -> dict[str, Any]:
    """What was recorded of an arm's arrangement in a run, by its folder's name."""
    folder = RunFolder(seen.folder / name)
    told = folder.evidence() if (folder.path / EVIDENCE).is_file() else {}
    return told.get("arrangement") or {}


def _looks(seen: Evidence) -> dict[str, list[Counter[str]]]:
    """Return how many regions each store led before each run, by arm."""
    found: dict[str, list[Counter[str]]] = {}
    if not seen.runs.cpu_tidb_cores.notna().any():
        return found
    for arm, name in zip(seen.runs.arm, seen.runs.folder, strict=True):
        cluster = _arrangement(seen, name).get("cluster") or {}
        led = [store for store in ((cluster.get("before") or {}).get("leaders") or {}).values() if store]
        if led:
            found.setdefault(arm, []).append(Counter(led))
    return found


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
