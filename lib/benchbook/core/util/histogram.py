"""Hold latencies the way sysbench does: 1024 logarithmic buckets from 0.001 ms to 100000 ms.

The constants and the percentile rule are sysbench's own (src/sb_histogram.c and src/sb_logger.c of 1.0.20 and
1.1.0). Neighbouring buckets differ by 1.8 %, so no latency read from them is finer than that. The grid is
made in decimal arithmetic: `exp` and `log` of floats are other programs on other processors, and differ in
the last bit.
"""

import decimal
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchbook.core.util import numeric_equality

BUCKETS = 1024
HIGHEST_MS = 1e5


def _build_grid() -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The buckets' values in ms, the 1023 bounds between them, and the ratio of two neighbours.

    Values have `canonical.DERIVED` significant digits. Forty of fifty digits are left after 1023 products.
    """
    with decimal.localcontext(decimal.Context(prec=50)):
        step = (decimal.Decimal(100_000) / decimal.Decimal("0.001")) ** (decimal.Decimal(1) / (BUCKETS - 1))
        value, half, values, bounds = decimal.Decimal("0.001"), step.sqrt(), [], []
        for _ in range(BUCKETS):
            values.append(numeric_equality.round_significant(float(value), numeric_equality.DERIVED))
            bounds.append(float(value * half))
            value *= step
        return np.array(values), np.array(bounds[:-1]), float(step)


VALUES_MS, _BOUNDS_MS, RATIO = _build_grid()
VALUES_MS.setflags(write=False)

_FIRST: dict[str, int] = {}
_ALIKE = np.zeros(BUCKETS, dtype=np.int64)
for _bucket, _value in enumerate(VALUES_MS):
    _ALIKE[_FIRST.setdefault(f"{_value:.3f}", _bucket)] += 1


def bucket_of(ms: ArrayLike) -> int | NDArray[np.int64]:
    """Bucket of a latency in ms; values outside the range go to the first or last bucket."""
    index = np.searchsorted(_BOUNDS_MS, np.asarray(ms, dtype=float), side="right")
    return int(index) if np.ndim(index) == 0 else index


def value_of(bucket: ArrayLike) -> float | NDArray[np.float64]:
    """Latency in ms that stands for a bucket."""
    values = VALUES_MS[np.asarray(bucket)]
    return float(values) if np.ndim(values) == 0 else values


def rank_of(events: int, p: float) -> int:
    """Number of events sysbench counts up to the p-th percentile: floor(events * p / 100 + 0.5)."""
    return int(np.floor(events * p / 100 + 0.5))


def bucket_percentile(counts: ArrayLike, p: float) -> float | None:
    """The p-th percentile in ms by sysbench's rule: the first bucket that reaches `rank_of`.

    `counts` has 1024 entries. Without events there is no percentile: None (sysbench prints 0.00).
    """
    cumulative = np.cumsum(_require_shape(counts))
    if not 0 < p <= 100:
        raise ValueError(f"percentile {p} is outside (0, 100]")
    if cumulative[-1] == 0:
        return None
    rank = max(rank_of(int(cumulative[-1]), p), 1)
    return float(VALUES_MS[np.searchsorted(cumulative, rank)])


def interpolate_percentile(counts: ArrayLike, p: float) -> float | None:
    """The p-th percentile in ms, placed inside its bucket on the logarithmic scale.

    Same counts as `percentile`, without its 1.8 % grid: events are taken as spread evenly, in log latency,
    over the bucket, which reaches half a step to each side of its value. None without events.
    """
    values = _require_shape(counts)
    cumulative = np.cumsum(values)
    if not 0 < p <= 100:
        raise ValueError(f"percentile {p} is outside (0, 100]")
    if cumulative[-1] == 0:
        return None
    wanted = cumulative[-1] * p / 100
    bucket = int(np.searchsorted(cumulative, wanted))
    inside = (wanted - (cumulative[bucket] - values[bucket])) / values[bucket]
    return float(VALUES_MS[bucket] * RATIO ** (inside - 0.5))


def merge_counts(*histograms: ArrayLike) -> NDArray[np.int64]:
    """Add the counts of several clients of one run; its percentiles are exact, averaged ones are not."""
    if not histograms:
        raise ValueError("nothing to merge")
    return np.sum([_require_shape(counts) for counts in histograms], axis=0, dtype=np.int64)


def is_on_grid(ms: float) -> bool:
    """True if a latency of two decimals can be one bucket's value (an average rarely is)."""
    near = bucket_of(ms)
    around = VALUES_MS[max(near - 1, 0) : near + 2]
    return any(f"{value:.2f}" == f"{ms:.2f}" for value in around)


def buckets_of_printed(printed: Sequence[str]) -> NDArray[np.int64]:
    """Buckets of the value column of `--histogram`, as printed ("0.336") and in that order.

    From 0.054 ms on, three decimals name one bucket. Below, several buckets print alike; then the lines of
    one value are placed on the middle ones of its buckets, at most half a microsecond off. Raises ValueError
    for a value that is on no bucket, is out of order, or stands on more lines than it has buckets.
    """
    unknown = [value for value in printed if value not in _FIRST]
    if unknown:
        raise ValueError(f"{unknown[0]} ms is no bucket of sysbench's histogram")
    if not printed:
        return np.array([], dtype=np.int64)
    first = np.array([_FIRST[value] for value in printed], dtype=np.int64)
    if (back := np.flatnonzero(np.diff(first) < 0)).size:
        raise ValueError(f"{printed[back[0] + 1]} ms comes after {printed[back[0]]} ms")
    starts = np.flatnonzero(np.diff(first, prepend=-1))
    lines = np.diff(starts, append=len(first))
    spare = _ALIKE[first[starts]] - lines
    if (spare < 0).any():
        value = printed[starts[spare < 0][0]]
        raise ValueError(f"{value} ms stands on more lines than it has buckets")
    within = np.arange(len(first)) - np.repeat(starts, lines)
    return first + np.repeat(spare // 2, lines) + within


def _require_shape(counts: ArrayLike) -> NDArray[np.int64]:
    values = np.asarray(counts)
    if values.shape != (BUCKETS,):
        raise ValueError(f"a histogram has {BUCKETS} counts, not {values.shape}")
    return values.astype(np.int64)
