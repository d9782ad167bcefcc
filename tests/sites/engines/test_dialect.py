"""What is asked of a server of MySQL's family, and how old TiDB's answers are read."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.measure import preflight, server_drift
from benchbook.sites.engines.dialect import Dialect
from benchbook.sites.tidb import data, status
from tests.plan.test_schedule import make

LIMITS = [("max_connections", "151"), ("max_user_connections", "0"), ("max_prepared_stmt_count", "-1")]


class Answers:
    """A connection, or a cursor, that answers each statement by the first pattern that it matches."""

    def __init__(self, **said: Any) -> None:
        self.said, self.asked, self.rows, self.info = said, list[str](), list[Any](), dict[str, Any]()

    def execute(self, statement: Any, *given: Any) -> Any:
        self.asked.append(str(statement))
        answers = (said for word, said in self.said.items() if re.search(word, str(statement)))
        answer = next(answers)
        if isinstance(answer, int):
            return answer
        return SimpleNamespace(all=lambda: answer, scalar_one=lambda: answer)

    def fetchall(self) -> list[Any]:
        return self.rows


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("5.7.25-TiDB-v3.0.1", False),
        ("5.7.25-TiDB-v5.0.6", False),
        ("5.7.25-TiDB-v6.2.0", True),
        ("8.0.11-TiDB-v8.0.0", True),
        ("10.11.6-MariaDB-0+deb12u1", True),
    ],
)
def test_a_limit_of_connections_that_old_tidb_tells_and_does_not_hold_is_none(version: str, told: bool):
    server: Any = Answers(SHOW=LIMITS, VERSION=version, read_only="0")
    assert ("max_connections" in Dialect().limits(server, [name for name, _ in LIMITS])) is told
    found = preflight.check_server(make(threads=(1500,)), server)
    assert [one.split()[0] for one in found] == (["max_connections"] if told else [])


@pytest.mark.parametrize(
    ("said", "is_so"), [(0, False), ("0", False), ("OFF", False), (1, True), ("1", True), ("ON", True)]
)
def test_a_server_is_read_only_by_a_number_or_by_its_text(said: Any, is_so: bool):
    server: Any = Answers(read_only="")
    server.execute = lambda _: SimpleNamespace(scalar_one=lambda: said)
    assert Dialect().is_read_only(server) is is_so


def test_connections_that_a_version_does_not_count_are_said_to_be_absent():
    """TiDB before July 2020 has no metric of connections that end; all else of its books is held."""
    server: Any = SimpleNamespace(info={"absent": status.ABSENT, "uncounted": status.UNCOUNTED})
    new = {"Com_update": 5, "Connections": 7, "Aborted_connects": 0}
    server_drift.keep_reading(server, new, 10.0, 0.0)
    assert Dialect().absent(server).keys() == {"Rows_sent"}
    old = {name: count for name, count in new.items() if name != "Connections"}
    was = server_drift.keep_reading(server, old, 10.0, 0.0)
    assert Dialect().absent(server).keys() == {"Rows_sent", "Connections"}
    server.info |= {"held": SimpleNamespace(moment=was), "opened": lambda: 3}
    server_drift.keep_reading(server, old | {"Com_update": 9}, 12.0, 2.0)
    found = server_drift.count_between(server)
    assert found["connections"] is None and found["counters"] == {"Com_update": 4}


@pytest.mark.parametrize(("columns", "column"), [(1, "authentication_string"), (0, "Password")])
def test_accounts_without_a_password_are_looked_for_in_the_column_that_a_version_has(columns, column):
    cursor: Any = Answers(SHOW=columns, SELECT=0)
    data.must_be_closed(cursor)
    assert re.search(rf"mysql\.user WHERE {column} = ''$", cursor.asked[-1])
