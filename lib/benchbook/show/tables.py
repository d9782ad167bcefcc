"""All tables by name. Each function takes findings, tidy tables or fact files and returns a `Table`."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
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

Facts = Mapping[str, Any]
Names = Mapping[str, str]
_NO_ARMS: Names = {}
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


def tabulate_differences(findings: Findings, arms: Names) -> Table:
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


def tabulate_facts(tree: Facts | None, title: str, anchor: str, arms: Names = _NO_ARMS) -> list[Table]:
    """Facts as reported, a row each, a column for each of `arms`; a list of records is a table of its own."""
    facts = dict(tree or {})
    of_arms = facts.pop("arms") if arms else {}
    records = {f"{title}, {key}": facts.pop(key) for key in [*facts] if _are_records(facts[key])}
    columns, rows = _lay_out_facts(facts, {arms[arm]: of_arms[arm] for arm in arms if arm in of_arms})
    return [
        Table(anchor, title, columns, rows, empty="Not recorded.", is_folded=True),
        *(_tabulate_records(items, name, f"{anchor}-{make_slug(name)}") for name, items in records.items()),
    ]


def _lay_out_facts(facts: Facts, sides: Mapping[str, Facts]) -> tuple[list[TableColumn], list[list[object]]]:
    """Columns and rows of facts: those of the sides beside each other, then what they share."""
    flat = [dict(_flatten_facts(side)) for side in sides.values()]
    lines = [(name, [side.get(name) for side in flat]) for name in dict.fromkeys(chain(*flat))]
    lines += [(name, [value] * (len(sides) or 1)) for name, value in _flatten_facts(facts)]
    columns = [TableColumn("Fact"), *map(text_column, sides or ["Value"])]
    return columns, [[name, *map(_format_value, values)] for name, values in lines]


def _tabulate_records(items: Sequence[Facts], title: str, anchor: str) -> Table:
    """Table of records, a row each and a column for each of their keys."""
    keys = dict.fromkeys(chain(*items))
    rows = [[_format_value(item.get(key)) for key in keys] for item in items]
    columns = [text_column(key.replace("_", " ")) for key in keys]
    return Table(anchor, title, columns, rows, is_folded=True)


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _flatten_facts(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Facts of a tree by name, the keys on the way to each with dots between; none of an empty tree."""
    if isinstance(tree, Mapping) and set(tree) == {"asked", "from", "got"}:
        request = f", asked for as {_format_value(tree['asked'])}" * (tree["asked"] != tree["got"])
        yield name, f"{_format_value(tree['got'])}{request} ({tree['from']})"
    elif isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from _flatten_facts(value, f"{name}.{key}" if name else str(key))
    elif _are_records(tree):
        for place, item in enumerate(tree, 1):
            texts = (f"{key}: {_format_value(value)}" for key, value in item.items())
            yield f"{name} {place}", ", ".join(texts)
    elif name:
        yield name, tree


def _format_value(value: Any) -> str:
    if value is None:
        return "not reported"
    if isinstance(value, list) and value:
        return ", ".join(map(_format_value, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def tabulate_loading(dataset: Facts | None, names: Names) -> list[Table]:
    """Loading time of each copy of the data by dataset.json, with the arms' `names`; none if not timed."""
    loads: Mapping[str, Facts] = (dataset or {}).get("loads") or {}
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
    stores = _name_stores(report_inputs.facts["arms"].values())
    present = [*runs.columns[runs.notna().any()]]
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


def _name_stores(arms: Iterable[Facts]) -> str:
    """Name of the stores of a TiDB cluster, by the facts of its arms."""
    storages = [str((arm.get("engine") or {}).get("storage")) for arm in arms]
    return f"store ({UNISTORE})" if any(name.startswith(UNISTORE) for name in storages) else "TiKV"


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
        share = _share_beside(arms.get(arm.removesuffix(labels.AGAIN), {}), looks)
        stores = sorted(set().union(*looks))
        led = ", ".join(f"{store} {_format_span([look[store] for look in looks])}" for store in stores)
        regions = _format_span([look.total() for look in looks])
        rows.append([names.get(arm, arm), len(looks), regions, led, share])
    return [build_table("leaders", rows, has_zones=any(row[-1] for row in rows))] if rows else []


def _share_beside(facts: Facts, looks: Sequence[Counter[str]]) -> str:
    """Share of leaders in the zone of the TiDB that asks, in per cent; empty for an arm without zones."""
    cluster = (facts.get("engine") or {}).get("cluster") or {}
    # The store that each TiDB shares a zone with; each TiDB is asked as much.
    beside = (cluster.get("zones") or {}).get("tidb_beside") or ()
    if not beside:
        return ""
    near = [sum(look[store] for store in beside) / look.total() for look in looks]
    return number_format.format_decimal(100 * sum(near) / len(near) / len(beside))


def tabulate_throttling(report_inputs: ReportInputs) -> list[Table]:
    """Frequency and time of holding parts back by processor limits in the runs; none if no limits."""
    if not any(map(_may_be_limited, report_inputs.facts["arms"].values())):
        return []
    names = labels.label_by_name(report_inputs.findings, "arms")
    results: dict[tuple[str, str], list[dict[str, float]]] = {}
    for arm, folder in zip(report_inputs.runs.arm, report_inputs.runs.folder, strict=True):
        for part, held in (_read_arrangement(report_inputs, folder).get("throttled") or {}).items():
            if held["periods"]:
                results.setdefault((names.get(arm, arm), part), []).append(held)
    return [build_table("throttling", list(results.items()))] if results else []


def _may_be_limited(facts: Facts) -> bool:
    """True if an arm may have a limit: a pod may have one that no study asked for."""
    parts = (facts.get("cpu") or {}).values()
    return "qos_class" in facts or any((part or {}).get("quota_cores") for part in parts)


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
