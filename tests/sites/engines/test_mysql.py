"""MySQL or Percona Server by path or package: found, closed, set, counted, and put back.

A real `mysqld` is needed, which Debian's stable release does not have: BENCHBOOK_MYSQLD may name one.
"""

from pathlib import Path
from typing import Any

import pymysql
import pytest

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_sections import Engine
from benchbook.core.util.errors import SiteError
from benchbook.measure import dataset, statement_counters
from benchbook.measure.data_plan import plan_data
from benchbook.sites.agent import files
from benchbook.sites.engines.mysql import ABSENT, MySQL
from tests import rooms, small, walks

SMALL = {"innodb_buffer_pool_size": "32M", "innodb_redo_log_capacity": "16M"}
WHY = MySQL.obstacle(Engine(name="mysql"))


def study(port: int | None = None, **changes: Any) -> StudySpec:
    own = {
        "site": {"port": rooms.port(90) if port is None else port},
        "engine": {"name": "mysql", "settings": SMALL | {"innodb_flush_log_at_trx_commit": 2}},
        "arms": {"direct": {}, "relay": {"access": "haproxy"}},
        "dataset": {"tables": 2, "table_size": 500},
    }
    return small.study(**own | changes)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", "9.7.4"),
        ("mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28)", "8.0.36"),
        ("mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)", "8.4.3"),
        ("mysqld  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64 (Debian 12)", None),
        ("", None),
    ],
)
def test_the_versions_of_both_makers_are_read_and_mariadbs_own_mysqld_is_none(said: str, version: str | None):
    match = MySQL.version_words.search(said)
    assert (match and match[1]) == version


@pytest.mark.server
@pytest.mark.skipif(WHY is not None, reason=str(WHY))
def test_a_mysql_is_held_to_the_query_and_nobody_else_gets_in(open_folder: Path, port: int, tmp_path: Path):
    asked = study(port + 30)
    with sites.open_site(asked, open_folder / "mysql") as site:
        dataset.load_data(site, plan_data(asked))
        for arm in asked.arms:
            endpoint = site.up(arm)
            planned = walks.planned(asked, arm)
            with statement_counters.open_session(site, arm) as connection:
                folder = walks.made(site, planned, [connection], tmp_path / arm)
            walks.must_agree(folder)
            assert folder.evidence()["ledger"]["absent"].keys() == ABSENT.keys()
        engine, before = site.facts("direct")["engine"], site.identity("direct")
        assert engine["name"] == "mysql" and engine["settings"]["innodb_redo_log_capacity"]["from"] == "study"
        assert files.Files(tmp_path).listening(before["pid"]) == [("127.0.0.1", port + 30)]
        for user, password in (("root", ""), ("benchbook", ""), ("", "")):
            with pytest.raises(pymysql.err.OperationalError, match=r"Access denied|not allowed"):
                pymysql.connect(host=endpoint.host, port=port + 30, user=user, password=password)
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            pymysql.connect(unix_socket=str(open_folder / "mysql/server/m.sock"), user="root", password="")
        site.restore(plan_data(asked).label)
        after = site.identity("direct")
        assert after["pid"] != before["pid"] and after["server_uid"] == before["server_uid"]
        assert site.facts("direct")["engine"] == engine


@pytest.mark.server
@pytest.mark.skipif(WHY is not None, reason=str(WHY))
def test_a_setting_that_the_server_does_not_take_ends_the_stage(open_folder: Path, port: int):
    asked = study(port + 31, engine={"name": "mysql", "settings": SMALL | {"no_such_setting": 3}})
    opened = sites.open_site(asked, open_folder / "mysql-refused")
    with opened as site, pytest.raises(SiteError, match="no_such_setting"):
        site.up("direct")
