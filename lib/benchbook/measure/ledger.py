"""The administrative session that looks at the server between runs, and the ledger: its counters."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, text

from benchbook.measure import state, sysbench
from benchbook.sites.contract import Site
from benchbook.sites.engines import dialect

# What is looked at of tables that are too large to count: windows over all tables, and ids of each.
SAMPLED_WINDOWS, WINDOW = 64, 200
OF_CACHE = {
    "pages": "Innodb_buffer_pool_pages_data",
    "pages_of_pool": "Innodb_buffer_pool_pages_total",
    "page_bytes": "Innodb_page_size",
    "pages_read": "Innodb_pages_read",
    "bytes_read": "Innodb_data_read",
}


@contextmanager
def session(site: Site, arm: str | None = None, server: int = 0) -> Iterator[Connection]:
    """Open one administrative connection to an arm's server (None: the baseline's) and close it at the end.

    It stands in the measured schema. Every statement is its own transaction: an open one would show old rows,
    hold back the server's clean-up, and add to the counters that the ledger compares.
    """
    admin = site.admins(arm or site.study.baseline)[server] if server else site.admin(arm)
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        dialect.of(connection).enter(connection, site.database)
        yield connection


def absent(connection: Connection) -> dict[str, dict[str, str]]:
    """Return, under `absent`, the counters that this engine doesn't have, with reasons; or nothing."""
    found = dialect.of(connection).absent(connection)
    return {"absent": found} if found else {}


def held(connection: Connection) -> dict[str, Any]:
    """Return whether the server's counters say anything of a run, and why not (`info["no_ledger"]`)."""
    reason = connection.info.get("no_ledger")
    return {"available": reason is None, "reason": reason}


def snapshot(connection: Connection) -> tuple[dict[str, int], float]:
    """Return the server's counters by name and its uptime in seconds; what its cache holds is kept, too."""
    at_s = time.monotonic()
    counters, status, uptime_s = dialect.of(connection).counters(connection)
    state.moment(connection, status, uptime_s, at_s)
    connection.info["cache"] = _cache(status)
    return counters, uptime_s


def _cache(status: Mapping[str, Any]) -> dict[str, int] | None:
    """Return what a server says of its cache and its reads from disk; None where it counts nothing of it."""
    told = {key: str(status.get(name, "")) for key, name in OF_CACHE.items()}
    return {key: int(value) for key, value in told.items()} if all(map(str.isdigit, told.values())) else None


def connected(connection: Connection) -> int:
    """Return how many sessions the server says are open, ours with them; one row, however many there are."""
    return dialect.of(connection).connected(connection)


def foreign_sessions(connection: Connection) -> int:
    """Count sessions that are neither ours nor the server's own."""
    return dialect.of(connection).foreign_sessions(connection)


def rows(connection: Connection, tables: int) -> dict[str, int]:
    """Count the rows of each sysbench table exactly; a table that is missing counts as -1."""
    present = set(dialect.of(connection).tables(connection))
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
    """Return of each sysbench table `first` and `last` id, and of ids `asked` how many are `there`."""
    names = [name for name in dialect.of(connection).tables(connection) if sysbench.is_table(name)]
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
    """Return the cipher of a session made like the client's, empty without encryption."""
    return dialect.of(connection).cipher(connection)
