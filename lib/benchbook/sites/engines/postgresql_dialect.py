"""What measuring asks of a PostgreSQL over SQL.

Statements come from `pg_stat_statements`, which counts them by account when they end: a statement of
sysbench's is one call, prepared or not, and the rows of its writes are what sysbench counts as writes.
PostgreSQL 15 counts a prepared BEGIN or COMMIT once a session, so neither is held.
Connections come from `pg_stat_database`, of all databases. What a session has not yet
handed over is in it once the session has ended, and of ours at once (`pg_stat_force_next_flush`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, text

from benchbook.sites.engines import dialect
from benchbook.sites.engines.dialect import Items

ADMIN = "benchbook_admin"
# The first word of a statement's text to the counter that it moves.
COMMANDS = {"SELECT": "Com_select", "INSERT": "Com_insert", "UPDATE": "Com_update", "DELETE": "Com_delete"}
WRITES = ("Com_insert", "Com_update", "Com_delete")
PREPARED = "pg_stat_statements counts a prepared one once a session"
ABSENT = {
    "Com_begin": PREPARED,
    "Com_commit": PREPARED,
    "Com_stmt_execute": "PostgreSQL does not tell prepared statements from others",
}

STATEMENTS = """
SELECT upper(substring(ltrim(query, E' \\t\\n(') FROM '^[A-Za-z]+')) AS command, sum(calls), sum(rows)
FROM pg_stat_statements JOIN pg_roles ON pg_roles.oid = userid
WHERE toplevel AND {others} GROUP BY 1"""
DATABASES = """
SELECT sum(sessions), sum(deadlocks), sum(sessions_killed), sum(sessions_fatal),
       (SELECT dealloc FROM pg_stat_statements_info),
       extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()),
       sum(blks_hit), sum(blks_read), sum(tup_fetched), sum(tup_returned),
       (SELECT wal_bytes FROM pg_stat_wal)
