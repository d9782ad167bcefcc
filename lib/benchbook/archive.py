"""A study's whole evidence as one archive with a manifest of hashes, packed and unpacked.

Packing the same evidence twice on one machine gives the same bytes. Unpacking trusts nothing: a name, a
size or a hash that is not the manifest's stops it, and nothing is ever written outside the folder given.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import IO, Any

from benchbook.core import files, load, paths, runfolder
from benchbook.core.errors import BenchbookError
from benchbook.core.study_sections import NAME

FORMAT = 1
MANIFEST, README = "manifest.json", "README.txt"
_PARTS = ("facts.json", "dataset.json", "warm_up.json", "schedule.csv", "findings.json", "metrics.json")
_FOLDERS = ("raw", "void", "pilots", "kubernetes")
_MOST_MANIFEST = 200_000_000
_ABOUT = """The evidence of the Benchbook study {study}: raw files as they came, and what was found in them.

manifest.json has the SHA-256 of every file. In a clone of Benchbook,

    make verify ARCHIVE=path/to/this.tar.gz

checks all of them, runs parse and analyze again from these files alone, and says whether findings.json is
the same byte for byte.
"""


@dataclass(frozen=True)
class Contents:
    """An archive's manifest, and the SHA-256 of the manifest itself, which stands for all of it."""

    study: str
    manifest: dict[str, Any]
    digest: str
    bytes: int


def pack(study: str, target: Path, commit: str | None = None) -> Path:
    """Write the evidence of a study to `target` (.tar.gz), complete or not at all.

    Raises BenchbookError if something is missing or a run folder is not what its manifest says.
    """
    spec, where, root = load.study(study), paths.study(study), paths.root()
    missing = [name for name in _PARTS if not (where.data / name).is_file()]
    if missing:
        raise BenchbookError(f"data/{study}: no {', '.join(missing)}; make repro comes first")
    broken = [
        f"{folder.name}: {fault}" for folder in runfolder.listing(where.raw) for fault in folder.verify()
    ]
    if broken:
        raise BenchbookError("not exported, raw runs are not as they were written:\n  " + "\n  ".join(broken))
    chosen = [where.file, paths.params(), *(where.data / name for name in _PARTS)]
    chosen += _below(*(where.data / name for name in _FOLDERS))
    chosen += _below(*(paths.published(source) for source in _sources(spec.claims)))
    named = {str(file.relative_to(root)): file.read_bytes() for file in chosen}
    named[README] = _ABOUT.format(study=study).encode()
    listed = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in sorted(named.items())
    }
    manifest = {"format": FORMAT, "study": study, "benchbook": version("benchbook"), "commit": commit,
                "files": listed}  # fmt: skip
    first = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    with part.open("wb") as stream:
        _write(stream, study, {MANIFEST: first, **dict(sorted(named.items()))})
    part.replace(target)
    return target


def _sources(claims: Any) -> list[str]:
    return sorted({claim.partition("/")[0] for claim in claims})


def _below(*folders: Path) -> list[Path]:
    return sorted(file for folder in folders for file in folder.rglob("*") if file.is_file())


def _write(stream: IO[bytes], study: str, contents: dict[str, bytes]) -> None:
    """Write a tar with nothing of this machine or this day in it: no owner, no time, no file name."""
    with gzip.GzipFile("", "wb", 6, stream, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"{study}/{name}")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))


def unpack(archive: Path, into: Path) -> Contents:
    """Check every file of an archive against its manifest and write it below `into`.

    Raises BenchbookError with all that is wrong; what stands in `into` then is not to be used.
    """
    try:
        with tarfile.open(archive, "r:gz") as tar:
            return _unpack(tar, into)
    except FileNotFoundError:
        raise BenchbookError(f"{archive}: no such file") from None
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, OSError) as error:
        raise BenchbookError(f"{archive}: not a whole .tar.gz: {error or type(error).__name__}") from None


def _unpack(tar: tarfile.TarFile, into: Path) -> Contents:
    entries = iter(tar)
    study, text = _first(tar, next(entries, None))
    manifest = _manifest(text, study)
    listed = manifest["files"]
    wrong = [f"{name}: not a place of an archive" for name in listed if not is_place(name, study)]
    if wrong:
        raise BenchbookError("the manifest is not one of ours:\n  " + "\n  ".join(wrong[:20]))
    left = dict(listed)
    for entry in entries:
        name = entry.name.removeprefix(f"{study}/")
        if entry.name != f"{study}/{name}" or name not in left or not entry.isreg():
            raise BenchbookError(f"{entry.name!r}: not a file that the manifest lists, or there twice")
        wrong += _member(tar, entry, into / name, name, left.pop(name))
    wrong += [f"{name}: missing" for name in left]
    if wrong:
        raise BenchbookError(
            f"{len(wrong)} of {len(listed)} files are not those of the manifest:\n  "
            + "\n  ".join(wrong[:20])
        )
    size = sum(one["bytes"] for one in listed.values())
    return Contents(study, manifest, hashlib.sha256(text).hexdigest(), size)


def _first(tar: tarfile.TarFile, entry: tarfile.TarInfo | None) -> tuple[str, bytes]:
    study, _, name = (entry.name if entry else "").partition("/")
    if entry is None or name != MANIFEST or not entry.isreg() or entry.size > _MOST_MANIFEST:
        raise BenchbookError(f"the archive does not begin with STUDY/{MANIFEST}: it is none of ours")
    if not re.fullmatch(NAME, study):
        raise BenchbookError(f"{study!r}: not the name of a study")
    stream = tar.extractfile(entry)
    return study, stream.read() if stream else b""


def _manifest(text: bytes, study: str) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
        known = manifest["format"] == FORMAT and manifest["study"] == study
        sound = all(
            re.fullmatch("[0-9a-f]{64}", one["sha256"]) and type(one["bytes"]) is int
            for one in manifest["files"].values()
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BenchbookError(f"{MANIFEST}: can't be read: {type(error).__name__}: {error}") from None
    if not (known and sound):
        raise BenchbookError(f"{MANIFEST}: of another format, or of another study than {study}")
    return manifest


def is_place(name: str, study: str) -> bool:
    """Say whether a name is one that an archive of this study may hold: relative, plain, in its folders."""
    if name in (README, "params.yaml", f"studies/{study}.yaml"):
        return True
    parts = PurePosixPath(name).parts
    if "/".join(parts) != name or {"..", "."} & set(parts) or not re.fullmatch(r"[^\x00-\x1f\x7f\\:]+", name):
        return False
    return len(parts) > 2 and parts[0] == "data" and parts[1] in (study, "published")


def _member(
    tar: tarfile.TarFile, entry: tarfile.TarInfo, file: Path, name: str, expected: dict[str, Any]
) -> Iterator[str]:
    if entry.size != expected["bytes"]:
        yield f"{name}: {entry.size} bytes, the manifest says {expected['bytes']}"
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    stream = tar.extractfile(entry)
    with file.open("xb") as target:
        while stream and (piece := stream.read(1 << 20)):
            target.write(piece)
    if files.sha256(file) != expected["sha256"]:
        yield f"{name}: its bytes are not those of the manifest"
