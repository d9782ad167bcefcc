"""The gate: what it refuses, what it writes, its exit codes, and one gate on a real server."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchbook.commands import cli, gate, gate_report
from benchbook.compare.stats.intervals import Interval
from benchbook.compare.stats.noninferiority import NoninferiorityDecision
from benchbook.core.artifacts import run_folder
from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError, InputErrors

SLOWER = Interval(10, 0.98, -0.0408, -0.0512, -0.0305, 0.0037, 9)
EQUAL = Interval(5, 0.98, 0.001, -0.012, 0.014, 0.0035, 4)


@pytest.fixture
def found() -> gate.GateResult:
    asked = gate.read_request("gate", "3%", "10")
    decisions = [
        NoninferiorityDecision(
            "oltp_point_select", "after", "slower", SLOWER, "the whole interval is below the margin"
        ),
        NoninferiorityDecision(
            "oltp_read_only", "after", "not slower", EQUAL, "the whole interval is above the margin"
        ),
        NoninferiorityDecision("oltp_insert", "after", "undecided", EQUAL, "a <reason> & more"),
    ]
    facts = {"before": {"engine": {"name": "mariadb", "version": "10.11.6"}}}
    return gate.GateResult(asked, decisions, facts, blocks=10, run_s=8, spent_s=300.0, ended="it is decided")


def test_all_that_is_wrong_is_told_at_once_with_key_and_remedy(tmp_path: Path):
    with pytest.raises(InputErrors) as caught:
        gate.read_request("gate", "three", "0", ["nobody"], tmp_path)
    said = "\n".join(caught.value.errors)
    assert "--slower: three: not a share; write a percentage" in said
    assert "--minutes: 0: not a time; write a number from 1" in said
    assert "--arm: nobody: not an arm that is compared with the baseline before; write one of after" in said
    assert f"--keep: {tmp_path}: is there already" in said


def test_a_study_of_another_site_is_refused_by_name():
    with pytest.raises(InputErrors, match=r"site\.kind: kubernetes: a gate measures on this machine only"):
        gate.read_request("tidb-kubernetes-zones", "3%", "10")


def test_the_pull_request_gets_answer_interval_and_reason(found: gate.GateResult):
    text = gate_report.render_markdown(found).replace("\N{NO-BREAK SPACE}", " ")
    first, _, rest = text.partition("\n")
    assert first == (
        "❌ **slower** (oltp_point_select): −4.0 % QPS [−5.0, −3.0] at 98 % (10 blocks), margin −3.0 %"
    )
    assert "gate: slower (margin −3.0 % QPS, baseline before" in rest
    # exp(-0.0408) - 1 = -4.00 %, exp(-0.0512) - 1 = -4.99 %, exp(-0.0305) - 1 = -3.00 %.
    assert "| after | oltp\\_point\\_select | all | −4.0 % | [−5.0, −3.0] | ▼¹ |" in text
    assert "▼ slower · ≈ not slower · ? undecided" in text
    assert "³ Undecided: a <reason> & more." in text.replace("\\", "")
    assert "- `before`: mariadb 10.11.6" in text


def test_a_slowdown_within_the_margin_has_its_word_and_lets_through(found: gate.GateResult):
    why = "the whole interval is above the margin"
    within = Interval(20, 0.98, -0.012, -0.02, -0.004, 0.003, 19)
    found.decisions[:] = [
        NoninferiorityDecision("oltp_read_only", "after", "not slower", within, why, shows_slowdown=True)
    ]
    assert gate.EXIT[found.answer] == 0
    assert gate_report.render_markdown(found).startswith(
        "✅ **slower, within the margin** (oltp_read_only): −1.2"
    )
    assert gate_report.build_record(found)["word"] == "slower, within the margin"


def test_junit_has_a_case_for_each_question(found: gate.GateResult):
    suite = ElementTree.fromstring(gate_report.render_junit(found).partition("\n")[2])
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped", "errors")} == {
        "tests": "3", "failures": "1", "skipped": "1", "errors": "0",
    }  # fmt: skip
    assert [case.get("classname") for case in suite] == [
        "gate.oltp_point_select", "gate.oltp_read_only", "gate.oltp_insert",
    ]  # fmt: skip
    assert "a <reason> & more" in suite[2].find("skipped").get("message")


def test_undecided_says_everywhere_what_it_would_take(found: gate.GateResult):
    """5 minutes so far, an interval of ± 0.051 around 0.001, and ln 0.97 = -0.03046 as the margin."""
    wide = Interval(5, 0.98, 0.001, -0.05, 0.052, 0.0136, 4)
    found.decisions = [
        NoninferiorityDecision("oltp_insert", "after", "undecided", wide, "no change as well as a slowdown")
    ]
    # 5 (0.051 / 0.03146)^2 = 13.1 minutes; 1 - exp(-0.051) = 4.97 %.
    # Chi-squared of 4 degrees of freedom: 1.064 to 7.779 at 80 %, so 13.1 x 4 / 7.779 to 13.1 x 4 / 1.064.
    said = "bout --minutes 13 would decide it on a machine as busy as this one "
    said += "(7 to 49, by what 5 blocks say of the spread); these minutes are enough for "
    said += "--slower 5.0%, if the arm is as fast as its baseline"
    (case,) = ElementTree.fromstring(gate_report.render_junit(found).partition("\n")[2])
    for text in (
        gate_report.render_text(found),
        gate_report.render_markdown(found),
        case.find("skipped").get("message"),
    ):
        assert said in text, text
    found.request = gate.read_request("gate", "3%", "14")
    assert "close to the margin" in gate_report.render_text(
        found
    ) and "enough" not in gate_report.render_text(found)
    unknown = Interval(1, 0.98, 0.001, None, None, None, 0)
    found.decisions = [NoninferiorityDecision("oltp_insert", "after", "undecided", unknown, "too few blocks")]
    assert "too few blocks to say how long it would take; try --minutes 28" in gate_report.render_junit(found)


def test_a_gate_without_a_block_says_why_most_runs_were_voided(found: gate.GateResult, tmp_path: Path):
    wrong = {
        "a": ("invalid", ["V16 machine: 9 % of the machine", "V26 physics: 494 pages"]),
        "b": ("invalid", ["V26 physics: 495 pages"]),
        "c": ("partner", ["stands next to b"]),
        "d": ("partner", ["stands next to b"]),
    }
    for name, (status, reasons) in wrong.items():
        (tmp_path / "raw" / name).mkdir(parents=True)
        run_folder.void_folder(tmp_path / "raw" / name, tmp_path / "void", status, reasons)
    found.voided, found.why_void = gate.count_voids(tmp_path)
    assert (found.voided, found.why_void) == (4, "V26 physics: 494 pages")
    nothing = Interval(0, 0.98, reason="no complete block")
    found.decisions = [
        NoninferiorityDecision("oltp_insert", "after", "undecided", nothing, "no complete block")
    ]
    said = "he commonest reason of 4 voided runs: V26 physics: 494 pages"
    for text in (
        gate_report.render_text(found),
        gate_report.render_markdown(found),
        gate_report.render_junit(found),
    ):
        assert said in text and "--minutes" not in text
    found.voided, found.why_void = gate.count_voids(tmp_path / "raw")
    assert "try --minutes 20" in gate_report.render_text(found)


@pytest.mark.parametrize(("answer", "code"), [("not slower", 0), ("slower", 1), ("undecided", 2)])
def test_the_answer_is_the_exit_code(answer, code, found, monkeypatch, tmp_path, capsys):
    found.decisions = [NoninferiorityDecision("oltp", "after", answer, EQUAL, "")]
    monkeypatch.setattr(gate, "measure_blocks", lambda *_: found)
    files = tmp_path / "reports" / "gate.xml", tmp_path / "reports" / "gate.md"
    argv = ["gate", "gate", "--junit", str(files[0]), "--markdown", str(files[1])]
    assert cli.main(argv) == code
    assert all(file.is_file() for file in files)
    assert f"gate: {answer}" in capsys.readouterr().out


@pytest.mark.parametrize("error", [BenchbookError("no server"), ZeroDivisionError("ours"), OSError("a port")])
def test_a_failure_is_never_taken_for_an_answer(error, monkeypatch, capsys):
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(gate, "measure_blocks", fails)
    assert cli.main(["gate", "gate"]) == 3
    assert str(error) in capsys.readouterr().err
    with pytest.raises(SystemExit, match="3"):
        cli.main(["gate", "gate", "--slowr", "3%"])


@pytest.mark.parametrize(
    ("looks", "left_s", "spent_s", "blocks", "measured_s"),
    [
        ((5, 10, 20), 480, 8, 20, 16.0),  # 480 / 20 - 8 = 16, twice the 8
        ((5, 10, 20), 200, 8, 10, 12.0),  # 20 blocks would measure 2 s each; 200 / 10 - 8 = 12
        ((5, 10, 20), 60, 8, 10, 0.0),  # not even 10 can: 5 have no exact interval of ranks at 98 %
        ((5,), 60, 8, 5, 4.0),
    ],
)
def test_blocks_are_fewer_where_starting_servers_would_take_more_than_a_third(
    looks: tuple[int, ...], left_s: float, spent_s: float, blocks: int, measured_s: float
):
    assert gate.allot_blocks(looks, left_s, spent_s) == (blocks, measured_s)


@pytest.mark.server
@pytest.mark.slow
def test_a_gate_on_a_real_server_keeps_its_evidence_and_leaves_nothing(
    open_folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("BENCHBOOK_LOCK", str(tmp_path / "machine.lock"))
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(open_folder / "gate" / "labs"))
    before = sorted((paths.find_root() / "data").iterdir())
    keep = tmp_path / "kept"
    code = cli.main(["gate", "gate", "--slower", "60%", "--minutes", "2", "--keep", str(keep)])
    said = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")
    record = json.loads((keep / "gate.json").read_text())
    assert code == gate.EXIT[record["answer"]], said
    assert code in (0, 2)
    assert re.search(r"gate: (not slower|undecided) \(margin −60", said)
    assert record["blocks"] >= 1, said
    reasons = [json.loads(file.read_text()) for file in (keep / "void").glob("*.void.json")]
    assert not any("V12" in json.dumps(one) for one in reasons)
    assert len(list((keep / "raw").iterdir())) == 2 * record["blocks"]
    assert sorted((paths.find_root() / "data").iterdir()) == before
    assert not list((open_folder / "gate").rglob("gate-*"))
