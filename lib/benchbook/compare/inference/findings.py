"""findings.json: all that a study found, and every number that prose may use; the same input, the same bytes.

Effects are fractions; what could not be computed is null and has a reason beside it.
"""

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pandas as pd

from benchbook.compare.bottlenecks import attribution, operational_laws
from benchbook.compare.claims import consistency, evaluate
from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference import (
    caveats,
    finding_builder,
    interference,
    ordered_arms,
    setup_notes,
    speed_covariate,
)
from benchbook.compare.inference.contrasts import compared_metrics, judge_contrasts
from benchbook.compare.inference.decisions import EffectDecision, select_aa_pairs
from benchbook.compare.inference.finding_builder import Context
from benchbook.compare.inference.stopping import is_decided_overall, stopped_at
from benchbook.compare.stats import interleaved_runs, pairs, tolerance
from benchbook.compare.stats.equivalence import MARGIN, next_look, reached_look
from benchbook.compare.stats.scaling import Scaling, describe_scaling
from benchbook.compare.text import labels
from benchbook.compare.text.sentences import SHOWN
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.artifacts.findings import CellCheck, FindingData, Findings, InterimLook, ValidityThreat
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.study.interleaving import RUNS
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec
from benchbook.core.util import numeric_equality
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import format_percent
from benchbook.core.util.plural import count

WHERE = {"ssh": "these hosts", "kubernetes": "this cluster"}
FALSE_VERDICTS = 0.05


def required_tables(study: StudySpec, analysis: Analysis, put: evaluate.ClaimAssignment) -> tuple[str, ...]:
    """Tidy tables that `build_from_stages` takes for a study with these claims."""
    usual = ["runs", "voids", "histograms", "monitor", "costs"]
    at_a_rate = any(workload.rate for workload in study.workloads.values())
    if at_a_rate or evaluate.required_tables(put.asked) or caveats.only_describes(study, analysis):
        usual.append("intervals")
    return tuple(usual)


def build_from_stages(
    name: str,
    study: StudySpec,
    tidy: Mapping[str, pd.DataFrame],
    analysis: Analysis,
    put: evaluate.ClaimAssignment,
    shown: Mapping[str, ClaimSpec],
    facts: Facts,
    dataset: Mapping[str, Any],
) -> Findings:
    """Content of findings.json from the files of the stages, with claims put to it and claims illustrated."""
    checks = consistency.of_runs(tidy["runs"])
    left = [ValidityThreat(title="Claim left open", text=text, favours=[]) for text in put.left]
    unanswered = [*left, *setup_notes.setup_caveats(study, facts, shown)]
    argument = (put.effects, checks, facts.arms, unanswered, put.asked, dataset.get("loads"))
    rows = sum(dataset.get("rows", {}).values()) or None
    skipped = setup_notes.describe_skipped_arms(study, facts)
    return build_findings(name, study, tidy, analysis, *argument, rows=rows, skipped=skipped)


