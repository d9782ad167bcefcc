"""All figures by name. Each function takes tidy tables or findings and returns a `Picture`."""

from benchbook.show.figures.claims import claims
from benchbook.show.figures.effects import forest, forest_alt
from benchbook.show.figures.ladder import ladder
from benchbook.show.figures.levels import cpu, latency, qps
from benchbook.show.figures.order import run_order
from benchbook.show.figures.within import histogram, seconds
from benchbook.show.picture import Panel, Picture, alt

__all__ = [
    "Panel",
    "Picture",
    "alt",
    "claims",
    "cpu",
    "forest",
    "forest_alt",
    "histogram",
    "ladder",
    "latency",
    "qps",
    "run_order",
    "seconds",
]
