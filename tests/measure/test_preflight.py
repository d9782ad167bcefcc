"""What is refused before the first run, from any notebook too; limits of a server are in tests/faults."""

from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.measure import preflight
from tests.goldens import assert_golden
from tests.plan.test_schedule import make


def test_a_twin_that_would_mislead_is_refused_however_measuring_begins():
    arms = {"a": {"engine": {"version": "5.0"}}, "b": {"engine": {"version": "6.6"}}}
    study = make(arms=arms, engine={"name": "tidb"}, aa={"threads": (4,)}, plan={"order": None})
    (told,) = preflight.check_machine(study, {}, {})
    assert told.startswith("aa.threads: [4]: ") and "write aa: {}" in told


@pytest.mark.parametrize(("spare", "is_told"), [(0, False), (-1, True), (None, False)])
def test_each_connection_is_an_open_file_and_64_are_our_own(monkeypatch, spare, is_told):
    study = make()
    least = study.sessions + 64
    allowed = preflight.resource.RLIM_INFINITY if spare is None else least + spare
    monkeypatch.setattr(preflight.resource, "getrlimit", lambda _: (allowed, allowed))
    due = (
        f"{allowed} open files are allowed, {study.sessions} connections need {least}; "
        "run `ulimit -n 65536` first, or measure fewer threads"
    )
    assert preflight.check_machine(study, {}, {}) == ([due] if is_told else [])


@pytest.mark.parametrize(("less", "is_told"), [(0, False), (1, True)])
def test_room_is_looked_for_where_something_will_be_written(monkeypatch, tmp_path, less, is_told):
    monkeypatch.setattr(preflight, "free_bytes", lambda _: 100 * 1024 * 1024 - less)
    folder = tmp_path / "raw"
    due = f"{folder}: 99 MiB are free for raw, 100 are needed (limits.free_mib); free some space"
    assert preflight.check_machine(make(), {"raw": folder}, {"free_mib": 100}) == ([due] if is_told else [])


def limited(is_read_only: bool = False, **allowed: int) -> Any:
    """A server with these limits, as far as it is asked."""
    words = SimpleNamespace(
        limits=lambda _, names: {name: allowed[name] for name in names if name in allowed},
        is_read_only=lambda _: is_read_only,
    )
    return SimpleNamespace(info={"dialect": words})


def test_a_servers_limits_hold_what_the_most_threads_ask_for_and_it_takes_writes():
    """Sessions, ten of our own; statements: nine for each table, and BEGIN and COMMIT, of each session."""
    study = make()
    most, tables = study.sessions, study.dataset.tables
    least = {"max_connections": most + 10, "max_user_connections": most}
    least["max_prepared_stmt_count"] = most * (tables * 9 + 2)
    assert preflight.check_server(study, limited(**least)) == []
    told = preflight.check_server(
        study, limited(is_read_only=True, **{name: value - 1 for name, value in least.items()})
    )
    assert_golden("measure/server-limits.txt", "\n".join([*told, ""]))


@pytest.mark.parametrize(("none", "told"), [(0, ["max_prepared_stmt_count"]), (-1, [])])
def test_no_limit_is_written_as_nought_or_less_but_no_statements_are_none(none: int, told: list[str]):
    names = ("max_connections", "max_user_connections", "max_prepared_stmt_count")
    found = preflight.check_server(make(), limited(**dict.fromkeys(names, none)))
    assert [text.partition(" ")[0] for text in found] == told
