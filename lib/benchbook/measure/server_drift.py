"""State of a server between two runs: its settings, its tables, and its counters meanwhile.

All looks are made outside the ledger's two readings. What was found when a server was first seen is kept with
its engine, so that it is held to it over all blocks; counters are held from the end of one run to the start
of the next one, over one session.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine

from benchbook.core.artifacts.run_folder import Between
from benchbook.core.study import descriptors
from benchbook.sites import settings
from benchbook.sites.engines import dialect

Record = dict[str, Any]
Items = dict[str, str]

MOST_ITEMS, MOST_LETTERS = 40, 200
"""How many differing items a run keeps, and how much of each value."""

# Variables that move by themselves, or differ from session to session, beside those that engines name.
MOVING = settings.VOLATILE | {"gtid_executed", "gtid_purged", "pseudo_slave_mode"}
MOVING_ENDS = ("_ts", "_now", "_status")

# What clients count, without what our own looks and the first words of each session of its own add to.
COUNTED = re.compile(
    r"Com_(?!show|(admin_commands|begin|change_db|checksum|commit|ping|rollback|select|set_option)$)"
)
# Items that the study's tables are made of; all else at them is a stranger's.
ASKED = re.compile(
    r"(column sbtest\d+\.(id|k|c|pad)|index sbtest\d+\.(PRIMARY|k_\d+|sbtest\d+_pkey)"
    r"|constraint sbtest\d+\.sbtest\d+_(pkey|\w+_not_null))$"
)
OF_TABLES = re.compile(r"(column|index|trigger|rule|constraint) sbtest\d+\.")
AT_WORK = re.compile(r"(event|event trigger|settings of|publication) ")
"""Items of a whole server that do work, or set something, for every session."""
TOLD = (
    *("Affected_rows", "Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted"),
    *("Connections", "Aborted_connects"),
)


@dataclass(frozen=True)
class ServerSnapshot:
    """Settings and definitions of a server by item, reasons for unreadable ones, foreign items."""

    settings: Items
    tables: Items
    lacking: dict[str, str]
    unasked: dict[str, Items]


@dataclass(frozen=True)
class CounterReading:
    """Reading of a server's counters that our looks don't move, its time, the number of connections that this
    process had opened by then, and its `work` for statements, which no check holds against anything."""

    counters: dict[str, int]
    uptime_s: float
    at_s: float
    own_connections: int | None
    work: dict[str, int]


@dataclass
class Baseline:
    """State that one session keeps from look to look."""

    moment: CounterReading
    written: Items
    look: ServerSnapshot
    identities: dict[str, Record] = field(default_factory=dict)


_FIRST: WeakKeyDictionary[Engine, ServerSnapshot] = WeakKeyDictionary()


def begin_session(connection: Connection) -> None:
    """Keep a server's state at the begin of a session; the ledger must have been read just before."""
    look, written = take_snapshot(connection), dialect.get_dialect(connection).written(connection)
    _FIRST.setdefault(connection.engine, look)
    connection.info["held"] = Baseline(latest_reading(connection), written, look)


def has_begun(connection: Connection) -> bool:
    """True if a session keeps its server's first state."""
    return "held" in connection.info


def look_before(connection: Connection) -> Record:
    """Look before a run: digests of settings and tables at the start and now, with differences."""
    held: Baseline = connection.info["held"]
    first, now = _FIRST[connection.engine], take_snapshot(connection)
    written = dialect.get_dialect(connection).written(connection)
    results = {
        kind: {
            "at_start": digest_items(getattr(first, kind)),
            "before": digest_items(getattr(now, kind)),
            "changed_between": diff_items(getattr(first, kind), getattr(now, kind)),
        }
        for kind in ("settings", "tables")
    }
    held.look = now
    lacking = first.lacking | now.lacking
    since = diff_items(held.written, written) if held.written and written else {}
    return results | {"unasked": first.unasked, "written_between": since, "not_held": lacking}


