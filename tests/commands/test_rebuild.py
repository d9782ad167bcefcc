"""A recorded study is made again when something that it was made with or that was made of it has changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from benchbook.commands import code, made_again, rebuild
from benchbook.core import files, paths, record
from benchbook.core.errors import InputErrors
from tests.house import tree

NOTHING = "0" * 64


def entry(archive: Path, **more: object) -> record.Entry:
    words = dict.fromkeys(("title", "answer", "measured", "machine", "commit", "registered"), "made up")
    numbers = dict.fromkeys(("runs", "blocks", "minutes", "bytes"), 1)
    return record.Entry(**{**words, **numbers, "sha256": NOTHING, "made": {}, **more})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with two recorded studies, of which a data file and a page each are made, in this process."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    monkeypatch.setattr(made_again, "one", make)
    shutil.copytree(tree.ROOT / "notebooks", tmp_path / "notebooks")
    paths.record().mkdir(parents=True)
    for name in ("ant", "bee"):
        paths.recorded(name).archive.write_text(f"what {name} measured")
    write({})
    return tmp_path


def write(more: dict[str, object]) -> None:
    """Write the index, with something else about `ant`."""
    archives = {name: paths.recorded(name).archive for name in ("ant", "bee")}
    known = {name: entry(file, **(more if name == "ant" else {})) for name, file in archives.items()}
    record.write(record.Index(studies=known))


def make(name: str) -> list[str]:
    where = paths.recorded(name)
    files.write_json(where.findings, {"of": where.archive.read_text()})
    files.write_text(where.report, f"the page of {name}")
    files.write_text(where.run_pages / "index.html", f"the runs of {name}")
    return [f"{name}: other findings"] if "damaged" in where.archive.read_text() else []


def made(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Make the record again; return the studies that had to be, sorted."""
    capsys.readouterr()
    assert rebuild.run() == 0
    lines = capsys.readouterr().out.splitlines()
    return sorted(line.split(": ")[1] for line in lines if line.startswith("record "))


def test_only_the_studies_that_something_changed_of_are_made_again(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    ant = paths.recorded("ant")
    assert made(capsys) == ["ant", "bee"]
    assert made(capsys) == []
    ant.archive.write_text("measured again")
    assert made(capsys) == ["ant"]
    write({"registered": "Held: since ever"})
    assert made(capsys) == ["ant"]
    ant.report.write_text("edited by hand")
    assert made(capsys) == ["ant"] and ant.report.read_text() == "the page of ant"
    ant.findings.unlink()
    assert made(capsys) == ["ant"] and ant.findings.is_file()
    (root / "notebooks" / "runs.ipynb").write_text('{"cells": []}')
    assert made(capsys) == ["ant", "bee"]
    assert made(capsys) == []


def test_a_study_that_is_not_as_recorded_is_refused_by_name_until_it_is(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    ant = paths.recorded("ant")
    made(capsys)
    ant.archive.write_text("damaged")
    for _ in range(2):
        with pytest.raises(InputErrors, match="ant: other findings"):
            rebuild.run()
        assert "record 1 of 1: ant: made again, NOT as recorded" in capsys.readouterr().out
    ant.archive.write_text("what ant measured")
    assert made(capsys) == ["ant"]


def test_what_is_recorded_no_more_goes_with_its_pages(root: Path, capsys: pytest.CaptureFixture[str]):
    made(capsys)
    gone = paths.recorded("gone")
    for file in (gone.findings, gone.report, gone.run_pages / "index.html"):
        files.write_text(file, "")
    (gone.report.parent / ".gitkeep").write_text("")
    assert made(capsys) == []
    assert not gone.base.exists() and not gone.report.exists() and not gone.run_pages.exists()
    assert (gone.report.parent / ".gitkeep").is_file() and paths.recorded("ant").report.is_file()


def test_a_study_is_made_with_the_modules_its_notebooks_reach_and_the_templates(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first page and the page of a series are made of other modules: they ask for no study again."""
    package = root / "lib" / "benchbook"
    shutil.copytree(code.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code, "PACKAGE", package)
    before = rebuild._code(root)
    for name in ("show/overview.py", "compare/history.py"):
        more(package / name)
    assert rebuild._code(root) == before
    for name in ("compare/effects.py", "show/templates/page/style.css"):
        more(package / name)
        assert before != (before := rebuild._code(root)), name


def more(file: Path) -> None:
    """Change a file by one empty line."""
    with file.open("a") as stream:
        stream.write("\n")
