"""The audit of a source holds every printed number, and the same files give the same bytes."""

import difflib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchbook.compare.claims.audit import SILENT, audit_source
from benchbook.core.published.audit import Audit
from benchbook.core.published.source import Conduct
from benchbook.core.util import paths
from benchbook.core.util.source_files import source_names as names
from benchbook.read import published
from tests import sources


@pytest.fixture(scope="module")
def audits() -> dict[str, Audit]:
    return sources.audits()


def test_it_is_plain_json_and_the_same_each_time(audits: dict[str, Audit]):
    again = audit_source(published.load_source("tidb-upgrade"))
    assert json.dumps(again.plain, sort_keys=True, allow_nan=False) == json.dumps(
        audits["tidb-upgrade"].plain, sort_keys=True
    )


def test_every_number_of_every_table_is_in_it(audits: dict[str, Audit]):
    for name, found in audits.items():
        for table in found.tables:
            text = (paths.source_paths(name).published / table.file).read_text(encoding="utf-8")
            body = text if table.file.endswith(".log") else text.partition("\n")[2]
            shown = " ".join(" ".join(row) for row in table.rows)
            assert re.findall(r"\d+(?:\.\d+)?", shown) == re.findall(r"\d+(?:\.\d+)?", body)


def test_a_verdict_carries_the_doubts_about_its_tables(audits: dict[str, Audit]):
    """The arithmetic says -10.8 %; that the table is another one's must stand beside it."""
    claims = {claim.id: claim for claim in audits["tidb-kubernetes"].claims}
    doubts = " ".join(claims["tidb-kubernetes/load-balancer"].doubts)
    for doubt in ("12 of 12 numbers are equal", "at least one of the two tables is mislabelled"):
        assert doubt in doubts


def test_what_a_document_does_not_say_is_left_open(audits: dict[str, Audit]):
    assert SILENT["repetitions"] in audits["tiproxy-haproxy"].leaves_open
    assert SILENT["client_machines"] not in audits["tiproxy-haproxy"].leaves_open
    assert set(SILENT) == set(Conduct.model_fields)


def test_the_counts_add_up(audits: dict[str, Audit]):
    counts = audits["tidb-kubernetes"].counts
    assert counts.claims == sum(counts.verdicts)
    # 13 tables of 6 rows with QPS and p95.
    assert counts.cells == 13 * 6 * 2


KEPT = Path(__file__).parents[2] / "data" / "audits"

DOCUMENT = (
    *("source", "document", "versions", "hardware"),
    *("configuration", "sysbench", "conduct", "arms", "workloads"),
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
    """A change of words or of a verdict is meant to be read: write the texts again with
    `python -m tests.compare.claims.test_audit` and look at the difference.
    """
    expected = (KEPT / f"{name}.txt").read_text(encoding="utf-8")
    now = text(sources.audited(name))
    assert now == expected, "".join(difflib.unified_diff(expected.splitlines(True), now.splitlines(True)))


if __name__ == "__main__":
    for each in names():
        KEPT.mkdir(exist_ok=True)
        (KEPT / f"{each}.txt").write_text(text(sources.audited(each)), encoding="utf-8")
