"""The kinds of lines sysbench prints, after which line each may stand, and which fields of a log it fills.

From the sources of sysbench 1.0.20 and 1.1.0 (src/sysbench.c, src/db_driver.c, src/sb_logger.c,
src/sb_histogram.c), for `run` without `--debug`. A state is the name of the last line; each blank line that
follows adds a `~`. Lines of other threads (intervals, messages) come in between and do not change the state.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

# Numbers as sysbench formats them; none has more digits than a 64-bit counter. What is below zero is told
# as such later, but zero has no sign, which a number would lose.
N = r"((?!-0)-?\d{1,18})"
X = r"((?!-0\.00)-?\d{1,18}\.\d{2}|-?inf|-?nan)"
S = r"(\d{1,18}\.\d{4})"
K = r"(\d{1,9})"


def P(pattern: str) -> re.Pattern[str]:
    """Compile a pattern whose digits are ASCII's: sysbench prints no others, and `int` would take them."""
    return re.compile(pattern, re.ASCII)


BAR = P(r" {0,10}(\d{1,9}\.\d{3}) \|[* ]{40} (\d{1,18})")

OPTIONS = "threads warm_up rate interval checkpoints"
MODES = f"{OPTIONS} validation~"
RUNNING = "started~ warming~"
BLOCK_END = "thread_time~"
TOTALS = "reconnects~ checkpoint~ histogram_end~ unfinished~ done~~ started~~ warming~~ thread_time~~"

# name, the line (a plain string where nothing varies), the states it may follow
LINES: tuple[tuple[str, str | re.Pattern[str], str], ...] = (
    ("version", P(r"sysbench (\d[\w.+~-]*) \(using ([\w.+ -]+)\)"), "start"),
    ("running", "Running the test with following options:", "version~"),
    ("threads", P(rf"Number of threads: {N}"), "running"),
    ("warm_up", P(rf"Warmup time: {N}s"), "threads"),
    ("rate", P(rf"Target transaction rate: {N}/sec"), "threads warm_up"),
    ("interval", P(rf"Report intermediate results every {N} second\(s\)"), "threads warm_up rate"),
    (
        "checkpoints",
        P(r"Report checkpoint\(s\) at (\d{1,9}(?:, \d{1,9})*) seconds"),
        "threads warm_up rate interval",
    ),
    ("validation", "Validation checks: on.", OPTIONS),
    ("seed", P(rf"Initializing random number generator from (?:current time|seed \({N}\)\.)"), MODES),
    ("forcing", P(rf"Forcing shutdown in {N} seconds"), "seed~"),
    ("workers", "Initializing worker threads...", "seed~~ forcing~"),
    ("started", "Threads started!", "workers~"),
    ("warming", P(rf"Warming up for {N} seconds\.\.\."), "started~"),
    ("done", "Done.", f"{RUNNING} {BLOCK_END}"),
    ("checkpoint", P(rf"\[ {N}s \] Checkpoint report:"), f"{RUNNING} {BLOCK_END}"),
    ("histogram", "Latency histogram (values are in milliseconds)", f"{RUNNING} {BLOCK_END} done~"),
    ("histogram_head", "       value  ------------- distribution ------------- count", "histogram"),
    ("bar", BAR, "histogram_head bar"),
    ("histogram_end", " ", "bar"),
    ("sql", "SQL statistics:", f"{RUNNING} {BLOCK_END} done~ checkpoint histogram_end"),
    ("performed", "    queries performed:", "sql"),
    ("reads", P(rf"        read: +{N}"), "performed"),
    ("writes", P(rf"        write: +{N}"), "reads"),
    ("other", P(rf"        other: +{N}"), "writes"),
    ("total", P(rf"        total: +{N}"), "other"),
    ("transactions", P(rf"    transactions: +{N} +\({X} per sec\.\)"), "total"),
    ("queries", P(rf"    queries: +{N} +\({X} per sec\.\)"), "transactions"),
    ("ignored_errors", P(rf"    ignored errors: +{N} +\({X} per sec\.\)"), "queries"),
    ("reconnects", P(rf"    reconnects: +{N} +\({X} per sec\.\)"), "ignored_errors"),
    ("unfinished", P(rf"Number of unfinished transactions on forced shutdown: {N}"), TOTALS),
    ("general", "General statistics:", TOTALS),
    ("throughput", "Throughput:", TOTALS),
    ("eps", P(rf"    events/s \(eps\): +{S}"), "throughput"),
    ("total_time", P(rf"    total time: +{S}s"), "general"),
    ("elapsed", P(rf"    time elapsed: +{S}s"), "eps"),
    ("events", P(rf"    total number of events: +{N}"), "total_time elapsed"),
    ("latency", "Latency (ms):", "events~"),
    ("min", P(rf"         min: +{X}"), "latency"),
    ("avg", P(rf"         avg: +{X}"), "min"),
    ("max", P(rf"         max: +{X}"), "avg"),
    ("percentile", P(rf" {{8,10}}(\d{{1,3}})th percentile: +{X}"), "max"),
    ("no_percentile", "         percentile stats:               disabled", "max"),
    ("sum", P(rf"         sum: +{X}"), "percentile no_percentile"),
    ("fairness", "Threads fairness:", "sum~"),
    ("thread_events", P(rf"    events \(avg/stddev\): +{S}/{X}"), "fairness"),
    ("thread_time", P(rf"    execution time \(avg/stddev\): +{S}/{X}"), "thread_events"),
)

