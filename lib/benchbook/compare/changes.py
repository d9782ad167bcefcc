"""Where a series of measurements changed: E-divisive, hierarchical and without any assumed distribution.

Matteson and James, "A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", JASA
109 (2014) 334-345: the energy statistic of the two sides of a split, and a permutation test of the largest.
As in MongoDB's variant a split is held against the whole segment that it divides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchbook.compare import machines
from benchbook.compare.occasions import moment
from benchbook.compare.sentences import count, told
from benchbook.core.pooled import Pooled, Session

# A split leaves at least so many measurements on either side: fewer are an outlier, not a level.
SHORTEST = 3
# So many must lie before the latest ones, that these lie beyond all of them once in 25 series by chance.
BEFORE = 5
# One series in a thousand without any change is reported to have one; see benchmarks/history.py.
LEVEL = 0.001
PERMUTATIONS = 4999
SEED = 20261122
_BATCH = 50


def change_points(
    values: Sequence[float] | NDArray[np.float64], level: float = LEVEL, permutations: int = PERMUTATIONS
) -> list[int]:
    """Return the places of the first values after each change, ascending; the same values give the same.

    A change needs a permutation test with p <= `level`. Too few values for any p that small have no change
    points, however far apart they are. Raise ValueError where a value is not finite.

    >>> change_points([0.0, 0.1] * 8 + [5.0, 5.1] * 8)
    [16]
    """
    series = np.asarray(values, dtype=float)
    if not np.isfinite(series).all():
        raise ValueError("a series has a value that is no number; leave that measurement out")
    found: list[int] = []
    waiting = [(0, len(series))]
    while waiting:
        first, end = waiting.pop()
        split = _split(series[first:end], level, permutations)
        if split is not None:
            found.append(first + split)
            waiting += [(first, first + split), (first + split, end)]
    return sorted(found)


def divergences(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the energy statistic of each split that leaves `SHORTEST` values on either side.

    `distances` holds |x_i - x_j|, with any number of series in front. With n and m values on the two sides it
    is n m / (n + m) times twice the mean distance between the sides less the mean distances within each.
    """
    size = distances.shape[-1]
    sums = distances.cumsum(axis=-1).cumsum(axis=-2)
    places = np.arange(SHORTEST, size - SHORTEST + 1)
    left, whole = sums[..., places - 1, places - 1], sums[..., -1, -1][..., None]
    reached = sums[..., places - 1, size - 1]
    between, right = reached - left, whole - 2 * reached + left
    n, m = places, size - places
    # Each pair stands twice in a sum within one side, and once in the sum between them.
    within = left / (n * (n - 1)) + right / (m * (m - 1))
    return n * m / size * (2 * between / (n * m) - within)


def _split(series: NDArray[np.float64], level: float, permutations: int) -> int | None:
    """Return the place of the best split where the permutation test finds that order matters, else None."""
    if len(series) < 2 * SHORTEST:
        return None
    distances = np.abs(series[:, None] - series)
    own = divergences(distances)
    best = int(own.argmax())
    # Sums in another order differ in their last bits; equal values must count as reached.
    reached, most, drawing = 0, level * (permutations + 1) - 1, np.random.default_rng(SEED)
    bound = own[best] - 1e-12 * max(1.0, abs(own[best]))
    for first in range(0, permutations, _BATCH):
        count = min(_BATCH, permutations - first)
        orders = drawing.permuted(np.tile(np.arange(len(series)), (count, 1)), axis=1)
        drawn = divergences(distances[orders[:, :, None], orders[:, None, :]])
        reached += int((drawn.max(axis=-1) >= bound).sum())
        if reached > most:
            return None
    return best + SHORTEST


@dataclass(frozen=True)
class Course:
    """How a series went: `steps` at places, a steady `drift`, or the `latest` values beyond all before.

    `moved` is the ratio over the last step, or from the first to the last day of a drift, less one.
    """

    kind: Literal["steps", "drift", "latest"]
    places: tuple[int, ...] = ()
    moved: float = 0.0


