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


def test_a_setting_the_server_does_not_know_differs() -> None:
    assert settings.find_differences({"no_such": 1}, {"other": "1"}) == {"no_such": (1, None)}


def test_isolation_is_read_back_under_the_name_that_mariadb_10_tells_it_by() -> None:
    asked = {"transaction_isolation": "READ-COMMITTED"}
    assert settings.find_differences(asked, {"tx_isolation": "READ-COMMITTED"}) == {}
    told = settings.find_differences(asked, {"tx_isolation": "REPEATABLE-READ"})
    assert told == {"transaction_isolation": ("READ-COMMITTED", "REPEATABLE-READ")}


def test_skipped_features_are_read_back_as_switched_off() -> None:
    assert settings.find_differences({"skip_log_bin": True}, {"log_bin": "OFF"}) == {}
    assert settings.find_differences({"skip_log_bin": True}, {"log_bin": "ON"}) == {
        "skip_log_bin": (True, "ON")
    }
    assert settings.find_differences({"skip_name_resolve": True}, {"skip_name_resolve": "ON"}) == {}


def test_the_study_wins_over_the_defaults_and_may_switch_the_binary_log_on() -> None:
    merged = settings.complete_settings({"innodb_buffer_pool_size": "1G", "log_bin": "binlog"}, "mariadb")
    assert merged["innodb_buffer_pool_size"] == "1G"
    assert "skip_log_bin" not in merged and merged["performance_schema"] is False


def test_places_and_doors_are_not_for_the_study() -> None:
    asked = {"bind_address": "0.0.0.0", "datadir": "/", "max_connections": 5}
    assert mariadb.find_reserved(asked) == ["bind_address", "datadir"]
    for name, key in (("mariadb", "bind_address"), ("tidb", "status.status-host")):
        with pytest.raises(SiteError, match=rf"engine\.settings\.{key}: not a study's to set"):
            settings.must_be_free(SimpleNamespace(name=name, settings={key: "0.0.0.0"}))


def test_the_digest_ignores_where_the_lab_is_and_what_changes_by_itself() -> None:
    one = settings.hash_variables({"datadir": "/a/server/data/", "timestamp": "1", "x": "1"}, Path("/a"))
    assert one == settings.hash_variables(
        {"datadir": "/b/c/server/data/", "timestamp": "2", "x": "1"}, Path("/b/c")
    )
    assert one != settings.hash_variables(
        {"datadir": "/a/server/data/", "timestamp": "1", "x": "2"}, Path("/a")
    )


def test_the_same_server_in_another_place_has_the_same_digests(tmp_path: Path) -> None:
    """Otherwise two arms would seem to differ in their settings because they have a server each."""
    one, two = tmp_path / "server", tmp_path / "server-2"
    places = {"datadir": "{}/data/", "port": "1", "bind_address": "127.0.0.1", "report_port": "1", "x": "1"}
    found = [
        settings.hash_variables(
            {key: value.format(folder) for key, value in places.items()} | {"port": str(number)}, folder
        )
        for number, folder in enumerate((one, two))
    ]
    assert found[0] == found[1]
    for number, folder in enumerate((one, two)):
        folder.mkdir()
        text = f"[mariadbd]\nport={number}\nbind_address=10.0.0.{number}\ndatadir={folder}/data\nx=1\n"
        (folder / "my.cnf").write_text(text)
    texts = {settings.neutralize_text((folder / "my.cnf").read_text(), folder) for folder in (one, two)}
    assert texts == {"[mariadbd]\ndatadir=SERVER/data\nx=1"}
    (two / "my.cnf").write_text(text.replace("x=1", "x=2"))
    assert settings.neutralize_text((two / "my.cnf").read_text(), two) not in texts
