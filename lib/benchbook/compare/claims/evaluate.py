"""Claims put to the runs of a study: a cell has a value in each block, so that it has an interval.

What is asked and what comes out is that of every maker of cells (`kinds`, `judge`); here is which cells a
study has, under the keys that documents use, and how what came out is written. Effects that one contrast of
the study is are findings of their own (`effects`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchbook.compare.claims import effects, estimands
from benchbook.compare.claims.bands import published_text
from benchbook.compare.claims.estimands import NotApplicable
from benchbook.compare.claims.judge import EstimandOutcome, judge_estimands, judge_test
from benchbook.compare.claims.metrics import LOADING, USED, is_known, metric_column
from benchbook.compare.claims.study_cells import StudyCells, StudyEvidence
from benchbook.compare.stats.intervals import Interval
from benchbook.compare.text import labels
from benchbook.compare.text.sentences import render_paragraphs
from benchbook.core.artifacts.findings import Answer, AnswerPart
from benchbook.core.published.claim import Claim
from benchbook.core.study.study import Study


@dataclass(frozen=True)
class AssignedClaim:
    """Claim tested on a study beside its findings; `is_judged` is false for an illustration."""

    id: str
    claim: Claim
    is_judged: bool


@dataclass(frozen=True)
class ClaimAssignment:
    """Claims of a study: `effects` judged as findings, `asked` beside them, `left` with reasons."""

    effects: list[effects.ClaimedEffect]
    asked: list[AssignedClaim]
    left: list[str]


def assign_claims(study: Study, judged: Mapping[str, Claim], shown: Mapping[str, Claim]) -> ClaimAssignment:
    """Assign all claims to a study: those that it names are judged, illustrated ones are shown.

    The ids are `source/claim`. An effect that one contrast answers becomes a finding; an illustrated one of
    throughput is seen in the findings. `left` has a sentence for each claim that the study can't be asked.
    """
    made = ClaimAssignment([], [], [])
    for name, claim in {**shown, **judged}.items():
        is_judged = name in judged
        try:
            what = _build_test(study, claim)
        except NotApplicable as error:
            if not is_judged and _is_rate(claim):
                continue
            made.left.append(f"Claim {name} is not {'answered' if is_judged else 'illustrated'}: {error}.")
            continue
        contrasts = effects.match_contrasts(name, claim, what) if is_judged else []
        made.effects.extend(contrasts)
        if not contrasts and (is_judged or not _is_in_findings(study, claim, what)):
            made.asked.append(AssignedClaim(name, claim, is_judged))
    return made


def required_tables(several: Sequence[AssignedClaim]) -> tuple[str, ...]:
    """Tidy tables that these claims need beside the usual ones."""
    return ("intervals",) if any(one.claim.across == "second" for one in several) else ()


def answer_claims(evidence: StudyEvidence, several: Sequence[AssignedClaim]) -> list[Answer]:
    """Answer to each claim: its parts with intervals, a verdict if it is judged, a sentence."""
    return [_answer_claim(evidence, one) for one in several]


def _build_test(study: Study, claim: Claim) -> estimands.ClaimTest:
    """Test of a claim on a study; Unfit if it does not apply to the study."""
    if claim.metric is not None and not is_known(claim.metric, claim.across):
        raise NotApplicable(f"its metric {claim.metric} is not measured")
    if not all(each.key is not None or (each.metric in USED and each.whole) for each in claim.where):
        raise NotApplicable("it holds under conditions that a study does not look at")
    return estimands.build_test(claim, StudyCells(study))


def _is_in_findings(study: Study, claim: Claim, what: estimands.ClaimTest) -> bool:
    """True if the findings themselves show a claim: an effect of throughput over their baseline."""
    baselines = {one.baseline.at[0] for one in what.items if one.baseline is not None}
    treatments = {one.cell.at[0] for one in what.items}
    return _is_rate(claim) and study.baseline not in treatments and baselines <= {study.baseline}


def _is_rate(claim: Claim) -> bool:
    return effects.is_contrast(claim) and claim.metric in estimands.RATES


def _answer_claim(evidence: StudyEvidence, one: AssignedClaim) -> Answer:
    claim, level, looks = one.claim, evidence.analysis.level, evidence.analysis.looks
    made = Answer(
        claim=one.id,
        kind=claim.kind,
        metric=claim.metric,
        published=published_text(claim),
        read_as=claim.note if claim.note else None,
        judged=one.is_judged,
        n=0,
        level=level,
        parts=[],
        verdict=None,
        reason=None,
        sentence="",
    )
    try:
        board = StudyCells(evidence.study, evidence)
        what = estimands.build_test(claim, board)
        complete, reason = board.settle(what)
        found = judge_estimands(what, board, is_printed=False)
    except NotApplicable as error:
        return _add_sentence(made.model_copy(update={"reason": str(error)}), {})
    is_reached, reason = complete >= min(looks), reason or what.unseen
    if claim.metric == LOADING:
        reason = "loading was timed once, so there is no interval"
    elif not is_reached:
        reason = f"nothing is decided before {min(looks)} blocks; there are {complete}"
    seen = {"n": board.n, "parts": [_answer_part(part) for part in found], "reason": reason}
    if one.is_judged and is_reached:
        seen["verdict"] = judge_test(what, found, level)
    known = labels.readable_names(evidence.study)
    answer = _add_sentence(made.model_copy(update=seen), {**known.arms, **known.workloads})
    if claim.metric != LOADING:
        return answer
    arms = dict.fromkeys(
        arm for part in found for arm in part.part.where.partition(", ")[0].split(" against ")
    )
    loads = {known.arms.get(arm, arm): load for arm in arms if (load := (evidence.loads or {}).get(arm))}
    timed = ", ".join(f"{name} {load['seconds']:g} s" for name, load in loads.items() if load.get("seconds"))
    return answer.model_copy(update={"sentence": f"{answer.sentence} Each was timed once: {timed}."})


def _answer_part(one: EstimandOutcome) -> AnswerPart:
    def back(log: float | None) -> float | None:
        if log is None or not math.isfinite(log):
            return None
        return estimands.BACK[one.part.scale](log)

    amount: Interval = one.amount
    return AnswerPart(
        where=one.part.where,
        scale=one.part.scale,
        value=back(amount.log_mean),
        low=back(amount.log_low),
        high=back(amount.log_high),
        band=(back(one.bounds.log_low), back(one.bounds.log_high)),
        outcome=one.outcome,
        reason=one.reason,
        decides=one.part.decides,
    )


def _add_sentence(made: Answer, names: Mapping[str, str]) -> Answer:
    """Answer with its sentence: each part's value, and for a judged claim the number as claimed.

    `names` has the readable ones of arms and workloads.
    """
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    seen = [part for part in made.parts if part.value is not None] if made.metric else []
    column = metric_column(made.metric or "")
    (text,) = render_paragraphs(
        "answer.j2",
        made=made,
        seen=[
            (re.sub(rf"(?<![\w-])(?:{known})(?![\w-])", lambda own: names[own[0]], part.where), part)
            for part in seen
        ],
        metric=labels.label_metric(column),
        has_unit=column.endswith("_ms") and any(part.scale != "share" for part in seen),
        deciding=[part for part in made.parts if part.decides],
        is_counted=made.judged and made.n and made.parts[0].low is not None,
    )
    return made.model_copy(update={"sentence": text})
