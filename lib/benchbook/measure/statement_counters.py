"""Server records of an arm before and after a run: of one server its own, of several each and their sums."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from benchbook.measure import server_drift, sysbench
from benchbook.sites.contract import Site
from benchbook.sites.engines import dialect

# A server that hangs may let us in and answer a SELECT, but never tell its counters.
ANSWER_S = 60.0
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
def open_session(site: Site, arm: str | None = None, server: int = 0) -> Iterator[Connection]:
    """Open one administrative connection to an arm's server (None: the baseline's) and close it at the end.

    It stands in the measured schema. Every statement is its own transaction: an open one would show old rows,
    hold back the server's clean-up, and add to the counters that the ledger compares.
    """
    connection = site.admin(arm, server).connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        dialect.get_dialect(connection).enter(connection, site.database)
        connection.info["schema"] = site.database
        yield connection
    finally:
        try:
            connection.close()
        except DBAPIError as error:
            # A server that went away has nothing to roll back, and what it was to serve is void without this.
            if not error.connection_invalidated:
                raise


def read_counters(connection: Connection) -> tuple[dict[str, int], float]:
    """Server counters by name and its uptime in seconds; the content of its cache is kept, too."""
    words = dialect.get_dialect(connection)
    with words.limit_waits(connection, ANSWER_S):
        counters, status, uptime_s = words.counters(connection)
    # After the reading: the books of a cluster are waited for, and its uptime is that of the wait's end.
    server_drift.keep_reading(connection, status, uptime_s, time.monotonic())
    messages = {key: str(status.get(name, "")) for key, name in OF_CACHE.items()}
    is_told = all(map(str.isdigit, messages.values()))
    connection.info["cache"] = {key: int(value) for key, value in messages.items()} if is_told else None
    return counters, uptime_s


def count_rows(connection: Connection, tables: int) -> dict[str, int]:
    """Count the rows of each sysbench table exactly; a table that is missing counts as -1."""
    counted = dict.fromkeys((f"sbtest{number}" for number in range(1, tables + 1)), -1)
    for name in counted.keys() & {*dialect.get_dialect(connection).tables(connection)}:
        counted[name] = int(connection.execute(text(f"SELECT COUNT(*) FROM {name}")).scalar_one())
    return counted


def sample_ids(connection: Connection) -> dict[str, dict[str, int]]:
    """`first` and `last` id of each sysbench table; number of the ids `asked` that are `there`."""
    names = [name for name in dialect.get_dialect(connection).tables(connection) if sysbench.is_table(name)]
    ids = {}
    for name in names:
        first, last = connection.execute(text(f"SELECT MIN(id), MAX(id) FROM {name}")).one()
        first, last = int(first or 0), int(last or 0)
        windows = _sample_windows(first, last, max(1, SAMPLED_WINDOWS // len(names)))
        there = 0
        for low, high in windows:
            query = text(f"SELECT COUNT(*) FROM {name} WHERE id BETWEEN {low} AND {high}")
            there += int(connection.execute(query).scalar_one())
        request = sum(high - low + 1 for low, high in windows)
        ids[name] = {"first": first, "last": last, "asked": request, "there": there}
    return ids


def _sample_windows(first: int, last: int, count: int) -> list[tuple[int, int]]:
    """Windows of ids from the first to the last, evenly apart; all ids if they would overlap."""
    if last - first < count * WINDOW:
        return [(first, last)] if last else []
    step = (last - first + 1 - WINDOW) // max(1, count - 1)
    return [(first + step * number, first + step * number + WINDOW - 1) for number in range(count)]


Record = dict[str, Any]
SETTLED_S, LEFT_S = 5.0, 1.0
SIDES = ("before", "after")
KEPT = ("rows_before", "sample_before", "uptime_before_s", "state")


def begin_session(connection: Connection) -> None:
    """Keep a server's state, once our own sessions that were just closed are in its counters."""
    wait_until_settled(connection, LEFT_S)
    read_counters(connection)
    server_drift.begin_session(connection)


def record_before(connection: Connection, tables: int | None, known_rows: Record | None = None) -> Record:
    """Look at one server before a run.

    Returns `rows_before` (without `tables` a `sample_before`), `foreign_sessions`, `before` with counters,
    `uptime_before_s`, `state`: settings, tables, what went on since the last run, and `cache_before`.
    `known_rows` are rows and sample from before a server was started again: to look at rows would warm it.
    """
    seen_rows = known_rows or rows_of(connection, tables)
    # Our sessions that have just been closed stay in a busy server's list for a moment.
    wait_until_settled(connection, LEFT_S)
    foreign = dialect.get_dialect(connection).foreign_sessions(connection)
    if not server_drift.has_begun(connection):
        begin_session(connection)
    look_before = server_drift.look_before(connection)
    counters, uptime_s = read_counters(connection)
    return {
        "state": look_before | {"between": server_drift.count_between(connection)},
        **seen_rows,
        "foreign_sessions": foreign,
        "before": counters,
        "work_before": server_drift.latest_reading(connection).work,
        "cache_before": connection.info.get("cache"),
        "uptime_before_s": uptime_s,
    }


def rows_of(connection: Connection, tables: int | None, side: str = "before") -> Record:
    """`rows_before`, and a `sample_before` if tables are too large to be counted (None)."""
    counted = count_rows(connection, tables) if tables is not None else None
    return {f"rows_{side}": counted, f"sample_{side}": sample_ids(connection) if tables is None else None}


