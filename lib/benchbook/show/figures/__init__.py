"""The figures of runs by name. Each function takes tidy tables and returns a `Picture`."""

from benchbook.show.figures.levels import qps
from benchbook.show.figures.within import seconds

__all__ = ["qps", "seconds"]
