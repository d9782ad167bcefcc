"""An effect with what speaks for and against it, and its outcome.

Bands, several contrasts at once, and every rule that takes a claim away.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from scipy.special import stdtr

from benchbook.compare import edges
from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.intervals import (
    Interval,
    RankInterval,
    ThreadTest,
    block_interval,
    signed_rank_interval,
    t_interval,
    thread_test,
)
from benchbook.compare.pairs import BlockRatios
from benchbook.compare.sentences import percent
from benchbook.compare.verdicts import (
    DECIDED,
    Band,
    Decision,
    Direction,
    Label,
    Outcome,
    Verdict,
    decide_label,
    decide_verdict,
    direction,
    holm,
    is_useful,
    label,
    verdict,
)
from benchbook.core.errors import given

DEPENDS_P = 0.05
HEAVY = "heavy-tailed: an interval by ranks leads to another outcome"
NOT_OVERALL = "not decided: no effect over all threads was shown, nor that it depends on threads"
MANY_LEVELS = "not decided once the number of thread levels is taken into account (Holm)"


@dataclass(frozen=True)
class Level:
    """The effect at one thread level, at the confidence of the look."""

    threads: int
    interval: Interval
    second_opinion: RankInterval | None


@dataclass(frozen=True)
class Effect:
    """The effect of one contrast over all its thread levels, and each level by itself.

    `interval` decides; `second_opinion` may only take a decision away. `levels` has the same two for each
    thread level; `by_threads` pairs a level with its exploratory interval. `spread` is the standard deviation
    of a block's log ratio.
    """

    contrast: BlockRatios
    interval: Interval
    second_opinion: RankInterval | None
    by_threads: tuple[tuple[int, Interval], ...]
    depends_on_threads: ThreadTest | None
    levels: tuple[Level, ...] = ()

    @property
    def depends(self) -> bool:
        """Whether the effect was shown to change with the number of threads."""
        return self.depends_on_threads is not None and edges.is_below(self.depends_on_threads.p, DEPENDS_P)

    @property
    def has_headline(self) -> bool:
        """Whether one number may stand for all thread levels: not if their signs are shown to differ."""
        effects = [interval.log_mean for _, interval in self.by_threads if interval.log_mean is not None]
        return not (self.depends and edges.is_below(min(effects), 0) and edges.is_above(max(effects), 0))

    @property
    def spread(self) -> float | None:
        """Standard deviation of the log ratio of a block; None where it is unknown."""
        if self.interval.standard_error is None:
            return None
        return self.interval.standard_error * math.sqrt(self.interval.n)


def effect(contrast: BlockRatios, level: float, per_thread_level: float) -> Effect:
    """Estimate the effect of a contrast, blocks being the unit."""
    ratios = contrast.ratios
    if contrast.refusal:
        interval = Interval(0, level, reason=contrast.refusal)
    else:
        interval = block_interval(ratios, level)
    return Effect(
        contrast,
        interval,
        signed_rank_interval(ratios.mean(axis=1).to_numpy(), level),
        tuple((int(threads), t_interval(ratios[threads].to_numpy(), per_thread_level)) for threads in ratios),
        thread_test(ratios),
        ()
        if contrast.is_pooled
        else tuple(_at_level(int(threads), ratios[threads], level) for threads in ratios),
    )


def _at_level(threads: int, ratios: pd.Series, level: float) -> Level:
    values = ratios.to_numpy()
    return Level(threads, t_interval(values, level), signed_rank_interval(values, level))


def p_value(interval: Interval) -> float | None:
    """Return the two-sided p value of "no effect"; None where there is no interval."""
    if interval.standard_error is None or interval.df is None:
        return None
    return float(2 * stdtr(interval.df, -abs(given(interval.log_mean)) / interval.standard_error))


@dataclass(frozen=True)
class Candidate:
    """An effect about to be judged, with the claim it answers.

    `complete` counts the complete blocks that exist, of which the effect uses those up to `look`, the last
    look reached (None before the first). `is_extra` marks a further contrast made for a claim only.
    """

    effect: Effect
    complete: int
    look: int | None
    claim: ClaimedEffect | None = None
    is_extra: bool = False

    @property
    def band(self) -> Band | None:
        """The band of the claim."""
        return self.claim.band if self.claim else None


@dataclass(frozen=True)
class JudgedLevel:
    """One thread level with its label, decided among all levels that were looked at for the same question."""

    level: Level
    label: Label
    note: str | None = None


@dataclass(frozen=True)
class Judged:
    """An effect with its label and verdict; `notes` say in words what kept a decision back.

    `levels` are its thread levels; `withheld` says why no number may be quoted although there is one.
    """

    candidate: Candidate
    label: Label
    verdict: Verdict | None
    direction: Direction | None
    second_opinion_agrees: bool | None
    notes: tuple[str, ...]
    levels: tuple[JudgedLevel, ...] = ()
    withheld: str | None = None


def judge(
    candidates: Sequence[Candidate],
    first_look: int,
    is_one_family: bool = False,
    twins: Sequence[Candidate] = (),
) -> list[Judged]:
    """Judge all contrasts of a study, with Holm's correction among those that answer one question.

    Labels share a question when they compare with the same baseline at one workload, metric and choice of
    threads; verdicts when they answer one claim there; everything does when `is_one_family`. Fail towards no
    claim: before the first look, without an interval, where the second opinion leads elsewhere, or where
    thread levels are shown to disagree about the sign, nothing is decided. Where the interval, or that of the
    A/A pair in `twins`, is too wide to be of use, the label says so.

    Thread levels share their question with all levels of these contrasts. They are decided only where the
    effect over all threads is, or was shown to depend on threads: looking at levels anyhow would make false
    findings of one kind or the other half as frequent again (9 instead of 6 of 100 when simulated).
    """
    questions = [0 if is_one_family else _question(candidate) for candidate in candidates]
    claims = [
        (question, candidate.claim and candidate.claim.id)
        for question, candidate in zip(questions, candidates, strict=True)
    ]
    labels = _stepped(
        candidates, [decide_label(candidate.effect.interval) for candidate in candidates], questions
    )
    verdicts = _stepped(candidates, [_verdict(candidate) for candidate in candidates], claims)
    noise = [_noise(candidate, twins) for candidate in candidates]
    judged = [
        _judged(candidate, *labels[place], *verdicts[place], first_look, noise[place])
        for place, candidate in enumerate(candidates)
    ]
    levels = _levels(judged, questions, noise)
    return [replace(one, levels=own) for one, own in zip(judged, levels, strict=True)]


def _noise(candidate: Candidate, twins: Sequence[Candidate]) -> str | None:
    """Say why an effect can't be of use, whatever it is: equal arms came out too far apart to tell."""
    mine = candidate.effect.contrast
    alike = [twin for twin in twins if twin.effect.contrast.metric == mine.metric]
    same = [twin for twin in alike if twin.effect.contrast.workload == mine.workload]
    for twin in same or alike:
        interval = twin.effect.interval
        if not is_useful(interval):
            ends = f"{percent(given(interval.low))} to {percent(given(interval.high))}"
            return f"Equal arms (A/A) came out anywhere from {ends} apart."
    return None