def fewest(level: float) -> int:
    """Return how many values a change needs at least: fewer have too few orders for a p that small.

    A level in halves has 2 of all C(n, n / 2) halves on its side: 2 / 6435 < 0.0005 at 15, 2 / 3432 is not.

    >>> fewest(0.0005), fewest(0.001)
    (15, 14)
    """
    return next(n for n in range(2, 100) if 2 / math.comb(n, n // 2) <= level)


def course(days: Sequence[float], logs: Sequence[float], level: float = LEVEL) -> Course | None:
    """Return how log effects went over days, in the order of time; None where nothing was shown to move."""
    at, values = np.asarray(days, dtype=float), np.asarray(logs, dtype=float)
    is_enough = len(values) >= fewest(level)
    places = change_points(values, level, math.ceil(5 / level) - 1) if is_enough else []
    kind = "steps"
    if not places and (late := _latest(values)):
        places, kind = [late], "latest"
    if not places:
        return None
    line = np.polynomial.Polynomial.fit(at, values, 1)
    edges = [0, *places, len(values)]
    parts = [values[first:end] for first, end in itertools.pairwise(edges)]
    left = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    if _criterion(float(((values - line(at)) ** 2).sum()), len(values), 2) < _criterion(
        left, len(values), 2 * len(places) + 1
    ):
        # Of a drift the latest values are the furthest, which says nothing of them.
        moved = math.expm1(float(line(at[-1]) - line(at[0])))
        return Course("drift", (), moved) if kind == "steps" else None
    moved = math.expm1(float(parts[-1].mean() - parts[-2].mean()))
    return Course("steps" if kind == "steps" else "latest", tuple(places), moved)


def in_time(found: Pooled) -> list[str]:
    """Say of each effect a reader is told, machine by machine, how its sessions moved; nothing if none did.

    The error is shared by all series of the study (Bonferroni).
    """
    made = list(_series(found))
    said: list[str] = []
    for name, sessions, effects in made:
        days = [moment(one.measured).timestamp() / 86_400 for one in sessions]
        logs = [math.log1p(one) for one in effects]
        if went := course(days, logs, LEVEL / len(made)):
            said += told("course.j2", name=name, went=went, dates=[one.measured[:10] for one in sessions])
    return said


def _series(found: Pooled) -> Iterator[tuple[str, list[Session], list[float]]]:
    machine = {one.id: (machines.name(one.processor), one.cores) for one in found.sessions}
    for contrast in found.contrasts:
        for effect in contrast.told:
            known = sorted(effect.sessions, key=lambda one: moment(found.session(one.session).measured))
            at = "" if effect.threads is None else f", {count(effect.threads, 'thread')}"
            what = f"{contrast.names.treatment} on {contrast.names.workload}{at}"
            for where in dict.fromkeys(machine[one.session] for one in known):
                own = [one for one in known if machine[one.session] == where and one.effect is not None]
                sessions = [found.session(one.session) for one in own]
                yield f"{what}, {where[0]}", sessions, [one.effect or 0.0 for one in own]


def _latest(values: NDArray[np.float64]) -> int:
    """Return from where on all values lie beyond all before, by the widest gap; 0 where there is none."""
    parts = [(values[:at], values[at:]) for at in range(BEFORE, len(values) - SHORTEST + 1)]
    gaps = [max(late.min() - before.max(), before.min() - late.max()) for before, late in parts]
    return BEFORE + int(np.argmax(gaps)) if gaps and max(gaps) > 0 else 0


def _criterion(left: float, size: int, parameters: int) -> float:
    """Return Schwarz's criterion of a model that leaves a sum of squares; what fits exactly leaves a bit."""
    return size * math.log(left / size + 1e-12) + parameters * math.log(size)
