"""Claims of every kind on tables small enough to be judged by hand, to the last number of the row."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from benchbook.compare.claims import bands, printed_cells
from benchbook.core.published.claim import ClaimSpec
from tests.compare.claims.test_consistency import cells
from tests.goldens import assert_golden

DATA = Path(__file__).parents[2] / "data"


def claim(kind: str, **given: Any) -> ClaimSpec:
    return ClaimSpec.model_validate({"kind": kind, "claim": "So it is.", "stands": "Summary", **given})


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
    for title, group in YAML(typ="safe").load(DATA / "printed_claims.yaml").items():
        answers.append(f"\n{title}")
        for case in group["cases"]:
            asked = {"metric": "qps"} | group["claim"] | case.get("claim", {})
            first, *more = describe_row(printed_cells.judge_printed(claim(**asked), cells(read_table(case))))
            answers += [f"  - {first}", *(f"    {line}" for line in more)]
    assert_golden("printed_claims.txt", "\n".join(answers).lstrip() + "\n")


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (claim("trend", metric="qps", along="threads_per_process", direction="falls"),
         "falls with threads per process"),
        (claim("same_effect", metric="qps", along="threads", one={"arm": "a"}, other={"arm": "b"}),
         "the same effect of threads"),
        (claim("value", metric="qps", cells={"arm": "a"}, band={"point": 22000}), "about 22000"),
        (claim("value", metric="qps", cells={"arm": "a"}, band={"range": (5, 12)}), "5 to 12"),
        (claim("value", metric="qps", cells={"arm": "a"}, band={"above": 500}), "above 500"),
        (claim("value", metric="qps", cells={"arm": "a"}, band={"below": "80 %"}), "below 80 %"),
        (claim("value", metric="qps", cells={"arm": "a"}, band={"point": 1}, published="one"), "one"),
    ],
)  # fmt: skip
def test_what_was_published_is_written_as_it_was(asked, text):
    assert bands.published_text(asked) == text
