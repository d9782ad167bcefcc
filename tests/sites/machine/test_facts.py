"""What the machine says about itself, and nothing made up where it says nothing."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from benchbook.sites.agent import facts
from benchbook.sites.local import placement
from benchbook.sites.machine import facts as machine
from tests.goldens import assert_golden


def test_facts_are_stable_and_fit_into_json() -> None:
    assert json.loads(json.dumps(machine.collect_facts())) == machine.collect_facts()
    assert machine.collect_facts()["cores"] >= 1


def test_what_cannot_be_seen_is_none(monkeypatch) -> None:
    for module in (machine, facts):
        monkeypatch.setattr(module, "read_stripped", lambda path: None)
    found = machine.collect_facts()
    assert (found["governor"], found["transparent_hugepages"], found["swappiness"]) == (None, None, None)
    assert facts.read_tool_version("no-such-tool", ["--version"]) is None


def test_sysbench_is_the_one_that_clients_are_started_as(tmp_path: Path, monkeypatch):
    """They get a plain PATH: another one, first in the caller's own, measures nothing."""
    other = tmp_path / "sysbench"
    other.write_text("#!/bin/sh\necho sysbench 9.9.9\n")
    other.chmod(0o755)
    before = machine.collect_facts()["sysbench"]
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert machine.collect_facts()["sysbench"] == before != "9.9.9"


def test_the_disk_is_the_one_the_folder_is_on(tmp_path: Path) -> None:
    assert machine.read_moment(tmp_path)["filesystem"]
    assert machine.read_moment(Path("/proc"))["filesystem"] == "proc"


def test_what_is_mounted_over_another_is_the_disk(monkeypatch):
    mounts = (
        "1 0 0:2 / / rw - rootfs rootfs rw\n2 1 8:1 / / rw - ext4 /dev/sda1 rw\n3 2 0:5 / /a rw - tmpfs a rw"
    )
    monkeypatch.setattr(facts, "read_stripped", {"/proc/self/mountinfo": mounts}.get)
    assert facts.describe_disk(Path("/b"))["filesystem"] == "ext4"
    assert facts.describe_disk(Path("/a/b"))["filesystem"] == "tmpfs"


def test_cores_are_halved_or_left_alone() -> None:
    assert placement.split_cpus("split", [0, 1, 2]) == {"server": [0], "proxy": [1, 2], "client": [1, 2]}
    assert placement.split_cpus("split", [4, 5]) == {"server": [4], "proxy": [5], "client": [5]}
    for kind, cores in (("split", [0]), ("shared", [0, 1])):
        assert set(placement.split_cpus(kind, cores).values()) == {None}


def test_a_machine_beyond_use_says_what_is_wrong_and_what_to_do():
    assert_golden("machine/too-busy.txt", "\n".join([*machine.too_busy(31.2, 10.0, 55.0, 81.0), ""]))
    assert machine.too_busy(0.4, 10.0, 12.0, 18.0) == []


def test_a_session_waits_for_what_was_there_before_and_names_what_stays(monkeypatch):
    """Busy in two looks and then not; and busy for good, beside a program that burns a core."""
    looks, said = iter([["much"], ["less"], []]), []
    monkeypatch.setattr(machine, "beyond_use", lambda _: next(looks))
    assert machine.wait_until_usable(10.0, said.append) == []
    (waiting,) = said
    assert re.fullmatch("waiting .* 2 minutes .*: much", waiting)
    monkeypatch.setattr(machine, "beyond_use", lambda _: ["much"])
    monkeypatch.setattr(machine, "PATIENCE_S", 0.0)
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        found = machine.wait_until_usable(10.0, said.append)
        monkeypatch.setattr(machine, "LEAST_SHOWN", 0.0)
        beside = machine.find_busiest(1000)
    finally:
        burner.kill()
        burner.wait()
    assert any(f"(pid {burner.pid})" in text for text in beside)
    assert found[0] == "much"


def test_an_account_that_is_a_number_alone_has_its_facts(monkeypatch):
    before = machine.collect_facts()["sysbench"]
    monkeypatch.setattr(os, "geteuid", lambda: 424242)
    assert machine.collect_facts()["sysbench"] == before
