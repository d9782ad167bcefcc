"""Recorded sessions by their ids: a table of them, and the places of one that was unpacked to look at."""

import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from benchbook.api.columns import document_table
from benchbook.core.artifacts import record
from benchbook.core.study.params import Params
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import files, parallel, paths, yaml_file
from benchbook.evidence import archive, archive_store
from benchbook.read import tidy


def list_sessions(study: str) -> list[str]:
    """Ids of the recorded sessions of a study, the newest first."""
    recordeds = record.read_index().studies
    return sorted(recordeds[study].sessions, reverse=True) if study in recordeds else []


def build_sessions_table(study: str) -> pd.DataFrame:
    """A row a recorded session, the newest first: when, where, how much, and why it is not pooled."""
    index = record.read_index()
    if study not in index.studies:
        return document_table("sessions", pd.DataFrame())
    newest = index.newest(study).entry.design
    rows = [
        {
            "session": session.id,
            "processor": entry.machine.processor_model,
            **{key: getattr(entry.machine, key) for key in ("cores", "kernel")},
            **{key: getattr(entry, key) for key in ("measured", "runs", "blocks", "design")},
            "is_pooled": entry.is_pooled and entry.design == newest,
            "superseded": entry.superseded.reason if entry.superseded else None,
        }
        for session in index.sessions(study)
        for entry in [session.entry]
    ]
    return document_table("sessions", pd.DataFrame(rows[::-1]))


def find_places(study: str, session: str) -> paths.StudyPaths:
    """Places of a recorded session: as `make pages` left them, or unpacked until this process ends."""
    where = record.read_index().session(study, session).where
    return where if where.findings.is_file() else paths.StudyPaths(study, Path(_unpack(study, session).name))


def use_recorded_where_unmeasured(study: str, leaves: str) -> paths.StudyPaths:
    """Places of a study, those of a copy of its newest recorded session where the clone lacks `leaves`.

    `leaves` is one of the places. The copy becomes the root of this process and goes with it; without a
    session nothing changes.
    """
    index = record.read_index()
    if getattr(here := paths.study_paths(study), leaves).exists() or study not in index.studies:
        return here
    where = index.newest(study).where
    bring = _copy if getattr(where, leaves).exists() else _unpack
    folder = Path(bring(study, where.session_id).name)
    published = folder / "data" / "published"
    published.mkdir(parents=True, exist_ok=True)
    # An archive has the documents of its own claims; its settings name all.
    for source in (where.clone / "data" / "published").iterdir():
        if not (published / source.name).exists():
            (published / source.name).symlink_to(source)
    os.environ["BENCHBOOK_ROOT"] = str(folder)
    print(f"{study} was not measured in this clone: this is its recorded session {where.session_id}")
    return paths.study_paths(study)


# The cache keeps the folders of both; they go with the process.
@cache
def _copy(study: str, session: str) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory(prefix="benchbook-session-")
    shutil.copytree(record.read_index().session(study, session).where.base, folder.name, dirs_exist_ok=True)
    return folder


@cache
def _unpack(study: str, session: str) -> TemporaryDirectory[str]:
    print(f"{study}: unpacking its recorded session {session}, some seconds")
    packed = archive_store.bring_archive(record.read_index().session(study, session))
    folder = TemporaryDirectory(prefix="benchbook-session-")
    root = Path(folder.name)
    archive.unpack_archive(packed, root)
    where = paths.StudyPaths(study, root)
    params = validate_document(yaml_file.read_mapping(root / "params.yaml", "params.yaml"), Params)
    runs = files.read_csv(where.schedule, "run_id", "block", "position", "arm", "workload", "threads")
    with parallel.map_tasks(len(runs)) as each:
        tidy.parse_study(where.raw, where.void, runs, where.tidy, params.limits.model_dump(), each)
    return folder
