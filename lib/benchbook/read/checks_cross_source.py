"""Check V26: the programs that watched a run saw the same seconds, the same work and the same server.

What one of them says of time and use bounds what the others can say, so that none can be changed alone.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from benchbook.core.study import registry
from benchbook.core.study.params import Limits
from benchbook.read import checks_cluster, checks_custom_scripts, costs
from benchbook.read.evidence import Evidence
from benchbook.read.log import require_printed

LABEL_S = 0.5
"""Labels of report lines are rounded to the second."""
CORES_SLACK = 0.05
"""Share by which parts may seem to use more than all cores: their books are read one after the other."""
BOOKS_S, BOOKS_SHARE = 0.005, 0.01
"""Seconds, and the share of them, by which two of the kernel's books of one process may differ."""
START_SLACK_S = 0.1
"""Seconds by which the start of sysbench's clock may be misjudged, from its checkpoint and its next turn."""
UNSEEN_S, UNSEEN_SHARE = 0.6, 0.1
"""Seconds of a core that a monitor may miss of a client, and a share of them: it has no last second."""
AHEAD_S = 0.05
"""Seconds of a core that a client may seem to have used less than its monitor saw, for the kernel's ticks."""
LACKING_S = 3.0
"""Seconds that a monitor may lack at its end before it says too little of the whole."""
WINDOW_S, ROUNDED_S = 0.1, 1e-5
"""Seconds from the ends of a clock's window to its first and last turn, and from a turn to the next beside
those in which the arm came to stand still. A round of turns is longer."""
UNPAGED_SHARE, UNPAGED_PAGES = 0.1, 64
"""What a server reads beside pages of its pool, such as its log, as a share of them and in pages."""
UNDERWAY_PAGES = 16
"""Pages that one counter may have and another not: read while the server told them, or by itself."""
SOONER = 0.02
"""Share by which an answer may seem to come sooner than its way lets it, since latencies are rounded."""
UNSTOPPED, UNSTOPPED_WHOLE, LEAST_WHOLE_S = 0.05, 0.5, 5
"""Share of the answers of a window for which a client's threads may neither have waited nor lost their core:
in turns, where both ends are read exactly, and in whole runs of so many seconds, by those of a monitor (in
two seconds on a busy machine it missed 7 % and, of a starved run, a third)."""
PORTS = ("--mysql-port", "--pgsql-port")


def check_sources(run: Evidence, limits: Limits) -> Iterator[str]:
    """V26: log, turns, monitor and books agree on seconds, processor time, bytes and memory."""
    run.require_record()
    of_time = (_check_log_seconds, _check_costs, _check_monitor, _check_stops)
    for find in (*of_time, _check_memory, _check_port, _check_distance):
        yield from find(run)


def _check_log_seconds(run: Evidence) -> Iterator[str]:
    """Faults if a client's own log has work in seconds outside its arm's turns."""
    if not run.is_in_turns or run.turns is None or not run.log.checkpoints:
        return
    turns, ended = run.own_turns, run.log.checkpoints[0].total_time_s
    if not turns or ended is None:
        return
    # Its checkpoint comes as it goes on after the discard, in its first turn that counts.
    begun = turns[0].begin_us / 1e6 - ended
    first, last = run.get("started_monotonic_s"), run.observed["turns"]["clock"].get("started")
    latest = last[1] if last else first + run.clock_s[0]
    if not first - START_SLACK_S <= begun <= latest + START_SLACK_S:
        yield (
            f"by its checkpoint and its first turn sysbench's clock started {begun - first:.3f} s after its "
            f"process, by the clock of the turns up to {latest - first:.3f} s after it"
        )
    yield from _check_window(run)
    seconds = run.log.intervals.column("second") + begun
    # A line that is due while the client stands still comes when it goes on, with what its last turn did.
    after = seconds[:-1] - LABEL_S > turns[-1].end_us / 1e6
    idle = int(np.count_nonzero(after & (run.log.intervals.column("qps")[1:] > 0)))
    if idle > 1:
        yield f"its log has queries in {idle} seconds after the last turn of its arm"


