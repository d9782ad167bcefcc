"""The outputs of sysbench in a file, taken out of whatever tools and people put around them.

What tools and editors do to lines is undone and named: other encodings and line ends, compression, colours,
time stamps, names of pods and services, quotes. What sysbench printed stays as it is, and is judged by the
strict parser; only blank lines and indentation say nothing any more.
"""

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple

from benchbook.read import grammar, sysbench_legacy
from benchbook.read.intervals import parse_hook_values, parse_interval_line
from benchbook.read.log import SysbenchLog
from benchbook.read.sysbench_log import BLOCK_STARTS, Reader, quote_line, read_lines

MOST_BYTES = 64 << 20
"""Longest text that is looked into: an hour by seconds with a histogram has half a megabyte."""
AROUND_LINES = 25

_VERSION = r"sysbench v?\d[\w.+~-]*(?::? +multi-threaded system evaluation benchmark| \(using [\w.+ -]+\))"
_WORDS = (b"sysbench", b"thds:", b"Threads fairness", b"s\x00y\x00s\x00b\x00e\x00n\x00c\x00h", b"threads: ")
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>])")
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff]")
_TRAILING = re.compile(r"[ \t]+$", re.MULTILINE)
_ANY_VERSION = re.compile(rf"^(?P<prefix>.*?){_VERSION}[ \t]*$", re.MULTILINE)
_ANY_REPORT = re.compile(r"^(?P<prefix>.*?)\[ *\d+s ?\] (?:thds|threads): ", re.MULTILINE)
_MARKS = re.compile(
    rf"^[ \t]*(?:(?P<version>{_VERSION})|(?P<running>Running the test with following options:)"
    r"|(?P<checkpoint>\[ \d+s \] Checkpoint report:)|(?P<end>execution time \(avg/stddev\):.*))$",
    re.MULTILINE,
)
_VERSION_ALONE = re.compile(rf"\s*{_VERSION}\s*")
# Lines that only sysbench prints; outside of an output they are a part of one.
_CONTENT = re.compile(
    r"^[ \t]*(?:\[ *\d+s ?\] (?:thds|threads): .*|(?:OLTP test|SQL|General) statistics:|Throughput:"
    r"|Test execution summary:|Latency \(ms\):|Threads fairness:|(?:events|execution time) \(avg/stddev\):.*"
    r"|(?:transactions|queries|ignored errors|reconnects): +\d+ +\(.* per sec\.\)|Threads started!"
    r"|total number of events: .*|total time: .*)$",
    re.MULTILINE,
)
# What stands before each line, by what puts it there; a group tells several writers of a stream apart.
_STAMP = "time stamps"
_PREFIXES: tuple[tuple[str, str], ...] = (
    ("quotes of Markdown", r"(?:> ?)+"),
    ("names of pods", r"\[pod/([^\]]+)\] ?"),
    ("names of services", r"([\w.-]+) +\| ?"),
    (_STAMP, r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?\]?:? ?"),
    (_STAMP, r"\[?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?\]? ?"),
    (_STAMP, r"\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?:? ?"),
    (_STAMP, r"\d{10}(?:\.\d{1,9})?:? ?"),
    ("names of units", r"([\w.-]+ [\w@.:/-]+\[\d+\]): ?"),
    ("names of hosts", r"([\w.-]+): ?"),
    ("line numbers", r" *\d+(?:[:\t] ?|$)"),
    ("indentation", r"[ \t]*"),
)


@dataclass(frozen=True)
class Output:
    """One output of sysbench in a file: text, numbers of its lines, lines around it, and what was undone."""

    text: str
    numbers: Sequence[int]
    before: str
    after: str
    undone: tuple[str, ...]
    is_headed: bool

    def line_of(self, line: int | None) -> int | None:
        """Line number in the file of a line of this output, counted from 1."""
        if line is None or not self.numbers:
            return None
        return self.numbers[min(max(line, 1), len(self.numbers)) - 1]


class _Stream(NamedTuple):
    lines: list[str]
    numbers: list[int]


class NotText(ValueError):
    """A file that holds no text; the message names its kind."""


def may_hold_output(data: bytes) -> bool:
    """True if bytes may hold anything of sysbench; compressed ones may."""
    return any(word in data for word in _WORDS) or _detect_compression(data) is not None


