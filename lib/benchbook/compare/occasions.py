"""Occasions: sessions of one study that are not independent of each other, counted once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchbook.compare import edges
from benchbook.compare.intervals import t_quantile
from benchbook.compare.machines import may_be_same
from benchbook.core import canonical
from benchbook.core.pooled import Session, Sign

WITHIN = timedelta(hours=6)
# What a session's own label says of a number that must decide nothing.
WITHHELD = ("no useful interval", "not decided yet")


@dataclass(frozen=True)
class Value:
    """A session's mean log effect with its standard error over n blocks, at the confidence `level`."""

    session: str
    log_effect: float
    standard_error: float
    n: int
    level: float
    label: str | None = None


@dataclass(frozen=True)
class Averaged:
    """The sessions of an occasion: the mean of their log effects with its error, and its sign if decided."""

    sessions: tuple[str, ...]
    log_effect: float
    standard_error: float
    sign: Sign


def moment(measured: str) -> datetime:
    """Return a session's time as written, in UTC."""
    found = datetime.fromisoformat(measured)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def occasions(sessions: Sequence[Session]) -> list[tuple[Session, ...]]:
    """Group sessions on what may be the same processor model, none more than 6 hours after the first.

    Each group is in the order of time, and so are the groups. A processor of which only the name is known
    may be any model of that name: counting too few occasions claims less than too many.
    """
    groups: list[list[Session]] = []
    for one in sorted(sessions, key=lambda session: (moment(session.measured), session.id)):
        own = next((group for group in groups if _belongs(one, group)), None)
        if own is None:
            groups.append([one])
        else:
            own.append(one)
    return [tuple(group) for group in groups]


def _belongs(one: Session, group: Sequence[Session]) -> bool:
    is_same = all(may_be_same(one.processor, other.processor) for other in group)
    return is_same and moment(one.measured) - moment(group[0].measured) <= WITHIN


def averaged(values: Sequence[Value]) -> Averaged:
    """Average the sessions of an occasion: plain mean, and mean of the variances over their number.

    The variance is that of the blocks alone, which no two sessions share. What the sessions of an occasion do
    share, machine and hour, is not in it: that is what tau² between occasions takes up. A larger variance
    would take it away from tau² and make the prediction interval too narrow.
    """
    m = len(values)
    mean = canonical.mean([one.log_effect for one in values])
    error = math.sqrt(canonical.total(one.standard_error**2 for one in values)) / m
    return Averaged(tuple(one.session for one in values), mean, error, _sign(values, mean, error))


def _sign(values: Sequence[Value], mean: float, error: float) -> Sign:
    """Return the sign of a mean whose interval leaves zero out; 0 where a session's number is withheld."""
    if any(one.label in WITHHELD for one in values):
        return 0
    df = sum(one.n - 1 for one in values)
    half = t_quantile((1 + max(one.level for one in values)) / 2, df) * error
    return edges.side(mean - half, mean + half)
