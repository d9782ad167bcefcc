"""Checks from physics: what no measurement can show whose parts were seen and counted rightly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from benchbook.compare import edges
from benchbook.compare.intervals import MIN_BLOCKS
from benchbook.compare.sentences import listing
from benchbook.compare.spent import Cell, change, estimate
from benchbook.core import traits
from benchbook.core.causes import Causes, Law

SLACK = 0.02
"""Share by which clocks that are read one after the other may differ."""
TICKS = 0.25
"""Share by which a machine's books, which are made tick by tick, may tell less than those of its programs."""
BYTES = 0.01
"""Share by which the bytes of a query may differ between arms with the same statements."""
OWN = 0.05
"""Threads of a part's own, such as those that write in the background, which may wait too."""
PAGES = 0.01
"""Pages a query from which data that fit were read from the disk all the same."""

Told = Iterator[str | None]


def laws(cells: Sequence[Cell], baseline: str, level: float) -> Iterator[Law]:
    """Yield each law with what breaks it; None passed where nothing recorded can tell.

    Utilisation law: queries a second times the cost of a query is busy cores, no more than there are. Little
    (1961): queries a second times the time that a query is at work in a part, or waits there for a core, are
    its queries at once, no more than there are threads. The same statements carry the same bytes. What fits
    in memory is not read from the disk, and what was not read before is.
    """
    bases = {(cell.workload, cell.threads): cell for cell in cells if cell.arm == baseline}
    checks: Mapping[str, Callable[[Cell], Told]] = {
        "busy cores are no more than there are": lambda cell: _used(cell, level),
        "a part has no more queries at once than there are threads": lambda cell: _at_once(cell, level),
        "a query carries the same bytes in all arms": lambda cell: _bytes(
            cell, bases.get((cell.workload, cell.threads)), level
        ),
        "data that fit in memory are not read from the disk": lambda cell: _read(cell, "warm"),
        "what was not read before is read from the disk": lambda cell: _read(cell, "cold"),
    }
    for law, check in checks.items():
        told = [
            found and f"{found} ({cell.arm}, {cell.workload}, {cell.threads} threads)"
            for cell in cells
            for found in check(cell)
        ]
        broken = [found for found in told if found]
        detail = (
            listing(broken) if broken else f"{len(told)} checked" if told else "nothing recorded can tell"
        )
        yield Law(law=law, passed=not broken if told else None, detail=detail)


def broken(found: Causes | None) -> list[str]:
    """Say which laws the books of a study break; such a study has no headline."""
    return [f"{law.law}, but {law.detail}" for law in (found.physics if found else ()) if law.passed is False]


def _used(cell: Cell, level: float) -> Told:
    """At the end of a turn each thread may have a query under way, whose cost falls behind it."""
    for parts, cores in cell.rooms:
        busy = estimate(cell.cost(parts, "busy_cores"), level)
        if busy is None:
            continue
        behind = cell.threads * float(cell.cost(parts).mean()) / (1e3 * cell.turn_ms) if cell.turn_ms else 0.0
        is_broken = edges.is_above(busy.value, cores * (1 + SLACK) + behind)
        yield f"{listing(list(parts))} used {busy.value:.2f} of {cores:g} cores" if is_broken else None
    machine, own = float(cell.busy.mean()), float((cell.busy - cell.others).mean())
    if edges.is_above(own, machine * (1 + TICKS) + OWN):
        yield f"all parts used {own:.2f} cores, and the whole machine {machine:.2f}"


def _at_once(cell: Cell, level: float) -> Told:
    # Between its turns an arm's threads wait for the other arms'.
    for part in cell.costs if cell.is_closed and cell.turn_ms is None else ():
        # Many threads of such an engine work for one query, and for none: each waits for a core by itself.
        if part == "server" and cell.engine and traits.engine(cell.engine).has_own_work:
            continue
        waited = estimate(cell.qps * (cell.cost([part]) + cell.cost([part], "wait_us")) / 1e6, level)
        if waited is not None:
            is_broken = edges.is_above(waited.value, cell.threads * (1 + SLACK) + OWN)
            yield f"{waited.value:.2f} queries at once in the {part}" if is_broken else None


def _bytes(cell: Cell, base: Cell | None, level: float) -> Told:
    if base is None or base is cell or cell.has_errors or base.has_errors:
        return
    # Engines of two families say the same in other words.
    if cell.engine != base.engine:
        return
    if not {"server"} <= base.costs.keys() & cell.costs.keys():
        return
    for way in ("received_bytes", "sent_bytes"):
        found = change(cell.cost(["server"], way), base.cost(["server"], way), level)
        if found is None or found.n < MIN_BLOCKS:
            continue
        low, high = (found.value if end is None else end for end in (found.low, found.high))
        is_broken = edges.is_outside(low, high, -BYTES, BYTES)
        yield f"{100 * found.value:+.1f} % {way.replace('_', ' ')}" if is_broken else None


def _read(cell: Cell, begins: str) -> Told:
    pages, first = (cell.cost(["server"], name) for name in ("page_reads", "first_read_bytes"))
    if cell.begins != begins:
        return
    if begins == "cold" and first.notna().any():
        yield None if (first.dropna() > 0).all() else "nothing was read in a run's first second"
    elif begins == "cold" and pages.notna().any():
        yield None if (pages.dropna() > 0).all() else "no page was read"
    elif begins == "warm" and cell.fits and pages.notna().any():
        yield f"{pages.mean():.3f} pages a query" if edges.is_above(float(pages.mean()), PAGES) else None
