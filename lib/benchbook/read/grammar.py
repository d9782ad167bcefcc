"""Kinds of lines sysbench prints, the lines each may follow, and the fields of a log it fills.

From the sources of sysbench 1.0.20 and 1.1.0 (src/sysbench.c, src/db_driver.c, src/sb_logger.c,
src/sb_histogram.c), for `run` without `--debug`. A state is the name of the last line; each blank line that
follows adds a `~`. Lines of other threads (intervals, messages) come in between and do not change the state.
"""

import re
from collections.abc import Callable
from typing import Any

Lines = tuple[tuple[str, str | re.Pattern[str], str], ...]
Fields = dict[str, Any]

# Numbers as sysbench formats them; none has more digits than a 64-bit counter. What is below zero is named
# as such later, but zero has no sign, which a number would lose.
X = r"(?!-0\.00)-?\d{1,18}\.\d{2}|-?inf|-?nan"
K = r"\d{1,9}"
NUMBERS = {"N": r"(?!-0)-?\d{1,18}", "X": X, "S": r"\d{1,18}\.\d{4}", "K": K}


def compile_ascii(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of ASCII digits: sysbench prints no others, and `int` would take them."""
    return re.compile(pattern, re.ASCII)


def rate_line(label: str, field: str) -> str:
    """The line of a count and its rate."""
    return rf"{label}: +<{field}:N> +\(<{field}_per_s:X> per sec\.\)"


BAR = compile_ascii(r" {0,10}(\d{1,9}\.\d{3}) \|[* ]{40} (\d{1,18})")
BAR_NARROW = compile_ascii(r"(\d{1,9}\.\d{3}) \|\*{0,40} ?(\d{1,18})")

THREADS = "threads warm_up"
OPTIONS = f"{THREADS} rate interval checkpoints"
RUNNING = "started~ warming~"
BLOCK_END = "thread_time~"
TOTALS = "reconnects~ checkpoint~ histogram_end~ unfinished~ done~~ started~~ warming~~ thread_time~~"

# Name, line, and the states it may follow. A line with `<field:KIND>`, a number of `NUMBERS` for a field of a
# log, is a pattern, any other a plain text.
LINES: Lines = (
    ("version", compile_ascii(r"sysbench (?P<version>\d[\w.+~-]*) \(using (?P<lua>[\w.+ -]+)\)"), "start"),
    ("running", "Running the test with following options:", "version~"),
    ("threads", "Number of threads: <threads:N>", "running"),
    ("warm_up", "Warmup time: <warm_up_s:N>s", "threads"),
    ("rate", "Target transaction rate: <rate:N>/sec", "threads warm_up"),
    ("interval", r"Report intermediate results every <interval_s:N> second\(s\)", f"{THREADS} rate"),
    ("checkpoints", compile_ascii(rf"Report checkpoint\(s\) at (?P<checkpoints_s>{K}(?:, {K})*) seconds"),
     f"{THREADS} rate interval"),
    ("validation", "Validation checks: on.", OPTIONS),
    ("seed", r"Initializing random number generator from (current time|seed \(<seed:N>\)\.)",
     f"{OPTIONS} validation~"),
    ("forcing", "Forcing shutdown in <forced_shutdown_s:N> seconds", "seed~"),
    ("workers", "Initializing worker threads...", "seed~~ forcing~"),
    ("started", "Threads started!", "workers~"),
    ("warming", r"Warming up for <warm_up_s:N> seconds\.\.\.", "started~"),
    ("done", "Done.", f"{RUNNING} {BLOCK_END}"),
    ("checkpoint", r"\[ <checkpoint_s:N>s \] Checkpoint report:", f"{RUNNING} {BLOCK_END}"),
    ("histogram", "Latency histogram (values are in milliseconds)", f"{RUNNING} {BLOCK_END} done~"),
    ("histogram_head", "       value  ------------- distribution ------------- count", "histogram"),
    ("bar", BAR, "histogram_head bar"),
    ("histogram_end", " ", "bar"),
    ("sql", "SQL statistics:", f"{RUNNING} {BLOCK_END} done~ checkpoint histogram_end"),
    ("performed", "    queries performed:", "sql"),
    ("reads", "        read: +<reads:N>", "performed"),
    ("writes", "        write: +<writes:N>", "reads"),
    ("other", "        other: +<other:N>", "writes"),
    ("total", "        total: +<total:N>", "other"),
    ("transactions", rate_line("    transactions", "transactions"), "total"),
    ("queries", rate_line("    queries", "queries"), "transactions"),
    ("ignored_errors", rate_line("    ignored errors", "ignored_errors"), "queries"),
    ("reconnects", rate_line("    reconnects", "reconnects"), "ignored_errors"),
    ("unfinished", "Number of unfinished transactions on forced shutdown: <unfinished:N>", TOTALS),
    ("general", "General statistics:", TOTALS),
    ("throughput", "Throughput:", TOTALS),
    ("eps", r"    events/s \(eps\): +<events_per_s:S>", "throughput"),
    ("total_time", "    total time: +<total_time_s:S>s", "general"),
    ("elapsed", "    time elapsed: +<total_time_s:S>s", "eps"),
    ("events", "    total number of events: +<events:N>", "total_time elapsed"),
    ("latency", "Latency (ms):", "events~"),
    ("min", "         min: +<latency_min_ms:X>", "latency"),
    ("avg", "         avg: +<latency_avg_ms:X>", "min"),
    ("max", "         max: +<latency_max_ms:X>", "avg"),
    ("percentile", compile_ascii(
        rf" {{8,10}}(?P<percentile>\d{{1,3}})th percentile: +(?P<latency_percentile_ms>{X})"), "max"),
    ("no_percentile", "         percentile stats:               disabled", "max"),
    ("sum", "         sum: +<latency_sum_ms:X>", "percentile no_percentile"),
    ("fairness", "Threads fairness:", "sum~"),
    ("thread_events", r"    events \(avg/stddev\): +<thread_events_avg:S>/<thread_events_stddev:X>",
     "fairness"),
    ("thread_time", r"    execution time \(avg/stddev\): +<thread_time_avg_s:S>/<thread_time_stddev_s:X>",
     "thread_events"),
)  # fmt: skip

REPORT = (
    r"\[ {k}s \] thds: {k} tps: {x} qps: {x} \(r/w/o: {x}/{x}/{x}\) "
    r"lat \(ms,{k}%\): {x} err/s{colon}{x} reconn/s: {x}"
)
# sysbench's report hooks leave out a colon.
INTERVAL = compile_ascii(REPORT.format(k=f"({K})", x=f"({X})", colon="(?:: |( ))"))
# Many such lines in a row with nothing unusual in them, which can be read at once.
ALIKE = REPORT.format(k=K, x=r"\d{1,18}\.\d{2}", colon=": ")
REPORTS = re.compile(rf"^(?:{ALIKE}\n){{8,}}", re.MULTILINE | re.ASCII)
INTERVAL_NO_DB = compile_ascii(rf"\[ ({K})s \] thds: ({K}) eps: ({X}) lat \(ms,({K})%\): ({X})")
INTERVAL_05 = compile_ascii(
    rf"\[ *({K})s\] (?:timestamp: \d+, )?threads: ({K}), tps: +({X}), reads(?:/s)?: +({X}), "
    rf"writes(?:/s)?: +({X}), response time: +({X})ms \(({K})%\)(?:, errors: +({X}), reconnects: +({X}))?"
)
# `sysbench.report_csv`, and the lines of one object of `sysbench.report_json`, in their order.
INTERVAL_CSV = compile_ascii(",".join([f"({K})"] * 2 + [f"({X})"] * 8))
JSON_KEYS = ("total", "reads", "writes", "other")
JSON_LINES = (
    compile_ascii(r"\{"), compile_ascii(rf'"time": ({K}),'), compile_ascii(rf'"threads": ({K}),'),
    compile_ascii(rf'"tps": ({X}),'), compile_ascii(r'"qps": \{'),
    *(compile_ascii(rf'"{key}": ({X}){"" if key == "other" else ","}') for key in JSON_KEYS),
    compile_ascii(r"\},"), compile_ascii(rf'"latency": ({X}),'), compile_ascii(rf'"errors": ({X}),'),
    compile_ascii(rf'"reconnects": ({X})'), compile_ascii(r"\},?"),
)  # fmt: skip
QUEUE = compile_ascii(r"\[ (\d{1,9})s \] queue length: (\d{1,18}),? concurrency: (\d{1,18})")
MARKED = compile_ascii(r"(FATAL|ALERT|WARNING|DEBUG): ")
REPEATED = compile_ascii(r"\(last message repeated \d+ times\)")
FAILURES = ("fatal", "alert")
CHATTER = frozenset({"Time limit exceeded, exiting...", "Event limit exceeded, exiting..."})

# Fields that hold no single number.
READ: dict[str, Callable[[str], Any]] = {
    "version": str,
    "lua": str,
    "checkpoints_s": lambda text: tuple(int(part) for part in text.split(", ")),
}


class Grammar:
    """Kinds of lines by name, and the kinds that may follow each state.

    With `has_blank_lines` a blank line is a state of its own; otherwise blank lines and runs of blanks say
    nothing, as in logs that went through editors, terminals and issues.
    """

    def __init__(self, lines: Lines, has_blank_lines: bool = True) -> None:
        self.kinds = {name: _compile_line(line, has_blank_lines) for name, line, _ in lines}
        self.followers: dict[str, tuple[str, ...]] = {}
        for name, _, after in lines:
            for state in dict.fromkeys((after if has_blank_lines else after.replace("~", "")).split()):
                self.followers[state] = (*self.followers.get(state, ()), name)
        ends = (state[:-blanks] for state in self.followers for blanks in range(1, state.count("~") + 1))
        self.blank_after = frozenset(ends)
        self.block_end = BLOCK_END if has_blank_lines else BLOCK_END.rstrip("~")
        if not has_blank_lines:
            # The line of one blank behind a histogram is blank, too.
            self.followers["bar"] = (*self.followers.get("bar", ()), *self.followers.get("histogram_end", ()))

    def read_fields(self, name: str, line: str) -> Fields | None:
        """Fields that a line fills, without those it leaves out; None if it is of another kind."""
        kind = self.kinds[name]
        if isinstance(kind, str):
            return {} if line == kind else None
        if (match := kind.fullmatch(line)) is None:
            return None
        # A number with a point, infinity and NaN are floats.
        return {
            field: READ.get(field, int if text.lstrip("-").isdigit() else float)(text)
            for field, text in match.groupdict().items()
            if text is not None
        }


def _compile_line(line: str | re.Pattern[str], has_indent: bool) -> str | re.Pattern[str]:
    """A line as its pattern or text, without blanks that say nothing unless it has its indentation."""
    if isinstance(line, str):
        pattern = re.sub(r"<(\w+):([NXSK])>", lambda field: f"(?P<{field[1]}>{NUMBERS[field[2]]})", line)
        if pattern == line:
            return line if has_indent else " ".join(line.split())
    else:
        pattern = line.pattern
    if has_indent:
        return compile_ascii(pattern)
    return BAR_NARROW if line is BAR else compile_ascii(re.sub(r"^ +(?:\{\d+,\d+\})?", "", pattern))


STRICT = Grammar(LINES)
RELAXED = Grammar(LINES, has_blank_lines=False)
