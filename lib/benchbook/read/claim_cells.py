"""Whether the claims of a source speak of cells that its tables have."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd

from benchbook.core.cells import both_metrics, select, selector_errors
from benchbook.core.claim import Claim, Selector
from benchbook.core.errors import did_you_mean
from benchbook.core.source import Source, keys

Where = Callable[[tuple[str | int, ...]], str]


def claim_errors(source: Source, cells: pd.DataFrame, where: Where) -> Iterator[str]:
    """Yield a line for every table, arm, key, value or metric that a claim names and no cell has."""
    for name, claim in source.claims.items():
        for path, wrong in _claim_errors(claim, cells):
            yield f"{where(('claims', name, *path))}: {'.'.join(map(str, ('claims', name, *path)))}: {wrong}"


def _claim_errors(claim: Claim, cells: pd.DataFrame) -> Iterator[tuple[tuple[str | int, ...], str]]:
    # What a text says of a metric stands in no table: that is why it is a text alone.
    own = None if claim.kind == "text_only" else claim.metric
    expressions: list[tuple[tuple[str | int, ...], str | None]] = [
        (("metric",), own),
        *((("candidates", i), m) for i, m in enumerate(claim.candidates)),
    ]
    expressions += [(("beside", i, "metric"), beside.metric) for i, beside in enumerate(claim.beside)]
    expressions += [(("where", i, "metric"), condition.metric) for i, condition in enumerate(claim.where)]
    for path, expression in expressions:
        yield from (((*path,), wrong) for wrong in _metric_errors(expression, cells))
    named: list[tuple[tuple[str | int, ...], str | None]]
    named = [(("along",), claim.along), (("across",), claim.across)]
    named += [(("where", i, "key"), condition.key) for i, condition in enumerate(claim.where)]
    named += [(("beside", i, "across"), beside.across) for i, beside in enumerate(claim.beside)]
    for path, key in named:
        if key is not None and key not in keys(cells):
            yield path, f"{key}: no table has this key; {did_you_mean(key, keys(cells))}"
    sides: list[tuple[tuple[str | int, ...], Selector | None, Selector | None, str | None]] = [
        ((side,), getattr(claim, side), claim.cells, claim.metric)
        for side in ("baseline", "treatment", "one", "other")
    ]
    sides.append((("cells",), claim.cells, None, claim.metric))
    for index, beside in enumerate(claim.beside):
        sides += [
            (("beside", index, side), getattr(beside, side), beside.cells, beside.metric)
            for side in ("baseline", "treatment")
        ]
        sides.append((("beside", index, "cells"), beside.cells, None, beside.metric))
    for path, selector, common, metric in sides:
        yield from _side_errors(path, selector, common, metric, cells)


def _metric_errors(expression: str | None, cells: pd.DataFrame) -> Iterator[str]:
    present = list(dict.fromkeys(cells["metric"]))
    parts = both_metrics(expression) if expression else ()
    if len(parts) > 2:
        yield f"{expression}: more than one division; write one metric, or one divided by another"
    yield from (
        f"{part}: no table has this metric; {did_you_mean(part, present)}"
        for part in parts
        if part not in present
    )


def _side_errors(
    path: tuple[str | int, ...],
    selector: Selector | None,
    common: Selector | None,
    metric: str | None,
    cells: pd.DataFrame,
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if selector is None:
        return
    wrong = list(selector_errors(cells, selector))
    yield from (((*path, key), text) for key, text in wrong)
    if wrong or list(selector_errors(cells, common)):
        return
    chosen = select(select(cells, selector), common)
    for part in both_metrics(metric) if metric else ():
        if part in set(cells["metric"]) and not (chosen["metric"] == part).any():
            yield (
                path,
                f"{dict(selector)}: no cell with {part} has all of these; drop a key or correct its value",
            )
