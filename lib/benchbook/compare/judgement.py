"""From effects to outcomes: bands, several contrasts at once, and every rule that takes a claim away."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from benchbook.compare.claims import ClaimedEffect
from benchbook.compare.effects import Effect
from benchbook.compare.multiple import holm
from benchbook.compare.verdicts import (
    Band,
    Decision,
    Direction,
    Label,
    Verdict,
    decide_label,
    decide_verdict,
    direction,
    label,
    verdict,
)

# An interval that just touches a bound decides; its p value may round to the other side.
ROUNDING = 1e-12


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
class Judged:
    """An effect with its label and verdict; `notes` say in words what kept a decision back."""

    candidate: Candidate
    label: Label
    verdict: Verdict | None
    direction: Direction | None
    second_opinion_agrees: bool | None
    notes: tuple[str, ...]


def judge(candidates: Sequence[Candidate], first_look: int, is_one_family: bool = False) -> list[Judged]:
    """Judge all contrasts of a study, with Holm's correction among those that answer one question.

    Labels share a question when they compare with the same baseline at one workload, metric and choice of
    threads; verdicts when they answer one claim there; everything does when `is_one_family`. Fail towards no
    claim: before the first look, without an interval, where the second opinion leads elsewhere, or where
    thread levels are shown to disagree about the sign, nothing is decided.
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
    return [
        _judged(candidate, *labels[place], *verdicts[place], first_look)
        for place, candidate in enumerate(candidates)
    ]


def _question(candidate: Candidate) -> tuple[Hashable, ...]:
    contrast = candidate.effect.contrast
    return contrast.baseline, contrast.workload, contrast.metric, tuple(contrast.ratios.columns)


def _verdict(candidate: Candidate) -> Decision:
    interval = candidate.effect.interval
    if candidate.band is None or not interval.is_known:
        return Decision("inconclusive", None)
    return decide_verdict(interval, candidate.band)


def _stepped(
    candidates: Sequence[Candidate], decisions: Sequence[Decision], families: Sequence[Hashable]
) -> list[tuple[Decision, bool]]:
    """Pair each decision with whether it survives the correction over its family."""
    level = {place: candidate.effect.interval.level for place, candidate in enumerate(candidates)}
    holds = [True] * len(decisions)
    for family in dict.fromkeys(families):
        members = [place for place, other in enumerate(families) if other == family]
        # One contrast counts once, however many claims it answers.
        first = {_contrast(candidates[place]): place for place in reversed(members)}
        # A contrast that decides nothing still counts as one of those that were looked at.
        p_values = [1.0 if decisions[place].p is None else decisions[place].p for place in first.values()]
        adjusted = dict(zip(first, holm(p_values), strict=True))
        for place in members:
            passes = adjusted[_contrast(candidates[place])] <= 1 - level[place] + ROUNDING
            holds[place] = decisions[place].p is None or passes
    return list(zip(decisions, holds, strict=True))


def _contrast(candidate: Candidate) -> tuple[Hashable, ...]:
    return *_question(candidate), candidate.effect.contrast.treatment


def _judged(
    candidate: Candidate,
    labelled: Decision,
    label_holds: bool,
    judged: Decision,
    verdict_holds: bool,
    first_look: int,
) -> Judged:
    effect = candidate.effect
    second = effect.second_opinion
    notes: list[str] = []
    label_differs = second is not None and label(second) != labelled.outcome
    verdict_differs = (
        second is not None
        and candidate.band is not None
        and verdict(second, candidate.band) != judged.outcome
    )
    if not effect.interval.is_known:
        notes.append(effect.interval.reason)
    elif candidate.look is None:
        notes.append(f"nothing is decided before {first_look} blocks; there are {effect.interval.n}")
    elif not effect.has_headline:
        notes.append("thread levels disagree about the sign, so no single effect is claimed")
    elif label_differs or verdict_differs:
        notes.append("heavy-tailed: an interval by ranks leads to another outcome")
    elif not (label_holds and verdict_holds):
        notes.append("not decided once the number of contrasts is taken into account (Holm)")
    open_to_all = effect.interval.is_known and candidate.look is not None
    clean = open_to_all and effect.has_headline
    has_label = clean and label_holds and not label_differs
    has_verdict = clean and verdict_holds and not verdict_differs
    outcome = (
        None
        if candidate.band is None or not open_to_all
        else judged.outcome
        if has_verdict
        else "inconclusive"
    )
    claimed = candidate.claim.value if candidate.claim else 0.0
    return Judged(
        candidate,
        labelled.outcome if has_label else "not shown",
        outcome,
        direction(effect.interval, claimed) if outcome == "contradicted" else None,
        None if second is None else not (label_differs or verdict_differs),
        tuple(notes),
    )
