"""What a session would measure by itself: what the record needs, of what can be made here."""

import pytest

from benchbook.commands import session


@pytest.mark.parametrize(("arm", "is_left_out"), [("another", False), ("postgresql", True)])
def test_an_arm_that_its_recorded_sessions_lack_is_not_waited_for(arm, is_left_out, monkeypatch):
    """The recorded sessions of `lab-engines` had a MariaDB and a PostgreSQL, and no other."""
    monkeypatch.setattr(session.feasibility, "find_infeasible", lambda _: {arm: "there is no such server"})
    needs, skipped = session.find_needed(["lab-engines"])
    assert bool(needs) is not is_left_out
    assert skipped == [f"lab-engines: {arm} can't be made here: there is no such server"] * is_left_out
