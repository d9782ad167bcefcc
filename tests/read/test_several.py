"""Several clients and servers of one run: each is named, and all of them are of one moment."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.read import checks_machine, validity
from benchbook.read.evidence import Evidence, Excused, Missing

LIMITS: Any = SimpleNamespace(start_spread_ms=50.0, client_wait=0.05)


def beginning(told: list[dict[str, Any]], spread: float = 10.0, clients: int = 2) -> list[str]:
    seen = {"clients": told, "start_spread_ms": spread}
    setting = {"clients": clients, "servers": 2}
    return [*validity.check_beginning(Evidence({"arm_setting": setting}, seen, "", None), LIMITS)]


def test_all_clients_of_a_plan_run_on_their_servers_and_begin_at_one_moment():
    two = [{"server": 0}, {"server": 1}]
    assert beginning(two) == [] and beginning(two, spread=50.0) == []
    assert len(beginning(two, spread=50.4)) == 1
    assert beginning(two[:1]) == ["1 clients ran, 2 asked"]
    assert beginning([{"server": 1}, {"server": 1}]) == ["client 0 used server 1, not 0"]
    # Three clients of two servers take them in turn.
    assert beginning([*two, {"server": 0}], clients=3) == []
    assert beginning([], clients=1) == [], "one client begins with itself"
    assert beginning(two, clients=1) == ["2 clients ran, 1 asked"]
    with pytest.raises(Missing):
        list(validity.check_beginning(Evidence({}, {}, "", None), LIMITS))


def client(waited: float | None, total_s: float | None = 5.0) -> Any:
    """A client of two threads."""
    final = None if total_s is None else SimpleNamespace(total_time_s=total_s)
    return SimpleNamespace(
        observed={"runqueue_wait_s": waited}, log=SimpleNamespace(final=final), plan_value=lambda _: 2
    )


def test_each_of_several_clients_gets_the_cores_it_asks_for(monkeypatch: pytest.MonkeyPatch):
    """Two threads for 5 s may wait for 0.05 of 10 s."""
    monkeypatch.setattr(checks_machine, "check_client", lambda run, limits: [])
    run: Any = SimpleNamespace(clients=[client(0.5), client(0.6), client(None), client(9.0, None)])
    (said,) = validity.check_client(run, LIMITS)
    assert said.startswith("client 1: ") and re.findall(r"0\.\d+", said) == ["0.06", "0.05"]
    run.clients = [client(0.6)]
    assert [*validity.check_client(run, LIMITS)] == [], "what one client waited is that of the run"
    monkeypatch.setattr(checks_machine, "check_client", lambda run, limits: ["all of them waited"])
    assert [*validity.check_client(run, LIMITS)] == ["all of them waited"]


def each(*found: list[str | Exception] | Exception) -> tuple[bool | None, str]:
    """Check clients that come out so; return whether they passed, and what is said of them."""

    def check(view: Any, limits: Any) -> Iterator[str]:
        for one in view if isinstance(view, list) else [view]:
            if isinstance(one, Exception):
                raise one
            yield one

    run: Any = SimpleNamespace(clients=found)
    made = validity._run_check(run, LIMITS, "V1", "exit code", check)
    assert made.is_excused == (made.passed is None and not any(isinstance(one, Missing) for one in found))
    return made.passed, made.detail


def test_faults_of_each_are_named_with_what_is_missing_beside_them():
    assert each([], []) == (True, "")
    assert each(["exit code 1"]) == (False, "exit code 1")
    assert each([], ["exit code 1", "late"]) == (False, "client 1: exit code 1; client 1: late")
    assert each(Missing("log"), ["late"]) == (False, "client 1: late; client 0: log")


@pytest.mark.parametrize("gap", [Missing("no clock"), Excused("none here")])
def test_what_was_found_before_a_gap_is_not_forgotten(gap: Exception):
    said = "late" if isinstance(gap, Excused) else f"late; {gap}"
    assert each(["late", gap]) == (False, said)


def test_what_is_missing_of_one_is_missing_and_an_excuse_is_told_once():
    missing = each([], Missing("log"), Missing("clock"), Excused("not here"))
    assert missing == (None, "client 1: log; client 2: clock")
    excused = each(Excused("not here"), Excused("not here"), Excused("nor there"), [])
    assert excused == (None, "not here; nor there")
    assert each(Excused("not here"), ["late"]) == (False, "client 1: late")
