"""A child cannot outlive its owner, and nobody else's process is ever ended."""

import json
import os
import pwd
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchbook.core.util.errors import SiteError
from benchbook.sites.processes import process, procfs
from benchbook.sites.processes.spawn import ProcessPlacement
from tests import beside, programs


def begin(folder: Path, *argv: str, **how: Any) -> process.Child:
    """Start a child, one that sleeps if no other is named, whose output is in the folder."""
    given = {"token": "t", "folder": folder, "out": folder / "out", **how}
    return process.start_child("test", list(argv or ("/bin/sleep", "60")), **given)


def begin_python(folder: Path, code: str) -> process.Child:
    """Start a program, and wait until it has printed something."""
    started = begin(folder, sys.executable, "-c", code)
    assert beside.until((folder / "out").read_text)
    return started


@pytest.fixture
def child(tmp_path: Path):
    started = begin(tmp_path, token="mine", pidfile=tmp_path / "pid.json")
    yield started
    process.stop_child(started, grace_s=1)


def test_a_pid_file_proves_ownership_until_the_process_ends(child: process.Child, tmp_path: Path) -> None:
    known = process.read_pidfile(tmp_path / "pid.json")
    assert known == child
    assert process.is_ours(known)
    assert process.stop_child(child) is True
    assert not process.is_ours(known) and not child.is_alive


@pytest.mark.parametrize("change", [{"token": "another"}, {"started": 1}])
def test_a_process_that_took_over_the_id_is_left_alone(child: process.Child, change: dict) -> None:
    other = replace(child, popen=None, **change)
    assert not process.is_ours(other)
    process.stop_child(other)
    assert child.is_alive


@pytest.mark.parametrize("text", ["", '{"pid": 1', "[]", '{"pid": "x"}'])
def test_an_empty_or_cut_pid_file_proves_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pid").write_text(text)
    assert process.read_pidfile(tmp_path / "pid") is None
    assert process.read_pidfile(tmp_path / "missing") is None


