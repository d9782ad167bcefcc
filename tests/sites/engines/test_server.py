"""What all servers share before any is started: their program, its version, and the words for what lacks."""

import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from benchbook.core.study.study_sections import Engine
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.descriptors import mariadb
from benchbook.sites.engines.mariadb import MariaDB
from tests.goldens import assert_golden

PLACE = labs.PartLocation("server", labs.LOOPBACK, 4000)


class Other(MariaDB):
    """One that nobody has a package of."""

    traits = replace(mariadb.TRAITS, name="other", product="Other", programs=("no-such-server",), packages={})
    version_words = re.compile(r"other ([0-9.]+)")
    oldest = (2, 10)


class Machine:
    """One whose program, if it has any, says what it is told to."""

    host, folder, lab = None, PurePosixPath("/nowhere"), None

    def __init__(self, says: str | None) -> None:
        self.answer = says

    def account(self, name: str) -> str:
        return name

    def program(self, name: str) -> str | None:
        return None if self.answer is None else f"/opt/{name}"

    def says(self, _: list[str]) -> str:
        return str(self.answer)


def made(says: str | None, **engine: Any) -> Other:
    machine: Any = Machine(says)
    return Other(machine, Engine(**engine), PLACE)


def test_what_no_package_brings_is_not_asked_of_a_package_manager():
    version, remedy = Other.standing()
    assert version is None
    with pytest.raises(SiteError) as refused:
        made(None)
    assert_golden("engines/no-package.txt", f"{Other.obstacle(Engine())}\n{remedy}\n{refused.value}\n")


@pytest.mark.parametrize(
    ("says", "asked", "wrong"),
    [
        ("other 2.9", {}, r"is Other 2\.9; version 2\.10 or newer is needed"),
        ("mysqld 3", {}, r"is not a Other server \(it says 'mysqld 3'\)"),
        ("other 2.10.3", {"version": "3"}, r"asked 3, /opt/no-such-server is 2\.10\.3"),
    ],
)
def test_a_program_of_another_kind_or_version_is_refused(says: str, asked: dict[str, Any], wrong: str):
    with pytest.raises(SiteError, match=wrong):
        made(says, **asked)


def test_a_program_has_the_version_that_it_says():
    assert made("other 2.10.3", version="2.10").version == "2.10.3"
