"""Files that are complete or absent, with the same bytes for the same content."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError, NotThere

if TYPE_CHECKING:
    import pandas as pd


KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: (FOLDER := "a folder"),
}


def write_json(path: Path, value: Any) -> None:
    """Write sorted, indented JSON through a temporary file; NaN and infinity become null."""
    form: dict[str, Any] = {"sort_keys": True, "indent": 1, "ensure_ascii": False, "allow_nan": False}
    write_text(path, json.dumps(_replace_nonfinite(value), default=str, **form) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text through a temporary file that is on disk before it takes the name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


# Far more than any of its files has, and little enough that a reader's memory holds what they become.
MOST_JSON_BYTES = 16_000_000
MOST_JSON_VALUES = 1_000_000
MOST_JSON_DEPTH = 40
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def parse_json(text: bytes) -> Any:
    """Read JSON of others within limits of size, depth, values; ValueError for a key twice and NaN, too."""
    if len(text) > MOST_JSON_BYTES:
        raise ValueError(f"{len(text)} bytes, at most {MOST_JSON_BYTES}")
    bare = _TEXT.sub(b"", text)
    # Counting is quick whatever there is; only then is it worth a walk.
    values = sum(map(bare.count, (b",", b"[", b"{")))
    if values > MOST_JSON_VALUES or bare.count(b"]") + bare.count(b"}") > MOST_JSON_VALUES:
        raise ValueError(f"{values} values, at most {MOST_JSON_VALUES}")
    depth = deepest = 0
    for bracket in re.finditer(rb"[\[\]{}]", bare):
        depth += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest > MOST_JSON_DEPTH:
        raise ValueError(f"nested {deepest} deep, at most {MOST_JSON_DEPTH}")
    return parse_finite(text.decode("utf-8"), object_pairs_hook=_unique_keys)


def parse_finite(text: str, **hooks: Any) -> Any:
    """Read JSON of our own; ValueError for NaN and infinity, excluded by no limit."""
    return json.loads(text, parse_constant=_no_number, parse_float=_finite_number, **hooks)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    if len(counts) < len(pairs):
        raise ValueError(f"the key {max(counts, key=counts.__getitem__)!r} is there twice")
    return dict(pairs)


def _finite_number(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table without its index, complete or not at all."""
    write_text(path, table.to_csv(index=False, lineterminator="\n"))


def require_path(path: Path) -> Path:
    """A path that is there; NotThere with its remedy if it is a stage's output."""
    if not path.exists() and (remedy := paths.describe_remedy(path)):
        raise NotThere(remedy)
    return path


def read_json(path: Path) -> Any:
    """Read a JSON file; BenchbookError naming it if it is missing or damaged."""
    require_path(path)
    try:
        if not path.is_file() and path.exists():
            raise OSError(f"it is {describe_kind(path)}, not a plain file")
        return json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        remedy = "run the stage that makes it again (`dvc status` says which)"
        raise BenchbookError(f"{path}: cannot be read: {error}; {remedy}") from None


def read_csv(path: Path, *columns: str) -> pd.DataFrame:
    """Read a table; BenchbookError naming the file if it is damaged or lacks one of the columns."""
    import pandas as pd

    require_path(path)
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise BenchbookError(f"{path}: cannot be read: {error}; run the stage that makes it again") from None
    if absent := ", ".join(name for name in columns if name not in table.columns):
        raise BenchbookError(f"{path}: it has no column {absent}: damaged; run the stage that makes it again")
    return table


def describe_kind(path: Path) -> str | None:
    """Kind of a path, without following a link; None for a plain file. OSError if it is absent."""
    mode = path.lstat().st_mode
    return None if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "no plain file")


def read_plain(path: Path) -> bytes:
    """Bytes of a plain file; OSError for anything else."""
    # A FIFO keeps its reader waiting for ever, a device has no end, a link leads out of the folder.
    if kind := describe_kind(path):
        raise OSError(f"{path.name}: it is {kind}, not a plain file")
    # Between the look and the opening it may have become something else.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path.name}: it is no plain file")
        return stream.read()


def walk_tree(folder: Path | str, above: str = "") -> Iterator[tuple[str, str | None]]:
    """Path and kind of everything below a folder, by name; None for a plain file."""
    with os.scandir(folder) as listed:
        entries = sorted(listed, key=lambda entry: entry.name)
    for entry in entries:
        # The folder's own list tells plain files apart: nothing more is asked about each of them.
        result = None if entry.is_file(follow_symlinks=False) else describe_kind(Path(entry.path))
        yield f"{above}{entry.name}", result
        if result == FOLDER:
            yield from walk_tree(entry.path, f"{above}{entry.name}/")


def digest_file(path: Path) -> str:
    """SHA-256 of the bytes that are on disk."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_stats(root: Path, inputs: Iterable[Path]) -> str:
    """Digest over names, sizes and times of files: to read them all would take seconds."""
    stats = {str(path.relative_to(root)): path.stat() for path in inputs}
    lines = [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in sorted(stats.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def sha256_all(folder: Path, several: Iterable[Path]) -> str:
    """One SHA-256 of several files: of their paths below a folder and their bytes, in any order."""
    lines = [f"{path.relative_to(folder).as_posix()} {digest_file(path)}\n" for path in sorted(several)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _replace_nonfinite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nonfinite(item) for item in value]
    return value
