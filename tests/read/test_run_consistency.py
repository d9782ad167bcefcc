"""What the files of one run say of each other, and one run of the next, on both sides of each tolerance."""

import datetime
import re
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.read import run_consistency
from benchbook.read.evidence import Evidence
from tests.read import synthetic

BEGUN = "2026-01-05T10:00:00.000+00:00"


def at(seconds: float) -> str:
    """Return the moment so many seconds after the run began."""
    return (datetime.datetime.fromisoformat(BEGUN) + datetime.timedelta(seconds=seconds)).isoformat()


def run(changed: dict[str, Any] | None = None) -> Evidence:
    """Return a run of 7 s by all clocks, but for what is changed."""
    told = {"ended_utc": at(7), "machine_cores": 2, **(changed or {})}
    return synthetic.healthy_run(told)


def lasting(seconds: float) -> dict[str, Any]:
    return {"ended_monotonic_s": 100 + seconds, "sysbench_s": seconds, "ended_utc": at(seconds)}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"sysbench_s": 7.0009}, ""),
        ({"sysbench_s": 7.002}, "sysbench_s is 7.002, end less start is 7.000 s"),
        # The clocks are read one after the other, within a quarter of a second.
        ({"ended_utc": at(7.24)}, ""),
        ({"ended_utc": at(7.26)}, "started_utc to ended_utc is 7.260 s, the run took 7.000 s"),
        # So much more as the wall clock stepped.
        ({"ended_utc": at(7.26), "clock_step_s": -0.02}, ""),
        # Several clients begin half a second apart at the most; to connect may take 45 s.
        (lasting(6.51), ""),
        (lasting(6.49), "the run took 6.490 s, sysbench says 7.000 s"),
        (lasting(51.9), ""),
        (lasting(52.1), "the run took 52.100 s, sysbench says 7.000 s"),
    ],
)
def test_moments_lengths_and_sysbenchs_clock_are_of_one_run(changed: dict[str, Any], said: str):
    assert list(run_consistency.check_times(run(changed))) == ([f"evidence.json: {said}"] if said else [])


@pytest.mark.parametrize(
    ("attempt", "voided", "said"),
    [
        (1, 0, []),
        (2, 0, ["manifest.json: attempt 2, evidence.json has 1"]),
        (1, 1, ["evidence.json: attempt 1, and void has 1 attempts before it"]),
    ],
)
def test_an_attempt_has_those_before_it_among_the_voids(attempt: int, voided: int, said: list[str]):
    assert list(run_consistency.check_attempt(run(), SimpleNamespace(attempt=attempt), voided)) == said


def look(begun: float, ended: float, before: int, after: int, **changed: Any) -> dict[str, Any]:
    """Return what was seen of a run of one server, which counted so many connections at both ends."""
    return {
        **dict.fromkeys(("started_utc", "ended_utc"), BEGUN),
        **{"started_monotonic_s": begun, "ended_monotonic_s": ended, "clock_step_s": 0.0},
        "sysbench_s": ended - begun,
        "identity_before": {"pid": 10, "started": 5.0},
        "ledger": {"before": {"Connections": before}, "after": {"Connections": after}},
        **changed,
    }


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (look(20, 30, 14, 18), []),
        (look(20, 30, 13, 18), ["b: evidence.json: Connections is 13 before it, was 14 after a"]),
        # Another process begins at nought, and so does what is counted by account; sums of several servers,
        # and what one server served at once, are no chain.
        (look(20, 30, 3, 7, identity_before={"pid": 10, "started": 19.0}), []),
        (look(20, 30, 3, 7, ledger={"before": {"Account_updates": 0, "Connections": 3}, "after": {}}), []),
        (look(20, 30, 3, 7, servers=[{}]), []),
        (look(5, 30, 3, 7), []),
    ],
)
def test_a_server_counts_on_from_run_to_run(later: dict[str, Any], said: list[str]):
    assert list(run_consistency.find_chain_breaks({"b": later, "a": look(0, 10, 10, 14)})) == said


def test_runs_of_two_groups_follow_each_other():
    def told(begin: float, group: str) -> list[str]:
        spans = {
            "b": (run_consistency.parse_moment(at(begin)), run_consistency.parse_moment(at(20)), group),
            "a": (run_consistency.parse_moment(at(0)), run_consistency.parse_moment(at(10)), "one"),
        }
        return list(run_consistency.find_overlaps(spans))

    assert told(9.0, "two") == []
    (said,) = told(8.9, "two")
    assert re.findall(r"\b[ab]\b", said) == ["b", "a"], "which began too early, and before whose end"
    assert told(8.9, "one") == []
    with pytest.raises(ValueError, match="a moment without a zone"):
        run_consistency.parse_moment("2026-01-05T10:00:00")
