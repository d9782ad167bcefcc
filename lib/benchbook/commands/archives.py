"""Commands about archives: a study's own, and those of other teams, who have measured it again."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

from benchbook.commands import stage
from benchbook.compare import reruns as judged
from benchbook.core import paths
from benchbook.core.errors import BenchbookError, InputErrors
from benchbook.core.findings import Findings, Rerun
from benchbook.evidence import archive
from benchbook.evidence import verify as checking
from benchbook.show import reruns

MOST_NOTES = 20


def export(study: str, to: Path | None) -> str:
    """Pack a study's whole evidence; return a line on it."""
    target = to or paths.root() / f"{study}.tar.gz"
    written = archive.pack(study, target, stage.commit_of_evidence(study))
    return f"{written}: {written.stat().st_size / 1e6:.1f} MB; `make verify ARCHIVE={written}` checks it"


def verify(archive: Path) -> int:
    """Check an archive; return an exit code."""
    found = checking.verify(archive)
    print(found)
    return 0 if found.is_same else 1


def rerun(place: Path, name: str | None) -> int:
    """Judge another team's findings by our own; return 1 where its archive came out otherwise here."""
    taken = read(place, name or "rerun")
    print(markdown(taken), end="")
    if name:
        print(f"kept as data/reruns/{keep(taken).name}; `make repro` shows it on the study's page")
    return int(checking.OTHER_FINDINGS in taken.notes)


def read(place: Path, name: str = "rerun") -> Rerun:
    """Return a rerun (archive, folder or findings.json) as it is kept.

    Findings of an archive are made again. BenchbookError if its files contradict each other, or if we have no
    findings of that study.
    """
    second, study, notes = checking.findings(place)
    where = paths.study(second.study)
    own = checking.study_of(where.file)
    if not where.findings.is_file():
        raise BenchbookError(
            f"data/{second.study}: no findings of our own to compare with; make repro comes first"
        )
    return Rerun(
        study=second.study,
        name=name,
        origin=place.resolve().name,
        kept=datetime.datetime.now(datetime.UTC).date().isoformat(),
        differs=None if study is None else judged.differing(own or {}, study),
        notes=notes[:MOST_NOTES],
        findings=second,
    )


def markdown(kept: Rerun) -> str:
    """Set a rerun beside our own findings of its study, as Markdown."""
    where = paths.study(kept.study)
    return reruns.markdown(Findings.read(where.findings), kept)


def keep(kept: Rerun) -> Path:
    """Write a rerun to data/reruns and return the file; InputErrors if its name is unfit or taken."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", kept.name):
        raise InputErrors([f"--keep: {kept.name}: not fit for a file; write lower case, digits and dashes"])
    file = paths.reruns() / f"{kept.study}.{kept.name}.json"
    if file.exists():
        raise InputErrors([f"--keep: {kept.name}: {file.name} is there already; choose another name"])
    kept.write(file)
    return file
