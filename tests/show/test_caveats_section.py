"""Doubts about a study on its page: which ask for care, and in which words."""

from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
from ruamel.yaml import YAML

from benchbook.compare.stats import interleaved_runs, steady_state
from benchbook.show.caveats_section import DIFFERS, build_caveats, report_differences
from tests.found import changed
from tests.goldens import assert_golden

CASES = Path(__file__).parents[1] / "data" / "caveats.yaml"


def _points(findings, runs, warm_up=None):
    return build_caveats(SimpleNamespace(findings=findings, runs=runs, warm_up=warm_up))


def _by_name(findings, runs):
    return {doubt.name: doubt for doubt in _points(findings, runs)}


def describe(doubts) -> list[str]:
    lines = [f"{'care: ' if doubt.is_care else ''}{doubt.name}: {doubt.text}" for doubt in doubts]
    return [line.replace("\xa0", " ") for line in lines]


def test_each_weakness_asks_for_care_and_a_sound_study_only_where_it_warns(made):
    sound = describe(_points(made.findings, made.runs))
    answers = ["\n  ".join(["a sound study", *sound])]

    def weaken(title: str, findings, runs=made.runs, warm_up=None) -> None:
        found = describe(_points(findings, runs, warm_up))
        gone = {line.removeprefix("care: ").partition(":")[0] for line in sound}
        gone -= {line.removeprefix("care: ").partition(":")[0] for line in found}
        told = [line for line in found if line not in sound] + [f"gone: {name}" for name in sorted(gone)]
        answers.append("\n  ".join([title, *told]))

    for title, case in YAML(typ="safe").load(CASES).items():
        first, *_ = whole = made.findings.findings
        given = {key: case[key] for key in case if key not in ("aa", "first", "warm_up")}
        given |= {"aa": case["aa"] and changed(made.findings.aa, **case["aa"])} if "aa" in case else {}
        given |= {"findings": [changed(first, **case["first"]), *whole[1:]]} if "first" in case else {}
        weaken(title, changed(made.findings, **given), warm_up=case.get("warm_up"))
    nothing = pd.DataFrame(columns=["arm", "workload", "threads"])
    weaken("a study without pilots", made.findings, warm_up=asdict(steady_state.discard_advice(nothing)))
    runs = made.runs.assign(order="turns", turn_ms=50, turns=60, active_s=3.0, stopped="client")
    runs.loc[runs["arm"] == "haproxy", "stopped"] = "client, proxy"
    runs = runs.assign(latency_p99_ms=float("nan"))
    turns = interleaved_runs.summarize_turns(runs, {})
    weaken("arms in turns, whose log has other rates", changed(made.findings, turns=turns), runs)
    assert_golden("caveats.txt", "\n\n".join(answers) + "\n")
    assert _by_name(made.findings, made.runs.head(0))["Runs"].is_care


def test_values_that_came_out_otherwise_are_named_and_those_beyond_three_counted(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    lines = []
    for many in (3, 5):
        (tmp_path / DIFFERS).write_text("".join(f"value {number}\n" for number in range(many)))
        lines += describe(report_differences())
    assert_golden("differs.txt", "\n".join(lines) + "\n")
