"""The server's books against sysbench's, with the numbers of recorded runs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchbook.core.study.params import Limits
from benchbook.read import checks_server, evidence, validity
from benchbook.read.evidence import Excused, Missing
from tests.read import corpus, synthetic
from tests.read.synthetic import find_faults, healthy_run

LIMITS = Limits()


def bracket(name: str, grown: dict[str, int], **changed):
    """Return a recorded run with the growth of the server's counters around it."""
    case = corpus.case(name)
    before = dict.fromkeys(grown, 77)
    after = {counter: 77 + count for counter, count in grown.items()}
    ledger = {"available": True, "reason": None, "own_connections": 0, "before": before, "after": after}
    run = case.run()
    return type(run)({**run.plan, **changed}, {**run.observed, "ledger": ledger}, run.out, run.err)


# oltp_read_write, 4 threads, 4 tables: 137102 reads of 195860 statements in 9793 transactions.
BASELINE = {
    "Com_select": 137102, "Com_stmt_execute": 195860, "Com_stmt_prepare": 4 * (9 * 4 + 2), "Connections": 4,
    "Com_update": 2 * 9793, **dict.fromkeys(("Com_begin", "Com_commit", "Com_delete", "Com_insert"), 9793),
}  # fmt: skip


def faults_of(grown: dict[str, int], name: str = "00_baseline_ok", **changed) -> list[str]:
    return find_faults(checks_server.check_ledger, bracket(name, grown, **changed))


def name_and_counts(fault: str) -> tuple[str, int, int]:
    """Counter of a fault, its growth, and what sysbench counted."""
    grown, counted = map(int, re.findall(r"\d+", fault))
    return fault.split()[0], grown, counted


def test_the_books_agree_to_the_query():
    assert faults_of(BASELINE) == []


def test_a_server_is_held_against_all_runs_that_it_served_at_once():
    """Twice the recorded run in one pair of readings: each counter grew by twice as much."""
    alone = bracket("00_baseline_ok", {name: 2 * count for name, count in BASELINE.items()})
    other = {"plan": alone.plan, "clients": [{"out": alone.out, "err": alone.err}]}
    both = replace(alone, observed=alone.observed | {"beside": [other]})
    assert find_faults(checks_server.check_ledger, both) == []
    assert len(find_faults(checks_server.check_ledger, alone)) == len(BASELINE)
    silent = replace(
        alone, observed=alone.observed | {"beside": [other | {"clients": [{"out": "", "err": ""}]}]}
    )
    with pytest.raises(Missing):
        list(checks_server.check_ledger(silent, LIMITS))


def test_the_runs_beside_are_read_from_the_evidence(tmp_path: Path):
    other = synthetic.planned(arm="other")
    beside = [{"plan": other, "clients": [{"out": synthetic.output(tps=50), "err": ""}]}]
    run = synthetic.folder(tmp_path, synthetic.planned(), synthetic.output(tps=100), {"beside": beside})
    found = evidence.Evidence.of(run)
    # 2 s of discard and 5 s of measuring, with 14 reads in each transaction.
    assert [one.total("reads") for one in found.served] == [100 * 7 * 14, 50 * 7 * 14]
    assert found.served[1].plan_value("arm") == "other"


@pytest.mark.parametrize("beside", [5, ["x"], [{}], [{"plan": {}, "clients": []}]])
def test_runs_beside_that_cannot_be_read_leave_the_ledger_open(tmp_path: Path, beside: object):
    run = synthetic.folder(tmp_path, synthetic.planned(), synthetic.output(), {"beside": beside})
    found = {check.id: check for check in validity.judge_run(run).checks}
    assert found["V10"].passed is None and not found["V10"].is_excused


@pytest.mark.parametrize("counter", BASELINE)
@pytest.mark.parametrize("off", [-1, 1])
def test_one_more_or_less_is_found(counter, off):
    (fault,) = faults_of({**BASELINE, counter: BASELINE[counter] + off})
    assert fault.startswith(counter)


@pytest.mark.parametrize(
    ("counter", "more", "is_found"),
    [
        # Each of 3 retries does both updates of a transaction again, its insert, its BEGIN and its COMMIT.
        ("Com_update", 2 * 3, False),
        ("Com_update", 2 * 3 + 1, True),
        ("Com_insert", 3, False),
        ("Com_begin", 3, False),
        ("Com_commit", 4, True),
        ("Com_update", -1, True),
        # Reads are not done again, and the client sent no more than before.
        ("Com_select", 1, True),
        ("Com_stmt_execute", 1, True),
        ("Connections", 1, True),
    ],
)
def test_what_a_server_did_again_by_itself_may_be_counted_again(counter: str, more: int, is_found: bool):
    """As optimistic TiDB 3.0 does where `tidb_disable_txn_auto_retry` is off."""
    books = {**BASELINE, counter: BASELINE[counter] + more}
    assert bool(faults_of({**books, "Retries": 3})) is is_found
    assert faults_of(books) and faults_of({**books, "Retries": 0})


def test_statements_that_are_not_prepared_are_counted_once_however_often_they_are_done():
    """As TiDB 3.0 showed: it counts EXECUTE where it is done, and other statements where they come in."""
    books = {**BASELINE, "Com_stmt_execute": 0, "Com_stmt_prepare": 0, "Retries": 3}
    plan = corpus.case("00_baseline_ok").run().plan
    text = {"options": {**plan["options"], "ps_mode": "disable"}}
    assert faults_of(books, **text) == []
    books["Com_update"] += 1
    (fault,) = faults_of(books, **text)
    assert name_and_counts(fault) == ("Com_update", 19587, 19586)


