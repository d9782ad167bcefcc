"""A study's whole evidence as one archive with a manifest of hashes, packed and unpacked.

Packing the same evidence twice on one machine gives the same bytes. Unpacking trusts nothing: a name, a
size or a hash that is not the manifest's stops it, nothing is ever written outside the folder given, and what
it may take of disk and memory is settled before the first byte is written.
"""

import contextlib
import hashlib
import json
import lzma
import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import ValidationError

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.artifact import Document, describe_error
from benchbook.core.artifacts.run_folder import Listed
from benchbook.core.study import load
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_base import NAME
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.evidence import tarball
from benchbook.evidence.tarball import NotWhole, TarMember
from benchbook.sites.workspace import free_bytes

MANIFEST, README = "manifest.json", "README.txt"
PARTS = ("facts.json", "dataset.json", "warm_up.json", "schedule.csv", "findings.json", "metrics.json")
# Where the study file has the seed there may be none.
SESSION = "session.json"
FOLDERS = ("raw", "void", "pilots", paths.APPLIED)
# What an archive may unpack to. Ours shrink to a seventh (gz) or a fourteenth (xz) of their size; a file made
# to fill a disk shrinks to a thousandth and less.
MOST_BYTES, MOST_OF_ONE, MOST_FILES = 8_000_000_000, 256_000_000, 100_000
MOST_RATIO, ALWAYS_BYTES = 100, 64_000_000
# Ours take 217 bytes a file and more; thousands of empty ones would keep every later step busy.
LEAST_PACKED, ALWAYS_FILES = 50, 1000
# Room that must be left beside what is unpacked, for the tables that are made of it.
ROOM_BYTES = 200_000_000
MOST_NAME = 400
ABOUT = Path(__file__).with_name("about.txt").read_text(encoding="utf-8")


class ArchiveManifest(Document):
    """Content of an archive, by the place of each file in a clone, and the program that packed it."""

    format: Literal[1] = 1
    study: str
    benchbook: str
    commit: str | None
    files: dict[str, Listed]


@dataclass(frozen=True)
class Contents:
    """An archive's manifest, and the SHA-256 of the manifest itself, that stands for all of it."""

    study: str
    manifest: ArchiveManifest
    digest: str
    bytes: int


def pack_study(study: str, target: Path, commit: str | None = None) -> Path:
    """Write the evidence of a study to `target` (.tar.gz or .tar.xz), complete or not at all."""
    tarball.suffix_of(target)
    where = paths.study_paths(study)
    missing = [name for name in PARTS if not (where.data / name).is_file()]
    if missing:
        raise BenchbookError(f"data/{study}: no {', '.join(missing)}; make repro comes first")
    raw = run_folder.list_folders(where.raw)
    if broken := [f"{folder.name}: {fault}" for folder in raw for fault in folder.verify()]:
        raise BenchbookError("not exported, raw runs are not as they were written:\n  " + "\n  ".join(broken))
    places = _choose_files(where, load.load_study(study))
    listed = {name: Listed.of(file) for name, file in places.items()}
    about = ABOUT.format(study=study).encode()
    listed[README] = Listed(sha256=hashlib.sha256(about).hexdigest(), bytes=len(about))
    listed = dict(sorted(listed.items()))
    manifest = ArchiveManifest(study=study, benchbook=version("benchbook"), commit=commit, files=listed)
    first = (json.dumps(manifest.plain, indent=1, sort_keys=True) + "\n").encode()
    contents: dict[str, Path | bytes] = {**places, MANIFEST: first, README: about}
    return tarball.write_tar(target, ((f"{study}/{name}", contents[name]) for name in (MANIFEST, *listed)))


def _choose_files(where: paths.StudyPaths, study: StudySpec) -> dict[str, Path]:
    """Files of an archive by their places in it; BenchbookError for anything but a plain file."""
    parts = [*PARTS, *([SESSION] if where.session.is_file() else [])]
    chosen = [paths.params_file(), *(where.data / name for name in parts)]
    chosen += _list_files(*(where.data / name for name in FOLDERS))
    # Illustrated claims need their sources, too: the study file can't be read without.
    claims = [*study.claims, *(claim for arm in study.arms.values() for claim in arm.illustrates)]
    sources = sorted({claim.partition("/")[0] for claim in claims})
    chosen += _list_files(*(paths.source_paths(source).published for source in sources))
    places = {file.relative_to(paths.find_root()).as_posix(): file for file in chosen}
    # The study alone in its archive needs no folder, so an archive is the same wherever its study lies here.
    places[f"studies/{where.name}.yaml"] = where.file
    for file in places.values():
        if kind := files.describe_kind(file):
            raise BenchbookError(f"not exported: {file.name} is {kind}; put the plain file there")
    return places


def _list_files(*folders: Path) -> list[Path]:
    below = sorted(file for folder in folders if folder.is_dir() for file in folder.rglob("*"))
    return [file for file in below if files.describe_kind(file) != files.FOLDER]


