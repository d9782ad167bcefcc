"""Runs read from files of any kind, as plain numbers so that ten thousand fit, and a line for each other."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchbook.core.util import parallel
from benchbook.log_analysis.caveats import Caveat, caveats_of_log
from benchbook.read import log_extraction
from benchbook.read.intervals import ReportLine
from benchbook.read.log import Summary, SysbenchLog, merge_logs
from benchbook.read.log_extraction import MOST_BYTES, Output

SERIES = ("second", "threads", "tps", "qps", "latency_percentile_ms", "errors_per_s", "reconnects_per_s")
FILES_A_TASK = 25
_SKIPPED = {".git", ".svn", "__pycache__", "node_modules", ".venv"}
_COMMAND = re.compile(r"(?:^|[\s/'\"`;&|+])sysbench\s[^\n]*?\s(?:run)\b[^\n]*", re.MULTILINE)
_SCRIPT = re.compile(r"(?!-)[\w./-]*(?:oltp|select|bulk|tpcc|\.lua)\w*(?:\.lua)?")
# Options that say what a run was; no account is ever among them.
_OPTIONS = {
    "threads": "threads", "num-threads": "threads", "time": "time_s", "max-time": "time_s", "rate": "rate",
    "tx-rate": "rate", "events": "events", "max-requests": "events", "tables": "tables",
    "oltp-tables-count": "tables", "table-size": "table_size", "table_size": "table_size",
    "oltp-table-size": "table_size", "mysql-host": "host", "pgsql-host": "host", "mysql-port": "port",
    "pgsql-port": "port", "db-driver": "driver", "db-ps-mode": "ps_mode", "rand-type": "rand_type",
    "report-interval": "interval_s", "scale": "scale",
}  # fmt: skip
_OTHER_TESTS = (
    ("CPU", r"Prime numbers limit|CPU speed:|Maximum prime number"),
    ("memory", r"Running memory speed test|Memory operations type|transferred \("),
    ("file I/O", r"Extra file open flags|File operations:|Number of random requests for"),
    ("threads", r"Running threads scheduling|thread_yields|Doing thread subsystem"),
    ("mutex", r"Doing mutex performance test|mutex"),
)


@dataclass(frozen=True)
class LogRun:
    """One whole run; rates are per second of all of it, latencies in ms, `series` has columns where kept."""

    path: str
    line: int
    order: int
    version: str
    threads: int
    time_s: float
    events: int
    tps: float
    qps: float
    reads: int
    writes: int
    other: int
    errors: int
    reconnects: int
    avg_ms: float
    max_ms: float
    percentile: int | None
    percentile_ms: float | None
    interval_s: int | None
    rate: int
    options: dict[str, str]
    heading: str
    undone: tuple[str, ...]
    caveats: tuple[Caveat, ...]
    ended_at: float | None
    digest: str
    series: dict[str, Any] | None = None
    histogram: tuple[Any, Any] | None = None
    log: SysbenchLog | None = None
    arm: str = ""
    workload: str = ""
    level: int = 0
    repeat: str = ""
    process: str = ""
    processes: int = 1

    @property
    def place(self) -> str:
        """File, with the first line of the run if it is not the first."""
        return f"{self.path}:{self.line}" if self.line > 1 else self.path


@dataclass(frozen=True)
class SkippedFile:
    """A file, or a part of one, that is no run; `reason` explains it in a line."""

    path: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}" if self.line else f"{self.path}: {self.reason}"


@dataclass
class Collection:
    """All runs of some files, the parts left out, and the number of files without sysbench."""

    runs: list[LogRun] = field(default_factory=list)
    left_out: list[SkippedFile] = field(default_factory=list)
    files: int = 0
    silent_files: int = 0
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, part: Part) -> None:
        """Add what one file has."""
        runs, left_out, has_output = part
        self.runs += runs
        self.left_out += left_out
        self.files += 1
        self.silent_files += not has_output


def collect_runs(paths: Sequence[str | os.PathLike[str]], keeps_series: bool = False) -> Collection:
    """Runs of files, folders, globs and `-` for standard input."""
    collection = Collection()
    files: list[str] = []
    for path in (os.fspath(path) for path in paths):
        if path == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
            collection.add(_read_bytes("standard input", data, keeps_series, None))
        else:
            files += _list_files(path, collection)
    files = [*dict.fromkeys(files)]
    tasks = [files[at : at + FILES_A_TASK] for at in range(0, len(files), FILES_A_TASK)]
    with parallel.map_tasks(len(files)) as each:
        for result in each(partial(_read_files, keeps_series=keeps_series), tasks):
            for part in result:
                collection.add(part)
    collection.texts = _read_descriptions(files)
    return _without_copies(collection)


def _list_files(path: str, collection: Collection) -> list[str]:
    """Files of a path, with a line for every folder that can't be read."""
    if not os.path.lexists(path):
        import glob

        results = sorted(glob.glob(path, recursive=True))
        if not results:
            collection.left_out.append(SkippedFile(path, None, "no such file or folder"))
        return [name for text in results for name in _list_files(text, collection)]
    if not os.path.isdir(path):
        return [path]
    files = []

    def note(error: OSError) -> None:
        collection.left_out.append(SkippedFile(error.filename, None, f"can't be read ({error.strerror})"))

    for folder, folders, names in os.walk(path, onerror=note):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        files += [os.path.join(folder, name) for name in sorted(names)]
    return files


