"""What a session would measure by itself: what the record needs, of what can be made here."""

import pytest

from benchbook.commands import session
from benchbook.sites.topology import feasibility


@pytest.mark.parametrize(("arm", "is_left_out"), [("another", False), ("postgresql", True)])
def test_an_arm_that_its_recorded_sessions_lack_is_not_waited_for(arm, is_left_out, monkeypatch):
    """The recorded sessions of `lab-engines` had a MariaDB and a PostgreSQL, and no other."""
    monkeypatch.setattr(feasibility, "find_infeasible", lambda _: {arm: "planted"})
    needs, skipped = session.find_needed(["lab-engines"])
    assert bool(needs) is not is_left_out
    assert len(skipped) == is_left_out
    for line in skipped:
        study, what, reason = line.split(": ")
        assert (study, what.split()[0], reason) == ("lab-engines", arm, "planted")
