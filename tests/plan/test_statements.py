"""What the pilots teach of an own script's events."""

from __future__ import annotations

import pytest

from benchbook.plan import settling

# 3 reads, a write and 2 others an event; a read and no other with which each of 4 threads begins.
RULE = {
    "event": {"reads": 3, "writes": 1, "other": 2},
    "thread": {"reads": 1, "writes": 0, "other": 0},
}


def pilot(**changes: int) -> dict[str, int]:
    # 3 * 100 + 4, 100, 2 * 100.
    return {"threads": 4, "events": 100, "reads": 304, "writes": 100, "other": 200, "errors": 0} | changes


def test_statements_that_all_events_share_are_a_rule():
    # At 8 threads and 500 events: 3 * 500 + 8, 500, 2 * 500.
    more = pilot(threads=8, events=500, reads=1508, writes=500, other=1000)
    assert settling.statements({"mine": [pilot(), more]}) == {"mine": RULE}


def test_a_mixture_errors_and_silence_give_no_rule():
    for changed in (pilot(reads=301), pilot(reads=350), pilot(errors=1), pilot(events=0)):
        assert settling.statements({"mine": [changed]}) == {"mine": {}}
    assert settling.statements({"mine": [pilot(), pilot(reads=404)]}) == {"mine": {}}


@pytest.mark.parametrize(
    ("events", "beside", "at_begin"),
    [
        # Four threads: more than ten events each, and at most ten statements with which each of them begins.
        (41, 40, 10),
        (40, 40, None),
        (60, 40, 10),
        (60, 44, None),
        # What threads do not share equally is none of theirs.
        (60, 42, None),
        (60, 0, 0),
    ],
)
def test_a_thread_begins_with_ten_statements_at_the_most(events: int, beside: int, at_begin: int | None):
    one = pilot(events=events, reads=3 * events + beside, writes=events, other=2 * events)
    due = RULE | {"thread": {"reads": at_begin, "writes": 0, "other": 0}}
    assert settling.statements({"mine": [one]}) == {"mine": {} if at_begin is None else due}


def test_plans_carry_digests_and_statements_and_nothing_without_own_scripts():
    own = {"scripts": {"mine": {"text": {"mine.lua": ""}, "sha256": {"mine.lua": "e3b0"}}}, "tables": {}}
    record = settling.own_record(own, {"mine": [pilot()]})
    assert settling.own_carried(record) == {"mine": {"files": {"mine.lua": "e3b0"}, "statements": RULE}}
    assert settling.own_record({}, {}) == {}
    assert settling.own_carried({}) == {}
