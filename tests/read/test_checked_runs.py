"""What each check says of a run that is healthy but for one thing, held in a golden file."""

from pathlib import Path

from ruamel.yaml import YAML

from benchbook.read import validity
from tests.goldens import assert_golden
from tests.read import corpus, synthetic

DATA = Path(__file__).parents[1] / "data"
WORDS = {True: "no fault", False: "", None: "not known: "}


def test_one_thing_that_is_wrong_is_said_and_what_is_right_is_not():
    answers = []
    for title, group in YAML(typ="safe").load(DATA / "checked_runs.yaml").items():
        answers.append(f"\n{group['check']}, {title}\n")
        for case in group["cases"]:
            plan, seen = (
                corpus.merged(group.get(part) or {}, case.get(part) or {}) for part in ("plan", "seen")
            )
            judged = validity.judge_run(synthetic.healthy_run(seen, **plan))
            (said,) = (check for check in judged.checks if check.id == group["check"])
            answers.append(f"  - {WORDS[said.passed]}{said.detail}\n")
    assert_golden("checked_runs.txt", "".join(answers).lstrip())
