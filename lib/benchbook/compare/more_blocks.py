"""How many more blocks: from the spread between blocks to machine minutes and visible effects."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import chdtri, stdtrit

from benchbook.compare import edges

ASSURANCE = 0.80
POWER = 0.80
MAX_BLOCKS = 10_000


@dataclass(frozen=True)
class MoreBlocks:
    """Blocks to add for an interval of ± `half_width` (a fraction), and their machine minutes."""

    half_width: float
    blocks: int
    minutes: float | None


def assured_spread(spread: float, n: int, assurance: float = ASSURANCE) -> float:
    """Return the upper bound of the true spread that n blocks support, with the given assurance.

    A standard deviation of five blocks is itself uncertain; planning with it as it stands misses the
    wanted width half of the time (Kupper & Hafner 1989). One-sided chi-squared bound.
    """
    if n < 2:
        raise ValueError(f"a spread of {n} block is unknown")
    return spread * math.sqrt((n - 1) / float(chdtri(n - 1, assurance)))


def blocks_for(half_width: float, spread: float, level: float) -> int | None:
    """Return the smallest number of blocks whose interval is ± `half_width` when the spread is known.

    `half_width` is a fraction (0.02 is 2 %), `spread` the standard deviation of block log ratios.
    None where more than 10,000 blocks would be needed.
    """
    wanted = math.log1p(half_width)
    for n in range(2, MAX_BLOCKS + 1):
        if edges.is_below(float(stdtrit(n - 1, (1 + level) / 2)) * spread / math.sqrt(n), wanted):
            return n
    return None


def more_blocks(
    spread: float, n: int, have: int, half_width: float, level: float, block_s: float | None
) -> MoreBlocks | None:
    """Return how many blocks to add to the `have` that exist, planning with 80 % assurance.

    `spread` comes from n blocks; `block_s` is what a block took, in seconds. None where the spread says
    nothing (fewer than 2 blocks, or no end in sight).
    """
    if n < 2:
        return None
    needed = blocks_for(half_width, assured_spread(spread, n), level)
    if needed is None:
        return None
    blocks = max(0, needed - have)
    return MoreBlocks(half_width, blocks, None if block_s is None else blocks * block_s / 60)


def detectable_effect(spread: float, n: int, level: float, power: float = POWER) -> float | None:
    """Return the smallest effect (a fraction) that n blocks show with the given power; None below 2."""
    if n < 2:
        return None
    quantiles = float(stdtrit(n - 1, (1 + level) / 2)) + float(stdtrit(n - 1, power))
    return math.expm1(quantiles * spread / math.sqrt(n))
