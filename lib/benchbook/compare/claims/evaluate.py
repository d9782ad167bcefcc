"""Claims put to the runs of a study: a cell has a value in each block, so that it has an interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchbook.compare.claims import effects, estimands
from benchbook.compare.claims.bands import published_text
from benchbook.compare.claims.estimands import NotApplicable
from benchbook.compare.claims.judge import EstimandOutcome, as_answer_part, judge_estimand, judge_test
from benchbook.compare.claims.metrics import LOADING, USED, is_known
from benchbook.compare.claims.study_cells import StudyCells, StudyEvidence, list_contrasts
from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import Answer
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.study.study import StudySpec


@dataclass(frozen=True)
class AssignedClaim:
    """Claim tested on a study beside its findings; `is_judged` is false for an illustration."""

    id: str
    claim: ClaimSpec
    is_judged: bool


@dataclass(frozen=True)
class ClaimAssignment:
    """Claims of a study: `effects` judged as findings, `asked` beside them, `left` with reasons."""

    effects: list[effects.ClaimedEffect]
    asked: list[AssignedClaim]
    left: list[str]


def assign_claims(
    study: StudySpec, judged: Mapping[str, ClaimSpec], shown: Mapping[str, ClaimSpec]
) -> ClaimAssignment:
    """Assign all claims to a study: those that it names are judged, illustrated ones are shown.

    The ids are `source/claim`. An effect that one contrast answers becomes a finding; an illustrated one of
    throughput is seen in the findings. `left` has a sentence for each claim that the study can't be asked.
    """
    assignment = ClaimAssignment([], [], [])
    for name, claim in {**shown, **judged}.items():
        is_judged = name in judged
        is_shown_rate = not is_judged and effects.is_contrast(claim) and claim.metric in estimands.RATES
        try:
            what = _build_test(study, claim)
        except NotApplicable as error:
            verb = "answered" if is_judged else "illustrated"
            assignment.left.extend([] if is_shown_rate else [f"Claim {name} is not {verb}: {error}."])
            continue
        contrasts = effects.match_contrasts(name, claim, what) if is_judged else []
        assignment.effects.extend(contrasts)
        # The findings themselves show an effect of throughput over their baseline.
        own = [study.baseline == base != treatment for base, treatment, _ in list_contrasts(what.items)]
        if not contrasts and not (is_shown_rate and all(own)):
            assignment.asked.append(AssignedClaim(name, claim, is_judged))
    return assignment


def required_tables(several: Sequence[AssignedClaim]) -> tuple[str, ...]:
    """Tidy tables that these claims need beside the usual ones."""
    return ("intervals",) if any(claim.claim.across == "second" for claim in several) else ()


def _build_test(study: StudySpec, claim: ClaimSpec) -> estimands.ClaimTest:
    """Test of a claim on a study; NotApplicable if it does not apply to the study."""
    if claim.metric is not None and not is_known(claim.metric, claim.across):
        raise NotApplicable(f"its metric {claim.metric} is not measured")
    if not all(each.key is not None or (each.metric in USED and each.whole) for each in claim.where):
        raise NotApplicable("it holds under conditions that a study does not look at")
    return estimands.build_test(claim, StudyCells(study))


def answer_claim(evidence: StudyEvidence, assigned_claim: AssignedClaim) -> Answer:
    """Answer to a claim: its parts with intervals, and a verdict if it is judged."""
    claim, level, looks = assigned_claim.claim, evidence.analysis.level, evidence.analysis.looks
    nothing: dict[str, Any] = {"n": 0, "parts": [], "verdict": None, "reason": None}
    new_answer = Answer(
        claim=assigned_claim.id,
        kind=claim.kind,
        metric=claim.metric,
        published=published_text(claim),
        read_as=claim.note or None,
        judged=assigned_claim.is_judged,
        level=level,
        **nothing,
    )
    try:
        board = StudyCells(evidence.study, evidence)
        what = estimands.build_test(claim, board)
        complete, reason = board.settle(what)
        outcomes = [judge_estimand(part, board, is_printed=False) for part in what.parts]
    except NotApplicable as error:
        return new_answer.model_copy(update={"reason": str(error)})
    is_reached, reason = complete >= min(looks), reason or what.unseen
    if claim.metric == LOADING:
        times = _list_load_times(evidence, outcomes)
        reason = f"loading was timed once, so there is no interval: {times}"
    elif not is_reached:
        reason = f"nothing is decided before {min(looks)} blocks; there are {complete}"
    verdict = judge_test(what, outcomes, level) if assigned_claim.is_judged and is_reached else None
    parts = [as_answer_part(part) for part in outcomes]
    observations = {"n": board.n, "parts": parts, "reason": reason, "verdict": verdict}
    return new_answer.model_copy(update=observations)


def _list_load_times(evidence: StudyEvidence, outcomes: Sequence[EstimandOutcome]) -> str:
    """Seconds that loading took, by the arms of a claim's numbers."""
    names = labels.readable_names(evidence.study).arms
    arms = dict.fromkeys(
        arm for part in outcomes for arm in part.part.where.partition(", ")[0].split(" against ")
    )
    loads = {names.get(arm, arm): (evidence.loads or {}).get(arm) or {} for arm in arms}
    return ", ".join(f"{name} {load['seconds']:g} s" for name, load in loads.items() if load.get("seconds"))
