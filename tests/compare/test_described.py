"""What a study of few long runs says, on series that are known."""

from itertools import cycle, islice
from typing import Any

import pandas as pd

from benchbook.compare.claims import evaluate
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference import caveats, findings
from benchbook.core.study.params import Analysis
from tests.compare.cases import assert_cases

NAMES = {"steady": "the whole cluster", "lost": "the cluster that loses a store"}
LOST = {"lost": {"engine": {"cluster": {"event": {"what": "kill_store", "at_s": 30, "back_after_s": 20}}}}}


def each_second(told: list[Any]) -> list[float]:
    """Values of seconds told as how many there are and the values that they have in turn."""
    parts = zip(told[::2], told[1::2], strict=True)
    return [float(value) for seconds, values in parts for value in islice(cycle(values), seconds)]


def evidence_of(study: Any, case: dict[str, Any]) -> StudyEvidence:
    series = [(arm, each_second(told)) for arm, told in case["runs"]]
    runs = [{"run_id": str(at), "arm": arm, "position": at, "run_s": len(values)}
            for at, (arm, values) in enumerate(series)]  # fmt: skip
    rows = [
        {"run_id": str(at), "second": second, "qps": qps, "is_discarded": False}
        for at, (_, values) in enumerate(series)
        for second, qps in enumerate(values, start=1)
    ]
    facts: Any = LOST if case.get("lost") else {}
    return StudyEvidence(study, pd.DataFrame(runs), Analysis(), pd.DataFrame(rows), None, facts)


def test_long_runs_are_told_by_their_levels_stalls_and_what_an_event_did(make_study) -> None:
    def describe(case: dict[str, Any]) -> list[str]:
        evidence = evidence_of(make_study(blocks=case.get("blocks", 2)), case)
        return caveats.describe_runs(evidence, NAMES) or ["nothing"]

    assert_cases("long_runs", describe)


def test_seconds_are_read_where_a_study_can_not_decide(make_study) -> None:
    nothing = evaluate.ClaimAssignment([], [], [])
    for blocks, needs_seconds in (4, True), (5, False):
        tables = findings.required_tables(make_study(blocks=blocks), Analysis(), nothing)
        assert ("intervals" in tables) == needs_seconds
