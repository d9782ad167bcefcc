"""What was done to a server between two runs, or in one, is in the reason of the run, in words."""

from __future__ import annotations

import pytest

from benchbook.core.params import Limits
from benchbook.read import checks_server, validity
from benchbook.read.evidence import Missing
from tests.read import corpus, synthetic

LIMITS = Limits()


def run(changed: dict | None = None, **plan):
    return corpus.healthy(synthetic.output(), synthetic.planned(**plan), "", changed)


def settings(**changed) -> dict:
    return {"state": {"settings": changed}}


def test_a_server_that_stood_still_has_no_faults():
    sound = run()
    checks = (checks_server.settings, checks_server.tables, checks_server.arm, checks_server.between)
    assert [[*check(sound)] for check in checks] == [[], [], [], []]
    assert validity.judge(sound).status == "valid"


def test_a_setting_names_itself_what_it_was_and_when():
    seen = settings(
        before="other", after="third",
        changed_between={"general_log": ["OFF", "ON"], "new": [None, "1"]},
        changed_in_run={"gone": ["2", None]},
    )  # fmt: skip
    assert [*checks_server.settings(run(seen))] == [
        "server variable general_log was OFF, is ON between the runs",
        "server variable new was added (1) between the runs",
        "server variable gone was removed (it was 2) in the run",
    ]


def test_a_digest_that_differs_counts_without_its_items():
    """Whoever takes the items out of the evidence has not made the settings the same."""
    assert [*checks_server.settings(run(settings(after="x")))] == [
        "server variable settings: the digest changed in the run"
    ]


@pytest.mark.parametrize("kind", ["settings", "tables"])
@pytest.mark.parametrize("when", ["at_start", "before", "after"])
def test_a_look_that_is_missing_makes_the_run_indeterminate(kind: str, when: str):
    assert validity.judge(run({"state": {kind: {when: None}}})).status == "indeterminate"


def test_without_the_counters_of_the_run_before_a_run_is_indeterminate():
    with pytest.raises(Missing):
        list(checks_server.between(run({"state": {"between": None}})))


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"connections": 4}, "1 connections that are not ours were made between the runs"),
        ({"connections": 5, "refused": 2}, "2 connections that are not ours were made between the runs"),
        ({"counters": {"Com_update": 1}}, "Com_update grew by 1 between the runs"),
        (
            {"uptime_s": 0, "seconds": 9.0},
            "the server was started again between the runs: its uptime lacks 9 s",
        ),
    ],
)
def test_what_a_server_did_for_others_between_the_runs_is_named(seen: dict, words: str):
    judged = validity.judge(run({"state": {"between": seen}}))
    assert judged.status == "invalid" and f"V14 alone: {words}" in judged.reasons


def test_probes_of_a_proxy_are_no_foreign_connections():
    """Three of our own, and two that a proxy dropped before it logged in."""
    seen = {"state": {"between": {"connections": 5, "refused": 2}}, "arrangement": {"has_probes": True}}
    assert [*checks_server.between(run(seen))] == []


def test_on_a_shared_server_only_its_tables_and_uptime_are_held():
    shared = {"is_shared": True, "connections": 900, "counters": {"Com_update": 7}}
    assert [*checks_server.between(run({"state": {"between": shared}}))] == []
    written = {"written_between": {"sbtest1": ["a", "written b"]}, "between": shared}
    assert [*checks_server.between(run({"state": written}))] == [
        "sbtest1 was written to between the runs (written b)"
    ]


def test_what_could_not_be_held_is_said_with_the_run():
    judged = validity.judge(run({"state": {"between": {"not_held": {"connections": "others use it"}}}}))
    assert judged.warnings == ("not held between the runs: connections (others use it)",)


def test_a_part_that_was_moved_between_the_runs_is_named():
    seen = run({"identity_at_start": {"pid": 70, "server_place": {"nice": "0"}}})
    assert "V12 identity: pid changed from 70" in validity.judge(seen).reasons[0]


def sampled(one: dict, when: str = "before", script: str = "oltp_read_write") -> list[str]:
    """Judge samples of two tables of 1000 rows, one of them as given before or after the run."""
    whole = {"first": 1, "last": 1000, "asked": 400, "there": 400}
    samples = {f"sample_{at}": {"sbtest1": whole, "sbtest2": whole} for at in ("before", "after")}
    samples[f"sample_{when}"] = {"sbtest1": whole, "sbtest2": whole | one}
    plan = {"tables": 2, "table_size": 1000, "script": script}
    return [*checks_server.data(run({"rows_before": None, "rows_after": None, **samples}, **plan), LIMITS)]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("one", "words"),
    [
        ({}, None),
        ({"last": 500}, "sbtest2 had ids 1 to 500, 1 to 1000 expected, {} the run"),
        ({"last": 1200}, "sbtest2 ended at id 1200, 1000 expected, {} the run"),
        ({"there": 399}, "sbtest2 lacked 1 of 400 rows looked for {} the run"),
        (
            {"first": 0, "last": 0, "asked": 0, "there": 0},
            "sbtest2 had ids 0 to 0, 1 to 1000 expected, {} the run",
        ),
    ],
)
def test_tables_too_large_to_count_are_held_by_a_sample(one: dict, words: str | None, when: str):
    assert sampled(one, when) == ([] if words is None else [words.format(when)])


def test_rows_that_a_script_adds_lie_beyond_the_last():
    assert sampled({"last": 1300, "there": 380}, "after", "oltp_insert") == []
    assert sampled({"last": 900}, "after", "oltp_insert") != []
