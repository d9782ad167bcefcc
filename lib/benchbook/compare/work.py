"""What of a server's work for a query differs between two arms, and which part stops to wait more often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchbook.compare.sentences import listing
from benchbook.compare.spent import Cell, decided, difference
from benchbook.core import traits

KINDS = {
    "page_reads": ("pages not in its memory", 0.01),
    "read_bytes": ("bytes from the disk", 100.0),
    "row_reads": ("rows and keys", 0.1),
    "log_bytes": ("bytes of log", 10.0),
    "fsyncs": ("waits for the disk", 0.01),
    "lock_wait_us": ("µs of waiting for locks", 1.0),
    "instructions": ("instructions", 1000.0),
    "llc_misses": ("misses of its processor's last cache", 1.0),
}
"""What a server does for a query that is worth a word beside its cost, and from which difference on."""
WAITED = ("page_reads", "read_bytes", "fsyncs", "lock_wait_us")
"""What of it a query waits for."""
OF_KERNEL = ("read_bytes", "instructions", "llc_misses")
"""What of it the kernel counts, alike for all engines."""
WORTH = 1.1
"""Times by which such work, or a part's cores, must differ at the least."""
ONCE = 0.75, 1.5
"""Stops a query of a thread that only waits for the next one."""
STOPS = 0.5
"""Stops a query from which a thread waits for something else."""


@dataclass(frozen=True)
class Work:
    """One kind of work that differs: how much a query has of it, and whether a treatment has more."""

    told: str
    is_more: bool
    is_waited: bool


def differing(base: Cell, treated: Cell, level: float) -> list[Work]:
    """Return what of the server's work for a query differs: decided, and a tenth at the least."""
    found: list[Work] = []
    for name, (what, least) in KINDS.items():
        if not {"server"} <= base.costs.keys() & treated.costs.keys():
            continue
        # Each engine counts in its own way, and pages are what the bytes consist of.
        if name not in OF_KERNEL and base.engine != treated.engine:
            continue
        if name == "read_bytes" and any("pages" in one.told for one in found):
            continue
        was, now = base.cost(["server"], name), treated.cost(["server"], name)
        if not decided(difference(now, was, level)):
            continue
        low, high = sorted((float(was.mean()), float(now.mean())))
        if high >= WORTH * low and high - low >= least:
            told = f"{_number(now.mean())} {what} a query, not {_number(was.mean())}"
            found.append(Work(told, bool(now.mean() > was.mean()), name in WAITED))
    return found


def bracketed(work: Sequence[Work], is_more: bool, only_waited: bool = False) -> str:
    """Return in brackets what of the server's work goes one way, to stand behind what it makes."""
    told = [one.told for one in work if one.is_more == is_more and (one.is_waited or not only_waited)]
    return f" (the server had {listing(told[:2])})" if told else ""


def waiter(base: Cell, treated: Cell, is_more: bool, level: float) -> str | None:
    """Return which of client and server stops half a time a query more, or less, where it is one of them.

    A thread that serves one connection stops once a query, to wait for the next. Where there is a proxy, what
    passes through in pieces stops those at both its sides; some engines' threads stop for work of their own.
    """
    is_own = any(cell.engine and traits.engine(cell.engine).has_own_work for cell in (base, treated))
    if is_own or any("proxy" in cell.costs for cell in (base, treated)):
        return None
    found = []
    for part in ("client", "server"):
        was, now = (cell.cost([part], "voluntary") for cell in (base, treated))
        more = difference(now, was, level)
        if more is None or not decided(more) or abs(more.value) < STOPS:
            continue
        if (more.value > 0) == is_more and ONCE[0] <= min(was.mean(), now.mean()) <= ONCE[1]:
            found.append(part)
    return found[0] if len(found) == 1 else None


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"
