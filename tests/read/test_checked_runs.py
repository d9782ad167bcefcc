"""What is said of a run that is healthy but for one thing, held in a golden file."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchbook.read import checks_turns, validity
from benchbook.read.evidence import Evidence, turns_of
from tests.goldens import assert_golden
from tests.read import corpus, synthetic

DATA = Path(__file__).parents[1] / "data"


def changed(seen: Any, change: dict[Any, Any]) -> Any:
    """A change on top of what is seen of a healthy run; items of a list go by their number."""
    if isinstance(seen, list):
        return [changed(item, change.get(number, {})) for number, item in enumerate(seen)]
    both = {key: changed(seen[key], value) for key, value in change.items() if is_part(seen.get(key), value)}
    return seen | change | both


def is_part(seen: Any, change: Any) -> bool:
    return isinstance(change, dict) and isinstance(seen, dict | list)


def with_options(argv: list[str], options: dict[str, str]) -> list[str]:
    """A command line with other values of some of its options."""
    words = [(word, options.get(word[2:].partition("=")[0])) for word in argv]
    return [
        f"{word.partition('=')[0]}={value}" if value else word for word, value in words if value != "ABSENT"
    ]


def replace_text(text: str, changes: dict[str, str]) -> str:
    """A text with all that matches each expression replaced; what matches nothing would prove nothing."""
    for was, by in changes.items():
        text, times = re.subn(was, by, text, flags=re.M)
        assert times, was
    return text


def shorten_window(out: str, seconds: float) -> str:
    """The output with a discard that took so long that `seconds` of 7 are left, and with rates to match."""
    parts = replace_text(out, {r"2\.0000s": f"{7 - seconds:.4f}s"}).split("Latency histogram")
    rates = (((200, 4000), 7 - seconds), ((500, 10000), seconds))
    return "Latency histogram".join(
        replace_text(part, {rf"({n} +\()\d+\.\d\d per": rf"\g<1>{n / lasted:.2f} per" for n in counts})
        for part, (counts, lasted) in zip(parts, rates, strict=True)
    )


def build_run(group: dict[str, Any], case: dict[str, Any]) -> Evidence:
    """A run with the output, plan and evidence of its group and case."""

    def both(key: str) -> dict[str, Any]:
        return corpus.merged(group.get(key, {}), case.get(key, {}))

    seen = changed(group.get("seen", {}), case.get("seen", {}))
    if clients_on := both("several").get("servers"):
        run = synthetic.three(servers=clients_on)
        return replace(run, observed=corpus.merged(run.observed, changed(run.observed, seen)))
    plan, out = synthetic.planned(**both("plan")), synthetic.output(**both("output"))
    turns = synthetic.turns(**both("turns")) if "turns" in group else None
    monitor = synthetic.monitor(**both("monitor")) if both("monitor") else None
    if turns is not None:
        active_s = checks_turns.active_s(turns_of(turns), "direct")
        seen |= {"turns": {"active_s": active_s} | seen["turns"]}
    if "argv" in case:
        seen |= {"argv": with_options(corpus.argv(plan), case["argv"])}
    if "command_line" in case:
        seen |= {"argv": replace_text(" ".join(corpus.argv(plan)), case["command_line"]).split()}
    if "window_s" in case:
        out = shorten_window(out, case["window_s"])
    run = corpus.healthy(replace_text(out, both("out")), plan, "", seen)
    return replace(run, turns=turns, monitor=monitor)


def describe(judged: validity.Judgement, only: list[str]) -> str:
    """Status of a run with all that kept it from passing its checks, or `only` some, and its warnings."""
    checks = [check for check in judged.checks if not only or check.id in only]
    kept = [str(check) for check in checks if not check.passed and not check.is_excused]
    status = judged.status if not only else "invalid" if kept else "valid"
    return status + "".join(f"\n      {line}" for line in (*kept, *(() if only else judged.warnings)))


def test_one_thing_that_is_wrong_is_said_and_what_is_right_is_not():
    answers = []
    for title, group in YAML(typ="safe").load(DATA / "checked_runs.yaml").items():
        answers.append(f"\n{title}\n")
        for case in group["cases"]:
            judged = validity.judge_run(build_run(group, case), case.get("limits"))
            answers.append(f"  - {describe(judged, group.get('only', []))}\n")
    assert_golden("checked_runs.txt", "".join(answers).lstrip())
