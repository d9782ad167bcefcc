"""Check V6: length of discard and window, by sysbench's clock and by ours.

Rates are counts over sysbench's own seconds, so a second of its clock must last a second by ours. Three
things bind its clock: our monotonic clock around the process, the labels of its report lines, and in a closed
loop the sum of its latencies, since every thread is in a transaction all the time.
"""

from collections.abc import Iterator

from benchbook.core.study import interleaving
from benchbook.core.study.params import Limits
from benchbook.read import checks_log
from benchbook.read.evidence import Evidence
from benchbook.read.log import require_printed
from benchbook.read.log_consistency import SLACK_S, count_longest, spent_ms

CLOCK_S, CLOCK_SHARE = 0.05, 2e-4
"""What two machines' clocks may differ by: half a round trip, and how much faster one may go."""
START_S, START_THREAD_S = 5.0, 0.05
"""Seconds from our start of a client to the start of its clock and from the end of that to ours: for the
process, and for each of its threads to connect."""
LABEL_S = 0.5
"""Labels of report lines are rounded to the second."""
OUTSIDE_SHARE, OUTSIDE_S = 0.15, 0.05
"""Share of its time that a thread may spend between two transactions, and seconds it may seem to spend more
than there are, for what sysbench rounds."""
WHOLE_PAUSE_S, THREAD_S, ARRIVALS = 25.0, 1e-4, 10
"""Seconds of a window from which on a pause may be as long as the limits say, for shorter ones in proportion;
for a thread to end; and at a fixed rate, mean times to the next transaction that it may wait for one."""
TURN_GAP_S = 1.0
"""Seconds for which a client may stand still where arms take turns: while all wait for the window to begin or
end, and for the turns of the others."""


def check_time(run: Evidence, limits: Limits) -> Iterator[str]:
    """V6: discard and window took the planned time, by all clocks there are."""
    yield from checks_log.check_duration(run, limits)
    yield from _check_process_clock(run)
    yield from _of_checkpoint(run, limits)
    yield from _check_end(run, limits)
    yield from _check_latencies(run)


def _check_process_clock(run: Evidence) -> Iterator[str]:
    """Faults if sysbench's seconds don't fit between our start and our end of it."""
    observations, total, labels = run.observed, run.final.total_time_s, run.log.intervals.column("second")
    started = observations.get("begun_monotonic_s") or run.get("started_monotonic_s")
    lasted = run.get("ended_monotonic_s") - started
    slack = CLOCK_S + CLOCK_SHARE * lasted
    if total > lasted + slack:
        yield f"total time {total:.4f} s, the process lasted {lasted:.4f} s by our clock"
    if labels.size and labels[-1] > lasted + slack + LABEL_S:
        yield f"a report line of second {labels[-1]:g}, the process lasted {lasted:.4f} s"
    most = START_S + START_THREAD_S * run.plan_value("threads")
    if lasted - total > most + slack:
        yield f"the process lasted {lasted - total:.2f} s longer than sysbench says, at most {most:.2f} s"


def _of_checkpoint(run: Evidence, limits: Limits) -> Iterator[str]:
    """Yield checkpoints at another second than asked, or so late that the client must have stood still."""
    discard = run.clock_s[0]
    most = limits.pause_ms / 1000 + _allowed_gap(run) if run.is_in_turns else _pause_s(run, limits)
    for block in run.log.checkpoints:
        # In turns it is printed when the arm goes on, with the second of that moment.
        if block.checkpoint_s != discard and not run.is_in_turns:
            yield f"the checkpoint is at second {block.checkpoint_s}, {discard} asked"
        if block.total_time_s is not None and block.total_time_s - discard > most:
            yield f"the checkpoint came {block.total_time_s - discard:.4f} s late, at most {most:g} s"


def _check_end(run: Evidence, limits: Limits) -> Iterator[str]:
    """Faults if a whole run ended later than threads in their last transaction can have done."""
    over = require_printed(run.final.total_time_s, "total time") - sum(run.clock_s)
    longest_s = require_printed(run.final.latency_max_ms, "longest latency") / 1000
    waited_s = ARRIVALS / run.plan["rate"] if run.plan.get("rate") else 0.0
    most = longest_s + waited_s + _pause_s(run, limits) + THREAD_S * run.plan_value("threads")
    if over > most and not run.is_in_turns:
        yield f"it ended {over:.4f} s late, its longest transaction allows {most:.4f} s"


def _pause_s(run: Evidence, limits: Limits) -> float:
    return limits.pause_ms / 1000 * min(1.0, run.clock_s[1] / WHOLE_PAUSE_S)


def _check_latencies(run: Evidence) -> Iterator[str]:
    """Faults if the threads' transactions don't fill the time, or more than fill it."""
    if run.plan.get("rate"):
        return  # Latencies hold the wait in the queue, and say nothing of the clock.
    # A transaction counts whole in the block in which it ends, so at the checkpoint each thread carries one
    # over; at the end threads that are done wait for the last one.
    threads, blocks = run.plan_value("threads"), run.log.summaries
    longest_s = max(require_printed(block.latency_max_ms, "longest latency") for block in blocks) / 1000
    # Of the longest transactions of the window each thread may have carried one over.
    bars = run.log.histogram
    carried_s = spent_ms(count_longest(bars.full(), threads)) / threads / 1000 if bars else longest_s
    before, whole = 0.0, 0.0
    for block in blocks:
        ended = require_printed(block.total_time_s, "total time")
        window, before = ended - before, ended
        filled = require_printed(block.latency_sum_ms, "sum of latencies") / 1000 / threads
        whole += filled
        # Timers are read after the clock, so what ends in between counts in the block before.
        late = SLACK_S + _allowed_gap(run)
        most = window + (late if block is blocks[0] else OUTSIDE_S + carried_s)
        least = (1 - OUTSIDE_SHARE) * window - late - longest_s
        if not least <= filled <= most:
            name = "discard" if block.is_checkpoint else "window"
            yield f"latencies of {filled:.3f} s for each thread in a {name} of {window:.3f} s"
    if whole > before + OUTSIDE_S:
        yield f"latencies of {whole:.3f} s for each thread in {before:.3f} s"


def _allowed_gap(run: Evidence) -> float:
    if not run.is_in_turns:
        return 0.0
    round_s = interleaving.round_seconds(run.planned) + interleaving.EDGE_S
    return max(TURN_GAP_S, round_s) + checks_log.started_apart_s(run)
