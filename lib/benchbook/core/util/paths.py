"""Places of everything, one commented line each, found from the repository's root."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from benchbook.core.util.grouping import group_by

# The folder of a study that has the settings files and manifests of its arms.
APPLIED = "applied"


_AT: ContextVar[Path | None] = ContextVar("root", default=None)


@contextlib.contextmanager
def use_root(folder: Path) -> Iterator[None]:
    """Let another folder be the root of this thread's work meanwhile."""
    before = _AT.set(folder.resolve())
    try:
        yield
    finally:
        _AT.reset(before)


def find_root() -> Path:
    """The root: of `use_root`, BENCHBOOK_ROOT, the next folder up with dvc.yaml, or the checkout."""
    if (set_here := _AT.get()) is not None:
        return set_here
    if named := os.environ.get("BENCHBOOK_ROOT"):
        return Path(named).resolve()
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / "dvc.yaml").is_file() and (folder / "studies").is_dir():
            return folder
    return Path(__file__).resolve().parents[4]


class _In:
    """A place below a folder of a study or a source, with the name of that and of a session filled in."""

    def __init__(self, place: str, folder: str = "data") -> None:
        self.place, self.folder = place, folder

    def __get__(self, places: _Places, kind: type) -> Path:
        folder: Path = getattr(places, self.folder)
        return folder / self.place.format(name=places.name, session=places.base.name)


@dataclass(frozen=True)
class _Places:
    """Common places of a study and a source: a folder of `data`, and their notebooks in it."""

    name: str
    base: Path

    data = _In("data/{name}", "base")
    """Everything the pipeline made of it."""
    notebooks = _In("notebooks")
    """Executed notebooks: the log of the stages."""
    failed = _In("failed")
    """Executed notebooks of failed stages, kept where DVC does not delete them."""


@dataclass(frozen=True)
class StudyPaths(_Places):
    """The places of one study below `data/NAME` and `reports`."""

    @property
    def file(self) -> Path:
        """The study file, in any folder of `studies`; if there is none, in `studies`."""
        files = study_files(self.base, self.name).get(self.name)
        return files[0] if files else self.base / "studies" / f"{self.name}.yaml"

    @property
    def shown(self) -> str:
        """The study file as people write it, from the root on."""
        return self.file.relative_to(self.base).as_posix()

    facts = _In("facts.json")
    """What provision found the arms to be."""
    applied = _In(APPLIED)
    """The settings files and manifests that were applied to the arms."""
    dataset = _In("dataset.json")
    """What prepare loaded and checked."""
    warm_up = _In("warm_up.json")
    """What the pilots gave for the discard."""
    pilots = _In("pilots")
    """The pilots: run folders that are never counted."""
    session = _In("session.json")
    """The seed that this session drew, and when it began."""
    schedule = _In("schedule.csv")
    """The order of runs, written before the first."""
    raw = _In("raw")
    """Valid runs, one folder each, never edited."""
    void = _In("void")
    """Voided attempts and runs of earlier settings: evidence, never data."""
    tidy = _In("tidy")
    """Parquet tables made of the run folders."""
    findings = _In("findings.json")
    """The only source of numbers in prose."""
    metrics = _In("metrics.json")
    """The effects in the form that `dvc metrics` compares."""
    plots = _In("plots")
    """The tables that `dvc plots` draws."""

    report = _In("reports/studies/{name}.html", "base")
    """The page of this study."""
    run_pages = _In("reports/runs/{name}", "base")
    """The pages of its single runs."""

    @property
    def summary(self) -> Path:
        """The answer of this study as Markdown, to be pasted."""
        return self.report.with_suffix(".md")


def study_paths(name: str) -> StudyPaths:
    """Places of one study."""
    return StudyPaths(name, find_root())


@dataclass(frozen=True)
class RecordedPaths(StudyPaths):
    """The places of a recorded session: a root of its own in `data/recorded/STUDY`, pages on the site."""

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.base.name

    @property
    def clone(self) -> Path:
        """The clone that has the record."""
        return self.base.parents[3]

    archive = _In("data/record/{name}/{session}.tar.xz", "clone")
    """Its evidence, as git has it."""
    results = _In("data/record/{name}/{session}.json", "clone")
    """Its findings and facts, as git has them."""
    pooled = _In("data/recorded/{name}/pooled.json", "clone")
    """Pooled results of all sessions of the study."""
    report = _In("reports/record/studies/{name}.html", "clone")
    run_pages = _In("reports/record/runs/{name}", "clone")


def recorded_paths(name: str, session: str) -> RecordedPaths:
    """Places of one recorded session of a study."""
    return RecordedPaths(name, find_root() / "data" / "recorded" / name / session)


def record_folder() -> Path:
    """Folder of the recorded archives and their index."""
    return find_root() / "data" / "record"


def list_studies() -> list[str]:
    """Names of all study files, sorted."""
    return sorted(study_files())


def study_files(base: Path | None = None, ending: str = "") -> dict[str, list[Path]]:
    """Study files below a root's `studies` by name, in no hidden folder; `load` takes one file a name.

    With `ending` only those whose names end so: other paths are then not made, which takes most of the time.
    """
    there: list[Path] = []
    for folder, inner, names in os.walk((base or find_root()) / "studies"):
        inner[:] = [name for name in inner if not name.startswith(".")]
        there += [Path(folder, name) for name in names if name.endswith(f"{ending}.yaml") and name[0] != "."]
    return group_by(sorted(there), lambda path: path.stem)


@dataclass(frozen=True)
class SourcePaths(_Places):
    """The places of one published source."""

    data = _In("data/audit/{name}", "base")
    audit = _In("audit.json")
    """Its claims, judged on its own tables."""
    published = _In("data/published/{name}", "base")
    """The folder that carries its tables."""
    report = _In("reports/sources/{name}.html", "base")
    """The page of this source."""


def source_paths(name: str) -> SourcePaths:
    """Places of one published source."""
    return SourcePaths(name, find_root())


def reports_folder() -> Path:
    """Folder of the site."""
    return find_root() / "reports"


def params_file() -> Path:
    """File with the scope of `dvc repro`."""
    return find_root() / "params.yaml"


def code_file(study: str) -> Path:
    """File with the code of `sites` that measuring a study runs."""
    return find_root() / "data" / "site" / "code" / f"{study}.json"


# The stages of a study in their order: its notebook, and what it leaves, as StudyPaths calls it.
STAGES = {
    "provision": ("01_provision", "facts"),
    "prepare": ("02_prepare", "dataset"),
    "warm-up": ("03_warm_up", "warm_up"),
    "run-matrix": ("04_run_matrix", "raw"),
    "parse": ("05_parse", "tidy"),
    "analyze": ("06_analyze", "findings"),
    "report": ("07_report", "report"),
}


def describe_remedy(path: Path) -> str:
    """One line on a missing file of a study and the command to run first; empty for others."""
    data = find_root() / "data"
    if not path.is_relative_to(data) or len(parts := path.relative_to(data).parts) < 2:
        return ""
    where = study_paths(parts[0])
    left_by = {getattr(where, leaves).name: notebook for notebook, leaves in STAGES.values()}
    if not (notebook := left_by.get("raw" if parts[1] == where.schedule.name else parts[1])):
        return ""
    return (
        f"data/{'/'.join(parts)} is not there yet: run `make repro STUDY={parts[0]}`, which runs every "
        f"stage, or notebooks/{notebook}.ipynb if the stages before it have run"
    )
