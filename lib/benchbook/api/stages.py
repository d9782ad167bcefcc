"""How far a study has come: what each stage leaves, whether it is there, and the command that brings it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchbook.api.columns import documented
from benchbook.core import paths


def table(places: paths.StudyPaths, runs: int, planned: int | None) -> pd.DataFrame:
    """Return stage, notebook, leaves, is_done and detail, one row a stage."""
    rows = []
    for stage, (notebook, leaves) in paths.STAGES.items():
        place: Path = getattr(places, leaves)
        is_done, detail = place.exists(), ""
        if leaves == "raw" and is_done:
            is_done, detail = runs == planned, f"{runs} of {planned or 'unknown'} runs"
        rows.append((stage, f"notebooks/{notebook}.ipynb", _short(places, place), is_done, detail))
    columns = ["stage", "notebook", "leaves", "is_done", "detail"]
    return documented("stages", pd.DataFrame(rows, columns=columns))


def next_step(places: paths.StudyPaths) -> str:
    """Return the command that brings what is missing, or nothing if findings and page are there."""
    if places.findings.is_file() and places.report.is_file():
        return ""
    return command(places.name)


def command(name: str) -> str:
    """Return the command that measures one study and renders its page."""
    return f"make repro STUDY={name}"


def absent(places: paths.StudyPaths, place: Path) -> str:
    """Say that a file is not there yet, and what brings it."""
    return f"{places.name}: {_short(places, place)} is not there yet; {command(places.name)}"


def _short(places: paths.StudyPaths, place: Path) -> str:
    return str(place.relative_to(places.base))
