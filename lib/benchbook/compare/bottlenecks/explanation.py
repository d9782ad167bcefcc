"""Explanation of a treatment's effect on queries a second: one sentence, by rule, or none.

In a closed loop X = U * C / D holds of every resource (utilization law): queries a second are the utilization
of some cores, times how many there are, over the CPU time per query of the parts on them. The rules, of which
the first that accounts for the size of the effect is written:

1. The same cores are saturated in both arms: their number and their demand per query decide.
2. Other cores are saturated in each arm: the demand per query on each decides.
3. Cores are saturated in one arm, and busy in the other: as 1 and 2, with the utilization beside it.
4. A neighbour takes cores from a server that was saturated without it.
5. Nothing is saturated in the slower arm: CPU time, waits for a core and blocked time make the added latency.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.bottlenecks import service_demand
from benchbook.compare.bottlenecks.service_demand import PARTS, ArmCell, Work, estimate_mean, is_decided
from benchbook.compare.stats import tolerance
from benchbook.compare.text import labels
from benchbook.compare.text.sentences import render_paragraphs
from benchbook.core.artifacts.bottlenecks import Cause

BLOCKED, OFF_CPU = "blocked time", "off-CPU time"
NAMED = 0.1
"""Share of an effect from which what makes it is named."""
IDLE = 0.03
"""Share of its cores that a server must lack for a neighbour to have taken them."""
HALF = 0.5
"""Share of a change of demand that one part must make, or that a change of utilization may take from it."""
AT_A_RATE: Mapping[str, object] = {
    **{"quantity": "cost", "qps": None, "full": {}, "added_latency_us": None, "beside": ()},
    "reason": "both arms are asked for the same rate",
}
"""What differs where both arms are asked for as many queries: no effect is there to explain."""


@dataclass(frozen=True)
class Resource:
    """Some cores of an arm with the parts on them; `is_saturated` is None where no interval tells.

    By block: CPU µs per query (service `demand`), cores that the host left, and the share of these in use.
    """

    cell: ArmCell
    name: str
    parts: service_demand.Parts
    cores: float
    is_saturated: bool | None

    @cached_property
    def demand(self) -> pd.Series:
        return self.cell.cost(self.parts)

    @cached_property
    def available(self) -> pd.Series:
        return self.cell.left(self.cores)

    @cached_property
    def utilization(self) -> pd.Series:
        return self.cell.used(self.parts, self.cores)

    def is_busy(self) -> bool:
        return float(self.utilization.mean()) >= service_demand.NEARLY


def explain_contrast(base: ArmCell, treated: ArmCell, level: float, names: Mapping[str, str]) -> Cause:
    """Bottleneck of one effect in a sentence, or the `reason` for which none is named.

    `names` are the arms in words, `level` is that of all intervals.
    """
    resources = [_resources(cell, level, names) for cell in (base, treated)]
    work = service_demand.changed_work(base, treated, level)
    full = {cell.arm: _saturated(of) for cell, of in zip((base, treated), resources, strict=True)}
    cause = _measure_contrast(base, treated, level, full, work)
    if not treated.is_closed:
        return cause.model_copy(update=AT_A_RATE)
    if cause.qps is None or not is_decided(cause.qps):
        return cause.model_copy(update={"reason": "there is no difference of queries a second to explain"})
    if not all(resources):
        return cause.model_copy(update={"reason": "it is not known on which cores all parts ran"})
    is_slower = cause.qps.value < 0
    slow, fast = reversed(resources) if is_slower else resources
    observed = np.log(treated.qps / base.qps).dropna()
    pair = _limiting_pair(slow, fast)
    by_capacity = _from_capacity(*pair, observed, is_slower, level, work) if pair else None
    if result := by_capacity or _from_neighbour(slow, fast, observed, level):
        predicted = estimate_mean(result[1].dropna(), level, math.expm1)
        texts = {"sentence": result[0], "short": result[0]}
        return cause.model_copy(update={"quantity": "capacity", "predicted": predicted, **texts})
    if reason := _other_limit(slow, fast):
        return cause.model_copy(update={"reason": reason})
    words = {"baseline": resources[0][0].name, "treatment": resources[1][0].name}
    words["only"] = slow[0].name if _saturated(fast) else ""
    return _from_latency(cause, base, treated, level, work, words)


def _measure_contrast(
    base: ArmCell, treated: ArmCell, level: float, full: dict[str, service_demand.Parts], work: Sequence[Work]
) -> Cause:
    """Measured changes of a contrast, without a sentence on them."""
    relative_change, difference = service_demand.relative_change, service_demand.mean_difference
    demands = {part: relative_change(treated.cost([part]), base.cost([part]), level) for part in base.costs}
    return Cause(
        workload=treated.workload,
        threads=treated.threads,
        treatment=treated.arm,
        quantity=None,
        qps=relative_change(treated.qps, base.qps, level),
        full=full,
        cost={part: demand for part, demand in demands.items() if demand is not None},
        added_latency_us=difference(treated.latency_us, base.latency_us, level),
        added_cpu_us=difference(treated.cost(PARTS), base.cost(PARTS), level),
        sentence=None,
        beside=tuple(f"the server had {kind.description}" for kind in work),
    )


def _resources(cell: ArmCell, level: float, names: Mapping[str, str]) -> list[Resource]:
    name = labels.in_sentence(names.get(cell.arm, cell.arm))
    places = service_demand.core_resources(cell, level)
    return [Resource(cell, name, place.parts, place.cores, place.is_full) for place in places]


def _saturated(resources: Sequence[Resource]) -> service_demand.Parts:
    return tuple(part for resource in resources if resource.is_saturated for part in resource.parts)


def _limiting_pair(slow: Sequence[Resource], fast: Sequence[Resource]) -> tuple[Resource, Resource] | None:
    """Cores of the slower and of the faster arm that rules 1 to 3 speak of; None where none is saturated."""

    def rank(pair: tuple[Resource, Resource]) -> tuple[object, ...]:
        is_busy = all(resource.is_busy() for resource in pair)
        n_saturated = sum(bool(resource.is_saturated) for resource in pair)
        least = min(float(resource.utilization.mean()) for resource in pair)
        return n_saturated, is_busy, _shares(*pair), least

    first, other = max(itertools.product(slow, fast), key=rank)
    is_limit = first.is_saturated or (other.is_saturated and first.is_busy())
    return (first, other) if is_limit else None


def _shares(resource: Resource, other: Resource) -> bool:
    return bool(set(resource.parts) & set(other.parts))


def _from_capacity(
    slow: Resource, fast: Resource, observed: pd.Series, is_slower: bool, level: float, work: Sequence[Work]
) -> tuple[str, pd.Series] | None:
    """Sentence of rules 1 to 3 with the effect it predicts by block, as a logarithm of treated over base."""
    base, treated = (fast, slow) if is_slower else (slow, fast)
    by_cores = np.log(treated.available / base.available)
    by_demand = -np.log(treated.demand / base.demand)
    by_use = np.log(treated.utilization / base.utilization)
    of_cores = max(base.cores, treated.cores) >= service_demand.WORTH * min(base.cores, treated.cores)
    is_same = slow.parts == fast.parts
    of_demand = not of_cores or abs(by_demand.mean()) > NAMED * abs(observed.mean())
    predicted = by_demand * of_demand + by_cores * (of_cores or not is_same)
    of_use = not service_demand.explains_effect(predicted, observed, level)
    if of_use:
        expected = estimate_mean(predicted.dropna(), level)
        if expected is None or not is_decided(expected) or not (slow.is_busy() and fast.is_busy()):
            return None
        if abs(float(by_use.mean())) > HALF * abs(expected.value) or expected.value * observed.mean() <= 0:
            return None
        predicted = predicted + by_use
    changed = float(np.expm1(-by_demand.mean()))
    is_of_server = slow.parts == ("server",) and of_demand
    values: dict[str, Any] = {"slow": slow, "fast": fast, "base": base, "treated": treated}
    values |= {"of_cores": of_cores, "of_demand": of_demand, "of_use": of_use, "changed": changed}
    values["mostly"] = _main_part(base, treated) if is_same else None
    values["work"] = service_demand.parenthetical(work, changed > 0) if is_of_server else ""
    kind = "same resource" if is_same else "other resource"
    return render_paragraphs("explanation.j2", kind=kind, **values)[0], predicted


def _main_part(base: Resource, treated: Resource) -> str | None:
    """The part on shared cores that makes most of the change of their demand in each block."""
    change = treated.demand - base.demand
    shares = {part: (treated.cell.cost([part]) - base.cell.cost([part])) / change for part in base.parts}
    most = (part for part, share in shares.items() if (share > HALF).all())
    return next(most, None) if len(shares) > 1 else None


def _from_neighbour(
    slow: Sequence[Resource], fast: Sequence[Resource], observed: pd.Series, level: float
) -> tuple[str, pd.Series] | None:
    """Sentence of rule 4 with the effect it predicts by block: a neighbour leaves the server fewer cores."""
    for had, got in itertools.product(fast, slow):
        is_limit = had.is_saturated and "server" in had.parts and _shares(had, got)
        if not is_limit or had.cell.has_neighbour or not got.cell.has_neighbour:
            continue
        before, after = (resource.cell.cost(resource.parts, "busy_cores") for resource in (had, got))
        others, lost = float(got.cell.others.mean()), float((before - after).mean())
        is_full = float(after.mean()) + others >= service_demand.NEARLY * float(got.available.mean())
        if lost <= IDLE * had.cores or others < lost * (1 - service_demand.MOST) or not is_full:
            continue
        by_cores, by_demand = np.log(after / before), -np.log(got.demand / had.demand)
        for slower, changed in ((by_cores, None), (by_cores + by_demand, math.expm1(-by_demand.mean()))):
            predicted = slower * np.sign(-observed.mean())
            if service_demand.explains_effect(predicted, observed, level):
                values: dict[str, Any] = {"fast": had, "slow": got, "got": after.mean(), "changed": changed}
                return render_paragraphs("explanation.j2", kind="neighbour", **values)[0], predicted
    return None


def _other_limit(slow: Sequence[Resource], fast: Sequence[Resource]) -> str | None:
    """Possible limits of the slower arm beside latency, which rules 1 to 4 could not name."""
    others = float(slow[0].cell.others.mean())
    used = ((resource, float(resource.utilization.mean()) + others / resource.cores) for resource in slow)
    perhaps = (resource for resource, share in used if tolerance.is_above(share, service_demand.NEARLY))
    values: dict[str, Any] = {
        "has_neighbour": slow[0].cell.has_neighbour or fast[0].cell.has_neighbour,
        "unsure": next((resource for resource in slow if resource.is_saturated is not False), None),
        "perhaps": next(perhaps, None),
    }
    reasons = render_paragraphs("explanation.j2", kind="open", others=others, **values)
    return reasons[0] if reasons else None


def _from_latency(
    cause: Cause,
    base: ArmCell,
    treated: ArmCell,
    level: float,
    work: Sequence[Work],
    names: Mapping[str, str],
) -> Cause:
    """Cause by rule 5: what an added latency consists of, named where decided and a tenth of it or more."""
    latency = (treated.latency_us - base.latency_us).dropna()
    added = estimate_mean(latency, level)
    unknown = "no resource was saturated; the data don't show where the extra time goes"
    if added is None or not is_decided(added):
        return cause.model_copy(update={"reason": unknown})
    amounts = _split_latency(base, treated, latency, level)
    shown = _decided_means(amounts, level)
    # Smaller amounts are named where those of a tenth and more alone miss its size.
    for least in (NAMED * abs(added.value), 0.0):
        named = {what: us for what, us in shown.items() if not tolerance.is_below(abs(us), least)}
        predicted = amounts[list(named)].sum(axis=1)
        if service_demand.explains_effect(predicted, latency, level):
            break
    else:
        return cause.model_copy(update={"reason": unknown})
    parts = dict(sorted(named.items(), key=lambda item: -item[1] * added.value))
    behind = _explain_time(parts, work)
    values: dict[str, Any] = {"added": added, "parts_of_it": parts, "work": behind, **names}
    sentence, short = render_paragraphs("explanation.j2", kind="latency", **values)
    texts = {"sentence": sentence, "short": short}
    estimate = estimate_mean(predicted, level)
    return cause.model_copy(update={"quantity": "latency", "predicted": estimate, **texts})


def _split_latency(base: ArmCell, treated: ArmCell, latency: pd.Series, level: float) -> pd.DataFrame:
    """An added latency by block (us): a column for CPU time of each part, waits for a core, and the rest."""
    amounts = pd.DataFrame({f"{part} CPU": _added_time(base, treated, part, "cpu_us") for part in PARTS})
    queued = {f"waiting for the {part}'s core": _added_time(base, treated, part, "wait_us") for part in PARTS}
    counted = {what: us for what, us in queued.items() if us.notna().all()}
    amounts = amounts.assign(**counted).reindex(latency.index)
    rest = latency - amounts.sum(axis=1)
    side = service_demand.waiting_side(base, treated, bool(rest.mean() > 0), level)
    # Without each part's time in the run queue, what remains holds that too.
    what = BLOCKED if len(counted) == len(queued) else OFF_CPU
    amounts[f"{what} in the {side}" if side else what] = rest
    return amounts


def _decided_means(amounts: pd.DataFrame, level: float) -> dict[str, float]:
    estimates = {str(what): estimate_mean(amounts[what], level) for what in amounts}
    return {what: each.value for what, each in estimates.items() if each is not None and is_decided(each)}


def _explain_time(parts: Mapping[str, float], work: Sequence[Work]) -> dict[str, str]:
    """The server's work in brackets, for the first of these times that it explains."""
    for what, us in parts.items():
        # For waiting, what a query waits for.
        text = service_demand.parenthetical(work, us > 0, only_waited=not what.endswith("CPU"))
        if text and ("server" in what or what in (BLOCKED, OFF_CPU)):
            return {what: text}
    return {}


def _added_time(base: ArmCell, treated: ArmCell, part: str, column: str) -> pd.Series:
    """Additional time of a kind that a part spends on a query, us; an arm without it spends none."""
    now, was = (cell.cost([part], column) if part in cell.costs else 0 * cell.qps for cell in (treated, base))
    return now - was
