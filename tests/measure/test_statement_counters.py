"""The server's own books, read without adding to what is compared."""

from typing import Any

import pytest

from benchbook.measure import statement_counters
from benchbook.sites.engines import dialect

pytestmark = pytest.mark.server


@pytest.fixture
def up(site: Any) -> Any:
    site.up("direct")
    return site


def test_counters_grow_by_the_statements_between_two_readings(up: Any):
    with statement_counters.open_session(up) as mine, statement_counters.open_session(up) as other:
        before, uptime = statement_counters.read_counters(mine)
        for _ in range(7):
            other.exec_driver_sql("SELECT 1").all()
        other.exec_driver_sql("UPDATE sbtest1 SET k = k + 1 WHERE id = 1")
        after, later = statement_counters.read_counters(mine)
    grown = {name: after[name] - before[name] for name in after}
    assert (grown["Com_select"], grown["Com_update"], grown["Connections"]) == (7, 1, 0)
    assert (grown["Com_begin"], grown["Com_commit"]) == (0, 0), "every statement is its own transaction"
    assert 0 <= later - uptime <= 60


def test_two_readings_with_nothing_between_agree(up: Any):
    with statement_counters.open_session(up) as mine:
        before, _ = statement_counters.read_counters(mine)
        dialect.get_dialect(mine).foreign_sessions(mine)
        after, _ = statement_counters.read_counters(mine)
    compared = [name for name in before if name.startswith("Com_") or name == "Connections"]
    assert len(compared) >= 10
    assert [name for name in compared if before[name] != after[name]] == []


def test_sessions_of_others_are_counted(up: Any):
    with statement_counters.open_session(up) as mine:
        assert dialect.get_dialect(mine).foreign_sessions(mine) == 0
        with statement_counters.open_session(up), statement_counters.open_session(up):
            assert dialect.get_dialect(mine).foreign_sessions(mine) == 2


def test_a_session_sees_what_others_have_just_written(up: Any):
    with statement_counters.open_session(up) as mine, statement_counters.open_session(up) as other:
        assert statement_counters.count_rows(mine, 3) == {"sbtest1": 200, "sbtest2": 200, "sbtest3": -1}
        other.exec_driver_sql("DELETE FROM sbtest2 WHERE id <= 50")
        assert statement_counters.count_rows(mine, 2) == {"sbtest1": 200, "sbtest2": 150}
    up.restore()


def test_a_session_without_encryption_has_no_cipher(up: Any):
    with statement_counters.open_session(up) as mine:
        assert dialect.get_dialect(mine).cipher(mine) == ""


def test_a_sample_sees_a_table_that_was_cut_and_rows_that_are_gone(up: Any, monkeypatch: pytest.MonkeyPatch):
    """Two tables of 200 rows share 8 windows of 10 ids: four each, 40 rows looked for."""
    monkeypatch.setattr(statement_counters, "SAMPLED_WINDOWS", 8)
    monkeypatch.setattr(statement_counters, "WINDOW", 10)
    whole = {"first": 1, "last": 200, "asked": 40, "there": 40}
    with statement_counters.open_session(up) as mine, statement_counters.open_session(up) as other:
        assert statement_counters.sample_ids(mine) == {"sbtest1": whole, "sbtest2": whole}
        other.exec_driver_sql("DELETE FROM sbtest1 WHERE id > 100")
        other.exec_driver_sql("DELETE FROM sbtest2 WHERE id BETWEEN 5 AND 8")
        found = statement_counters.sample_ids(mine)
    assert found["sbtest1"]["last"] == 100
    # The first window is 1 to 10.
    assert found["sbtest2"] == whole | {"there": 36}
    up.restore()
