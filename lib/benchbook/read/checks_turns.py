"""Check V23: the arms of a group took turns, and each ran in its own only."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections import Counter
from dataclasses import dataclass

from benchbook.core.params import Limits
from benchbook.read.evidence import Evidence, Missing

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
OUTSIDE_S = 0.005
"""Processor time of a client between two of its turns: what is left of a system call when it is stopped."""


@dataclass(frozen=True)
class Turn:
    """One turn: whose it was, and its begin and end in microseconds of the monotonic clock."""

    arm: str
    begin_us: int
    end_us: int


def read(text: str) -> list[Turn]:
    """Return the turns of a group from `turns.csv`; ValueError if it is no such file."""
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or rows[0] != ["turn", "arm", "begin_us", "end_us"]:
        raise ValueError("turns.csv has other columns")
    found = [Turn(arm, int(begin), int(end)) for _, arm, begin, end in rows[1:]]
    if [row[0] for row in rows[1:]] != [str(number) for number in range(1, len(rows))]:
        raise ValueError("turns.csv lacks a turn")
    return found


def active_s(turns: list[Turn], arm: str) -> float:
    """Return the seconds of an arm's own turns."""
    return sum(turn.end_us - turn.begin_us for turn in turns if turn.arm == arm) / 1e6


def turns(run: Evidence, limits: Limits) -> list[str]:
    """V23: the turns were as planned, no arm ran in another's, and all had the same seconds.

    Whole runs have nothing to show.
    """
    if not run.seen:
        raise Missing("nothing was recorded")
    if not run.is_in_turns:
        return []
    if run.turns is None:
        raise Missing("no file of the turns")
    faults = _clock_faults(run)
    taken = read(run.turns)
    return faults + _length_faults(run, taken) + _still_faults(run, len(taken)) + _late_faults(run)


def _clock_faults(run: Evidence) -> list[str]:
    clock = run.get("turns", "clock")
    code, gone = clock.get("exit_code"), clock.get("gone")
    when = " out of its turn" if clock.get("gone_out_of_turn") else ""
    if code == 0:
        return []
    why = {
        None: "",
        "start": ": not all clients had started in time",
    }.get(gone, f": process {gone} of the group ended{when}")
    return [f"the clock of the turns ended with {code}{why}"]


def _late_faults(run: Evidence) -> list[str]:
    """Return turns that went on when sysbench's discard or its time was over: they count in another window.

    Evidence made before turns waited for threads to stand still has no moment of its own for that.
    """
    clock = run.get("turns", "clock")
    if clock.get("discarded") is None or clock.get("started") is None:
        return []
    (first, _), (discard, length) = clock["started"], run.clock_s
    late = {
        "discard": clock["discarded"] - first - discard,
        "time": clock["window"][1] - first - discard - length,
    }
    return [
        f"turns went on {over:.3f} s after the {name} of a client was over"
        for name, over in late.items()
        if over > 0
    ]


def _length_faults(run: Evidence, taken: list[Turn]) -> list[str]:
    arm, partners = run.asked("arm"), run.asked("partners")
    planned_ms, faults = run.asked("turn_ms"), []
    counts = Counter(turn.arm for turn in taken)
    if set(counts) != set(partners) or len(set(counts.values())) != 1:
        shown = ", ".join(f"{name} {counts[name]}" for name in partners)
        faults.append(f"the arms had different numbers of turns: {shown}")
    longest_ms = max(((turn.end_us - turn.begin_us) / 1000 for turn in taken), default=0.0)
    if longest_ms > STRETCH * planned_ms:
        faults.append(f"a turn lasted {longest_ms:.0f} ms, {planned_ms} ms planned")
    shortest_us = min((turn.end_us - turn.begin_us for turn in taken), default=math.inf)
    if shortest_us < 1000 * planned_ms - EARLY_US:
        faults.append(f"a turn lasted {shortest_us / 1000:.3f} ms, no clock ends one before its {planned_ms}")
    whole_us = taken[-1].end_us - taken[0].begin_us if taken else 0
    unused = 1 - sum(turn.end_us - turn.begin_us for turn in taken) / whole_us if whole_us else 0.0
    if unused > GAP_SHARE:
        faults.append(f"for {100 * unused:.0f} % of the time between first and last turn no arm had one")
    if any(later.begin_us < turn.end_us for turn, later in itertools.pairwise(taken)):
        faults.append("two turns overlap")
    seconds = {name: active_s(taken, name) for name in partners}
    mine, asked = seconds[arm], run.get("turns", "asked")
    if counts[arm] < LEAST_SHARE * asked:
        faults.append(f"{counts[arm]} turns were taken, {asked} asked")
    if max(seconds.values()) > (1 + ACTIVE_SHARE) * min(seconds.values()):
        shown = ", ".join(f"{name} {value:.3f} s" for name, value in seconds.items())
        faults.append(f"the arms ran for different times: {shown}")
    if abs(mine - run.get("turns", "active_s")) > 1e-6:
        faults.append(f"the turns make {mine:.6f} s, recorded are {run.get('turns', 'active_s'):.6f} s")
    began, ended = run.get("started_monotonic_s"), run.get("ended_monotonic_s")
    if taken and not began <= taken[0].begin_us / 1e6 <= taken[-1].end_us / 1e6 <= ended:
        faults.append("turns lie outside the run")
    return faults


def _still_faults(run: Evidence, count: int) -> list[str]:
    outside, idle = run.get("turns", "longest_outside_s"), run.get("turns", "idle")
    faults = []
    if outside > OUTSIDE_S:
        faults.append(f"the client used {1000 * outside:.1f} ms of a core out of its turn")
    mine = count / len(run.asked("partners"))
    if idle > IDLE_SHARE * mine:
        faults.append(f"the client stood still in {idle} of its {mine:.0f} turns")
    return faults
