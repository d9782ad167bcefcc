"""Commands about a study's whole evidence as one archive."""

from __future__ import annotations

from pathlib import Path

from benchbook.commands import stage
from benchbook.core.util import paths
from benchbook.evidence import archive
from benchbook.evidence import verify as checking


def export_archive(study: str, to: Path | None) -> str:
    """Pack a study's whole evidence; return a line on it."""
    target = to or paths.find_root() / f"{study}.tar.gz"
    written = archive.pack_study(study, target, stage.commit_of_evidence(study))
    return f"{written}: {written.stat().st_size / 1e6:.1f} MB; `make verify ARCHIVE={written}` checks it"


def verify_archive(archive: Path) -> int:
    """Check an archive; return an exit code."""
    verified = checking.verify_archive(archive)
    print(verified)
    return 0 if verified.is_same else 1
