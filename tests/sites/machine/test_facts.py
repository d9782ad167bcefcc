"""What the machine says about itself, and nothing made up where it says nothing."""

import json
from pathlib import Path

from benchbook.sites.agent import facts
from benchbook.sites.local import layout
from benchbook.sites.machine import facts as machine


def test_facts_are_stable_and_fit_into_json() -> None:
    assert json.loads(json.dumps(machine.facts())) == machine.facts()
    assert machine.facts()["cores"] >= 1


def test_what_cannot_be_seen_is_none(monkeypatch) -> None:
    for module in (machine, facts):
        monkeypatch.setattr(module, "read", lambda path: None)
    found = machine.facts()
    assert (found["governor"], found["transparent_hugepages"], found["swappiness"]) == (None, None, None)
    assert machine.tool_version("no-such-tool", "--version") is None


def test_the_disk_is_the_one_the_folder_is_on(tmp_path: Path) -> None:
    assert machine.moment(tmp_path)["filesystem"]
    assert machine.moment(Path("/proc"))["filesystem"] == "proc"


def test_cores_are_halved_or_left_alone() -> None:
    assert layout.split_cpus("split", [0, 1, 2]) == {"server": [0], "proxy": [1, 2], "client": [1, 2]}
    assert layout.split_cpus("split", [4, 5]) == {"server": [4], "proxy": [5], "client": [5]}
    assert (
        set(layout.split_cpus("split", [0]).values())
        == set(layout.split_cpus("shared", [0, 1]).values())
        == {None}
    )


def test_a_machine_beyond_use_says_what_is_wrong_and_what_to_do():
    steal, waiting, load = machine.too_busy(31.2, 10.0, 55.0, 9.1, 2)
    assert steal == (
        "the host gave 31 % of this machine's time to others (steal; at most 10 %): come back at another "
        "hour, or take another machine"
    )
    assert "programs waited for a core in 55 % of 5 seconds (at most 40 %)" in waiting
    assert load.startswith("load 9.1 on 2 cores (at most 2 a core): wait a minute")
    # What a study leaves behind is no reason: 8 connections on 2 cores, a minute after their end.
    assert machine.too_busy(0.4, 10.0, 12.0, 3.9, 2) == []
