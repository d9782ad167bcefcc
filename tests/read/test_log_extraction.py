"""The finder: each dress of a whole log is taken off, and no damage to its content passes for a run."""

import gzip
import lzma
import random
import re
from pathlib import Path

import pytest

from benchbook.read.log_extraction import MOST_BYTES, NotText, decode_text, extract_outputs, parse_output
from tests import depth
from tests.read import corpus

LOGS = Path(__file__).parents[1] / "data" / "logs"
CONTROL = (LOGS / "1.0.17-whole-control.txt").read_text()


def read(data: bytes | str) -> list[tuple[str, int | None, float | None]]:
    """Status, threads and queries a second of each output in a file."""
    text, undone = decode_text(data.encode() if isinstance(data, str) else data)
    logs = [parse_output(output)[0] for output in extract_outputs(text, undone)]
    return [(log.status, log.header.threads, log.final and log.final.queries_per_s) for log in logs]


def has_run(text: str) -> bool:
    return any(status == "complete" for status, _, _ in read(text))


WHOLE = ("complete", 2, 4594.02)
ANSWERS = {
    "0.4.12-whole.txt": [("complete", 64, pytest.approx(35383.84, abs=0.01))],
    "appended-two-runs-of-one-arm.txt": [WHOLE, WHOLE],
    "fileio-test.txt": [("truncated", 1, None)],
    "memory-test.txt": [("complete", 1, None)],
    "report-csv-lines.txt": [("complete", 2, 32590.94)],
    "threads-leave.txt": [("complete", 4, 21399.05)],
    "cpu-test.txt": [("complete", 1, None)],
    "cut-in-the-middle.txt": [("truncated", 2, None)],
    "mutex-one-event.txt": [("complete", 1, None)],
    "report-json-lines.txt": [("complete", 4, 22956.33)],
    "report-lines-only.txt": [("truncated", None, None)],
    "run-does-not-end.txt": [("truncated", None, None)],
    "sysbench-died-when-server-restarted.txt": [("truncated", 4, None)],
}


@pytest.mark.parametrize(
    "path", [path for path in sorted(LOGS.iterdir()) if path.is_file()], ids=lambda p: p.name
)
def test_each_log_that_people_had_has_its_answer(path):
    assert read(path.read_bytes()) == ANSWERS.get(path.name, [WHOLE])


SAMPLES = {
    "control": CONTROL,
    "0.4.12": (LOGS / "0.4.12-whole.txt").read_text(),
    "0.5": (LOGS / "folder-numbered-results-with-description/res13/sysbench.ro.4.res").read_text(),
    "csv": (LOGS / "report-csv-lines.txt").read_text(),
    "threads leave": (LOGS / "threads-leave.txt").read_text(),
    "json": (LOGS / "report-json-lines.txt").read_text(),
    **{name: corpus.case(name).out for name in (
        "00_baseline_ok", "12_rate_ok", "15_percentile99_histogram", "checkpoint_histogram", "hist_p95",
        "v11_warmup_rate")},
}  # fmt: skip


def prefixed(make):
    return lambda text: "".join(make(number) + line for number, line in enumerate(text.splitlines(True)))


