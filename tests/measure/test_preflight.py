"""What is refused before the first run, from any notebook too; limits of a server are in tests/faults."""

from __future__ import annotations

from benchbook.measure import preflight
from tests.plan.test_schedule import make


def test_a_twin_that_would_mislead_is_refused_however_measuring_begins():
    arms = {"a": {"engine": {"version": "5.0"}}, "b": {"engine": {"version": "6.6"}}}
    study = make(arms=arms, engine={"name": "tidb"}, aa={"threads": (4,)}, plan={"order": None})
    (told,) = preflight.machine(study, {}, {})
    assert told.startswith("aa.threads: [4]: ") and "write aa: {}" in told
