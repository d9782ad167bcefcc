"""Why a treatment served more or fewer queries than the baseline: one sentence, by rule, or none."""

from __future__ import annotations

import math
from collections.abc import Mapping

from benchbook.compare.sentences import listing
from benchbook.compare.spent import Cell, change, difference, full
from benchbook.core.causes import Cause, Estimate

CARRIED = 2 / 3
"""Least share of an effect that the named cost must make, both as logarithms or as times."""
WORK = {
    "page_reads": "pages not in its memory",
    "row_reads": "rows and keys",
    "log_bytes": "bytes of log",
    "fsyncs": "waits for the disk",
    "lock_wait_us": "µs of waiting for locks",
}
"""What a server does for a query that is worth a word beside its cost."""
WAITED = ("page_reads", "fsyncs", "lock_wait_us")
"""What of it a query waits for."""
WORTH = 1.1
"""Times by which such work, or a part's cores, must differ at the least."""
Parts = tuple[str, ...]


def contrast(base: Cell, treated: Cell, level: float, names: Mapping[str, str]) -> Cause:
    """Return the cause of one effect; `names` are the arms in words.

    A part that is full in both arms: queries a second follow its cost. In one of them: it is relieved or
    filled by the other. In none: latency decides. What is open is named in `reason`.
    """
    states = {cell.arm: full(cell, level) for cell in (base, treated)}
    filled = {arm: [parts for parts, is_full in own.items() if is_full] for arm, own in states.items()}
    both = [part for part in base.costs if part in treated.costs]
    costs = {part: change(treated.cost([part]), base.cost([part]), level) for part in both}
    qps = change(treated.qps, base.qps, level)
    found = Cause(
        workload=treated.workload,
        threads=treated.threads,
        treatment=treated.arm,
        quantity=None,
        qps=qps,
        full={arm: tuple(part for parts in own for part in parts) for arm, own in filled.items()},
        cost={part: one for part, one in costs.items() if one is not None},
        added_latency_us=difference(treated.latency_us, base.latency_us, level),
        added_cpu_us=_added_cpu(base, treated, level),
        sentence=None,
        beside=_beside(base, treated, level),
        reason=_unsaid(base, treated, states, qps),
    )
    if found.reason is not None:
        return found
    said: dict[str, object]
    slow = base if found.qps is not None and found.qps.value > 0 else treated
    if any(filled.values()) and (sentence := _of_capacity(base, treated, filled, level, names)):
        said = {"quantity": "capacity", "sentence": sentence}
    elif any(is_full is not False for is_full in states[slow.arm].values()):
        said = {"reason": "neither the cost of a query on full cores nor latency carries the effect"}
    else:
        # What the faster arm fills does not limit the slower one, which has only its latency.
        only = f" with {names.get(slow.arm, slow.arm)}" if any(filled.values()) else ""
        sentence, reason = _of_latency(found, only, slow is treated)
        said = {"quantity": "latency", "sentence": sentence, "reason": reason}
    return found.model_copy(update=said)


def _unsaid(
    base: Cell, treated: Cell, states: Mapping[str, Mapping[Parts, bool | None]], qps: Estimate | None
) -> str | None:
    """Return why there is nothing to explain, or nothing to explain it with."""
    if not _is_decided(qps):
        return "there is no difference of queries a second to explain"
    if any(len(own) == 0 for own in states.values()):
        return "it is not known on which cores all parts ran"
    return None


def _of_capacity(
    base: Cell, treated: Cell, filled: Mapping[str, list[Parts]], level: float, names: Mapping[str, str]
) -> str | None:
    """Return the first sentence that is carried, where cores are full in an arm; None if none is.

    Queries a second of an arm whose cores are full are these over their cost of a query. So a change of that
    cost explains what both arms fill; what only the slower one fills limits it alone.
    """
    told = {cell.arm: names.get(cell.arm, cell.arm) for cell in (base, treated)}
    both = [
        (one, other) for one in filled[base.arm] for other in filled[treated.arm] if not set(one) & set(other)
    ]
    same = [one for one in filled[base.arm] if any(set(one) & set(other) for other in filled[treated.arm])]
    for one in same:
        if (said := _cost(base, treated, one, level)) is not None:
            return f"because {_core(one)} full and a query costs {_them(one)} {said} with {told[treated.arm]}"
    for one, other in both:
        limits = base.cost(one), treated.cost(other)
        if _carries(change(limits[1], limits[0], level), base, treated, level):
            was, now = (_us(float(limit.mean())) for limit in limits)
            return (
                f"because {_core(one)} full with {told[base.arm]} ({was} a query), "
                f"and that of {_owner(other)} with {told[treated.arm]} ({now})"
            )
    if (said := _given(base, treated, filled, told)) is not None:
        return said
    is_faster = float(treated.qps.mean()) > float(base.qps.mean())
    slow = base if is_faster else treated
    for one in filled[slow.arm]:
        if one in same or (said := _cost(base, treated, one, level)) is None:
            continue
        if is_faster:
            return (
                f"because {_core(one)} full with {told[base.arm]} "
                f"and a query costs {_them(one)} {said} with {told[treated.arm]}"
            )
        return (
            f"because a query costs {_owner(one)} {said} with {told[slow.arm]}, and {_core(one)} full there"
        )
    return None


