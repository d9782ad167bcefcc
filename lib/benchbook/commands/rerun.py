"""Take another team's rerun of a study: judge it by our own findings, keep it for the study's page."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

from benchbook.compare import reruns as judged
from benchbook.core import files, paths
from benchbook.core.errors import BenchbookError, InputErrors
from benchbook.evidence import verify
from benchbook.show import reruns

MOST_NOTES = 20


def read(place: Path, name: str = "rerun") -> dict[str, Any]:
    """Return a rerun (archive, folder or findings.json) as it is kept.

    `study`, `name`, `origin` (the file's name), `kept` (the day), `findings`, `differs`: the sections of its
    study file that are not ours (None: without one), and `notes` of its check. Findings of an archive are
    made again. BenchbookError if its files contradict each other, or if we have no findings of that study.
    """
    second, study, notes = verify.findings(place)
    where = paths.study(second["study"])
    own = verify.study_of(where.file)
    if not where.findings.is_file():
        raise BenchbookError(
            f"data/{second['study']}: no findings of our own to compare with; make repro comes first"
        )
    return {
        "study": second["study"],
        "name": name,
        "origin": place.resolve().name,
        "kept": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "differs": None if study is None else judged.differing(own or {}, study),
        "notes": notes[:MOST_NOTES],
        "findings": second,
    }


def markdown(kept: dict[str, Any]) -> str:
    """Set a rerun beside our own findings of its study, as Markdown."""
    where = paths.study(kept["study"])
    return reruns.markdown(files.read_json(where.findings), kept)


def keep(kept: dict[str, Any]) -> Path:
    """Write a rerun to data/reruns and return the file; InputErrors if its name is unfit or taken."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", kept["name"]):
        raise InputErrors(
            [f"--keep: {kept['name']}: not fit for a file; write lower case, digits and dashes"]
        )
    file = paths.reruns() / f"{kept['study']}.{kept['name']}.json"
    if file.exists():
        raise InputErrors([f"--keep: {kept['name']}: {file.name} is there already; choose another name"])
    files.write_json(file, kept)
    return file