def _levels(
    judged: Sequence[Judged], questions: Sequence[Hashable], noise: Sequence[str | None]
) -> list[tuple[JudgedLevel, ...]]:
    """Decide every thread level of every contrast, those of one question as one family of Holm's."""
    candidates = [one.candidate for one in judged]
    decisions = [
        [decide_label(level.interval) for level in candidate.effect.levels] for candidate in candidates
    ]
    holds = [[True] * len(own) for own in decisions]
    for family in dict.fromkeys(questions):
        members = [place for place, other in enumerate(questions) if other == family]
        # One contrast counts once, however many claims it answers.
        first = {_contrast(candidates[place]): place for place in reversed(members)}
        cells = [(who, spot) for who, place in first.items() for spot in range(len(decisions[place]))]
        found = [decisions[first[who]][spot].p for who, spot in cells]
        adjusted = dict(zip(cells, holm([1.0 if p is None else p for p in found]), strict=True))
        for place in members:
            for spot, decision in enumerate(decisions[place]):
                error = 1 - candidates[place].effect.levels[spot].interval.level
                passes = edges.is_below(adjusted[_contrast(candidates[place]), spot], error)
                holds[place][spot] = decision.p is None or passes
    return [
        tuple(
            _level(one, level, decision, is_held, unusable)
            for level, decision, is_held in zip(one.candidate.effect.levels, own, held, strict=True)
        )
        for one, own, held, unusable in zip(judged, decisions, holds, noise, strict=True)
    ]


