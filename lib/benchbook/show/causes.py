"""What a query cost each part of an arm, as a figure under the answer and a table; why no cause is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.compare import words
from benchbook.core.causes import Cause, Causes, Estimate
from benchbook.show import numbers
from benchbook.show.figures.causes import costs_of_a_query
from benchbook.show.markup import Html
from benchbook.show.shape import shaped
from benchbook.show.table import Column, Table, long, number

_CAPTION = (
    "Processor time of a query, of all threads of a part, with its interval over blocks. A change is taken "
    "inside each block. Added latency is the change of threads over queries per second."
)


def of(findings: Mapping[str, Any]) -> Causes | None:
    """Return the causes of a study; None where its runs tell of none."""
    known = findings.get("causes")
    return None if known is None else Causes.model_validate(known)


def shown(findings: Mapping[str, Any]) -> list[object]:
    """Return the figure for the place under a study's answer; nothing where nothing was seen."""
    found = of(findings)
    if found is None or not found.contrasts:
        return []
    explained = [one for one in found.contrasts if one.qps is not None]
    if not explained:
        return []
    return [*_unexplained(found, explained), costs_of_a_query(found, explained, findings)]


def tables(findings: Mapping[str, Any]) -> list[Table]:
    """Return what a query cost each part in both arms of every contrast, and how that changed."""
    found = of(findings)
    if found is None or not found.contrasts:
        return []
    arms, workloads = (words.labels(findings, kind) for kind in ("arms", "workloads"))
    cells = {(cell.workload, cell.threads, cell.arm): cell for cell in found.cells}
    rows = []
    for one in found.contrasts:
        pair = [cells.get((one.workload, one.threads, arm)) for arm in (findings["baseline"], one.treatment)]
        costs = [{part.part: part.a_query["cpu_us"] for part in cell.parts} if cell else {} for cell in pair]
        rows += [
            [
                workloads.get(one.workload, one.workload),
                one.threads,
                arms.get(one.treatment, one.treatment),
                part,
                *(_value(own.get(part)) for own in costs),
                _change(one.cost.get(part)),
                "; ".join([*([one.sentence] if one.sentence else [one.reason or ""]), *one.beside]),
            ]
            for part in dict.fromkeys([*costs[0], *costs[1]])
        ]
    base = arms.get(findings["baseline"], findings["baseline"])
    columns = [
        long("Workload"), number("Threads"), Column("Treatment"), Column("Part"), number(base, "µs"),
        number("Treatment", "µs"), number("Change", numbers.level(found.level)), long("Why"),
    ]  # fmt: skip
    return [Table("costs-of-a-query", "What a query cost each part", columns, rows, _CAPTION)]


def _unexplained(found: Causes, explained: Sequence[Cause]) -> list[Html]:
    """Return why no cause is named, where none is; the sentences themselves stand with the effects."""
    broken = [law for law in found.physics if law.passed is False]
    if not broken and any(one.sentence for one in explained):
        return []
    reasons = list(dict.fromkeys(one.reason for one in explained if one.reason))
    return [shaped("causes.html.j2", broken=broken, reason=numbers.listing(reasons[:2]))]


def _value(found: Estimate | None) -> object:
    return "" if found is None else numbers.significant(found.value)


def _change(found: Estimate | None) -> object:
    if found is None:
        return ""
    ends = f" ({numbers.span(found.low, found.high)})" if found.low is not None else ""
    return f"{numbers.percent(found.value)}{ends}"
