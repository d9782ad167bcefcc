"""Where a series of measurements changed: E-divisive, hierarchical and without any assumed distribution.

Matteson and James, "A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", JASA
109 (2014) 334-345: the energy statistic of the two sides of a split, and a permutation test of the largest.
As in MongoDB's variant a split is held against the whole segment that it divides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# A split leaves at least so many measurements on either side: fewer are an outlier, not a level.
SHORTEST = 3
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
