"""Signals that ask a process to end let it leave in order, and it ends by them afterwards."""

import signal
import subprocess
import sys
from pathlib import Path

from benchbook.sites.processes import signal_handling

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
STOPPED_BESIDE_WORKERS = """
import os, signal, sys, time
from benchbook.core.util import parallel
from benchbook.sites.processes import signal_handling
if __name__ == "__main__":
    try:
        with signal_handling.Command("pages", is_holding=False), parallel.process_pool(2) as submit:
            submit(abs, -1).result()
            submit(time.sleep, 30)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)
    except KeyboardInterrupt:
        sys.exit(signal_handling.STOPPED)
"""


def test_a_command_stopped_beside_its_workers_says_so_and_no_more(tmp_path: Path):
    (tmp_path / "pages.py").write_text(STOPPED_BESIDE_WORKERS)
    done = subprocess.run([sys.executable, tmp_path / "pages.py"], timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (signal_handling.STOPPED, "benchbook pages: stopped\n")


def test_a_second_signal_does_not_cut_short_what_the_first_began(tmp_path: Path):
    """`timeout` sends TERM to its child, and then to the group that the child is in."""
    done = subprocess.run([sys.executable, "-c", ASKED_TWICE, str(tmp_path / "left")], timeout=60)
    assert done.returncode == -signal.SIGTERM
    assert (tmp_path / "left").exists()
