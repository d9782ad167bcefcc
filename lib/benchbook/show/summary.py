"""A study on one page of Markdown, for an issue: the answer, the numbers, what asks for care."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from benchbook.compare import words
from benchbook.core.findings import Finding, Findings
from benchbook.show import answer, numbers
from benchbook.show.doubts import Doubt, points
from benchbook.show.evidence import Evidence
from benchbook.show.markup import plain
from benchbook.show.tables import contrast

_MOST_DOUBTS = 8
_COLUMNS = ("Finding", "Effect", "Interval", "n", "Shown", "Claim", "Verdict")


def markdown(seen: Evidence, more: Sequence[Doubt] = ()) -> str:
    """Write the summary of a study; every number is from its findings, every text is escaped.

    `more` are doubts that the findings don't know, such as the pre-registration.
    """
    findings = seen.findings
    parts = [
        f"### {safe(findings.title)}",
        safe(findings.question),
        f"**{safe(answer.text(findings) or 'No finding could be computed.')}**",
        *_findings(findings),
        "\n".join(_doubts(seen, more)),
        _basis(findings),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def safe(text: object) -> str:
    """Escape a text for Markdown, so that names can't become markup, links or mentions."""
    return re.sub(r"([\\`*_\[\]<>|#&@~])", r"\\\1", re.sub(r"[ \t\r\n]+", " ", plain(text)))


def _findings(findings: Findings) -> Iterator[str]:
    listed = [found for found in (*findings.findings, findings.aa) if found]
    if not listed:
        return
    # A column that no finding fills would only make the table wider.
    rows = [_row(found) for found in listed]
    kept = [place for place in range(len(_COLUMNS)) if any(row[place] for row in rows)]
    lines = ["|".join(f" {_COLUMNS[place]} " for place in kept), "|".join("---" for _ in kept)]
    lines += ["|".join(f" {safe(row[place])} " for place in kept) for row in rows]
    yield "\n".join(f"|{line}|" for line in lines)


def _row(found: Finding) -> tuple[str, ...]:
    is_whole = found.headline
    return (
        f"{contrast(found)}, {words.metric(found.metric)}",
        numbers.effect(found),
        f"{numbers.span(found.low, found.high)} ({numbers.level(found.level)})" if is_whole else "",
        str(found.n),
        found.label,
        found.claim or "",
        found.verdict or "",
    )


def _doubts(seen: Evidence, more: Sequence[Doubt]) -> Iterator[str]:
    sentence = list(points(seen.findings, seen.runs, seen.warm_up, more))
    care = [doubt for doubt in sentence if doubt.is_care]
    first = [doubt for doubt in sentence if doubt.name in ("A/A", *(one.name for one in more))]
    shown = list(dict.fromkeys([*first, *care]))
    for doubt in shown[:_MOST_DOUBTS]:
        yield f"- {'⚠ ' if doubt.is_care else ''}**{safe(doubt.name)}**: {safe(doubt.text)}"
    if len(shown) > _MOST_DOUBTS:
        yield f"- {len(shown) - _MOST_DOUBTS} more are on the study's page."


def _basis(findings: Findings) -> str:
    blocks = findings.blocks
    sentence = [
        f"{blocks.complete} of {numbers.count(blocks.planned, 'block')}",
        f"{numbers.minutes(findings.machine_minutes)} of machine time",
        f"holds for {findings.scope}",
        *(f"{name} {number}" for name, number in findings.made_by.items()),
    ]
    return f"<sub>{safe(' · '.join(sentence))}</sub>"
