"""The lines of sysbench 0.4, 0.5 and the 1.0 that came before its release, in today's terms.

From the sources of 0.4.12 and 0.5 (sysbench/sysbench.c, sysbench/db_driver.c, sysbench/tests/oltp/sb_oltp.c).
Blank lines say nothing here: no study runs these versions.
"""

from __future__ import annotations

import re
from dataclasses import replace

from benchbook.read.grammar import Grammar, K, Lines, N, S, X, compile_ascii, compile_rated
from benchbook.read.log import Summary

OPTIONS = "threads interval seed"


def _compile_labelled(label: str, field: str) -> re.Pattern[str]:
    return compile_ascii(compile_rated(field).pattern.strip().replace(field.replace("_", " "), label, 1))


def _compile_milliseconds(name: str, field: str) -> re.Pattern[str]:
    return compile_ascii(rf"{name}: +(?P<{field}>{X})(?:ms)?")


LINES: Lines = (
    ("version", compile_ascii(r"sysbench v?(?P<version>\d[\w.+~-]*)(?::? +multi-threaded system evaluation benchmark|"
                  r" \(using (?P<lua>[\w.+ -]+)\))"), "start"),
    ("running", "Running the test with following options:", "version"),
    ("threads", compile_ascii(rf"Number of threads: (?P<threads>{N})"), "running"),
    ("interval", compile_ascii(rf"Report intermediate results every (?P<interval_s>{N}) second\(s\)"), "threads"),
    ("seed", compile_ascii(rf"(?:Initializing random number generator from (?:current time|timer|seed \((?P<seed>{N})\))|"
               r"Random number generator seed is \d+ and will be ignored)\.?"), "threads interval"),
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
    ("reads", compile_ascii(rf"read: +(?P<reads>{N})"), "performed"),
    ("writes", compile_ascii(rf"write: +(?P<writes>{N})"), "reads"),
    ("other", compile_ascii(rf"other: +(?P<other>{N})"), "writes"),
    ("total", compile_ascii(rf"total: +(?P<total>{N})"), "other"),
    ("transactions", _compile_labelled("transactions", "transactions"), "total"),
    # 0.4 and the first 0.5 have deadlocks, later ones errors and reconnects behind the operations.
    ("deadlocks", _compile_labelled("deadlocks", "deadlocks"), "transactions"),
    ("read_write_requests", _compile_labelled("read/write requests", "read_write_requests"), "deadlocks"),
    ("other_operations", _compile_labelled("other operations", "other_operations"), "read_write_requests"),
    ("read_write_later", _compile_labelled("read/write requests", "read_write_requests"), "transactions"),
    ("other_operations_later", _compile_labelled("other operations", "other_operations"), "read_write_later"),
    ("queries", _compile_labelled("queries", "queries"), "transactions"),
    ("ignored_errors", _compile_labelled("ignored errors", "ignored_errors"), "other_operations_later queries"),
    ("reconnects", _compile_labelled("reconnects", "reconnects"), "ignored_errors"),
    ("general", compile_ascii(r"(?:Test execution summary|General statistics):"),
     "other_operations reconnects started done"),
    ("total_time", compile_ascii(rf"total time: +(?P<total_time_s>{S})s"), "general"),
    ("events", compile_ascii(rf"total number of events: +(?P<events>{N})"), "total_time"),
    ("taken", compile_ascii(rf"total time taken by event execution: +(?P<taken_s>{S})s?"), "events"),
    ("response", compile_ascii(r"(?:per-request statistics|response time):"), "taken"),
    ("latency", compile_ascii(r"Latency(?: statistics| \(ms\)):"), "events"),
    ("min", _compile_milliseconds("min", "latency_min_ms"), "response latency"),
    ("avg", _compile_milliseconds("avg", "latency_avg_ms"), "min"),
    ("max", _compile_milliseconds("max", "latency_max_ms"), "avg"),
    ("percentile", compile_ascii(rf"(?:approx\. +)?(?P<percentile>{K})(?:th)? percentile: +"
                     rf"(?P<latency_percentile_ms>{X})(?:ms)?"), "max"),
    ("sum", _compile_milliseconds("sum", "latency_sum_ms"), "percentile"),
    ("fairness", "Threads fairness:", "percentile sum"),
    ("thread_events", compile_ascii(rf"events \(avg/stddev\): +(?P<thread_events_avg>{S})/(?P<thread_events_stddev>{X})"),
     "fairness"),
    ("thread_time", compile_ascii(rf"execution time \(avg/stddev\): +(?P<thread_time_avg_s>{S})/"
                      rf"(?P<thread_time_stddev_s>{X})"), "thread_events"),
)  # fmt: skip
LEGACY = Grammar(LINES, has_blank_lines=False)
# Lines that only such versions print in their totals.
MARKS = (
    "total time taken by event execution:",
    "response time:",
    "per-request statistics:",
    "Latency statistics:",
)


def in_todays_terms(summary: Summary) -> Summary:
    """The same totals with the fields of 1.0: all queries, the sum of latencies in ms, errors."""
    queries, rate = summary.queries, summary.queries_per_s
    if queries is None and summary.total is not None and summary.total_time_s:
        queries, rate = summary.total, summary.total / summary.total_time_s
    total_ms = summary.latency_sum_ms
    if summary.taken_s is not None:
        total_ms = 1000 * summary.taken_s
    errors = summary.deadlocks if summary.ignored_errors is None else summary.ignored_errors
    return replace(
        summary, queries=queries, queries_per_s=rate, latency_sum_ms=total_ms, ignored_errors=errors
    )
