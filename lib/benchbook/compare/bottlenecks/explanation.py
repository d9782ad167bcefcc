"""Why a treatment served more or fewer queries than the baseline: one sentence, by rule, or none.

A cause is named only where it gives the effect's size. On full cores queries a second are what the host left
of them over the cost of a query, so cores and costs predict a ratio. Where nothing is full, a query's time is
processor time of the parts and waiting, so these predict the latency that was added.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.bottlenecks.service_demand import (
    MOST,
    NEARLY,
    PARTS,
    WORTH,
    Cell,
    Parts,
    Work,
    bracketed,
    change,
    decided,
    difference,
    differing,
    estimate,
    gives,
    places,
    waiter,
)
from benchbook.compare.stats import tolerance
from benchbook.compare.text import labels
from benchbook.compare.text.sentences import told
from benchbook.core.artifacts.bottlenecks import Cause, Estimate

NAMED = 0.1
"""Share of an added latency from which what makes it is named."""
IDLE = 0.03
"""Share of a core from which its idle time is named."""
AT_A_RATE: Mapping[str, object] = {
    **{"quantity": "cost", "qps": None, "full": {}, "added_latency_us": None, "beside": ()},
    "reason": "both arms are asked for the same rate",
}
"""What differs where both arms are asked for as many queries: no effect is there to explain."""
MOSTLY = 0.5
"""Share of what several parts cost more from which one of them is named."""
REST = 0.5
"""Share of what costs give that the idle time of cores which are all but full may take from it or add."""


@dataclass(frozen=True)
class _Limit:
    """Some of an arm's cores with the parts on them, and whether they are full."""

    cell: Cell
    name: str
    parts: Parts
    cores: float
    is_full: bool | None

    @property
    def cost(self) -> pd.Series:
        return self.cell.cost(self.parts)

    @property
    def left(self) -> pd.Series:
        return self.cell.left(self.cores)

    @property
    def used(self) -> pd.Series:
        return self.cell.used(self.parts, self.cores)


@dataclass(frozen=True)
class _Named:
    """A cause in a sentence and in about six words, and what it predicts by block: logarithms or us."""

    sentence: str
    short: str
    predicted: pd.Series
    open: float = 0.0
    """What it leaves open as a logarithm: cores that are full may be idle for a tenth."""


def contrast(base: Cell, treated: Cell, level: float, names: Mapping[str, str]) -> Cause:
    """Return the cause of one effect; `names` are the arms in words. What is open is named in `reason`."""
    limits = [_limits(cell, level, names) for cell in (base, treated)]
    costs = {part: change(treated.cost([part]), base.cost([part]), level) for part in base.costs}
    work = differing(base, treated, level)
    found = Cause(
        workload=treated.workload,
        threads=treated.threads,
        treatment=treated.arm,
        quantity=None,
        qps=change(treated.qps, base.qps, level),
        full={cell.arm: _full(own) for cell, own in zip((base, treated), limits, strict=True)},
        cost={part: one for part, one in costs.items() if one is not None},
        added_latency_us=difference(treated.latency_us, base.latency_us, level),
        added_cpu_us=difference(treated.cost(PARTS), base.cost(PARTS), level),
        sentence=None,
        beside=tuple(f"the server had {one.told}" for one in work),
    )
    if not treated.is_closed:
        return found.model_copy(update=AT_A_RATE)
    if not decided(found.qps):
        return _withheld(found, "there is no difference of queries a second to explain")
    if not all(limits):
        return _withheld(found, "it is not known on which cores all parts ran")
    is_slower = found.qps is not None and found.qps.value < 0
    slow, fast = reversed(limits) if is_slower else limits
    seen = np.log(treated.qps / base.qps).dropna()
    for one in _of_capacity(slow, fast, is_slower, level):
        predicted = one.predicted if is_slower else -one.predicted
        if gives(predicted, seen, level, one.open):
            cost = found.cost.get("server")
            more = bracketed(work, cost.value > 0) if cost and "server full" in one.short else ""
            named = replace(one, sentence=f"{one.sentence}{more}", short=f"{one.short}{more}")
            return _with(found, "capacity", named, estimate(predicted.dropna(), level, math.expm1))
    if (reason := _not_idle(slow, fast)) is not None:
        return _withheld(found, reason)
    called = {"treatment": limits[1][0].name, "only": slow[0].name if _full(fast) else ""}
    return _of_latency(found, base, treated, level, called, work)


