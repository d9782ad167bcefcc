"""A setting counts as taken only if the server says so, whichever way it writes the value."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from ruamel.yaml import YAML

from benchbook.core.util.errors import SiteError
from benchbook.sites import settings
from benchbook.sites.descriptors import mariadb

CASES = YAML(typ="safe").load(Path(__file__).parents[1] / "data" / "settings.yaml")


@pytest.mark.parametrize(("asked", "got"), CASES["the same value"])
def test_the_same_value_written_differently_is_taken(asked, got: str) -> None:
    assert settings.is_same_value(asked, got)


@pytest.mark.parametrize(("asked", "got"), CASES["another value"])
def test_another_value_is_not_taken(asked, got: str) -> None:
    assert not settings.is_same_value(asked, got)


@pytest.mark.parametrize(
    ("name", "asked", "variables", "got"),
    [
        ("no_such", 1, {"other": "1"}, None),
        # Before MariaDB 11.1 it has another name there.
        ("transaction_isolation", "READ-COMMITTED", {"tx_isolation": "READ-COMMITTED"}, ...),
        ("transaction_isolation", "READ-COMMITTED", {"tx_isolation": "REPEATABLE-READ"}, "REPEATABLE-READ"),
        ("skip_log_bin", True, {"log_bin": "OFF"}, ...),
        ("skip_log_bin", True, {"log_bin": "ON"}, "ON"),
        ("skip_name_resolve", True, {"skip_name_resolve": "ON"}, ...),
    ],
)
def test_settings_that_were_not_taken_are_those_told_otherwise(name, asked, variables, got) -> None:
    due = {} if got is ... else {name: (asked, got)}
    assert settings.find_differences({name: asked}, variables) == due


def test_the_study_wins_over_the_defaults_and_may_switch_the_binary_log_on() -> None:
    merged = settings.complete_settings({"innodb_buffer_pool_size": "1G", "log_bin": "binlog"}, "mariadb")
    assert merged["innodb_buffer_pool_size"] == "1G"
    assert "skip_log_bin" not in merged and merged["performance_schema"] is False


def test_places_and_doors_are_not_for_the_study() -> None:
    asked = {"bind_address": "0.0.0.0", "datadir": "/", "max_connections": 5}
    assert mariadb.find_reserved(asked) == ["bind_address", "datadir"]
    for name, key in (("mariadb", "bind_address"), ("tidb", "status.status-host")):
        with pytest.raises(SiteError, match=rf"engine\.settings\.{key}: not "):
            settings.must_be_free(SimpleNamespace(name=name, settings={key: "0.0.0.0"}))


def test_the_same_server_in_another_place_has_the_same_digests(tmp_path: Path) -> None:
    """Otherwise two arms would seem to differ in their settings because they have a server each."""
    folders = [tmp_path / "server", tmp_path / "server-2"]
    texts, digests = [], []
    for number, folder in enumerate(folders):
        text = f"[mariadbd]\nport={number}\nbind_address=10.0.0.{number}\ndatadir={folder}/data\nx=1\n"
        texts.append(settings.neutralize_text(text, folder))
        said = {"datadir": f"{folder}/data/", "bind_address": "127.0.0.1", "report_port": "1", "x": "1"}
        said |= {"port": str(number), "timestamp": str(number)}
        digests.append(settings.hash_variables(said, folder))
    assert texts == ["[mariadbd]\ndatadir=SERVER/data\nx=1"] * 2 and digests[0] == digests[1]
    assert settings.neutralize_text(text.replace("x=1", "x=2"), folder) != texts[0]
    assert settings.hash_variables(said | {"x": "2"}, folder) != digests[0]
