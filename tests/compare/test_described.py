"""What a study of few long runs says, on series that are known."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from benchbook.compare.claims import evaluate
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference import caveats, findings
from benchbook.core.study.params import Analysis

NAMES = {"steady": "the whole cluster", "lost": "the cluster that loses a store"}
LOST = {"lost": {"engine": {"cluster": {"event": {"what": "kill_store", "at_s": 30, "back_after_s": 20}}}}}


@pytest.fixture
def said(make_study):
    def say(series: list[tuple[str, list[float]]], facts: Any, blocks: int = 2) -> list[str] | None:
        runs = pd.DataFrame(
            [
                {"run_id": str(at), "arm": arm, "position": at, "run_s": len(values)}
                for at, (arm, values) in enumerate(series)
            ]
        )
        rows = [
            {"run_id": str(at), "second": second, "qps": qps, "is_discarded": False}
            for at, (_, values) in enumerate(series)
            for second, qps in enumerate(values, start=1)
        ]
        study = make_study(blocks=blocks)
        evidence = StudyEvidence(study, runs, Analysis(), pd.DataFrame(rows), None, facts)
        return caveats.describe_runs(evidence, NAMES)

    return say


def test_an_event_is_told_by_how_long_nobody_was_served_in_each_run(said) -> None:
    first = [100.0] * 30 + [0.0] * 12 + [100.0] * 20
    second = [100.0] * 30 + [0.0] * 9 + [50.0] * 3 + [100.0] * 20
    steady = [100.0] * 62
    told = said([("steady", steady), ("lost", first), ("lost", second)], LOST)
    assert told == [
        "The cluster that loses a store answered less than a tenth as fast as before for 9 to 12 s after "
        "its event and was as fast as before after 12 s (2 runs).",
        "The whole cluster never fell so low (1 run).",
    ]


def test_a_run_that_never_was_as_before_is_not_counted_among_those_that_were(said) -> None:
    first, never = [100.0] * 30 + [0.0] * 12 + [100.0] * 20, [100.0] * 30 + [0.0] * 32
    (event,) = said([("lost", first), ("lost", never)], LOST)
    assert event.endswith(
        "for 12 to 32 s after its event and was as fast as before after 12 s in 1 of them (2 runs)."
    )
    (event,) = said([("lost", never)], LOST)
    assert event.endswith("and was not as fast as before in any run (1 run).")


def test_a_long_run_is_told_by_its_levels_and_stalls(said) -> None:
    # One second of nothing, 149 of 100 to 104, 150 of 200 to 204: the two in the middle are 104 and 200.
    near = [100.0 + second % 5 for second in range(149)]
    told = said([("steady", [*near, 0.0, *(200.0 + second % 5 for second in range(150))])], {})
    assert told == [
        "The whole cluster stayed at 2 levels, 50 % of its seconds at 102 and 50 % of its seconds at 202 "
        "(median 152 queries per second, slowest second 0, 1 stall in 300 s)."
    ]
    (one,) = said([("steady", near * 3)], {})
    assert "stayed at one level (median 102 queries per second, slowest second 100, 0 stalls in 447 s)" in one


def test_a_study_that_can_decide_is_not_described(said, make_study) -> None:
    nothing = evaluate.ClaimAssignment([], [], [])
    for blocks, needs_seconds in (4, True), (5, False):
        tables = findings.required_tables(make_study(blocks=blocks), Analysis(), nothing)
        assert ("intervals" in tables) == needs_seconds
    assert said([("lost", [100.0] * 30 + [0.0] * 30)], LOST, blocks=5) is None
    assert said([("steady", [100.0] * 60)], {}) is None
