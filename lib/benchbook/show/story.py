"""Story of the five reports: their claims, the results of their tables, measurements, causes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from benchbook.compare.text import cpu_models
from benchbook.core.artifacts.meta_analysis import LABELS
from benchbook.show import bottleneck_section
from benchbook.show.claim_status import ClaimStatus
from benchbook.show.forest import (
    SEVERAL,
    Forest,
    describe_contrast,
    name_place,
    on_throughput,
    row_of_sessions,
)
from benchbook.show.markup import Html, make_slug
from benchbook.show.table import Table, build_table
from benchbook.show.templating import render_badge, render_template


def render_opening(seen: ClaimStatus) -> Html:
    """Sentence on the basis of the story, or that the record is still to be made."""
    sessions = [one for study in seen.pooled.values() for one in study.sessions]
    models = cpu_models.count_models([one.processor for one in sessions])
    return render_template("story.html.j2", seen=seen, studies=seen.pooled, sessions=sessions, models=models)


def tabulate_reports(seen: ClaimStatus) -> Table:
    """Count the claims of each report that its own tables bear out."""
    return build_table("reports", seen.audits)


def tabulate_measured(seen: ClaimStatus) -> Table:
    """List the claims that have an effect measured here beside the published number and the report's own.

    What several sessions measured is their mean, as on the first page.
    """
    rows = [
        (claim, study, one, seen.over_sessions(study, one))
        for claim in seen.claims
        for study, one in [*seen.answers(claim.id), *seen.shows(claim.id)][:1]
    ]
    return build_table("measured", rows, describe_contrast=describe_contrast)


def tabulate_labels(seen: ClaimStatus) -> Table:
    """Count the labels on effects on throughput elsewhere: one row a label."""
    said = Counter(effect.standing for _, _, effect in on_throughput(seen.pooled.values()))
    return build_table("labels", [[render_badge(label), said[label]] for label in LABELS if said[label]])


def draw_forest(seen: ClaimStatus) -> Forest:
    """Draw every effect on throughput that several occasions show something of, the largest loss first."""
    known = [
        (study, contrast, one)
        for study, contrast, one in on_throughput(seen.pooled.values())
        if one.effect is not None and one.k > 1 and one.standing not in ("not shown", "not computed")
    ]
    known.sort(key=lambda one: one[2].effect or 0.0)
    rows = tuple(
        replace(
            row_of_sessions(contrast, one),
            name=f"{name_place(contrast, one)} ({study.study})",
            way=f"record/studies/{make_slug(study.study)}.html#finding-{make_slug(contrast.id)}",
        )
        for study, contrast, one in known
    )
    return Forest("elsewhere", "Effects over sessions", rows, SEVERAL, "No study has several sessions yet.")


def tabulate_reasons(seen: ClaimStatus) -> Table:
    """Give the first known cause of each study in a sentence."""
    known = (
        (study, bottleneck_section.select_causes(next(iter(study.explained), study.found)))
        for study in seen.studies
    )
    return build_table(
        "causes", [(study, bottleneck_section.format_reason(found[0])) for study, found in known if found]
    )
