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
from tests.goldens import assert_golden, assert_golden_case

SLOWER = Interval(10, 0.98, -0.0408, -0.0512, -0.0305, 0.0037, 9)
EQUAL = Interval(5, 0.98, 0.001, -0.012, 0.014, 0.0035, 4)
BELOW, ABOVE = ("the whole interval is below the margin", "the whole interval is above the margin")
THREE = (
    NoninferiorityDecision("oltp_point_select", "after", "slower", SLOWER, BELOW),
    NoninferiorityDecision("oltp_read_only", "after", "not slower", EQUAL, ABOVE),
    NoninferiorityDecision("oltp_insert", "after", "undecided", EQUAL, "a <reason> & more"),
)
# exp(-0.0408) - 1 = -4.00 %, exp(-0.0512) - 1 = -4.99 %, exp(-0.0305) - 1 = -3.00 %.
WITHIN = Interval(20, 0.98, -0.012, -0.02, -0.004, 0.003, 19)
# 5 minutes so far, an interval of ± 0.051 around 0.001, and ln 0.97 = -0.03046 as the margin:
# 5 (0.051 / 0.03146)^2 = 13.1 minutes; 1 - exp(-0.051) = 4.97 %.
# Chi-squared of 4 degrees of freedom: 1.064 to 7.779 at 80 %, so 13.1 x 4 / 7.779 to 13.1 x 4 / 1.064.
WIDE = Interval(5, 0.98, 0.001, -0.05, 0.052, 0.0136, 4)


def result(*decisions: NoninferiorityDecision, minutes: str = "10") -> gate.GateResult:
    asked = gate.read_request("gate", "3%", minutes)
    facts = {"before": {"engine": {"name": "mariadb", "version": "10.11.6"}}}
    spent = {"blocks": 10, "run_s": 8, "spent_s": 300.0}
    return gate.GateResult(asked, [*decisions], facts, **spent, ended="it is decided")


def undecided(interval: Interval, why: str, minutes: str = "10") -> gate.GateResult:
    return result(NoninferiorityDecision("oltp_insert", "after", "undecided", interval, why), minutes=minutes)


def void_four_runs(folder: Path) -> gate.GateResult:
    """Return a gate without a block, whose runs were voided and most of them for one reason."""
    wrong = {
        "a": ("invalid", ["V16 machine: 9 % of the machine", "V26 physics: 494 pages"]),
        "b": ("invalid", ["V26 physics: 495 pages"]),
        "c": ("partner", ["stands next to b"]),
        "d": ("partner", ["stands next to b"]),
    }
    for name, (status, reasons) in wrong.items():
        (folder / "raw" / name).mkdir(parents=True)
        run_folder.void_folder(folder / "raw" / name, folder / "void", status, reasons)
    found = undecided(Interval(0, 0.98, reason="no complete block"), "no complete block")
    found.voided, found.why_void = gate.count_voids(folder)
    return found


def test_each_answer_is_told_with_interval_and_reason_in_all_its_forms(tmp_path: Path):
    """In the terminal, to a pull request, and as JUnit with a case for each question."""
    within = NoninferiorityDecision("oltp_read_only", "after", "not slower", WITHIN, ABOVE, True)
    unknown, both = Interval(1, 0.98, 0.001, None, None, None, 0), "no change as well as a slowdown"
    states = {
        "one of three is slower": result(*THREE),
        "slower within the margin": result(within),
        "undecided": undecided(WIDE, both),
        "undecided close to the margin": undecided(WIDE, both, "14"),
        "undecided after one block": undecided(unknown, "too few blocks", "14"),
        "no block, for runs were voided": void_four_runs(tmp_path),
        "no block": undecided(Interval(0, 0.98, reason="no complete block"), "no complete block"),
    }
    told = []
    for name, found in states.items():
        junit = gate_report.render_junit(found)
        ElementTree.fromstring(junit.partition("\n")[2])
        word = gate_report.build_record(found)["word"]
        told.append(f"=== {name}: {word}, exit code {gate.EXIT[found.answer]}")
        told += [gate_report.render_text(found), gate_report.render_markdown(found), junit]
    assert_golden("gate.txt", "\n".join(told))


def test_all_that_is_wrong_is_told_at_once_with_key_and_remedy(tmp_path: Path):
    with pytest.raises(InputErrors) as caught:
        gate.read_request("gate", "three", "0", ["nobody"], tmp_path)
    assert_golden_case("refused_gates.txt", "options", str(caught.value).replace(str(tmp_path), "FOLDER"))


def test_a_study_of_another_site_is_refused_by_name():
    with pytest.raises(InputErrors) as refused:
        gate.read_request("tidb-kubernetes-zones", "3%", "10")
    assert_golden_case("refused_gates.txt", "another site", str(refused.value))


@pytest.mark.parametrize(("answer", "code"), [("not slower", 0), ("slower", 1), ("undecided", 2)])
def test_the_answer_is_the_exit_code(answer, code, monkeypatch, tmp_path, capsys):
    found = result(NoninferiorityDecision("oltp", "after", answer, EQUAL, ""))
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
