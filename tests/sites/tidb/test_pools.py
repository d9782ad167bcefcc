"""TiKV's thread pools, from what its metrics tell of each thread."""

from __future__ import annotations

from benchbook.sites.tidb import pools

# As TiKV 3 to 8 write it: a counter for each thread, whose name ends in its number.
TOLD = """# HELP tikv_thread_cpu_seconds_total Total user and system CPU time spent in seconds by threads.
# TYPE tikv_thread_cpu_seconds_total counter
tikv_thread_cpu_seconds_total{{name="grpc_0",tid="101"}} {0}
tikv_thread_cpu_seconds_total{{name="grpc-server-1",tid="102"}} 3.25
tikv_thread_cpu_seconds_total{{name="grpc_1",tid="103"}} 2
tikv_thread_cpu_seconds_total{{name="unified-read-po",tid="104"}} 7.5
tikv_thread_cpu_seconds_total{{name="raftstore-1-0",tid="105"}} 0.5
tikv_threads_state{{state="running"}} 4
"""


def test_threads_are_added_up_by_the_pool_they_are_named_after():
    assert pools.seconds(TOLD.format(1.5)) == {
        **{"grpc": 3.5, "grpc-server": 3.25, "unified-read-po": 7.5, "raftstore-1": 0.5}
    }
    assert pools.seconds("nothing of it\n") == {}


def test_what_two_looks_at_all_tikv_differ_by_is_what_a_run_used_busiest_first():
    # grpc_0 goes from 1.5 to 4.0 s in one TiKV and from 1.5 to 2.0 s in the other: 3.0 s together.
    before = [pools.seconds(TOLD.format(1.5))] * 2
    after = [pools.seconds(TOLD.format(4.0)), {**pools.seconds(TOLD.format(2.0)), "new-pool": 5.0}]
    spent = pools.spent(before, after)
    assert spent == {"new-pool": 5.0, "grpc": 3.0} and list(spent) == ["new-pool", "grpc"]


def test_a_tikv_that_was_started_anew_gives_no_figure():
    assert pools.spent([pools.seconds(TOLD.format(9.0))], [{"grpc": 0.1}]) is None
