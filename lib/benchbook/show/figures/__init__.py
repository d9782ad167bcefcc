"""All figures by name. Each function takes tidy tables or findings and returns a `Picture`."""

from benchbook.show.figures.levels import qps
from benchbook.show.figures.order import run_order
from benchbook.show.figures.within import histogram, seconds
from benchbook.show.picture import Panel, Picture, alt

__all__ = [
    "Panel",
    "Picture",
    "alt",
    "histogram",
    "qps",
    "run_order",
    "seconds",
]
