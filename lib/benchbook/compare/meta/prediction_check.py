"""Prediction checks: one session beside the pooled ones, and coverage of prediction intervals."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from scipy.special import betaincinv

from benchbook.compare.meta.meta_analysis import SessionResult, pool_sessions
from benchbook.compare.meta.random_effects import FEWEST_PROCESSORS, ProcessorPool, pool_by_processor
from benchbook.compare.stats import tolerance
from benchbook.compare.text import cpu_models
from benchbook.compare.text.labels import name_place
from benchbook.compare.text.sentences import render_paragraphs
from benchbook.core.artifacts import meta_analysis
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledContrast, PooledEffect, StudySession
from benchbook.core.util.errors import require_value
from benchbook.core.util.grouping import group_by
from benchbook.core.util.number_format import format_count, glance_percent, glance_range

Place = Literal["as expected", "outside what was expected", "nothing to expect yet", "no number here"]
# Steal of a quiet guest is below a tenth of a per cent; so much more than elsewhere is worth a word.
STEAL_MORE = 1.0
COARSE = 2.0
SHARE_LEVEL = 0.95


@dataclass(frozen=True)
class Share:
    """Count out of a total, and the exact 95 % interval (Clopper and Pearson) of the share."""

    number: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.number / self.of


def share_of(flags: Sequence[bool]) -> Share | None:
    """Number of true values as a share; None of no values."""
    number, of, tail = sum(flags), len(flags), (1 - SHARE_LEVEL) / 2
    if not of:
        return None
    low = float(betaincinv(number, of - number + 1, tail)) if number else 0.0
    high = float(betaincinv(number + 1, of - number, 1 - tail)) if number < of else 1.0
    return Share(number, of, low, high)


@dataclass(frozen=True)
class PredictionCheck:
    """Effect of a session beside the record's, in words; `expected` are fractions, if known.

    `own_half` and `record_half` are halves of the session's and the record's intervals, as ratios less one.
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
        """True if the session's interval is twice as wide as the record's or wider."""
        return (self.own_half or 0.0) > COARSE * (self.record_half or math.inf)

    @property
    def sentence(self) -> str:
        """Effect beside what was expected of it, where that is known."""
        effect, expected = glance_percent(require_value(self.effect)), require_value(self.expected)
        return f"{self.name} {effect} (expected {glance_range(*expected)})"


def compare_with_prediction(here: SessionResult, record: MetaAnalysis) -> list[PredictionCheck]:
    """Comparison of each effect of a session with the record's; empty for another design.

    Expected is where a further session lies in nine of ten, its own blocks' error included. A session that is
    in the record itself is compared with the others, without its occasion.
    """
    if here.session.design != record.design:
        return []
    by_id = {contrast.id: contrast for contrast in pool_sessions(record.study, [here]).contrasts}
    return [
        _check_effect(contrast, effect, mine.seen[0], here.session.id)
        for contrast in record.contrasts
        if contrast.id in by_id
        for effect in contrast.shown
        if (mine := by_id[contrast.id].at(effect.threads)) is not None
    ]


def machine_differences(here: StudySession, recorded: Sequence[StudySession]) -> list[str]:
    """Differences of a session's machine and programs from every recorded session."""
    if not recorded:
        return []
    probed = {name: [each.probes[name] for each in recorded if name in each.probes] for name in here.probes}
    proxies = {pair for each in recorded for pair in each.proxies.items()}
    return render_paragraphs(
        "different.j2",
        here=here,
        recorded=recorded,
        processor=cpu_models.name_processor(here.processor),
        is_same=any(cpu_models.may_be_same(here.processor, each.processor) for each in recorded),
        proxies=dict(pair for pair in here.proxies.items() if pair not in proxies),
        most=max(each.steal_pct or 0.0 for each in recorded),
        steal_more=STEAL_MORE,
        ends={name: (min(values), max(values)) for name, values in probed.items() if values},
    )


def describe_session(here: SessionResult, record: MetaAnalysis) -> str:
    """Place of a session in the record, in words, with its differences if it lies outside."""
    by_place = group_by(compare_with_prediction(here, record), lambda check: check.place)
    inside, outside = by_place.get("as expected", []), by_place.get("outside what was expected", [])
    judged = format_count(len(inside) + len(outside), "effect")
    if outside:
        effects = "; ".join(check.sentence for check in outside)
        others = "; ".join(machine_differences(here.session, record.sessions)) or "nothing that is known"
        return f"{len(outside)} of {judged} outside what was expected: {effects}. Different here: {others}."
    if inside:
        coarse = sum(check.is_coarse for check in inside)
        wide = f", of which {coarse} with an interval twice as wide as the record's" if coarse else ""
        return f"{judged} as expected from the recorded sessions{wide}."
    missing = f"Nothing can be expected yet: that takes sessions on {FEWEST_PROCESSORS} processor models."
    return missing if by_place else ""


