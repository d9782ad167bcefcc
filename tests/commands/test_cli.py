"""The command line: what is refused is refused at once, and a closed pipe is no traceback."""

import os
import subprocess
import sys

from tests import forked
from tests.goldens import assert_golden

HEAVY = ("pandas", "scipy", "matplotlib", "jinja2", "sqlalchemy", "paramiko", "kubernetes", "nbformat")
PROGRAM = f"""
import sys
from benchbook.commands import cli

def call(*words):
    try:
        code = cli.main(words)
    except SystemExit as error:
        code = error.code
    return code, [name for name in {HEAVY} if name in sys.modules]
"""
# One with a cluster to make, of which the script is longer than a line.
STUDY = "tidb-kubernetes-workloads"
REFUSED = {
    "plan qick": 2,
    "repro --study qick": 2,
    "gate qick": 3,
    "fleet quick --on nowhere.yaml": 1,
    "verify nowhere.tar.gz": 1,
    "session --because x": 2,
}


def test_help_and_refusals_load_nothing_that_takes_long():
    """What is refused, and how: goldens/refused_commands.txt."""
    lines = []
    with forked.calls(PROGRAM) as call:
        for words in ("--help", "plan --help"):
            assert call(*words.split())[:2] == (0, [0, []])
        for words, code in REFUSED.items():
            _, answer, printed = call(*words.split())
            assert answer == [code, []], words
            lines.append(f"benchbook {words}\n{printed}")
    assert_golden("refused_commands.txt", "\n".join(lines))


def test_a_reader_that_has_enough_ends_a_command_without_a_traceback():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "benchbook.commands.cli", "cluster", STUDY, "show"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
