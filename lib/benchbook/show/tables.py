"""All tables by name. Each function takes findings, tidy tables or fact files and returns a `Table`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.compare import words
from benchbook.core.findings import Answer, ByThreads, Contrast, Finding, Findings, Level, Peak
from benchbook.show import numbers, opposite
from benchbook.show.load_tables import dips, leaders, parts, stability
from benchbook.show.markup import Html, element, slug
from benchbook.show.run_tables import cell_anchor, cells
from benchbook.show.shape import ORDER, badge, result
from benchbook.show.table import Column, Notes, Table, long, number

_NO_ARMS: Mapping[str, str] = {}

__all__ = [
    "asked", "cells", "checks", "contrast", "differences", "dips", "effects", "facts", "leaders",
    "loading", "parts", "scaling", "stability", "threads",
]  # fmt: skip


def effects(findings: Findings) -> Table:
    """List every finding, A/A first: effect, interval, n, label, claim, verdict; warnings as footnotes."""
    notes = Notes("findings")
    listed = [found for found in (findings.aa, *findings.findings) if found]
    rows = [_effect(found, notes) for found in listed]
    columns = [
        long("Finding"), Column("Metric"), number("Effect"), number("Interval", _levels(listed)),
        number("n", "blocks"), Column("Shown"), long("Claim"), Column("Verdict"),
    ]  # fmt: skip
    caption = "The A/A pair comes first: it compares an arm with itself." if findings.aa else ""
    empty = "No finding could be computed."
    return Table("findings", "Every finding", columns, rows, caption, empty, notes)


def _effect(found: Finding, notes: Notes) -> list[object]:
    text = contrast(found)
    place = f"finding-{slug(found.id)}"
    here = element("a", href=f"#{place}", class_="anchor", aria_label=f"Link to {text}")
    name = element("span", text, here, id=place)
    is_whole = found.headline
    band = f" ({numbers.span(*found.band)})" if found.band else ""
    return [
        Html(name.text + notes.marks(found.warnings).text),
        words.metric(found.metric),
        element("a", numbers.effect(found), href=_below(found)),
        numbers.span(found.low, found.high) if is_whole else "",
        found.n,
        badge(found.label),
        f"{found.claim}{band}" if found.claim else "",
        badge(found.verdict) if found.verdict else "",
    ]


def asked(findings: Findings) -> list[Table]:
    """List what the study came to for claims that its findings do not answer as they stand."""
    rows = [_asked(one) for one in findings.claims or []]
    columns = [
        long("Claim"), long("Published"), long("What was seen"), number("n", "blocks"), Column("Verdict"),
    ]  # fmt: skip
    caption = (
        "Every part of a claim is one number a block, with the interval of its mean over blocks. A claim is "
        "confirmed where all its parts lie in its band, and contradicted where one is shown to lie outside. "
        "What only illustrates a claim has no verdict."
    )
    return [Table("claims", "Published claims, part by part", columns, rows, caption)] if rows else []


def _asked(one: Answer) -> list[object]:
    name = element("span", one.claim, id=f"finding-{slug(one.claim)}")
    turned = "" if one.judged else opposite.told(opposite.parts(one))
    reason = one.reason and f"({one.reason}.)"
    told = [one.sentence, opposite.compared(one), turned, reason, one.read_as]
    seen = " ".join(filter(None, told))
    verdict = badge(one.verdict or "not judged") if one.judged else "illustrates it"
    return [name, one.published, seen, one.n, verdict]


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
    notes = Notes("by-threads")
    points = [(found, point) for found in findings.findings for point in levels_of(found)]
    rows = [
        [
            Html(
                element("span", contrast(found), id=_level_anchor(found, point)).text
                + notes.marks([note] if (note := getattr(point, "note", None)) else []).text
            ),
            words.metric(found.metric),
            point.threads,
            element(
                "a",
                numbers.percent(point.effect),
                href=f"#{cell_anchor(found.workload, point.threads)}",
            ),
            numbers.span(point.low, point.high),
            point.n,
            badge(point.label) if isinstance(point, Level) and point.label else "exploratory",
        ]
        for found, point in points
    ]
    columns = [
        long("Finding"), Column("Metric"), number("Threads"), number("Effect"),
        number("Interval", _levels([point for _, point in points])), number("n", "blocks"), Column("Shown"),
    ]  # fmt: skip
    caption = (
        "What is shown at a level is decided with Holm's correction over all levels and treatments of its "
        "workload, and only where the effect over all threads is shown, or shown to depend on threads."
    )
    empty = "No effect by thread count was computed."
    return Table("by-threads", "Effect at each thread count", columns, rows, caption, empty, notes)


def _levels(entries: Sequence[Contrast | Level | ByThreads]) -> str:
    return numbers.listing([numbers.level(level) for level in sorted({one.level for one in entries})])


def differences(findings: Findings, arms: Mapping[str, str]) -> Table:
    """List every fact in which the arms, given with their readable names, differ, as it was reported."""
    entries = findings.facts_differ
    known = [arm for arm in arms if any(arm in entry.values for entry in entries)]
    rows = [[entry.fact, *(_value(entry.values.get(arm)) for arm in known)] for entry in entries]
    columns = [Column("Fact"), *(long(arms[arm]) for arm in known)]
    return Table("differences", "Facts that differ", columns, rows, empty="The arms reported the same facts.")


def checks(findings: Findings) -> Table:
    """List the consistency checks: failed ones first, then passed, then those with nothing to check."""
    rows = [
        [check.check, result(check.passed), check.where, check.detail]
        for check in sorted(findings.checks, key=lambda check: ORDER[check.passed])
    ]
    columns = [Column("Check"), Column("Result"), long("Where"), long("Detail")]
    return Table("checks", "Consistency checks", columns, rows, empty="No check was made.")


def scaling(findings: Findings) -> Table:
    """List the highest throughput of every arm and workload, and the fitted peak or why there is none."""
    entries = findings.scaling or []
    arms, workloads = (words.labels(findings, kind) for kind in ("arms", "workloads"))
    is_fitted = any(entry.peak_qps for entry in entries)
    rows = [
        [
            workloads.get(entry.workload, entry.workload),
            arms.get(entry.arm, entry.arm),
            numbers.listing(entry.threads or []),
            numbers.significant(entry.observed_max_qps),
            _value(entry.observed_max_threads),
            *([_peak(entry.peak_threads), _peak(entry.peak_qps)] if is_fitted else []),
            entry.reason or "",
        ]
        for entry in entries
    ]
    columns = [
        Column("Workload"), Column("Arm"), Column("Threads"), number("Highest QPS", "seen"),
        number("Highest at", "threads"),
        *([number("Peak threads", "fitted"), number("Peak QPS", "fitted")] if is_fitted else []),
        long("Why not fitted"),
    ]  # fmt: skip
    return Table("scaling", "Scaling", columns, rows, empty="No scaling was fitted.")


def _peak(fitted: Peak | None) -> str:
    if not fitted:
        return ""
    low, high = numbers.significant(fitted.low), numbers.significant(fitted.high)
    return f"{numbers.significant(fitted.value)} ({low} to {high})"


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
    if not named:
        rows = [[name, _value(value)] for name, value in _leaves(tree) if name]
        return Table(
            anchor, title, [Column("Fact"), long("Value")], rows, "", "Not recorded.", is_folded=True
        )
    flat = {arm: dict(_leaves(below[arm])) for arm in named}
    names = dict.fromkeys(name for own in flat.values() for name in own)
    rows = [[name, *(_value(flat[arm].get(name)) for arm in named)] for name in names]
    shared = {key: value for key, value in tree.items() if key != "arms" and key not in named}
    rows += [[name, *[_value(value)] * len(named)] for name, value in _leaves(shared) if name]
    columns = [Column("Fact"), *(long(arms[arm]) for arm in named)]
    return Table(anchor, title, columns, rows, is_folded=True)


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


LOADED_CAPTION = (
    "From the first loader's start to the last one's end, with as many tables at once as there are cores. "
    "Each was timed once, when the data were prepared: a difference between arms here has no interval."
)
SHARED = "Arms in one row share the data, which were loaded once. "


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
    rows_loaded = dataset["tables"] * dataset["table_size"]
    rows = [
        [
            ", ".join(arms),
            order,
            numbers.significant(seconds),
            numbers.significant(rows_loaded / seconds if seconds else None),
        ]
        for (order, seconds), arms in copies.items()
    ]
    columns = [Column("Arms"), Column("Secondary index"), number("Loading", "s"), number("Rows", "a second")]
    is_shared = any(len(arms) > 1 for arms in copies.values())
    return [Table("loading", "Loading", columns, rows, (SHARED if is_shared else "") + LOADED_CAPTION)]
