"""Claims of every kind on tables small enough to be judged by hand, to the last number of the row."""

from typing import Any

from benchbook.compare.claims import printed_cells
from benchbook.core.published.claim import ClaimSpec
from tests.compare.cases import read_cases
from tests.compare.claims.test_consistency import cells
from tests.goldens import assert_golden

TOLD = {"claim": "So it is.", "stands": "Summary", "metric": "qps"}


def describe(value: Any) -> str:
    """A value of a verdict's row as the golden file has it."""
    if isinstance(value, dict):
        return " ".join(str(describe(part)) for part in value.values())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def describe_items(row: dict[str, Any], *but: str) -> list[str]:
    return [f"{key} {describe(value)}" for key, value in row.items() if key not in but and value != ""]


def describe_row(row: dict[str, Any]) -> list[str]:
    """Lines of a verdict and of its cells, every key of them."""
    lines = ["; ".join([row["verdict"], *describe_items(row, "verdict", "cells")])]
    for cell in row.get("cells", ()):
        rest = ", ".join(describe_items(cell, "where", "arithmetic"))
        lines.append(f"  {cell['where']}: {cell['arithmetic']} ({rest})")
    return lines


def read_table(case: dict[str, Any]) -> list[tuple]:
    """Rows of QPS of each arm, and of TPS of the first."""
    columns = {"a": ("of a", "a", "qps"), "b": ("of b", "b", "qps"), "tps": ("of a", "a", "tps")}
    return [
        (*columns[name][:2], threads, columns[name][2], text)
        for name in columns
        for threads, text in case.get(name, {}).items()
    ]


def test_claims_are_judged_to_the_last_number_of_their_rows():
    answers = []
    for title, group in read_cases("printed_claims").items():
        answers.append(f"\n{title}")
        for case in group["cases"]:
            claim = ClaimSpec.model_validate(TOLD | group["claim"] | case.get("claim", {}))
            first, *more = describe_row(printed_cells.judge_printed(claim, cells(read_table(case))))
            answers += [f"  - {first}", *(f"    {line}" for line in more)]
    assert_golden("printed_claims.txt", "\n".join(answers).lstrip() + "\n")
