"""All tables by name. Each function takes findings, tidy tables or fact files and returns a `Table`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.show import numbers
from benchbook.show.markup import Html, element, join, slug
from benchbook.show.table import Column, Notes, Table

Findings = Mapping[str, Any]

__all__ = ["checks", "differences", "effects", "facts", "runs", "scaling", "threads", "voids"]


def effects(findings: Findings) -> Table:
    """List every finding, A/A first: effect, interval, n, label, claim and verdict, warnings as footnotes."""
    notes = Notes("findings")
    rows = []
    for found in (one for one in (findings.get("aa"), *findings["findings"]) if one):
        marks = join([notes.mark(text) for text in found["warnings"]], " ")
        shown = found if found["headline"] else {}
        name = element("span", f"{found['workload']}: {found['treatment']} against {found['baseline']}",
                       id=f"finding-{slug(found['id'])}")
        claim = f"{found['claim']} ({numbers.span(*found['band'])})" if found.get("claim") and found.get("band") else ""
        rows.append([join([name, marks], " "), numbers.percent(shown.get("effect")) if shown else "depends on threads",
                     numbers.span(shown.get("low"), shown.get("high")) if shown else "",
                     numbers.level(found["level"]), found["n"], label(found["label"]), claim,
                     label(found["verdict"]) if found.get("verdict") else ""])
    columns = [Column("Finding"), Column("Effect", "queries/s", True), Column("Interval", "", True), Column("Level", "", True),
               Column("n", "blocks", True), Column("Shown"), Column("Claim"), Column("Verdict")]
    return Table("findings", "Every finding", columns, rows, empty="No finding could be computed.", notes=notes,
                 caption="The A/A pair comes first: it compares an arm with itself.")


def threads(findings: Findings) -> Table:
    """List the effect at every thread count, exploratory, with the Benjamini-Hochberg q value where there is one."""
    rows = [[found["workload"], f"{found['treatment']} against {found['baseline']}", point["threads"],
             numbers.percent(point["effect"]), numbers.span(point["low"], point["high"]), point["n"],
             f"{point['q']:.3f}" if numbers.is_known(point.get("q")) else ""]
            for found in findings["findings"] for point in found["by_threads"]]
    levels = sorted({point["level"] for found in findings["findings"] for point in found["by_threads"]})
    columns = [Column("Workload"), Column("Arms"), Column("Threads", "", True), Column("Effect", "queries/s", True),
               Column("Interval", numbers.listing([numbers.level(level) for level in levels]), True),
               Column("n", "blocks", True),
               Column("q", "", True, "expected share of false discoveries if this and smaller ones are believed")]
    return Table("by-threads", "Effect at each thread count", columns, rows, empty="No effect by thread count was computed.",
                 caption="Exploratory: one interval each, not corrected for looking at many.")


def runs(table: pd.DataFrame, link: str) -> Table:
    """List every run in the order it was made, with a link to its raw folder below `link`, warnings as footnotes."""
    notes = Notes("runs")
    rows = []
    for run in table.sort_values("position", kind="stable").to_dict("records"):
        log = element("a", "log", href=f"{link}/{run['folder']}/sysbench.out", aria_label=f"raw log of {run['run_id']}")
        marks = join([notes.mark(text.strip()) for text in run["warnings"].split(";") if text.strip()], " ")
        name = element("span", run["position"], id=f"run-{slug(run['run_id'])}", title=run["run_id"])
        rows.append([name, join([log, marks], " "), run["block"], run["arm"], run["workload"], run["threads"],
                     *(numbers.significant(run[key]) for key in ("qps", "tps")),
                     *(numbers.significant(run[key]) for key in ("latency_p95_ms", "latency_p99_ms")),
                     numbers.decimal(run["measured_s"], 1), run["ignored_errors"], run["ledger"],
                     "" if run["attempt"] == 1 else run["attempt"], str(run["started_utc"])[:19].replace("T", " ")])
    columns = [Column("#", "", True, "place in the schedule"), Column("Raw"), Column("Block", "", True), Column("Arm"),
               Column("Workload"), Column("Threads", "", True), Column("QPS", "1/s", True), Column("TPS", "1/s", True),
               Column("p95", "ms", True), Column("p99", "ms", True), Column("Measured", "s", True),
               Column("Errors", "ignored", True), Column("Ledger", "", False, "do the server's own counters agree"),
               Column("Attempt", "if not 1", True), Column("Started", "UTC")]
    return Table("every-run", "Valid runs, in the order of the schedule", columns, rows, notes=notes,
                 empty="No run was valid.")


def voids(table: pd.DataFrame, link: str) -> Table:
    """List every voided attempt with all its reasons and a link to what it left."""
    rows = [[f"{void['run_id']}, attempt {void['attempt']}",
             element("a", "log", href=f"{link}/{void['folder']}/sysbench.out", aria_label=f"raw log of voided {void['run_id']}"),
             void["block"], void["arm"], void["workload"], void["threads"], void["status"],
             element("ul", *(element("li", reason.strip()) for reason in void["reasons"].split(";") if reason.strip()))]
            for void in table.sort_values(["block", "run_id", "attempt"], kind="stable").to_dict("records")]
    columns = [Column("Run"), Column("Raw"), Column("Block", "", True), Column("Arm"), Column("Workload"),
               Column("Threads", "", True), Column("Status"), Column("Reasons")]
    return Table("voids", "Voided attempts", columns, rows, empty="No run was voided.",
                 caption="A partner is a run that was sound itself and went with the other half of its pair.")


def differences(findings: Findings, arms: Sequence[str]) -> Table:
    """List every fact in which the arms differ, as the servers and hosts reported it."""
    rows = [[entry["fact"], *(_value(entry["values"].get(arm)) for arm in arms)] for entry in findings["facts_differ"]]
    return Table("differences", "Facts that differ", [Column("Fact"), *map(Column, arms)], rows,
                 empty="The arms reported the same facts.")


def checks(findings: Findings) -> Table:
    """List the consistency checks, failed ones first."""
    rows = [[check["check"], label("passed" if check["passed"] else "failed"), check["where"], check["detail"]]
            for check in sorted(findings["checks"], key=lambda check: bool(check["passed"]))]
    return Table("checks", "Consistency checks", [Column("Check"), Column("Result"), Column("Where"), Column("Detail")], rows,
                 empty="No check was made.")


def scaling(findings: Findings) -> Table:
    """List the scaling fits, or why there is none, with whatever the fit reports as columns."""
    keys = list(dict.fromkeys(key for entry in findings.get("scaling") or [] for key in entry))
    rows = [[_value(entry.get(key)) for key in keys] for entry in findings.get("scaling") or []]
    columns = [Column(key.replace("_", " ").capitalize()) for key in keys]
    return Table("scaling", "Scaling", columns, rows, empty="No scaling was fitted.")


def facts(tree: Mapping[str, Any] | None, title: str = "Facts", anchor: str = "facts", is_folded: bool = True) -> Table:
    """List what servers and hosts said about themselves, one row a fact; nested names are joined by dots."""
    rows = [[name, _value(value)] for name, value in _leaves(tree or {})]
    return Table(anchor, title, [Column("Fact"), Column("Value")], rows, empty="Not recorded.", is_folded=is_folded)


def label(word: str) -> Html:
    """Write a label or verdict as a small badge."""
    return element("span", word, class_=f"badge {slug(word)}")


def _leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, tree


def _value(value: Any) -> str:
    if value is None:
        return "not reported"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
