"""The lines of sysbench 0.4, 0.5 and the 1.0 that came before its release, in today's terms.

From the sources of 0.4.12 and 0.5 (sysbench/sysbench.c, sysbench/db_driver.c, sysbench/tests/oltp/sb_oltp.c).
Blank lines say nothing here: no study runs these versions.
"""

from dataclasses import replace

from benchbook.read.grammar import Grammar, Lines, compile_ascii, rate_line
from benchbook.read.log import Summary

OPTIONS = "threads interval seed"


LINES: Lines = (
    ("version", compile_ascii(r"sysbench v?(?P<version>\d[\w.+~-]*)(?::? +multi-threaded system evaluation benchmark|"
                  r" \(using (?P<lua>[\w.+ -]+)\))"), "start"),
    ("running", "Running the test with following options:", "version"),
    ("threads", "Number of threads: <threads:N>", "running"),
    ("interval", r"Report intermediate results every <interval_s:N> second\(s\)", "threads"),
    ("seed", r"(?:Initializing random number generator from (?:current time|timer|seed \(<seed:N>\))|"
             r"Random number generator seed is \d+ and will be ignored)\.?", "threads interval"),
    ("doing_oltp", "Doing OLTP test.", OPTIONS),
    ("running_oltp", compile_ascii(r"Running (?:mixed|simple) OLTP test"), "doing_oltp"),
    ("read_only", compile_ascii(r"Doing (?:read-only|non-transactional) test"), "running_oltp"),
    ("distribution", compile_ascii(r"Using \w+ distribution.*"), "running_oltp read_only"),
    ("transaction", compile_ascii(r'Using ".*" for starting transactions|Skipping BEGIN/COMMIT'), "distribution"),
    ("auto_inc", "Using auto_inc on the id column", "transaction"),
    ("maximum", compile_ascii(r"Maximum number of requests for OLTP test is limited to \d+"), "transaction auto_inc"),
    ("workers", "Initializing worker threads...", "seed"),
    ("started", "Threads started!", "seed workers transaction auto_inc maximum"),
    ("done", "Done.", "started"),
    ("sql", compile_ascii(r"(?:OLTP test|SQL) statistics:"), "started done"),
    ("performed", "queries performed:", "sql"),
    ("reads", "read: +<reads:N>", "performed"),
    ("writes", "write: +<writes:N>", "reads"),
    ("other", "other: +<other:N>", "writes"),
    ("total", "total: +<total:N>", "other"),
    ("transactions", rate_line("transactions", "transactions"), "total"),
    # 0.4 and the first 0.5 have deadlocks, later ones errors and reconnects behind the operations.
    ("deadlocks", rate_line("deadlocks", "deadlocks"), "transactions"),
    ("read_write_requests", rate_line("read/write requests", "read_write_requests"), "deadlocks"),
    ("other_operations", rate_line("other operations", "other_operations"), "read_write_requests"),
    ("read_write_later", rate_line("read/write requests", "read_write_requests"), "transactions"),
    ("other_operations_later", rate_line("other operations", "other_operations"), "read_write_later"),
    ("queries", rate_line("queries", "queries"), "transactions"),
    ("ignored_errors", rate_line("ignored errors", "ignored_errors"), "other_operations_later queries"),
    ("reconnects", rate_line("reconnects", "reconnects"), "ignored_errors"),
    ("general", compile_ascii(r"(?:Test execution summary|General statistics):"),
     "other_operations reconnects started done"),
    ("total_time", "total time: +<total_time_s:S>s", "general"),
    ("events", "total number of events: +<events:N>", "total_time"),
    ("taken", "total time taken by event execution: +<taken_s:S>s?", "events"),
    ("response", compile_ascii(r"(?:per-request statistics|response time):"), "taken"),
    ("latency", compile_ascii(r"Latency(?: statistics| \(ms\)):"), "events"),
    ("min", "min: +<latency_min_ms:X>(?:ms)?", "response latency"),
    ("avg", "avg: +<latency_avg_ms:X>(?:ms)?", "min"),
    ("max", "max: +<latency_max_ms:X>(?:ms)?", "avg"),
    ("percentile", r"(?:approx\. +)?<percentile:K>(?:th)? percentile: +<latency_percentile_ms:X>(?:ms)?", "max"),
    ("sum", "sum: +<latency_sum_ms:X>(?:ms)?", "percentile"),
    ("fairness", "Threads fairness:", "percentile sum"),
    ("thread_events", r"events \(avg/stddev\): +<thread_events_avg:S>/<thread_events_stddev:X>", "fairness"),
    ("thread_time", r"execution time \(avg/stddev\): +<thread_time_avg_s:S>/<thread_time_stddev_s:X>",
     "thread_events"),
)  # fmt: skip
LEGACY = Grammar(LINES, has_blank_lines=False)
# Lines that only such versions print in their totals.
MARKS = ("total time taken by event execution:", "response time:", "per-request statistics:",
         "Latency statistics:")  # fmt: skip


def in_todays_terms(summary: Summary) -> Summary:
    """The same totals with the fields of 1.0: all queries, the sum of latencies in ms, errors."""
    queries, rate = summary.queries, summary.queries_per_s
    if queries is None and summary.total is not None and summary.total_time_s:
        queries, rate = summary.total, summary.total / summary.total_time_s
    total_ms = summary.latency_sum_ms if summary.taken_s is None else 1000 * summary.taken_s
    errors = summary.deadlocks if summary.ignored_errors is None else summary.ignored_errors
    return replace(
        summary, queries=queries, queries_per_s=rate, latency_sum_ms=total_ms, ignored_errors=errors
    )
