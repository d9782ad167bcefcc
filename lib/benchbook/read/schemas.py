"""The tidy tables: for every column its type, its unit and what it means.

Types: `str`, `int`, `float` (as printed or noted; NaN where there is nothing), `Int` (a whole number or
nothing), `bool`, and `derived`: a float worked out of others by exact sums and single divisions, with
`canonical.DERIVED` significant digits. So no value depends on the processor. Rows are in the order of the
schedule, within a run in the order of time or buckets.
"""

from __future__ import annotations

Column = tuple[str, str, str]

RUN_ID: Column = ("str", "", "the run, as in the schedule")
SECOND: Column = ("float", "s", "since the run's start")

SCHEMAS: dict[str, dict[str, Column]] = {
    "runs": {
        "run_id": RUN_ID,
        "block": ("int", "", "block of the run, from 1"),
        "position": ("int", "", "place in the order of the whole schedule, from 0"),
        "group": ("str", "", "the adjacent arms of one block at one workload and thread count"),
        "arm": ("str", "", "arm"),
        "workload": ("str", "", "workload"),
        "threads": ("int", "", "threads of sysbench, of all clients together"),
        "clients": ("int", "", "sysbench processes of the run, which began together"),
        "attempt": ("int", "", "1, or more if earlier attempts were voided"),
        "rate": ("int", "", "transactions offered a second; 0 for a closed loop"),
        "seed": ("int", "", "seed of sysbench's random numbers, shared in a group"),
        "started_utc": ("str", "", "when sysbench was started, ISO 8601"),
        "started_s": ("float", "s", "when sysbench was started, since the study's first run"),
        "server_started_s": (
            "float",
            "s",
            "when the server of the arm was started, to the second, as "
            "`started_s`; of several the last; NaN where that is unknown",
        ),
        "discard_s": ("float", "s", "asked length of the discard"),
        "run_s": ("float", "s", "asked length of the measured window"),
        "measured_s": ("derived", "s", "window that the counts cover; of several clients the mean of theirs"),
        "order": ("str", "", "`turns` of arms that are connected at once, or whole `runs`"),
        "turn_ms": ("Int", "ms", "planned length of a turn"),
        "turns": ("Int", "", "turns of this arm in the window"),
        "active_s": ("float", "s", "sum of this arm's turns; NaN for whole runs"),
        "stopped": ("str", "", "what stands still when it is not this arm's turn"),
        "sysbench_s": ("float", "s", "from the start of the process to its end"),
        "events": ("int", "", "events in the window"),
        "transactions": ("int", "", "transactions in the window"),
        "reads": ("int", "", "reading statements in the window"),
        "writes": ("int", "", "statements in the window that changed a row"),
        "other": ("int", "", "other statements in the window"),
        "queries": ("int", "", "all statements in the window"),
        "ignored_errors": ("int", "", "errors in the window after which a transaction was tried again"),
        "reconnects": ("int", "", "reconnects in the window"),
        "qps": ("derived", "1/s", "queries / measured_s"),
        "lowest_qps": ("derived", "1/s", "lowest mean of five seconds, one after another from the start"),
        "tps": ("derived", "1/s", "transactions / measured_s"),
        "latency_min_ms": ("float", "ms", "fastest event in the window"),
        "latency_avg_ms": ("derived", "ms", "mean latency of the events in the window"),
        "latency_max_ms": ("float", "ms", "slowest event in the window"),
        "latency_p95_ms": ("derived", "ms", "95th percentile from the histogram by sysbench's rule"),
        "latency_p99_ms": ("derived", "ms", "99th percentile from the histogram by sysbench's rule"),
        "printed_percentile": ("int", "", "percentile that sysbench printed"),
        "printed_percentile_ms": ("derived", "ms", "its value as printed; of several clients merged"),
        "cpu_client_cores": ("derived", "cores", "mean use by sysbench in the window"),
        "cpu_proxy_cores": ("derived", "cores", "mean use by the proxy in the window; NaN without one"),
        "cpu_server_cores": (
            "derived",
            "cores",
            "mean use by the server in the window; of a TiDB cluster by all its parts",
        ),
        "cpu_tidb_cores": ("derived", "cores", "mean use by all TiDB of a cluster; NaN without one"),
        "cpu_tikv_cores": ("derived", "cores", "mean use by all TiKV of a cluster; NaN without one"),
        "cpu_pd_cores": ("derived", "cores", "mean use by all PD of a cluster; NaN without one"),
        "cpu_machine_pct": ("derived", "%", "mean use of all cores of the machine in the window"),
        "memory_proxy_mib": ("float", "MiB", "most memory of the proxy in the window; NaN without one"),
        "memory_server_mib": ("float", "MiB", "most memory of the server in the window"),
        "memory_tidb_mib": ("float", "MiB", "most memory of all TiDB of a cluster; NaN without one"),
        "memory_tikv_mib": ("float", "MiB", "most memory of all TiKV of a cluster; NaN without one"),
        "memory_pd_mib": ("float", "MiB", "most memory of all PD of a cluster; NaN without one"),
        "received_proxy_mib_s": ("derived", "MiB/s", "bytes that TCP carried to the proxy, both sides, mean"),
        "sent_proxy_mib_s": ("derived", "MiB/s", "bytes that TCP carried from the proxy, both sides, mean"),
        "received_server_mib_s": ("derived", "MiB/s", "bytes that TCP carried to the server, mean"),
        "sent_server_mib_s": ("derived", "MiB/s", "bytes that TCP carried from the server, mean"),
        "steal_pct": ("derived", "%", "share of the machine's time taken by its host, in the window"),
        "ledger": ("str", "", "`agrees`, or why the server's books could not be compared"),
        "warnings": ("str", "", "what does not make the run invalid but belongs beside its figures"),
        "folder": ("str", "", "the run folder, relative to the study's data"),
    },
    "turns": {
        "run_id": RUN_ID,
        "turn": ("int", "", "place among the turns of the group, from 1"),
        "begin_us": ("int", "us", "when the arm began to run, on the machine's monotonic clock"),
        "end_us": ("int", "us", "when it was stopped"),
    },
    "intervals": {
        "run_id": RUN_ID,
        "second": ("float", "s", "label of the report line: the end of its interval"),
        "threads": ("int", "", "threads running"),
        "tps": ("float", "1/s", "transactions"),
        "qps": ("float", "1/s", "statements"),
        "reads_per_s": ("float", "1/s", "reading statements"),
        "writes_per_s": ("float", "1/s", "statements that changed a row"),
        "other_per_s": ("float", "1/s", "other statements"),
        "latency_percentile_ms": (
            "float",
            "ms",
            "the run's percentile; 0 in the interval a checkpoint ends, NaN with several clients",
        ),
        "errors_per_s": ("float", "1/s", "ignored errors"),
        "reconnects_per_s": ("float", "1/s", "reconnects"),
        "queue_length": ("Int", "", "transactions that wait, with a rate"),
        "concurrency": ("Int", "", "transactions under way, with a rate"),
        "is_discarded": ("bool", "", "part of the discard"),
    },
    "histograms": {
        "run_id": RUN_ID,
        "bucket": ("int", "", "bucket of sysbench's histogram, 0 to 1023"),
        "value_ms": ("derived", "ms", "latency that stands for the bucket"),
        "count": ("int", "", "events of the window in the bucket"),
    },
    "monitor": {
        "run_id": RUN_ID,
        "second": SECOND,
        "part": (
            "str",
            "",
            "client, proxy, server, driver (of connections beside the run) or machine; of a "
            "TiDB cluster also tidb, tikv and pd, which together are the server",
        ),
        "cpu_cores": ("float", "cores", "use in the second before"),
        "rss_mib": ("float", "MiB", "memory in use"),
        "steal_pct": ("float", "%", "time taken by the host (machine)"),
        "psi_cpu_pct": ("float", "%", "time in which some task waited for a core (machine)"),
        "psi_io_pct": ("float", "%", "time in which some task waited for a disk (machine)"),
        "psi_memory_pct": ("float", "%", "time in which some task waited for memory (machine)"),
        "received_mib_s": ("float", "MiB/s", "bytes that TCP carried to the part, without headers"),
        "sent_mib_s": ("float", "MiB/s", "bytes that TCP carried from the part, without headers"),
    },
    "voids": {
        "run_id": RUN_ID,
        "attempt": ("int", "", "which attempt was voided"),
        "block": ("int", "", "block of the run"),
        "arm": ("str", "", "arm"),
        "workload": ("str", "", "workload"),
        "threads": ("int", "", "threads of sysbench"),
        "status": ("str", "", "invalid, indeterminate, or partner of a run that was"),
        "reasons": ("str", "", "the checks that did not pass, in words"),
        "folder": ("str", "", "the folder kept, relative to the study's data"),
    },
    "refused": {
        "run_id": RUN_ID,
        "status": (
            "str",
            "",
            "missing, stranger, broken, differs (from its plan), invalid, indeterminate, "
            "or, of a folder set aside, why",
        ),
        "reasons": ("str", "", "in words"),
        "folder": ("str", "", "the folder, relative to the study's data; empty if missing"),
    },
}
