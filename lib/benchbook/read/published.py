"""Published tables to cells: every number as printed, every mistake of a source reported at once."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd

from benchbook.core.published import source
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.published.source import SCALES, Number, Published, PublishedTable, SourceSpec, cell_keys
from benchbook.core.published.table_cells import both_metrics, select_numbers, selector_errors
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import paths, source_files
from benchbook.core.util.errors import InputErrors, did_you_mean
from benchbook.read.published_table import TableReader, unit_suffix

Place = tuple[str | int, ...]


def resolve_claims(ids: Sequence[str]) -> dict[str, ClaimSpec]:
    """Claims that a study names as `source/claim`; that they exist its reading has checked."""
    names = [id.partition("/")[::2] for id in ids]
    return {
        f"{name}/{claim}": source.claim_for_study(source.load_source(name), claim) for name, claim in names
    }


def load_source(name: str) -> Published:
    """Content of `data/published/NAME`; raises `InputErrors` with every mistake in its files."""
    folder, document = paths.source_paths(name).published, source_files.read_source(name)
    loaded = validate_document(document, SourceSpec)
    errors: list[str] = [document.at(place, wrong) for place, wrong in _source_errors(loaded)]
    numbers: list[Number] = []
    texts: dict[str, pd.DataFrame] = {}
    for table_name, table in loaded.tables.items():
        reader = TableReader(loaded, table_name, table, f"data/published/{name}/{table.file}")
        file = folder / table.file
        if not file.is_file():
            wrong = f"{table.file}: no such file; add it to the folder"
            errors.append(document.at(("tables", table_name, "file"), wrong))
            continue
        try:
            numbers += reader.numbers(file.read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError as error:
            reader.complain(1, "encoding", f"byte {error.start}", "not UTF-8; save the file as UTF-8")
        texts[table_name] = reader.text
        errors += reader.errors
    errors += [document.at(place, wrong) for place, wrong in _copy_errors(loaded, texts)]
    strange = {file.name for file in folder.iterdir()} - {table.file for table in loaded.tables.values()}
    errors += [
        f"data/published/{name}/{file}: no table of source.yaml names this file; add the table or remove it"
        for file in sorted(strange - {"source.yaml"})
    ]
    if errors := errors or [document.at(place, wrong) for place, wrong in _claims_errors(loaded, numbers)]:
        raise InputErrors(errors)
    order = cell_keys(numbers)
    ordered = [
        number._replace(at={key: number.at[key] for key in order if key in number.at}) for number in numbers
    ]
    return Published(name, loaded, ordered, texts)


def _copy_errors(loaded: SourceSpec, texts: Mapping[str, pd.DataFrame]) -> Iterator[tuple[Place, str]]:
    """Tables whose numbers are not those of the table that they say they copy."""
    for name, table in loaded.tables.items():
        other = table.copy_of
        if other and (not {name, other} <= texts.keys() or not texts[name].equals(texts[other])):
            wrong = "its numbers are not those of a table of that name; remove copy_of or correct the name"
            yield ("tables", name, "copy_of"), f"{other}: {wrong}"


def _source_errors(loaded: SourceSpec) -> Iterator[tuple[Place, str]]:
    """Names in source.yaml that point nowhere."""
    used = {heading for table in loaded.tables.values() for heading in table.columns}
    for heading, column in loaded.columns.items():
        path = ("columns", heading)
        if heading not in used:
            yield path, "no table has this column; remove it or add it to a table's columns"
        name = column.metric or heading
        suffix = unit_suffix(name)
        if column.role == "metric" and suffix and column.unit not in SCALES[suffix]:
            units = ", ".join(SCALES[suffix])
            wrong = f"{column.unit}: not a unit of {name}; write one of {units}, or rename the metric"
            yield (*path, "unit"), wrong
        yield from _place_errors(loaded, (*path, "at"), column.at)
    files: dict[str, str] = {}
    for name, table in loaded.tables.items():
        if (first := files.setdefault(table.file, name)) != name:
            yield ("tables", name, "file"), f"{table.file}: already the file of {first}; one file a table"
        yield from (((*("tables", name), *place), wrong) for place, wrong in _table_errors(loaded, table))
        yield from _place_errors(loaded, ("tables", name, "at"), table.at)


def _table_errors(loaded: SourceSpec, table: PublishedTable) -> Iterator[tuple[Place, str]]:
    """Headings of a table without a column, keys that it has twice, and a CSV file without headings."""
    for index, heading in enumerate(table.columns):
        column = loaded.columns.get(heading)
        if column is None:
            wrong = f"{heading}: not explained under columns; {did_you_mean(heading, loaded.columns)}"
            yield ("columns", index), wrong
        elif column.role == "key" and (key := column.metric or heading) in table.at:
            yield ("at", key), f"{key}: {heading} holds it, too; keep the column or the key in at"
    if table.file.endswith(".csv") and not table.columns:
        yield ("columns",), "missing; list the headings of the CSV file in their order"


def _place_errors(loaded: SourceSpec, path: Place, at: Mapping[str, object]) -> Iterator[tuple[Place, str]]:
    for key, names in (("arm", loaded.arms), ("workload", loaded.workloads)):
        if key in at and at[key] not in names:
            yield (*path, key), f"{at[key]}: no such {key}; {did_you_mean(str(at[key]), names)}"


def _claims_errors(loaded: SourceSpec, numbers: Sequence[Number]) -> Iterator[tuple[Place, str]]:
    for name, claim in loaded.claims.items():
        parts: list[tuple[Place, Any]] = [((), claim)]
        parts += (
            ((of, index), part) for of in ("where", "beside") for index, part in enumerate(getattr(claim, of))
        )
        for place, part in parts:
            # What a text says of a metric stands in no table: that is why it is a text alone.
            metric = None if part is claim and claim.kind == "text_only" else part.metric
            errors = chain(_name_errors(part, metric, numbers), _selection_errors(part, numbers))
            yield from (((*("claims", name), *place, *at), wrong) for at, wrong in errors)


def _name_errors(part: Any, metric: str | None, numbers: Sequence[Number]) -> Iterator[tuple[Place, str]]:
    """Metrics and keys of a part of a claim that no table has."""
    yield from ((("metric",), wrong) for wrong in _metric_errors(metric, numbers))
    for index, candidate in enumerate(getattr(part, "candidates", ())):
        yield from ((("candidates", index), wrong) for wrong in _metric_errors(candidate, numbers))
    keys = cell_keys(numbers)
    for name in ("along", "across", "key"):
        key = getattr(part, name, None)
        if key is not None and key not in keys:
            yield (name,), f"{key}: no table has this key; {did_you_mean(key, keys)}"


def _selection_errors(part: Any, numbers: Sequence[Number]) -> Iterator[tuple[Place, str]]:
    """Selectors of a part of a claim that name nothing, or cells without its metric."""
    for side in ("baseline", "treatment", "one", "other", "cells"):
        common = None if side == "cells" else getattr(part, "cells", None)
        selector = getattr(part, side, None)
        wrong_keys = list(selector_errors(numbers, selector))
        yield from (((side, key), wrong) for key, wrong in wrong_keys)
        if selector is None or wrong_keys or list(selector_errors(numbers, common)):
            continue
        present = {number.metric for number in select_numbers(numbers, selector, common)}
        for metric in both_metrics(part.metric or ""):
            if metric not in present and any(number.metric == metric for number in numbers):
                wrong = f"{dict(selector)}: no cell with {metric} has all of these"
                yield (side,), f"{wrong}; drop a key or correct its value"


def _metric_errors(expression: str | None, numbers: Sequence[Number]) -> Iterator[str]:
    present = list(dict.fromkeys(number.metric for number in numbers))
    parts = both_metrics(expression) if expression else ()
    if len(parts) > 2:
        yield f"{expression}: more than one division; write one metric, or one divided by another"
    yield from (
        f"{part}: no table has this metric; {did_you_mean(part, present)}"
        for part in parts
        if part not in present
    )