def unpack_archive(archive: Path, into: Path) -> Contents:
    """Check all files of an archive and write them `into` a folder, not to be used after BenchbookError."""
    with open_archive(archive) as (members, allowed):
        manifest, text = _parse_manifest(next(members, None))
        study, listed = manifest.study, manifest.files
        most = min(MOST_FILES, ALWAYS_FILES + archive.stat().st_size // LEAST_PACKED)
        if len(listed) > most:
            raise BenchbookError(
                f"its manifest lists {len(listed)} files, more than the {most} that an archive of this size "
                "can honestly hold; nothing was unpacked"
            )
        if wrong := list(_find_misplaced(listed, study)):
            first = "\n  ".join(wrong[:20])
            raise BenchbookError(f"the manifest is not one that Benchbook writes:\n  {first}")
        size = sum(entry.bytes for entry in listed.values())
        _require_room(size, into, allowed)
        left = set(listed)
        for member in members:
            name = member.name.removeprefix(f"{study}/")
            if member.name != f"{study}/{name}" or name not in left:
                raise BenchbookError(f"{member.name!r}: not a file that the manifest lists, or there twice")
            wrong += _write_member(member, into / name, name, listed[name])
            left.remove(name)
        if wrong := [*wrong, *(f"{name}: missing" for name in sorted(left))]:
            first = "\n  ".join(wrong[:20])
            count = f"{len(wrong)} of {len(listed)} files"
            raise BenchbookError(f"{count} are not those of the manifest:\n  {first}")
        return Contents(study, manifest, hashlib.sha256(text).hexdigest(), size)


@contextlib.contextmanager
def open_archive(archive: Path) -> Iterator[tuple[Iterator[TarMember], int]]:
    """Members of an archive and the bytes it may unpack to; BenchbookError if it is not whole."""
    try:
        allowed = min(MOST_BYTES, ALWAYS_BYTES + MOST_RATIO * archive.stat().st_size)
        with tarball.open_tar(archive, allowed) as members:
            yield members, allowed
    except FileNotFoundError:
        raise BenchbookError(f"{archive}: no such file") from None
    except (NotWhole, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        what = f"not a whole {tarball.suffix_of(archive)}"
        raise BenchbookError(f"{archive}: {what}: {error or type(error).__name__}") from None


def _require_room(size: int, into: Path, allowed: int) -> None:
    """Refuse, before a byte is written, files that don't fit or exceed the archive's allowed size."""
    listed, free = f"{size / 1e6:.0f} MB", free_bytes(into.absolute())
    if size > allowed:
        raise BenchbookError(
            f"its manifest lists {listed}, more than the {allowed / 1e6:.0f} MB that an archive of this size "
            "can honestly hold; nothing was unpacked"
        )
    if size + ROOM_BYTES > free:
        raise BenchbookError(
            f"its files take {listed} and {ROOM_BYTES / 1e6:.0f} MB beside them, and {free / 1e6:.0f} MB are "
            "free; nothing was unpacked: make room, or set TMPDIR"
        )


def _parse_manifest(member: TarMember | None) -> tuple[ArchiveManifest, bytes]:
    """Manifest from an archive's first member, and its bytes."""
    study, _, name = (member.name if member else "").partition("/")
    if member is None or name != MANIFEST or member.size > files.MOST_JSON_BYTES:
        raise BenchbookError(f"it does not begin with STUDY/{MANIFEST}: `benchbook export` did not write it")
    if not re.fullmatch(NAME, study):
        raise BenchbookError(f"{study!r}: not the name of a study")
    text = b"".join(member.read())
    try:
        manifest = ArchiveManifest.model_validate(files.parse_json(text))
    except ValueError as error:
        why = describe_error(error) if isinstance(error, ValidationError) else error
        raise BenchbookError(f"{MANIFEST}: can't be read: {why}") from None
    if manifest.study != study:
        raise BenchbookError(f"{MANIFEST}: of another study than {study}")
    return manifest, text


def _find_misplaced(listed: dict[str, Listed], study: str) -> Iterator[str]:
    """Names that can't be unpacked: places outside an archive's, or the same place twice."""
    observations: dict[str, str] = {}
    for name, entry in listed.items():
        folded = unicodedata.normalize("NFKC", name).casefold()
        if not is_place(name, study):
            yield f"{name!r}: not a place of an archive"
        elif entry.bytes > MOST_OF_ONE:
            yield f"{name}: {entry.bytes} bytes, at most {MOST_OF_ONE}"
        elif name.endswith(".json") and entry.bytes > files.MOST_JSON_BYTES:
            yield f"{name}: {entry.bytes} bytes of JSON, at most {files.MOST_JSON_BYTES}"
        elif folded in observations:
            yield f"{name}: the same name as {observations[folded]} where upper and lower case are one"
        observations[folded] = name
    for name, written in observations.items():
        for folder in map(str, PurePosixPath(name).parents):
            if folder in observations:
                yield f"{written}: {observations[folder]} is a file already, so it can't be a folder"


def is_place(name: str, study: str) -> bool:
    """True if an archive of this study may hold a name: relative, plain, in its folders."""
    if name in (README, "params.yaml", f"studies/{study}.yaml"):
        return True
    parts = PurePosixPath(name).parts
    if "/".join(parts) != name or {"..", "."} & set(parts) or not re.fullmatch(r"[^\x00-\x1f\x7f\\:]+", name):
        return False
    if len(name) > MOST_NAME or max(len(part.encode()) for part in parts) > 255 or parts[0] != "data":
        return False
    if len(parts) == 3 and parts[1] == study:
        return parts[2] in (*PARTS, SESSION)
    return len(parts) > 3 and (parts[1] == "published" or (parts[1] == study and parts[2] in FOLDERS))


def _write_member(member: TarMember, file: Path, name: str, expected: Listed) -> Iterator[str]:
    if member.size != expected.bytes:
        yield f"{name}: {member.size} bytes, the manifest says {expected.bytes}"
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("xb") as target:
        for piece in member.read():
            target.write(piece)
    if files.digest_file(file) != expected.sha256:
        yield f"{name}: its bytes are not those of the manifest"
    elif file.suffix == ".json":
        try:
            files.parse_json(file.read_bytes())
        except ValueError as error:
            # What a killed run left may be half a file, and is evidence of just that.
            is_cut = isinstance(error, json.JSONDecodeError | UnicodeDecodeError)
            if not (is_cut and name.split("/")[2] == "void"):
                yield f"{name}: not JSON that can be read: {error}"