def count_between(connection: Connection) -> Record:
    """Server counts since the last run's end; call right after the ledger's reading before a run."""
    held: Baseline = connection.info["held"]
    was, now = held.moment, latest_reading(connection)
    names = [name for name in was.counters if name in now.counters]
    grown = {name: now.counters[name] - was.counters[name] for name in names}
    before, after = was.own_connections, now.own_connections
    opened = None if before is None or after is None else after - before
    reason = connection.info.get("no_ledger")
    if reason is None and opened is None:
        reason = "how many connections are our own is not counted on this site"
    elif reason is None and "Connections" not in now.counters:
        reason = dialect.get_dialect(connection).absent(connection).get("Connections")
    between = Between(
        seconds=round(now.at_s - was.at_s, 3),
        uptime_s=now.uptime_s - was.uptime_s,
        connections=grown.pop("Connections", None),
        own=opened,
        refused=grown.pop("Aborted_connects", 0),
        counters={name: count for name, count in sorted(grown.items()) if count},
        not_held={} if reason is None else {"connections": reason},
        is_shared="no_ledger" in connection.info,
    )
    return {**vars(between)}


def look_after(connection: Connection, was: Record, moment: CounterReading) -> Record:
    """Look after a run and add to the look before; `moment` is the ledger's reading after the run."""
    held: Baseline = connection.info["held"]
    now, after = take_snapshot(connection), dict(was)
    for kind in ("settings", "tables"):
        items = getattr(now, kind)
        changed = diff_items(getattr(held.look, kind), items)
        after[kind] = was[kind] | {"after": digest_items(items), "changed_in_run": changed}
    held.moment, held.look, held.written = moment, now, dialect.get_dialect(connection).written(connection)
    return after


def arm_at_start(connection: Connection, arm: str, identity: Record) -> Record:
    """State of an arm's parts at the begin of its session; kept from the first call on."""
    held: Baseline | None = connection.info.get("held")
    return identity if held is None else held.identities.setdefault(arm, identity)


def keep_reading(
    connection: Connection, status: Mapping[str, Any], uptime_s: float, at_s: float
) -> CounterReading:
    """Keep a reading of the server's counters for `between`, those that our own looks don't move."""
    count_opened = connection.info.get("opened")
    counts = {name: int(value) for name, value in status.items() if str(value).isdigit()}
    kept = {name: count for name, count in counts.items() if name in TOLD or COUNTED.match(name)}
    work = {name: counts[name] for name in dialect.WORK if name in counts}
    reading = CounterReading(kept, uptime_s, at_s, count_opened() if count_opened else None, work)
    connection.info["moment"] = reading
    return reading


def latest_reading(connection: Connection) -> CounterReading:
    """Last reading over a connection."""
    return connection.info["moment"]


def take_snapshot(connection: Connection) -> ServerSnapshot:
    """Read settings and definitions; any that engine or account lacks is named with its error."""
    words = dialect.get_dialect(connection)
    moving = MOVING.union(*(engine.moving for engine in descriptors.load_engines().values()))
    read = words.variables(connection).items()
    variables = {name: value for name, value in read if name not in moving and not name.endswith(MOVING_ENDS)}
    tables, lacking = words.definitions(connection)
    is_ours = not connection.info.get("is_theirs")
    unasked = {"tables": foreign_items(tables, is_ours)}
    if is_ours:
        unasked["settings"] = words.set_by_hand(connection)
    return ServerSnapshot(variables, tables, lacking, unasked)


def foreign_items(tables: Mapping[str, str], is_ours: bool = True) -> Items:
    """Foreign objects at the measured tables, and on our own servers objects that work for all."""
    return {
        name: _truncate_value(what) or ""
        for name, what in tables.items()
        if (OF_TABLES.match(name) and not ASKED.match(name)) or (is_ours and AT_WORK.match(name))
    }


def diff_items(was: Mapping[str, str], now: Mapping[str, str]) -> dict[str, list[str | None]]:
    """{item: [was, is]} of the differences, None for an absent one; at most MOST_ITEMS."""
    names = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
    return {name: [_truncate_value(items.get(name)) for items in (was, now)] for name in names[:MOST_ITEMS]}


def _truncate_value(value: str | None) -> str | None:
    return value if value is None or len(value) <= MOST_LETTERS else value[:MOST_LETTERS] + " …"


def digest_items(items: Mapping[str, str]) -> str:
    """SHA-256 of items, in any order."""
    return hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()
