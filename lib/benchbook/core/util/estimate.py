"""A number with its interval: the shape that every effect, rate and parameter has."""

import math
from dataclasses import dataclass

USEFUL_RATIO = 1.5
"""An interval whose upper ratio is as many times its lower one, or more, answers no question worth asking."""


@dataclass(frozen=True)
class Estimate:
    """A value, both ends of its interval, the interval's confidence, and the number of blocks behind it.

    Effects are fractions of the baseline. What could not be computed is None.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    n: int = 0

    @property
    def has_value(self) -> bool:
        """True if there is a number."""
        return self.value is not None and not math.isnan(self.value)

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends of the interval; None if there is none."""
        if self.low is None or self.high is None or math.isnan(self.low) or math.isnan(self.high):
            return None
        return self.low, self.high

    @property
    def is_useful(self) -> bool:
        """True if the interval of an effect is narrow enough to be quoted."""
        low, high = self.ends or (-1.0, 0.0)
        return 1 + high < USEFUL_RATIO * (1 + low)

    @property
    def sign(self) -> int:
        """Side of zero with the whole interval; 0 if it holds zero or is not known."""
        low, high = self.ends or (0.0, 0.0)
        return 1 if low > 0 else -1 if high < 0 else 0
