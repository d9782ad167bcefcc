"""The lock says who holds the machine, and a dead holder's note holds nothing."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchbook.core.util.errors import LockHeld, SiteError
from benchbook.sites.machine import lock


def test_it_is_refused_quickly_and_free_again_after_release(tmp_path: Path) -> None:
    held = lock.acquire_lock(tmp_path)
    began = time.monotonic()
    # Of one process "… -m pytest", of one of several what xdist started it with.
    mine = re.escape(" ".join(sys.orig_argv[:3]))
    with pytest.raises(LockHeld, match=rf"pid {os.getpid()}, since .*: {mine}"):
        lock.acquire_lock(tmp_path)
    assert time.monotonic() - began < 20, "it would wait for ever"
    held.release()
    lock.acquire_lock(tmp_path).release()


def test_a_child_keeps_it_after_its_owner_let_go(tmp_path: Path) -> None:
    held = lock.acquire_lock(tmp_path)
    child = subprocess.Popen(["/bin/sleep", "60"], pass_fds=(held.fd,))
    held.release()
    with pytest.raises(LockHeld, match=r"sleep 60|measured by"):
        lock.acquire_lock(tmp_path)
    child.kill()
    child.wait()
    lock.acquire_lock(tmp_path).release()


@pytest.mark.parametrize("note", ["", "{", '{"pid": 1, "started": 1}', '{"pid": 999999999}', "[1]"])
def test_a_note_left_by_the_dead_or_by_a_crash_holds_nothing(tmp_path, own_lock, note) -> None:
    own_lock.write_text(note)
    lock.acquire_lock(tmp_path).release()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, own_lock: Path) -> None:
    (tmp_path / "target").write_text("precious")
    own_lock.symlink_to(tmp_path / "target")
    with pytest.raises(SiteError, match="cannot be opened"):
        lock.acquire_lock(tmp_path)
    assert (tmp_path / "target").read_text() == "precious"


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("192.0.2.77", False),
        ("no.such.invalid", False),
    ],
)
def test_this_machine_is_told_from_others_by_its_addresses(address: str, is_own: bool) -> None:
    assert lock.is_local_address(address) is is_own


def test_a_lock_of_a_study_elsewhere_leaves_the_machine_free(tmp_path: Path) -> None:
    elsewhere = lock.acquire_lock(tmp_path / "far", tmp_path / "lab.lock")
    here = lock.acquire_lock(tmp_path / "near")
    with pytest.raises(LockHeld, match=f"{tmp_path}/far .* by pid {os.getpid()}"):
        lock.acquire_lock(tmp_path / "far", tmp_path / "lab.lock")
    for one in (elsewhere, here):
        one.release()
