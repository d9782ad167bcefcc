"""What a session keeps of a server from look to look, and which of it counts as a stranger's."""

import contextlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.study import descriptors
from benchbook.measure import server_drift, statement_counters
from benchbook.sites.descriptors import mariadb

STATUS = {
    "Com_insert": "5",
    "Com_select": "100",
    "Com_show_status": "7",
    "Connections": "12",
    "Aborted_connects": "1",
    "Affected_rows": "30",
    "Innodb_rows_updated": "4",
    "Com_stmt_execute": "many",
    "Handler_read_key": "60",
    "Uptime": "9",
}


def keeping(**info: Any) -> Any:
    """A connection as far as it keeps things: `info` is all of it that is asked."""
    return SimpleNamespace(info=info)


def test_a_moment_keeps_what_our_own_looks_do_not_move_and_the_work_apart():
    connection = keeping(opened=lambda: 3)
    found = server_drift.keep_reading(connection, STATUS, 9.0, 100.0)
    counted = {"Com_insert": 5, "Connections": 12, "Aborted_connects": 1, "Affected_rows": 30}
    assert found.counters == counted | {"Innodb_rows_updated": 4}
    assert found.work == {"Handler_read_key": 60}
    assert (found.uptime_s, found.at_s, found.own_connections) == (9.0, 100.0, 3)
    assert connection.info["moment"] is found
    assert server_drift.keep_reading(keeping(), STATUS, 9.0, 100.0).own_connections is None


