"""Signals that ask a process to end let it leave in order, and it ends by them afterwards."""

import signal
import subprocess
import sys
from pathlib import Path

ASKED_TWICE = """
import os, signal, sys, time
from pathlib import Path
from benchbook.sites.processes import signal_handling
with signal_handling.catch_signals():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
        Path(sys.argv[1]).touch()
"""


def test_a_second_signal_does_not_cut_short_what_the_first_began(tmp_path: Path):
    """`timeout` sends TERM to its child, and then to the group that the child is in."""
    done = subprocess.run([sys.executable, "-c", ASKED_TWICE, str(tmp_path / "left")], timeout=60)
    assert done.returncode == -signal.SIGTERM
    assert (tmp_path / "left").exists()