def build_findings(
    name: str,
    study: StudySpec,
    tidy: Mapping[str, pd.DataFrame],
    analysis: Analysis,
    claims: Sequence[ClaimedEffect] = (),
    checks: Sequence[CellCheck] = (),
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    unanswered: Sequence[ValidityThreat] = (),
    assigned_claims: Sequence[evaluate.AssignedClaim] = (),
    loads: Mapping[str, Mapping[str, Any]] | None = None,
    rows: int | None = None,
    skipped: Mapping[str, str] | None = None,
) -> Findings:
    """Content of findings.json for the study called `name`.

    `tidy` holds the tables runs, voids, histograms and, if the machine was watched, monitor; `checks` are
    consistency checks already made, `facts` one nested mapping by arm, `unanswered` doubts about claims that
    the study cannot answer, `assigned_claims` those that are no finding between two arms, `loads` how long
    loading took by arm, `rows` how many there are, `skipped` why an arm was skipped, by arm. What only some
    studies ask for is None in others, whose findings so keep their bytes.
    """
    facts, analysis = facts or {}, analysis.for_blocks(study.plan.blocks)
    ordered = tidy["runs"].sort_values(["block", "position", "run_id"], ignore_index=True)
    runs, other_order = interleaved_runs.select_order(ordered, study)
    kind = (next(iter(facts.values()), {}).get("site") or {}).get("kind") or ""
    paired, apart = pairs.select_usable(runs)
    looks, names = sorted(analysis.looks), labels.readable_names(study)
    context = Context(study.baseline, analysis, _block_seconds(runs), names, skipped or {})
    evidence = StudyEvidence(study, paired, analysis, tidy.get("intervals"), loads, facts, tidy["histograms"])
    effect_decisions, twins = judge_contrasts(evidence, claims, looks[0])
    built = _build_entries(effect_decisions, twins, context, tidy)
    entries, aa_pairs = (speed_covariate.with_adjusted(each, paired) for each in built)
    others = [evaluate.answer_claim(evidence, claim) for claim in assigned_claims]
    aa = aa_pairs[0] if aa_pairs else None
    voids = caveats.void_counts(runs, tidy["voids"], list(names.arms), study.baseline)
    accompanied, partners = interference.arms_with_side_load(study), pairs.partner_gaps(runs)
    costs, monitor = tidy.get("costs"), tidy.get("monitor")
    caused = attribution.build_causes(study, paired, costs, facts, analysis.level, names.arms, rows)
    complete = min(filter(None, (each.candidate.complete for each in effect_decisions)), default=0)
    verdicts = sum(bool(entry.verdict) for entry in entries) + sum(bool(other.verdict) for other in others)
    results = {
        "study": name,
        **{key: getattr(study, key) for key in ("title", "question", "baseline")},
        "made_by": {"benchbook": version("benchbook")},
        "scope": f"{WHERE.get(kind, 'this machine')}, these hours",
        "names": names,
        "order": next(iter(runs.order), RUNS),
        "turns": interleaved_runs.summarize_turns(runs, facts),
        "blocks": {"planned": study.plan.blocks, "complete": complete},
        "look": _current_look(complete, looks, analysis.level),
        "machine_minutes": interleaved_runs.machine_s(runs) / 60,
        "aa": aa,
        "aa_others": aa_pairs[1:] or None,
        "findings": entries,
        "checks": checks,
        "voids": voids,
        "facts_differ": caveats.facts_that_differ(facts),
        "quiet": interference.measure_interference(runs, facts, monitor, accompanied),
        "partners": partners,
        "verdicts": {"number": verdicts, "expected_false_at_most": FALSE_VERDICTS * verdicts},
        "warnings": [
            *_collect_warnings(study, complete, looks[0], aa, entries, effect_decisions),
            *interference.interference_caveats(runs, facts, monitor, names, accompanied),
            *caveats.study_caveats(study, runs, voids, checks, names.arms),
            *caveats.caveats_from_template(
                "beside.j2",
                other_order=[*other_order, *interleaved_runs.mixed_levels(runs)],
                broken=operational_laws.list_violations(caused),
                apart=apart,
                far=pairs.select_far(partners),
                span=pairs.format_span,
            ),
            *unanswered,
        ],
        "scaling": _describe_scaling(study, runs),
        "causes": caused,
        "client_full": attribution.set_aside(tidy["voids"]) or None,
        "claims": others or None,
        "ladder": ordered_arms.build_ladder(evidence, twins, context),
        "described": caveats.describe_runs(evidence, names.arms),
    }
    return Findings.model_validate(numeric_equality.round_document(results))


def _describe_scaling(study: StudySpec, runs: pd.DataFrame) -> list[Scaling]:
    """Scaling of each arm at the workloads whose throughput is compared."""
    closed = [workload for workload in study.workloads if "qps" in compared_metrics(study, workload)]
    return [describe_scaling(runs, arm, workload) for workload in closed for arm in study.arms]


