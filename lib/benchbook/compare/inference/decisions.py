"""Decisions on effects: bands, several contrasts at once, and every rule that takes a claim away."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.stats import equivalence, intervals, tolerance
from benchbook.compare.stats.equivalence import DECIDED, EquivalenceBand, Label, TestedOutcome, Verdict
from benchbook.compare.stats.intervals import Interval
from benchbook.compare.stats.pairs import BlockRatios
from benchbook.core.artifacts import findings
from benchbook.core.util.number_format import format_percent

Pair = TypeVar("Pair")
DEPENDS_P = 0.05
HEAVY = "heavy-tailed: an interval by ranks leads to another outcome"
NOT_OVERALL = "not decided: no effect over all threads was shown, nor that it depends on threads"
MANY_LEVELS = "not decided once the number of thread levels is taken into account (Holm)"


@dataclass(frozen=True)
class LevelEffect:
    """The effect at one thread level, at the confidence of the look."""

    threads: int
    interval: Interval
    second_opinion: Interval | None


@dataclass(frozen=True)
class Effect:
    """The effect of one contrast over all its thread levels, and each level by itself.

    `interval` decides; `second_opinion` may only take a decision away. `levels` has the same two for each
    thread level; `by_threads` pairs a level with its exploratory interval.
    """

    contrast: BlockRatios
    interval: Interval
    second_opinion: Interval | None
    by_threads: tuple[tuple[int, Interval], ...]
    depends_on_threads: findings.Depends | None
    levels: tuple[LevelEffect, ...] = ()

    @property
    def depends(self) -> bool:
        """True if the effect was shown to change with the number of threads."""
        test = self.depends_on_threads
        return test is not None and tolerance.is_below(test.p, DEPENDS_P)

    @property
    def has_headline(self) -> bool:
        """True if one number may stand for all thread levels: not if signs are shown to differ."""
        effects = [interval.log_mean for _, interval in self.by_threads if interval.log_mean is not None]
        signs = {tolerance.sign_of_interval(effect, effect) for effect in effects}
        return not (self.depends and {-1, 1} <= signs)

    @property
    def spread(self) -> float | None:
        """Standard deviation of the log ratio of a block; None if it is unknown."""
        if self.interval.standard_error is None:
            return None
        return self.interval.standard_error * math.sqrt(self.interval.n)


def estimate_effect(contrast: BlockRatios, level: float, per_thread_level: float) -> Effect:
    """Estimate the effect of a contrast, blocks being the unit."""
    ratios, refusal = contrast.ratios, contrast.refusal
    t_interval, signed_rank_interval = intervals.t_interval, intervals.signed_rank_interval
    by_threads = [(int(threads), ratios[threads].to_numpy()) for threads in ratios]
    return Effect(
        contrast,
        Interval(0, level, reason=refusal) if refusal else intervals.block_interval(ratios, level),
        signed_rank_interval(ratios.mean(axis=1).to_numpy(), level),
        tuple((threads, t_interval(logs, per_thread_level)) for threads, logs in by_threads),
        intervals.thread_test(ratios),
        tuple(
            LevelEffect(threads, t_interval(logs, level), signed_rank_interval(logs, level))
            for threads, logs in (() if contrast.is_pooled else by_threads)
        ),
    )


@dataclass(frozen=True)
class Hypothesis:
    """An effect about to be judged, with the claim it answers; `is_extra` if it was made for that alone.

    Of the `complete` blocks the effect uses those up to `look`, the last one reached (None before the first).
    """

    effect: Effect
    complete: int
    look: int | None
    claim: ClaimedEffect | None = None
    is_extra: bool = False

    @property
    def band(self) -> EquivalenceBand | None:
        return self.claim.band if self.claim else None

    @property
    def tested_verdict(self) -> TestedOutcome[Verdict]:
        """Verdict by this effect alone; nothing is decided without a claim."""
        if self.band is None:
            return TestedOutcome("inconclusive", None)
        return equivalence.decide_verdict(self.effect.interval, self.band, self.effect.second_opinion)

    @property
    def is_open(self) -> bool:
        """True if there is something to decide: an interval, at a look."""
        return self.effect.interval.is_known and self.look is not None


@dataclass(frozen=True)
class EffectDecision:
    """Effect with its label and verdict; `notes` give the reasons that kept a decision back.

    `levels` are its thread levels, each decided among all that were looked at for the same question;
    `withheld` says why no number may be quoted although there is one.
    """

    candidate: Hypothesis
    label: Label
    verdict: Verdict | None
    direction: findings.Direction | None
    second_opinion_agrees: bool | None
    notes: tuple[str, ...]
    levels: tuple[findings.LevelContrast, ...] = ()
    withheld: str | None = None


def judge_candidates(
    candidates: Sequence[Hypothesis],
    first_look: int,
    is_one_family: bool = False,
    twins: Sequence[Hypothesis] = (),
) -> list[EffectDecision]:
    """Judge all contrasts of a study, with Holm's correction among those that answer one question.

    Labels share a question when they compare with the same baseline at one workload, metric and choice of
    threads; verdicts when they answer one claim there; everything does when `is_one_family`. Nothing is
    decided before the first look, without an interval, where the second opinion leads elsewhere, or where
    thread levels are shown to disagree about the sign.

    Thread levels share their question with all levels of these contrasts. They are decided only where the
    effect over all threads is, or was shown to depend on threads: looking at levels anyhow would make false
    findings of one kind or the other half as frequent again (9 instead of 6 of 100 when simulated).
    """
    questions = [0 if is_one_family else _question_key(candidate) for candidate in candidates]
    claims = [(key, each.claim and each.claim.id) for key, each in zip(questions, candidates, strict=True)]
    contrasts = list(map(_contrast_key, candidates))
    errors = [1 - candidate.effect.interval.level for candidate in candidates]
    effects = (candidate.effect for candidate in candidates)
    labels = [equivalence.decide_label(each.interval, each.second_opinion) for each in effects]
    verdicts = [candidate.tested_verdict for candidate in candidates]
    labels = _correct_holm(questions, contrasts, labels, errors)
    verdicts = _correct_holm(claims, contrasts, verdicts, errors)
    noise = [_noise_reason(candidate, twins) for candidate in candidates]
    arguments = zip(candidates, labels, verdicts, noise, strict=True)
    judged = [_decide_effect(first_look, *items) for items in arguments]
    return _decide_levels(judged, questions, noise)


def select_aa_pairs(
    mine: BlockRatios | findings.FindingData,
    pairs: Sequence[Pair],
    contrast_of: Callable[[Pair], BlockRatios | findings.FindingData],
) -> list[Pair]:
    """A/A pairs that a contrast rests on: those of its metric and workload, else all of its metric."""
    alike = [pair for pair in pairs if contrast_of(pair).metric == mine.metric]
    return [pair for pair in alike if contrast_of(pair).workload == mine.workload] or alike


def _noise_reason(candidate: Hypothesis, twins: Sequence[Hypothesis]) -> str | None:
    """Reason that no effect can be of use: equal arms came out too far apart to tell."""
    for twin in select_aa_pairs(candidate.effect.contrast, twins, lambda twin: twin.effect.contrast):
        if not equivalence.is_useful(interval := twin.effect.interval):
            ends = " to ".join(format_percent(end) for end in (interval.low, interval.high))
            return f"Equal arms (A/A) came out anywhere from {ends} apart."
    return None


def _decide_levels(
    judged: Sequence[EffectDecision], questions: Sequence[Hashable], noise: Sequence[str | None]
) -> list[EffectDecision]:
    """Decide every thread level of every contrast, those of one question as one family of Holm's."""
    cells = [(place, level) for place, each in enumerate(judged) for level in each.candidate.effect.levels]
    decisions = _correct_holm(
        [questions[place] for place, _ in cells],
        [(_contrast_key(judged[place].candidate), level.threads) for place, level in cells],
        [equivalence.decide_label(level.interval, level.second_opinion) for _, level in cells],
        [1 - level.interval.level for _, level in cells],
    )
    results: list[list[findings.LevelContrast]] = [[] for _ in judged]
    for (place, level), decision in zip(cells, decisions, strict=True):
        label, note = _label_level(judged[place], level, decision, noise[place])
        numbers = {**level.interval.numbers, "label": label, "note": note}
        results[place].append(findings.LevelContrast(threads=level.threads, **numbers))
    return [replace(each, levels=tuple(levels)) for each, levels in zip(judged, results, strict=True)]


