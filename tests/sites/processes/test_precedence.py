"""What is measured goes before ordinary programs while it is, where the kernel lets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchbook.sites.processes import procfs

# A process of its own, in a session of its own: this one's precedence is not touched.
TAKE = """
import json, os, subprocess
from benchbook.sites.processes import precedence, procfs
def seen(pid):
    place = procfs.place(pid)
    return [int(place["nice"]), int(place.get("session_nice", place["nice"]))]
before = seen(os.getpid())
with precedence.taken():
    inside = seen(os.getpid())
    with precedence.taken():
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
