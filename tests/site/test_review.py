"""What a reviewer sees: notebooks by cell, keys with both values, findings side by side."""

import json
import os
import re
import subprocess
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup

from benchbook.commands import review
from benchbook.core.util.errors import BenchbookError
from benchbook.show.results_view import describe_row
from tests.compare.sessions import sessions
from tests.found import changed, finding, findings, level
from tests.goldens import assert_golden_case, assert_page
from tests.recorded import entry
from tests.site.conftest import STUDY

# Ours is −10 %, −12 to −8 %.
FOUND = finding()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    for folder in ("studies", "notebooks", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "studies" / "made.yaml").write_text(STUDY)
    (tmp_path / "params.yaml").write_text("studies: [made]\n")
    cells = [nbformat.v4.new_markdown_cell("## The findings", id="first")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "notebooks" / "look.ipynb")
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    return tmp_path


def git(clone: Path, *argv: str) -> None:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", "-C", clone, *argv], check=True, env=os.environ | who)


def commit(clone: Path) -> None:
    git(clone, "add", "-f", ".")
    git(clone, "commit", "-qm", "x")


def test_keys_notebooks_and_new_findings_stand_on_one_page_without_network(clone):
    study = clone / "studies" / "made.yaml"
    study.write_text(STUDY.replace("threads: [4]\nplan", "threads: [4, 8]\nplan"))
    notebook = clone / "notebooks" / "look.ipynb"
    notebook.write_text(notebook.read_text().replace("## The findings", "## <script>alert(1)</script>"))
    (clone / "lib").mkdir()
    (clone / "lib" / "new.py").write_text("print('<b>')\n")
    (clone / "data" / "made").mkdir()
    findings(FOUND).write(clone / "data" / "made" / "findings.json")
    text = review.write_review("main").read_text()
    assert_page("review.txt", re.sub(r"\b[0-9a-f]{7,}\b", "COMMIT", text))
    page = BeautifulSoup(text, "html.parser")
    assert page.select("pre .added")[-1].get_text() == "+print('<b>')"
    assert len(page.find_all("script")) == 1 and "http" not in page.style.string


def test_a_study_that_moved_to_another_folder_is_compared_with_itself(clone):
    folder = clone / "studies" / "pool"
    folder.mkdir()
    (clone / "studies" / "made.yaml").rename(folder / "made.yaml")
    assert "No key changed." in review.write_review("main").read_text()
    (folder / "made.yaml").write_text(STUDY.replace("threads: [4]\nplan", "threads: [4, 8]\nplan"))
    page = BeautifulSoup(review.write_review("main").read_text(), "html.parser")
    (row,) = page.find(id="keys").find_next("tbody").find_all("tr")
    assert [cell.get_text() for cell in row.find_all(["th", "td"])] == [
        "studies/pool/made.yaml: threads", "[4]", "[4, 8]"]  # fmt: skip


def test_nothing_changed_is_said(clone):
    text = BeautifulSoup(review.write_review("main").read_text(), "html.parser").get_text()
    assert "No key changed." in text and "No notebook changed." in text and "No file changed." in text


def test_an_unknown_base_is_refused(clone):
    with pytest.raises(BenchbookError) as refused:
        review.write_review("nowhere")
    assert_golden_case("made_site.txt", "review: an unknown base", str(refused.value))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, "the same"),
        ({"effect": -0.11}, "numbers moved"),
        ({"label": "not shown"}, "label changed"),
        ({"verdict": "confirmed"}, "verdict changed"),
    ],
)
def test_what_changed_in_a_finding(values, told):
    (row,) = review.side_by_side(findings(FOUND), findings(changed(FOUND, **values)))
    assert row[-1] == told


def test_an_effect_that_depends_on_threads_has_its_numbers_at_each_level():
    """Before, such a finding was `by threads` without a number."""
    levels = [level(1, -0.24, -0.29, -0.18, label="lower"), level(8, 0.06, -0.10, 0.26)]
    found = changed(FOUND, headline=False, label="depends on threads", threads=[1, 8], levels=levels)
    rows = [(row.threads, describe_row(row)) for _, row, *_ in review.side_by_side(None, findings(found))]
    assert [(threads, text.replace("\N{NO-BREAK SPACE}", " ")) for threads, text in rows] == [
        (1, "−24.0 % [−29.0, −18.0] ▼ (n = 5)"), (8, "+6.0 % [−10.0, +26.0] ~ (n = 5)")]  # fmt: skip


def test_findings_of_other_inputs_are_called_stale(clone, monkeypatch):
    status = {
        "analyze@made": [{"changed deps": {"lib/benchbook/compare": "modified"}}],
        "report@made": [{"changed deps": {"lib/benchbook/show": "modified"}}],
        "parse@made": [{"changed outs": {"data/made/tidy": "not in cache"}}],
    }
    done = subprocess.CompletedProcess([], 0, json.dumps(status), "")
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", lambda *_, **__: done)
        assert review.find_stale() == {"made": ["analyze"]}
    monkeypatch.setattr(review, "find_stale", lambda: {"made": ["analyze"]})
    (clone / "data" / "made").mkdir()
    findings(FOUND).write(clone / "data" / "made" / "findings.json")
    page = BeautifulSoup(review.write_review("main").read_text(), "html.parser")
    (caption,) = [text for text in page.stripped_strings if "stale" in text]
    assert_golden_case("made_site.txt", "review: findings of other inputs", caption)


def test_the_record_is_reviewed_by_sessions_and_what_they_say_together(clone):
    """One session of −18 %; then a second of −15 %: the mean moves, and sessions did it, not the code."""

    def record(brought: list) -> None:
        base = clone / "data" / "record"
        entries = {}
        for place, one in enumerate(brought):
            session = f"2026110{place}T0600Z-0001"
            file = base / "made" / f"{session}.json"
            facts = {"study": "made", "arms": one.facts}
            results = {"findings": one.findings.plain, "facts": facts, "design": {}}
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(results))
            machine = {"cores": 2, "processor": f"P{place}", "site": "local"}
            values = {"measured": f"{one.session.measured}Z", "design": "a" * 12, "machine": machine}
            entries[session] = entry(**values).model_dump(mode="json")
        (base / "made" / "index.json").write_text(json.dumps({"title": "Made", "sessions": entries}))

    both = sessions(-0.2, -0.16)
    record(both[:1])
    commit(clone)
    record(both)
    page = BeautifulSoup(review.write_review("HEAD").read_text(), "html.parser")
    (added,) = page.find(id="record").find_next("tbody").find_all("tr")
    assert "made" in added.get_text() and "added" in added.get_text()
    row = page.find(id="record-made").find_next("tbody").find("tr").get_text(" ").replace("\xa0", " ")
    assert "(1 session)" in row and "(2 sessions)" in row and "(sessions)" in row


def test_a_new_section_is_one_row_and_a_changed_value_another():
    then, now = {"arms": {"a": {"x": 1}}}, {"arms": {"a": {"x": 2}, "b": {"x": 1, "y": 2}}}
    assert list(review.diff_keys(then, now)) == [
        ["arms.a.x", "1", "2"], ["arms.b", "not there", '{"x": 1, "y": 2}']]  # fmt: skip
