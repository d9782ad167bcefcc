"""A misspelt setting is named before anything starts, from what the installed server itself lists."""

import pytest

from benchbook.core.study.study_sections import Engine
from benchbook.sites.engines.mariadb import MariaDB
from benchbook.sites.engines.postgresql import PostgreSQL

pytestmark = pytest.mark.server


def test_a_misspelt_setting_of_mariadb_has_its_nearest_name():
    asked = {"innodb_bufer_pool_size": 8388608, "max_connections": 200, "userstat": 0}
    assert MariaDB.misspelt(Engine(settings=asked)) == {"innodb_bufer_pool_size": "innodb_buffer_pool_size"}


def test_a_setting_that_is_like_none_is_left_to_the_server_which_may_have_a_plugin():
    assert MariaDB.misspelt(Engine(settings={"quite_another_thing": 1})) == {}


@pytest.mark.skipif(PostgreSQL._found() is None, reason="PostgreSQL is not installed")
def test_a_misspelt_setting_of_postgresql_has_its_nearest_name_and_extensions_are_its_own():
    asked = {"shared_bufers": "64MB", "work_mem": "4MB", "pg_stat_statements.max": 100}
    assert PostgreSQL.misspelt(Engine(name="postgresql", settings=asked)) == {
        "shared_bufers": "shared_buffers"
    }
