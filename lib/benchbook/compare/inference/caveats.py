"""Caveats of a study as a whole, and what runs show second by second where too few blocks are planned."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.stats import stalls, tolerance
from benchbook.compare.stats.equivalence import adjust_holm
from benchbook.compare.text import sentences
from benchbook.compare.text.labels import sentence_case
from benchbook.core.artifacts import findings
from benchbook.core.artifacts.findings import CellCheck, Contrast, FindingData, ValidityThreat, Voids
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec
from benchbook.core.util import numeric_equality
from benchbook.core.util.errors import require_value
from benchbook.core.util.grouping import group_by

FISHER_P = 0.05
SHORT_RUN_S = 45
SHORT_DISCARD_S = 10
STEAL_PCT = 2.0
WIDE = 0.03
"""Half-width of an interval from which it says little: the smallest published effects are twice as large."""
WIDE_SHARE = 0.5
"""Half-width as a share of its own effect up to which it says enough all the same."""
# Places and identities that every arm has its own of, and the state of the moment: they differ without
# meaning anything.
OWN_FACTS = frozenset(
    [
        *("arm", "datadir", "host", "moment", "pid", "pid_file"),
        *("port", "proxy_pid", "socket", "started", "uptime_s"),
    ]
)


def void_counts(runs: pd.DataFrame, voids: pd.DataFrame, arms: list[str], baseline: str) -> Voids:
    """Attempts and voided ones by arm, with a test for more voids than at the baseline.

    A run that was voided only because its partner was counts as an attempt. `fisher_p` is the smallest p of
    Fisher's exact tests after Holm's correction, None where nothing was voided or can be compared.
    """
    invalid = voids[voids.status != "partner"]
    attempts = runs.arm.value_counts().add(voids.arm.value_counts(), fill_value=0)
    voided = invalid.arm.value_counts()
    by_arm = {
        arm: findings.Attempts(runs=int(attempts.get(arm, 0)), voided=int(voided.get(arm, 0))) for arm in arms
    }
    if not any(count.voided for count in by_arm.values()):
        return Voids(by_arm=by_arm, fisher_p=None, note="no run was voided")
    p = _compare_voids(by_arm, baseline)
    if p is None:
        note = "voided runs cannot be compared between arms"
    elif tolerance.is_above(p, FISHER_P):
        note = "no difference between the arms is shown"
    else:
        note = "arms were voided at different rates: that itself is a finding"
    return Voids(by_arm=by_arm, fisher_p=p, note=note)


def _compare_voids(by_arm: Mapping[str, findings.Attempts], baseline: str) -> float | None:
    """Smallest p of an arm against the baseline; None where an arm or the baseline has no attempt."""
    others = [arm for arm, count in by_arm.items() if arm != baseline and count.runs]
    if not others or not by_arm[baseline].runs:
        return None
    # scipy.stats takes seconds to load and most studies void nothing.
    from scipy.stats import fisher_exact

    counts = {arm: [count.voided, count.runs - count.voided] for arm, count in by_arm.items()}
    tables = ([counts[baseline], counts[arm]] for arm in others)
    return min(adjust_holm([float(fisher_exact(table).pvalue) for table in tables]))


def facts_that_differ(facts: Mapping[str, Mapping[str, Any]]) -> list[findings.Difference]:
    """Facts that differ between the arms by dotted name, without `OWN_FACTS`; None where an arm lacks one."""
    flat = {arm: numeric_equality.flatten_mapping(values, OWN_FACTS) for arm, values in facts.items()}
    that_differ = []
    for name in sorted(set().union(*flat.values())):
        by_arm = {arm: values.get(name) for arm, values in flat.items()}
        if len(set(map(repr, by_arm.values()))) > 1:
            that_differ.append(findings.Difference(fact=name, values=by_arm))
    return that_differ


def caveats_from_template(
    template: str, favours: Mapping[str, Sequence[str]] | None = None, **values: object
) -> list[ValidityThreat]:
    """Doubts rendered from a template of `text/templates`, each as `Title: text`.

    `favours` are by title the arms that a doubt can favour.
    """
    favours, threats = favours or {}, []
    for paragraph in sentences.render_paragraphs(template, favours=favours, **values):
        title, text = paragraph.split(": ", 1)
        threats.append(ValidityThreat(title=title, text=text, favours=list(favours.get(title, ()))))
    return threats


def leaves_zero_out(contrast: Contrast) -> bool:
    """True if a finding's interval is on one side of zero; False without an interval."""
    return tolerance.sign_of_interval(contrast.low, contrast.high) != 0


def wide_contrasts(several: Iterable[FindingData]) -> list[str]:
    """Contrasts in queries a second with an interval of their own too wide to say much.

    Its half-width is above 3 %, and above half of its effect: −50 ± 8 % says enough, and +1 ± 8 % does not.
    """
    contrasts = []
    for finding in several:
        if finding.metric != "qps" or finding.low is None or finding.high is None:
            continue
        half, names = (finding.high - finding.low) / 2, finding.names
        least = WIDE_SHARE * abs(require_value(finding.effect))
        if tolerance.is_above(half, WIDE) and tolerance.is_above(half, least):
            reach = f"the interval reaches {100 * half:.0f} % to either side"
            contrasts.append(f"{names.treatment}, {names.workload}: {reach}")
    return contrasts


def study_caveats(
    study: StudySpec, runs: pd.DataFrame, voids: Voids, checks: Sequence[CellCheck], arms: Mapping[str, str]
) -> list[ValidityThreat]:
    """Weaknesses of the study before any finding is read; `arms` has readable names."""
    marked = runs[runs.warnings.fillna("").ne("")].groupby("arm").size()
    failed = group_by((check for check in checks if check.passed is False), lambda check: check.check)
    return caveats_from_template(
        "runs.j2",
        plan=study.plan,
        is_short=study.plan.run_s < SHORT_RUN_S,
        is_discard_short=study.plan.discard_s < SHORT_DISCARD_S,
        missing=[arm for arm in study.arms if not (runs.arm == arm).any()],
        voided=sum(count.voided for count in voids.by_arm.values()),
        voids=voids,
        runs=len(runs),
        marked=marked,
        arms=arms,
        failed={name: [check.where for check in group] for name, group in failed.items()},
    )


def only_describes(study: StudySpec, analysis: Analysis) -> bool:
    """True if a study plans fewer blocks than the first look needs, so only describes its runs."""
    return study.plan.blocks < min(analysis.looks)


def describe_runs(evidence: StudyEvidence, names: Mapping[str, str]) -> list[str] | None:
    """Sentences for a study that only describes; `names` are the arms in words.

    None for another study, and for one without an event in its runs and without a long run.
    """
    runs, intervals = evidence.runs, evidence.intervals
    if intervals is None or not only_describes(evidence.study, evidence.analysis):
        return None
    arms = dict(zip(runs.run_id, runs.arm, strict=True))
    cost = stalls.measure_dips(runs, intervals, stalls.event_seconds(evidence.facts))
    # Arms with an event come first.
    ordered = sorted(cost, key=lambda dip: not dip.has_event)
    in_arms = group_by(ordered, lambda dip: names[arms[dip.run_id]])
    long = [] if cost else [(names[arms[run.run_id]], run) for run in stalls.long_runs(runs, intervals)]
    return [*map(sentence_case, sentences.render_paragraphs("described.j2", dips=in_arms, long=long))] or None