def _check_window(run: Evidence) -> Iterator[str]:
    """Faults if the turns do not fill the window that their clock took."""
    window, taken = run.observed["turns"]["clock"].get("window"), run.taken
    if window is None:
        return
    before, after = taken[0].begin_us / 1e6 - window[0], window[1] - taken[-1].end_us / 1e6
    if not 0 <= before <= WINDOW_S or not -ROUNDED_S <= after <= WINDOW_S:
        ended = f"which ended {after:.3f} s after the last one"
        yield f"the first turn began {before:.3f} s after the clock's window, {ended}"
    still_s = run.observed["turns"].get("longest_stop_s")
    after_own = [(turn, later) for turn, later in pairwise(taken) if turn.arm == run.planned.arm]
    gap_s = max((later.begin_us - turn.end_us for turn, later in after_own), default=0) / 1e6
    if still_s is not None and gap_s > still_s + WINDOW_S:
        yield f"no turn began for {gap_s:.3f} s after one of the arm, which stood still after {still_s:.3f} s"


def _check_costs(run: Evidence) -> Iterator[str]:
    """Faults if parts used more than all cores in the turns, or a part's two counters differ."""
    if not run.is_in_turns:
        return
    report, cores = run.get("turns"), run.observed.get("machine_cores")
    used = report.get("cpu_s") or {}
    busy = sum(filter(None, run.turn_cpu_s.values())) / (run.active_s or math.inf)
    if cores and busy > cores * (1 + CORES_SLACK):
        yield f"in its turns the arm's parts used {busy:.2f} cores, and the machine has {cores}"
    if used and used.get("client") != run.get("client", "cpu_s"):
        yield f"the client used {run.get('client', 'cpu_s')} s of a core, {used.get('client')} s in its turns"
    for part, books in (report.get("costs") or {}).items():
        if None in (books["cpu_s"], books["user_s"], books["system_s"]) or used.get(part) == 0:
            continue  # A kernel that tells less, or a server that works in backends, which books alone hold.
        cpu_s, split = books["cpu_s"], books["user_s"] + books["system_s"]
        if abs(cpu_s - used.get(part, cpu_s)) > BOOKS_S + BOOKS_SHARE * cpu_s or abs(split - cpu_s) > BOOKS_S:
            yield f"{part} used {used.get(part)} s of a core by one clock, {cpu_s} s ({split} s) by its books"
    if report["count"] != (had := len(run.own_turns)):
        yield f"its arm had {had} turns, {report['count']} are recorded"


def _check_monitor(run: Evidence) -> Iterator[str]:
    """Faults if the monitor saw less client CPU time than its turns, or its end, show."""
    if run.monitor is None or checks_cluster.event_at_s(run) is not None:
        # What a part that was killed had used is counted with the client's.
        return
    try:
        table = costs.monitor_table(run.monitor)
    except ValueError:
        return  # What is no table is refused where the tables are made.
    parts = np.array(table["part"].to_pylist(), dtype=object)
    mine = parts == "client"
    yield from _check_parts(run, {*parts})
    if not mine.any():
        return
    seconds, cores = (table[name].to_numpy()[mine] for name in ("second", "cpu_cores"))
    if run.get("sysbench_s") - seconds[-1] > LACKING_S:
        return
    observed = float(np.nansum(cores * np.diff(np.concatenate([[0.0], seconds]))))
    report = run.get("client", "cpu_s")
    whole = UNSEEN_S + UNSEEN_SHARE * report, report + AHEAD_S
    missed, most = (0.0, math.inf) if run.is_in_turns else whole
    if report > observed + missed + AHEAD_S or observed > most:
        yield f"the client used {report:.2f} s of a core, its monitor saw {observed:.2f} s"


