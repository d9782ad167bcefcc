"""What the files of one run, and one run and the next, contradict, each as a sentence."""

import datetime
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from benchbook.core.artifacts.run_folder import RunManifest, Times
from benchbook.read.evidence import Evidence

# Both clocks are read one after the other, and their difference is itself recorded.
CLOCK_SLACK_S = 0.25
# sysbench gives its threads 30 s to connect, and its end takes a while on a busy machine.
STARTING_S = 45.0
# Several clients begin at a moment that each of their machines has by its own clock.
START_SLACK_S = 0.5
# The wall clock may be set back between two runs.
OVERLAP_S = 1.0
BY_ACCOUNT = "Account_updates"


def check_times(run: Evidence) -> Iterator[str]:
    """Contradictions between moments, lengths and sysbench's own clock."""
    times = Times.of(run.observed)
    lasted = times.ended_monotonic_s - times.started_monotonic_s
    if abs(lasted - times.sysbench_s) > 0.001:
        yield f"evidence.json: sysbench_s is {times.sysbench_s:.3f}, end less start is {lasted:.3f} s"
    by_wall = (parse_moment(times.ended_utc) - parse_moment(times.started_utc)).total_seconds()
    if abs(by_wall - lasted) > CLOCK_SLACK_S + abs(times.clock_step_s):
        yield f"evidence.json: started_utc to ended_utc is {by_wall:.3f} s, the run took {lasted:.3f} s"
    total = run.log.final.total_time_s if run.log.final else None
    if total is not None and not total - START_SLACK_S <= lasted <= total + STARTING_S:
        yield f"evidence.json: the run took {lasted:.3f} s, sysbench says {total:.3f} s"


def check_attempt(run: Evidence, manifest: RunManifest, voided: int) -> Iterator[str]:
    """Fault if the attempt's number is not the manifest's, or not one more than void has."""
    attempt = run.observed["attempt"]
    if manifest.attempt != attempt:
        yield f"manifest.json: attempt {manifest.attempt}, evidence.json has {attempt}"
    if attempt != voided + 1:
        yield f"evidence.json: attempt {attempt}, and void has {voided} attempts before it"


def find_chain_breaks(looks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Faults if a server's counters go back from one run to a later one, or jump in between.

    `looks` has each run's evidence by its name. A server is known by its process: one that was started again
    counts from nought. Runs of a group that it served at once have the same reading.
    """
    last: dict[str, tuple[str, Times, Mapping[str, int]]] = {}
    times = {name: Times.of(look) for name, look in looks.items()}
    for name in sorted(looks, key=lambda item: times[item].started_monotonic_s):
        here, server = times[name], _name_server(looks[name])
        if server is None:
            continue
        before, after = (_counters(looks[name], side) for side in ("before", "after"))
        earlier, was, books = last.get(server, (name, None, {}))
        if was is not None and here.started_monotonic_s >= was.ended_monotonic_s - OVERLAP_S:
            for key in sorted(key for key in before.keys() & books.keys() if before[key] < books[key]):
                counted = f"{key} is {before[key]} before it, was {books[key]} after {earlier}"
                yield f"{name}: evidence.json: {counted}"
        if after and (was is None or here.ended_monotonic_s >= was.ended_monotonic_s):
            last[server] = name, here, after


def _counters(observations: Mapping[str, Any], side: str) -> Mapping[str, int]:
    return (observations.get("ledger") or {}).get(side) or {}


def _name_server(observations: Mapping[str, Any]) -> str | None:
    """Name of a server's process; None where the books are sums of several, or by account for each arm."""
    who = observations.get("identity_before") or {}
    if "servers" in observations or BY_ACCOUNT in _counters(observations, "before") or who.get("pid") is None:
        return None
    return " ".join(str(who.get(key)) for key in ("server_uid", "pid", "started", "pod"))


def find_overlaps(spans: Mapping[str, tuple[datetime.datetime, datetime.datetime, str]]) -> Iterator[str]:
    """Runs that began before the one before them had ended.

    `spans` has start, end and group of each run; arms of one group may take turns inside the same seconds.
    """
    for before, after in pairwise(sorted(spans, key=lambda name: spans[name][0])):
        overlap = (spans[before][1] - spans[after][0]).total_seconds()
        if overlap > OVERLAP_S and spans[after][2] != spans[before][2]:
            yield f"{after}: it began while {before} was still running"


def parse_moment(text: str) -> datetime.datetime:
    """A moment in UTC; ValueError for a text without its zone."""
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text}: a moment without a zone")
    return moment
