"""A stage that a signal ended: what it had on this machine is removed by the process that started it."""

import subprocess

import pytest

from benchbook.commands import stage
from benchbook.core.util import paths
from benchbook.sites import workspace as labs
from benchbook.sites.processes import process


@pytest.mark.parametrize(("code", "is_left"), [(128 + 15, False), (1, True)])
def test_what_a_stage_had_on_this_machine_goes_with_it(code, is_left, open_folder, monkeypatch):
    """One that failed has left its site in order; a lab may then be another's, which holds the lock."""
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(open_folder / f"stage-{code}"))
    monkeypatch.setattr(stage, "execute_notebook", lambda *_, **__: code)
    lab = labs.open_lab(labs.lab_folder(paths.find_root(), "quick"))
    with subprocess.Popen(["/bin/sleep", "60"], env={process.TOKEN: lab.token}) as server:
        try:
            assert stage.run_stage("provision", "quick") == code
            assert (server.poll() is None) is is_left
        finally:
            server.kill()
