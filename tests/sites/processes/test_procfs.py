"""Processes are told apart whatever they call themselves."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from benchbook.sites.agent import files
from benchbook.sites.processes import procfs
from tests import beside


def test_a_name_with_brackets_and_spaces_does_not_shift_the_fields(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as popen:
        found = procfs.read_stat(popen.pid)
        popen.kill()
    assert found is not None and found.parent == os.getpid()
    assert procfs.is_alive(os.getpid(), procfs.read_stat(os.getpid()).started)


def test_a_zombie_is_not_alive_and_has_no_say() -> None:
    popen = subprocess.Popen(["/bin/true"])
    beside.until(lambda: procfs.read_stat(popen.pid).state == "Z")
    assert not procfs.is_alive(popen.pid)
    assert popen.pid not in procfs.find_descendants(os.getpid())
    popen.wait()
    assert procfs.read_stat(popen.pid) is None and procfs.read_environment(popen.pid) == {}
    assert procfs.read_command(popen.pid) == "gone"


def test_descendants_are_found_through_sessions_parents_first() -> None:
    # Earlier tests may have left helpers of Python's own behind, such as its tracker of shared memory.
    before = set(procfs.find_descendants(os.getpid()))

    def new() -> list[int]:
        return [pid for pid in procfs.find_descendants(os.getpid()) if pid not in before]

    with subprocess.Popen(["setsid", "--fork", "--wait", "sleep", "60"]) as popen:
        beside.until(lambda: len(new()) >= 2)
        found = new()
        for pid in reversed(found):
            os.kill(pid, 9)
    assert found[0] == popen.pid and len(found) == 2


def test_a_file_that_is_closed_meanwhile_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listens was told as `a process of another user`, and a port that a server held was not its own."""
    read = os.readlink

    def closing(path: str) -> str:
        if path.endswith(f"/{os.getpid()}/fd/0"):
            raise FileNotFoundError(path)
        return read(path)

    monkeypatch.setattr(os, "readlink", closing)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address, port = server.getsockname()
        (found,) = files.find_listeners(port)
        assert (address, port) in files.Files(Path()).listening(os.getpid())
    assert (found["pid"], found["address"]) == (os.getpid(), address)


def test_processors_of_one_name_are_told_apart_and_others_keep_their_name() -> None:
    """Two hosts of a cloud, both "Intel(R) Xeon(R) Processor": waking another core cost them differently."""
    said = "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: Xeon\nstepping\t: 2\n"
    assert procfs.parse_processor(said) == "Xeon (family 6, model 207, stepping 2)"
    name = "ARMv7 Processor rev 4 (v7l)"
    assert procfs.parse_processor(f"model name\t: {name}\n") == name
    assert procfs.parse_processor("CPU implementer\t: 0x41\n") is None


def test_kills_that_cannot_be_seen_are_not_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "PROC", tmp_path)
    with pytest.raises(FileNotFoundError):
        procfs.oom_kills()
    (tmp_path / "vmstat").write_text("nr_free 1\noom_kill 3\noom_kill_x 9\n")
    assert procfs.oom_kills() == 3