def record_after(connection: Connection, was: Record, tables: int | None, arrangement: Record) -> Record:
    """Look at one server again once the client's sessions have left it; return its whole record."""
    words, has_event = dialect.get_dialect(connection), "event" in arrangement
    try:
        if has_event:
            # It was ended and started again as planned, so that our session with it is lost.
            kept = {name: connection.info[name] for name in ("held", "schema")}
            connection.invalidate()
            connection.rollback()
            connection.info.update(kept)
            words.enter(connection, kept["schema"])
        wait_until_settled(connection)
        counters, uptime_s = read_counters(connection)
        moment = server_drift.latest_reading(connection)
        record = {
            **_kept_keys(was),
            "state": server_drift.look_after(connection, was["state"], moment),
            "uptime_after_s": uptime_s,
            **rows_of(connection, tables, "after"),
            "foreign_sessions": was["foreign_sessions"] + words.foreign_sessions(connection),
            "server_answers": True,
        }
        if has_event:
            why = "the server was ended, or set otherwise, in the run as planned"
            return record | {"ledger": _broken_off(was, why, False)}
        # A proxy that asks whether the server lives drops its connection before it logs in.
        key, reason = "Aborted_connects", connection.info.get("no_ledger")
        probes = counters[key] - was["before"][key] if arrangement.get("has_probes") else 0
        absent = words.absent(connection)
        if arrangement.get("pools_sessions"):
            why = "the proxy opens a session more when many clients come at once"
            absent = absent | {"Connections": why}
        ledger = {
            "available": reason is None,
            "reason": reason,
            "before": was["before"],
            "after": counters,
            "own_connections": probes + (arrangement.get("load", {}).get("connections") or 0),
            **({"absent": absent} if absent else {}),
        }
        cache = {"before": was.get("cache_before"), "after": connection.info.get("cache")}
        work = {"before": was.get("work_before"), "after": moment.work}
        return record | {"ledger": ledger, "work": work, "cache": cache}
    except Exception as error:
        return record_silence(was, error)


def record_silence(was: Record, error: Exception) -> Record:
    """Record after a run of a server that does not answer any more."""
    return {
        **_kept_keys(was),
        "ledger": _broken_off(was, f"the server does not answer after the run: {type(error).__name__}", True),
        "uptime_after_s": None,
        "rows_after": None,
        "foreign_sessions": was["foreign_sessions"],
        "server_answers": False,
    }


def _broken_off(was: Record, reason: str, is_available: bool) -> Record:
    """Ledger of a server whose counters at the end of the run are not those from its beginning."""
    whole = {"available": is_available, "reason": reason, "before": was["before"]}
    return whole | {"after": None, "own_connections": 0}


def _kept_keys(was: Record) -> Record:
    return {key: was[key] for key in KEPT if key in was}


def merge_records(each: Sequence[Record]) -> Record:
    """Record of the run: of one server its own; of several sums, and each under `servers`."""
    if len(each) == 1:
        return each[0]
    work, cache = (_sum_sides([values.get(key) or {} for values in each]) for key in ("work", "cache"))
    for total in filter(None, cache.values()):
        total["page_bytes"] //= len(each)
    return {
        **each[0],
        "ledger": _merge_ledgers([values["ledger"] for values in each]),
        "work": work,
        "cache": cache,
        "foreign_sessions": sum(values["foreign_sessions"] for values in each),
        "server_answers": all(values["server_answers"] for values in each),
        "servers": list(each),
    }


def _merge_ledgers(books: Sequence[Record]) -> Record:
    """Ledger of several servers: sums, and what is true of one with its number."""
    reasons = [f"server {rank}: {book['reason']}" for rank, book in enumerate(books) if book["reason"]]
    absent = {name: why for book in books for name, why in book.get("absent", {}).items()}
    return {
        "available": all(book["available"] for book in books),
        "reason": "; ".join(reasons) or None,
        **_sum_sides(books),
        "own_connections": sum(book["own_connections"] for book in books),
        **({"absent": absent} if absent else {}),
    }


def merge_arrangements(arms: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Arrangement of all arms that one server had at once, as `record_after` takes it of one arm."""
    if len(arms) == 1:
        return dict(arms[0])
    # Turns have no load beside them, and no arm in turns has several servers (`core.turns`).
    return {name: True for name in ("has_probes", "pools_sessions") if any(arm.get(name) for arm in arms)}


def _sum_sides(each: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int] | None]:
    """Counters before and after of several servers, added up."""
    return {side: _sum_counters([values.get(side) for values in each]) for side in SIDES}


def _sum_counters(counters: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    """Add counters by name; None if a server has none, and without those that a server lacks."""
    measured = [counter for counter in counters if counter is not None]
    if len(measured) < len(counters):
        return None
    names = [name for name in measured[0] if all(name in values for values in measured)]
    return {name: sum(values[name] for values in measured) for name in names}


def wait_until_settled(connection: Connection, wait_s: float = SETTLED_S) -> None:
    """Wait until the client's sessions have left the server, so that counters stand still."""
    words, deadline = dialect.get_dialect(connection), time.monotonic() + wait_s
    with words.limit_waits(connection, ANSWER_S):
        while words.foreign_sessions(connection) and time.monotonic() < deadline:
            time.sleep(0.01)