DRESSES = {
    "as it is": lambda text: text,
    "CR LF": lambda text: text.replace("\n", "\r\n"),
    "kubectl --prefix": prefixed(lambda n: "[pod/sysbench-0/sysbench] "),
    "kubectl --timestamps": prefixed(lambda n: f"2026-01-05T10:{n // 60 % 60:02}:{n % 60:02}.123456789Z "),
    "ts": prefixed(lambda n: f"Jan  5 10:{n // 60 % 60:02}:{n % 60:02} "),
    "ts -s": prefixed(lambda n: f"00:{n // 60 % 60:02}:{n % 60:02} "),
    "ts %.s": prefixed(lambda n: f"17360712{n % 100:02}.000123 "),
    "journald": prefixed(lambda n: f"Jan 05 10:00:{n % 60:02} client sysbench[4711]: "),
    "docker compose": prefixed(lambda n: "client-1  | "),
    "ansible": prefixed(lambda n: "db1.example.org: "),
    "quoted": prefixed(lambda n: "> "),
    "quoted twice": prefixed(lambda n: ">> "),
    "code block": prefixed(lambda n: "    "),
    "cat -n": prefixed(lambda n: f"{n + 1:6}\t"),
    "fence": lambda text: f"### 64 threads\n\n```\n{text}```\nthanks\n",
    "colours": lambda text: re.sub(r"^(\[ *\d+s \])", "\x1b[32m\\1\x1b[0m", text, flags=re.M),
    "no blank lines": lambda text: re.sub(r"\n\s*\n", "\n", text),
    "doubled blank lines": lambda text: text.replace("\n\n", "\n\n\n\n"),
    "trailing blanks": lambda text: text.replace("\n", "  \n"),
    "no indentation": lambda text: re.sub(r"^ +", "", text, flags=re.M),
    "no last line end": lambda text: text.rstrip("\n"),
    "prompt": lambda text: f"me@client:~$ sysbench oltp_read_only --threads=2 run\n{text}me@client:~$ \n",
    "time": lambda text: f"mysql: [Warning] insecure.\n{text}\nreal\t10m0.1s\nuser\t0m2.0s\n",
    "perf stat": lambda text: f"{text}\n Performance counter stats for 'sysbench':\n\n   99  dTLB-loads\n",
    "warnings": lambda text: f"WARNING: --num-threads is deprecated, use --threads instead\n{text}",
    "byte order mark": lambda text: f"\ufeff{text}",
}  # fmt: skip
PACKERS = (str.encode, lambda text: gzip.compress(text.encode()), lambda text: lzma.compress(text.encode()))
PACKERS += (lambda text: text.encode("utf-16"), lambda text: text.encode("utf-16-le"))


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("name", SAMPLES)
def test_each_dress_of_a_whole_log_is_taken_off(name, dress):
    plain, dressed = SAMPLES[name], DRESSES[dress](SAMPLES[name])
    expected = read(plain)
    assert expected[0][0] == "complete"
    assert read(dressed) == expected


@pytest.mark.parametrize("name", ["control", "0.5"])
def test_each_packing_of_a_whole_log_is_taken_off(name):
    dressed = DRESSES["ts"](DRESSES["CR LF"](SAMPLES[name]))
    assert [read(pack(dressed)) for pack in PACKERS] == [read(SAMPLES[name])] * len(PACKERS)


@pytest.mark.parametrize(
    ("encoding", "undone"),
    [("utf-8", []), ("utf-8-sig", ["byte order mark"]), ("utf-16", ["UTF-16"]), ("utf-16-be", ["UTF-16"])],
)
def test_an_encoding_that_is_undone_is_named(encoding: str, undone: list[str]):
    assert decode_text("sysbench 1.0.20\n".encode(encoding)) == ("sysbench 1.0.20\n", undone)


def test_dresses_over_dresses():
    chance = random.Random(54)
    for _ in range(500 if depth.IS_DEEP else 60):
        name, first, second = chance.choice([*SAMPLES]), *chance.sample([*DRESSES], 2)
        assert read(DRESSES[second](DRESSES[first](SAMPLES[name]))) == read(SAMPLES[name]), (
            name,
            first,
            second,
        )


def content(text: str) -> list[str]:
    """Lines of a log that say something: without blank lines, and without chatter between options."""
    chatter = ("No DB drivers", "Time limit exceeded", "(last message repeated", "Done.", "Using auto_inc")
    return [
        line
        for line in text.splitlines()
        if line.strip() and not line.startswith((*chatter, "Doing read-only"))
    ]


# Lines that sysbench itself may leave out, and blanks and brackets that say nothing.
SILENT = {"00_baseline_ok": ["[ 6s ]"], "12_rate_ok": ["[ 3s ]"], "checkpoint_histogram": ["[ 5s ]"],
          "v11_warmup_rate": ["[ 2s ]"], "json": ["]"], "control": ["[ 600s"],
          "threads leave": ["[ 6s ]"]}  # fmt: skip