class Counted(evidence.Evidence):
    """A run of which only the number of its transactions is known, all without an error."""

    done = 0

    def total(self, name: str) -> int:
        one = self.transaction
        each = {"transactions": 1, "reads": one.reads, "writes": one.writes, "ignored_errors": 0}
        return self.done * (each | {"total": one.reads + one.writes + one.other})[name]


def counting(script: str, done: int, ledger: dict[str, object]) -> Counted:
    run = Counted({**synthetic.planned(), "script": script}, {"ledger": ledger}, "", "")
    object.__setattr__(run, "done", done)
    return run


# A TiDB built from the sources of 2019-08-27: 8 threads on 20 rows; each write that was done again was
# counted again, with its BEGIN and its COMMIT.
OF_OLD_TIDB = [
    ("oltp_update_index", 343, 39, {"Com_stmt_execute": 343, "Com_update": 382}),
    ("oltp_update_index", 3238, 25, {"Com_stmt_execute": 3238, "Com_update": 3263}),
    ("oltp_write_only", 1573, 1443, {"Com_stmt_execute": 9438, "Com_update": 6032, **dict.fromkeys(
        ("Com_begin", "Com_commit", "Com_delete", "Com_insert"), 3016)}),
]  # fmt: skip


@pytest.mark.parametrize(("script", "done", "retries", "grown"), OF_OLD_TIDB)
def test_books_of_an_old_tidb_agree_with_conflicts_and_show_a_strangers_update(script, done, retries, grown):
    def faults(more: int, counted: int) -> list[str]:
        none = dict.fromkeys(("Com_select", "Com_begin", "Com_commit"), 0)
        books = none | grown | {"Com_update": grown["Com_update"] + more, "Retries": counted}
        ledger = {"available": True, "reason": None, "own_connections": 0, "absent": {"Connections": "old"}}
        ledger |= {"before": dict.fromkeys(books, 0), "after": books}
        return find_faults(checks_server.check_ledger, counting(script, done, ledger))

    assert faults(0, retries) == []
    assert [fault.split()[0] for fault in faults(1, retries)] == ["Com_update"]
    assert faults(0, 0)


def lacking(grown: dict[str, int], *absent: str):
    """Return the recorded run as an engine counts it that says that it lacks some counters."""
    run = bracket("00_baseline_ok", {name: count for name, count in grown.items() if name not in absent})
    ledger = run.observed["ledger"] | {"absent": dict.fromkeys(absent, "not counted")}
    return type(run)(run.plan, {**run.observed, "ledger": ledger}, run.out, run.err)


def test_an_engine_that_lacks_transactions_is_held_to_its_statements_and_changed_rows():
    # Of PostgreSQL: 4 writes in each of 9793 transactions changed a row (the log: 39172 writes).
    gone = ("Com_begin", "Com_commit", "Com_stmt_execute")
    books = {**BASELINE, "Rows_changed": 4 * 9793}
    assert find_faults(checks_server.check_ledger, lacking(books, *gone)) == []
    more = {**books, "Rows_changed": 4 * 9793 + 1}
    (fault,) = find_faults(checks_server.check_ledger, lacking(more, *gone))
    assert name_and_counts(fault) == ("Rows_changed", 39173, 39172)


def test_reads_can_not_be_lacked():
    with pytest.raises(Excused, match="no Com_select"):
        list(checks_server.check_ledger(lacking(BASELINE, "Com_select"), LIMITS))


def test_failed_transactions_are_in_the_servers_books():
    # oltp_write_only with 6819 deadlocks in 3041 transactions and 33742 statements that worked.
    grown = {"Com_select": 0, "Com_begin": 3041 + 6819, "Com_commit": 3041,
             "Com_stmt_execute": 33742 + 6819, "Connections": 64}  # fmt: skip
    assert faults_of(grown, "08_deadlock_default_ignored") == []
    assert len(faults_of({**grown, "Com_begin": 3041}, "08_deadlock_default_ignored")) == 1


def test_point_selects_that_miss_are_found():
    # 55656 reads; 99 % of the keys were not in the table.
    run = bracket("26_localhost_uses_socket_not_port", {"Rows_sent": 557})
    assert "sent 557 rows" in next(checks_server.check_hits(run, LIMITS))


def test_writes_that_change_nothing_are_found():
    run = corpus.case("20c_update_empty").run()
    assert find_faults(checks_server.check_hits, run) == ["0 of 90013 writes changed a row"]


def without_rows_sent(**changed):
    """Return a healthy run on an engine that says that it has no such counter."""
    run = healthy_run(**changed)
    ledger = {**run.observed["ledger"], "absent": {"Rows_sent": "TiDB doesn't count the rows it sends"}}
    for side in ("before", "after"):
        ledger[side] = {name: count for name, count in ledger[side].items() if name != "Rows_sent"}
    return type(run)(run.plan, {**run.observed, "ledger": ledger}, run.out, run.err)


def test_a_counter_that_the_engine_lacks_is_told_as_a_warning_and_one_that_is_just_missing_is_not():
    with pytest.raises(Excused, match=r"^no Rows_sent: TiDB "):
        list(checks_server.check_hits(without_rows_sent(), LIMITS))
    run = without_rows_sent()
    del run.observed["ledger"]["absent"]
    with pytest.raises(Missing, match="Rows_sent"):
        list(checks_server.check_hits(run, LIMITS))
    assert find_faults(checks_server.check_ledger, without_rows_sent()) == []


def test_a_server_that_stood_still_has_no_faults():
    sound = healthy_run()
    for what in ("settings", "tables", "arm", "between"):
        assert [*getattr(checks_server, f"check_{what}")(sound)] == []
    assert validity.judge_run(sound).status == "valid"
