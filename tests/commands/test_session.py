"""What a session would measure by itself: what the record needs, of what can be made here."""

import subprocess
import sys

import pytest

from benchbook.commands import session
from benchbook.sites.topology import feasibility


@pytest.mark.parametrize(("arm", "is_left_out"), [("another", False), ("postgresql", True)])
def test_an_arm_that_its_recorded_sessions_lack_is_not_waited_for(arm, is_left_out, monkeypatch):
    """The recorded sessions of `lab-engines` had a MariaDB and a PostgreSQL, and no other."""
    monkeypatch.setattr(feasibility, "find_infeasible", lambda _: {arm: "there is no such server"})
    needs, skipped = session.find_needed(["lab-engines"])
    assert bool(needs) is not is_left_out
    assert skipped == [f"lab-engines: {arm} can't be made here: there is no such server"] * is_left_out


def test_a_refusal_waits_for_no_library_of_statistics():
    """Neither the command nor a refusal of it imports what only measured sessions need."""
    asked = "import sys; from benchbook.commands import cli; code = cli.main(['session', '--because', 'x']); "
    asked += "print(code, *sys.modules.keys() & {'pandas', 'scipy', 'sqlalchemy'})"
    answer = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert answer.stdout == "2\n" and "name the study" in answer.stderr