def are_alike(first: str, second: str) -> bool:
    """Whether both orders are sysbench's: bars that print alike, and what other threads print between."""
    others = ("[ ", "Warming up", "[", "Threads started!", "    execution time")
    return first.split("|")[0] == second.split("|")[0] or (
        first.startswith(others) and second.startswith(others)
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_no_lost_doubled_or_swapped_line_passes(name):
    lines = content(SAMPLES[name])
    broken = {}
    for at in range(len(lines)):
        broken["lost", at] = [*lines[:at], *lines[at + 1 :]]
        broken["doubled", at] = [*lines[: at + 1], *lines[at:]]
        if at + 1 < len(lines) and not are_alike(lines[at], lines[at + 1]):
            broken["swapped", at] = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
    passed = [(how, lines[at]) for (how, at), copy in broken.items() if has_run("\n".join(copy) + "\n")]
    assert [(how, line) for how, line in passed if line[:6] not in SILENT.get(name, ())] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_no_cut_passes(name):
    text = SAMPLES[name].rstrip()
    step = 1 if depth.IS_DEEP else 7
    ends = {*range(0, len(text), step), *(match.end() for match in re.finditer("\n", text)), len(text) - 1}
    assert [end for end in sorted(ends) if has_run(text[:end])] == []


WITH_SQL = [name for name, text in SAMPLES.items() if re.search("(OLTP test|SQL) statistics:", text)]


@pytest.mark.parametrize("name", WITH_SQL)
def test_totals_of_another_log_never_pass(name):
    def parts(text):
        at = re.search(r"^(?:OLTP test|SQL) statistics:", text, re.M).start()
        return text[:at], text[at:]

    for other in WITH_SQL:
        if other != name:
            assert not has_run(parts(SAMPLES[name])[0] + parts(SAMPLES[other])[1]), other
    assert has_run(CONTROL) and not has_run(CONTROL.rstrip("\n") + "\n" + parts(SAMPLES[name])[1])


def test_the_totals_of_each_old_version():
    first = SAMPLES["0.5"]
    deadlocks = "    deadlocks:                           0      (0.00 per sec.)\n"
    errors = deadlocks.replace("deadlocks:", "ignored errors:") + deadlocks.replace(
        "deadlocks:", "reconnects:"
    )
    later = re.sub(r"(    other operations: .*\n)", rf"\1{errors}", first.replace(deadlocks, ""))
    before_release = later.replace("sysbench 0.5:", "sysbench 1.0:")
    for text in (first, later, before_release):
        assert read(text) == read(first)
    assert not has_run(first.replace(deadlocks, "")) and not has_run(later.replace(errors, ""))
    alert = "ALERT: failed to execute mysql_stmt_execute(): Err1213 Deadlock found\n"
    assert read(first.replace("OLTP test", f"{alert}OLTP test")) == read(first)


def test_a_line_of_others_in_the_totals_is_no_run_and_before_them_is_noted():
    assert not has_run(CONTROL.replace("    transactions:", "hello\n    transactions:"))
    output = extract_outputs(CONTROL.replace("[ 180s ]", "DB SCHEMA sbtest\n[ 180s ]"))[0]
    log, foreign = parse_output(output)
    assert (log.status, foreign) == ("complete", (15,))


def test_two_clients_in_one_stream_are_told_apart_and_lines_keep_their_numbers():
    parts = [CONTROL.splitlines(), SAMPLES["00_baseline_ok"].splitlines()]
    mixed = [
        f"client-{at}  | {lines[n]}" for n in range(60) for at, lines in enumerate(parts) if n < len(lines)
    ]
    outputs = extract_outputs("\n".join(mixed))
    assert [parse_output(output)[0].status for output in outputs] == ["complete", "complete"]
    assert mixed[outputs[1].line_of(4) - 1] == "client-1  | Number of threads: 4"


def test_threads_that_leave_last_are_a_finding_and_those_that_come_back_are_damage():
    left = re.sub(r"(\[ (?:540|600)s \] thds): 2", r"\1: 1", CONTROL)
    assert has_run(left)
    assert not has_run(re.sub(r"(\[ 540s \] thds): 2", r"\1: 1", CONTROL))


def test_what_is_no_text_is_named():
    for data, what in (
        (b"\x7fELF" + bytes(3000), "binary"),
        (gzip.compress(CONTROL.encode())[:200], ""),
    ):
        try:
            text, _ = decode_text(data)
        except NotText as error:
            assert what in str(error)
        else:
            assert not has_run(text)
    with pytest.raises(NotText, match="MiB"):
        decode_text(gzip.compress(b"sysbench " * (MOST_BYTES // 9 + 1000)))
