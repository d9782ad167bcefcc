"""All tables by name. Each function takes findings, tidy tables or fact files and returns a `Table`."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.compare.stats import stalls
from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import ByThreads, Contrast, FindingData, Findings, LevelContrast
from benchbook.core.artifacts.run_folder import EVIDENCE, RunFolder
from benchbook.core.published.audit import Audit
from benchbook.core.util import number_format
from benchbook.show import setup_section
from benchbook.show.claim_rows import list_claim_rows
from benchbook.show.evidence import ReportInputs
from benchbook.show.markup import make_slug
from benchbook.show.run_tables import cell_anchor
from benchbook.show.table import Table, TableColumn, build_table, text_column
from benchbook.show.templating import ORDER

_NO_ARMS: Mapping[str, str] = {}
UNISTORE = "unistore"
# So many columns of numbers stand beside workload, threads and arm on a page of 1,200 pixels.
_WIDEST = 9


def tabulate_effects(findings: Findings) -> Table:
    """List every finding, A/A first: effect, interval, n, label, claim, verdict; warnings as footnotes."""
    listed, has_aa = [*findings.aa_pairs, *findings.findings], findings.aa is not None
    inputs = {"contrast": name_contrast, "below": _link_below, "level": format_confidence(listed)}
    return build_table("findings", listed, has_aa=has_aa, **inputs)


def tabulate_claims(findings: Findings) -> list[Table]:
    """List the study's outcomes for claims that its findings do not answer as they stand."""
    rows = list_claim_rows(findings)
    return [build_table("claims", rows)] if rows else []


def name_contrast(contrast: Contrast) -> str:
    """Name of a finding by its comparison: HAProxy against direct connections on point selects."""
    treatment, baseline = labels.label_role(contrast, "treatment"), labels.label_role(contrast, "baseline")
    workload = labels.label_role(contrast, "workload")
    if contrast.treatment.endswith(labels.AGAIN):
        return f"A/A: {baseline}, twice, on {workload}"
    return f"{treatment} against {baseline} on {workload}"


def name_finding(finding: Contrast) -> str:
    """Name of a finding by its comparison and its metric, which is left out for queries a second."""
    return f"{name_contrast(finding)}{labels.beside_queries(finding.metric)}"


def _link_below(finding: FindingData) -> str:
    """Link from an effect to its components: its thread counts if they are listed, else its cells."""
    levels = finding.at_levels
    if len(levels) > 1 and not finding.treatment.endswith(labels.AGAIN):
        return f"#{_level_anchor(finding, levels[0])}"
    return f"#{cell_anchor(finding.workload, min(finding.threads))}"


def _level_anchor(finding: FindingData, point: LevelContrast | ByThreads) -> str:
    return f"level-{make_slug(finding.id)}-{point.threads}"


def tabulate_levels(findings: Findings) -> Table:
    """List the effect at every thread level with its label; reasons for undecided are footnotes."""
    rows = [(finding, point) for finding in findings.findings for point in finding.at_levels]
    anchors = {"level_anchor": _level_anchor, "cell_anchor": cell_anchor}
    inputs = {"contrast": name_contrast, "level": format_confidence([point for _, point in rows]), **anchors}
    return build_table("by-threads", rows, **inputs)


def format_confidence(entries: Sequence[Contrast | LevelContrast | ByThreads]) -> str:
    """Name the levels of confidence that intervals have."""
    levels = sorted({entry.level for entry in entries})
    return number_format.join_words([*map(number_format.format_level, levels)])


def tabulate_differences(findings: Findings, arms: Mapping[str, str]) -> Table:
    """List every fact that differs between the arms (given with readable names), as reported."""
    entries = findings.facts_differ
    columns = [arm for arm in arms if any(arm in entry.values for entry in entries)]
    rows = [[entry.fact, *(_format_value(entry.values.get(arm)) for arm in columns)] for entry in entries]
    return build_table("differences", rows, of_arms=[text_column(arms[arm]) for arm in columns])


def tabulate_checks(result: Findings | Audit) -> Table:
    """List the consistency checks: failed ones first, then passed, then those with nothing to check."""
    listed = sorted(result.checks, key=lambda item: ORDER[item.passed])
    return build_table("checks", listed, is_of_document=isinstance(result, Audit))


def tabulate_scaling(findings: Findings) -> Table:
    """List the highest throughput of every arm and workload, and the fitted peak or its absence."""
    entries = findings.scaling or []
    names = {kind: labels.label_by_name(findings, kind) for kind in ("arms", "workloads")}
    return build_table("scaling", entries, is_fitted=any(entry.peak_qps for entry in entries), **names)


