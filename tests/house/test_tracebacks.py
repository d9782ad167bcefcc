"""A test whose traceback can't be shortened is named, and the tests after it run."""

import subprocess
import sys
from pathlib import Path

from tests.house import tree

HOOK = "from tests.tracebacks import pytest_runtest_makereport"
# pytest asks each frame of a traceback that it shortens whether it is to be hidden.
TESTS = """
def deeper(*_):
    return deeper()

def test_that_fails():
    __tracebackhide__ = deeper
    raise ValueError("as planted")

def test_after_it():
    pass
"""


def test_a_recursion_limit_met_while_a_traceback_is_shortened_costs_only_its_shortness(tmp_path: Path):
    (tmp_path / "conftest.py").write_text(HOOK)
    (tmp_path / "test_deep.py").write_text(TESTS)
    words = ["--tb=short", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", "/dev/null"]
    argv = [sys.executable, "-m", "pytest", *words, str(tmp_path)]
    done = subprocess.run(argv, cwd=tree.ROOT, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1 and "ValueError: as planted" in done.stdout
    assert "Traceback (most recent call last)" in done.stdout
