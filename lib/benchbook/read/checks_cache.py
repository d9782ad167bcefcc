"""Check V25: an arm that begins cold has next to nothing of its data in memory, and a warm one most of it."""

from __future__ import annotations

from benchbook.core.params import Limits
from benchbook.read.evidence import Evidence, Excused, Missing

ROW_BYTES = 206
"""The least that a row of sysbench takes: two numbers of 4 bytes, 120 and 60 letters, 18 of InnoDB's own."""
COLD_SHARE, STARTED_BYTES = 0.1, 8 << 20
"""Share of its data that a cold arm may hold, beside what any start reads of the server's own tables."""
WARM_SHARE = 0.75
"""Share of its data that a warm arm must hold. A pool that is smaller than its data is never warm: what it
holds follows from how a server evicts, and MariaDB keeps 1,536 pages free, more than 24 MiB of pool have."""


def cache(run: Evidence, limits: Limits) -> list[str]:
    """V25: what a server held in memory at its first query is what the arm begins with by its study."""
    if not run.seen:
        raise Missing("nothing was recorded")
    begins = run.seen.get("begins")
    if begins not in ("cold", "warm"):
        return []
    held = (run.seen.get("cache") or {}).get("before")
    if not held:
        if begins == "warm":
            return []
        raise Excused(
            "the server does not say what it holds in memory, so that it began cold follows from its start "
            "right before the run alone"
        )
    data = run.asked("tables") * run.asked("table_size") * ROW_BYTES
    in_memory, pool = (held[key] * held["page_bytes"] for key in ("pages", "pages_of_pool"))
    most, least = COLD_SHARE * data + STARTED_BYTES, WARM_SHARE * data
    shown = f"{in_memory / 1e6:.1f} MB of at least {data / 1e6:.1f} MB were in memory at its first query"
    if begins == "cold" and in_memory > most:
        return [f"it was to begin cold, and {shown}"]
    if begins == "warm" and in_memory < least and pool >= data:
        return [f"it was to begin warm, and {shown}"]
    return []
