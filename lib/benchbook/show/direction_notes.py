"""Notes on a claim's numbers: the comparison they make, and effects opposite to the published."""

from __future__ import annotations

from collections.abc import Sequence

from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import Answer, AnswerPart, Finding
from benchbook.core.util import number_format
from benchbook.core.util.errors import require_value


def is_opposite(finding: Finding, band: Sequence[float | None] | None) -> bool:
    """True if an effect lies wholly on the other side of zero than all that a claim allows."""
    is_number = finding.headline and number_format.is_known(finding.effect)
    return bool(band and is_number) and _is_beyond(finding, band)


def describe_opposite_parts(answer: Answer) -> str:
    """Parts of an illustrated claim that went the other way; empty where none did or the claim is judged."""
    answer_parts = [
        part for part in answer.parts if answer.kind == "effect" and number_format.is_known(part.low)
    ]
    opposite = [part.where for part in answer_parts if part.scale == "share" and _is_beyond(part, part.band)]
    return "" if answer.judged else _describe_opposite(opposite, len(answer_parts))


def describe_opposite_effects(findings: Sequence[Finding], band: Sequence[float | None] | None) -> str:
    """Workloads on which a pair of arms went the other way than a band; empty where none did."""
    opposite = [labels.label_role(finding, "workload") for finding in findings if is_opposite(finding, band)]
    return _describe_opposite(opposite, len(findings))


def describe_comparison(answer: Answer) -> str:
    """What a claim's numbers compare where each is a ratio of two ratios; else empty."""
    if answer.kind == "same_effect":
        return "Each number compares the shares that the two arms keep: above zero, the first keeps more."
    if answer.kind == "trend" and any(" against " in part.where for part in answer.parts):
        return (
            "Each number compares the ratio of the two arms at two levels: above zero, it is larger at the "
            "second."
        )
    return ""


def _is_beyond(result: AnswerPart | Finding, band: Sequence[float | None] | None) -> bool:
    low, high = band or (None, None)
    rises, falls = low is not None and low >= 0, high is not None and high <= 0
    return (rises and require_value(result.high) < 0) or (falls and require_value(result.low) > 0)


def _describe_opposite(places: Sequence[str], of: int) -> str:
    if not places:
        return ""
    where = "" if len(places) == of else f" on {number_format.join_words(places)}"
    return f"The direction is opposite to the published one{where}."
