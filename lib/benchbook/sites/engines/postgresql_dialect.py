"""The questions of measuring to a PostgreSQL over SQL, and the use of its answers."""

import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, text

from benchbook.sites.engines import dialect
from benchbook.sites.engines.dialect import Items

ADMIN = "benchbook_admin"
# The first word of a statement's text to the counter that it moves.
COMMANDS = {"SELECT": "Com_select", "INSERT": "Com_insert", "UPDATE": "Com_update", "DELETE": "Com_delete"}
WRITES = ("Com_insert", "Com_update", "Com_delete")
PREPARED = "pg_stat_statements counts a prepared one once a session"
ABSENT = dict.fromkeys(("Com_begin", "Com_commit"), PREPARED)
ABSENT["Com_stmt_execute"] = "PostgreSQL does not tell prepared statements from others"

# What was thrown out of a full table of statements is no longer counted: `Statements_lost`.
OF_DATABASES = ("Connections", "Deadlocks", "Sessions_killed", "Sessions_failed", "Statements_lost")
WORK = ("blks_hit", "blks_read", "tup_fetched", "tup_returned", "wal_bytes")


class PostgresqlDialect(dialect.Dialect):
    """PostgreSQL's answers to `dialect.Dialect`'s questions."""

    family = "postgresql"
    others, admin = "rolname <> :admin", ADMIN
    """Which statements are not our own looks: a condition on what was counted, and its value."""

    def enter(self, connection: Connection, database: str) -> None:
        """A session has one database for life, and it was opened in the right one."""
        there = connection.execute(text("SELECT current_database()")).scalar_one()
        if there != database:
            raise ValueError(f"the session is in {there}, not in {database}")

    @contextmanager
    def limit_waits(self, connection: Connection, seconds: float) -> Iterator[None]:
        raw: Any = connection.connection.dbapi_connection
        # libpq waits for ever, and a server that hangs does not keep to a limit of its own.
        with socket.socket(fileno=os.dup(raw.fileno())) as line:
            timer = threading.Timer(seconds, line.shutdown, [socket.SHUT_RDWR])
            timer.start()
            try:
                yield
            finally:
                timer.cancel()
                timer.join()

    def counters(self, connection: Connection) -> tuple[dict[str, int], Mapping[str, Any], float]:
        """Work of all accounts but the administrator, by counter, and the uptime in seconds."""
        row = self.ask(connection, "databases").one()
        query = text(self.questions["statements"].format(others=self.others))
        # Calls and rows of all statements but our own; one that is not used is 0.
        counted = dict.fromkeys((*COMMANDS.values(), "Com_other", "Rows_sent", "Rows_changed"), 0)
        for command, calls, rows in connection.execute(query, {"admin": self.admin}):
            counter = COMMANDS.get(str(command), "Com_other")
            counted[counter] += int(calls)
            if counter == "Com_select":
                counted["Rows_sent"] += int(rows)
            elif counter in WRITES:
                counted["Rows_changed"] += int(rows)
        counted |= {name: int(count) for name, count in zip(OF_DATABASES, row[:5], strict=True)}
        work = {name: int(count) for name, count in zip(WORK, row[6:], strict=True)}
        return counted, counted | work, float(row[5])

    def absent(self, connection: Connection) -> dict[str, str]:
        return ABSENT

    def connected(self, connection: Connection) -> int:
        return 1 + self.foreign_sessions(connection)

    def foreign_sessions(self, connection: Connection) -> int:
        return int(self.ask(connection, "foreign").scalar_one())

    def cipher(self, connection: Connection) -> str:
        return str(self.ask(connection, "cipher").scalar() or "")

    def indexes(self, connection: Connection, table: str) -> list[str]:
        return sorted(str(name) for (name,) in self.ask(connection, "indexes", name=table))

    def keys(self, connection: Connection, table: str) -> list[str]:
        rows = self.ask(connection, "keys", name=table)
        return sorted(f"{columns}{dialect.UNIQUE * is_unique}" for columns, is_unique in rows)

    def checksum(self, connection: Connection, table: str, kind: str) -> int:
        """Sum over all rows of the first 32 bits of their MD5: PostgreSQL has no CRC32."""
        # Its CHAR is written with the blanks that fill it up, which MySQL's family leaves out.
        texts = "c::text, pad::text" if kind == "text" else "c, pad"
        each = f"('x' || left(md5(concat_ws('#', id, k, {texts})), 8))::bit(32)::bigint"
        return int(connection.execute(text(f"SELECT COALESCE(SUM({each}), 0) FROM {table}")).scalar_one())

    def analyze(self, connection: Connection, table: str) -> list[dict[str, str]]:
        """Take statistics, and settle now the writes of the first readers of loaded rows."""
        connection.execute(text(f"VACUUM (FREEZE, ANALYZE) {table}"))
        return [dialect.report_done(table)]

    def prewarm(self, connection: Connection, table: str, index: str) -> None:
        """Read a table and its indexes into shared buffers; a scan of a large table avoids them."""
        for name in (table, *self.indexes(connection, table)):
            connection.execute(text("SELECT pg_prewarm(CAST(:it AS regclass))"), {"it": name}).scalar_one()

    def limits(self, connection: Connection, names: Sequence[str]) -> dict[str, int]:
        if "max_connections" not in names:
            return {}
        return {"max_connections": int(self.ask(connection, "limit").scalar_one())}

    def is_read_only(self, connection: Connection) -> bool:
        return bool(connection.execute(text("SELECT pg_is_in_recovery()")).scalar_one())

    def set_by_hand(self, connection: Connection) -> Items:
        return {str(name): str(value) for name, value in self.ask(connection, "by_hand")}

    def written(self, connection: Connection) -> Items:
        """Numbers of rows of each table that were ever inserted, updated and deleted."""
        return {
            str(name): f"{inserted} rows inserted, {updated} updated, {deleted} deleted"
            for name, inserted, updated, deleted in self.ask(connection, "written")
        }


WORDS = PostgresqlDialect()
