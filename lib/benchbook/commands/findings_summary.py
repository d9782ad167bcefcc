"""reports/FINDINGS.md: the published claims by their own tables, then every effect over recorded sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchbook.compare.meta import random_effects, recorded_sessions
from benchbook.compare.text import cpu_models, labels, results_table
from benchbook.core.artifacts import record
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, StudySession
from benchbook.core.published.audit import Audit
from benchbook.core.util import files, paths, yaml_file
from benchbook.core.util.errors import require_value
from benchbook.core.util.grouping import group_by
from benchbook.core.util.number_format import glance_percent
from benchbook.show.claim_status import ClaimStatus, MeasuredStudy
from benchbook.show.markup import escape_markdown
from benchbook.show.results_view import describe_session
from benchbook.show.tables import name_finding

FILE = "FINDINGS.md"
_CLAIMS = ("claim", "published", "its own tables", "computed again", "measured here")
_EFFECTS = ("study", "treatment", "against", "workload", "metric", "threads", "mean", "other sessions",
            "sessions", "processors", "label")  # fmt: skip


def write_summary(audits: Sequence[Audit]) -> None:
    """Write the file, made of audits and of the record."""
    files.write_text(paths.reports_folder() / FILE, render_summary(audits, pooled_studies()))


def pooled_studies() -> list[MetaAnalysis]:
    """Recorded studies, each over the sessions of its newest design, by the results that git has."""
    index = record.read_index()
    every = (recorded_sessions.pool_study(index, name) for name in sorted(index.studies))
    return [pooled for pooled in every if pooled is not None]


def render_summary(audits: Sequence[Audit], studies: Sequence[MetaAnalysis]) -> str:
    """Both tables as Markdown."""
    standing = ClaimStatus(
        audits, recorded_studies(), {}, pooled={pooled.study: pooled for pooled in studies}
    )
    claims = [
        [claim.claim, claim.published, claim.verdict, claim.recomputed, _measured(standing, claim.id)]
        for audit in audits
        for claim in audit.claims
    ]
    marks = "; ".join(f"{mark} {text}" for mark, text in results_table.MEANINGS.items())
    effects = [row for pooled in studies for row in _list_effects(pooled)]
    earlier = [
        [*row, differs]
        for study in studies
        for pooled, differs in _earlier_designs(study)
        for row in _list_effects(pooled)
    ]
    return f"""# Findings

Made by `make pages` from the record and the published tables.

## Published claims, by their own tables

{_render_table(_CLAIMS, claims)}

Measured in one session: {marks}.

## Effects over recorded sessions

Mean change; where nine of ten further sessions are expected, or the range that was seen.

{_render_table(_EFFECTS, effects)}

## Effects by earlier designs

Of studies that were changed since and measured on fewer than {random_effects.FEWEST_PROCESSORS} processors
in their present design: the last design before it that was measured on as many, and how it differs.

{_render_table((*_EFFECTS, "that design against the present one"), earlier)}
"""


def _earlier_designs(newest: MetaAnalysis) -> Iterator[tuple[MetaAnalysis, str]]:
    """The last earlier design on enough processors to predict from, if the newest has too few, in words."""
    if _has_enough_processors(newest.sessions):
        return
    earlier = (left for left in reversed(newest.left_out) if left.session.superseded is None)
    for design, left_out in group_by(earlier, lambda left: left.session.design).items():
        if _has_enough_processors([left.session for left in left_out]):
            pooled = recorded_sessions.pool_study(record.read_index(), newest.study, design)
            yield require_value(pooled), left_out[0].reason.partition("): ")[2]
            return


def _has_enough_processors(sessions: Sequence[StudySession]) -> bool:
    models = cpu_models.count_models([session.processor for session in sessions])
    return models >= random_effects.FEWEST_PROCESSORS


def recorded_studies() -> list[MeasuredStudy]:
    """Newest session of each recorded study, with the claims that its arms illustrate by the study file."""
    index = record.read_index()
    studies = []
    for name in sorted(index.studies):
        file = paths.study_paths(name).file
        arms = (yaml_file.read_mapping(file).data.get("arms") or {}) if file.is_file() else {}
        illustrates = {arm: (setting or {}).get("illustrates") or [] for arm, setting in arms.items()}
        findings = index.newest(name).pooled_results.findings
        studies.append(MeasuredStudy(name, findings, is_recorded=True, illustrates=illustrates))
    return studies


def _measured(standing: ClaimStatus, claim: str) -> str:
    """Effects that recorded studies measured for a claim, over sessions where there are several."""
    texts = []
    for study, finding in [*standing.answers(claim), *standing.shows(claim)]:
        contrast = standing.over_sessions(study, finding)
        if contrast is not None and standing.pooled[study.name].made_by(contrast):
            continue
        session = f"{describe_session(finding)} (1 session)"
        number = results_table.describe_contrast(contrast) if contrast else session
        texts.append(f"{study.name}, {name_finding(finding)}: {number}")
    return "; ".join(texts)


def _list_effects(pooled: MetaAnalysis) -> Iterator[list[object]]:
    processors = {cpu_models.name_processor(session.processor) for session in pooled.sessions}
    for row in results_table.build_pooled_results(pooled).rows:
        elsewhere = row.elsewhere
        if elsewhere is not None and elsewhere.mean.value is not None:
            is_one_number = elsewhere.kind != "depends on the machine"
            arms = map(labels.strip_article, (row.treatment, row.baseline))
            yield [
                *(pooled.study, *arms, row.workload),
                *(labels.name_metric(row.metric), "all" if row.threads is None else row.threads),
                glance_percent(elsewhere.mean.value) if is_one_number else "",
                *(results_table.describe_range(elsewhere), elsewhere.sessions),
                *(", ".join(sorted(processors)), elsewhere.label),
            ]


def _render_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *([escape_markdown(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
