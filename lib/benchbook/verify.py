"""Check an archive of a study: every hash, and whether its raw files still give its findings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchbook import archive
from benchbook.core import files, load, paths
from benchbook.core.errors import BenchbookError

STAGES = ("parse", "analyze")
_SHOWN = 12


@dataclass(frozen=True)
class Verified:
    """What a check found: the archive's contents, and the differences of the findings made again."""

    contents: archive.Contents
    differences: tuple[str, ...]
    is_same: bool

    def __str__(self) -> str:
        manifest = self.contents.manifest
        made = f"benchbook {manifest['benchbook']}, commit {manifest['commit'] or 'not known'}"
        lines = [
            f"study         {self.contents.study}, made by {made}",
            f"hashes        all {len(manifest['files'])} files are those of the manifest "
            f"({self.contents.bytes / 1e6:.1f} MB)",
            f"manifest      sha256 {self.contents.digest}",
        ]
        if self.is_same:
            lines.append("findings      made again from the raw files: the same, byte for byte")
        else:
            lines.append("findings      made again from the raw files: NOT the same")
            lines += [f"              {one}" for one in self.differences[:_SHOWN]]
            more = len(self.differences) - _SHOWN
            lines += [f"              and {more} more"] if more > 0 else []
            lines.append(
                f"              made here by benchbook {version('benchbook')}; at the archive's own commit "
                "they should be the same"
            )
        return "\n".join(lines)


def verify(file: Path) -> Verified:
    """Unpack an archive into a folder of its own, check it, analyse it again; nothing of it stays.

    Raises BenchbookError where it is not whole or can't be analysed.
    """
    with tempfile.TemporaryDirectory(prefix="benchbook-verify-") as folder:
        root = Path(folder)
        contents = archive.unpack(file, root)
        where = paths.StudyPaths(contents.study, root)
        claimed = where.findings.with_name("findings.archive.json")
        try:
            where.findings.rename(claimed)
        except FileNotFoundError:
            raise BenchbookError(f"{file}: no findings.json in it") from None
        make_root(root, contents.study)
        for stage in STAGES:
            _run(stage, contents.study, root)
        before, after = claimed.read_bytes(), where.findings.read_bytes()
        if before == after:
            return Verified(contents, (), True)
        return Verified(contents, tuple(differences(json.loads(before), json.loads(after))), False)


def make_root(root: Path, study: str) -> None:
    """Turn an unpacked archive into a place where stages run: our notebooks, its settings and study."""
    (root / "notebooks").symlink_to(paths.root() / "notebooks")
    yaml = YAML(typ="safe")
    settings = yaml.load((root / "params.yaml").read_text(encoding="utf-8")) or {}
    published = root / "data" / "published"
    sources = sorted(one.name for one in published.iterdir()) if published.is_dir() else []
    with (root / "params.yaml").open("w", encoding="utf-8") as stream:
        yaml.dump({**settings, "studies": [study], "sources": sources}, stream)


def _run(stage: str, study: str, root: Path) -> None:
    argv = [sys.executable, "-P", "-m", "benchbook.cli", "stage", stage, study]
    done = subprocess.run(
        argv, env={**os.environ, "BENCHBOOK_ROOT": str(root)}, cwd=root, capture_output=True, text=True
    )
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise BenchbookError(f"every hash is right, but {stage} fails on these files: {said}")


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Name every value that differs between two JSON documents."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from differences(before.get(key), after.get(key), f"{place}.{key}" if place else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif before != after:
        yield f"{place}: {_short(before)} in the archive, {_short(after)} here"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def findings(place: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Read the findings, and the study file where there is one, of an archive, a folder or findings.json."""
    if place.is_file() and place.suffix == ".json":
        return files.read_json(place), None
    if place.is_dir():
        found: Sequence[Path] = sorted([*place.glob("findings.json"), *place.glob("data/*/findings.json")])
        if len(found) != 1:
            raise BenchbookError(f"{place}: {len(found)} findings.json in it; name the folder of one study")
        study = found[0].parents[2] / "studies" / f"{found[0].parent.name}.yaml"
        return files.read_json(found[0]), study_of(study)
    with tempfile.TemporaryDirectory(prefix="benchbook-rerun-") as folder:
        contents = archive.unpack(place, Path(folder))
        where = paths.StudyPaths(contents.study, Path(folder))
        return files.read_json(where.findings), study_of(where.file)


def study_of(file: Path) -> dict[str, Any] | None:
    """Read a study file wherever it is; None if it is not there."""
    return load.study_file(file).model_dump(mode="json") if file.is_file() else None
