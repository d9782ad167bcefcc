"""Check an archive of a study: its hashes, what its files prove of each other, its findings made again."""

from __future__ import annotations

import contextlib
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchbook.core import files, load, paths
from benchbook.core.errors import BenchbookError
from benchbook.evidence import archive, proof, remake
from benchbook.show.markup import plain

_SHOWN, _WIDTH, _INDENT = 30, 110, 14
_SKEW = "made here by benchbook {here}; at the archive's own commit they should be the same"
OTHER_FINDINGS = "Its own findings are not what its runs give here, and it is judged by what they give."
NO_RUNS = "It came without its runs: nothing of it was made again or held against anything."


@dataclass(frozen=True)
class Verified:
    """What a check found: the archive's contents, what its files prove, how what was made again differs.

    `findings` are those made here from its runs, `study` is its study file; both are None where the files
    contradict each other, since nothing is made of them then.
    """

    contents: archive.Contents
    proof: proof.Proof
    differences: tuple[str, ...] = ()
    findings: dict[str, Any] | None = None
    study: dict[str, Any] | None = None

    @property
    def is_same(self) -> bool:
        """Whether nothing contradicts anything, and the findings are the same the same values."""
        return not self.proof.wrong and not self.differences

    def __str__(self) -> str:
        manifest = self.contents.manifest
        made = f"benchbook {manifest['benchbook']}, commit {manifest['commit'] or 'not known'}"
        skew = _SKEW.format(here=version("benchbook"))
        lines = [
            *_listed("study", [f"{self.contents.study}, made by {made}"]),
            *_listed("hashes", [f"all {len(manifest['files'])} files are those of the manifest "
                                f"({self.contents.bytes / 1e6:.1f} MB)"]),
            *_listed("manifest", [f"sha256 {self.contents.digest}"]),
        ]  # fmt: skip
        if self.proof.wrong:
            lines += _listed("runs", ["they contradict each other or the files beside them:"])
            lines += _listed("WRONG", self.proof.wrong)
            lines += _listed("findings", [f"NOT made again, because the runs contradict each other; {skew}"])
        else:
            lines += _listed(
                "runs", ["plans, schedule, facts, data, pilots and evidence agree with each other"]
            )
            again = "made again from the raw files:"
            if self.differences:
                lines += _listed("findings", [f"{again} NOT the same", *self.differences, skew])
            else:
                lines += _listed("findings", [f"{again} the same values"])
        lines += _listed("noted", self.proof.noted)
        return "\n".join([*lines, *_listed("not proven", self.proof.unproven)])


def _listed(title: str, texts: Sequence[str]) -> Iterator[str]:
    """Give texts below each other behind a title; what they hold of control characters is not obeyed."""
    more = len(texts) - _SHOWN
    shown = [*texts[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
    for number, text in enumerate(shown):
        first = (title if number == 0 else "").ljust(_INDENT)
        one_line = " ".join(plain(text).split())
        yield textwrap.fill(
            *(one_line, _WIDTH),
            initial_indent=first,
            subsequent_indent=" " * (_INDENT + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )


def verify(file: Path) -> Verified:
    """Check an archive in a folder of its own, and analyse it again; nothing of it stays."""
    with checked(file) as (found, _):
        return found


@contextlib.contextmanager
def checked(file: Path) -> Iterator[tuple[Verified, Path]]:
    """Yield what a check of an archive found, and the folder that it stands in until the end.

    Below the folder's data/STUDY are its tables and findings as made here, unless its files contradict each
    other. Raises BenchbookError as `verify` does.
    """
    with tempfile.TemporaryDirectory(prefix="benchbook-verify-") as folder:
        root = Path(folder)
        contents = archive.unpack(file, root)
        where = paths.StudyPaths(contents.study, root)
        remake.complete(contents.study, root)
        proved = proof.prove(root, contents.study, paths.root())
        if proved.wrong:
            yield Verified(contents, proved), root
            return
        found = remake.compared(contents.study, root)
        with paths.at(root):
            spec = study_of(where.file)
        yield Verified(contents, proved, found, files.read_json(where.findings), spec), root


def findings(place: Path) -> tuple[dict[str, Any], dict[str, Any] | None, list[str]]:
    """Return the findings, the study file where there is one, and what to know of them.

    Of an archive they are made again from its runs; of a folder or a findings.json they are as they came.
    BenchbookError for an archive whose files contradict each other.
    """
    if place.is_file() and place.suffix == ".json":
        return files.read_json(place), None, [NO_RUNS]
    if place.is_dir():
        found: Sequence[Path] = sorted([*place.glob("findings.json"), *place.glob("data/*/findings.json")])
        if len(found) != 1:
            raise BenchbookError(f"{place}: {len(found)} findings.json in it; name the folder of one study")
        study = paths.StudyPaths(found[0].parent.name, found[0].parents[2]).file
        return files.read_json(found[0]), study_of(study), [NO_RUNS]
    checked = verify(place)
    if checked.findings is None:
        raise BenchbookError(f"{place}: not judged, because its files contradict each other\n{checked}")
    notes = [OTHER_FINDINGS] if checked.differences else []
    return checked.findings, checked.study, [*notes, *checked.proof.noted]


def study_of(file: Path) -> dict[str, Any] | None:
    """Read a study file wherever it is; None if it is not there."""
    return load.study_file(file).model_dump(mode="json") if file.is_file() else None