def tabulate_setup(report_inputs: ReportInputs) -> list[object]:
    """Facts of a study: loading, leaders, throttling, engines, arms, settings files, data and warm-up."""
    arms = report_inputs.named
    return [
        *tabulate_loading(report_inputs.dataset, arms),
        *tabulate_leaders(report_inputs),
        *tabulate_throttling(report_inputs),
        *setup_section.compare_engines(report_inputs),
        *tabulate_facts(report_inputs.facts, "Arms", "arms", arms),
        *setup_section.render_files(report_inputs),
        *tabulate_facts(report_inputs.dataset, "Dataset", "dataset"),
        *tabulate_facts(report_inputs.warm_up, "Warm-up", "warm-up"),
    ]


def tabulate_facts(
    tree: Mapping[str, Any] | None, title: str, anchor: str, arms: Mapping[str, str] = _NO_ARMS
) -> list[Table]:
    """Facts as reported, a row each, a column for each of `arms`; a list of records is a table of its own."""
    records = {key: value for key, value in (tree or {}).items() if _are_records(value)}
    tree = {key: value for key, value in (tree or {}).items() if key not in records}
    sides = {arm: dict(_flatten_facts(tree["arms"][arm])) for arm in arms if arm in tree["arms"]}
    names = dict.fromkeys(name for side in sides.values() for name in side)
    rows = [[name, *(_format_value(side.get(name)) for side in sides.values())] for name in names]
    shared = _flatten_facts({key: value for key, value in tree.items() if not sides or key != "arms"})
    rows += [[name, *[_format_value(value)] * max(len(sides), 1)] for name, value in shared if name]
    columns = [TableColumn("Fact"), *([text_column(arms[arm]) for arm in sides] or [text_column("Value")])]
    tables = [Table(anchor, title, columns, rows, empty="Not recorded.", is_folded=True)]
    for record, items in records.items():
        keys, name = list(dict.fromkeys(key for item in items for key in item)), f"{title}, {record}"
        rows = [[_format_value(item.get(key)) for key in keys] for item in items]
        columns = [text_column(key.replace("_", " ")) for key in keys]
        tables.append(Table(f"{anchor}-{make_slug(name)}", name, columns, rows, is_folded=True))
    return tables


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _flatten_facts(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, Mapping) and set(tree) == {"asked", "from", "got"}:
        request = "" if tree["asked"] == tree["got"] else f", asked for as {_format_value(tree['asked'])}"
        yield name, f"{_format_value(tree['got'])}{request} ({tree['from']})"
    elif isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from _flatten_facts(value, f"{name}.{key}" if name else str(key))
    elif _are_records(tree):
        for place, item in enumerate(tree, 1):
            texts = (f"{key}: {_format_value(value)}" for key, value in item.items())
            yield f"{name} {place}", ", ".join(texts)
    else:
        yield name, tree


