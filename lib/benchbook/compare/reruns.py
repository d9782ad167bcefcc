"""Another team's rerun of a study, judged by the rule that judges any claim.

What we found is the claim: our effect with the band of a claimed number, two percentage points on each side
or a fifth of it if that is more; "no practical difference" has the band that it was shown with. The rerun's
whole interval inside the band confirms it, the whole interval outside contradicts it, anything else leaves
it open. Our own interval widens no band; where it reaches theirs, the page says so. An effect that we did not
show ourselves is no claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.compare import edges, verdicts
from benchbook.compare.intervals import Interval
from benchbook.core.errors import given
from benchbook.core.findings import Direction, Finding, Findings, Verdict
from benchbook.core.study_arm import without_presentation

# Our own outcome says whether there is anything to confirm.
CLAIMS = ("higher", "lower", "no practical difference")
# What must be alike for a rerun to have asked the same question.
PROMISED = ("question", "arms", "workloads", "threads", "claims", "dataset", "engine")


@dataclass(frozen=True)
class Judged:
    """One finding, ours and theirs (None if they have none), with the verdict or why there is none.

    A verdict has its band; `direction` says of a contradicted one whether at least the sign is right;
    `overlaps` that both intervals could be true, though theirs lies outside our band.
    """

    first: Finding
    second: Finding | None
    verdict: Verdict | None = None
    band: verdicts.Band | None = None
    direction: Direction | None = None
    overlaps: bool = False
    obstacle: str = ""


def judge(first: Findings, second: Findings) -> Iterator[Judged]:
    """Judge every finding of a study's first findings.json by its second."""
    theirs = {found.id: found for found in second.findings}
    for found in first.findings:
        other = theirs.get(found.id)
        reason = _obstacle(found, other)
        if reason or other is None:
            yield Judged(found, other, obstacle=reason)
            continue
        ends = Interval(other.n, other.level, None, _log(other.low), _log(other.high))
        effect, is_null = given(found.effect), found.label == "no practical difference"
        band = (
            verdicts.Band(-verdicts.PRACTICAL, verdicts.PRACTICAL) if is_null else verdicts.point_band(effect)
        )
        outcome = verdicts.verdict(ends, band)
        is_off = outcome == "contradicted"
        sign = verdicts.direction(ends, 0 if is_null else effect) if is_off else None
        overlaps = is_off and not edges.is_outside(
            *map(given, (found.low, found.high, other.low, other.high))
        )
        yield Judged(found, other, outcome, band, sign, overlaps)


def differing(own: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Return the sections of two study files that differ and change what is asked."""

    def asked(study: Mapping[str, Any], key: str) -> str:
        value = study.get(key)
        return repr(without_presentation(value) if key == "arms" else value)

    return [key for key in PROMISED if asked(own, key) != asked(theirs, key)]


def _obstacle(found: Finding, other: Finding | None) -> str:
    if other is None:
        return "the rerun has no such finding"
    if not found.headline or found.label not in CLAIMS:
        return "we did not show an effect, so there is nothing to confirm"
    if not other.headline:
        return "in the rerun the effect depends on threads"
    if not all(end is not None and math.isfinite(end) for end in (other.low, other.high)):
        return "the rerun has no interval"
    return ""


def _log(value: float | None) -> float | None:
    return None if value is None or value <= -1 else math.log1p(value)