def _detect_compression(data: bytes) -> str | None:
    magic = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}
    return next((name for head, name in magic.items() if data.startswith(head)), None)


def decode_text(data: bytes) -> tuple[str, list[str]]:
    """Text of a file, and the steps undone to get it. Raises NotText."""
    undone = []
    if (name := _detect_compression(data)) is not None:
        data = _decompress_bytes(name, data)
        undone.append(name)
    encoding = "utf-8"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif data[:3] == b"\xef\xbb\xbf":
        encoding = "utf-8-sig"
    elif max(data[:400:2].count(0), data[1:400:2].count(0)) > len(data[:400]) // 4:
        encoding = "utf-16-le" if data[1:400:2].count(0) else "utf-16-be"
    text = data.decode(encoding, errors="replace")
    if encoding != "utf-8":
        undone.append("byte order mark" if encoding == "utf-8-sig" else "UTF-16")
    if "\0" in text and text.count("\0") > len(text) // 100:
        raise NotText("binary, no text")
    return text, undone


def _decompress_bytes(name: str, data: bytes) -> bytes:
    makers: dict[str, Callable[[], Any]] = {
        "gzip": partial(zlib.decompressobj, 47),
        "xz": lzma.LZMADecompressor,
        "bzip2": bz2.BZ2Decompressor,
    }
    text, left = b"", data
    try:
        if name == "zstd":
            import pyarrow

            with pyarrow.CompressedInputStream(pyarrow.py_buffer(data), "zstd") as stream:
                text, left = stream.read(MOST_BYTES + 1), b""
        # Files that were appended to each other have several members.
        while left and len(text) <= MOST_BYTES:
            machine = makers[name]()
            text += machine.decompress(left, MOST_BYTES + 1 - len(text))
            left = machine.unused_data if machine.eof else b""
    except (OSError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise NotText(f"{name} that can't be unpacked ({error})") from None
    if len(text) > MOST_BYTES:
        raise NotText(f"more than {MOST_BYTES >> 20} MiB when unpacked, which no log of sysbench is")
    return text


def extract_outputs(text: str, undone: Sequence[str] = ()) -> list[Output]:
    """Outputs of sysbench in a text, in their order, parts of outputs included."""
    undone = list(undone)
    streams = _split_streams(_strip_markup(text, undone), undone)
    return [output for stream in streams for output in _iter_outputs(stream, tuple(undone))]


def _strip_markup(text: str, undone: list[str]) -> str:
    if "\r" in text:
        undone.append("line ends of Windows")
        text = re.sub(r"\r*\n", "\n", text)
        text = text.replace("\r", "" if "\n" in text else "\n")
    for what, mark, pattern, other in (
        ("colours", "\x1b", _ANSI, ""),
        ("no-break spaces", "\xa0", re.compile("\xa0"), " "),
        ("invisible characters", "", _INVISIBLE, ""),
    ):
        if mark in text and (mark or not text.isascii()) and pattern.search(text):
            undone.append(what)
            text = pattern.sub(other, text)
    if " \n" in text or "\t\n" in text:
        text = _TRAILING.sub("", text)
    return text


def _split_streams(text: str, undone: list[str]) -> list[_Stream]:
    """Lines of a text by their writer, without the prefix of each."""
    matches = [*_ANY_VERSION.finditer(text)] or [*_ANY_REPORT.finditer(text)]
    prefix = next((match["prefix"] for match in matches if match["prefix"].strip()), "")
    lines = text.split("\n")
    if not prefix:
        return [_Stream(lines, [*range(1, len(lines) + 1)])]
    kinds = _kinds_of_prefix(prefix)
    if kinds is None:
        return [_without_literal(lines, prefix, undone)]
    undone.extend(name for name in dict.fromkeys(name for name, _ in kinds) if name not in undone)
    pattern = re.compile("".join(regex for _, regex in kinds))
    streams: dict[str, _Stream] = {}
    for number, line in enumerate(lines, 1):
        match = pattern.match(line)
        if match is None and pattern.groups and not line.strip():
            continue
        source, end = (" ".join(match.groups()), match.end()) if match else ("", 0)
        stream = streams.setdefault(source, _Stream([], []))
        stream.lines.append(line[end:])
        stream.numbers.append(number)
    return [*streams.values()]


def _kinds_of_prefix(prefix: str) -> list[tuple[str, str]] | None:
    """Kinds that a prefix is made of, in their order; None if it holds anything else."""
    if not prefix:
        return []
    for name, regex in _PREFIXES:
        match = re.match(regex, prefix)
        if match is not None and match.end():
            rest = _kinds_of_prefix(prefix[match.end() :])
            if rest is not None:
                return [(name, regex), *rest]
    return None


def _without_literal(lines: list[str], prefix: str, undone: list[str]) -> _Stream:
    """Lines without a text that most of them begin with, or with a line of its own for it."""
    bare = prefix.rstrip()
    with_it = sum(line.startswith(bare) for line in lines)
    if with_it >= 0.5 * len(lines):
        undone.append(f"{prefix.strip()!r} before each line")
        kept = [line[len(prefix) :] if line.startswith(bare) else line for line in lines]
        return _Stream(kept, [*range(1, len(lines) + 1)])
    undone.append("text before the first line")
    stream = _Stream([], [])
    for number, line in enumerate(lines, 1):
        match = _ANY_VERSION.match(line)
        is_split = match is not None and match["prefix"].strip()
        parts = [match["prefix"], line[match.end("prefix") :]] if match and is_split else [line]
        stream.lines.extend(parts)
        stream.numbers.extend([number] * len(parts))
    return stream


def _iter_outputs(stream: _Stream, undone: tuple[str, ...]) -> Iterator[Output]:
    text = "\n".join(stream.lines)
    line, position, before_end = 0, 0, 0
    for (start, end, is_headed), (next_start, *_) in pairwise([*_find_spans(text), (len(text), 0, False)]):
        line += text.count("\n", position, start)
        position = start
        inside = text[start:end]
        numbers = stream.numbers[line : line + inside.count("\n") + (not inside.endswith("\n"))]
        before = "\n".join(text[before_end:start].splitlines()[-AROUND_LINES:])
        after = "\n".join(text[end:next_start].splitlines()[:AROUND_LINES])
        yield Output(inside, numbers, before, after, undone, is_headed)
        before_end = end


def _find_spans(text: str) -> list[tuple[int, int, bool]]:
    """Start and end of each output, and true if the line of its version is there."""
    spans: list[tuple[int, int, bool]] = []
    start, is_headed, is_due, in_checkpoint = -1, False, False, False
    for match in _MARKS.finditer(text):
        kind, is_open = match.lastgroup, start >= 0
        # Behind its version an output is due to run; where none is due, another one begins.
        if kind == "version" or (kind == "running" and not is_due):
            # A line of the version behind another is damage of one output, not two.
            is_damage = is_open and _VERSION_ALONE.fullmatch(text, start, match.start())
            if not is_open:
                _add_parts(text, match.start(), spans)
            elif not is_damage:
                spans.append((start, match.start(), is_headed))
            start = start if is_damage else match.start()
            is_headed, is_due, in_checkpoint = kind == "version", kind == "version", False
        elif kind == "running":
            is_due = False
        elif kind == "checkpoint":
            in_checkpoint = True
        elif is_open:
            if not in_checkpoint:
                spans.append((start, min(match.end() + 1, len(text)), is_headed))
                start, is_due = -1, False
            in_checkpoint = False
    if start >= 0:
        return [*spans, (start, len(text), is_headed)]
    _add_parts(text, len(text), spans)
    return spans


def _add_parts(text: str, end: int, spans: list[tuple[int, int, bool]]) -> None:
    """Add lines behind the last output: to it if they follow at once, else as a part."""
    start = spans[-1][1] if spans else 0
    content = [*_CONTENT.finditer(text, start, end)]
    if not content:
        return
    first, last = content[0].start(), min(content[-1].end() + 1, end)
    if spans and not text[start:first].strip():
        begin, _, is_headed = spans.pop()
        spans.append((begin, last, is_headed))
    elif len(content) > 1 or "] th" in content[0][0]:
        spans.append((first, last, False))


class RelaxedReader(Reader):
    """A reader for outputs that went through other hands: blanks say nothing, and hooks may report.

    Lines of others may stand before the totals, where they can hide nothing: labels, numbers of threads and
    sums would not fit. Inside the totals every line is sysbench's.
    """

    def __init__(self, is_legacy: bool) -> None:
        super().__init__(sysbench_legacy.LEGACY if is_legacy else grammar.RELAXED)
        self.is_legacy = is_legacy
        self.json: list[tuple[int, tuple[str, ...]]] = []
        self.is_array = self.is_warmed = False
        self.foreign: list[int] = []
        # In 0.5 an ALERT is a statement that was tried again.
        self.failures = ("fatal",) if is_legacy else grammar.FAILURES

    def other(self, number: int, line: str) -> None:
        line = " ".join(line.split())
        if not line:
            return
        if self.is_legacy and line[0] == "[" and "thds:" in line:
            # Before the release of 1.0 labels were padded.
            line = re.sub(r"^\[ *(\d+)s *\]", r"[ \1s ]", line)
        if line[0] == "[" and (report := parse_interval_line(line, number)) is not None:
            self.interval(report)
        elif self.takes_bars and (bar := grammar.BAR_NARROW.fullmatch(line)) is not None:
            self.bars.append(bar.groups())
        elif line[0].isdigit() and (match := grammar.INTERVAL_CSV.fullmatch(line)) is not None:
            self.interval(parse_hook_values(match.groups(), number))
        elif not (self.takes_intervals and self.take_json(number, line)):
            super().other(number, line)

    def take_json(self, number: int, line: str) -> bool:
        """Take a line printed by `sysbench.report_json`."""
        if not self.json and line in "[]":
            is_due, self.is_array = self.is_array == (line == "]"), line == "["
            return is_due
        match = grammar.JSON_LINES[len(self.json)].fullmatch(line) if self.is_array else None
        if match is None:
            if self.json:
                self.object("grammar", number, f"{quote_line(line)} in a report as JSON")
                self.json = []
            return False
        self.json.append((number, match.groups()))
        if len(self.json) == len(grammar.JSON_LINES):
            self.interval(parse_hook_values([*chain(*(groups for _, groups in self.json))], self.json[0][0]))
            self.json = []
        return True

    def repeated(self, number: int, line: str) -> None:
        if self.state != self.grammar.block_end:
            super().repeated(number, line)

    def take(self, name: str, number: int, statements: dict[str, Any]) -> None:
        self.is_warmed = self.is_warmed or name == "warming"
        if name in BLOCK_STARTS and self.header.get("warm_up_s") and not self.is_warmed:
            self.object("grammar", number, "the options have a warm-up, and no line says that it began")
        is_old = self.is_legacy and self.header.get("version", "").startswith("0.")
        if is_old and name in ("queries", "latency"):
            self.object("grammar", number, "totals of sysbench 1.0 behind options of an older one")
        super().take(name, number, statements)

    def close_block(self) -> None:
        super().close_block()
        if self.is_legacy and self.summaries:
            self.summaries[-1] = sysbench_legacy.in_todays_terms(self.summaries[-1])

    def refuse_misplaced(self, number: int, line: str) -> None:
        is_known = any(self.grammar.read_fields(name, line) is not None for name in self.grammar.kinds)
        if is_known or self.block is not None or self.is_over or _RESEMBLES.search(line):
            super().refuse_misplaced(number, line)
        else:
            self.foreign.append(number)


# Words of report lines, bars and totals: such a line before the totals is a damaged one.
_RESEMBLES = re.compile(
    r"^[][{}],?$|^\"\w+\": |\[ *\d+ *s *\]|\bthds\b|\btps\b|\bqps\b|per sec\b|percentile|stddev|r/w/o|reconn"
    r"|total (?:number|time)|(?:read|write|other|total|min|avg|max|sum): +\d|statistics:|\|\*|^\d+(?:,\d+){3}"
    r"|^sysbench \d|(?i:number of threads|report intermediate|threads started|initializing)"
)


def parse_output(output: Output) -> tuple[SysbenchLog, tuple[int, ...]]:
    """The log of one output, with the file's line numbers in its problems, and the lines of others in it."""
    has_mark = any(mark in output.text for mark in sysbench_legacy.MARKS)
    reader = RelaxedReader(has_mark or "multi-threaded" in output.text[:200])
    log = read_lines(reader, output.text if output.text.endswith("\n") else f"{output.text}\n")
    problems = tuple(problem._replace(line=output.line_of(problem.line)) for problem in log.problems)
    foreign = tuple(filter(None, (output.line_of(line) for line in reader.foreign)))
    return replace(log, problems=problems), foreign