def _label_level(
    whole: EffectDecision, level: LevelEffect, decision: TestedOutcome[Label], noise: str | None
) -> tuple[Label, str | None]:
    """Label of a thread level, by the first rule that holds, and the reason that took a label away."""
    if whole.candidate.look is None and level.interval.n:
        return "not decided yet", None
    if noise is not None or not equivalence.is_useful(level.interval):
        return "no useful interval", noise
    if not decision.agrees:
        return "not shown", HEAVY
    if not decision.survives:
        return "not shown", MANY_LEVELS
    is_overall = whole.label in DECIDED or whole.candidate.effect.depends
    if decision.outcome in DECIDED and not is_overall:
        return "not shown", NOT_OVERALL
    return decision.outcome, None


def _question_key(candidate: Hypothesis) -> tuple[Hashable, ...]:
    contrast = candidate.effect.contrast
    return contrast.baseline, contrast.workload, contrast.metric, tuple(contrast.ratios.columns)


def _correct_holm(
    families: Sequence[Hashable],
    contrasts: Sequence[Hashable],
    decisions: Sequence[TestedOutcome[equivalence.Outcome]],
    errors: Sequence[float],
) -> list[TestedOutcome[equivalence.Outcome]]:
    """Decisions with whether each survives Holm's correction over its family."""
    corrected = list(decisions)
    for family in dict.fromkeys(families):
        members = [place for place, other in enumerate(families) if other == family]
        # One contrast counts once, however many claims it answers.
        first = {contrasts[place]: place for place in reversed(members)}
        # A contrast that decides nothing still counts as one of those that were looked at.
        decided = (decisions[place].p for place in first.values())
        p_values = equivalence.adjust_holm([1.0 if p is None else p for p in decided])
        adjusted = dict(zip(first, p_values, strict=True))
        for place in members:
            passes = tolerance.is_below(adjusted[contrasts[place]], errors[place])
            survives = decisions[place].p is None or passes
            corrected[place] = replace(decisions[place], survives=survives)
    return corrected