def test_the_time_of_a_reading_is_that_of_its_uptime_however_long_the_books_were_waited_for(monkeypatch):
    """Taken before the wait, it made a server that was asked too early one that was started again (V14)."""
    now, waits = [100.0], [2.0, 0.0]

    def read(connection: Any) -> tuple[dict[str, int], dict[str, str], float]:
        now[0] += waits.pop(0)
        return {}, {}, now[0] - 90.0

    monkeypatch.setattr(statement_counters, "time", SimpleNamespace(monotonic=lambda: now[0]))
    words = SimpleNamespace(counters=read, limit_waits=lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(statement_counters.dialect, "get_dialect", lambda connection: words)
    connection = keeping()
    statement_counters.read_counters(connection)
    connection.info["held"] = server_drift.Baseline(
        server_drift.latest_reading(connection), {}, server_drift.ServerSnapshot({}, {}, {}, {})
    )
    now[0] += 5.0
    statement_counters.read_counters(connection)
    found = server_drift.count_between(connection)
    assert (found["seconds"], found["uptime_s"]) == (5.0, 5.0)


def at(connection: Any, uptime_s: float, at_s: float, **counters: int) -> server_drift.CounterReading:
    names = {name: str(value) for name, value in counters.items()}
    return server_drift.keep_reading(connection, names, uptime_s, at_s)


def test_between_two_runs_only_what_grew_is_kept_and_connections_apart():
    connection = keeping(opened=iter([2, 5]).__next__)
    was = at(connection, 10.0, 100.0, Com_insert=5, Com_update=1, Connections=9, Aborted_connects=2)
    connection.info["held"] = server_drift.Baseline(was, {}, server_drift.ServerSnapshot({}, {}, {}, {}))
    at(connection, 14.0, 104.0004, Com_insert=8, Com_update=1, Connections=13, Aborted_connects=3)
    due = {"seconds": 4.0, "uptime_s": 4.0, "connections": 4, "own": 3, "refused": 1}
    due |= {"counters": {"Com_insert": 3}, "not_held": {}, "is_shared": False}
    assert server_drift.count_between(connection) == due


@pytest.mark.parametrize(
    ("info", "is_shared", "reason"),
    [
        ({}, False, "how many connections are our own is not counted on this site"),
        ({"no_ledger": "others use it"}, True, "others use it"),
    ],
)
def test_what_is_not_counted_between_two_runs_is_named(info: dict[str, Any], is_shared: bool, reason: str):
    connection = keeping(**info)
    was = at(connection, 10.0, 100.0, Connections=9)
    connection.info["held"] = server_drift.Baseline(was, {}, server_drift.ServerSnapshot({}, {}, {}, {}))
    at(connection, 10.0, 100.0, Connections=9)
    found = server_drift.count_between(connection)
    assert (found["not_held"], found["is_shared"]) == ({"connections": reason}, is_shared)


def test_changes_are_what_is_other_new_or_gone_in_order_forty_at_most_and_short():
    was, now = {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "x" * 201}
    due = {"b": ["2", "9"], "c": ["3", None], "d": [None, "x" * 200 + " …"]}
    assert server_drift.diff_items(was, now) == due
    assert server_drift.diff_items({}, {"d": "x" * 200}) == {"d": [None, "x" * 200]}
    many = {f"{number:03}": "1" for number in range(50)}
    assert list(server_drift.diff_items({}, many)) == sorted(many)[:40]


def test_a_digest_is_of_the_items_whatever_their_order():
    # printf '{"a": "1", "b": "2"}' | sha256sum
    due = "0e09eeab5bdeab40e2af08a4432d53de29fc2ba94dfa38fae0871d749681cf68"
    one = server_drift.digest_items({"a": "1", "b": "2"})
    other = server_drift.digest_items({"b": "2", "a": "1"})
    assert one == other == due
    assert server_drift.digest_items({"a": "2", "b": "1"}) != due


ASKED = {
    "table sbtest1": "BASE TABLE, InnoDB",
    "column sbtest1.id": "1, int",
    "column sbtest12.pad": "4, char(60)",
    "index sbtest1.PRIMARY": "1, id",
    "index sbtest12.k_12": "1, k",
    "index sbtest1.sbtest1_pkey": "unique",
    "constraint sbtest1.sbtest1_pkey": "PRIMARY KEY (id)",
    "constraint sbtest1.sbtest1_id_not_null": "NOT NULL id",
    "index own.more": "1, pad",
}


def test_a_strangers_items_at_the_measured_tables_are_told_from_ours():
    assert server_drift.foreign_items(ASKED) == {}
    made = {
        "trigger sbtest1.slow": "BEFORE",
        "index sbtest1.k_1_more": "1, pad",
        "column sbtest12.pad2": "5, int",
        "constraint sbtest1.more": "CHECK (k > 0)",
        "rule sbtest1.also": "DO ALSO",
    }
    assert server_drift.foreign_items(ASKED | made) == made


def test_what_works_for_a_whole_server_is_a_strangers_on_our_own_server_alone():
    made = {"event mysql.burn": "ENABLED", "settings of all databases.sbtest": "{work_mem=1}"}
    assert server_drift.foreign_items(ASKED | made) == made
    assert server_drift.foreign_items(ASKED | made, is_ours=False) == {}


class Words:
    """An engine's words, and the engine: what it is is whatever it was told to be."""

    def __init__(self) -> None:
        self.settings = {"cache": "8M", "log_ts": "1", "Ssl_status": "x"}
        self.tables = {"table own": "InnoDB"}
        self.counted, self.lacking = {"own": "5"}, {"events": "no right"}
        self.looks = 0

    def variables(self, connection: Any) -> dict[str, str]:
        # What moves by itself on one engine, on another, and in each session.
        moving = ("timestamp", "warning_count", "tidb_last_query_info", "gtid_executed")
        self.looks += 1
        return self.settings | dict.fromkeys(moving, str(self.looks))

    def definitions(self, connection: Any) -> tuple[dict[str, str], dict[str, str]]:
        return dict(self.tables), dict(self.lacking)

    def set_by_hand(self, connection: Any) -> dict[str, str]:
        return {"cache": "8M"}

    def written(self, connection: Any) -> dict[str, str]:
        return dict(self.counted)

    def absent(self, connection: Any) -> dict[str, str]:
        return {"Connections": "not counted here"}


def looked_at(**info: Any) -> tuple[Any, Words]:
    """A session with a server that has just begun."""
    words = Words()
    connection = SimpleNamespace(info={"dialect": words, **info}, engine=words)
    at(connection, 1.0, 1.0)
    server_drift.begin_session(connection)
    return connection, words


def test_a_run_is_told_what_changed_since_the_start_and_what_while_it_went_on():
    connection, words = looked_at()
    words.settings |= {"cache": "16M", "log_ts": "2"}
    words.tables |= {"trigger sbtest1.slow": "BEFORE"}
    words.counted = {"own": "7"}
    found = server_drift.look_before(connection)
    assert found["settings"]["changed_between"] == {"cache": ["8M", "16M"]}
    assert found["settings"]["at_start"] == server_drift.digest_items({"cache": "8M"})
    assert found["settings"]["before"] == server_drift.digest_items({"cache": "16M"})
    assert found["tables"]["changed_between"] == {"trigger sbtest1.slow": [None, "BEFORE"]}
    # What is a stranger's was that when the server was first seen; what came later has changed.
    assert found["unasked"] == {"tables": {}, "settings": {"cache": "8M"}}
    assert (found["written_between"], found["not_held"]) == ({"own": ["5", "7"]}, {"events": "no right"})
    words.settings |= {"cache": "32M"}
    now = at(connection, 2.0, 2.0)
    ended = server_drift.look_after(connection, found, now)
    # Held against the look before the run; what had changed by then is kept beside it.
    assert ended["settings"]["changed_in_run"] == {"cache": ["16M", "32M"]}
    assert ended["settings"]["changed_between"] == {"cache": ["8M", "16M"]}
    assert ended["tables"]["changed_in_run"] == {}
    assert ended["tables"]["after"] == found["tables"]["before"]
    assert connection.info["held"].moment is now
    # The next run is held against the first look again, and against what was written by the end of this one.
    again = server_drift.look_before(connection)
    assert again["settings"]["changed_between"] == {"cache": ["8M", "32M"]}
    assert again["written_between"] == {}


def test_a_second_session_holds_a_server_to_what_it_was_in_the_first():
    connection, words = looked_at()
    words.settings["cache"] = "16M"
    server_drift.begin_session(connection)
    assert server_drift.look_before(connection)["settings"]["changed_between"] == {"cache": ["8M", "16M"]}


def test_where_an_engine_does_not_count_writes_or_connections_that_is_no_change():
    connection, words = looked_at(opened=lambda: 2)
    words.counted = {}
    assert server_drift.look_before(connection)["written_between"] == {}
    at(connection, 1.0, 1.0)
    found = server_drift.count_between(connection)
    assert (found["connections"], found["not_held"]) == (None, {"connections": "not counted here"})


def test_a_server_of_somebody_else_has_its_settings_set_by_hand_and_that_is_not_ours_to_tell():
    connection, _ = looked_at(is_theirs=True)
    assert server_drift.look_before(connection)["unasked"] == {"tables": {}}


def test_what_an_arm_was_is_kept_from_the_first_call_on():
    connection, _ = looked_at()
    assert server_drift.arm_at_start(connection, "direct", {"pid": 1}) == {"pid": 1}
    assert server_drift.arm_at_start(connection, "direct", {"pid": 2}) == {"pid": 1}
    assert server_drift.has_begun(connection) and not server_drift.has_begun(keeping())
    assert server_drift.arm_at_start(keeping(), "direct", {"pid": 2}) == {"pid": 2}


def test_what_any_engine_says_moves_by_itself_is_not_held(monkeypatch: pytest.MonkeyPatch):
    clocked = replace(mariadb.TRAITS, name="clocked", moving=frozenset({"clocked_at"}))
    monkeypatch.setattr(descriptors, "load_engines", lambda: {"clocked": clocked})
    moving = ("clocked_at", "timestamp", "gtid_executed", "clocked_ts")
    said = {"max_connections": "9"} | dict.fromkeys(moving, "7")
    words = SimpleNamespace(
        variables=lambda _: said, definitions=lambda _: ({}, {}), set_by_hand=lambda _: {}
    )
    assert server_drift.take_snapshot(keeping(dialect=words)).settings == {"max_connections": "9"}
