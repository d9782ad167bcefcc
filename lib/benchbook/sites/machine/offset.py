"""How far the clock of another machine is ahead of ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Offset:
    """How far a clock is ahead of ours in s, and the round trip that this was found by."""

    ahead_s: float
    round_trip_s: float


def of(ask: Callable[[], float], ours: Callable[[], float] = time.monotonic, rounds: int = 9) -> Offset:
    """Return how far the clock that `ask` reads is ahead of ours, from the quickest of some round trips."""
    best = Offset(0.0, float("inf"))
    for _ in range(rounds):
        sent, there, back = ours(), ask(), ours()
        if back - sent < best.round_trip_s:
            best = Offset(there - (sent + back) / 2, back - sent)
    return best
