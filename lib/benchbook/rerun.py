"""Somebody else's rerun of a study, judged by the rule that judges any claim.

What we found is the claim: our effect with the band of a claimed number, two percentage points on each side
or a fifth of it if that is more; "no practical difference" has the band that it was shown with. The rerun's
whole interval inside the band confirms it, the whole interval outside contradicts it, anything else leaves
it open. Our own interval widens no band; where it reaches theirs, that is said. An effect that we did not
show ourselves is no claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook import verify
from benchbook.compare import verdicts
from benchbook.core import files, paths
from benchbook.core.errors import BenchbookError
from benchbook.show import numbers
from benchbook.show.registration import PROMISED
from benchbook.show.summary import safe

# Our own outcome says whether there is anything to confirm.
CLAIMS = ("higher", "lower", "no practical difference")


@dataclass(frozen=True)
class _Ends:
    log_low: float | None
    log_high: float | None


@dataclass(frozen=True)
class Judged:
    """One finding, ours and theirs (None if they have none), with the verdict or why there is none."""

    first: Mapping[str, Any]
    second: Mapping[str, Any] | None
    verdict: str | None
    note: str


def judge(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Judged]:
    """Judge every finding of a study's second findings.json by its first."""
    theirs = {found["id"]: found for found in second["findings"]}
    for found in first["findings"]:
        other = theirs.get(found["id"])
        reason = _obstacle(found, other)
        if reason or other is None:
            yield Judged(found, other, None, reason)
            continue
        ends = _Ends(_log(other["low"]), _log(other["high"]))
        is_null = found["label"] == "no practical difference"
        band = (
            verdicts.Band(-verdicts.PRACTICAL, verdicts.PRACTICAL)
            if is_null
            else verdicts.point_band(found["effect"])
        )
        outcome = verdicts.verdict(ends, band)
        sign = (
            verdicts.direction(ends, 0 if is_null else found["effect"]) if outcome == "contradicted" else None
        )
        note = f"band {numbers.span(band.low, band.high)}" + (f"; direction: {sign}" if sign else "")
        if outcome == "contradicted" and found["low"] <= other["high"] and other["low"] <= found["high"]:
            note += "; the two intervals overlap, so the first may be what is off"
        yield Judged(found, other, outcome, note)


def _obstacle(found: Mapping[str, Any], other: Mapping[str, Any] | None) -> str:
    if other is None:
        return "the rerun has no such finding"
    if not found["headline"] or found["label"] not in CLAIMS:
        return "we did not show an effect, so there is nothing to confirm"
    if not other["headline"]:
        return "in the rerun the effect depends on threads"
    if not (numbers.is_known(other["low"]) and numbers.is_known(other["high"])):
        return "the rerun has no interval"
    return ""


def _log(value: float | None) -> float | None:
    return None if value is None or value <= -1 else math.log1p(value)


def markdown(place: Path) -> str:
    """Set a rerun (archive, folder or findings.json) beside our own findings of its study, as Markdown.

    Raises BenchbookError if we have no findings of that study.
    """
    second, study = verify.findings(place)
    name = second["study"]
    ours = paths.study(name).findings
    if not ours.is_file():
        raise BenchbookError(f"data/{name}: no findings of our own to compare with; make repro comes first")
    first = files.read_json(ours)
    lines = [
        f"### {safe(first['title'])}: a rerun beside the first run",
        "",
        "| Finding | First | Rerun | Verdict | |",
        "|---|---|---|---|---|",
        *(_row(one) for one in judge(first, second)),
        "",
        *_twins(first, second),
        *_care(name, study),
        "- The first effect is the claim. *Confirmed*: the rerun's whole interval lies in its band; "
        "*contradicted*: all of it lies outside; otherwise *inconclusive*.",
    ]
    return "\n".join(lines) + "\n"


def _row(one: Judged) -> str:
    told = (_told(one.first), _told(one.second), one.verdict or "not judged", one.note)
    name = f"{one.first['workload']}: {one.first['treatment']} against {one.first['baseline']}"
    return f"| {' | '.join(safe(text) for text in (name, *told))} |"


def _told(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "none"
    ends = numbers.span(found["low"], found["high"])
    return f"{numbers.percent(found['effect'])} ({ends}, n = {found['n']}), {found['label']}"


def _twins(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    for who, found in (("first run", first), ("rerun", second)):
        yield f"- A/A of the {who}: {safe(_told(found.get('aa')))}."


def _care(name: str, study: Mapping[str, Any] | None) -> Iterator[str]:
    """Say where the study that was rerun is not the same question."""
    if study is None:
        yield "- ⚠ The rerun came without its study file: nothing says that it asked the same question."
        return
    own = verify.study_of(paths.study(name).file) or {}
    differs = [key for key in (*PROMISED, "dataset", "engine") if repr(own.get(key)) != repr(study.get(key))]
    if differs:
        yield f"- ⚠ It is not quite the same study: {safe(numbers.listing(differs))} differ."
