"""What a query cost each part, of runs with all books, of old ones, and of runs in turns."""

import math
from dataclasses import replace

import pytest

from benchbook.read import costs
from benchbook.sites.machine.local_machine import COLUMNS
from tests.read.corpus import healthy
from tests.read.synthetic import output, planned

OLD = COLUMNS[: COLUMNS.index("system_cores")]


def monitor(columns=COLUMNS, **values):
    """Return a monitor's file with a server's row each second of a run of 2 s and 5 s."""
    lines = [",".join(columns)]
    for second in range(1, 8):
        row = {"second": second, "part": "server", "cpu_cores": 0.5, "rss_mib": 100.0, **values}
        # The seconds of the discard are not the window's.
        row |= {"cpu_cores": 0.9} if second <= 2 else {}
        lines.append(",".join(str(row.get(name, "")) for name in columns))
    return "\n".join(lines) + "\n"


@pytest.fixture
def run():
    """A run of 2,000 queries a second: 100 transactions of 20."""
    return healthy(output(), planned())


def test_a_query_has_its_share_of_each_second_of_the_window(run):
    text = monitor(system_cores=0.2, voluntary_per_s=4000, read_kib_s=10, sent_mib_s=1.0, threads=9)
    (row,) = costs.build_rows(run, text, 2000.0)
    # 0.5 cores are 500,000 us a second, over 2,000 queries; 10 KiB are 10,240 bytes; 1 MiB is 1,048,576.
    assert (row["part"], row["busy_cores"], row["cpu_us"]) == ("server", 0.5, 250.0)
    assert (row["system_us"], row["voluntary"], row["threads"]) == (100.0, 2.0, 9.0)
    assert row["read_bytes"] == pytest.approx(5.12) and row["sent_bytes"] == pytest.approx(524.288)
    assert math.isnan(row["wait_us"]) and math.isnan(row["page_reads"])


def test_an_old_run_has_processor_time_alone(run):
    (row,) = costs.build_rows(run, monitor(OLD), 2000.0)
    assert row["cpu_us"] == 250.0
    assert all(math.isnan(row[name]) for name in ("system_us", "voluntary", "read_bytes", "threads"))


def test_the_servers_own_work_is_over_all_queries_and_of_no_arm_where_several_share_it(run):
    queries = sum(block.queries for block in run.log.summaries)
    work = {
        "before": {"Innodb_buffer_pool_reads": 100, "Handler_read_key": 5, "Handler_read_next": 1},
        "after": {"Innodb_buffer_pool_reads": 100 + queries, "Handler_read_key": 5 + 3 * queries,
                  "Handler_read_next": 1},
    }  # fmt: skip
    seen = replace(run, observed=run.observed | {"work": work})
    (row,) = costs.build_rows(seen, monitor(), 2000.0)
    assert (row["page_reads"], row["row_reads"]) == (1.0, 3.0)
    shared = replace(
        run, observed=run.observed | {"work": work, "beside": [{"plan": run.plan, "clients": []}]}
    )
    (row,) = costs.build_rows(shared, monitor(), 2000.0)
    assert math.isnan(row["page_reads"])


def test_in_turns_the_two_ends_of_each_turn_are_what_counts(run):
    turns = {"active_s": 2.0, "cpu_s": {"server": 1.2}}
    new = turns | {"costs": {"server": {"cpu_s": 1.0, "system_s": 0.5, "voluntary": 8000.0, "wait_s": None}}}
    in_turns = replace(run, plan=run.plan | {"order": "turns"})
    (row,) = costs.build_rows(replace(in_turns, observed=run.observed | {"turns": new}), "", 2000.0)
    # 1.0 s in 2 s of turns is half a core: 250 us of 2,000 queries a second; 4,000 switches a second are two.
    assert (row["busy_cores"], row["cpu_us"], row["system_us"], row["voluntary"]) == (0.5, 250.0, 125.0, 2.0)
    assert math.isnan(row["wait_us"])
    (row,) = costs.build_rows(replace(in_turns, observed=run.observed | {"turns": turns}), "", 2000.0)
    assert row["busy_cores"] == 0.6 and math.isnan(row["voluntary"]), "an old one has the clock's time alone"


def test_a_query_has_as_many_events_as_its_processor_time_had_in_the_discard(run):
    told = {"server": {"cpu_s": 0.5, "instructions": 1e9, "cycles": 2e9}}
    (row,) = costs.build_rows(replace(run, observed=run.observed | {"counted": told}), monitor(), 2000.0)
    # 2e9 instructions a second of processor time are 2,000 a us, and a query takes 250 us.
    assert (row["instructions"], row["cycles"]) == (500_000.0, 1_000_000.0)
    assert math.isnan(row["llc_misses"]), "what the machine does not count is no number"
    none = replace(run, observed=run.observed | {"counted": {"server": {"cpu_s": 0.0, "instructions": 1e9}}})
    assert math.isnan(costs.build_rows(none, monitor(), 2000.0)[0]["instructions"])
