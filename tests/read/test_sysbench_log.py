"""The strict parser: whatever was cut, lost, doubled or overwritten must not pass for a whole output."""

import random
import re
import time

import pytest

from benchbook.read.sysbench_log import parse_log
from tests import depth
from tests.goldens import assert_golden
from tests.read import corpus, synthetic

GOLDEN = ("00_baseline_ok", "12_rate_ok", "15_percentile99_histogram")
WITH_CHECKPOINT = "checkpoint_histogram"


def is_complete(text: str) -> bool:
    return parse_log(text).status == "complete"


def lines(out: str) -> list[int]:
    """Return where each line but the last ends."""
    return [end + 1 for end, char in enumerate(out[:-1]) if char == "\n"]


@pytest.mark.parametrize("name", GOLDEN)
def test_no_cut_passes(name):
    out = corpus.case(name).out
    # Every place of an output of some size takes ten seconds; in the fast set its lines' ends and a part.
    step = 1 if depth.IS_DEEP or len(out) < 3000 else 5
    ends = {*range(0, len(out), step), *(at + more for at in lines(out) for more in (-1, 0, 1))}
    assert [end for end in sorted(ends) if end < len(out) and is_complete(out[:end])] == []


@pytest.mark.parametrize("name", GOLDEN)
def test_no_hole_passes(name):
    """A file system that lost a block leaves zeros: one of them and 64, at every place of a small output."""
    out = corpus.case(name).out
    step = 1 if len(out) < 5000 else 61
    for size in (1, 64):
        holes = (
            out[:start] + "\0" * len(out[start : start + size]) + out[start + size :]
            for start in range(0, len(out), step)
        )
        assert not any(is_complete(hole) for hole in holes)


@pytest.mark.parametrize(
    "name, silent",
    [
        # sysbench itself sometimes leaves out the last report line, so its loss is no sign; the manifest's
        # hash is.
        ("00_baseline_ok", ["[ 6s ]"]),
        # The same goes for the queue line that follows it.
        ("12_rate_ok", ["[ 3s ]"]),
        ("15_percentile99_histogram", []),
        (WITH_CHECKPOINT, ["[ 5s ]"]),
        ("hist_p95", []),
        ("v11_warmup_rate", ["[ 2s ]"]),
    ],
)
def test_no_lost_line_passes(name, silent):
    lines = corpus.case(name).out.splitlines(keepends=True)
    lost = [
        lines[at][:6] for at in range(len(lines)) if is_complete("".join([*lines[:at], *lines[at + 1 :]]))
    ]
    assert lost == silent


def test_any_other_lost_report_line_is_missed_by_its_label():
    lines = corpus.case("00_baseline_ok").out.splitlines(keepends=True)
    log = parse_log("".join(line for line in lines if not line.startswith("[ 3s ]")))
    problems = [(problem.concern, problem.line, re.findall(r"\d+", problem.text)) for problem in log.problems]
    assert problems == [("intervals", 15, ["4", "3"]), ("sums", 18, ["8321", "9793"])]


def test_every_field_of_outputs_of_two_versions():
    """A common one, one with a checkpoint and its histogram, and one of 1.1 with a warm-up and a rate."""
    answers = []
    for name in ("00_baseline_ok", WITH_CHECKPOINT, "v11_warmup_rate"):
        log = parse_log(corpus.case(name).out)
        answers.append(f"{name}: {log.status}, {log.measured_s:.4f} s\n")
        for part in (log.header, *log.intervals, *log.summaries):
            fields = part._asdict() if isinstance(part, tuple) else vars(part)
            shown = ", ".join(f"{field} {value}" for field, value in fields.items() if value is not None)
            answers.append(f"  {type(part).__name__}: {shown}\n")
        if (bars := log.histogram) is not None:
            answers.append(
                f"  Histogram: {dict(zip(bars.buckets.tolist(), bars.counts.tolist(), strict=True))}\n"
            )
    assert_golden("parsed_outputs.txt", "".join(answers))


