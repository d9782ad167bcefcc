"""Story of the five reports: their claims, the results of their tables, measurements, causes."""

from collections import Counter
from dataclasses import replace

from benchbook.compare.text import cpu_models, labels
from benchbook.compare.text.results_table import describe_contrast, describe_elsewhere, describe_range
from benchbook.core.artifacts.meta_analysis import LABELS
from benchbook.show.bottleneck_section import format_reason, name_place, select_causes
from benchbook.show.claim_status import ClaimStatus
from benchbook.show.forest import SEVERAL, Forest, on_throughput, row_of_sessions
from benchbook.show.markup import Html, make_slug
from benchbook.show.results_view import describe_session
from benchbook.show.table import Table, build_table
from benchbook.show.tables import name_finding
from benchbook.show.templating import render_badge, render_template

ABSENT = "made yet: run `make pages` first"
"""What the opening says where there is no record."""


def render_opening(claim_status: ClaimStatus) -> Html:
    """Sentence on the basis of the story, or that the record is still to be made."""
    sessions = [session for study in claim_status.pooled.values() for session in study.sessions]
    models = cpu_models.count_models([session.processor for session in sessions])
    inputs = {"studies": claim_status.pooled, "sessions": sessions, "models": models}
    return render_template("story.html.j2", seen=claim_status, absent=ABSENT, **inputs)


def tabulate_reports(claim_status: ClaimStatus) -> Table:
    """Count the claims of each report that its own tables bear out."""
    return build_table("reports", claim_status.audits)


def tabulate_measured(claim_status: ClaimStatus) -> Table:
    """List claims with an effect measured here (several sessions: their mean) beside the published number."""
    rows = [
        (claim, study, finding, claim_status.over_sessions(study, finding))
        for claim in claim_status.claims
        for study, finding in [*claim_status.answers(claim.id), *claim_status.shows(claim.id)][:1]
    ]
    inputs = {"describe_contrast": describe_contrast, "describe_session": describe_session}
    return build_table("measured", rows, name_finding=name_finding, **inputs)


def tabulate_labels(claim_status: ClaimStatus) -> Table:
    """Count the labels on effects on throughput elsewhere: one row a label."""
    counts = Counter(effect.standing for _, _, effect in on_throughput(claim_status.pooled.values()))
    return build_table("labels", [[render_badge(label), counts[label]] for label in LABELS if counts[label]])


def draw_forest(claim_status: ClaimStatus) -> Forest:
    """Draw every effect on throughput that several occasions show something of, the largest loss first."""
    effects = [
        (study, contrast, effect)
        for study, contrast, effect in on_throughput(claim_status.pooled.values())
        if effect.effect is not None and effect.k > 1 and effect.standing not in ("not shown", "not computed")
    ]
    effects.sort(key=lambda item: item[2].effect or 0.0)
    rows = tuple(
        replace(
            row_of_sessions(contrast, effect),
            name=f"{labels.name_place(contrast, effect)} ({study.study})",
            way=f"record/studies/{make_slug(study.study)}.html#finding-{make_slug(contrast.id)}",
        )
        for study, contrast, effect in effects
    )
    inputs = {"describe_elsewhere": describe_elsewhere, "describe_range": describe_range}
    table = build_table("over-sessions", effects, **inputs)
    return Forest("elsewhere", table.title, rows, SEVERAL, str(table.empty), table=table)


def tabulate_reasons(claim_status: ClaimStatus) -> Table:
    """Give the first known cause of each study in a sentence."""
    rows = []
    for study in claim_status.studies:
        found = next(iter(study.explained), study.found)
        for cause in select_causes(found)[:1]:
            rows.append((study, name_place(cause, found), format_reason(cause)))
    return build_table("causes", rows)
