"""What the servers of an arm say before and after a run, over the administrative session that looks at them.

Counters, uptime and rows, each and together. One server's record is the run's. Several are kept one by one,
and the counters of the run are their sums.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from benchbook.measure import server_drift, sysbench
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
    connection = site.admin(arm, server).connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        dialect.of(connection).enter(connection, site.database)
        connection.info["schema"] = site.database
        yield connection
    finally:
        try:
            connection.close()
        except DBAPIError as error:
            # A server that went away has nothing to roll back, and what it was to serve is void without this.
            if not error.connection_invalidated:
                raise


def snapshot(connection: Connection) -> tuple[dict[str, int], float]:
    """Return the server's counters by name and its uptime in seconds; what its cache holds is kept, too."""
    counters, status, uptime_s = dialect.of(connection).counters(connection)
    # After the reading: the books of a cluster are waited for, and its uptime is that of the wait's end.
    server_drift.moment(connection, status, uptime_s, time.monotonic())
    told = {key: str(status.get(name, "")) for key, name in OF_CACHE.items()}
    is_told = all(map(str.isdigit, told.values()))
    connection.info["cache"] = {key: int(value) for key, value in told.items()} if is_told else None
    return counters, uptime_s


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


Record = dict[str, Any]
SETTLED_S, LEFT_S = 5.0, 1.0
SIDES = ("before", "after")
KEPT = ("rows_before", "sample_before", "uptime_before_s", "state")


def begin(connection: Connection) -> None:
    """Keep what a server is, once our own sessions that were just closed are in its counters."""
    settle(connection, LEFT_S)
    snapshot(connection)
    server_drift.begin(connection)


def before(connection: Connection, tables: int | None, known: Record | None = None) -> Record:
    """Look at one server before a run.

    Returns `rows_before` (without `tables` a `sample_before`), `foreign_sessions`, `before` with counters,
    `uptime_before_s`, `state`: settings, tables, what went on since the last run, and `cache_before`. `known`
    are rows and sample from before a server was started again, since to look at rows would warm it.
    """
    seen_rows = known or rows_of(connection, tables)
    # Our sessions that have just been closed stay in a busy server's list for a moment.
    settle(connection, LEFT_S)
    foreign = dialect.of(connection).foreign_sessions(connection)
    if not server_drift.has_begun(connection):
        begin(connection)
    seen = server_drift.before(connection)
    counters, uptime_s = snapshot(connection)
    return {
        "state": seen | {"between": server_drift.between(connection)},
        **seen_rows,
        "foreign_sessions": foreign,
        "before": counters,
        "work_before": server_drift.latest(connection).work,
        "cache_before": connection.info.get("cache"),
        "uptime_before_s": uptime_s,
    }


def rows_of(connection: Connection, tables: int | None) -> Record:
    """Return `rows_before`, and where tables are too large to be counted (None) a `sample_before`."""
    return {
        "rows_before": rows(connection, tables) if tables is not None else None,
        "sample_before": sample(connection) if tables is None else None,
    }


def after(connection: Connection, was: Record, tables: int | None, arrangement: Mapping[str, Any]) -> Record:
    """Look at one server again once the client's sessions have left it; return its whole record."""
    try:
        if "event" in arrangement:
            return _after_event(connection, was, tables)
        settle(connection)
        counters, uptime_s = snapshot(connection)
        moment = server_drift.latest(connection)
        own = _own_connections(was["before"], counters, arrangement)
        reason, words = connection.info.get("no_ledger"), dialect.of(connection)
        return {
            **_known(was),
            "state": server_drift.after(connection, was["state"], moment),
            "ledger": {
                "available": reason is None,
                "reason": reason,
                "before": was["before"],
                "after": counters,
                "own_connections": own,
                **_absent(connection, arrangement),
            },
            "work": {"before": was.get("work_before"), "after": moment.work},
            "cache": {"before": was.get("cache_before"), "after": connection.info.get("cache")},
            "uptime_after_s": uptime_s,
            "rows_after": rows(connection, tables) if tables is not None else None,
            "sample_after": sample(connection) if tables is None else None,
            "foreign_sessions": was["foreign_sessions"] + words.foreign_sessions(connection),
            "server_answers": True,
        }
    except Exception as error:
        return silent(was, error)


