"""What is said beside a claim's numbers: what they compare, and what went the other way than published."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchbook.compare.claims import bands
from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import Answer, AnswerPart, Finding, Findings
from benchbook.core.published import source
from benchbook.core.util import number_format
from benchbook.core.util.errors import InputErrors, given

# As `compare.arrangements` writes it: an arm has its key in brackets where it has a name for readers.
_NOTE = re.compile(r"Arm (?:.+ \((?P<named>[^()]+)\)|(?P<key>\S+)) illustrates (?P<claim>\S+) and doesn't")


def is_opposite(found: Finding, band: Sequence[float | None] | None) -> bool:
    """Tell whether an effect lies wholly on the other side of zero than all of what a claim allows."""
    is_number = found.headline and number_format.is_known(found.effect)
    return bool(band and is_number) and _is_beyond(found, band)


def parts(one: Answer) -> str:
    """Name the parts of an illustrated claim that went the other way: `all`, some of them, or nothing."""
    known = [part for part in one.parts if one.kind == "effect" and number_format.is_known(part.low)]
    turned = sum(part.scale == "share" and _is_beyond(part, part.band) for part in known)
    if not turned:
        return ""
    return "all" if turned == len(known) else f"{turned} of {len(known)}"


def _is_beyond(found: AnswerPart | Finding, band: Sequence[float | None] | None) -> bool:
    low, high = band or (None, None)
    rises, falls = low is not None and low >= 0, high is not None and high <= 0
    return (rises and given(found.high) < 0) or (falls and given(found.low) > 0)


def of_pair(own: Sequence[Finding], band: Sequence[float | None] | None) -> str:
    """Name the workloads on which a pair of arms went the other way than a band: `all`, some, or nothing."""
    turned = [labels.of(one, "workload") for one in own if is_opposite(one, band)]
    return "all" if turned and len(turned) == len(own) else number_format.join_words(turned)


def beside_note(note: str, findings: Findings) -> str:
    """Say what went the other way in what a note of a study calls an illustration; nothing where nothing."""
    if (found := _NOTE.match(note)) is None:
        return ""
    name, arm = found["claim"], found["named"] or found["key"]
    # `standing` reads the doubts of sessions, which are written with the help of this module.
    from benchbook.show.claim_status import Measured

    study = Measured("", findings, illustrates={arm: [name]})
    if asked := study.asked(name):
        return "" if asked[0].judged else told(parts(asked[0]))
    own = study.shows(name)
    return told(of_pair(own, _band(name))) if own else ""


def _band(name: str) -> list[float | None] | None:
    """Return the band of a claim, by its source and name; none where it is gone or is not one of effects."""
    document, _, own = name.partition("/")
    try:
        claim = source.load(document).claims[own].as_put
    except (InputErrors, KeyError):
        return None
    band = bands.limits(claim) if bands.is_share(claim) else None
    return None if band is None else [band.low, band.high]


def told(on: str) -> str:
    """Say on what it went the other way, `all` or some parts; nothing where on nothing."""
    if not on:
        return ""
    return f"The direction is opposite to the published one{'' if on == 'all' else f' on {on}'}."


def compared(one: Answer) -> str:
    """Say what a claim's numbers compare where each is a ratio of two ratios; nothing where it is not."""
    if one.kind == "same_effect":
        return "Each number compares the shares that the two arms keep: above zero, the first keeps more."
    if one.kind == "trend" and any(" against " in part.where for part in one.parts):
        return (
            "Each number compares the ratio of the two arms at two levels: above zero, it is larger at the "
            "second."
        )
    return ""
