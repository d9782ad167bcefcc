"""What the pilots teach of an own script's events."""

from __future__ import annotations

from benchbook.plan import statements


def totals(**changes: int) -> dict[str, int]:
    return {"events": 100, "reads": 300, "writes": 100, "other": 200, "errors": 0} | changes


def test_statements_that_all_events_share_are_a_rule():
    # 300 / 100, 100 / 100, 200 / 100.
    assert statements.learned({"mine": totals()}) == {"mine": {"reads": 3, "writes": 1, "other": 2}}


def test_a_mixture_errors_and_silence_give_no_rule():
    for changed in (totals(reads=301), totals(errors=1), totals(events=0)):
        assert statements.learned({"mine": changed}) == {"mine": {}}


def test_plans_carry_digests_and_statements_and_nothing_without_own_scripts():
    own = {"scripts": {"mine": {"text": {"mine.lua": ""}, "sha256": {"mine.lua": "e3b0"}}}, "tables": {}}
    record = statements.record(own, {"mine": totals()})
    assert statements.of(record) == {
        "mine": {"files": {"mine.lua": "e3b0"}, "statements": {"reads": 3, "writes": 1, "other": 2}}
    }
    assert statements.record({}, {}) == {}
    assert statements.of({}) == {}
