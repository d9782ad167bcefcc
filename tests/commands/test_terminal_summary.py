"""What a terminal says at the end of the pipeline: the answer, what it rests on, what goes on."""

import re
import shutil
from pathlib import Path

import pytest

from benchbook.commands import terminal_summary
from benchbook.core.artifacts import record
from benchbook.evidence import archive
from tests.found import finding, findings
from tests.goldens import assert_golden
from tests.house import tree

# The widest interval is ± 4.0 points, of five blocks at 98 %.
WIDE = finding(id="w.b.qps", low=-0.14, high=-0.06)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone without anything measured."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    return tmp_path


def planned(clone: Path, study: str, runs: int, kept: int) -> None:
    data = clone / "data" / study
    (data / "raw").mkdir(parents=True)
    names = [f"b01-{number}" for number in range(runs)]
    (data / "schedule.csv").write_text("run_id\n" + "".join(f"{name}\n" for name in names))
    for name in [*names[:kept], "b01-99.part", "of-an-earlier-schedule"]:
        (data / "raw" / name).mkdir()


def test_what_was_kept_is_counted_when_it_is_stopped(clone: Path):
    """Of the folders, one is half a run and one is of a schedule that is gone: neither is counted."""
    planned(clone, "own", 12, 4)
    planned(clone, "done", 3, 3)
    for studies, kept in (
        (["new"], "nothing was measured yet"),
        (["own"], "4 of 12 runs kept"),
        (["done"], "all runs of done are kept"),
        (["done", "own"], "4 of 12 runs kept (own)"),
    ):
        text = f"stopped; {kept}; the same command goes on"
        assert terminal_summary.describe_end("stopped", studies) == text


def test_the_answer_is_words_without_markup_and_says_what_it_rests_on(clone: Path, monkeypatch):
    look = {"n": 0, "next": 5, "level": 0.98, "note": ""}
    shown = findings(question="Does it cost anything?", blocks={"complete": 1, "planned": 5}, look=look)
    assert terminal_summary.render_answer("own") == []
    (clone / "data" / "own").mkdir(parents=True)
    shown.write(clone / "data" / "own" / "findings.json")
    facts = clone / "data" / "own" / "facts.json"
    facts.write_text('{"study": "own", "arms": {"a": {"site": {"kind": "existing"}}}}')
    answers = [terminal_summary.render_answer("own")]
    facts.write_text('{"study": "own", "arms": {"a": {"site": {"kind": "local"}}}}')
    answers.append(terminal_summary.render_answer("own"))
    planned(clone, "own", 2, 2)
    answers.append(terminal_summary.render_answer("own"))
    text = "\n\n".join("\n".join(lines) for lines in answers)
    assert not re.search("[<&\x1b]", text), "no markup or colours where no terminal reads it"
    assert_golden("answers.txt", f"{text}\n")
    monkeypatch.setenv("COLUMNS", "24")
    assert terminal_summary.render_answer("own")[:2] == ["own: Does it cost", "anything?"]
    # However wide the terminal, a line has 110 characters at most, and is filled up to that.
    monkeypatch.setenv("COLUMNS", "200")
    findings(question=f"{'word ' * 20}{'x' * 5}", blocks={"complete": 1, "planned": 5}, look=look).write(
        clone / "data" / "own" / "findings.json"
    )
    assert len(terminal_summary.render_answer("own")[0]) == 110
    (clone / "data" / "own" / "raw" / "b01-1").rmdir()
    monkeypatch.delenv("COLUMNS")
    assert ", 1 of 2 runs, " in terminal_summary.render_answer("own")[-1]


def test_five_minutes_more_narrow_the_widest_interval_by_what_is_said():
    """Five blocks took five minutes; of ten, 2.821 / √10 stands where 3.747 / √5 did: 4.0 times 0.532."""
    narrow = finding(id="w.c.qps", treatment="c", low=-0.12, high=-0.08)
    too_few = finding(id="w.d.qps", treatment="d", low=-0.5, high=0.5, n=2)
    (sentence,) = terminal_summary.five_minutes(findings(narrow, WIDE, too_few, machine_minutes=5.0))
    assert_golden("five_minutes.txt", f"{sentence}\n")
    three = finding(n=3, low=-0.14, high=-0.06)
    assert terminal_summary.five_minutes(findings(three)) != []
    for nothing in (findings(too_few), findings(WIDE, machine_minutes=0.0), findings()):
        assert terminal_summary.five_minutes(nothing) == []


def test_a_session_is_placed_among_recorded_ones_of_its_design_and_told_from_others(clone: Path):
    """A session of `quick` beside all that are recorded, and then as one with another number of threads."""
    recorded = tree.ROOT / "data" / "record" / "quick"
    newest = record.Recorded.read(recorded / "index.json").newest
    archive.unpack_archive(recorded / f"{newest}.tar.xz", clone)
    assert terminal_summary.describe_place("quick") == [], "nothing is recorded here"
    shutil.copytree(recorded, clone / "data/record/quick", ignore=shutil.ignore_patterns("*.xz"))
    pooled = terminal_summary.recorded_sessions("quick")
    assert pooled is not None and newest in [session.id for session in pooled.sessions]
    (sentence,) = terminal_summary.describe_place("quick")
    assert "expected" in sentence and "has this design" not in sentence
    study = clone / "studies" / "quick.yaml"
    study.write_text(re.sub(r"(?m)^threads: .*", "threads: [3]", study.read_text()))
    number = len(record.read_index().studies["quick"].sessions)
    (sentence,) = terminal_summary.describe_place("quick")
    assert f"None of the {number}" in sentence and "thread levels: " in sentence
    assert terminal_summary.recorded_sessions("quick") is None
    shutil.rmtree(clone / "data" / "quick" / "raw")
    assert terminal_summary.describe_place("quick") == [], "nothing was measured here"