def _after_event(connection: Connection, was: Record, tables: int | None) -> Record:
    """Record of a server that was ended and started again as planned: its counters began anew."""
    kept = {name: connection.info[name] for name in ("held", "schema")}
    connection.invalidate()
    connection.rollback()
    connection.info.update(kept)
    dialect.of(connection).enter(connection, kept["schema"])
    settle(connection)
    _, uptime_s = snapshot(connection)
    return {
        **_known(was),
        "state": server_drift.after(connection, was["state"], server_drift.latest(connection)),
        "ledger": {
            "available": False,
            "reason": "the server was ended, or set otherwise, in the run as planned",
            "before": was["before"],
            "after": None,
            "own_connections": 0,
        },
        "uptime_after_s": uptime_s,
        **{name.replace("before", "after"): rows for name, rows in rows_of(connection, tables).items()},
        "foreign_sessions": was["foreign_sessions"] + dialect.of(connection).foreign_sessions(connection),
        "server_answers": True,
    }


def silent(was: Record, error: Exception) -> Record:
    """Return the record after a run of a server that does not answer any more."""
    return {
        **_known(was),
        "ledger": {
            "available": True,
            "reason": f"the server does not answer after the run: {type(error).__name__}",
            "before": was["before"],
            "after": None,
            "own_connections": 0,
        },
        "uptime_after_s": None,
        "rows_after": None,
        "foreign_sessions": was["foreign_sessions"],
        "server_answers": False,
    }


def _known(was: Record) -> Record:
    return {key: was[key] for key in KEPT if key in was}


def together(each: Sequence[Record]) -> Record:
    """Return the record of the run: of one server its own; of several sums, and each under `servers`."""
    if len(each) == 1:
        return each[0]
    books = [one["ledger"] for one in each]
    reasons = [
        f"server {number}: {one['reason']}" for number, one in enumerate(books) if one["reason"] is not None
    ]
    whole = {
        "available": all(one["available"] for one in books),
        "reason": "; ".join(reasons) or None,
        "before": _sum([one["before"] for one in books]),
        "after": _sum([one["after"] for one in books]),
        "own_connections": sum(one["own_connections"] for one in books),
    }
    absent = {name: why for one in books for name, why in one.get("absent", {}).items()}
    return {
        **each[0],
        "ledger": whole | ({"absent": absent} if absent else {}),
        "work": {side: _sum([one.get("work", {}).get(side) for one in each]) for side in SIDES},
        "cache": {side: _sum_caches([(one.get("cache") or {}).get(side) for one in each]) for side in SIDES},
        "foreign_sessions": sum(one["foreign_sessions"] for one in each),
        "server_answers": all(one["server_answers"] for one in each),
        "servers": list(each),
    }


def arranged(arms: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the arms that one server had at once opened there, as `after` asks it of one arm."""
    if len(arms) == 1:
        return dict(arms[0])
    # Turns have no load beside them, and no arm in turns has several servers (`core.turns`).
    return {name: True for name in ("has_probes", "pools_sessions") if any(one.get(name) for one in arms)}


def _absent(connection: Connection, arrangement: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return what the ledger lacks: what the engine doesn't count, and what a pooler does unasked."""
    found = dialect.of(connection).absent(connection)
    if arrangement.get("pools_sessions"):
        found = found | {"Connections": "the proxy opens a session more when many clients come at once"}
    return {"absent": found} if found else {}


def _sum(counters: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    """Add counters by name; None if a server has none, and without those that a server lacks."""
    known = [one for one in counters if one is not None]
    if len(known) < len(counters):
        return None
    names = [name for name in known[0] if all(name in one for one in known)]
    return {name: sum(one[name] for one in known) for name in names}


def _sum_caches(caches: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    total = _sum(caches)
    return total and total | {"page_bytes": total["page_bytes"] // len(caches)}


def _own_connections(was: Mapping[str, int], now: Mapping[str, int], arrangement: Mapping[str, Any]) -> int:
    """Return how many connections between two looks at a server were not sysbench's."""
    # A proxy that asks whether the server lives drops its connection before it logs in.
    key = "Aborted_connects"
    probes = now[key] - was[key] if arrangement.get("has_probes") else 0
    return probes + (arrangement.get("load", {}).get("connections") or 0)


def settle(connection: Connection, wait_s: float = SETTLED_S) -> None:
    """Wait until the client's sessions have left the server, so that counters stand still."""
    deadline = time.monotonic() + wait_s
    while dialect.of(connection).foreign_sessions(connection) and time.monotonic() < deadline:
        time.sleep(0.01)
