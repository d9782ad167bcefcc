"""No way of writing a setting opens a server or makes it write elsewhere."""

import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from benchbook.sites import settings
from benchbook.sites.descriptors import mariadb, tidb

CASES = YAML(typ="safe").load(Path(__file__).parents[2] / "data" / "settings.yaml")


@pytest.mark.parametrize("name", CASES["reserved of mariadb"])
def test_names_short_names_and_prefixes_that_open_a_mariadb_are_refused(name: str) -> None:
    assert mariadb.find_reserved({name: 1}) == [name]


@pytest.mark.parametrize(("name", "value"), CASES["free of mariadb"].items())
def test_settings_that_open_nothing_are_taken(name: str, value: object) -> None:
    assert mariadb.find_reserved({name: value}) == []


@pytest.mark.parametrize(("name", "value"), CASES["values that lead elsewhere"].items())
def test_a_value_that_leads_elsewhere_is_refused(name: str, value: str) -> None:
    assert mariadb.find_reserved({name: value}) == [name]


@pytest.mark.parametrize("name", CASES["reserved of tidb"])
def test_items_and_variables_that_open_a_tidb_are_refused(name: str) -> None:
    assert tidb.find_reserved({name: "x"}) == [name]


def test_what_we_start_from_ourselves_is_not_refused() -> None:
    assert mariadb.find_reserved(settings.complete_settings({}, "mariadb")) == []
    for version in ("3.0.1", "5.2", "6.6"):
        asked = settings.complete_settings({}, "tidb", version=version)
        assert len(asked) >= 4 and tidb.find_reserved(asked) == []


@pytest.mark.server
def test_no_beginning_that_this_mariadb_takes_for_a_reserved_name_passes() -> None:
    """Its own list of options says which beginnings are unambiguous."""
    program = shutil.which("mariadbd")
    assert program is not None
    said = subprocess.run([program, "--no-defaults", "--help", "--verbose"], capture_output=True, text=True)
    lines = said.stdout.partition("Variables (--variable-name=value)")[2].splitlines()
    words = [line.split() for line in lines if line[:1].isalpha()]
    names = {first.replace("-", "_") for first, *rest in words if rest}
    assert len(names) > 500
    closed = [name for name in names if mariadb.find_reserved({name: 1})]
    assert {"bind_address", "port", "socket", "plugin_dir"} <= set(closed)
    beginnings = {name[:length] for name in closed for length in range(1, len(name))}
    alone = [text for text in beginnings if sum(name.startswith(text) for name in names) == 1]
    passing = [text for text in alone if not mariadb.find_reserved({text: 1})]
    assert passing == []
