"""The end of a study: at a look of the analysis, once every question is decided.

Stopping there costs no error (group sequential boundaries of equal level at each look: Pocock 1977).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from benchbook.compare.claims import evaluate
from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference.contrasts import judge_contrasts as judged_study
from benchbook.compare.inference.decisions import EffectDecision
from benchbook.compare.stats import interleaved_runs, pairs
from benchbook.compare.stats.equivalence import DECIDED, reached_look
from benchbook.compare.text.results_table import EQUAL, has_mean_row
from benchbook.core.artifacts.findings import LevelContrast
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec
from benchbook.core.util.number_format import format_percent, format_percent_range
from benchbook.core.util.plural import count

ENOUGH = 0.03
"""Half-width of an interval with which an effect is known well enough, as a fraction."""
OPEN_AA = "equal arms are not yet known to be within 5 % of each other at every level"


def is_decided(judged: EffectDecision) -> bool:
    """True if more blocks are not needed: verdict on a claim, or label or ± 3 % of each row to be shown."""
    if _is_shown_by_level(judged):
        return all(map(_is_level_decided, judged.levels))
    return is_decided_overall(judged)


def is_decided_overall(judged: EffectDecision) -> bool:
    """True if the mean over levels is decided, which alone ended sessions until 2026-11-29."""
    if judged.candidate.look is None:
        return False
    if judged.candidate.claim is not None:
        return judged.verdict in ("confirmed", "contradicted")
    interval = judged.candidate.effect.interval
    if _is_narrow(interval.low, interval.high):
        return True
    if judged.label == "depends on threads":
        return all(level.label in DECIDED for level in judged.levels)
    return judged.label in DECIDED


def _is_shown_by_level(judged: EffectDecision) -> bool:
    """True if rows of thread levels alone stand for an effect: no row over all of them, and no claim."""
    candidate, levels = judged.candidate, judged.levels
    if candidate.claim is not None or candidate.look is None or not levels:
        return False
    effect = candidate.effect
    return not has_mean_row(judged.label, levels, effect.has_headline, effect.depends_on_threads)


def _is_level_decided(level: LevelContrast) -> bool:
    return level.label in DECIDED or _is_narrow(level.low, level.high)


def _is_narrow(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and (high - low) / 2 <= ENOUGH


def _is_aa_narrow(twin: EffectDecision) -> bool:
    """True if an A/A pair's intervals reach no further than ± 5 % at any level, as far as it has any."""
    whole = twin.candidate.effect.interval
    ends = [whole.low, whole.high, *(end for level in twin.levels for end in (level.low, level.high))]
    return all(end is None or abs(end) <= EQUAL for end in ends)


def _report_look(judged: Sequence[EffectDecision]) -> str:
    """Result of a look for each row of the table, and the open questions with their reasons."""
    report = []
    for decision in judged:
        contrast, interval = decision.candidate.effect.contrast, decision.candidate.effect.interval
        name = f"{contrast.workload} {contrast.treatment} {contrast.metric}"
        if not _is_shown_by_level(decision):
            number = _format_interval(interval.effect, interval.low, interval.high) or interval.reason
            is_open = "" if is_decided(decision) else f", open: {decision.verdict or decision.label}"
            report.append(f"{name} {number}{is_open}")
            continue
        for level in decision.levels:
            number = _format_interval(level.effect, level.low, level.high) or level.note
            is_open = "" if _is_level_decided(level) else f", open: {level.label}"
            report.append(f"{name}, {count(level.threads, 'thread')}: {number}{is_open}")
    return "; ".join(dict.fromkeys(report))


def _format_interval(effect: float | None, low: float | None, high: float | None) -> str:
    is_known = None not in (effect, low, high)
    return f"{format_percent(effect)} ({format_percent_range(low, high)})" if is_known else ""


def stopped_at(
    study: StudySpec,
    judged: Sequence[EffectDecision],
    is_enough: Callable[[EffectDecision], bool] = is_decided,
) -> int | None:
    """Look at which all contrasts of a study with `plan.stop: decided` are decided, or None."""
    looks = {decision.candidate.look for decision in judged}
    if study.plan.stop != "decided" or len(looks) != 1 or not all(map(is_enough, judged)):
        return None
    return looks.pop()


@dataclass(frozen=True)
class StoppingRule:
    """Stopping rule between blocks: nothing but the looks decides, so asking more often changes nothing.

    `tables` returns the tidy tables of all runs so far; `facts` are the arms' facts, `asked` the claims that
    no contrast answers: those it judges need a verdict, too.
    """

    study: StudySpec
    analysis: Analysis
    claims: Sequence[ClaimedEffect]
    tables: Callable[[], Mapping[str, Any]]
    facts: Mapping[str, Mapping[str, Any]]
    asked: Sequence[evaluate.AssignedClaim] = ()
    say: Callable[[str], None] = print
    open_looks: set[int] = field(default_factory=set, init=False)
    """Looks at which something was open, though every contrast had its blocks."""

    def __call__(self, blocks: int) -> str | None:
        """Reason to stop after so many blocks, None to go on."""
        due = reached_look(blocks, self.analysis.looks)
        if self.study.plan.stop != "decided" or due is None or due in self.open_looks:
            return None
        tables = self.tables()
        ordered, _ = interleaved_runs.select_order(_to_frame(tables["runs"]), self.study)
        runs, histograms = pairs.select_usable(ordered)[0], _to_frame(tables["histograms"])
        evidence = StudyEvidence(self.study, runs, self.analysis, None, None, self.facts, histograms)
        judged, twins = judged_study(evidence, self.claims, min(self.analysis.looks))
        aa_doubt = "" if all(map(_is_aa_narrow, twins)) else f"; {OPEN_AA}"
        if blocks in self.analysis.looks:
            self.say(f"after {count(blocks, 'block')}: {_report_look(judged)}{aa_doubt}")
        look = None if aa_doubt else stopped_at(self.study, judged)
        if look is None:
            if {decision.candidate.look for decision in judged} == {due}:
                self.open_looks.add(due)
            return None
        planned = self.study.plan.blocks
        if blocks >= planned or not self._answers_claims(evidence, tables):
            return None
        return f"everything is decided at the look at {count(look, 'block')}; {planned} planned"

    def _answers_claims(self, evidence: StudyEvidence, tables: Mapping[str, Any]) -> bool:
        """True if every judged claim that no contrast answers has its verdict."""
        claims = [claim for claim in self.asked if claim.is_judged]
        seconds = _to_frame(tables["intervals"]) if evaluate.required_tables(claims) else None
        evidence = replace(evidence, intervals=seconds)
        answers = (evaluate.answer_claim(evidence, claim) for claim in claims)
        return all(answer.verdict in ("confirmed", "contradicted") for answer in answers)


def build_rule(
    study: StudySpec,
    analysis: Analysis,
    claims: Mapping[str, ClaimSpec],
    tables: Callable[[], Mapping[str, Any]],
    facts: Mapping[str, Mapping[str, Any]],
) -> StoppingRule:
    """Stopping rule of a study with some claims, by their ids."""
    put = evaluate.assign_claims(study, claims, {})
    return StoppingRule(study, analysis.for_blocks(study.plan.blocks), put.effects, tables, facts, put.asked)


def _to_frame(table: Any) -> pd.DataFrame:
    return table if isinstance(table, pd.DataFrame) else table.to_pandas()
