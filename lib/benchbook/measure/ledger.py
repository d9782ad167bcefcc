"""The administrative session that looks at the server between runs, and the ledger: its counters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from sqlalchemy import Connection, text

from benchbook.core.study import Study
from benchbook.measure import state
from benchbook.sites.contract import Site

# Cumulative counters that sysbench's own counts can be held against, query by query.
COUNTERS = (
    "Com_select",
    "Com_insert",
    "Com_update",
    "Com_delete",
    "Com_begin",
    "Com_commit",
    "Com_rollback",
    "Com_stmt_prepare",
    "Com_stmt_execute",
    "Connections",
    "Rows_sent",
    "Rows_read",
    "Handler_write",
    "Handler_update",
    "Handler_delete",
    "Innodb_rows_inserted",
    "Innodb_rows_updated",
    "Innodb_rows_deleted",
    "Innodb_rows_read",
    "Innodb_deadlocks",
    "Ssl_accepts",
    "Aborted_connects",
    "Aborted_clients",
    "Questions",
)
# What is looked at of tables that are too large to count: windows over all tables, and ids of each.
SAMPLED_WINDOWS, WINDOW = 64, 200
# How long its own sessions that were closed may stay in a server's list.
LEFT_S = 1.0

# What MariaDB counts by account (`userstat`), under our names; prepared statements count as what they do.
OF_ACCOUNT = {
    "Com_select": "SELECT_COMMANDS",
    "Account_updates": "UPDATE_COMMANDS",
    "Account_other": "OTHER_COMMANDS",
    "Connections": "TOTAL_CONNECTIONS",
    "Rows_sent": "ROWS_SENT",
}


@contextmanager
def session(site: Site, arm: str | None = None, server: int = 0) -> Iterator[Connection]:
    """Open one administrative connection to an arm's server (None: the baseline's) and close it at the end.

    It stands in the measured schema. `server` is the number of the server, for an arm of several.

    Every statement is its own transaction: an open one would show old rows, hold back the server's clean-up,
    and add to the counters that the ledger compares.
    """
    admin = site.admins(arm or site.study.baseline)[server] if server else site.admin(arm)
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        quoted = connection.dialect.identifier_preparer.quote_identifier(site.database)
        connection.exec_driver_sql(f"USE {quoted}")
        yield connection


@contextmanager
def sessions(site: Site, study: Study, arms: Iterable[str]) -> Iterator[dict[str, tuple[Connection, ...]]]:
    """Open one session for each distinct server of some arms; return the sessions of every arm, one a server.

    A second session of its own on a server would be somebody else's to the first. What each server is then is
    kept, and the runs are held to it (`state`).
    """
    with ExitStack() as stack:
        opened: dict[tuple[str, int], Connection] = {}
        found: dict[str, tuple[Connection, ...]] = {}
        for arm in arms:
            keys = [
                (site.server_of(arm), number) for number in range(study.arms[study.deployed(arm)].servers)
            ]
            for key in keys:
                if key not in opened:
                    opened[key] = stack.enter_context(session(site, arm, key[1]))
                    _begin(opened[key])
            found[arm] = tuple(opened[key] for key in keys)
        yield found


def _begin(connection: Connection) -> None:
    """Keep what a server is, once its own sessions that were just closed are in its counters."""
    deadline = time.monotonic() + LEFT_S
    while foreign_sessions(connection) and time.monotonic() < deadline:
        time.sleep(0.01)
    snapshot(connection)
    state.begin(connection)


def absent(connection: Connection) -> dict[str, dict[str, str]]:
    """Return, under `absent`, the counters that this engine doesn't have, with reasons; or nothing."""
    found = connection.info.get("absent")
    return {"absent": found} if found else {}


def held(connection: Connection) -> dict[str, Any]:
    """Return whether the server's counters say anything of a run, and why not (`info["no_ledger"]`)."""
    reason = connection.info.get("no_ledger")
    return {"available": reason is None, "reason": reason}


