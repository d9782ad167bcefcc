"""All figures by name. Each function takes tidy tables or findings and returns a `Picture`."""

from benchbook.show.forest import forest, forest_alt
from benchbook.show.levels import cpu, latency, qps
from benchbook.show.order import run_order
from benchbook.show.picture import Panel, Picture, alt
from benchbook.show.within import histogram, seconds

__all__ = [
    "Panel",
    "Picture",
    "alt",
    "cpu",
    "forest",
    "forest_alt",
    "histogram",
    "latency",
    "qps",
    "run_order",
    "seconds",
]
