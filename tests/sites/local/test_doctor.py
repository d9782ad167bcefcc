"""The doctor never fails on an unusual machine, and each lack comes with a command."""

import os
import shutil
import socket

import pytest

from benchbook.sites.local import doctor
from benchbook.sites.machine import facts as machine


def by_name(abilities) -> dict[str, doctor.Ability]:
    return {ability.name: ability for ability in abilities}


@pytest.fixture
def unprobed(monkeypatch: pytest.MonkeyPatch) -> None:
    """How fast this machine is takes a second to find out, and is the same whatever is not there."""
    monkeypatch.setattr(doctor.microbenchmarks, "measure_here", lambda _: {})


def test_every_lack_has_a_remedy_and_needed_things_come_first() -> None:
    found = doctor.examine()
    assert all(ability.remedy for ability in found if not ability.ok)
    needed = [ability.is_needed for ability in found]
    assert needed == sorted(needed, reverse=True)


def test_a_taken_port_names_its_holder(port: int, unprobed) -> None:
    with socket.create_server(("127.0.0.1", port + 1)):
        found = by_name(doctor.examine(port=port))[f"port {port + 1}"]
    assert not found.ok and f"pid {os.getpid()}" in found.detail


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("dnf", "dnf install mariadb-server"),
        ("brew", "brew install mariadb"),
        (None, "your system's package manager"),
    ],
)
def test_the_remedy_is_the_one_of_this_system(monkeypatch, unprobed, manager, command) -> None:
    """Only the package manager is on this machine."""
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **_: real("true") if name == manager else None)
    found = by_name(doctor.examine())["mariadbd"]
    assert not found.ok and command in found.remedy


def test_another_system_gets_one_clear_answer(monkeypatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(machine, "system_name", lambda: "Darwin 24.1.0")
    found = by_name(doctor.examine())
    assert not found["system"].ok and "Linux" in found["system"].remedy
    assert "lock" not in found and "netem" not in found
