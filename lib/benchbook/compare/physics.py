"""Checks from physics: what no measurement can show whose parts were seen and counted rightly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchbook.compare.sentences import listing
from benchbook.compare.spent import Cell, change, estimate
from benchbook.core.causes import Law

SLACK = 0.02
"""Share by which clocks that are read one after the other may differ."""
BYTES = 0.01
"""Share by which the bytes of a query may differ between arms with the same statements."""


def laws(cells: Sequence[Cell], baseline: str, level: float) -> Iterator[Law]:
    """Yield each law with what breaks it; None passed where nothing recorded can tell.

    Utilisation law: queries a second times the cost of a query is busy cores, which are no more than there
    are. Bytes of a query: the same statements carry the same bytes to and from the server, whatever is
    between.
    """
    yield _law("busy cores are no more than there are", *_used(cells, level))
    yield _law("a query carries the same bytes in all arms", *_bytes(cells, baseline, level))


def _law(name: str, broken: Sequence[str], checked: int) -> Law:
    if not checked:
        return Law(law=name, passed=None, detail="nothing recorded can tell")
    return Law(law=name, passed=not broken, detail=listing(list(broken)) if broken else f"{checked} checked")


def _used(cells: Sequence[Cell], level: float) -> tuple[list[str], int]:
    broken, checked = [], 0
    for cell in cells:
        for parts, cores in cell.rooms:
            used = estimate(cell.used(parts, cores), level)
            if used is None:
                continue
            checked += 1
            if used.value > 1 + SLACK:
                where = f"{cell.arm}, {cell.workload}, {cell.threads} threads"
                broken.append(
                    f"{listing(list(parts))} used {100 * used.value:.0f} % of their cores ({where})"
                )
    return broken, checked


def _bytes(cells: Sequence[Cell], baseline: str, level: float) -> tuple[list[str], int]:
    broken, checked = [], 0
    bases = {(cell.workload, cell.threads): cell for cell in cells if cell.arm == baseline}
    for cell in cells:
        base = bases.get((cell.workload, cell.threads))
        if base is None or base is cell or not {"server"} <= base.costs.keys() & cell.costs.keys():
            continue
        for way in ("received_bytes", "sent_bytes"):
            found = change(cell.cost(["server"], way), base.cost(["server"], way), level)
            if found is None:
                continue
            checked += 1
            low = found.value if found.low is None else found.low
            high = found.value if found.high is None else found.high
            if low > BYTES or high < -BYTES:
                where = f"{cell.arm}, {cell.workload}, {cell.threads} threads"
                broken.append(f"{100 * found.value:+.1f} % {way.replace('_', ' ')} ({where})")
    return broken, checked
