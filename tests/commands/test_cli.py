"""The command line: what is refused is refused at once, and a closed pipe is no traceback."""

import os
import subprocess
import sys

import pytest

HEAVY = ("pandas", "matplotlib", "jinja2", "sqlalchemy", "paramiko", "kubernetes", "nbformat")
SAID = """
import sys
from benchbook.commands import cli
try:
    code = cli.main(sys.argv[1:])
except SystemExit as error:
    code = error.code
print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
raise SystemExit(code)
"""


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("--help", 0, ""),
        ("plan --help", 0, ""),
        ("plan qick", 2, "studies: qick: no such study; did you mean quick?"),
        ("repro --study qick", 2, "did you mean quick?"),
        ("gate qick", 3, "did you mean quick?"),
        ("fleet quick --on nowhere.yaml", 1, "nowhere.yaml: no such file"),
        ("verify nowhere.tar.gz", 1, "nowhere.tar.gz: no such file"),
    ],
)
def test_help_and_refusals_load_nothing_that_takes_long(words: str, code: int, told: str):
    script = [sys.executable, "-c", SAID.format(heavy=HEAVY), *words.split()]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == code and told in done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_reader_that_has_enough_ends_a_command_without_a_traceback():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "benchbook.commands.cli", "plan", "lab-proxy"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
