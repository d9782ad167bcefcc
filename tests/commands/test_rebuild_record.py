"""A session is made again when something that it was made with or that was made of it has changed."""

import os
import shutil
from pathlib import Path

import pytest

from benchbook.commands import code_fingerprint, rebuild_record, record_pages
from benchbook.compare.meta import meta_analysis as compared
from benchbook.core.artifacts import record
from benchbook.core.util import files, paths
from benchbook.evidence import sessions
from tests.compare.sessions import sessions as brought
from tests.house import tree
from tests.recorded import entry

FIRST, NEXT = "20260101T0000Z-0001", "20260102T0000Z-0002"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with two recorded studies, one of them in two sessions, made in this process."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    monkeypatch.setattr(sessions, "from_raw", make)
    monkeypatch.setattr(record.RecordedSession, "other_archive", lambda _: None)
    monkeypatch.setattr(rebuild_record, "write_joint_results", pool)
    monkeypatch.setattr(record_pages, "render_pages", render)
    shutil.copytree(tree.ROOT / "notebooks", tmp_path / "notebooks")
    for name, session in (("ant", FIRST), ("ant", NEXT), ("bee", FIRST)):
        files.write_text(paths.recorded_paths(name, session).archive, f"what {name} measured")
        files.write_text(paths.recorded_paths(name, session).results, "{}")
    write({})
    return tmp_path


def write(more: dict[str, object], newest: tuple[str, str] = ("ant", NEXT)) -> None:
    """Write the index, with something else about the newest session of a study."""
    for name, ids in {"ant": (FIRST, NEXT), "bee": (FIRST,)}.items():
        entries = {session: entry(**(more if (name, session) == newest else {})) for session in ids}
        record.write_study(name, record.Recorded(title="made up", sessions=entries))


def make(session: record.RecordedSession, root: Path) -> tuple[list[str], list[str]]:
    where = session.where
    files.write_json(where.findings, {"of": where.archive.read_text()})
    is_other = "other" in where.archive.read_text()
    return [], ["qps: 1, now 2"] if is_other else []


def pool(name: str, index: record.Index) -> bool:
    made = index.newest(name).where.findings.read_text()
    found = compared.pool_sessions(name, brought(-0.3 if "turned" in made else 0.3))
    found.model_copy(update={"title": made}).write(index.newest(name).where.pooled)
    return True


def render(where: paths.RecordedPaths, entry: record.Entry, differs: list[str]) -> None:
    files.write_text(where.report, f"the page of {where.name}")
    files.write_text(where.run_pages / "index.html", f"the runs of {where.name}")


def made(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Make the record again; return the sessions that had to be, sorted."""
    capsys.readouterr()
    assert rebuild_record.rebuild_record() == []
    lines = capsys.readouterr().out.splitlines()
    return sorted(line.split(": ")[1] for line in lines if line.startswith("record "))


def test_only_the_sessions_that_something_changed_of_are_made_again(root, capsys):
    ant = paths.recorded_paths("ant", NEXT)
    newest = f"ant {NEXT}"
    assert made(capsys) == [newest, f"bee {FIRST}"]
    assert made(capsys) == []
    ant.archive.write_text("measured again")
    assert made(capsys) == [newest]
    write({"registered": "Held: since ever"})
    assert made(capsys) == [newest]
    ant.report.write_text("edited by hand")
    assert made(capsys) == [] and ant.report.read_text() == "the page of ant", "the page alone is rendered"
    ant.findings.unlink()
    assert made(capsys) == [newest] and ant.findings.is_file()
    (root / "notebooks" / "runs.ipynb").write_text('{"cells": []}')
    files.write_text(ant.report, "as it was")
    assert made(capsys) == [] and ant.report.read_text() == "the page of ant", "pages are no evidence"


def test_a_page_is_rendered_again_when_its_answer_turns_in_another_study(root, capsys):
    made(capsys)
    paths.recorded_paths("bee", FIRST).archive.write_text("turned")
    write({"doubts": ("turned",)}, ("bee", FIRST))
    rebuild_record.rebuild_record()
    told = capsys.readouterr().out
    assert f"record 1 of 1: bee {FIRST}" in told
    assert "page of ant: rendered" in told and "page of bee: rendered" in told
    assert made(capsys) == []


def test_a_value_that_differs_is_told_until_it_is_as_recorded_and_takes_no_page_away(root, capsys):
    ant = paths.recorded_paths("ant", NEXT)
    made(capsys)
    assert rebuild_record.rebuild_record() == []
    ant.archive.write_text("other values")
    for _ in range(2):
        assert rebuild_record.rebuild_record() == ["qps: 1, now 2"]
    capsys.readouterr()
    assert rebuild_record.run_command(write=False) == 0
    assert capsys.readouterr().err.endswith("Not as recorded:\nqps: 1, now 2\n")
    assert ant.report.is_file() and paths.recorded_paths("bee", FIRST).report.is_file()
    ant.archive.write_text("what ant measured")
    assert made(capsys) == [f"ant {NEXT}"] and rebuild_record.rebuild_record() == []


def test_what_is_recorded_no_more_goes_with_its_pages(root: Path, capsys: pytest.CaptureFixture[str]):
    made(capsys)
    gone = paths.recorded_paths("gone", FIRST)
    for file in (gone.findings, gone.report, gone.run_pages / "index.html"):
        files.write_text(file, "")
    (gone.report.parent / ".gitkeep").write_text("")
    assert made(capsys) == []
    assert not gone.base.parent.exists() and not gone.report.exists() and not gone.run_pages.exists()
    assert (gone.report.parent / ".gitkeep").is_file() and paths.recorded_paths("ant", NEXT).report.is_file()


def test_a_change_of_the_code_asks_for_what_is_made_with_it_alone(root, monkeypatch):
    """The first page is made of other modules; those of pages alone ask for no session again."""
    package = root / "lib" / "benchbook"
    shutil.copytree(code_fingerprint.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_fingerprint, "PACKAGE", package)
    before = rebuild_record._digest_code(root)
    for name in ("show/claims_page.py", "show/home_page.py"):
        more(package / name)
    assert rebuild_record._digest_code(root) == before
    for name in ("show/templates/page/style.css", "show/table.py", "compare/meta/prediction_check.py"):
        more(package / name)
        after = rebuild_record._digest_code(root)
        assert after.evidence == before.evidence and after.pages != before.pages, name
        before = after
    for name in ("compare/inference/decisions.py", "evidence/recompute.py"):
        more(package / name)
        after = rebuild_record._digest_code(root)
        assert after.evidence != before.evidence and after.pages != before.pages, name
        before = after


def more(file: Path) -> None:
    """Change a file by one empty line."""
    with file.open("a") as stream:
        stream.write("\n")