Part = tuple[list[LogRun], list[SkippedFile], bool]


def _read_files(paths: list[str], keeps_series: bool) -> list[Part]:
    return [_read_file(path, keeps_series) for path in paths]


def _read_file(path: str, keeps_series: bool) -> Part:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return _skip_file(path, "no plain file")
        if status.st_size > MOST_BYTES:
            size = f"{status.st_size / 1e9:.1f} GB" if status.st_size > 1e9 else f"{status.st_size >> 20} MiB"
            return _skip_file(path, f"{size}, which no log of sysbench is: cut the run out of it")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        return _skip_file(path, f"can't be read ({error.strerror})")
    return _read_bytes(_printable_path(path), data, keeps_series, status.st_mtime)


def _skip_file(path: str, reason: str) -> Part:
    return [], [SkippedFile(_printable_path(path), None, reason)], True


def _printable_path(path: str) -> str:
    """A path of any bytes as text that can be printed."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")


def _read_bytes(path: str, data: bytes, keeps_series: bool, ended_at: float | None) -> Part:
    if not log_extraction.may_hold_output(data):
        return [], [], False
    try:
        text, undone = log_extraction.decode_text(data)
    except log_extraction.NotText as error:
        return [], [SkippedFile(path, None, str(error))], True
    runs: list[LogRun] = []
    left_out: list[SkippedFile] = []
    outputs = log_extraction.extract_outputs(text, undone)
    for order, output in enumerate(outputs, 1):
        # Only of the last run in a file the file's own time says when it ended.
        at = ended_at if order == len(outputs) else None
        run = read_run(path, order, output, keeps_series, at)
        if isinstance(run, LogRun):
            runs.append(run)
        else:
            left_out.append(run)
    return runs, left_out, bool(outputs)


def read_run(
    path: str, order: int, output: Output, keeps_series: bool, ended_at: float | None
) -> LogRun | SkippedFile:
    """The run of one output, or the reason that it is none."""
    log, foreign = log_extraction.parse_output(output)
    line = output.line_of(1) or 1
    place = path, line if line > 1 else None
    total = log.final
    if "SQL statistics" not in output.text and _name_of_test(output.text):
        return SkippedFile(*place, _other_test(path, log, output))
    if log.status != "complete" or total is None or log.header.threads is None:
        return SkippedFile(*place, _explain_refusal(log, output))
    if (qps := _find_qps(log, total)) is None:
        return SkippedFile(*place, _other_test(path, log, output))
    options, fields = _parse_options(output.before), _total_fields(total)
    if total.taken_s is not None and "Skipping BEGIN/COMMIT" in output.text:
        # 0.4 counts BEGIN and COMMIT as other queries where it sends none.
        qps, fields["other"] = (fields["reads"] + fields["writes"]) / fields["time_s"], 0
    run = LogRun(
        path=path, line=line, order=order, version=log.header.version or "", threads=log.header.threads,
        **fields, tps=fields["events"] / fields["time_s"], qps=qps,
        interval_s=log.header.interval_s, rate=log.header.rate, options=options,
        heading=_last_heading(output.before), undone=output.undone,
        caveats=tuple(caveats_of_log(path, output, log, foreign, options)),
        ended_at=ended_at, digest=hashlib.sha256(" ".join(output.text.split()).encode()).hexdigest(), log=log,
    )  # fmt: skip
    if keeps_series:
        bars = log.histogram
        run = replace(
            run, series=_columns_of(log), histogram=None if bars is None else (bars.buckets, bars.counts)
        )
    # A log is needed once more where processes may have run together.
    return run if _MAY_BE_PROCESS.search(path) else replace(run, log=None)


def _columns_of(log: SysbenchLog) -> dict[str, Any]:
    return {name: log.intervals.column(name) for name in SERIES}


def _find_qps(log: SysbenchLog, total: Summary) -> float | None:
    """Queries a second of a run: of its totals, or of its report hooks, whose cumulative line is the last."""
    if total.queries_per_s is not None or not log.intervals:
        return total.queries_per_s
    last: ReportLine = log.intervals[-1]
    if last.qps is None or not last.is_hook:
        return None
    return last.qps if last.threads == 0 else float(np.mean(log.intervals.column("qps")))


# Fields of a run, what its totals call them, and what they are where a line was not there.
_OF_TOTALS = {
    "time_s": ("total_time_s", 0.0), "events": ("events", 0), "reads": ("reads", 0), "writes": ("writes", 0),
    "other": ("other", 0), "errors": ("ignored_errors", 0), "reconnects": ("reconnects", 0),
    "avg_ms": ("latency_avg_ms", 0.0), "max_ms": ("latency_max_ms", 0.0), "percentile": ("percentile", None),
}  # fmt: skip


def _total_fields(total: Summary) -> dict[str, Any]:
    fields = {name: getattr(total, its) or otherwise for name, (its, otherwise) in _OF_TOTALS.items()}
    return {**fields, "percentile_ms": total.latency_percentile_ms}


_MAY_BE_PROCESS = re.compile(
    r"(?i)(?<![a-z])(?:p|proc(?:ess)?|client|inst(?:ance)?|worker)[-_]?\d+(?![\da-z])"
)


def _explain_refusal(log: SysbenchLog, output: Output) -> str:
    """Reason that an output is no whole run, with all it says even so."""
    if log.status == "failed":
        return f"failed: {_shorten_text(log.why[0])}"
    if log.summaries:
        return f"no whole run: {_shorten_text(log.why[0]) if log.why else log.status}"
    reports = [report for report in log.intervals if report.threads]
    if reports and not output.is_headed:
        return _describe_report_lines(reports)
    last = f" at {reports[-1].second:g} s" if reports else ""
    text = f"cut{last} after {len(reports)} report lines: no totals"
    return f"{text} (it died, was stopped, or is still being written)"


def _describe_report_lines(reports: Sequence[ReportLine]) -> str:
    """Throughput of report lines without their run, and the second from which threads hang, if any do."""
    rate = float(np.mean([report.tps if report.qps is None else report.qps for report in reports]))
    most = max(report.threads for report in reports)
    text = f"{len(reports)} report lines without their run: mean {rate:,.2f} qps, {most} threads"
    first = next((report for report in reports if report.threads < most), None)
    if first is None:
        return text
    before = float(np.mean([report.qps or 0.0 for report in reports if report.threads == most]))
    return f"{text}; from {first.second:g} s on {first.threads} threads hang, {before:,.0f} qps before"


def _shorten_text(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 160 else f"{text[:157]}…"


def _name_of_test(text: str) -> str | None:
    return next((name for name, pattern in _OTHER_TESTS if re.search(pattern, text)), None)


def _other_test(path: str, log: SysbenchLog, output: Output) -> str:
    name = _name_of_test(f"{output.text}\n{output.before[-300:]}\n{os.path.basename(path)}")
    rate = (log.final.events or 0) / (log.final.total_time_s or 1.0) if log.final else 0.0
    if name is None:
        return f"whole, but a test without SQL (mutex, threads or an own script): {rate:,.0f} events a second"
    return f"sysbench's {name} test, not a database: {rate:,.0f} events a second"


def _parse_options(before: str) -> dict[str, str]:
    """Options of the last command line of sysbench in a text."""
    commands = _COMMAND.findall(re.sub(r"\\\n\s*", " ", before))
    options: dict[str, str] = {}
    for word in re.sub("['\"]", "", commands[-1]).split() if commands else ():
        name, _, value = word.lstrip("-").partition("=")
        if word.startswith("--") and value and name in _OPTIONS:
            options[_OPTIONS[name]] = value
        elif (word.startswith("--test=") and value) or _SCRIPT.fullmatch(word):
            options["script"] = os.path.basename(value or word).removesuffix(".lua")
    return options


def _last_heading(before: str) -> str:
    """Last heading of Markdown above a run, if any."""
    results = re.findall(r"^(?:#{1,6} +([^#\s-].*?)#*|\*\*(.+?)\*\*:?)$", before, re.MULTILINE)
    return (results[-1][0] or results[-1][1]).strip() if results else ""


def _without_copies(collection: Collection) -> Collection:
    """The same runs once each: a copy is no repetition."""
    first: dict[str, LogRun] = {}
    kept = []
    for run in collection.runs:
        if (same := first.setdefault(run.digest, run)) is run:
            kept.append(run)
        else:
            reason = f"a copy of {same.place}, which is no repetition"
            collection.left_out.append(SkippedFile(run.path, run.line if run.line > 1 else None, reason))
    collection.runs = kept
    return collection


def _read_descriptions(files: Iterable[str]) -> dict[str, str]:
    """Texts that describe folders, by path: DESC, params.txt and the like."""
    texts = {}
    for path in files:
        if re.fullmatch(r"(?i)(?:desc(?:ription)?|params|info)(?:\.(?:txt|md))?", os.path.basename(path)):
            try:
                if os.stat(path).st_size <= 1 << 16:
                    texts[path] = Path(path).read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
    return texts


def join_processes(runs: Sequence[LogRun]) -> list[LogRun]:
    """Runs with those processes added up that measured together; percentiles follow from histograms alone."""
    groups: dict[tuple[object, ...], list[LogRun]] = {}
    for run in runs:
        key: tuple[object, ...] = (run.arm, run.workload, run.level, run.repeat)
        groups.setdefault(key if run.process and run.log is not None else (*key, run.place), []).append(run)
    return [joined for group in groups.values() for joined in _join_processes(group)]


def _join_processes(group: list[LogRun]) -> Iterator[LogRun]:
    logs = [run.log for run in group if run.log is not None]
    log = merge_logs(logs) if len(group) > 1 and _can_overlap(group) else None
    total = None if log is None else log.final
    if log is None or total is None or total.queries_per_s is None:
        yield from group
        return
    first, threads = group[0], sum(run.threads for run in group)
    caveats = (_describe_sum(group, total), *chain.from_iterable(run.caveats for run in group))
    yield replace(
        first,
        **_total_fields(total),
        threads=threads, tps=sum(run.tps for run in group), qps=total.queries_per_s, caveats=caveats,
        series=first.series and _columns_of(log), processes=len(group), level=threads,
    )  # fmt: skip


def _describe_sum(group: list[LogRun], total: Summary) -> Caveat:
    places = ", ".join(run.place for run in group[1:])
    text = f"{len(group)} processes that ran together are added up (with {places})"
    if total.percentile is None:
        text += "; their percentiles can't be put together without histograms"
    return Caveat(group[0].path, None, "processes", text)


def _can_overlap(group: list[LogRun]) -> bool:
    """True if runs can have measured at the same time: equal lengths, and no times that deny it."""
    if max(run.time_s for run in group) > 1.25 * min(run.time_s for run in group):
        return False
    ends = [run.ended_at for run in group if run.ended_at is not None]
    return len(ends) < len(group) or max(ends) - min(ends) < min(run.time_s for run in group)