FROM pg_stat_database"""
WORK = ("blks_hit", "blks_read", "tup_fetched", "tup_returned", "wal_bytes")
# A library's settings, with a dot, are there once the session has used it; this library is always loaded.
VARIABLES = """
SELECT name, setting FROM pg_settings
WHERE name <> 'cluster_name' AND (strpos(name, '.') = 0 OR name LIKE 'pg_stat_statements.%')"""
# ALTER SYSTEM has a file of its own, which the next start reads too.
BY_HAND = "SELECT name, setting FROM pg_file_settings WHERE sourcefile LIKE '%/postgresql.auto.conf'"
FOREIGN = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
KEYS = """
SELECT string_agg(attname, ', ' ORDER BY attnum), indisunique
FROM pg_index JOIN pg_attribute ON attrelid = indexrelid
WHERE indrelid = CAST(:name AS regclass) GROUP BY indexrelid, indisunique"""

# Most columns have their database's, which versions tell under different names where ICU or they provide it.
TEXTS = """
SELECT DISTINCT current_setting('server_encoding'), CASE collname WHEN 'default' THEN COALESCE(
       to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', datcollate::text) ELSE collname::text END
FROM pg_attribute JOIN pg_collation c ON c.oid = attcollation
JOIN pg_database d ON datname = current_database()
WHERE attrelid = to_regclass(:name) AND attnum > 0"""


class Words(dialect.Dialect):
    """PostgreSQL's answers to `dialect.Dialect`'s questions."""

    family = "postgresql"
    asks_tables, asks_variables, asks_text = TABLES, VARIABLES, TEXTS
    others, admin = "rolname <> :admin", ADMIN
    """Which statements are not our own looks: a condition on what was counted, and its value."""

    def enter(self, connection: Connection, database: str) -> None:
        """A session has one database for life, and it was opened in the right one."""
        there = connection.execute(text("SELECT current_database()")).scalar_one()
        if there != database:
            raise ValueError(f"the session is in {there}, not in {database}")

    def counters(self, connection: Connection) -> tuple[dict[str, int], Mapping[str, Any], float]:
        """Return what all accounts but the administrator did, and the uptime in seconds."""
        sessions, deadlocks, killed, fatal, lost, uptime_s, *work = connection.execute(text(DATABASES)).one()
        counted = self._statements(connection)
        counted |= {
            "Connections": int(sessions),
            "Deadlocks": int(deadlocks),
            "Sessions_killed": int(killed),
            "Sessions_failed": int(fatal),
            # What was thrown out of a full table of statements is no longer counted.
            "Statements_lost": int(lost),
        }
        named = {name: int(count) for name, count in zip(WORK, work, strict=True)}
        return counted, counted | named, float(uptime_s)

    def absent(self, connection: Connection) -> dict[str, str]:
        return ABSENT

    def connected(self, connection: Connection) -> int:
        return 1 + self.foreign_sessions(connection)

    def foreign_sessions(self, connection: Connection) -> int:
        return int(
            connection.execute(text(f"SELECT count(*) FROM pg_stat_activity WHERE {FOREIGN}")).scalar_one()
        )

    def cipher(self, connection: Connection) -> str:
        asked = text("SELECT cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        return str(connection.execute(asked).scalar() or "")

    def indexes(self, connection: Connection, table: str) -> list[str]:
        asked = text(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename = :name"
        )
        return sorted(str(name) for (name,) in connection.execute(asked, {"name": table}))

    def keys(self, connection: Connection, table: str) -> list[str]:
        rows = connection.execute(text(KEYS), {"name": table})
        return sorted(f"{columns}{dialect.UNIQUE * is_unique}" for columns, is_unique in rows)

    def checksum(self, connection: Connection, table: str, kind: str) -> int:
        """Return the sum over all rows of the first 32 bits of their MD5: PostgreSQL has no CRC32."""
        # Its CHAR is written with the blanks that fill it up, which MySQL's family leaves out.
        texts = "c::text, pad::text" if kind == "text" else "c, pad"
        each = f"('x' || left(md5(concat_ws('#', id, k, {texts})), 8))::bit(32)::bigint"
        return int(connection.execute(text(f"SELECT COALESCE(SUM({each}), 0) FROM {table}")).scalar_one())

    def analyze(self, connection: Connection, table: str) -> list[dict[str, str]]:
        """Take statistics, and settle what the first readers of loaded rows would otherwise write."""
        connection.execute(text(f"VACUUM (FREEZE, ANALYZE) {table}"))
        return [dialect.done(table)]

    def prewarm(self, connection: Connection, table: str, index: str) -> None:
        """Read a table and its indexes into shared buffers, which a scan of a large table keeps out of."""
        for name in (table, *self.indexes(connection, table)):
            connection.execute(
                text("SELECT pg_prewarm(CAST(:name AS regclass))"), {"name": name}
            ).scalar_one()

    def limits(self, connection: Connection, names: Sequence[str]) -> dict[str, int]:
        if "max_connections" not in names:
            return {}
        asked = (
            "SELECT current_setting('max_connections')::int "
            "- current_setting('superuser_reserved_connections')::int"
        )
        return {"max_connections": int(connection.execute(text(asked)).scalar_one())}

    def is_read_only(self, connection: Connection) -> bool:
        return bool(connection.execute(text("SELECT pg_is_in_recovery()")).scalar_one())

    def set_by_hand(self, connection: Connection) -> Items:
        rows = connection.execute(text(BY_HAND))
        return {str(name): str(value) for name, value in rows}

    def written(self, connection: Connection) -> Items:
        """Return how many rows of each table were ever inserted, updated and deleted."""
        asked = text("SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables")
        return {
            str(name): f"{inserted} rows inserted, {updated} updated, {deleted} deleted"
            for name, inserted, updated, deleted in connection.execute(asked)
        }

    def _statements(self, connection: Connection) -> dict[str, int]:
        """Return calls and rows of all statements but our own under our names; an unused one is 0."""
        asked = text(STATEMENTS.format(others=self.others))
        found = dict.fromkeys((*COMMANDS.values(), "Com_other", "Rows_sent", "Rows_changed"), 0)
        for command, calls, rows in connection.execute(asked, {"admin": self.admin}):
            counter = COMMANDS.get(str(command), "Com_other")
            found[counter] += int(calls)
            if counter == "Com_select":
                found["Rows_sent"] += int(rows)
            elif counter in WRITES:
                found["Rows_changed"] += int(rows)
        return found


WORDS = Words()
