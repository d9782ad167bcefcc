"""Equality of recorded and recomputed values, judged by values and never by bytes.

Numbers of tidy tables are counts, what was printed, or worked out of both by exact sums and single divisions,
then rounded. They are the same on every processor, so a digest can hold them.

Numbers of findings went through logarithms and quantiles, whose last bits differ between processors. They
have `SIGNIFICANT` digits, and of a value on the edge between two digits one bit still turns the last one. So
two of them are the same number if they are at most one unit of the last stated digit apart. All else (texts,
labels, whole numbers, what is there and what is not) must be equal.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

SIGNIFICANT = 8
"""Digits of a number in findings.json."""
DERIVED = 12
"""Digits of a number that parse works out; seven orders above the last bit, five below what is printed."""
PERCENT_DECIMALS = 4
"""Decimals of per cent in metrics.json and in the data of plots."""
DECIMALS = {"metrics.json": PERCENT_DECIMALS}
"""Documents whose numbers have decimals in place of significant digits."""
NOTHING = Decimal("1e-12")
"""Numbers no further apart than this are the same: beside nothing no digit counts."""
_LONGEST, _MARK = 60, 6


def round_significant(value: float, digits: int = SIGNIFICANT) -> float:
    """A number with so many significant digits; infinity and NaN as they are."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else value


def exact_sum(values: Iterable[float]) -> float:
    """Exact sum of some numbers, rounded once (`math.fsum`); NaN if there is none.

    The order in which a library adds, and with it the last bit, follows the processor and the version.
    """
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return math.nan


def exact_mean(values: Sequence[float] | np.ndarray) -> float:
    """Mean of at least one number: the exact sum, then one division."""
    return exact_sum(values) / len(values)


def round_document(value: Any) -> Any:
    """A document with every float in `SIGNIFICANT` digits; values that are no number are null."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, Mapping):
        return {str(key): round_document(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [round_document(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return round_significant(value) if math.isfinite(value) else None
    return value


def flatten_mapping(
    tree: Mapping[str, Any], without: Collection[str] = (), above: str = ""
) -> dict[str, Any]:
    """Values of nested mappings by dotted name, without keys that are left out at any depth.

    >>> flatten_mapping({"log": {"level": "error", "file": {"max-days": 3}}, "pid": 7}, without=["pid"])
    {'log.level': 'error', 'log.file.max-days': 3}
    """
    rows: dict[str, Any] = {}
    for key, value in tree.items():
        name, is_section = f"{above}{key}", isinstance(value, Mapping)
        if key not in without:
            rows |= flatten_mapping(value, without, f"{name}.") if is_section else {name: value}
    return rows


def diff_mappings(values: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Differing values of two mappings by key, sorted; None for a key that one lacks.

    >>> diff_mappings({"a": 1, "b": 2}, {"b": 3, "c": 2})
    {'a': (1, None), 'b': (2, 3), 'c': (None, 2)}
    """
    pairs = {key: (values.get(key), other.get(key)) for key in sorted({*values, *other})}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def is_same(value: float, other: float, decimals: int | None = None) -> bool:
    """True if numbers are at most one unit apart of the last of `decimals`, else of `SIGNIFICANT` digits."""
    if value == other:
        return True
    if not math.isfinite(value) or not math.isfinite(other):
        return False
    first, second = Decimal(repr(float(value))), Decimal(repr(float(other)))
    place = max(first, second, key=abs).adjusted() - SIGNIFICANT + 1 if decimals is None else -decimals
    return abs(first - second) <= max(Decimal(1).scaleb(place), NOTHING)


def diff_documents(recorded: Any, here: Any, decimals: int | None = None, place: str = "") -> Iterator[str]:
    """Every value in that two JSON documents differ, as recorded and as it is here."""
    if isinstance(recorded, Mapping) and isinstance(here, Mapping):
        for key in sorted({*recorded, *here}):
            at = f"{place}.{key}" if place else key
            yield from diff_documents(recorded.get(key), here.get(key), decimals, at)
    elif isinstance(recorded, list) and isinstance(here, list) and len(recorded) == len(here):
        for number, pair in enumerate(zip(recorded, here, strict=True)):
            yield from diff_documents(*pair, decimals, f"{place}[{number}]")
    elif not _is_equal(recorded, here, decimals):
        yield f"{place}: {truncate_text(recorded, _LONGEST)} recorded, {truncate_text(here, _LONGEST)} here"


def tables_digest(tables: Mapping[str, pd.DataFrame]) -> str:
    """SHA-256 over tables, not over their files: of each column its table, name, kind and values in order."""
    marks = []
    for name, table in sorted(tables.items()):
        for column in table:
            digest = hashlib.sha256(b"".join(_column_bytes(table[column]))).hexdigest()
            marks.append(f"{name} {column}:{digest[:_MARK]}\n")
    return hashlib.sha256("".join(marks).encode()).hexdigest()


def _column_bytes(column: pd.Series) -> tuple[bytes, ...]:
    """Values of a column as bytes that are the same on every machine."""
    import numpy as np
    import pandas as pd

    missing, kind = column.isna().to_numpy(), column.dtype.kind
    if kind == "f":
        # A zero has no sign.
        plain = np.where(missing, 0.0, column.to_numpy(dtype=np.dtype("<f8"))) + 0.0
    elif kind in "iub":
        plain = column.fillna(0).to_numpy(dtype=np.dtype("<i8"))
    else:
        plain, texts = pd.factorize(column)
        kind = json.dumps([str(text) for text in texts])
    return kind.encode(), missing.tobytes(), plain.astype(plain.dtype.newbyteorder("<")).tobytes()


def _is_equal(recorded: Any, here: Any, decimals: int | None) -> bool:
    kinds = {type(recorded), type(here)}
    if float in kinds and kinds <= {int, float}:
        return is_same(recorded, here, decimals)
    return bool(recorded == here and (bool in kinds) == (kinds == {bool}))


def truncate_text(value: Any, most: int = 160) -> str:
    """A value as text of so many characters at most."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= most else f"{text[: most - 1]}…"
