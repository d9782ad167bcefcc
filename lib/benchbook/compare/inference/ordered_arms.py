"""Arms that are ordered: each against the first, against its neighbour, and all pairs with each other.

Each of the three is a question of its own for Holm's correction; what is best is decided among all pairs.
"""

import itertools
from collections.abc import Mapping, Sequence

from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference.contrasts import build_contrast, compared_metrics
from benchbook.compare.inference.decisions import EffectDecision, Hypothesis, judge_candidates
from benchbook.compare.inference.finding_builder import Context, build_finding
from benchbook.compare.text.sentences import render_paragraphs
from benchbook.core.artifacts.findings import Best, Contrast, DisplayNames, Ladder, Rungs
from benchbook.core.util.grouping import group_by

Pair = tuple[str, str]


def build_ladder(
    evidence: StudyEvidence, judged_twins: Sequence[EffectDecision], context: Context
) -> Ladder | None:
    """Ladder of a study that has one, with an entry for each workload and metric, else None."""
    study = evidence.study
    if not study.plan.ladder:
        return None
    arms = [arm for arm in study.plan.ladder if arm in set(evidence.runs.arm)]
    skipped = [arm for arm in study.plan.ladder if arm not in arms]
    twins = [twin.candidate for twin in judged_twins]
    workloads = [
        _of_workload(evidence, arms, workload, metric, twins, context)
        for workload in (study.workloads if len(arms) > 1 else ())
        for metric in compared_metrics(study, workload)
    ]
    return Ladder(arms=list(study.plan.ladder), skipped=skipped, workloads=workloads)


def find_best_arms(arms: Sequence[str], labels: Mapping[Pair, str], better: str) -> list[str]:
    """Best arm up to each: a later one takes over if its label to the best before it is `better`.

    >>> find_best_arms(["a", "b", "c"], {("a", "b"): "not shown", ("a", "c"): "higher"}, "higher")
    ['a', 'a', 'c']
    """
    best = [arms[0]]
    for arm in arms[1:]:
        best.append(arm if labels[best[-1], arm] == better else best[-1])
    return best


def _of_workload(
    evidence: StudyEvidence,
    arms: Sequence[str],
    workload: str,
    metric: str,
    twins: Sequence[Hypothesis],
    context: Context,
) -> Rungs:
    pairs = list(itertools.combinations(arms, 2))
    candidates = {pair: build_contrast(evidence, *pair, workload, metric) for pair in pairs}

    def decide(chosen: Sequence[Pair]) -> list[Contrast]:
        hypotheses, first_look = [candidates[pair] for pair in chosen], min(evidence.analysis.looks)
        decisions = judge_candidates(hypotheses, first_look, is_one_family=True, twins=twins)
        entries = (build_finding(decision, context, {}) for decision in decisions)
        return [Contrast(**{key: getattr(entry, key) for key in Contrast.model_fields}) for entry in entries]

    every, better = decide(pairs), "higher" if metric == "qps" else "lower"
    labels = {pair: contrast.label for pair, contrast in zip(pairs, every, strict=True)}
    best = find_best_arms(arms, labels, better)
    is_open = any(candidate.look is None for candidate in candidates.values())
    rungs = Rungs(
        workload=workload,
        metric=metric,
        against_first=decide([(arms[0], arm) for arm in arms[1:]]),
        against_neighbour=decide(list(itertools.pairwise(arms))),
        pairs=every,
        best=None if is_open else [Best(arm=arm, best=text) for arm, text in zip(arms, best, strict=True)],
        sentence="",
    )
    return rungs.model_copy(update={"sentence": _render_sentence(rungs, arms, context.names)})


def _render_sentence(rungs: Rungs, arms: Sequence[str], names: DisplayNames) -> str:
    """Sentence on the best arm up to the last one, and on the fate of those after it."""
    best = arms[0] if rungs.best is None else rungs.best[-1].best
    pairs = {(pair.baseline, pair.treatment): pair for pair in rungs.pairs}
    fates = {"lower" if rungs.metric == "qps" else "higher": "lost", "no practical difference": "alike"}
    later = group_by(arms[arms.index(best) + 1 :], lambda arm: fates.get(pairs[best, arm].label, "rest"))
    call = {arm: names.arms.get(arm, arm) for arm in arms}
    (text,) = render_paragraphs(
        "ladder.j2",
        is_open=rungs.best is None,
        workload=names.workloads.get(rungs.workload, rungs.workload),
        metric=rungs.metric,
        first=call[arms[0]],
        last=call[arms[-1]],
        best=call[best],
        pair=pairs.get((arms[0], best)),
        **{fate: [call[arm] for arm in later.get(fate, ())] for fate in ("lost", "alike", "rest")},
    )
    return text
