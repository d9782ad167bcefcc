"""What is held of a script of the user's own, of which only the pilots tell a rule."""

from typing import Any

import pytest

from benchbook.read import checks_custom_scripts

# 3 reads, a write and 2 others an event; a read with which each of 4 threads begins.
RULE = {"event": {"reads": 3, "writes": 1, "other": 2}, "thread": {"reads": 1, "writes": 0, "other": 0}}


class Run:
    """A run of 4 threads and 100 events, and what the server counted of it."""

    def __init__(self, plan: dict[str, Any] | None = None, **changed: int) -> None:
        # 304, 100 and 200 statements; MariaDB counts the end of each connection too.
        told = {"reads": 304, "writes": 100, "other": 200, "total": 604, "events": 100, "ignored_errors": 0}
        counted = {"Connections": 4, "Com_select": 304, "Statements": 608, "Rows_sent": 304}
        self.told = {name: changed.get(name, value) for name, value in told.items()}
        self.counted = {name: changed.get(name, value) for name, value in counted.items()}
        self.own = changed.get("own_connections", 0)
        self.plan = {"script": "mine.lua", "threads": 4, "own": {"statements": RULE}} | (plan or {})
        self.total, self.grown, self.plan_value = self.told.get, self.counted.get, self.plan.__getitem__

    def get(self, name: str) -> Any:
        return {"ledger": {"own_connections": self.own}, "script": {"mine.lua": "a" * 64}}[name]


def run(plan: dict[str, Any] | None = None, **changed: int) -> Any:
    return Run(plan, **changed)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"reads": 303}, ["303 reads in 100 events, 3 each and 4 first in the pilots"]),
        ({"reads": 305}, ["305 reads in 100 events, 3 each and 4 first in the pilots"]),
        ({"other": 201}, ["201 other in 100 events, 2 each and 0 first in the pilots"]),
        # An event that failed was begun once more: up to 3 reads, a write and 2 others more.
        ({"reads": 307, "writes": 101, "other": 202, "ignored_errors": 1}, []),
        ({"reads": 308, "ignored_errors": 1}, ["308 reads in 100 events, 3 each and 4 first in the pilots"]),
        ({"total": 0}, ["the script made no statement that sysbench counts"]),
    ],
)
def test_events_consist_of_what_the_pilots_showed(changed: dict[str, int], said: list[str]):
    assert [*checks_custom_scripts.check_work(run(**changed))] == said


def test_a_mixture_has_no_rule():
    for own in ({}, {"own": {}}, {"own": {"statements": {}}}):
        assert [*checks_custom_scripts.check_work(run({"own": None} | own, reads=1))] == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"Connections": 5}, ["the script makes connections of its own: 5 were made for 4 threads"]),
        ({"Connections": 3}, ["the script makes connections of its own: 3 were made for 4 threads"]),
        ({"Connections": 6, "own_connections": 2}, []),
        ({"Statements": 609}, ["the server was sent 605 statements, sysbench says 604"]),
        ({"Statements": 607}, ["the server was sent 603 statements, sysbench says 604"]),
        # One that failed was sent, and sysbench does not count it.
        ({"Statements": 609, "ignored_errors": 1}, []),
        ({"Statements": 610, "ignored_errors": 1}, ["the server was sent 606 statements, sysbench says 604"]),
        ({"Com_select": 305}, ["Com_select grew by 305, sysbench says 304 reads"]),
        # What sysbench calls a read may be another statement, and one that failed is sent again.
        ({"Com_select": 300}, []),
        ({"Com_select": 305, "ignored_errors": 1}, []),
    ],
)
def test_the_server_counts_as_many_statements_over_a_connection_a_thread(changed, said: list[str]):
    assert [*checks_custom_scripts.check_ledger(run(**changed))] == said


def test_reads_find_rows():
    assert (
        [*checks_custom_scripts.check_hits(run())]
        == []
        == [*checks_custom_scripts.check_hits(run(reads=0, Rows_sent=0))]
    )
    assert [*checks_custom_scripts.check_hits(run(Rows_sent=0))] == ["304 reads found no row"]


def test_files_are_those_of_the_plan():
    def said(files: dict[str, str]) -> list[str]:
        return [*checks_custom_scripts.check_files(run({"own": {"files": files}}))]

    assert said({"mine.lua": "a" * 64}) == []
    assert said({"mine.lua": "b" * 64, "more.lua": "c" * 64}) == [
        "the script's file mine.lua was aaaaaaaaaa, bbbbbbbbbb asked",
        "the script's file more.lua was absent, cccccccccc asked",
    ]
    assert said({}) == ["the script's file mine.lua was aaaaaaaaaa, absent asked"]
    pilot = run()
    del pilot.plan["own"]
    assert [*checks_custom_scripts.check_files(pilot)] == []
    assert [*checks_custom_scripts.check_files(run({"script": "oltp_read_only", "own": {"files": {}}}))] == []
