"""What the record says together, read from the archives of a commit, as `make pages` pools it."""

from __future__ import annotations

import json

from benchbook.commands import review_record
from tests.compare.sessions import finding, part, session


def test_a_session_of_which_one_arm_is_superseded_is_pooled_without_that_arm():
    made = {
        name: session(finding(part(0.1, 0.005)), measured=f"{name}T06:00", name=name)
        for name in ("2026-11-01", "2026-11-02")
    }
    entries = {name: {"measured": one.session.measured, "design": "a1"} for name, one in made.items()}
    entries["2026-11-01"]["superseded"] = {"reason": "It was cold.", "commit": "1234567", "arms": ["haproxy"]}
    results = {
        name: {"findings": one.findings.plain, "facts": {"study": "quick", "arms": one.facts}, "design": {}}
        for name, one in made.items()
    }
    found = review_record._pool_results(
        "quick", entries, lambda _, name: json.dumps(results[name], default=str)
    )
    assert [one.id for one in found.sessions] == [*made] and not found.left_out
    (contrast,) = found.contrasts
    assert [one.reason for one in contrast.whole.seen] == ["superseded: It was cold.", None]
    assert len(contrast.whole.sessions) == 1