def _format_value(value: Any) -> str:
    if value is None:
        return "not reported"
    if isinstance(value, list) and value:
        return ", ".join(map(_format_value, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def tabulate_loading(dataset: Mapping[str, Any] | None, names: Mapping[str, str]) -> list[Table]:
    """Loading time of each copy of the data by dataset.json, with the arms' `names`; none if not timed."""
    loads: Mapping[str, Mapping[str, Any]] = (dataset or {}).get("loads") or {}
    if not dataset or not loads:
        return []
    copies: dict[tuple[str, float], list[str]] = {}
    for arm, load in loads.items():
        copies.setdefault((load["index"], load["seconds"]), []).append(names.get(arm, arm))
    inputs = {"is_shared": any(len(arms) > 1 for arms in copies.values())}
    return [build_table("loading", copies.items(), many=dataset["tables"] * dataset["table_size"], **inputs)]


def tabulate_usage(report_inputs: ReportInputs) -> list[Table]:
    """Resources of the parts in each cell; memory and bytes apart where one table would be too wide."""
    runs, _ = report_inputs.drawn
    engines = [arm.get("engine") or {} for arm in report_inputs.facts["arms"].values()]
    is_unistore = any(str(engine.get("storage") or "").startswith(UNISTORE) for engine in engines)
    stores = f"store ({UNISTORE})" if is_unistore else "TiKV"
    present = [name for name in runs if runs[name].notna().any()]
    cells_of = runs.groupby(["workload", "threads", "arm"], sort=True)
    memory = [name for name in present if name.endswith(("_mib", "_mib_s"))]
    cores = [name for name in present if name not in memory]
    is_wide = len(memory) + sum(name.endswith("_cores") for name in cores) > _WIDEST
    shapes = [("parts", "What the parts used", cores if is_wide else present)]
    shapes += [("memory-and-bytes", "Memory and bytes of the parts", memory)] if is_wide else []
    return [
        build_table("parts", cells_of, anchor, title=title, stores=stores, present=names)
        for anchor, title, names in shapes
    ]


def tabulate_stability(report_inputs: ReportInputs) -> list[Table]:
    """Runs of five minutes or more: slowest second, stalls, levels; no table where all are shorter."""
    runs, _ = report_inputs.drawn
    about, long_runs = runs.set_index("run_id"), stalls.long_runs(runs, report_inputs.intervals)
    rows = [(about.loc[long_run.run_id], long_run) for long_run in long_runs]
    return [build_table("stability", rows)] if rows else []


def _measure_dips(report_inputs: ReportInputs) -> list[stalls.Dip]:
    planned = stalls.event_seconds(report_inputs.facts["arms"])
    return stalls.measure_dips(report_inputs.runs, report_inputs.intervals, planned)


def tabulate_dips(report_inputs: ReportInputs) -> list[Table]:
    """Cost of an event in each run, beside runs without it over the same seconds; none without an event."""
    about, dips = report_inputs.runs.set_index("run_id"), _measure_dips(report_inputs)
    rows = [(run := about.loc[dip.run_id], dip, run.event if dip.has_event else "") for dip in dips]
    return [build_table("dips", rows, arms=report_inputs.named)] if rows else []


def tabulate_losses(report_inputs: ReportInputs) -> list[Table]:
    """Loss at an event by arm, over all its runs; no table where no arm has an event."""
    rows = stalls.summarize_losses(report_inputs.runs, _measure_dips(report_inputs))
    return [build_table("losses", rows, arms=report_inputs.named)] if rows else []


def tabulate_leaders(report_inputs: ReportInputs) -> list[Table]:
    """Table of regions led by each store, and of those beside TiDB; none for a study without clusters."""
    arms, names = report_inputs.facts["arms"], labels.label_by_name(report_inputs.findings, "arms")
    rows = []
    for arm, looks in _count_leaders(report_inputs).items():
        facts = arms.get(arm) or arms.get(arm.removesuffix(labels.AGAIN)) or {}
        # The store that each TiDB shares a zone with, where there are zones; each TiDB is asked as much.
        zones = ((facts.get("engine") or {}).get("cluster") or {}).get("zones") or {}
        beside = zones.get("tidb_beside") or ()
        near = [sum(look[store] for store in beside) / look.total() for look in looks if beside]
        share = number_format.format_decimal(100 * sum(near) / len(near) / len(beside)) if beside else ""
        stores = sorted(set().union(*looks))
        led = ", ".join(f"{store} {_format_span([look[store] for look in looks])}" for store in stores)
        regions = _format_span([look.total() for look in looks])
        rows.append([names.get(arm, arm), len(looks), regions, led, share])
    return [build_table("leaders", rows, has_zones=any(row[-1] for row in rows))] if rows else []


def tabulate_throttling(report_inputs: ReportInputs) -> list[Table]:
    """Frequency and time of holding parts back by processor limits in the runs; none if no limits."""
    arms = report_inputs.facts["arms"].values()
    parts = [part or {} for arm in arms for part in (arm.get("cpu") or {}).values()]
    # A pod may have a limit that no study asked for.
    if not any("qos_class" in arm for arm in arms) and not any(part.get("quota_cores") for part in parts):
        return []
    names = labels.label_by_name(report_inputs.findings, "arms")
    results: dict[tuple[str, str], list[dict[str, float]]] = {}
    for arm, folder in zip(report_inputs.runs.arm, report_inputs.runs.folder, strict=True):
        for part, held in (_read_arrangement(report_inputs, folder).get("throttled") or {}).items():
            if held["periods"]:
                results.setdefault((names.get(arm, arm), part), []).append(held)
    return [build_table("throttling", list(results.items()))] if results else []


def _read_arrangement(report_inputs: ReportInputs, name: str) -> dict[str, Any]:
    """Recorded arrangement of an arm in a run, by its folder's name."""
    folder = RunFolder(report_inputs.folder / name)
    messages = folder.evidence() if (folder.path / EVIDENCE).is_file() else {}
    return messages.get("arrangement") or {}


def _count_leaders(report_inputs: ReportInputs) -> dict[str, list[Counter[str]]]:
    """Number of regions that each store led before each run, by arm."""
    leaders: dict[str, list[Counter[str]]] = {}
    if not report_inputs.runs.cpu_tidb_cores.notna().any():
        return leaders
    for arm, name in zip(report_inputs.runs.arm, report_inputs.runs.folder, strict=True):
        cluster = _read_arrangement(report_inputs, name).get("cluster") or {}
        led = [store for store in ((cluster.get("before") or {}).get("leaders") or {}).values() if store]
        if led:
            leaders.setdefault(arm, []).append(Counter(led))
    return leaders


def _format_span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
