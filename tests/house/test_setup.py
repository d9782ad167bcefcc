"""Set-up on machines that we are not on: what it says, what it installs, what it leaves alone."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.goldens import assert_golden
from tests.house import tree

# What a system has before any package of ours; nothing else is in PATH.
BASE = (
    *("sh", "cat", "cksum", "dirname", "env", "awk", "sed", "grep", "tail", "tr"),
    *("rm", "mv", "cp", "mkdir", "mktemp", "chmod", "stat", "date", "id", "uname", "df"),
)
# Answers what set-up asks an interpreter; making .venv itself is left to real machines.
PYTHON = """#!/bin/sh
case $* in
  *version_info*) echo {minor} ;;
  -V) echo 'Python 3.{minor}.2' ;;
  *ensurepip*) exit {venv} ;;
  '-m venv .venv') exit 9 ;;
esac
"""


# Makes a .venv whose uv always fails, and notes what pip was asked for and with which packages.
FILLING = """#!/bin/sh
case $* in
  *version_info*) echo 12 ;;
  -V) echo 'Python 3.12.2' ;;
  '-m venv .venv') mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  *'-m pip'*' -r '*)
    printf '#!/bin/sh\\nexit 2\\n' >.venv/bin/uv; chmod 755 .venv/bin/uv
    echo "$*" >>pip.log; for last; do :; done; cp "$last" "pip.$(grep -c . pip.log).txt" ;;
  *' install '*)
    echo "$*" >>pip.log; site=.venv/lib/python3.12/site-packages; mkdir -p $site
    pwd >$site/__editable__.benchbook-1.pth ;;
  *'-m pip'*) exit 1 ;;
