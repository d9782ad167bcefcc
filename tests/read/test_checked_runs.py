"""What is said of a run that is healthy but for one thing, held in a golden file."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchbook.read import validity
from tests.goldens import assert_golden
from tests.read import corpus, synthetic

DATA = Path(__file__).parents[1] / "data"


def changed(seen: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A change on top of another one, both of what is seen of a healthy run."""
    both = {key: changed(seen[key], value) for key, value in change.items() if are_mappings(seen, value, key)}
    return seen | change | both


def are_mappings(seen: dict[str, Any], value: Any, key: str) -> bool:
    return isinstance(value, dict) and isinstance(seen.get(key), dict)


def with_options(argv: list[str], options: dict[str, str]) -> list[str]:
    """A command line with other values of some of its options."""
    words = [(word, options.get(word[2:].partition("=")[0])) for word in argv]
    return [
        f"{word.partition('=')[0]}={value}" if value else word for word, value in words if value != "ABSENT"
    ]


def describe(judged: validity.Judgement) -> str:
    """Status of a run with all that kept it from passing its checks, and its warnings."""
    kept = [str(check) for check in judged.checks if not check.passed and not check.is_excused]
    return "".join(f"\n      {line}" for line in (*kept, *judged.warnings))


def test_one_thing_that_is_wrong_is_said_and_what_is_right_is_not():
    answers = []
    for title, group in YAML(typ="safe").load(DATA / "checked_runs.yaml").items():
        answers.append(f"\n{title}\n")
        for case in group["cases"]:
            plan = corpus.merged(group.get("plan", {}), case.get("plan", {}))
            seen = changed(group.get("seen", {}), case.get("seen", {}))
            if "argv" in case:
                seen |= {"argv": with_options(corpus.argv(synthetic.planned()), case["argv"])}
            judged = validity.judge_run(synthetic.healthy_run(seen, **plan))
            answers.append(f"  - {judged.status}{describe(judged)}\n")
    assert_golden("checked_runs.txt", "".join(answers).lstrip())
