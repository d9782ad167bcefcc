"""A misspelt setting is named before anything starts, from what the installed server itself lists."""

import pytest

from benchbook.core.study.study_sections import Engine
from benchbook.sites.engines.mariadb import MariaDB
from benchbook.sites.engines.mysql import MySQL
from benchbook.sites.engines.postgresql import PostgreSQL

pytestmark = pytest.mark.server
WHY = "PostgreSQL is not installed"
needs_postgresql = pytest.mark.skipif(PostgreSQL._find_program() is None, reason=WHY)

POOL = {"innodb_bufer_pool_size": "innodb_buffer_pool_size"}
BUFERS = {"shared_bufers": "64MB", "work_mem": "4MB", "pg_stat_statements.max": 100}


@pytest.mark.parametrize(
    ("server", "settings", "wrong"),
    [
        (MariaDB, {"innodb_bufer_pool_size": 8388608, "max_connections": 200, "skip_log_bin": True}, POOL),
        (MariaDB, {"quite_another_thing": 1}, {"quite_another_thing": ""}),
        # A plugin's settings are not listed before it is loaded.
        (MariaDB, {"quite_another_thing": 1, "plugin_load_add": "thing"}, {}),
        # MariaDB's package gives its server MySQL's name too, and its list says nothing of MySQL's settings.
        (MySQL, {"innodb_redo_log_capacity": 268435456}, {}),
        pytest.param(PostgreSQL, BUFERS, {"shared_bufers": "shared_buffers"}, marks=needs_postgresql),
    ],
)
def test_settings_that_the_program_does_not_list_are_named_with_the_nearest(server, settings, wrong):
    assert server.misspelt(Engine(name=server.traits.name, settings=settings)) == wrong