def _check_effect(
    contrast: PooledContrast, effect: PooledEffect, mine: meta_analysis.ObservedEffect, session: str
) -> PredictionCheck:
    others = [each for each in effect.occasions if session not in each.sessions]
    name = name_place(contrast, effect)
    if mine.effect is None or mine.standard_error is None or mine.low is None or mine.high is None:
        return PredictionCheck(contrast.id, name, None, None, "no number here")
    own_half = math.sqrt((1 + mine.high) / (1 + mine.low)) - 1
    if len({each.processor for each in others}) < FEWEST_PROCESSORS:
        return PredictionCheck(contrast.id, name, mine.effect, None, "nothing to expect yet", own_half)
    random_effects = pool_remaining(others).pool
    low, high = (math.expm1(end) for end in random_effects.predict(mine.standard_error**2))
    alone = random_effects.predict()
    is_outside = tolerance.is_outside(mine.effect, mine.effect, low, high)
    place: Place = "outside what was expected" if is_outside else "as expected"
    record_half = math.expm1((alone[1] - alone[0]) / 2)
    return PredictionCheck(contrast.id, name, mine.effect, (low, high), place, own_half, record_half)


def pool_remaining(occasions: Sequence[meta_analysis.Occasion]) -> ProcessorPool:
    """Pool occasions by processor again, such as those that remain without one."""
    logs = [math.log1p(each.effect) for each in occasions]
    variances = [each.standard_error**2 for each in occasions]
    return pool_by_processor(logs, variances, [each.processor for each in occasions])


@dataclass(frozen=True)
class Coverage:
    """Share of left-out values inside the interval predicted from the rest, of one study or all.

    `effects` are the effects over all levels, `levels` those of each level, processor by processor; the same
    for `occasions`, whose others of the same processor stay. `half_pct` is the median half-width in percent.
    """

    study: str
    effects: Share | None
    levels: Share | None
    occasions: Share | None
    half_pct: float | None


def estimate_coverage(several: Sequence[MetaAnalysis]) -> list[Coverage]:
    """Coverage of each study that has an effect on enough processors, then of all together (no study).

    Each processor is left out in turn, with all its occasions, where three others remain; what they predict
    is a mean of that processor, whose own variance counts. So is each occasion where three processors remain.
    An effect without levels counts as one, too.
    """
    rows: dict[str, list[_LeftOut]] = {}
    for study in several:
        for contrast in study.contrasts:
            whole = ("effects",) if contrast.levels else ("effects", "levels")
            parts = [(contrast.whole, whole), *((level, ("levels",)) for level in contrast.levels)]
            left = [out for effect, kinds in parts for out in _leave_one_out(effect, kinds)]
            for name in (study.study, "") if left else ():
                rows.setdefault(name, []).extend(left)
    return [_count_covered(name, rows[name]) for name in sorted(rows, key=lambda name: not name)]


class _LeftOut(NamedTuple):
    """What was left out of one effect, by the kind that it counts for; `half` the interval is a logarithm."""

    kind: str
    is_inside: bool
    half: float


def _leave_one_out(effect: PooledEffect, kinds: Sequence[str]) -> Iterator[_LeftOut]:
    models = group_by(effect.occasions, lambda occasion: occasion.processor)
    single = ["occasions"] if "levels" in kinds else []
    groups = [(kinds, group) for group in models.values()] + [(single, [each]) for each in effect.occasions]
    for counts_for, out in groups:
        rest = [each for each in effect.occasions if each not in out]
        if len({each.processor for each in rest}) < FEWEST_PROCESSORS:
            continue
        mean = math.fsum(math.log1p(each.effect) for each in out) / len(out)
        variance = math.fsum(each.standard_error**2 for each in out) / len(out) ** 2
        low, high = pool_remaining(rest).pool.predict(variance)
        yield from (_LeftOut(kind, low <= mean <= high, (high - low) / 2) for kind in counts_for)


def _count_covered(study: str, left_outs: Sequence[_LeftOut]) -> Coverage:
    by_kind = group_by(left_outs, lambda each: each.kind)
    halves = sorted(each.half for each in by_kind.get("effects", ()))
    kinds = ("effects", "levels", "occasions")
    return Coverage(
        study,
        **{kind: share_of([each.is_inside for each in by_kind.get(kind, ())]) for kind in kinds},
        half_pct=100 * math.expm1(halves[len(halves) // 2]) if halves else None,
    )


def equal_arms(several: Sequence[MetaAnalysis]) -> dict[str, Share]:
    """Intervals of equal arms that hold zero: of sessions by their order (`turns`, `runs`), and of `means`.

    Means count over two processors or more.
    """
    of: dict[str, list[bool]] = {}
    for study in several:
        for each in study.equal_arms:
            of.setdefault(each.order, []).append(_holds_zero(each.low, each.high))
        if study.aa is not None and study.aa.whole.processors > 1:
            of.setdefault("means", []).append(_holds_zero(study.aa.whole.low, study.aa.whole.high))
    return {name: share for name in sorted(of) if (share := share_of(of[name])) is not None}


def _holds_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= 0 <= high
