"""What a driver's lines mean, and which loads this machine can bear, known before anything starts."""

import resource
from pathlib import Path

import pytest

from benchbook.core.study.study_arm import Arm, Load
from benchbook.sites import workspace as labs
from benchbook.sites.local import obstacles, placement, runtime
from benchbook.sites.machine import local_machine
from benchbook.sites.proxies import tiproxy
from benchbook.sites.topology import background_load
from tests.goldens import assert_golden

ANYWHERE = {"server": None, "proxy": None, "client": None}


def missing(arm: dict, files: int, monkeypatch: pytest.MonkeyPatch, port: int = 23000) -> str | None:
    """Return why an arm can't be made where so many open files are allowed."""
    monkeypatch.setattr(resource, "getrlimit", lambda what: (files, files))
    one = Arm.model_validate(arm)
    (chain,) = placement.build_chains({"one": one}, port, ANYWHERE).values()
    return "; ".join(obstacles._check_load(one.load, chain)) or None


def test_a_load_that_needs_more_files_than_are_allowed_is_told_by_who_needs_them(monkeypatch):
    # 15000 sessions and 1024 other files; a proxy has two for each session: 31024.
    direct = {"load": {"idle_connections": 15000}}
    assert missing(direct, 16024, monkeypatch) is None
    few = missing(direct, 16023, monkeypatch)
    behind = missing(direct | {"access": "haproxy"}, 20000, monkeypatch)
    assert_golden("topology/open-files.txt", f"{few}\n{behind}\n")
    # The hop that makes distance is one in between, too.
    assert missing(direct | {"zones": {"latency_ms": 1}}, 20000, monkeypatch) is not None
    assert missing(direct, resource.RLIM_INFINITY, monkeypatch) is None


def test_many_connections_may_take_the_port_that_a_server_is_to_have(tmp_path: Path, monkeypatch):
    """Eighteen thousand short ones a minute leave as many ports behind, of 28,000 there are."""
    given = tmp_path / "range"
    given.write_text("32768\t60999\n")
    monkeypatch.setattr(obstacles, "CLIENT_PORTS", given)
    short = {"load": {"new_connections_per_s": 300}}
    assert_golden("topology/client-port.txt", f"{missing(short, 65536, monkeypatch, port=33260)}\n")
    assert missing(short, 65536, monkeypatch, port=32767) is None
    assert missing({"load": {"idle_connections": 300}}, 65536, monkeypatch, port=33260) is None


def test_a_proxy_has_room_for_what_any_arm_asks_of_it():
    loads = {"none": {}, "idle": {"load": {"idle_connections": 9000}}}
    arms = {name: Arm.model_validate({"access": "haproxy"} | more) for name, more in loads.items()}
    chains = placement.build_chains(arms, 35000, ANYWHERE)
    # Each load has a proxy of its own, whose memory is that of its connections alone; both are set alike.
    assert chains["none"].proxy != chains["idle"].proxy and chains["none"].server == chains["idle"].server
    lab = labs.Lab(Path("none"), "0" * 32)
    assert runtime.LocalRuntime(None, lab, chains).connections == 9000


def test_lines_of_a_driver_that_ended_in_order():
    asked = Load(idle_connections=10, new_connections_per_s=50)
    lines = [
        {"opened": 10, "took_s": 0.1, "error": ""},
        {"second_at": 5.0, "open": 10, "made": 50},
        {"second_at": 6.0, "open": 10, "made": 44},
        {"held": 9, "lost": 1, "failed": 3, "connections": 104, "error": "TimeoutError: "},
    ]
    begun = {"idle": {"asked": 10, "opened": 10, "took_s": 0.1}}
    found = background_load.summarize_driver(lines, asked, begun)
    assert found["idle"] == {"asked": 10, "opened": 10, "took_s": 0.1, "held": 9, "lost": 1}
    short = {"asked_per_s": 50, "achieved_per_s": 47.0, "lowest_per_s": 44, "per_s": [50, 44]}
    assert found["short"] == short
    assert (found["connections"], found["failed"], found["error"]) == (104, 3, "TimeoutError: ")


def test_a_driver_without_a_last_line_leaves_nothing_that_could_pass():
    asked = Load(idle_connections=10, new_connections_per_s=50)
    found = background_load.summarize_driver([{"opened": 10}], asked, {"idle": {"asked": 10, "opened": 10}})
    idle, short = found["idle"], found["short"]
    assert (idle["held"], found["connections"], short["achieved_per_s"]) == (None, None, None)


def test_a_proxy_that_cannot_capture_is_known_by_its_program(tmp_path: Path, monkeypatch):
    old, new = tmp_path / "old", tmp_path / "tiproxy"
    old.write_bytes(b"\0" * 5000 + b"/api/admin/namespace")
    new.write_bytes(b"\0" * 993 + tiproxy.MARK + b"\0" * 5000)
    for path in (old, new):
        path.chmod(0o755)
    able = [tiproxy.TiProxy.unable_to_capture(path) is None for path in (old, new)]
    assert able == [False, True]
    arm = Arm.model_validate({"access": "tiproxy", "capture": True})
    (chain,) = placement.build_chains({"one": arm}, 35000, ANYWHERE).values()
    monkeypatch.setenv(local_machine.name_variable("tiproxy"), str(old))
    reasons = "; ".join(obstacles.infeasible_reasons(arm, chain))
    assert "TiProxy can since 1.3.0" in reasons
    monkeypatch.setenv(local_machine.name_variable("tiproxy"), str(new))
    assert obstacles.infeasible_reasons(arm, chain) == []