def _limits(cell: Cell, level: float, names: Mapping[str, str]) -> list[_Limit]:
    name = labels.in_sentence(names.get(cell.arm, cell.arm))
    return [_Limit(cell, name, one.parts, one.cores, one.is_full) for one in places(cell, level)]


def _full(own: Sequence[_Limit]) -> Parts:
    return tuple(part for limit in own if limit.is_full for part in limit.parts)


def _withheld(found: Cause, reason: str) -> Cause:
    return found.model_copy(update={"reason": reason})


def _with(found: Cause, quantity: str, named: _Named, predicted: Estimate | None) -> Cause:
    told = {"quantity": quantity, "sentence": named.sentence, "short": named.short, "predicted": predicted}
    return found.model_copy(update=told)


def _of_capacity(
    slow: Sequence[_Limit], fast: Sequence[_Limit], is_slower: bool, level: float
) -> Iterator[_Named]:
    """Yield what may limit the slower arm, with the logarithm that it predicts of slower over faster.

    Cores that are full in both arms come first. Where the faster one does not fill its own, they bound it.
    Last come cores that are full in one arm and all but full in the other, with their idle time.
    """
    pairs = sorted(itertools.product(slow, fast), key=lambda pair: (not pair[1].is_full, not _shared(*pair)))
    for one, other in pairs:
        if one.is_full and (_shared(one, other) or other.is_full):
            yield from _of_pair(one, other, is_slower)
    for one, other in pairs:
        if (one.is_full or other.is_full) and min(one.used.mean(), other.used.mean()) >= NEARLY:
            for named in _of_pair(one, other, is_slower):
                yield from _with_idle(named, one, other, level)
    for one, other in itertools.product(fast, slow):
        if one.is_full and "server" in one.parts and _shared(one, other):
            yield from _of_neighbour(other, one)


def _with_idle(named: _Named, slow: _Limit, fast: _Limit, level: float) -> Iterator[_Named]:
    """Yield a cause with the time that its cores were idle, where that is not most of what it gives."""
    used = np.log(slow.used / fast.used)
    by_cost = estimate(named.predicted.dropna(), level)
    if by_cost is None or not decided(by_cost) or abs(float(used.mean())) > REST * abs(by_cost.value):
        return
    idlest = min(fast, slow, key=lambda one: float(one.used.mean()))
    idle = "".join(told("because.j2", kind="idle", idle_from=IDLE, one=idlest))
    more = "" if idle in named.sentence else idle
    yield replace(named, sentence=f"{named.sentence}{more}", predicted=named.predicted + used)


def _shared(one: _Limit, other: _Limit) -> bool:
    return bool(set(one.parts) & set(other.parts))


def _of_pair(slow: _Limit, fast: _Limit, is_slower: bool) -> Iterator[_Named]:
    """Yield cores, cost, and both as causes where the same parts share cores; else what other parts cost."""
    base, treated = (fast, slow) if is_slower else (slow, fast)
    if slow.parts != fast.parts:
        predicted = np.log(slow.left / slow.cost) - np.log(fast.left / fast.cost)
        yield _named("two costs", predicted, _open(fast), base=base, treated=treated, fast=fast)
        return
    cores, cost, open_ = np.log(slow.left / fast.left), -np.log(slow.cost / fast.cost), _open(fast)
    values: dict[str, Any] = {
        "base": base,
        "treated": treated,
        "slow": slow,
        "fast": fast,
        "mostly": _mostly(slow, fast),
    }
    values["changed"] = _change(treated.cost, base.cost)
    if slow.cores * WORTH <= fast.cores:
        yield _named("pair", cores, open_, **values, of_cores=True, of_cost=False)
        yield _named("pair", cores + cost, open_, **values, of_cores=True, of_cost=True)
    else:
        yield _named("pair", cost, open_, **values, of_cores=False, of_cost=True)


def _open(fast: _Limit) -> float:
    """Return what the use of cores leaves open of a prediction; cores far from full only bound it."""
    return 0.0 if fast.is_full is False else -math.log(NEARLY)


def _mostly(slow: _Limit, fast: _Limit) -> str | None:
    """Return which of several parts makes most of what their cost differs by, in each block."""
    differ = slow.cost - fast.cost
    for part in slow.parts if len(slow.parts) > 1 else ():
        own = slow.cell.cost([part]) - fast.cell.cost([part])
        if (own / differ > MOSTLY).all():
            return part
    return None