def _level(
    judged: Judged, level: Level, decision: Decision[Label], is_held: bool, noise: str | None
) -> JudgedLevel:
    candidate = judged.candidate
    if candidate.look is None and level.interval.n:
        return JudgedLevel(level, "not decided yet")
    if noise is not None or not is_useful(level.interval):
        return JudgedLevel(level, "no useful interval", noise)
    if level.second_opinion is not None and label(level.second_opinion) != decision.outcome:
        return JudgedLevel(level, "not shown", HEAVY)
    if not is_held:
        return JudgedLevel(level, "not shown", MANY_LEVELS)
    if decision.outcome in DECIDED and not (judged.label in DECIDED or candidate.effect.depends):
        return JudgedLevel(level, "not shown", NOT_OVERALL)
    return JudgedLevel(level, decision.outcome)


def _question(candidate: Candidate) -> tuple[Hashable, ...]:
    contrast = candidate.effect.contrast
    return contrast.baseline, contrast.workload, contrast.metric, tuple(contrast.ratios.columns)


def _verdict(candidate: Candidate) -> Decision[Verdict]:
    interval = candidate.effect.interval
    if candidate.band is None or not interval.is_known:
        return Decision("inconclusive", None)
    return decide_verdict(interval, candidate.band)


def _stepped(
    candidates: Sequence[Candidate], decisions: Sequence[Decision[Outcome]], families: Sequence[Hashable]
) -> list[tuple[Decision[Outcome], bool]]:
    """Pair each decision with whether it survives the correction over its family."""
    level = {place: candidate.effect.interval.level for place, candidate in enumerate(candidates)}
    holds = [True] * len(decisions)
    for family in dict.fromkeys(families):
        members = [place for place, other in enumerate(families) if other == family]
        # One contrast counts once, however many claims it answers.
        first = {_contrast(candidates[place]): place for place in reversed(members)}
        # A contrast that decides nothing still counts as one of those that were looked at.
        decided = (decisions[place].p for place in first.values())
        p_values = [1.0 if p is None else p for p in decided]
        adjusted = dict(zip(first, holm(p_values), strict=True))
        for place in members:
            passes = edges.is_below(adjusted[_contrast(candidates[place])], 1 - level[place])
            holds[place] = decisions[place].p is None or passes
    return list(zip(decisions, holds, strict=True))


def _contrast(candidate: Candidate) -> tuple[Hashable, ...]:
    return *_question(candidate), candidate.effect.contrast.treatment


def _judged(
    candidate: Candidate,
    labelled: Decision[Label],
    label_holds: bool,
    judged: Decision[Verdict],
    verdict_holds: bool,
    first_look: int,
    noise: str | None,
) -> Judged:
    effect, claim = candidate.effect, candidate.claim
    second, band = effect.second_opinion, candidate.band
    label_differs = second is not None and label(second) != labelled.outcome
    verdict_differs = second is not None and band is not None and verdict(second, band) != judged.outcome
    is_open = effect.interval.is_known and candidate.look is not None
    clean = is_open and effect.has_headline
    withheld = noise if is_open else None
    if clean and not is_useful(effect.interval):
        withheld = "The interval is too wide to be of use."
    has_verdict = clean and verdict_holds and not verdict_differs
    outcome: Verdict | None = None
    if band is not None and is_open:
        outcome = judged.outcome if has_verdict else "inconclusive"
    if not effect.interval.is_known:
        note = effect.interval.reason
    elif candidate.look is None:
        note = f"nothing is decided before {first_look} blocks; there are {effect.interval.n}"
    elif not effect.has_headline:
        note = "the effect changes its sign with the threads, so no single number stands for it"
    elif label_differs or verdict_differs:
        note = HEAVY
    elif not (label_holds and verdict_holds):
        note = "not decided once the number of contrasts is taken into account (Holm)"
    else:
        note = None
    return Judged(
        candidate,
        _labelled(candidate, labelled, withheld, label_holds and not label_differs),
        outcome,
        direction(effect.interval, claim.value if claim else 0.0) if outcome == "contradicted" else None,
        None if second is None else not (label_differs or verdict_differs),
        tuple(text for text in (note, withheld) if text),
        withheld=withheld,
    )


def _labelled(candidate: Candidate, labelled: Decision[Label], withheld: str | None, is_held: bool) -> Label:
    """Return the one label of a finding; every page and table shows this one."""
    effect = candidate.effect
    if candidate.look is None and effect.interval.n:
        return "not decided yet"
    if withheld:
        return "no useful interval"
    if effect.interval.is_known and not effect.has_headline:
        return "depends on threads"
    return labelled.outcome if effect.interval.is_known and is_held else "not shown"
