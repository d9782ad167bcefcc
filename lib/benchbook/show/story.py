"""The story of the five reports: what they claimed, what their tables bear out, what was measured, why."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from benchbook.compare.text import cpu_models
from benchbook.core.artifacts.meta_analysis import LABELS
from benchbook.show import bottleneck_section
from benchbook.show.claim_status import Standing
from benchbook.show.forest import SEVERAL, Forest, describe_contrast, on_throughput, place, together
from benchbook.show.markup import Html, slug
from benchbook.show.table import Table, tabulated
from benchbook.show.templating import badge, render


def opening(seen: Standing) -> Html:
    """Say on what the story rests, or that the record is still to be made."""
    sessions = [one for study in seen.pooled.values() for one in study.sessions]
    models = cpu_models.models([one.processor for one in sessions])
    return render("story.html.j2", seen=seen, studies=seen.pooled, sessions=sessions, models=models)


def reports(seen: Standing) -> Table:
    """Count what each report's own tables bear out of its claims."""
    return tabulated("reports", seen.audits)


def measured(seen: Standing) -> Table:
    """List the claims that have an effect measured here beside the published number and the report's own.

    What several sessions measured is their mean, as on the first page.
    """
    rows = [
        (claim, study, one, seen.over_sessions(study, one))
        for claim in seen.claims
        for study, one in [*seen.answers(claim.id), *seen.shows(claim.id)][:1]
    ]
    return tabulated("measured", rows, describe_contrast=describe_contrast)


def labels(seen: Standing) -> Table:
    """Count how far the effects on throughput carry: one row a label."""
    said = Counter(effect.standing for _, _, effect in on_throughput(seen.pooled.values()))
    return tabulated("labels", [[badge(label), said[label]] for label in LABELS if said[label]])


def forest(seen: Standing) -> Forest:
    """Draw every effect on throughput that several occasions show something of, the largest loss first."""
    known = [
        (study, contrast, one)
        for study, contrast, one in on_throughput(seen.pooled.values())
        if one.effect is not None and one.k > 1 and one.standing not in ("not shown", "not computed")
    ]
    known.sort(key=lambda one: one[2].effect or 0.0)
    rows = tuple(
        replace(
            together(contrast, one),
            name=f"{place(contrast, one)} ({study.study})",
            way=f"record/studies/{slug(study.study)}.html#finding-{slug(contrast.id)}",
        )
        for study, contrast, one in known
    )
    return Forest("elsewhere", "Effects over sessions", rows, SEVERAL, "No study has several sessions yet.")


def reasons(seen: Standing) -> Table:
    """Give the first known cause of each study in a sentence."""
    known = (
        (study, bottleneck_section.known(next(iter(study.explained), study.found))) for study in seen.studies
    )
    return tabulated(
        "causes", [(study, bottleneck_section.reason(found[0])) for study, found in known if found]
    )