def _of_neighbour(slow: _Limit, fast: _Limit) -> Iterator[_Named]:
    """Yield as a cause what a neighbour leaves of the slower arm's cores, alone and with the cost there.

    Both together fill the cores, and programs of no part of the arm use most of what it lacks.
    """
    got, had = (one.cell.cost(one.parts, "busy_cores") for one in (slow, fast))
    others, lost = float(slow.cell.others.mean()), float(had.mean() - got.mean())
    is_shared = slow.cell.has_neighbour and not fast.cell.has_neighbour and lost > IDLE * fast.cores
    if (
        not is_shared
        or others < lost * (1 - MOST)
        or float(got.mean()) + others < NEARLY * float(slow.left.mean())
    ):
        return
    values: dict[str, Any] = {"slow": slow, "fast": fast, "got": got.mean()}
    yield _named("neighbour", np.log(got / had), **values, changed=None)
    predicted = np.log(got / had) - np.log(slow.cost / fast.cost)
    yield _named("neighbour", predicted, **values, changed=_change(slow.cost, fast.cost))


def _not_idle(slow: Sequence[_Limit], fast: Sequence[_Limit]) -> str | None:
    """Return why more than latency may limit the slower arm."""
    others = float(slow[0].cell.others.mean())
    perhaps = (one for one in slow if tolerance.is_above(float(one.used.mean()) + others / one.cores, NEARLY))
    said = told(
        "because.j2",
        kind="open",
        has_neighbour=slow[0].cell.has_neighbour or fast[0].cell.has_neighbour,
        unsure=next((one for one in slow if one.is_full is not False), None),
        perhaps=next(perhaps, None),
        others=others,
    )
    return said[0] if said else None


def _of_latency(
    found: Cause, base: Cell, treated: Cell, level: float, called: Mapping[str, Any], work: Sequence[Work]
) -> Cause:
    """Say what an added latency is made of: by part processor time and waiting for a core, and other waiting.

    Named is what is decided and makes a tenth or more, or less where that does not give the latency's size.
    Where it is mostly waiting for a core, other programs may be on it, and nothing is said to be idle.
    """
    latency = (treated.latency_us - base.latency_us).dropna()
    seen = estimate(latency, level)
    if seen is None or not decided(seen):
        return _withheld(found, "nothing is full, and the blocks don't tell how much longer a query takes")
    added = {f"of the {part}'s processor": _added(base, treated, part, "cpu_us") for part in PARTS}
    for part in PARTS:
        queued = _added(base, treated, part, "wait_us")
        if queued.notna().all():
            added[f"of waiting for the {part}'s core"] = queued
    made = pd.DataFrame(added).reindex(latency.index)
    rest = latency - made.sum(axis=1)
    at = waiter(base, treated, bool(rest.mean() > 0), level)
    made[f"of waiting in the {at}" if at else "of waiting"] = rest
    sizes = {str(what): estimate(made[what], level) for what in made}
    shown = {what: one.value for what, one in sizes.items() if one is not None and decided(one)}
    for least in (NAMED, 0.0):
        named = {
            what: us for what, us in shown.items() if not tolerance.is_below(abs(us), least * abs(seen.value))
        }
        predicted = made[list(named)].sum(axis=1)
        if gives(predicted, latency, level):
            break
    else:
        return _withheld(found, "nothing is full, and the blocks don't tell what makes a query take longer")
    most = sorted(named, key=lambda what: -named[what] * seen.value)
    behind = [(what, text) for what in most if (text := _behind(what, named[what] > 0, work))]
    more = dict(behind[:1])
    made = {what: named[what] for what in most}
    said = _named("latency", predicted, seen=seen.value, made=made, more=more, **called)
    return _with(found, "latency", said, estimate(predicted, level))


def _named(kind: str, predicted: pd.Series, open_: float = 0.0, **values: object) -> _Named:
    """Return a cause in the words of its template."""
    sentence, short = told("because.j2", kind=kind, idle_from=IDLE, **values)
    return _Named(sentence, short, predicted, open_)


def _added(base: Cell, treated: Cell, part: str, what: str) -> pd.Series:
    """Return the time of a kind that a part spends more on a query, us; an arm without it spends none."""
    now, was = (cell.cost([part], what) if part in cell.costs else 0 * cell.qps for cell in (treated, base))
    return now - was


def _behind(what: str, is_more: bool, work: Sequence[Work]) -> str:
    """Return in brackets what of the server's work may make a time: for waiting, what a query waits for."""
    if "server" not in what and what != "of waiting":
        return ""
    return bracketed(work, is_more, only_waited="waiting" in what)


def _change(now: pd.Series, was: pd.Series) -> float:
    return float(np.expm1(np.log(now / was).mean()))
