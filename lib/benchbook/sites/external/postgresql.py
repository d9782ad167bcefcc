"""Everything that a PostgreSQL of others lets our account see."""

from collections.abc import Callable, Mapping
from pathlib import PurePath
from ssl import SSLContext
from typing import Any

import psycopg
import sqlalchemy
from sqlalchemy import Connection, event, text

from benchbook.sites import sql
from benchbook.sites.descriptors.postgresql import TRAITS
from benchbook.sites.engines import postgresql_settings as server_settings
from benchbook.sites.engines.dialect import MARK
from benchbook.sites.engines.postgresql_dialect import PostgresqlDialect
from benchbook.sites.external.server import Address, ExternalServer, describe_rights, hash_token

OURS = "/* benchbook */ "
"""What our own statements begin with, so that they are told from the measured ones of the same account."""
COUNTS = "SELECT to_regclass('pg_stat_statements') IS NOT NULL"
NOT_COUNTED = "pg_stat_statements is not in the measured database: `CREATE EXTENSION pg_stat_statements`"
UPTIME = "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())"
IDENTITY = """
SELECT system_identifier::text, current_setting('server_version'), current_setting('port')
FROM pg_control_system()"""


class GuestDialect(PostgresqlDialect):
    """PostgreSQL's answers for an account that is sysbench's too, and that made no extension."""

    others = "query NOT LIKE :admin"
    admin = f"{OURS}%"

    def counters(self, connection: Connection) -> tuple[dict[str, int], Mapping[str, Any], float]:
        if connection.info["counts"]:
            return super().counters(connection)
        return {}, {}, float(connection.execute(text(UPTIME)).scalar_one())

    def foreign_sessions(self, connection: Connection) -> int:
        # Where others use the server too, only our own account must be alone.
        user = connection.info.get("only_user")
        request = self.questions["foreign"] + (" AND usename = :user" if user else "")
        return int(connection.execute(text(request), {"user": user} if user else {}).scalar_one())

    def prewarm(self, connection: Connection, table: str, index: str) -> None:
        """Read a table by its indexes, since a scan of a large one keeps out of the shared buffers."""
        connection.execute(text("SET enable_seqscan = off"))
        for column, by in (("pad", "id"), ("k", "k")):
            connection.execute(text(f"SELECT count({column}) FROM {table} WHERE {by} >= 0")).scalar_one()
        connection.execute(text("RESET enable_seqscan"))


class ExternalPostgreSQL(ExternalServer):
    """One that others run; `site.existing.database` names its database."""

    driver = TRAITS.driver

    def buffer_pool_bytes(self, connection: Connection) -> int:
        pages = "SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers'"
        return int(connection.execute(text(pages)).scalar_one())

    def engine(self, connect: Callable[[], Any], **messages: Any) -> sqlalchemy.Engine:
        new_engine = sql.make_engine(connect, "postgresql+psycopg", dialect=WORDS, **messages)

        def inform(connection: psycopg.Connection[Any], record: Any) -> None:
            record.info["counts"] = _fetch_first(connection, COUNTS)
            if not record.info["counts"]:
                record.info.setdefault("no_ledger", NOT_COUNTED)

        event.listen(new_engine, "connect", inform)
        event.listen(new_engine, "before_cursor_execute", _prefix_statement, retval=True)
        return new_engine

    def connect(self, place: Address, account: tuple[str, str], database: str, tls: SSLContext | None) -> Any:
        how: dict[str, Any] = {"autocommit": True, "connect_timeout": 10, "sslmode": "disable"}
        how |= dict(zip(("host", "port", "user", "password"), (*place, *account), strict=True))
        connection = psycopg.connect(dbname=database, **how)
        connection.prepare_threshold = None
        # What ours add to the server's counters is in them at once.
        _fetch_first(connection, "SELECT pg_stat_force_next_flush()")
        return connection

    def tables(self, connection: Connection, database: str) -> set[str] | None:
        return set(WORDS.tables(connection))

    def named(self, database: str, table: str) -> str:
        return table

    def enter(self, connection: Connection, database: str, token: str) -> None:
        connection.execute(text(f"CREATE TABLE IF NOT EXISTS {MARK} (lab CHAR(16) PRIMARY KEY)"))
        mark = f"INSERT INTO {MARK} VALUES (:lab) ON CONFLICT DO NOTHING"
        connection.execute(text(mark), {"lab": hash_token(token)})

    def who(self, connection: Connection) -> tuple[str, str]:
        scalar_one = connection.execute(text("SELECT current_setting('server_version')")).scalar_one()
        return TRAITS.name, str(scalar_one).split(" ")[0]

    def identity(self, connection: Connection) -> dict[str, Any]:
        row = connection.execute(text(IDENTITY)).one()
        return dict(zip(("server_uid", "version", "port"), map(str, row), strict=True))

    def facts(self, connection: Connection, requests: Mapping[str, Any]) -> dict[str, Any]:
        sees = text("SELECT pg_has_role('pg_read_all_stats', 'MEMBER')")
        version = self.who(connection)[1]
        its = server_settings.collect_facts(connection.engine, version, requests, requests, PurePath("/"))
        return {"engine": its, "rights": describe_rights(bool(connection.execute(sees).scalar_one()))}


WORDS = GuestDialect()


def _fetch_first(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute((OURS + statement).encode()).fetchone()
    return row[0] if row else None


def _prefix_statement(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> tuple[str, Any]:
    return OURS + statement, parameters
