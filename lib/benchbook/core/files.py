"""Files that are complete or absent, with the same bytes for the same content."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchbook.core import paths
from benchbook.core.errors import BenchbookError, NotThere

if TYPE_CHECKING:
    import pandas as pd


def write_json(path: Path, value: Any) -> None:
    """Write sorted, indented JSON through a temporary file; NaN and infinity become null."""
    text = json.dumps(
        _finite(value), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False, default=str
    )
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text through a temporary file that is on disk before it takes the name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table without its index, complete or not at all."""
    write_text(path, table.to_csv(index=False, lineterminator="\n"))


def required(path: Path) -> Path:
    """Return a path that is there; NotThere with what brings it if it is something that a stage leaves."""
    if not path.exists() and (remedy := paths.what_brings(path)):
        raise NotThere(remedy)
    return path


def read_json(path: Path) -> Any:
    """Read a JSON file; BenchbookError naming it if it is missing or damaged."""
    required(path)
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError) as error:
        raise BenchbookError(
            f"{path}: cannot be read: {error}; run the stage that makes it again (`dvc status` says which)"
        ) from None


def read_csv(path: Path, *columns: str) -> pd.DataFrame:
    """Read a table; BenchbookError naming the file if it is damaged or lacks one of the columns."""
    import pandas as pd

    required(path)
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise BenchbookError(f"{path}: cannot be read: {error}; run the stage that makes it again") from None
    if absent := [name for name in columns if name not in table.columns]:
        raise BenchbookError(
            f"{path}: it has no column {', '.join(absent)}: damaged; run the stage that makes it again"
        )
    return table


def sha256(path: Path) -> str:
    """Return the SHA-256 of the bytes that are on disk."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