esac
"""


PROGRAMS = ("sysbench", "mariadbd", "haproxy")


class Machine:
    """A clone on a made-up machine: a Debian with Python 3.12 and none of the programs that are measured."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clone, self.bin = folder, folder / "my clone", folder / "bin"
        self.variables: dict[str, str] = {}
        self.clone.mkdir(parents=True)
        self.bin.mkdir()
        shutil.copytree(tree.ROOT / "tools", self.clone / "tools")
        for name in ("requirements.lock", "pyproject.toml"):
            shutil.copy(tree.ROOT / name, self.clone)
        for name in BASE:
            if found := shutil.which(name):
                (self.bin / name).symlink_to(found)
        self.has("python3", script=PYTHON.format(minor=12, venv=0))
        self.is_a('ID=debian\nVERSION_ID="12"\n')

    def has(self, *programs: str, script: str = "#!/bin/sh\n") -> None:
        for program in programs:
            (self.bin / program).write_text(script)
            (self.bin / program).chmod(0o755)

    def is_a(self, release: str) -> None:
        (self.folder / "os-release").write_text(release)

    def set_up(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        given = {
            "PATH": str(self.bin), "HOME": str(self.folder), "BENCHBOOK_SBIN": "",
            "BENCHBOOK_OS_RELEASE": str(self.folder / "os-release"), "BENCHBOOK_UID": "1000",
            "BENCHBOOK_POLICY": str(self.folder / "policy-rc.d"),
        }  # fmt: skip
        return subprocess.run(
            [shutil.which("sh"), "tools/setup.sh", *arguments], cwd=self.clone, env=given | self.variables,
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=30,
        )  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def filling(machine: Machine) -> Machine:
    """One that has the programs, and a Python that fills its .venv."""
    machine.has(*PROGRAMS)
    machine.has("python3", script=FILLING)
    return machine


@pytest.fixture
def root(machine: Machine) -> Machine:
    """One on which root is at work."""
    machine.variables["BENCHBOOK_UID"] = "0"
    return machine


def refused(machine: Machine) -> str:
    """Run set-up; it must stop with exit 2, say so once, and change nothing."""
    before = sorted(machine.clone.rglob("*"))
    done = machine.set_up()
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("Nothing was changed") == 1
    assert sorted(machine.clone.rglob("*")) == before
    return done.stderr


ALL = (*PROGRAMS, "ip", "iptables")
# What each has beside that, the release and minor version of its Python, and what its programs do.
REFUSED: dict[str, dict[str, Any]] = {
    "Debian without root or sudo": {},
    "HAProxy alone is missing": {"has": ("sysbench", "mariadbd", "ip", "iptables")},
    "a sudo that needs a password, without a terminal": {"does": {"sudo": "exit 1"}},
    "no venv module": {"has": ALL, "python": {"minor": 11, "venv": 1}},
    "Ubuntu 22.04, where python3 is 3.10 and apt has a newer one": {
        "is": "ID=ubuntu\nID_LIKE=debian\n", "has": ALL, "python": {"minor": 10, "venv": 0},
        "does": {"apt-cache": "[ $2 = python3.11-venv ]"},
    },
    "an old Python and no newer one": {"python": {"minor": 9, "venv": 0}},
    "a Python that is too new": {"python": {"minor": 15, "venv": 0}},
    "no Python": {"python": None},
    "Fedora": {"is": "ID=fedora\n", "uid": "0"},
    "Rocky": {"is": 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', "uid": "0"},
    "Arch": {"is": "ID=arch\n", "uid": "0"},
    "Alpine": {"is": "ID=alpine\n", "uid": "0"},
    "openSUSE": {"is": "ID=opensuse-tumbleweed\nID_LIKE='opensuse suse'\n", "uid": "0"},
    "a system that nobody knows": {"is": "ID=void\n", "uid": "0"},
    "a Mac": {"is": "", "uname": "Darwin"},
}  # fmt: skip


def test_each_system_is_told_what_is_missing_and_gets_its_own_command(tmp_path: Path):
    told = []
    for title, one in REFUSED.items():
        machine = Machine(tmp_path / title)
        machine.has(*one.get("has", ()))
        for program, does in one.get("does", {}).items():
            machine.has(program, script=f"#!/bin/sh\n{does}\n")
        if one.get("python"):
            machine.has("python3", script=PYTHON.format(**one["python"]))
        elif "python" in one:
            (machine.bin / "python3").unlink()
        if "is" in one:
            machine.is_a(one["is"])
        machine.variables |= {f"BENCHBOOK_{key.upper()}": one[key] for key in ("uid", "uname") if key in one}
        told.append(f"{title}\n\n{refused(machine)}")
    assert_golden("setup.txt", "\n".join(told))


def test_tests_ask_for_the_servers_that_only_they_need(machine: Machine):
    machine.has("mariadbd", "haproxy", "ip", "iptables", "sshd")
    said = machine.set_up("--tests").stderr
    assert "--no-install-recommends sysbench postgresql pgbouncer\n" in said


def apt(machine: Machine, install: str) -> Path:
    """Give the machine an apt-get that notes its arguments, and runs `install` when it should install."""
    log = machine.folder / "apt.log"
    script = f"#!/bin/sh\necho \"$*\" >>'{log}'\ncase $* in *' install '*) {install};; esac\n"
    machine.has("apt-get", script=script)
    return log


def test_root_on_debian_installs_what_is_missing_and_starts_no_service(root: Machine):
    root.has("sysbench", "ip", "iptables")
    guard, log = root.folder / "policy-rc.d", root.folder / "apt.log"
    put = f"for name in mariadbd haproxy; do cp '{root.bin}/sysbench' '{root.bin}'/$name; done"
    apt(root, f"'{guard}' || echo guard says $? >>'{log}'; {put}")
    done = root.set_up()
    asked = log.read_text().splitlines()
    assert asked[1].endswith("install -y --no-install-recommends mariadb-server haproxy"), done.stderr
    assert asked[2] == "guard says 101"
    assert not guard.exists()


OURS = "#!/bin/sh\n# put here by benchbook while it installs packages: start nothing\nexit 101\n"
THEIRS = "#!/bin/sh\n# the system's own\n"


@pytest.mark.parametrize("is_left", [False, True], ids=["its own", "ours, of a killed install"])
def test_the_guard_of_the_system_is_put_back_also_after_a_failure(root: Machine, is_left: bool):
    guard, saved = root.folder / "policy-rc.d", root.folder / "policy-rc.d.before-benchbook"
    guard.write_text(OURS if is_left else THEIRS)
    if is_left:
        saved.write_text(THEIRS)
    apt(root, "echo 'E: no such package' >&2; exit 100")
    done = root.set_up()
    assert done.returncode == 1 and "E: no such package" in done.stderr
    assert guard.read_text() == THEIRS and not saved.exists()
    assert not (root.clone / ".venv").exists()


def test_old_python_on_debian_as_root_installs_nothing(root: Machine):
    root.has("python3", script=PYTHON.format(minor=9, venv=0))
    root.has("apt-cache", script="#!/bin/sh\nexit 1\n")
    log = apt(root, "true")
    assert "uv python install" in refused(root)
    assert " install " not in log.read_text()


def test_without_the_tools_of_some_arms_set_up_goes_on(machine: Machine):
    """ip and iptables are for arms in a pod or behind a service; who lacks them can still measure."""
    machine.has(*PROGRAMS)
    done = machine.set_up()
    assert "Nothing was changed" not in done.stderr and "making .venv" in done.stderr


def asked_of_pip(machine: Machine) -> list[str]:
    """Return what pip was asked for, a line a time."""
    return (machine.clone / "pip.log").read_text().splitlines()


def packages(file: Path) -> set[str]:
    return {line.partition("==")[0] for line in file.read_text().splitlines() if line[:1].isalnum()}


@pytest.mark.parametrize("tests", [False, True], ids=["to measure", "to test"])
def test_where_uv_fails_pip_takes_the_lock_as_it_is(filling: Machine, tests: bool):
    """The lock overrides what two packages ask for: a pip that resolves again refuses it."""
    done, clone = filling.set_up(*["--tests"] * tests), filling.clone
    assert done.returncode == 0, done.stderr
    assert "trying pip" in done.stderr
    (link,) = (clone / ".venv").glob("lib/python3.*/site-packages/__editable__.benchbook-*.pth")
    assert link.read_text() == "../../../../lib\n"
    assert {"--require-hashes", "--no-deps"} <= set(asked_of_pip(filling)[1].split())
    locks = (clone / "tools").glob("lock-[lt]*.txt")
    only = {name for file in locks for name in file.read_text().split()}
    everything = packages(clone / "requirements.lock")
    assert {"pytest", "playwright", "altair"} <= only < everything
    assert packages(clone / "pip.2.txt") == (everything if tests else everything - only)
    lines = (clone / "pip.2.txt").read_text().splitlines()
    assert all(line.startswith(("    --hash=sha256:", *everything)) for line in lines)


def test_tests_are_asked_for_by_make_and_stay(filling: Machine):
    assert filling.set_up().returncode == 0
    assert filling.set_up("--check").returncode == 0
    assert filling.set_up("--tests").returncode == 0
    assert len(asked_of_pip(filling)) == 6
    assert filling.set_up().returncode == 0 and filling.set_up("--tests").returncode == 0
    assert len(asked_of_pip(filling)) == 6, "nothing is left to install"
    for target, flag in (("test", " --tests"), ("lint", " --tests"), ("lab", " --lab"), ("repro", "")):
        first, *_ = tree.shell_lines("make", "--no-print-directory", "-n", target)
        assert first.rstrip() == f"sh tools/setup.sh{flag}"


def test_an_environment_that_has_the_tests_keeps_them(filling: Machine):
    """One made before there was a choice has no mark that says so."""
    assert filling.set_up().returncode == 0
    programs = filling.clone / ".venv" / "bin"
    (filling.clone / ".venv" / "benchbook-setup").unlink()
    (programs / "activate").write_text(str(filling.clone.resolve() / ".venv"))
    (programs / "pytest").touch()
    assert filling.set_up().returncode == 0
    assert packages(filling.clone / "pip.5.txt") == packages(filling.clone / "requirements.lock")
    assert filling.set_up("--tests").returncode == 0
    assert len(asked_of_pip(filling)) == 6, "nothing is left to install"


def test_a_disk_without_room_is_named_before_anything_is_installed(machine: Machine):
    machine.has(*PROGRAMS)
    (machine.bin / "df").unlink()
    header = "Filesystem 1024-blocks Used Available Capacity Mounted on"
    # 600 MiB are 614,400 KiB.
    machine.has("df", script=f"#!/bin/sh\necho '{header}'\necho '/dev/a 9 9 614400 9% /a b'\n")
    said = refused(machine)
    assert "The environment takes 1250 MB, and 600 MB are free" in said
    assert "Missing" not in said


def test_a_set_up_that_was_cut_short_begins_again(machine: Machine):
    machine.has(*PROGRAMS)
    (machine.clone / ".venv").mkdir()
    (machine.clone / ".venv" / "benchbook-unfinished").touch()
    (machine.clone / ".venv" / "half a package").touch()
    assert "cut short" in machine.set_up().stderr
    assert not (machine.clone / ".venv" / "half a package").exists()


def test_a_moved_environment_is_made_anew(machine: Machine):
    machine.has(*PROGRAMS)
    programs = machine.clone / ".venv" / "bin"
    programs.mkdir(parents=True)
    shutil.copy(machine.bin / "python3", programs / "python")
    (programs / "activate").write_text("VIRTUAL_ENV=/somewhere/else/.venv\n")
    assert "another place" in machine.set_up().stderr


def test_the_environment_of_these_tests_is_the_one_of_the_lock():
    """`make test` sets up first; whoever calls pytest by hand may have another environment."""
    if "BENCHBOOK_REQUIRE_SERVER" not in os.environ:
        pytest.skip("not under make test")
    subprocess.run(["sh", "tools/setup.sh", "--check"], cwd=tree.ROOT, check=True, timeout=30)


def test_looking_changes_nothing(machine: Machine):
    before = sorted(machine.clone.rglob("*"))
    assert machine.set_up("--check").returncode == 1
    assert sorted(machine.clone.rglob("*")) == before