def snapshot(connection: Connection, user: str | None = None) -> tuple[dict[str, int], float]:
    """Return the server's counters by name, and its uptime in seconds, over a connection that is already
    open.

    With `user` they are those of one account (`OF_ACCOUNT`), which others on the same server don't move.
    An engine that keeps its books elsewhere gives its connections a reader of them (`info["books"]`).
    """
    at_s = time.monotonic()
    if "books" in connection.info:
        counters, uptime_s = connection.info["books"]()
        state.moment(connection, counters, uptime_s, at_s)
        return counters, uptime_s
    rows = connection.execute(text("SHOW GLOBAL STATUS")).all()
    status = {str(name): value for name, value in rows}
    counters = {name: int(status[name]) for name in COUNTERS if str(status.get(name, "")).isdigit()}
    uptime_s = int(status.get("Uptime", 0))
    state.moment(connection, status, uptime_s, at_s)
    return (counters if user is None else _of_account(connection, user)), uptime_s


def _of_account(connection: Connection, user: str) -> dict[str, int]:
    columns = ", ".join(OF_ACCOUNT.values())
    counted = text(f"SELECT {columns} FROM information_schema.USER_STATISTICS WHERE USER = :user")
    # An account that was never used has no row yet.
    row: Any = connection.execute(counted, {"user": user}).first() or (0,) * len(OF_ACCOUNT)
    return {name: int(value) for name, value in zip(OF_ACCOUNT, row, strict=True)}


def connected(connection: Connection) -> int:
    """Return how many sessions the server says are open, ours with them; one row, however many there are."""
    if "connected" in connection.info:
        return connection.info["connected"]()
    row = connection.execute(text("SHOW GLOBAL STATUS LIKE 'Threads_connected'")).first()
    if row is None:
        counted = "SELECT COUNT(*) FROM information_schema.processlist"
        return int(connection.execute(text(counted)).scalar_one())
    return int(row[1])


def foreign_sessions(connection: Connection) -> int:
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


def rows(connection: Connection, tables: int) -> dict[str, int]:
    """Count the rows of each sysbench table exactly; a table that is missing counts as -1."""
    present = {str(name) for (name,) in connection.execute(text("SHOW TABLES"))}
    counted = {}
    for number in range(1, tables + 1):
        name = f"sbtest{number}"
        counted[name] = (
            int(connection.execute(text(f"SELECT COUNT(*) FROM {name}")).scalar_one())
            if name in present
            else -1
        )
    return counted


def sample(connection: Connection) -> dict[str, dict[str, int]]:
    """Return of each sysbench table its `first` and `last` id, and of ids `asked` between them how many are
    `there`; some thousand rows are read, however large the tables are."""
    names = [str(name) for (name,) in connection.execute(text("SHOW TABLES"))]
    names = sorted(name for name in names if name.startswith("sbtest") and name[6:].isdigit())
    found = {}
    for name in names:
        first, last = connection.execute(text(f"SELECT MIN(id), MAX(id) FROM {name}")).one()
        first, last = int(first or 0), int(last or 0)
        windows = _windows(first, last, max(1, SAMPLED_WINDOWS // len(names)))
        counted = (
            connection.execute(text(f"SELECT COUNT(*) FROM {name} WHERE id BETWEEN {low} AND {high}"))
            for low, high in windows
        )
        there = sum(int(one.scalar_one()) for one in counted)
        asked = sum(high - low + 1 for low, high in windows)
        found[name] = {"first": first, "last": last, "asked": asked, "there": there}
    return found


def _windows(first: int, last: int, count: int) -> list[tuple[int, int]]:
    """Return windows of ids from the first to the last, evenly apart; all ids where they would overlap."""
    if last - first < count * WINDOW:
        return [(first, last)] if last else []
    step = (last - first + 1 - WINDOW) // max(1, count - 1)
    return [(first + step * number, first + step * number + WINDOW - 1) for number in range(count)]


def cipher(connection: Connection) -> str:
    """Return the cipher of a session made like the client's, empty without encryption.

    A site whose own sessions are made otherwise makes one like the client's for that (`info["cipher"]`).
    """
    if "cipher" in connection.info:
        return str(connection.info["cipher"]())
    row: Any = connection.execute(text("SHOW SESSION STATUS LIKE 'Ssl_cipher'")).first()
    return str(row[1]) if row else ""
