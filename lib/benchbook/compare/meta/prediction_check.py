"""Prediction checks: one session beside the pooled ones, and how often intervals for a further one hold it.

Each processor, and each occasion, is predicted from the others; intervals of equal arms should hold zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from benchbook.compare.meta.meta_analysis import Brought, pool
from benchbook.compare.meta.random_effects import FEWEST_PROCESSORS, LEVEL, ProcessorPool, pool_by_processor
from benchbook.compare.stats import tolerance
from benchbook.compare.stats.calibration import Share, share_of
from benchbook.compare.text import cpu_models
from benchbook.compare.text.labels import name_effect
from benchbook.compare.text.sentences import told
from benchbook.core.artifacts.meta_analysis import Contrast, Occasion, Pooled, PooledEffect, Seen, Session
from benchbook.core.util.number_format import glance_percent, glance_range

Place = Literal["as expected", "outside what was expected", "nothing to expect yet", "no number here"]
# Steal of a quiet guest is below a tenth of a per cent; so much more than elsewhere is worth a word.
STEAL_MORE = 1.0
COARSE = 2.0


@dataclass(frozen=True)
class Placed:
    """Effect of a session beside those of the record; `expected` are fractions, where known.

    `own_half` is half the session's own interval, `record_half` half of that of the record alone, as ratios
    less one.
    """

    contrast: str
    name: str
    effect: float | None
    expected: tuple[float, float] | None
    place: Place
    own_half: float | None = None
    record_half: float | None = None

    @property
    def is_coarse(self) -> bool:
        """Whether the session's interval is twice as wide as the record's: it could tell nothing else."""
        return (self.own_half or 0.0) > COARSE * (self.record_half or math.inf)


def placed(here: Brought, record: Pooled) -> list[Placed]:
    """Place each effect of a session that the record tells of; nothing where its design is another one.

    Expected is where a further session lies in nine of ten, its own blocks' error included. A session that is
    in the record itself is compared with the others, without its occasion.
    """
    if here.session.design != record.design:
        return []
    own = pool(record.study, [here])
    by_id = {contrast.id: contrast for contrast in own.contrasts}
    return [
        _one(contrast, effect, mine.seen[0], here.session.id)
        for contrast in record.contrasts
        if contrast.id in by_id
        for effect in contrast.told
        if (mine := by_id[contrast.id].at(effect.threads)) is not None
    ]


def different(here: Session, recorded: Sequence[Session]) -> list[str]:
    """Say what a session's machine and programs have otherwise than every recorded session."""
    if not recorded:
        return []
    known = {name: [one.probes[name] for one in recorded if name in one.probes] for name in here.probes}
    ends = {name: (min(values), max(values)) for name, values in known.items() if values}
    return told(
        "different.j2",
        here=here,
        recorded=recorded,
        processor=cpu_models.name(here.processor),
        is_same=any(cpu_models.may_be_same(here.processor, one.processor) for one in recorded),
        proxies={
            name: version
            for name, version in here.proxies.items()
            if version not in {one.proxies.get(name) for one in recorded}
        },
        most=max(one.steal_pct or 0.0 for one in recorded),
        steal_more=STEAL_MORE,
        ends=ends,
    )


def summary(here: Brought, record: Pooled) -> str:
    """Say in a sentence or two where a session lies, and what is different where it lies outside."""
    known = placed(here, record)
    judged = [one for one in known if one.expected is not None]
    if known and not judged:
        return f"Nothing can be expected yet: that takes sessions on {FEWEST_PROCESSORS} processor models."
    outside = [one for one in judged if one.place == "outside what was expected"]
    effects = [
        f"{one.name} {glance_percent(one.effect or 0.0)} (expected {glance_range(*(one.expected or (0, 0)))})"
        for one in outside
    ]
    others = different(here.session, record.sessions)
    given = {
        "effects": effects,
        "judged": judged,
        "outside": outside,
        "different": others,
        "percent": glance_percent,
    }
    return " ".join(told("placed.j2", **given))


def _one(contrast: Contrast, effect: PooledEffect, mine: Seen, session: str) -> Placed:
    others = [each for each in effect.occasions if session not in each.sessions]
    name = name_effect(contrast, effect)
    if mine.effect is None or mine.standard_error is None or mine.low is None or mine.high is None:
        return Placed(contrast.id, name, None, None, "no number here")
    own_half = math.sqrt((1 + mine.high) / (1 + mine.low)) - 1
    if len({each.processor for each in others}) < FEWEST_PROCESSORS:
        return Placed(contrast.id, name, mine.effect, None, "nothing to expect yet", own_half)
    found = pool_again(others).pool
    low, high = (math.expm1(end) for end in found.predict(mine.standard_error**2))
    alone = found.predict()
    is_outside = tolerance.is_outside(mine.effect, mine.effect, low, high)
    place: Place = "outside what was expected" if is_outside else "as expected"
    record_half = math.expm1((alone[1] - alone[0]) / 2)
    return Placed(contrast.id, name, mine.effect, (low, high), place, own_half, record_half)


