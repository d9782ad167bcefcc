"""No way of writing a setting opens a server or makes it write elsewhere."""

import shutil
import subprocess

import pytest

from benchbook.sites import settings
from benchbook.sites.descriptors import mariadb, tidb


@pytest.mark.parametrize(
    "name",
    [
        "bind_address",
        "bind_addres",
        "bind_a",
        "bind",
        "loose_bind_address",
        "loose_bind_a",
        "maximum_port",
        "enable_feedback",
        "disable_skip_networking",
        "skip_networking",
        "skip_net",
        "skip_grant",
        "extra_por",
        "por",
        "sock",
        "general_log_fil",
        "general_log_file",
        "log_bin_index",
        "plugin_load_ad",
        "plugin_maturity",
        "wsrep_cluster_address",
        "innodb_data_home_d",
        "secure_file",
        "ssl_capath",
    ],
)
def test_names_short_names_and_prefixes_that_open_a_mariadb_are_refused(name: str) -> None:
    assert mariadb.find_reserved({name: 1}) == [name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("general_log", "ON"),
        ("slow_query_log", 1),
        ("log_bin", "binlog"),
        ("skip_name_resolve", True),
        ("innodb_flush_log_at_trx_commit", 2),
        ("innodb_adaptive_hash_index", 0),
        ("innodb_data_file_path", "ibdata1:12M:autoextend"),
        ("port_open_timeout", 5),
        ("userstat", 1),
        ("default_time_zone", "Europe/Berlin"),
        ("ssl_ca", "/srv/ca.pem"),
    ],
)
def test_settings_that_open_nothing_are_taken(name: str, value: object) -> None:
    assert mariadb.find_reserved({name: value}) == []


@pytest.mark.parametrize(
    ("name", "value"), [("log_bin", "/tmp/x"), ("innodb_data_file_path", "../x:12M"), ("tmp", "a/b")]
)
def test_a_value_that_leads_elsewhere_is_refused(name: str, value: str) -> None:
    assert mariadb.find_reserved({name: value}) == [name]


@pytest.mark.parametrize(
    "name",
    [
        "status.status-host",
        "status.metrics-addr",
        "log.file.filename",
        "log.slow-query-file",
        "security.skip-grant-table",
        "advertise-address",
        "host",
        "path",
        "socket",
        "plugin_load",
        "instance.plugin_dir",
        "proxy-protocol.networks",
    ],
)
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
    names = {
        line.split()[0].replace("-", "_") for line in lines if line[:1].isalpha() and len(line.split()) > 1
    }
    assert len(names) > 500
    closed = [name for name in names if mariadb.find_reserved({name: 1})]
    assert {"bind_address", "port", "socket", "plugin_dir"} <= set(closed)
    passing = [
        name[:length]
        for name in closed
        for length in range(1, len(name))
        if sum(one.startswith(name[:length]) for one in names) == 1
        and not mariadb.find_reserved({name[:length]: 1})
    ]
    assert passing == []
