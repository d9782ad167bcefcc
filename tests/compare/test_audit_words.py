"""What the pages of the published sources say, word by word: every table, check, verdict and division.

A change of words or of a verdict is meant to be read: write the texts again with
`python -m tests.compare.test_audit_words` and look at the difference.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest

from benchbook.core.audit import Audit
from benchbook.core.source import names
from tests import sources

KEPT = Path(__file__).parents[1] / "data" / "audits"

DOCUMENT = (
    "source",
    "document",
    "versions",
    "hardware",
    "configuration",
    "sysbench",
    "conduct",
    "arms",
    "workloads",
)


def text(audit: Audit) -> str:
    """Write an audit down to its tables' heads, checks and claims: a line a check, a key, a cell."""
    found = audit.plain
    lines = [f"counts: {_json(found['counts'])}"]
    lines += [f"leaves open: {one}" for one in found["leaves_open"]]
    lines += [f"{key}: {_json(found[key])}" for key in DOCUMENT]
    for table in found["tables"]:
        head = {key: value for key, value in table.items() if key not in ("rows", "numbers")}
        lines += [
            f"table: {_json(head)}",
            f"  {_json(table['numbers'][0]) if table['numbers'] else 'no numbers'}",
        ]
    for one in found["checks"]:
        passed = {True: "passed", False: "failed", None: "nothing to check"}[one["passed"]]
        row = f", row {one['row']}" if "row" in one else ""
        place = f"{one['where']} ({', '.join(one['tables'])}{row})"
        lines.append(f"{one['check']}: {passed}, {place}: {one['detail']}")
    for claim in found["claims"]:
        lines.append("")
        for key, value in claim.items():
            if key in ("cells", "beside", "doubts"):
                lines += [f"{key}:", *(f"  {_json(one)}" for one in value)]
            else:
                lines.append(f"{key}: {value if isinstance(value, str) else _json(value)}")
    return "\n".join(lines) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


@pytest.mark.parametrize("name", names())
def test_the_page_of_a_source_says_what_was_read_and_agreed_to(name: str):
    expected = (KEPT / f"{name}.txt").read_text(encoding="utf-8")
    now = text(sources.audited(name))
    assert now == expected, "".join(difflib.unified_diff(expected.splitlines(True), now.splitlines(True)))


if __name__ == "__main__":
    for each in names():
        KEPT.mkdir(exist_ok=True)
        (KEPT / f"{each}.txt").write_text(text(sources.audited(each)), encoding="utf-8")
