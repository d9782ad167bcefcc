"""Where one session lies beside the pooled ones, and whether intervals for the next one keep their word.

Each occasion is predicted from the others, and equal arms are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchbook.compare import edges, machines
from benchbook.compare.calibration import Share, share_of
from benchbook.compare.occasions import FEWEST, LEVEL, Pool
from benchbook.compare.occasions import pool as pooled_of
from benchbook.compare.pooled import Brought, pool
from benchbook.compare.pooled_words import lead, percent, span
from benchbook.compare.sentences import told
from benchbook.core.pooled import Contrast, Occasion, Pooled, PooledEffect, Seen, Session
from benchbook.core.wording import count

Place = Literal["as expected", "outside what was expected", "nothing to expect yet", "no number here"]
# Steal of a quiet guest is below a tenth of a per cent; so much more than elsewhere is worth a word.
STEAL_MORE = 1.0


@dataclass(frozen=True)
class Placed:
    """An effect of a session beside those of the record, in words; `expected` are fractions, where known."""

    contrast: str
    threads: int | None
    effect: float | None
    expected: tuple[float, float] | None
    place: Place
    sentence: str


def placed(here: Brought, record: Pooled) -> list[Placed]:
    """Place each effect of a session that the record tells of; nothing where its design is another one.

    Expected is where a further session lies in nine of ten, its own blocks' error included. A session that is
    in the record itself is compared with the others, without its occasion.
    """
    if here.session.design != record.design:
        return []
    own = pool(record.study, [here])
    by_id = {contrast.id: contrast for contrast in own.contrasts}
    return [
        _one(contrast, effect, mine.seen[0], here.session.id)
        for contrast in record.contrasts
        if contrast.id in by_id
        for effect in contrast.told
        if (mine := by_id[contrast.id].at(effect.threads)) is not None
    ]


def different(here: Session, recorded: Sequence[Session]) -> list[str]:
    """Say what a session's machine and programs have otherwise than every recorded session."""
    if not recorded:
        return []
    known = {name: [one.probes[name] for one in recorded if name in one.probes] for name in here.probes}
    ends = {name: (min(values), max(values)) for name, values in known.items() if values}
    return told(
        "different.j2",
        here=here,
        recorded=recorded,
        processor=machines.name(here.processor),
        is_same=any(machines.may_be_same(here.processor, one.processor) for one in recorded),
        proxies={
            name: version
            for name, version in here.proxies.items()
            if version not in {one.proxies.get(name) for one in recorded}
        },
        most=max(one.steal_pct or 0.0 for one in recorded),
        steal_more=STEAL_MORE,
        ends=ends,
    )


def summary(here: Brought, record: Pooled) -> str:
    """Say in a sentence or two where a session lies, and what is different where it lies outside."""
    judged = [one for one in placed(here, record) if one.expected is not None]
    outside = [one for one in judged if one.place == "outside what was expected"]
    others = different(here.session, record.sessions)
    return " ".join(told("placed.j2", judged=judged, outside=outside, different=others))


def _one(contrast: Contrast, effect: PooledEffect, mine: Seen, session: str) -> Placed:
    others = [one for one in effect.occasions if session not in one.sessions]
    names = {name for one in others for name in one.sessions}
    seen = [one.effect for one in effect.sessions if one.session in names and one.effect is not None]
    what = lead(contrast, effect)
    if mine.effect is None or mine.standard_error is None:
        text = f"{what}: no number here ({mine.reason})."
        return Placed(contrast.id, effect.threads, None, None, "no number here", text)
    beside = f"{what}: {percent(mine.effect)} here; {count(len(seen), 'recorded session')}"
    beside += f": {span(min(seen), max(seen))}" if seen else ""
    if len(others) < FEWEST:
        text = f"{beside}; {FEWEST} occasions are needed to expect anything, there are {len(others)}."
        return Placed(contrast.id, effect.threads, mine.effect, None, "nothing to expect yet", text)
    low, high = (math.expm1(end) for end in again(others).expected(mine.standard_error**2))
    is_outside = edges.is_outside(mine.effect, mine.effect, low, high)
    place: Place = "outside what was expected" if is_outside else "as expected"
    tail = "so as expected" if place == "as expected" else f"outside what was expected ({span(low, high)})"
    return Placed(contrast.id, effect.threads, mine.effect, (low, high), place, f"{beside}, {tail}.")


def again(occasions: Sequence[Occasion]) -> Pool:
    """Pool occasions again, such as those that remain without one."""
    logs = [math.log1p(one.effect) for one in occasions]
    return pooled_of(logs, [one.standard_error**2 for one in occasions])


@dataclass(frozen=True)
class Coverage:
    """How often an occasion lay where the others let expect it, over so many effects of so many studies."""

    inside: Share
    effects: int
    studies: int


def coverage(several: Sequence[Pooled]) -> Coverage | None:
    """Leave out each occasion in turn and ask whether the prediction interval of the others holds it.

    Over all effects with at least four occasions, at each thread level; the interval counts the error of the
    left-out occasion's blocks too. None where there is no such effect. What is left out are occasions, since
    the other sessions of the same hours would give it away.
    """
    known = [
        (one.study, effect)
        for one in several
        for contrast in one.contrasts
        for effect in contrast.finest
        if effect.k >= FEWEST
    ]
    inside: list[bool] = []
    for _, effect in known:
        for out in effect.occasions:
            others = again([one for one in effect.occasions if one is not out])
            low, high = others.expected(out.standard_error**2)
            inside.append(low <= math.log1p(out.effect) <= high)
    share = share_of(inside)
    studies = {study for study, _ in known}
    return None if share is None else Coverage(share, len(known), len(studies))


def equal_arms(several: Sequence[Pooled]) -> tuple[Share | None, Share | None]:
    """Count intervals of equal arms that hold zero: of each session over its blocks, and of means over two
    occasions and more."""
    pairs = [one.aa.whole for one in several if one.aa is not None]
    single = [_holds_zero(seen.low, seen.high) for pair in pairs for seen in pair.sessions]
    return share_of(single), share_of(
        [_holds_zero(one.low, one.high) for one in pairs if one.low is not None]
    )


def sentences(several: Sequence[Pooled]) -> list[str]:
    """Return what both checks show, with their counts."""
    own, means = equal_arms(several)
    return told("checks.j2", found=coverage(several), own=own, means=means, fewest=FEWEST, level=LEVEL)


def _holds_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= 0 <= high