def test_a_message_may_span_lines():
    log = parse_log(corpus.case("25_prepare_serial_table_exists").out)
    assert [message.level for message in log.messages] == ["fatal", "fatal"]
    assert log.messages[0].text.endswith(") /*! ENGINE = innodb */ '")
    assert log.messages[0].text.count("\n") == 6


def test_a_message_inside_a_line_is_found():
    # Text over 4 KiB loses its line end, so the next message sticks to it.
    log = parse_log(corpus.case("00_baseline_ok").out.replace("[ 3s ] thds: 4", "[ 3s ] thdsFATAL: gone"))
    assert log.status == "failed"
    assert log.messages[0].text.startswith("FATAL: gone")


def test_forced_shutdown_keeps_its_numbers_and_fails():
    log = parse_log(corpus.case("forced").out)
    assert (log.status, log.final.unfinished, log.final.events) == ("failed", 3, 20)
    assert [report.tps for report in log.intervals] == [8.98, 10.01, 1.00]


def test_repeated_messages_are_seen():
    log = parse_log(corpus.case("noconn").out)
    assert [message.level for message in log.messages].count("repeated") == 3


def test_what_was_read_is_kept_whatever_happened():
    log = parse_log(corpus.case("05_server_kill9_midrun").out)
    assert log.status == "failed"
    assert (len(log.intervals), log.final, log.header.threads) == (2, None, 4)
    cut = parse_log(corpus.case("00_baseline_ok").out[:1500])
    assert (cut.status, len(cut.intervals), cut.summaries[0].reads) == ("truncated", 6, 137102)


def test_the_reason_names_line_and_text():
    out = corpus.case("00_baseline_ok").out.replace("General statistics:", "General  statistics:")
    # The whole sentence is in goldens/changed_outputs.txt.
    assert re.fullmatch(r"line 30: .*: 'General  statistics:'", parse_log(out).why[0])


def test_a_built_output_is_complete():
    for discard in (0, 2):
        log = parse_log(synthetic.output(discard_s=discard))
        assert log.why == ()
        assert log.measured_s == 5


@pytest.mark.parametrize(
    "line",
    [
        "[ 1s ] thds: " + "1" * 5_000_000,
        "9" * 5_000_000,
        " " * 5_000_000,
        "FATAL: " * 700_000,
        "[ 1s ] thds: 1 tps: 1." + "0" * 5_000_000,
        "1,1" + ",1.0" * 1_000_000,
        "Creating table '" + "a" * 5_000_000,
    ],
    ids=["digits in a label", "digits", "blanks", "messages", "decimals", "commas", "name"],
)
def test_hostile_lines_take_linear_time(line):
    out = corpus.case("00_baseline_ok").out
    started = time.process_time()
    assert not is_complete(out.replace("SQL statistics:", line + "\nSQL statistics:"))
    assert time.process_time() - started < 5


@pytest.mark.parametrize("name", [*GOLDEN[:2], "checkpoints", "hook_csv", "forced"])
def test_damage_never_ends_in_an_error(name):
    """Any text gives a status: characters are changed, moved and repeated at random places (fixed seed)."""
    out, chance = corpus.case(name).out, random.Random(name)
    for _ in range(150):
        text = list(out)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(text))
            text[at] = chance.choice(
                ["0", "-", "9" * 400, "\n", "nan", ".", "", " ", text[chance.randrange(len(text))]]
            )
        log = parse_log("".join(text))
        assert (log.status == "complete") == (log.why == ())


@pytest.mark.parametrize(
    "text", ["", "\n", "\n\n", "\0", "x", "\ufffd\n", "]\n", "[\n", "(last message repeated 1 times)\n"]
)
def test_no_text_is_complete_by_chance(text):
    assert parse_log(text).status == "truncated"


def test_words_of_debugging_stand_anywhere():
    out = synthetic.output()
    begun = out.index("[ 3s ]")
    shown = parse_log(f"{out[:begun]}DEBUG: Worker thread (#0) initialized\n{out[begun:]}")
    assert (shown.status, [message.level for message in shown.messages]) == ("complete", ["debug"])
