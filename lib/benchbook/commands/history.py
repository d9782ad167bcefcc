"""A study's series: its findings of today as rows of `data/history/STUDY.csv`, and a page for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.commands import stage
from benchbook.compare import history
from benchbook.compare.sentences import count
from benchbook.core import files, load, paths
from benchbook.core.errors import BenchbookError
from benchbook.core.model import fingerprint
from benchbook.core.study import Study
from benchbook.evidence import verify

# What a study may change without being another study: words, how much is measured, what others claim.
FREE = {"title", "question", "claims", "sizes"}
FREE_OF_PLAN = {"blocks", "stop", "max_repeats", "budget_minutes", "ladder"}


def keep(study: str, place: Path) -> str:
    """Add what was measured to the study's series; return a line on what was done.

    `place` is a folder with findings.json and tidy/runs.parquet, as data/STUDY is, or an archive, which is
    checked and analysed again. The same measurement, by its first run, is kept once. BenchbookError where
    it is not there, of another study, or an archive whose files contradict each other.
    """
    if place.is_file():
        made = _of_archive(study, place)
    else:
        made = _of_folder(study, place, load.study(study), stage.commit_of_evidence(study) or "")
    if made.empty:
        raise BenchbookError(f"{place}: no finding to keep; the study's page gives the reason")
    target = paths.study(study).history
    before = read(target)
    whole = history.together([before, made])
    if len(whole) == len(before):
        return f"data/history/{target.name}: has the measurement of {made['measured_at'].iloc[0]} already"
    target.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(target, text(whole))
    many = count(whole["measured_at"].nunique(), "measurement")
    return f"data/history/{target.name}: {many}, this one kept now; commit the file"


def _of_folder(study: str, folder: Path, spec: Study, commit: str) -> pd.DataFrame:
    findings, runs = folder / "findings.json", folder / "tidy" / "runs.parquet"
    for file in (findings, runs):
        if not file.is_file():
            raise BenchbookError(
                paths.what_brings(file)
                or f"{file}: not there; name an archive, or a folder with findings and tidy"
            )
    found = json.loads(findings.read_text(encoding="utf-8"))
    if found["study"] != study:
        raise BenchbookError(f"{findings}: findings of {found['study']}, not of {study}; name that study")
    facts = folder / "facts.json"
    where = machine(files.read_json(facts)["arms"] if facts.is_file() else {})
    return history.rows(found, pd.read_parquet(runs), study, settings(spec), commit, where)


def _of_archive(study: str, file: Path) -> pd.DataFrame:
    """Return the rows of an archive, with its own settings and commit."""
    with verify.checked(file) as (checked, root):
        if checked.contents.study != study:
            raise BenchbookError(f"{file}: an archive of {checked.contents.study}; name that study")
        if checked.findings is None:
            raise BenchbookError(f"{file}: not kept, because its files contradict each other\n{checked}")
        where = paths.StudyPaths(study, root)
        spec, commit = load.study_file(where.file), checked.contents.manifest["commit"] or ""
        return _of_folder(study, where.data, spec, commit)


def read(file: Path) -> pd.DataFrame:
    """Read a series; empty where there is none yet. BenchbookError where a column is missing."""
    if not file.is_file():
        return pd.DataFrame(columns=list(history.COLUMNS))
    table = history.parse(file.read_text(encoding="utf-8"))
    if missing := [column for column in history.COLUMNS if column not in table]:
        raise BenchbookError(f"{file.name}: no column {missing[0]}; take the file from git again")
    return table[list(history.COLUMNS)]


def text(table: pd.DataFrame) -> str:
    """Return a series as CSV: eight digits, so that the same measurement is the same line everywhere."""
    return table.to_csv(index=False, float_format="%.8g", lineterminator="\n")


def machine(arms: Mapping[str, Mapping[str, Any]]) -> str:
    """Say where arms were measured: the site, and each machine once by processor, memory and system."""
    seen = []
    for facts in arms.values():
        hosts = (facts.get("hosts") or {}).values()
        seen += [one for one in (facts.get("machine"), *hosts) if one]
    parts = ("cpu_model", "memory_mib", "system")
    told = dict.fromkeys(
        "{} cores of {}, {} MiB, {}".format(one.get("cores"), *map(one.get, parts)) for one in seen
    )
    kinds = dict.fromkeys((facts.get("site") or {}).get("kind", "not known") for facts in arms.values())
    return f"site {', '.join(kinds)}: {'; '.join(told) or 'not known'}"


def settings(study: Study) -> str:
    """Return the digest of what makes it the same study: everything but words and block counts."""
    plain = study.model_dump(mode="json", exclude=FREE)
    plain["plan"] = {key: value for key, value in plain["plan"].items() if key not in FREE_OF_PLAN}
    plain["arms"] = {name: arm.setting for name, arm in study.arms.items()}
    return fingerprint(plain)


def render() -> int:
    """Render the page of every series below reports/history; return the exit code of what failed."""
    root = paths.root()
    known = sorted(file.stem for file in (root / "data" / "history").glob("*.csv"))
    pages = root / "reports" / "history"
    pages.mkdir(parents=True, exist_ok=True)
    for page in pages.glob("*.html"):
        if page.stem not in (*known, "index"):
            page.unlink()
    for name in known:
        if code := stage.series(name):
            return code
    if not known:
        print("no study has a series yet; `benchbook history STUDY` keeps its first measurement")
    return stage.series("")
