"""What one transaction of each script consists of."""

import pytest

from benchbook.core.study import sysbench_workloads
from benchbook.core.study.model import PlannedRun
from tests.read.corpus import OPTIONS, PLAN


def one(script: str, **options) -> sysbench_workloads.Transaction:
    plan = {"script": script, "options": OPTIONS | options, "tables": 4, "table_size": 10_000}
    return sysbench_workloads.find_transaction(PlannedRun.of(PLAN | plan))


@pytest.mark.parametrize("script", sysbench_workloads.SCRIPTS)
def test_every_script_a_study_may_name_has_a_rule(script):
    found = one(script)
    assert found.reads + found.writes >= 1


def test_read_write():
    # 10 point selects + 4 ranges; 2 updates + 1 delete + 1 insert; BEGIN and COMMIT.
    found = one("oltp_read_write")
    assert (found.reads, found.writes, found.other) == (14, 4, 2)
    assert found.counters == {"Com_select": 14, "Com_update": 2, "Com_delete": 1, "Com_insert": 1}
    # rows: 10 x 1 + 3 ranges of 100 + 1 sum; ranges may be cut at the table's end: 100 of 10000 starts.
    assert (found.fewest_rows, found.most_rows) == (10 + 3 * 99 + 1, 311)
    # prepared once a thread: 9 kinds for each of 4 tables, BEGIN and COMMIT.
    assert found.prepares == 9 * 4 + 2


def test_point_select_sends_one_row_a_statement_whatever_the_option_says():
    found = one("oltp_point_select", point_selects=10)
    assert (found.reads, found.fewest_rows, found.most_rows, found.prepares) == (1, 1, 1, 4)
    assert not found.has_transaction


def test_options_change_the_count():
    found = one("oltp_read_only", point_selects=0, sum_ranges=3, range_size=10, skip_trx=True)
    assert (found.reads, found.other, found.most_rows) == (6, 0, 3 + 3 * 10)
    assert found.prepares == 5 * 4


def test_insert_is_never_prepared():
    found = one("oltp_insert")
    assert (found.is_prepared, found.prepares, found.growth) == (False, 0, 1)
    assert found.counters == {"Com_insert": 1}


def test_no_prepared_statements_when_they_are_off():
    found = one("oltp_read_write", ps_mode="disable")
    assert (found.is_prepared, found.prepares) == (False, 0)


def test_scripts_on_one_table_prepare_once():
    assert one("select_random_ranges").prepares == 1
    assert one("select_random_points").most_rows is None


def test_an_unknown_script_has_no_rule():
    assert one("own") is None
