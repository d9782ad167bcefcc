"""Sentences of a report: every number is read from findings, every name is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from benchbook.compare import physics, sentences, words
from benchbook.core.findings import Finding, Findings
from benchbook.show import answer, causes, numbers, setting
from benchbook.show.doubts import differing, doubts
from benchbook.show.lines import ONE_SESSION
from benchbook.show.markup import Html, slug
from benchbook.show.sessions import beside_record, over
from benchbook.show.shape import shaped

__all__ = ["beside_record", "differing", "doubts", "headline", "judged", "opening", "over", "sentence"]

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
    look = findings.look
    is_early = not look.n and look.next
    told = [] if is_early else answer.said(findings)
    early = headline(findings) if is_early else ""
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


def headline(findings: Findings) -> str:
    """Write one sentence for each treatment and metric, workload by workload; nothing without a finding.

    Before the first look there is nothing to say but that, or what single runs did where a study plans no
    more.
    """
    blocks, look = findings.blocks, findings.look
    if not look.n and look.next:
        needed = numbers.count(look.next, "block")
        if blocks.planned < look.next:
            told = "".join(f"{sentence} " for sentence in findings.described or ())
            return f"{told}This describes runs and decides nothing: {_too_few(blocks.planned, needed)}."
        shown = f"{blocks.complete} of the {needed} that the first look needs are complete"
        return f"Nothing is decided yet: {shown}."
    if broken := physics.broken(findings.causes):
        return f"The books don't add up, so no effect is an answer: {broken[0]}."
    groups: dict[tuple[str, str, str], dict[object, Finding]] = {}
    for found in findings.findings:
        key = found.baseline, found.treatment, found.metric
        # A second claim about the same comparison tells nothing new here.
        groups.setdefault(key, {}).setdefault((found.workload, *found.threads), found)
    parts: list[str] = []
    for (_, treatment, metric), own in groups.items():
        name = words.inside(next(iter(own.values())), "treatment")
        if metric == "qps" and (added := causes.latency(findings, treatment, name)):
            parts.append(words.sentence_case(added, name))
        parts.append(sentences.headline(list(own.values())))
    return " ".join(parts)


def _too_few(planned: int, needed: str) -> str:
    verb = "is" if planned == 1 else "are"
    return f"{numbers.count(planned, 'block')} {verb} planned, and a decision needs {needed}"


def sentence(found: Finding) -> str:
    """Give a finding's own sentence, with a real minus before negative numbers."""
    return re.sub(r"(?<![\w-])-(?=\d)", "\N{MINUS SIGN}", found.sentence)
