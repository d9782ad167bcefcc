"""Tests of other workers and other clones, at the same time, have other ports and keep out of the way."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests import rooms

OTHER = "from tests import rooms; print(rooms.number(), rooms.port(7))"


def test_another_process_has_another_room():
    mine = rooms.number()
    said = subprocess.run(
        [sys.executable, "-c", OTHER],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    number, port = map(int, said.split())
    assert number != mine and port == rooms.FIRST + number * rooms.ROOM + 7
    assert 12000 <= rooms.port(0) < rooms.port(499) < 22000


def test_one_that_is_alone_waits_for_the_others_and_they_for_it(monkeypatch, tmp_path):
    monkeypatch.setattr(rooms.tempfile, "gettempdir", lambda: str(tmp_path))
    order: list[str] = []
    inside, may_end = threading.Event(), threading.Event()

    def beside() -> None:
        with rooms.machine(alone=False):
            inside.set()
            may_end.wait(10)
            order.append("beside")

    def alone() -> None:
        with rooms.machine(alone=True):
            order.append("alone")

    first, second = threading.Thread(target=beside), threading.Thread(target=alone)
    first.start()
    assert inside.wait(10)
    second.start()
    time.sleep(0.2)
    assert order == []
    may_end.set()
    first.join(10)
    second.join(10)
    assert order == ["beside", "alone"]
    with rooms.machine(alone=False), rooms.machine(alone=False):
        order.append("two beside each other")


def test_a_part_of_a_test_is_alone_and_two_such_do_not_wait_for_each_other(monkeypatch, tmp_path):
    monkeypatch.setattr(rooms.tempfile, "gettempdir", lambda: str(tmp_path))
    order: list[str] = []
    both = threading.Barrier(2, timeout=60)

    def measure(name: str) -> None:
        with rooms.machine(alone=False):
            both.wait()
            with rooms.alone():
                order.append(f"{name} begins")
                time.sleep(0.1)
                order.append(f"{name} ends")

    several = [threading.Thread(target=measure, args=(name,)) for name in "ab"]
    for one in several:
        one.start()
    for one in several:
        one.join(10)
    assert order in (
        ["a begins", "a ends", "b begins", "b ends"],
        ["b begins", "b ends", "a begins", "a ends"],
    )


def test_a_thing_is_held_by_one_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(rooms.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(rooms, "PATIENCE_S", 1.0)
    began = time.monotonic()
    with rooms.things("kernel"), rooms.things("clock"):
        assert time.monotonic() - began < 0.8
        with rooms.things("kernel"):
            assert time.monotonic() - began >= 1.0, "waited as long as it has patience, then went on"
