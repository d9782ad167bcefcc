"""The story of the five reports: what they claimed, what their tables bear out, what was measured, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from benchbook.compare import machines
from benchbook.core.pooled import LABELS, Pooled
from benchbook.show import causes
from benchbook.show.forest import SEVERAL, Forest, on_throughput, place, together
from benchbook.show.markup import Html, slug
from benchbook.show.shape import badge, render
from benchbook.show.standing import Measured, Standing
from benchbook.show.table import Table, tabulated


def opening(seen: Standing, found: Sequence[Pooled]) -> Html:
    """Say on what the story rests, or that the record is still to be made."""
    sessions = [one for study in found for one in study.sessions]
    models = machines.models([one.processor for one in sessions])
    return render("story.html.j2", seen=seen, studies=found, sessions=sessions, models=models)


def reports(seen: Standing) -> Table:
    """Count what each report's own tables bear out of its claims."""
    return tabulated("reports", seen.audits)


def measured(seen: Standing, found: Sequence[Pooled]) -> Table:
    """List the claims that have an effect measured here beside the published number and the report's own.

    What several sessions measured is their mean, as on the first page.
    """
    known = {(study.study, contrast.id): contrast for study in found for contrast in study.contrasts}
    rows = [
        (claim, study, one, known.get((study.name, one.id)) if study.is_recorded else None)
        for claim in seen.claims
        for study, one in [*seen.answers(claim.id), *seen.shows(claim.id)][:1]
    ]
    return tabulated("measured", rows)


def labels(found: Sequence[Pooled]) -> Table:
    """Count how far the effects on throughput carry: one row a label."""
    said = Counter(effect.standing for _, _, effect in on_throughput(found))
    return tabulated("labels", [[badge(label), said[label]] for label in LABELS if said[label]])


def forest(found: Sequence[Pooled]) -> Forest:
    """Draw every effect on throughput that several occasions show something of, the largest loss first."""
    known = [
        (study, contrast, one)
        for study, contrast, one in on_throughput(found)
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


def reasons(studies: Sequence[Measured]) -> Table:
    """Give the first known cause of each study in a sentence."""
    known = ((study, causes.known(next(iter(study.explained), study.found))) for study in studies)
    return tabulated("causes", [(study, causes.reason(found[0])) for study, found in known if found])
