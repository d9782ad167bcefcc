"""Sentences of a report: every number is read from findings, every name is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchbook.core.findings import Finding, Findings
from benchbook.show import answer, numbers, setting
from benchbook.show.doubts import differing, doubts
from benchbook.show.lines import ONE_SESSION
from benchbook.show.markup import Html, slug
from benchbook.show.sessions import beside_record, over
from benchbook.show.shape import shaped

__all__ = ["beside_record", "differing", "doubts", "judged", "opening", "over"]

_NOTHING = Html("")


def opening(
    findings: Findings,
    facts: Mapping[str, Any] | None = None,
    dataset: Mapping[str, Any] | None = None,
    several: Html = _NOTHING,
) -> Html:
    """Write the title, on what the answer rests, and the answer: one sentence a contrast.

    `several` is what the recorded sessions say together (`over`); it comes first.
    """
    blocks = findings.blocks
    basis = [
        *setting.of(facts, dataset),
        f"{blocks.complete} of {numbers.count(blocks.planned, 'block')}",
        f"{numbers.level(findings.look.level)} intervals",
        f"{numbers.minutes(findings.machine_minutes)} of machine time",
        *([] if several.text else [ONE_SESSION]),
    ]
    early = answer.early(findings)
    told = [] if early else answer.said(findings)
    given = {
        "found": findings,
        "basis": basis,
        "said": told,
        # What a study's title asks of all its arms or levels together, which no effect over sessions says.
        "leads": [one for one in told if several.text and one.is_lead],
        "early": early,
        "judged": judged,
        "over": several,
    }
    return shaped("answer.html.j2", **given)


def judged(found: Finding) -> Html:
    """Write what a finding says of the claim that it answers; nothing where it answers none."""
    if not found.claim:
        return Html("")
    more = found.more_blocks if found.verdict == "inconclusive" else None
    rest = more and (
        f"About {numbers.count(more.blocks, 'more block', 'more blocks')} "
        f"({numbers.minutes(more.minutes)}) would narrow the interval to "
        f"{numbers.percent(more.for_half_width, 0, False)} on either side."
    )
    source, _, short = found.claim.partition("/")
    way = f"../sources/{slug(source)}.html#claim-{slug(short)}"
    band = numbers.span(*found.band) if found.band else ""
    verdict = found.verdict or "not judged"
    return shaped("judged.html.j2", claim=found.claim, way=way, band=band, verdict=verdict, rest=rest or "")