def pool_again(occasions: Sequence[Occasion]) -> ProcessorPool:
    """Pool occasions by processor again, such as those that remain without one."""
    logs = [math.log1p(each.effect) for each in occasions]
    variances = [each.standard_error**2 for each in occasions]
    return pool_by_processor(logs, variances, [each.processor for each in occasions])


@dataclass(frozen=True)
class Coverage:
    """How often what was left out lay where the rest predicted it, of one study or of all.

    `effects` are the effects over all levels, `levels` those of each level, processor by processor; the same
    for `occasions`, whose others of the same processor stay. `half_pct` is the median half-width in percent.
    """

    study: str
    effects: Share | None
    levels: Share | None
    occasions: Share | None
    half_pct: float | None


def coverage(several: Sequence[Pooled]) -> list[Coverage]:
    """Coverage of each study that has an effect on enough processors, then of all together (no study).

    Each processor is left out in turn, with all its occasions, where three others remain; what they predict
    is a mean of that processor, whose own variance counts. So is each occasion where three processors remain.
    """
    rows: dict[str, list[_LeftOut]] = {}
    for study in several:
        own = rows.setdefault(study.study, [])
        for contrast in study.contrasts:
            for effect in (contrast.whole, *contrast.levels):
                is_level = effect is not contrast.whole or not contrast.levels
                is_effect = effect is contrast.whole
                own += [_LeftOut(is_effect, is_level, *left) for left in leave_out(effect)]
    made = [_covered(study, own) for study, own in rows.items() if own]
    return [*made, _covered("", [left for own in rows.values() for left in own])] if made else []


@dataclass(frozen=True)
class _LeftOut:
    """One thing left out of one effect: a whole processor, or one occasion; and whether it lay inside."""

    is_effect: bool
    is_level: bool
    is_processor: bool
    is_inside: bool
    half: float


def leave_out(effect: PooledEffect) -> Iterator[tuple[bool, bool, float]]:
    """Yield (whether a processor was left out, whether it lay inside, half the interval as a logarithm)."""
    models = list(dict.fromkeys(each.processor for each in effect.occasions))
    groups = [(True, [each for each in effect.occasions if each.processor == model]) for model in models]
    groups += [(False, [each]) for each in effect.occasions]
    for is_processor, out in groups:
        rest = [each for each in effect.occasions if each not in out]
        if len({each.processor for each in rest}) < FEWEST_PROCESSORS:
            continue
        mean = math.fsum(math.log1p(each.effect) for each in out) / len(out)
        variance = math.fsum(each.standard_error**2 for each in out) / len(out) ** 2
        low, high = pool_again(rest).pool.predict(variance)
        yield is_processor, low <= mean <= high, (high - low) / 2


def _covered(study: str, own: Sequence[_LeftOut]) -> Coverage:
    processors = [each for each in own if each.is_processor]
    halves = sorted(each.half for each in processors if each.is_effect)
    return Coverage(
        study,
        share_of([each.is_inside for each in processors if each.is_effect]),
        share_of([each.is_inside for each in processors if each.is_level]),
        share_of([each.is_inside for each in own if not each.is_processor and each.is_level]),
        100 * math.expm1(halves[len(halves) // 2]) if halves else None,
    )


def equal_arms(several: Sequence[Pooled]) -> dict[str, Share]:
    """Intervals of equal arms that hold zero: of every session by its order of measuring (`turns`, `runs`),
    and under `means` those over two processors or more."""
    of: dict[str, list[bool]] = {}
    for study in several:
        for each in study.equal_arms:
            of.setdefault(each.order, []).append(_holds_zero(each.low, each.high))
        if study.aa is not None and study.aa.whole.processors > 1:
            of.setdefault("means", []).append(_holds_zero(study.aa.whole.low, study.aa.whole.high))
    return {name: share for name in sorted(of) if (share := share_of(of[name])) is not None}


def sentences(several: Sequence[Pooled]) -> list[str]:
    """Sentences on both checks, with their counts."""
    rows = coverage(several)
    total = rows[-1] if rows else None
    return told("checks.j2", total=total, equal=equal_arms(several), fewest=FEWEST_PROCESSORS, level=LEVEL)


def _holds_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= 0 <= high
