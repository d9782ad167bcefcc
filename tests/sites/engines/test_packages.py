"""A version that is not installed comes from the system's packages, and lies beside the labs."""

import shutil
import subprocess
from pathlib import Path

import pytest

from benchbook.core.study.study_sections import Engine
from benchbook.sites.engines import packages
from benchbook.sites.engines.mariadb import MariaDB


@pytest.fixture(scope="module")
def listed() -> list[str]:
    """The versions of MariaDB that this system's package lists have, newest first."""
    argv = ["apt-cache", "madison", "mariadb-server-core"]
    there = shutil.which("apt-cache") is not None
    said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout if there else ""
    return [line.split("|")[1].strip() for line in said.splitlines()] or pytest.skip(
        "this system's package lists have no MariaDB"
    )


def test_a_version_that_is_installed_is_taken_as_it_is():
    installed = MariaDB.standing()[0]
    asked = Engine(name="mariadb", version=installed)
    assert packages.find_obstacle(asked) is None and packages.resolve_engine(asked) == asked
    assert packages.resolve_engine(Engine(name="mariadb")).binary is None


def test_a_version_that_nobody_has_is_told_with_those_there_are(listed: list[str]):
    why = packages.find_obstacle(Engine(name="mariadb", version="5.5.1"))
    there = packages._strip_revision(listed[0])
    due = "engine.version: 5.5.1: not installed, and this system's packages"
    assert why is not None and why.startswith(due)
    assert there in why and "`apt-get update`" in why


@pytest.mark.slow
def test_another_version_is_fetched_once_and_is_the_one_asked_for(listed, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BENCHBOOK_ENGINES", str(tmp_path))
    there = [packages._strip_revision(one) for one in listed]
    other = next((one for one in there if one != MariaDB.standing()[0]), None)
    if other is None:
        pytest.skip("the package lists have the installed version alone")
    asked = Engine(name="mariadb", version=other)
    assert packages.find_obstacle(asked) is None and not list(tmp_path.iterdir()), "asking fetches nothing"
    made = packages.resolve_engine(asked).binary
    assert made is not None and Path(made).is_relative_to(tmp_path)
    said = subprocess.run([made, "--version"], capture_output=True, text=True, check=True).stdout
    assert f"Ver {other}-MariaDB" in said
    assert "once" in capsys.readouterr().out
    assert packages.resolve_engine(asked).binary == made
    assert "fetching" not in capsys.readouterr().out
