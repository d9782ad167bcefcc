"""The Makefile says what it can do, and says it of every target."""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchbook.commands import cli
from benchbook.sites.processes import procfs
from tests import beside
from tests.house import tree

MAKEFILE = tree.text(tree.ROOT / "Makefile")
PROMISED = {
    *("repro", "test", "test-all", "lint", "doctor", "plan", "up", "down"),
    *("lab", "report", "strip", "lock", "clean"),
}


def test_help_lists_every_target_with_its_purpose():
    listed = "\n".join(tree.shell_lines("make", "--no-print-directory"))
    described = dict(re.findall(r"^  ([a-z-]+) +(\S.*)$", listed, re.M))
    assert set(described) == tree.make_targets()
    assert tree.make_targets() >= PROMISED


def test_every_target_is_phony():
    """A file or folder called `test` must not make `make test` a success."""
    declared = re.search(r"^\.PHONY:(.*)$", MAKEFILE, re.M)
    assert declared and set(declared.group(1).split()) == tree.make_targets()


def test_every_target_sets_up_first():
    # `pages` sets up less than the others: no database and no sysbench.
    named = tree.make_targets() - {"help", "setup", "clean", "pages"}
    assert re.search(r"^pages:.*\n\t@sh tools/setup.sh --pages$", MAKEFILE, re.M)
    assert not [name for name in named if not re.search(rf"^{name}: setup\b", MAKEFILE, re.M)]


def test_commands_behind_the_targets_exist():
    called = set(re.findall(r"\bbenchbook ([a-z-]+)", MAKEFILE))
    assert {"doctor", "plan", "up", "down"} <= called <= set(tomllib.loads(cli.KNOWN.read_text()))


def test_tools_are_there_and_parse():
    called = set(re.findall(r"sh (tools/\w+\.sh)", MAKEFILE))
    for name in called:
        subprocess.run(["sh", "-n", name], cwd=tree.ROOT, check=True)
    there = {f"tools/{path.name}" for path in (tree.ROOT / "tools").glob("*.sh")}
    assert there - called == {"tools/debian_packages.sh"}, "set-up calls this one"
    assert not called - there


def test_ci_calls_the_test_command_and_can_be_executed():
    run = tree.ROOT / ".ci" / "run"
    assert "make test" in run.read_text()
    assert run.stat().st_mode & stat.S_IXUSR


def test_where_the_report_is_works_with_spaces_and_without_a_report(tmp_path):
    clone = tmp_path / "a clone"
    (clone / "reports").mkdir(parents=True)
    script = tree.ROOT / "tools" / "report.sh"
    none = subprocess.run(["sh", script, "where"], cwd=clone, capture_output=True, text=True, check=False)
    assert none.returncode == 1 and "make repro" in none.stderr
    (clone / "reports" / "index.html").write_text("")
    some = subprocess.run(["sh", script, "where"], cwd=clone, capture_output=True, text=True, check=True)
    assert some.stdout == f"Report: {clone}/reports/index.html\n"


OF_MAKE = """
export PATH := $(PATH)
all:
	@python -S {script} {python} -c 'import os, time; print(os.getpid(), flush=True); time.sleep(60)'
"""


@pytest.mark.parametrize("sudo", [False, True], ids=["make", "sudo make"])
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_what_make_started_ends_with_make(tmp_path: Path, signum: signal.Signals, sudo: bool):
    if sudo and os.geteuid() != 0:
        pytest.skip("needs root, to play sudo")
    script = tree.ROOT / "tools" / "as_owner.py"
    (tmp_path / "Makefile").write_text(OF_MAKE.format(script=script, python=sys.executable))
    more = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    if sudo:
        os.chown(tmp_path, 12345, 12345)
        more |= {"SUDO_UID": "12345", "SUDO_GID": "12345"}
    asked = ["make", "--no-print-directory"]
    with subprocess.Popen(asked, cwd=tmp_path, env=os.environ | more, stdout=subprocess.PIPE) as make:
        assert make.stdout is not None
        pid = int(make.stdout.readline())
        make.send_signal(signum)
        assert beside.gone(lambda: [pid] if procfs.is_alive(pid) else []) == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("find"), reason="needs root, to play sudo")
def test_under_sudo_what_was_written_goes_back_to_the_owner(tmp_path):
    os.chown(tmp_path, 12345, 12345)
    script = tree.ROOT / "tools" / "as_owner.py"
    sudo = os.environ | {"SUDO_UID": "12345", "SUDO_GID": "12345"}
    written = "mkdir data; touch data/new; exit 7"
    done = subprocess.run([sys.executable, script, "sh", "-c", written], cwd=tmp_path, env=sudo, check=False)
    assert done.returncode == 7
    assert (tmp_path / "data" / "new").stat().st_uid == 12345
