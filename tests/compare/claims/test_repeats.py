"""Printed repetitions: a claim that they leave open neither holds nor fails; a small step refutes nothing."""

from typing import Any

from benchbook.compare.claims import printed_cells
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.published.source import Number
from tests.compare.cases import read_cases
from tests.compare.claims.test_verdict_row import describe_items, describe_row
from tests.goldens import assert_golden


def numbers(metric: str, table: dict[Any, list[float]], keys: list[str]) -> list[Number]:
    """Numbers of a metric by the values of the first key, at 1, 2, 3 ... of the second."""
    return [
        Number(
            "t", row, metric, metric, value, str(value), 0.0, None, "metric", {keys[0]: name, keys[1]: row}
        )
        for name, values in table.items()
        for row, value in enumerate(values, 1)
    ]


def describe(claim: ClaimSpec, cells: list[Number]) -> list[str]:
    """Lines of a verdict, of what its repetitions show, and of the pair that is better than the claim's."""
    row = printed_cells.judge_printed(claim, cells)
    repeats = ["  repeated: " + ", ".join(describe_items(part)) for part in row.pop("repeats", ())]
    better = printed_cells.describe_measured_pair(claim, cells)
    return [*describe_row(row), *repeats, *([f"  {better}"] if better else [])]


def test_repetitions_decide_no_more_than_their_interval_and_small_steps_nothing():
    answers = []
    for title, group in read_cases("repeated_claims").items():
        answers.append(f"\n{title}")
        cells = numbers(group["claim"]["metric"], group["cells"], group["keys"])
        for case in group.get("cases", ({},)):
            told = {"claim": "So it is.", "stands": "Here", **group["claim"], **case}
            first, *more = describe(ClaimSpec.model_validate(told), cells)
            answers += [f"  - {first}", *(f"    {line}" for line in more)]
    assert_golden("repeated_claims.txt", "\n".join(answers).lstrip().replace("\xa0", " ") + "\n")
