"""What a forger does to a run's files: change a value, and make all hashes again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchbook.core import files


def seal(folder: Path) -> None:
    """Write a run's manifest again, as a forger would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in manifest["files"]:
        file = folder / name
        manifest["files"][name] = {"sha256": files.sha256(file), "bytes": file.stat().st_size}
    files.write_json(folder / "manifest.json", manifest)


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each value of a JSON document with its path; of a list the first two, which stand for all."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*at, key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value[:2]):
            yield from leaves(item, (*at, number))
    else:
        yield at, value


def other(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 2 * value + 3
    if isinstance(value, float):
        return 1.5 * value + 0.7
    if isinstance(value, str):
        return "f" * 64 if len(value) == 64 else f"{value}x"
    return 7 if value is None else ["x"]


def put(value: Any, at: tuple[Any, ...], changed: Any) -> None:
    """Put a value at a path of a JSON document."""
    for key in at[:-1]:
        value = value[key]
    value[at[-1]] = changed
