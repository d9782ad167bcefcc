"""When a study has measured enough: at a look, with every question decided.

The looks and the level of their intervals are those of the analysis, so stopping at one costs no error that
is not already paid for (group sequential boundaries of equal level at each look: Pocock 1977).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from benchbook.compare.claims import evaluate
from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.claims.study_cells import Evidence
from benchbook.compare.inference.contrasts import judged as judged_study
from benchbook.compare.inference.decisions import Judged
from benchbook.compare.stats import pairs, slice_counts
from benchbook.compare.stats.equivalence import DECIDED
from benchbook.core.published.claim import Claim
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import Study
from benchbook.core.util.errors import given
from benchbook.core.util.number_format import format_percent, format_percent_range
from benchbook.core.util.plural import count

ENOUGH = 0.03
"""Half-width of an interval with which an effect is known well enough, as a fraction."""


def is_decided(judged: Judged) -> bool:
    """Tell whether more blocks are not needed: a verdict on a claim, a label, or an interval of ± 3 %."""
    if judged.candidate.look is None:
        return False
    if judged.candidate.claim is not None:
        return judged.verdict in ("confirmed", "contradicted")
    seen = judged.candidate.effect.interval
    if seen.is_known and (given(seen.high) - given(seen.low)) / 2 <= ENOUGH:
        return True
    if judged.label == "depends on threads":
        return all(one.label in DECIDED for one in judged.levels)
    return judged.label in DECIDED


def so_far(judged: Sequence[Judged]) -> str:
    """Say what a look shows of each question, and which are still open with what keeps them so."""
    told = []
    for one in judged:
        contrast, seen = one.candidate.effect.contrast, one.candidate.effect.interval
        number = (
            f"{format_percent(given(seen.effect))} ({format_percent_range(seen.low, seen.high)})"
            if seen.is_known
            else seen.reason
        )
        is_open = "" if is_decided(one) else f", open: {one.verdict or one.label}"
        told.append(f"{contrast.workload} {contrast.treatment} {contrast.metric} {number}{is_open}")
    return "; ".join(dict.fromkeys(told))


def stopped_at(study: Study, judged: Sequence[Judged]) -> int | None:
    """Return the look at which a study may end, None if it must go on.

    It may if it asks for that (`plan.stop: decided`), every contrast has reached the same look, and all that
    is asked is decided there.
    """
    looks = {one.candidate.look for one in judged}
    if study.plan.stop != "decided" or len(looks) != 1 or not all(map(is_decided, judged)):
        return None
    return looks.pop()


@dataclass(frozen=True)
class Rule:
    """Asked between blocks whether to stop. `tables` returns the tidy tables of all runs made so far; `facts`
    are the arms' facts, `asked` the claims that no contrast answers: those it judges need a verdict, too.

    Nothing but the looks decides: between them new blocks are not used, so asking more often changes nothing.
    What a look shows is printed at once.
    """

    study: Study
    analysis: Analysis
    claims: Sequence[ClaimedEffect]
    tables: Callable[[], Mapping[str, Any]]
    facts: Mapping[str, Mapping[str, Any]]
    asked: Sequence[evaluate.Asked] = ()
    say: Callable[[str], None] = print

    def __call__(self, blocks: int) -> str | None:
        """Return why to stop after so many blocks, None to go on."""
        if self.study.plan.stop != "decided" or blocks < min(self.analysis.looks):
            return None
        tables = self.tables()
        runs, histograms = (_frame(tables[name]) for name in ("runs", "histograms"))
        runs, _ = pairs.usable(slice_counts.of_one_order(runs, self.study)[0])
        evidence = Evidence(self.study, runs, self.analysis, None, None, self.facts, histograms)
        judged = judged_study(evidence, self.claims, min(self.analysis.looks))[0]
        if blocks in self.analysis.looks:
            self.say(f"after {count(blocks, 'block')}: {so_far(judged)}")
        look = stopped_at(self.study, judged)
        planned = self.study.plan.blocks
        if look is None or blocks >= planned:
            return None
        asked = [one for one in self.asked if one.is_judged]
        seconds = _frame(tables["intervals"]) if evaluate.tables(asked) else None
        answers = evaluate.findings(replace(evidence, intervals=seconds), asked)
        if any(one.verdict not in ("confirmed", "contradicted") for one in answers):
            return None
        return f"everything is decided at the look at {count(look, 'block')}; {planned} planned"


def rule(
    study: Study,
    analysis: Analysis,
    claims: Mapping[str, Claim],
    tables: Callable[[], Mapping[str, Any]],
    facts: Mapping[str, Mapping[str, Any]],
) -> Rule:
    """Return the rule of a study that is asked some claims, by their ids."""
    put = evaluate.put(study, claims, {})
    return Rule(study, analysis, put.effects, tables, facts, put.asked)


def _frame(table: Any) -> pd.DataFrame:
    return table if isinstance(table, pd.DataFrame) else table.to_pandas()
