"""Ways to end with exit code 0, or a whole summary, and to be worth nothing: none is valid.

Forty-two are known; these are the recorded ones, in `tests/data/sysbench`, each with its command, its exit
code and the evidence that the run would have left. Cutting, losing and doubling of lines: `tests/read`.
"""

import pytest

from benchbook.read.validity import judge_run
from tests.faults.book import Book
from tests.read.corpus import cases

# Recorded runs, by the start of their names.
WORTHLESS = (
    *("06_", "06b_", "08_", "08c_", "10b_", "10d_", "11b_", "12c_", "13b_", "17_", "20_", "20c_", "21b_"),
    *("25e_", "26_", "30b_", "42d_", "42f_", "50f_", "52_", "61b_", "70c_", "71e_", "72_", "73_"),
)
# Prepared by a command that ends with 0 and does nothing, or too little.
PREPARED = ("25c_", "71_prepare", "71c_prepare", "62_")


@pytest.mark.parametrize("start", WORTHLESS)
def test_a_worthless_run_is_not_valid(start: str, book: Book):
    found = [case for case in cases() if case.name.startswith(start) and case.plan]
    assert found, f"no recorded run {start}"
    for case in found:
        judged = judge_run(case.run())
        if judged.status == "valid":
            book.valid_verdicts.append(case.name)
        assert judged.status != "valid", case.name
        assert judged.reasons


@pytest.mark.parametrize("start", PREPARED)
def test_a_worthless_preparation_is_no_run(start: str):
    for case in [case for case in cases() if case.name.startswith(start)]:
        assert case.status != "complete" or not case.plan or judge_run(case.run()).status != "valid", (
            case.name
        )


def test_good_runs_are_still_valid():
    """A judge that refused everything would pass the test above."""
    assert sum(judge_run(case.run()).status == "valid" for case in cases() if case.plan) >= 3