REPORT = (
    r"\[ {k}s \] thds: {k} tps: {x} qps: {x} \(r/w/o: {x}/{x}/{x}\) "
    r"lat \(ms,{k}%\): {x} err/s{colon} {x} reconn/s: {x}"
)
INTERVAL = P(REPORT.format(k=K, x=X, colon="(:?)"))
# Many such lines in a row with nothing unusual in them, which can be read at once.
ALIKE = REPORT.format(k=r"\d{1,9}", x=r"\d{1,18}\.\d{2}", colon=":")
REPORTS = re.compile(rf"^(?:{ALIKE}\n){{8,}}", re.MULTILINE | re.ASCII)
INTERVAL_NO_DB = P(rf"\[ {K}s \] thds: {K} eps: {X} lat \(ms,{K}%\): {X}")
INTERVAL_05 = P(
    rf"\[ *{K}s\] threads: {K}, tps: +{X}, reads: +{X}, writes: +{X}, "
    rf"response time: +{X}ms \({K}%\), errors: +{X}, reconnects: +{X}"
)
QUEUE = P(r"\[ (\d{1,9})s \] queue length: (\d{1,18}),? concurrency: (\d{1,18})")
MARKED = P(r"(FATAL|ALERT|WARNING|DEBUG): ")
REPEATED = P(r"\(last message repeated \d+ times\)")
FAILURES = ("fatal", "alert")
CHATTER = frozenset({"Time limit exceeded, exiting...", "Event limit exceeded, exiting..."})


class Kind(NamedTuple):
    """One row of `LINES`: a name, and a test that returns what varies in the line, or None."""

    name: str
    line: str | re.Pattern[str]

    def match(self, line: str) -> tuple[str | None, ...] | None:
        """Return what the line says, or None if it is of another kind."""
        if isinstance(self.line, str):
            return () if line == self.line else None
        match = self.line.fullmatch(line)
        return None if match is None else match.groups()


KINDS = {name: Kind(name, line) for name, line, _ in LINES}
FOLLOWERS: dict[str, tuple[Kind, ...]] = {}
for _name, _, _after in LINES:
    for _state in _after.split():
        FOLLOWERS[_state] = (*FOLLOWERS.get(_state, ()), KINDS[_name])
BLANK_AFTER = frozenset(state[:-blanks] for state in FOLLOWERS for blanks in range(1, state.count("~") + 1))


Fields = tuple[tuple[str, Callable[[str], Any]], ...]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(", "))


OF_HEADER: dict[str, Fields] = {
    "version": (("version", str), ("lua", str)),
    "threads": (("threads", int),),
    "warm_up": (("warm_up_s", int),),
    "rate": (("rate", int),),
    "interval": (("interval_s", int),),
    "checkpoints": (("checkpoints_s", _numbers),),
    "seed": (("seed", int),),
    "forcing": (("forced_shutdown_s", int),),
}
OF_TOTALS: dict[str, Fields] = {
    **{name: ((name, int),) for name in ("reads", "writes", "other", "total", "unfinished", "events")},
    **{
        name: ((name, int), (f"{name}_per_s", float))
        for name in ("transactions", "queries", "ignored_errors", "reconnects")
    },
    **{name: ((f"latency_{name}_ms", float),) for name in ("min", "avg", "max", "sum")},
    "checkpoint": (("checkpoint_s", int),),
    "eps": (("events_per_s", float),),
    "total_time": (("total_time_s", float),),
    "elapsed": (("total_time_s", float),),
    "percentile": (("percentile", int), ("latency_percentile_ms", float)),
    "thread_events": (("thread_events_avg", float), ("thread_events_stddev", float)),
    "thread_time": (("thread_time_avg_s", float), ("thread_time_stddev_s", float)),
}


def values_of(fields: Fields, matched: tuple[str | None, ...]) -> dict[str, Any]:
    """Return the fields of a line by name, without those it left out."""
    pairs = zip(fields, matched, strict=True)
    return {name: convert(text) for (name, convert), text in pairs if text is not None}
