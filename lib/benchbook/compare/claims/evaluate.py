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
from benchbook.compare.claims.estimands import Unfit
from benchbook.compare.claims.judge import Outcome, outcomes, verdict
from benchbook.compare.claims.metrics import LOADING, USED, is_known, ours
from benchbook.compare.claims.study_cells import Blocks, Evidence
from benchbook.compare.stats.intervals import Interval
from benchbook.compare.text import labels
from benchbook.compare.text.sentences import told
from benchbook.core.artifacts.findings import Answer, AnswerPart
from benchbook.core.published.claim import Claim
from benchbook.core.study.study import Study


@dataclass(frozen=True)
class Asked:
    """A claim that a study is asked beside its findings; `is_judged` is false where it only illustrates."""

    id: str
    claim: Claim
    is_judged: bool


@dataclass(frozen=True)
class Put:
    """All claims of a study: `effects` are judged as findings, `asked` beside them, `left` says why not."""

    effects: list[effects.ClaimedEffect]
    asked: list[Asked]
    left: list[str]


def put(study: Study, judged: Mapping[str, Claim], shown: Mapping[str, Claim]) -> Put:
    """Put all claims to a study: those that it names are judged, those that its arms illustrate shown.

    The ids are `source/claim`. An effect that one contrast answers becomes a finding; an illustrated one of
    throughput is seen in the findings. `left` has a sentence for each claim that the study can't be asked.
    """
    made = Put([], [], [])
    for name, claim in {**shown, **judged}.items():
        is_judged = name in judged
        try:
            what = _ask(study, claim)
        except Unfit as error:
            if not is_judged and _is_rate(claim):
                continue
            made.left.append(f"Claim {name} is not {'answered' if is_judged else 'illustrated'}: {error}.")
            continue
        contrasts = effects.of(name, claim, what) if is_judged else []
        made.effects.extend(contrasts)
        if not contrasts and (is_judged or not _is_seen(study, claim, what)):
            made.asked.append(Asked(name, claim, is_judged))
    return made


def tables(several: Sequence[Asked]) -> tuple[str, ...]:
    """Return which tidy tables they need beside the usual ones."""
    return ("intervals",) if any(one.claim.across == "second" for one in several) else ()


def findings(evidence: Evidence, several: Sequence[Asked]) -> list[Answer]:
    """Return an entry for each claim: its parts with intervals, a verdict if it is judged, a sentence."""
    return [_entry(evidence, one) for one in several]


def _ask(study: Study, claim: Claim) -> estimands.Asked:
    """Return what a claim asks of a study; Unfit where the study can't be asked it."""
    if claim.metric is not None and not is_known(claim.metric, claim.across):
        raise Unfit(f"its metric {claim.metric} is not measured")
    if not all(each.key is not None or (each.metric in USED and each.whole) for each in claim.where):
        raise Unfit("it holds under conditions that a study does not look at")
    return estimands.ask(claim, Blocks(study))


def _is_seen(study: Study, claim: Claim, what: estimands.Asked) -> bool:
    """Tell whether the findings themselves show a claim: an effect of throughput over their baseline."""
    baselines = {one.baseline.at[0] for one in what.items if one.baseline is not None}
    treatments = {one.cell.at[0] for one in what.items}
    return _is_rate(claim) and study.baseline not in treatments and baselines <= {study.baseline}


def _is_rate(claim: Claim) -> bool:
    return effects.is_contrast(claim) and claim.metric in estimands.RATES


def _entry(evidence: Evidence, one: Asked) -> Answer:
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
        board = Blocks(evidence.study, evidence)
        what = estimands.ask(claim, board)
        complete, reason = board.settle(what)
        found = outcomes(what, board, is_printed=False)
    except Unfit as error:
        return _told(made.model_copy(update={"reason": str(error)}), {})
    is_reached, reason = complete >= min(looks), reason or what.unseen
    if claim.metric == LOADING:
        reason = "loading was timed once, so there is no interval"
    elif not is_reached:
        reason = f"nothing is decided before {min(looks)} blocks; there are {complete}"
    seen = {"n": board.n, "parts": [_part(part) for part in found], "reason": reason}
    if one.is_judged and is_reached:
        seen["verdict"] = verdict(what, found, level)
    known = labels.names(evidence.study)
    answer = _told(made.model_copy(update=seen), {**known.arms, **known.workloads})
    if claim.metric != LOADING:
        return answer
    arms = dict.fromkeys(
        arm for part in found for arm in part.part.where.partition(", ")[0].split(" against ")
    )
    loads = {known.arms.get(arm, arm): load for arm in arms if (load := (evidence.loads or {}).get(arm))}
    timed = ", ".join(f"{name} {load['seconds']:g} s" for name, load in loads.items() if load.get("seconds"))
    return answer.model_copy(update={"sentence": f"{answer.sentence} Each was timed once: {timed}."})


def _part(one: Outcome) -> AnswerPart:
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


def _told(made: Answer, names: Mapping[str, str]) -> Answer:
    """Add the sentence: what was seen in each part, and of a judged claim how many parts are as claimed.

    `names` has the readable ones of arms and workloads.
    """
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    seen = [part for part in made.parts if part.value is not None] if made.metric else []
    column = ours(made.metric or "")
    (text,) = told(
        "answer.j2",
        made=made,
        seen=[
            (re.sub(rf"(?<![\w-])(?:{known})(?![\w-])", lambda own: names[own[0]], part.where), part)
            for part in seen
        ],
        metric=labels.metric(column),
        has_unit=column.endswith("_ms") and any(part.scale != "share" for part in seen),
        deciding=[part for part in made.parts if part.decides],
        is_counted=made.judged and made.n and made.parts[0].low is not None,
    )
    return made.model_copy(update={"sentence": text})