def _build_entries(
    decisions: Sequence[EffectDecision],
    twins: Sequence[EffectDecision],
    context: Context,
    tidy: Mapping[str, pd.DataFrame],
) -> tuple[list[FindingData], list[FindingData]]:
    """Entries of all findings, and those of the A/A pairs, first the one that puts all others in doubt."""
    q = finding_builder.q_values([decision.candidate for decision in decisions])
    aa_pairs = [finding_builder.build_finding(twin, context, {}) for twin in twins]
    # The same order for pairs that are not the first.
    first = max(aa_pairs, key=_doubt, default=None)
    aa_pairs.sort(key=lambda pair: pair is not first)
    built = (finding_builder.build_finding(decision, context, q) for decision in decisions)
    entries = [finding_builder.blocks_to_match_aa(entry, aa_pairs) for entry in built]
    if "intervals" in tidy:
        entries = finding_builder.with_support(entries, tidy, context.names.arms)
    for entry in entries:
        alike = select_aa_pairs(entry, aa_pairs, lambda pair: pair)
        if (doubtful := next((pair for pair in alike if _casts_doubt(pair, entry)), None)) is not None:
            differs_by = format_percent(doubtful.effect)
            entry.warnings.append(f"the A/A pair differs by {differs_by}; smaller effects mean nothing")
    return entries, aa_pairs


def _doubt(pair: FindingData) -> tuple[bool, float]:
    """A pair that differs is further from equal than any that doesn't, else the one of the largest effect."""
    return _is_aa_different(pair), numeric_equality.round_significant(abs(pair.effect or 0.0))


def _block_seconds(runs: pd.DataFrame) -> float | None:
    """Median time from a block's first start to its last end, in seconds."""
    spans = runs.assign(end=runs.started_s + runs.sysbench_s).groupby("block")
    seconds = (spans.end.max() - spans.started_s.min()).median()
    return None if math.isnan(seconds) else float(seconds)


def _current_look(complete: int, looks: Sequence[int], level: float) -> InterimLook:
    look, following = reached_look(complete, looks), next_look(complete, looks)
    if look is None:
        note = f"{count(complete, 'complete block')}: nothing is decided before {looks[0]}"
    elif following is None:
        note = f"judged at {count(look, 'block')}, the last look"
    else:
        note = f"judged at {count(look, 'block')}; the next look is at {following}"
    return InterimLook(n=look or 0, level=level, next=following, note=note)


def _is_aa_different(aa: FindingData) -> bool:
    """True if an A/A interval leaves zero out, even by no practical difference."""
    return aa.label in SHOWN or caveats.leaves_zero_out(aa)


def _casts_doubt(aa: FindingData, finding: FindingData) -> bool:
    """True if equal arms were shown to differ, or by a little and an effect may be as small as that."""
    if aa.label in SHOWN:
        return True
    if not (caveats.leaves_zero_out(aa) and caveats.leaves_zero_out(finding)):
        return False
    ends, room = ([abs(require_value(end)) for end in (each.low, each.high)] for each in (finding, aa))
    return not tolerance.is_above(min(ends), max(room))


def _collect_warnings(
    study: StudySpec,
    complete: int,
    first_look: int,
    aa: FindingData | None,
    entries: Sequence[FindingData],
    judged: Sequence[EffectDecision],
) -> list[ValidityThreat]:
    ends = (aa.low, require_value(aa.high)) if aa and aa.low is not None else None
    differing = (entry for entry in entries if entry.second_opinion and entry.second_opinion.agrees is False)
    stop, stop_of_means = stopped_at(study, judged), stopped_at(study, judged, is_decided_overall)
    return caveats.caveats_from_template(
        "study.j2",
        complete=complete,
        planned=study.plan.blocks,
        stopped=(stop or stop_of_means) if complete < study.plan.blocks else None,
        is_of_means=stop is None,
        first_look=first_look,
        aa=aa,
        is_aa_shown=aa and aa.label in SHOWN,
        is_aa_inside=ends is not None and tolerance.is_inside(*ends, -MARGIN, MARGIN),
        is_aa_apart=aa and _is_aa_different(aa),
        margin=MARGIN,
        heavy=[entry.id for entry in differing],
    )
