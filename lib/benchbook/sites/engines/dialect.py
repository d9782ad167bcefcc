"""Questions of measuring to a server over SQL, in MySQL's words; other families have others.

An engine gives its connections its own words (`info["dialect"]`); those of MySQL need not be named.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from benchbook.core.study import descriptors
from benchbook.core.util import yaml_file

Items = dict[str, str]

# Cumulative counters that sysbench's own counts can be held against, query by query.
COUNTERS = (
    "Com_select", "Com_insert", "Com_update", "Com_delete", "Com_begin", "Com_commit",
    "Com_rollback", "Com_stmt_prepare", "Com_stmt_execute", "Connections", "Rows_sent", "Rows_read",
    "Handler_write", "Handler_update", "Handler_delete", "Innodb_rows_inserted",
    "Innodb_rows_updated", "Innodb_rows_deleted", "Innodb_rows_read", "Innodb_deadlocks",
    "Ssl_accepts", "Aborted_connects", "Aborted_clients", "Questions",
)  # fmt: skip
# Cumulative counters of what a server does for its statements, by whatever name its engine has for them.
WORK = (
    *(f"Handler_read_{way}" for way in ("first", "key", "last", "next", "prev", "rnd", "rnd_next")),
    "Innodb_buffer_pool_read_requests", "Innodb_buffer_pool_reads", "Innodb_buffer_pool_read_ahead",
    "Innodb_data_fsyncs",
    "Innodb_os_log_written", "Innodb_row_lock_time", "Innodb_row_lock_waits", "blks_hit", "blks_read",
    "tup_fetched", "tup_returned", "wal_bytes", "kv_requests",
)  # fmt: skip
# Table that says of a database on a server that others run which clone uses it.
MARK = "benchbook_lab"
QUESTIONS = Path(__file__).parents[1] / "questions.yaml"
# TiDB tells a `max_connections` of 151 that it does not hold anybody to, until this version.
OF_TIDB, HELD_TO_CONNECTIONS = re.compile(r"TiDB-v(\d+)\.(\d+)"), (6, 2)
# What an index is beside its columns, where `keys` names it.
UNIQUE = " unique"


class Dialect:
    """The questions, each asked over a connection that is already open and in autocommit."""

    family = "mysql"

    @property
    def questions(self) -> dict[str, Any]:
        results: dict[str, Any] = yaml_file.read_mapping(QUESTIONS).data[self.family]
        return results

    def ask(self, connection: Connection, what: str, **inputs: Any) -> Any:
        return connection.execute(text(self.questions[what]), inputs)

    def enter(self, connection: Connection, database: str) -> None:
        """Stand in a schema."""
        quoted = connection.dialect.identifier_preparer.quote_identifier(database)
        connection.exec_driver_sql(f"USE {quoted}")

    @contextmanager
    def limit_waits(self, connection: Connection, seconds: float) -> Iterator[None]:
        """Give up the session, which raises, where an answer in the block takes a server longer."""
        raw: Any = connection.connection.dbapi_connection
        # PyMySQL takes it only when it opens a session, but looks at it before each answer.
        usual_s, raw._read_timeout = raw._read_timeout, seconds
        try:
            yield
        finally:
            raw._read_timeout = usual_s

    def counters(self, connection: Connection) -> tuple[dict[str, int], Mapping[str, Any], float]:
        """The server's counters by name, all that it counts, and its uptime in seconds."""
        if "books" in connection.info:
            counters, uptime_s = connection.info["books"]()
            return counters, counters, uptime_s
        status = {str(name): value for name, value in connection.execute(text("SHOW GLOBAL STATUS")).all()}
        counters = {name: int(status[name]) for name in COUNTERS if str(status.get(name, "")).isdigit()}
        questions = connection.execute(text("SHOW SESSION STATUS LIKE 'Questions'")).first()
        if questions is not None and "Questions" in counters:
            # Whatever this session asks between two readings moves both, and not their difference.
            counters["Statements"] = counters["Questions"] - int(questions[1])
        return counters, status, int(status.get("Uptime", 0))

    def absent(self, connection: Connection) -> dict[str, str]:
        """Counters that this engine doesn't have, with reasons, after the last reading of them."""
        moment = connection.info.get("moment")
        read = {} if moment is None else moment.counters
        uncounted = connection.info.get("uncounted") or {}
        lacking = {name: why for name, why in uncounted.items() if name not in read}
        return {**(connection.info.get("absent") or {}), **lacking}

    def connected(self, connection: Connection) -> int:
        """Number of open sessions by the server, ours with them."""
        if "connected" in connection.info:
            return connection.info["connected"]()
        row = connection.execute(text("SHOW GLOBAL STATUS LIKE 'Threads_connected'")).first()
        if row is None:
            counted = "SELECT COUNT(*) FROM information_schema.processlist"
            return int(connection.execute(text(counted)).scalar_one())
        return int(row[1])

    def foreign_sessions(self, connection: Connection) -> int:
        """Count sessions that are neither ours nor the server's own."""
        rows = connection.execute(text("SHOW PROCESSLIST")).mappings().all()
        # The greeting holds four bytes of a session's number, and TiDB's have eight.
        mine = connection.info.get("session") or connection.connection.dbapi_connection.thread_id()  # type: ignore[union-attr]
        return sum(
            1
            for row in rows
            if int(row["Id"]) != mine
            and row["User"] not in ("system user", "event_scheduler")
            # Where others use the server too, only our own account must be alone.
            and row["User"] == connection.info.get("only_user", row["User"])
        )

    def cipher(self, connection: Connection) -> str:
        """Cipher of a session made like the client's, empty without encryption."""
        if "cipher" in connection.info:
            return str(connection.info["cipher"]())
        row: Any = connection.execute(text("SHOW SESSION STATUS LIKE 'Ssl_cipher'")).first()
        return str(row[1]) if row else ""

    def tables(self, connection: Connection) -> list[str]:
        return sorted(str(name) for (name,) in self.ask(connection, "tables"))

    def indexes(self, connection: Connection, table: str) -> list[str]:
        rows = connection.execute(text(f"SHOW INDEX FROM {table}")).mappings()
        return sorted({str(row["Key_name"]) for row in rows})

    def keys(self, connection: Connection, table: str) -> list[str]:
        """A table's indexes by columns and uniqueness, sorted, as any engine says them."""
        results: dict[tuple[str, bool], dict[int, str]] = {}
        for row in connection.execute(text(f"SHOW INDEX FROM {table}")).mappings():
            name = (str(row["Key_name"]), not int(row["Non_unique"]))
            results.setdefault(name, {})[int(row["Seq_in_index"])] = str(row["Column_name"])
        return sorted(
            ", ".join(columns[rank] for rank in sorted(columns)) + UNIQUE * is_unique
            for (_, is_unique), columns in results.items()
        )

    def texts(self, connection: Connection, table: str) -> Items:
        """The server's values of `TEXT` (`core.study.descriptors`) for a table's columns, if any."""
        rows = self.ask(connection, "text", name=table)
        texts = zip(*(map(str, row) for row in rows), strict=True)
        return {key: ", ".join(sorted({*each})) for key, each in zip(descriptors.TEXT, texts, strict=False)}

    def checksum(self, connection: Connection, table: str, kind: str) -> int:
        """Checksum of a sysbench table: `own` is the engine's, `crc32`, `md5` a family's, `text` any's."""
        if kind == "own":
            return int(connection.execute(text(f"CHECKSUM TABLE {table}")).first()[1])  # type: ignore[index]
        row = "CONCAT_WS('#', id, k, c, pad)"
        each = f"CRC32({row})" if kind == "crc32" else f"CONV(LEFT(MD5({row}), 8), 16, 10)"
        return int(connection.execute(text(f"SELECT COALESCE(SUM({each}), 0) FROM {table}")).scalar_one())

    def analyze(self, connection: Connection, table: str) -> list[dict[str, str]]:
        """Take a table's statistics; returns the answers, each with Table, Msg_type, Msg_text."""
        answer = connection.execute(text(f"ANALYZE TABLE {table}"))
        # TiDB answers with nothing but its success.
        if not answer.returns_rows:
            return [report_done(table)]
        return [{key: str(row[key]) for key in report_done("")} for row in answer.mappings().all()]

    def prewarm(self, connection: Connection, table: str, index: str) -> None:
        """Read every row by primary key and every entry of the secondary index into memory."""
        for column, by in (("pad", "PRIMARY"), ("k", index)):
            query = f"SELECT COUNT({column}) FROM {table} FORCE INDEX (`{by}`)"
            connection.execute(text(query)).scalar_one()

    def limits(self, connection: Connection, names: Sequence[str]) -> dict[str, int]:
        """The limits among these that the server has."""
        listed = ", ".join(f"'{name}'" for name in names)
        rows = connection.execute(text(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})")).all()
        results = {str(name): int(value) for name, value in rows}
        version = OF_TIDB.search(str(connection.execute(text("SELECT VERSION()")).scalar_one()))
        if version is not None and (int(version[1]), int(version[2])) < HELD_TO_CONNECTIONS:
            results.pop("max_connections", None)
        return results

    def is_read_only(self, connection: Connection) -> bool:
        """True if the server takes no writes."""
        # A number, or its text: all variables of TiDB before 5.0 are text.
        scalar_one = connection.execute(text("SELECT @@global.read_only")).scalar_one()
        return str(scalar_one).upper() not in ("0", "OFF")

    def variables(self, connection: Connection) -> Items:
        """All settings of the server by name."""
        return {str(name): str(value) for name, value in self.ask(connection, "variables")}

    def set_by_hand(self, connection: Connection) -> Items:
        """Settings that a session gave the server while it ran, if it tells that of each."""
        if not getattr(connection.dialect, "is_mariadb", False):
            return {}
        return {str(name).lower(): str(value) for name, value in self.ask(connection, "by_hand")}

    def definitions(self, connection: Connection) -> tuple[Items, dict[str, str]]:
        """Definitions of the schema's tables by item, and reasons for those that could not be read."""
        results: Items = {}
        lacking: dict[str, str] = {}
        for item, query in self.questions["definitions"].items():
            try:
                rows = list(connection.execute(text(query)))
            except SQLAlchemyError as error:
                lacking[self.questions.get("sources", {}).get(item, item)] = type(error).__name__
                continue
            of_kind: dict[str, list[str]] = {}
            for name, *values in rows:
                words = [str(value) for value in values if value is not None and value != ""]
                of_kind.setdefault(f"{item} {name}", []).append(", ".join(words))
            results |= {name: "; ".join(sorted(lines)) for name, lines in of_kind.items()}
        return results, lacking

    def written(self, connection: Connection) -> Items:
        """Times of each table's making and last write; empty if the engine does not tell."""
        if not getattr(connection.dialect, "is_mariadb", False):
            return {}
        rows = self.ask(connection, "written")
        return {str(name): f"made {row}, written {when}" for name, row, when in rows}


MYSQL = Dialect()


def get_dialect(connection: Connection) -> Dialect:
    """Dialect of the server behind a connection."""
    return connection.info.get("dialect", MYSQL)


def report_done(table: str) -> dict[str, str]:
    """Answer for an engine that tells nothing but that a table is done."""
    return {"Table": table, "Msg_type": "status", "Msg_text": "OK"}
