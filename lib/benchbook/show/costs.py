"""What a million queries cost, as tables; nothing where no arm of a study has a price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchbook.compare import words
from benchbook.show import numbers
from benchbook.show.badge import badge
from benchbook.show.table import Column, Notes, Table, long, number
from benchbook.show.tables import contrast

CAPTION = (
    "The price of an hour over the queries of an hour, at the queries per second that were measured. "
    "An arm's own "
    "cost moves with the machine; the change between arms is taken inside each block."
)


def tables(findings: Mapping[str, Any]) -> list[Table]:
    """Return the cost of a million queries of each cell, and its change between arms, each with its
    interval."""
    own = findings.get("costs")
    return [] if not own else [_cells(own, findings), *([_changes(own)] if own["contrasts"] else [])]


def _cells(own: Mapping[str, Any], findings: Mapping[str, Any]) -> Table:
    arms, workloads = (words.labels(findings, kind) for kind in ("arms", "workloads"))
    notes = Notes("costs")
    rows = [
        [
            workloads.get(one["workload"], one["workload"]),
            one["threads"],
            arms.get(one["arm"], one["arm"]),
            numbers.significant(one["price_per_hour"]),
            numbers.significant(one["cost"]),
            _span(one, notes),
            one["n"],
        ]
        for one in own["arms"]
    ]
    level = numbers.level(own["arms"][0]["level"])
    columns = [
        long("Workload"),
        number("Threads"),
        Column("Arm"),
        number("Price", f"{own['currency']} an hour"),
        number("Cost", f"{own['currency']} per million queries"),
        number("Interval", level),
        number("n", "blocks"),
    ]
    return Table("costs", "Cost per million queries", columns, rows, CAPTION, notes=notes)


def _span(one: Mapping[str, Any], notes: Notes) -> object:
    if numbers.is_known(one["low"]) and numbers.is_known(one["high"]):
        return f"{numbers.significant(one['low'])} to {numbers.significant(one['high'])}"
    return notes.marks([one["reason"] or "there is no interval"])


def _changes(own: Mapping[str, Any]) -> Table:
    rows = [
        [
            contrast(one),
            numbers.effect(one),
            numbers.span(one["low"], one["high"]) if one["headline"] else "",
            one["n"],
            badge(one["label"]),
        ]
        for one in own["contrasts"]
    ]
    level = numbers.level(own["contrasts"][0]["level"])
    columns = [
        long("Arms"),
        number("Cost"),
        number("Interval", level),
        number("n", "blocks"),
        Column("Shown"),
    ]
    return Table("cost-changes", "Change of the cost between arms", columns, rows)
