"""Whether prediction intervals keep their word: each occasion predicted from the others, and equal arms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchbook.compare.calibration import exact_share
from benchbook.compare.placed import again
from benchbook.compare.random_effects import FEWEST, LEVEL
from benchbook.compare.sentences import NBSP
from benchbook.core.pooled import Pooled, PooledEffect
from benchbook.core.wording import count


@dataclass(frozen=True)
class Share:
    """How many of how many, and the exact 95 % interval of the share."""

    number: int
    of: int
    low: float
    high: float


@dataclass(frozen=True)
class Coverage:
    """How often an occasion lay where the others let expect it, over so many effects of so many studies."""

    inside: Share
    effects: int
    studies: int


@dataclass(frozen=True)
class EqualArms:
    """How often equal arms came out equal: in single sessions, and in means over sessions."""

    sessions: Share
    means: Share | None


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
    inside = [is_inside for _, effect in known for is_inside in _each(effect)]
    if not inside:
        return None
    return Coverage(_share(sum(inside), len(inside)), len(known), len({study for study, _ in known}))


def equal_arms(several: Sequence[Pooled]) -> EqualArms | None:
    """Count intervals of equal arms that hold zero: of each session over its blocks, of means over two
    occasions and more; None without any A/A pair."""
    pairs = [one.aa.whole for one in several if one.aa is not None]
    single = [_holds_zero(seen.low, seen.high) for pair in pairs for seen in pair.sessions]
    means = [_holds_zero(pair.low, pair.high) for pair in pairs if pair.low is not None]
    if not single:
        return None
    return EqualArms(_share(sum(single), len(single)), _share(sum(means), len(means)) if means else None)


def sentences(several: Sequence[Pooled]) -> Iterator[str]:
    """Yield what both checks show, with their counts."""
    found, equal, level = coverage(several), equal_arms(several), f"{100 * LEVEL:.0f}{NBSP}%"
    if found is None:
        yield f"No effect has {FEWEST} occasions yet, so no prediction interval could be tried."
    else:
        studies = "1 study" if found.studies == 1 else f"{found.studies} studies"
        yield (
            f"Predicted from the others, {found.inside.number} of {found.inside.of} left-out occasions lay "
            f"inside their {level} prediction interval ({count(found.effects, 'effect')} of {studies}; "
            f"{_ends(found.inside)})."
        )
    if equal is not None:
        own, means = equal.sessions, equal.means
        told = f"Equal arms (A/A): the intervals of {own.number} of {own.of} sessions hold zero"
        more = f", and {means.number} of {means.of} means over sessions do at {level}" if means else ""
        yield f"{told}{more}."


def _each(effect: PooledEffect) -> Iterator[bool]:
    for out in effect.occasions:
        low, high = again([one for one in effect.occasions if one is not out]).expected(out.standard_error**2)
        yield low <= math.log1p(out.effect) <= high


def _holds_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= 0 <= high


def _share(number: int, of: int) -> Share:
    return Share(number, of, *exact_share(number, of))


def _ends(share: Share) -> str:
    low, high = 100 * share.low, 100 * share.high
    return f"exact 95{NBSP}% interval {low:.0f} to {high:.0f}{NBSP}%"