def _contrast_key(candidate: Hypothesis) -> tuple[Hashable, ...]:
    return *_question_key(candidate), candidate.effect.contrast.treatment


def _decide_effect(
    first_look: int,
    candidate: Hypothesis,
    labelled: TestedOutcome[Label],
    judged: TestedOutcome[Verdict],
    noise: str | None,
) -> EffectDecision:
    effect, claim = candidate.effect, candidate.claim
    withheld = _reason_to_withhold(candidate, noise)
    outcome = _final_verdict(candidate, judged)
    note = _reason_left_open(first_look, candidate, (labelled, judged))
    value = claim.value if claim and outcome == "contradicted" else 0.0
    return EffectDecision(
        candidate,
        _final_label(candidate, labelled, withheld),
        outcome,
        equivalence.judge_direction(effect.interval, value),
        None if effect.second_opinion is None else labelled.agrees and judged.agrees,
        tuple(text for text in (note, withheld) if text),
        withheld=withheld,
    )


def _reason_to_withhold(candidate: Hypothesis, noise: str | None) -> str | None:
    """Reason that no number may be quoted; None before there is an interval and a look."""
    effect = candidate.effect
    if not candidate.is_open:
        return None
    if effect.has_headline and not equivalence.is_useful(effect.interval):
        return "The interval is too wide to be of use."
    return noise


def _reason_left_open(
    first_look: int, candidate: Hypothesis, outcomes: Sequence[TestedOutcome[Any]]
) -> str | None:
    """Reason that kept a decision back, the first that holds."""
    interval = candidate.effect.interval
    if not interval.is_known:
        return interval.reason
    if candidate.look is None:
        return f"nothing is decided before {first_look} blocks; there are {interval.n}"
    if not candidate.effect.has_headline:
        return "the effect changes its sign with the threads, so no single number stands for it"
    if not all(each.agrees for each in outcomes):
        return HEAVY
    if not all(each.survives for each in outcomes):
        return "not decided once the number of contrasts is taken into account (Holm)"
    return None


def _final_verdict(candidate: Hypothesis, judged: TestedOutcome[Verdict]) -> Verdict | None:
    """Verdict of a finding; None without a claim, and before there is an interval and a look."""
    if candidate.band is None or not candidate.is_open:
        return None
    is_held = candidate.effect.has_headline and judged.agrees and judged.survives
    return judged.outcome if is_held else "inconclusive"


def _final_label(candidate: Hypothesis, labelled: TestedOutcome[Label], withheld: str | None) -> Label:
    """The one label of a finding; every page and table shows this one."""
    effect = candidate.effect
    if candidate.look is None and effect.interval.n:
        return "not decided yet"
    if withheld:
        return "no useful interval"
    if effect.interval.is_known and not effect.has_headline:
        return "depends on threads"
    is_held = effect.interval.is_known and labelled.agrees and labelled.survives
    return labelled.outcome if is_held else "not shown"