def _check_parts(run: Evidence, parts: set[str]) -> Iterator[str]:
    """Faults if a monitor that saw anything saw no client, or a proxy where none is, or none where one is."""
    # A relay that makes a distance is watched as a proxy; those in a cluster are not the arm's own.
    has_proxy = any(name.startswith(("proxy", "relay")) for name in run.observed.get("identity_before") or ())
    if parts and has_proxy != ("proxy" in parts) and "pd" not in parts:
        there, had = ("no", "one") if has_proxy else ("a", "none")
        yield f"the monitor saw {there} proxy, the arm has {had}"
    if parts and "client" not in parts:
        yield "the monitor saw no client"


def _check_stops(run: Evidence) -> Iterator[str]:
    """Faults if a client got more answers than stops of its threads: each stops until its answer."""
    # One that lost its core to the server finds the answer without a wait; the kernel counted both.
    if not run.is_in_turns and (run.active_s or 0.0) < LEAST_WHOLE_S:
        return
    try:
        client = costs.by_part(run, run.monitor or "").get("client", {})
    except (KeyError, ValueError):
        return  # What is no table, or no turns, is refused where the tables are made.
    waited, lost = (client.get(name, math.nan) for name in ("voluntary", "involuntary"))
    rate = require_printed(run.final.queries, "queries") / (run.active_s or math.inf)
    share = UNSTOPPED if run.is_in_turns else UNSTOPPED_WHOLE
    if rate > (1 + share) * (waited + lost):
        yield f"{rate:.0f} queries a second, for which the client's threads stopped {waited + lost:.0f} times"


def _check_memory(run: Evidence) -> Iterator[str]:
    """Faults if two counters of the same pages differ; of several servers the first pool is known."""
    several = len({item.get("server", 0) for item in run.observed.get("clients") or ()}) > 1
    for when in ("before", "after"):
        cache = run.cache(when)
        if cache is None:
            continue
        whole, pages = cache.pages_read * cache.page_bytes, cache.pages_read
        beside = UNPAGED_SHARE * whole + UNPAGED_PAGES * cache.page_bytes
        if abs(whole - cache.bytes_read) > beside:
            yield f"{when} the run {cache.bytes_read} bytes were read in {pages} pages"
        if cache.pages > cache.pages_of_pool:
            yield f"{when} the run {cache.pages} pages were in a pool of {cache.pages_of_pool}"
        work = (run.observed.get("work") or {}).get(when) or {}
        reads = work.get("Innodb_buffer_pool_reads")
        if reads is None or several:
            continue
        # What was read ahead is in one counter or in both.
        most = reads + work.get("Innodb_buffer_pool_read_ahead", 0) + UNDERWAY_PAGES
        if not reads - UNDERWAY_PAGES <= pages <= most:
            yield f"{when} the run the server had read {pages} pages by one counter, {reads} by another"


def _check_port(run: Evidence) -> Iterator[str]:
    """Faults if a client that connects to the server itself used a port other than the server's."""
    port = (run.observed.get("identity_before") or {}).get("port")
    setting = run.plan.get("arm_setting") or {}
    if port is None or setting.get("access") != registry.DIRECT or setting.get("zones"):
        return  # What lies between client and server has a port of its own.
    for word in run.get("argv"):
        name, _, request = word.partition("=")
        if name in PORTS and request != str(port):
            yield f"the client connected to port {request}, the arm's server has {port}"


def _check_distance(run: Evidence) -> Iterator[str]:
    """Faults if a transaction was over before its statements can have been at the server and back."""
    zones = (run.plan.get("arm_setting") or {}).get("zones")
    if not zones or checks_custom_scripts.is_custom(run):
        return
    transaction = run.transaction
    due_ms = 2 * zones["latency_ms"] * (transaction.reads + transaction.writes + transaction.other)
    least_ms = min((block.whole().latency_min_ms for block in run.log.summaries), default=due_ms)
    if least_ms < (1 - SOONER) * due_ms:
        yield f"a transaction took {least_ms} ms, its statements are under way for {due_ms:g} ms"