def test_a_child_that_ignores_term_and_one_that_is_stopped_end_too(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    assert process.stop_child(begin_python(tmp_path, code), grace_s=0.2) is False
    asleep = begin(tmp_path)
    os.kill(asleep.pid, signal.SIGSTOP)
    assert process.stop_child(asleep, grace_s=5) is True


def test_a_child_that_writes_its_title_over_its_environment_ends_all_the_same(tmp_path: Path) -> None:
    """As nginx does: it was taken for another's and left running, so that its port was taken later."""
    code = (
        "import ctypes, time; place = open('/proc/self/stat').read().rpartition(')')[2].split()[47:49]\n"
        "ctypes.memset(int(place[0]), 0, int(place[1]) - int(place[0]))\n"
        "print('t', flush=True); time.sleep(60)"
    )
    titled = begin_python(tmp_path, code)
    assert process.TOKEN not in procfs.read_environment(titled.pid)
    assert process.is_ours(titled) and process.stop_child(titled, grace_s=5) is True
    assert not titled.is_alive


def test_a_child_has_its_own_group_a_plain_environment_and_no_pipe(child: process.Child) -> None:
    assert os.getpgid(child.pid) == child.pid and os.getsid(child.pid) == os.getsid(0)
    # The tests' own home is there where sysbench's loops wait.
    due = {"PATH", "LC_ALL", "TZ", process.TOKEN, process.FOLDER}
    due |= {"HOME"} if programs.HOME in os.environ else set()
    assert set(procfs.read_environment(child.pid)) == due
    targets = [os.readlink(f"/proc/{child.pid}/fd/{fd}") for fd in (0, 1, 2)]
    assert targets[0] == "/dev/null" and not any(target.startswith("pipe:") for target in targets)


def test_a_thread_may_not_start_children(tmp_path: Path) -> None:
    """The kernel would end the child with the thread."""
    raised: list[BaseException] = []

    def attempt() -> None:
        try:
            begin(tmp_path, "/bin/true")
        except SiteError as error:
            raised.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert "main thread" in str(raised[0])


def test_a_missing_program_and_one_that_hangs_are_site_errors(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="/no/such"):
        begin(tmp_path, "/no/such")
    slow = begin(tmp_path)
    with pytest.raises(SiteError, match="did not end within 0 s"):
        process.wait_for_child(slow, 0.05)
    assert not slow.is_alive


def test_a_child_is_where_it_was_put_and_hears_all_signals(tmp_path: Path) -> None:
    core = max(os.sched_getaffinity(0))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        child = begin(tmp_path, where=ProcessPlacement(cpus=(core,), nofile=123))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert os.sched_getaffinity(child.pid) == {core}
    assert resource.prlimit(child.pid, resource.RLIMIT_NOFILE) == (123, 123)
    told = dict(line.split(":", 1) for line in Path(f"/proc/{child.pid}/status").read_text().splitlines())
    # This process has blocked the first, and Python ignores the others.
    for name, signum in (("SigBlk", signal.SIGUSR1), ("SigIgn", signal.SIGPIPE), ("SigIgn", signal.SIGXFSZ)):
        assert not int(told[name], 16) & 1 << signum - 1, signum
    running = os.readlink(f"/proc/{child.pid}/exe")
    assert running == os.path.realpath("/bin/sleep"), "what is known of it is the program's"
    process.stop_child(child)


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    where = ProcessPlacement(groups=(tmp_path / "no group",))
    with pytest.raises(SiteError, match=rf": /bin/true .*{where.groups[0]}/cgroup\.procs"):
        begin(tmp_path, "/bin/true", where=where)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give rights away")
def test_a_child_without_our_rights_still_dies_with_its_owner(tmp_path: Path) -> None:
    """Giving rights away clears the kernel's promise, so it must come first."""
    code = f"""
import time
from pathlib import Path
from benchbook.sites.processes import process
child = process.start_child("x", ["/bin/sleep", "60"], token="t", folder=Path("/"), user="nobody",
                      out=Path({str(tmp_path / "out")!r}))
print(child.pid, flush=True)
time.sleep(60)
"""
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(owner.stdout.readline())
    assert Path(f"/proc/{pid}").stat().st_uid == pwd.getpwnam("nobody").pw_uid
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert not beside.gone(lambda: procfs.is_alive(pid))


# A process of its own, in a session of its own: this one's precedence is not touched.
TAKE = """
import json, os, subprocess
from benchbook.sites.processes import process, procfs
def seen(pid):
    place = procfs.describe_placement(pid)
    return [int(place["nice"]), int(place.get("session_nice", place["nice"]))]
before = seen(os.getpid())
with process.before_others():
    inside = seen(os.getpid())
    with process.before_others():
        pass
    with subprocess.Popen(["sleep", "60"], process_group=0) as child:
        started = seen(child.pid)
        child.kill()
print(json.dumps([before, inside, started, seen(os.getpid())]))
"""
WITHOUT_THE_RIGHT = ("setpriv", "--bounding-set", "-sys_nice", "--")


def _taken(*first: str) -> list[list[int]]:
    argv = [*first, sys.executable, "-c", TAKE]
    done = subprocess.run(argv, capture_output=True, text=True, start_new_session=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_is_started_goes_before_ordinary_programs_and_everything_is_given_back() -> None:
    before, inside, started, after = _taken()
    assert inside == started == [min(before[0], -10)] * 2
    assert after == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a right up")
def test_without_the_right_to_it_nothing_changes_and_nothing_fails() -> None:
    before, *others = _taken(*WITHOUT_THE_RIGHT)
    assert others == [before] * 3


def test_where_the_kernel_schedules_no_sessions_there_is_nothing_to_say(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(procfs, "PROC", tmp_path)
    assert procfs.session_nice(os.getpid()) is None


def started(folder: Path, number: int, at: float) -> process.Child:
    note = folder / f"begun-{number}"
    argv = process.defer_command(["sleep", "1"], at, note)
    return replace(begin(folder, *argv, out=folder / f"{number}.out"), note=note)


def test_several_begin_at_one_moment_whenever_they_were_started(tmp_path: Path):
    at = time.monotonic() + 3.0  # a busy machine takes its time to start three
    children = []
    for number in range(3):
        children.append(started(tmp_path, number, at))
        time.sleep(0.4)
    assert [child.begun_s for child in children] == [None] * 3, "they wait"
    names: list[str] = []
    while names != ["sleep"] * 3 and time.monotonic() < at + 0.9:
        time.sleep(0.01)
        names = [psutil.Process(child.pid).name() for child in children]
    assert names == ["sleep"] * 3, "the same process"
    begun = [child.begun_s for child in children]
    assert all(child.popen.wait(timeout=60) == 0 for child in children)
    assert all(at <= one < at + 0.5 for one in begun)
    # They were started 0.4 s apart, the last 0.8 s after the first.
    assert max(begun) - min(begun) < 0.4


def test_one_whose_moment_has_passed_begins_at_once(tmp_path: Path):
    (tmp_path / "begun-0").write_text("1.0")
    before = time.monotonic()
    child = started(tmp_path, 0, before - 60)
    assert child.popen.wait(timeout=60) == 0
    assert before < child.begun_s < time.monotonic(), "an older note is not taken for its own"


def test_one_that_waits_dies_with_its_owner(tmp_path: Path):
    owner = (
        "import sys, time; from pathlib import Path; "
        "from benchbook.sites.processes import process; "
        "folder = Path(sys.argv[1]); "
        "argv = process.defer_command(['sleep', '60'], time.monotonic() + 60, folder / 'begun'); "
        "print(process.start_child('client', argv, token='t', folder=folder, out=folder / 'out').pid, "
        "flush=True); "
        "time.sleep(60)"
    )
    argv = [sys.executable, "-c", owner, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as one:
        waiting = psutil.Process(int(one.stdout.readline()))
        time.sleep(0.3)
        assert waiting.is_running()
        one.kill()
    assert not beside.gone(lambda: waiting.is_running() and waiting.status() != psutil.STATUS_ZOMBIE)
    assert not (tmp_path / "begun").read_text()