def _given(
    base: Cell, treated: Cell, filled: Mapping[str, list[Parts]], told: Mapping[str, str]
) -> str | None:
    """Return the sentence where the slower arm has fewer cores and fills them, or has to share them.

    Both are arranged, by a quota, a set of cores or a neighbour, and seen in what was used.
    """
    slow, fast = (base, treated) if float(treated.qps.mean()) > float(base.qps.mean()) else (treated, base)
    sizes = {cell.arm: dict(cell.rooms) for cell in (slow, fast)}
    for one in filled[slow.arm]:
        was, now = sizes[slow.arm][one], sizes[fast.arm].get(one)
        if now is not None and now >= WORTH * was:
            more = f"has {now:g} of a core with {told[fast.arm]}, not {was:g}"
            return f"because {_core(one)} full with {told[slow.arm]}, and {_owner(one)} {more}"
    if not slow.has_neighbour or fast.has_neighbour:
        return None
    for one in filled[fast.arm]:
        had, has = (float(cell.cost(one, "busy_cores").mean()) for cell in (fast, slow))
        taken = float(slow.others.mean()) - float(fast.others.mean())
        share = math.log(has / had) / math.log(float(slow.qps.mean()) / float(fast.qps.mean()))
        if "server" in one and share >= CARRIED and taken >= CARRIED * (had - has):
            return f"because {_core(one)} full with {told[fast.arm]}, and a neighbour takes {taken:.2f} of it"
    return None


def _cost(base: Cell, treated: Cell, parts: Parts, level: float) -> str | None:
    """Return how the cost of a query on some cores changed, in words, if that carries the effect."""
    place = {
        cell.arm: next((own for own, _ in cell.rooms if set(own) & set(parts)), ())
        for cell in (base, treated)
    }
    if not all(place.values()):
        return None
    found = change(treated.cost(place[treated.arm]), base.cost(place[base.arm]), level)
    if found is None or not _carries(found, base, treated, level):
        return None
    return f"{100 * abs(found.value):.0f} % {'less' if found.value < 0 else 'more'}"


def _carries(cost: Estimate | None, base: Cell, treated: Cell, level: float) -> bool:
    """Say whether a change of cost goes against that of queries a second, and makes half of it or more."""
    qps = change(treated.qps, base.qps, level)
    if cost is None or qps is None or not (_is_decided(cost) and _is_decided(qps)):
        return False
    return -math.log1p(cost.value) / math.log1p(qps.value) >= CARRIED


def _of_latency(found: Cause, only: str, is_slower: bool) -> tuple[str | None, str | None]:
    """Return the sentence where nothing is full, or why there is none; `only` names the arm if it is one."""
    latency, cpu = found.added_latency_us, found.added_cpu_us
    if latency is None or not _is_decided(latency):
        return None, "nothing is full, and the blocks don't tell how much longer a query takes"
    way = "more" if latency.value > 0 else "less"
    said = f"because nothing is full{only} and a query takes {_us(latency.value)} {way}"
    share = cpu.value / latency.value if cpu is not None and _is_decided(cpu) else 0.0
    if cpu is not None and share >= CARRIED and share <= 1 / CARRIED:
        return f"{said}, with {_us(cpu.value)} {way} processor time", None
    if not _is_small(latency, cpu):
        return None, "nothing is full, and the blocks don't tell whether added latency is processor time"
    named = [text for text in found.beside if any(WORK[name] in text for name in WAITED)]
    return f"{said}, waiting{f', while {named[0]}' if named else ' and not at work on a processor'}", None


def _is_small(latency: Estimate, cpu: Estimate | None) -> bool:
    """Say whether processor time can't make a third of an added latency, whatever it is in its interval."""
    if cpu is None or cpu.low is None or cpu.high is None:
        return False
    return max(abs(cpu.low), abs(cpu.high)) < (1 - CARRIED) * abs(latency.value)


def _added_cpu(base: Cell, treated: Cell, level: float) -> Estimate | None:
    if not base.costs or not treated.costs:
        return None
    return difference(treated.cost(list(treated.costs)), base.cost(list(base.costs)), level)


def _beside(base: Cell, treated: Cell, level: float) -> tuple[str, ...]:
    """Return what of the server's own work for a query differs, decided and by a tenth at the least."""
    found = []
    for name, what in WORK.items():
        if not {"server"} <= base.costs.keys() & treated.costs.keys():
            continue
        was, now = base.cost(["server"], name), treated.cost(["server"], name)
        grown = difference(now, was, level)
        if grown is None or not _is_decided(grown):
            continue
        low, high = sorted((float(was.mean()), float(now.mean())))
        if high >= WORTH * low and high >= 0.005:
            found.append(f"the server had {_number(now.mean())} {what} a query, not {_number(was.mean())}")
    return tuple(found)


def _is_decided(found: Estimate | None) -> bool:
    return (
        found is not None and found.low is not None and found.high is not None and found.low * found.high > 0
    )


def _core(parts: Parts) -> str:
    """Return the cores of some parts in words, with their verb."""
    return f"the {parts[0]}'s core is" if len(parts) == 1 else f"the core of {listing(list(parts))} is"


def _them(parts: Parts) -> str:
    return "it" if len(parts) == 1 else "them"


def _owner(parts: Parts) -> str:
    return f"the {parts[0]}" if len(parts) == 1 else listing(list(parts))


def _us(value: float) -> str:
    return f"{abs(value):.1f} µs" if abs(value) < 10 else f"{abs(value):.0f} µs"


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"
