"""What stands in for what is said in the report, and so is every arm that was left out."""

from types import SimpleNamespace
from typing import Any

from benchbook.compare.inference import setup_notes
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.study.study_arm import Arm
from tests.compare.cases import assert_cases

CLAIM = SimpleNamespace(claim="Pods are 7 % slower.")


def notes(case: dict[str, Any]) -> list[str]:
    study = SimpleNamespace(arms={name: Arm.model_validate(arm) for name, arm in case["arms"].items()})
    facts = {"study": "s", "arms": case.get("facts", {name: {} for name in case["arms"]})}
    found = Facts.model_validate(facts | {"skipped": case.get("skipped", {})})
    return [one.text for one in setup_notes.setup_caveats(study, found, {"a/b": CLAIM})] or ["nothing"]


def test_what_stands_in_for_what_is_said_once_and_only_where_it_is() -> None:
    assert_cases("setup_notes", notes)
