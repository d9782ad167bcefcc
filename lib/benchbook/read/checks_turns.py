"""Check V23: the arms of a group took turns, and each ran in its own only."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from statistics import fmean

from benchbook.core.study.params import Limits
from benchbook.read.evidence import Evidence, Turn

STRETCH = 2.0
"""A turn may last this many times its planned length."""
ACTIVE_SHARE = 0.01
"""Share by which the arms of a group may differ in their active seconds."""
LEAST_SHARE = 1 / 3
"""Share of the turns that were asked for which there must be. Fewer turns are less data, not wrong data,
where all arms have as many; a block of a third of them has 1.7 times the error, and counts like others."""
IDLE_SHARE = 0.2
"""Share of the turns in which the client may have had no processor time at all."""
GAP_SHARE = 0.35
"""Share of the seconds from the first turn to the last in which no arm may have run: to stand still took 64
threads 23 % of them on a busy machine. Turns that are forged to half their length leave the half unused."""
EARLY_US = 2
"""Microseconds by which a turn may seem shorter than planned: both of its ends are rounded down."""
USUAL, LATE_MS = 0.9, 2.0
"""Share of the turns, the longest left out, that a clock which waits for nobody ends in time, and
milliseconds by which they may be late all the same: seconds are counted as they were, held between arms."""
OUTSIDE_S = 0.005
"""Processor time of a client between two of its turns: what is left of a system call when it is stopped."""


def active_s(turns: list[Turn], arm: str) -> float:
    """Seconds of an arm's own turns."""
    return sum(turn.end_us - turn.begin_us for turn in turns if turn.arm == arm) / 1e6


def check_turns(run: Evidence, limits: Limits) -> Iterator[str]:
    """V23: the turns were as planned, no arm ran in another's, and all had the same seconds.

    Whole runs have nothing to show.
    """
    run.require_record()
    if not run.is_in_turns:
        return
    taken, clock = run.taken, run.get("turns", "clock")
    code, gone = clock.get("exit_code"), clock.get("gone")
    when = " out of its turn" if clock.get("gone_out_of_turn") else ""
    why = {None: "", "start": ": not all clients had started in time"}
    if code != 0:
        message = why.get(gone, f": process {gone} of the group ended{when}")
        yield f"the clock of the turns ended with {code}{message}"
    yield from _length_faults(run, taken)
    yield from _share_faults(run, taken)
    outside, idle = run.get("turns", "longest_outside_s"), run.get("turns", "idle")
    if outside > OUTSIDE_S:
        yield f"the client used {1000 * outside:.1f} ms of a core out of its turn"
    mine = len(taken) / len(run.plan_value("partners"))
    if idle > IDLE_SHARE * mine:
        yield f"the client stood still in {idle} of its {mine:.0f} turns"
    yield from _late_faults(run)


def _late_faults(run: Evidence) -> Iterator[str]:
    """Yield turns that went on when sysbench's discard or its time was over: they count in another window."""
    clock = run.get("turns", "clock")
    if clock.get("discarded") is None or clock.get("started") is None:
        return  # Evidence made before turns waited for threads to stand still has no moment for that.
    (first, _), (discard, length) = clock["started"], run.clock_s
    late = {
        "discard": clock["discarded"] - first - discard,
        "time": clock["window"][1] - first - discard - length,
    }
    for name, over in late.items():
        if over > 0:
            yield f"turns went on {over:.3f} s after the {name} of a client was over"


def _length_faults(run: Evidence, taken: list[Turn]) -> Iterator[str]:
    planned_ms = run.plan_value("turn_ms")
    counts = Counter(turn.arm for turn in taken)
    if set(counts) != set(run.plan_value("partners")) or len(set(counts.values())) != 1:
        shown = ", ".join(f"{name} {counts[name]}" for name in run.plan_value("partners"))
        yield f"the arms had different numbers of turns: {shown}"
    lasted_us = sorted(turn.end_us - turn.begin_us for turn in taken) or [1000 * planned_ms]
    if lasted_us[-1] > STRETCH * 1000 * planned_ms:
        yield f"a turn lasted {lasted_us[-1] / 1000:.0f} ms, {planned_ms} ms planned"
    if lasted_us[0] < 1000 * planned_ms - EARLY_US:
        yield f"a turn lasted {lasted_us[0] / 1000:.3f} ms, no clock ends one before its {planned_ms}"
    usual_ms = fmean(lasted_us[: math.ceil(USUAL * len(lasted_us))]) / 1000
    if run.get("turns", "clock").get("priority") == "fifo" and usual_ms > planned_ms + LATE_MS:
        yield f"nine turns of ten lasted {usual_ms:.2f} ms, {planned_ms} ms planned"
    whole_us = taken[-1].end_us - taken[0].begin_us if taken else 0
    unused = 1 - sum(lasted_us) / whole_us if whole_us else 0.0
    if unused > GAP_SHARE:
        yield f"for {100 * unused:.0f} % of the time between first and last turn no arm had one"


def _share_faults(run: Evidence, taken: list[Turn]) -> Iterator[str]:
    """Yield turns in each other's time or out of the run's, and arms with other shares than planned."""
    if any(later.begin_us < turn.end_us for turn, later in itertools.pairwise(taken)):
        yield "two turns overlap"
    seconds = {name: active_s(taken, name) for name in run.plan_value("partners")}
    mine, request = seconds[run.plan_value("arm")], run.get("turns", "asked")
    if (count := len(run.own_turns)) < LEAST_SHARE * request:
        yield f"{count} turns were taken, {request} asked"
    if max(seconds.values()) > (1 + ACTIVE_SHARE) * min(seconds.values()):
        shown = ", ".join(f"{name} {value:.3f} s" for name, value in seconds.items())
        yield f"the arms ran for different times: {shown}"
    if abs(mine - run.get("turns", "active_s")) > 1e-6:
        yield f"the turns make {mine:.6f} s, recorded are {run.get('turns', 'active_s'):.6f} s"
    began, ended = run.get("started_monotonic_s"), run.get("ended_monotonic_s")
    if taken and not began <= taken[0].begin_us / 1e6 <= taken[-1].end_us / 1e6 <= ended:
        yield "turns lie outside the run"
