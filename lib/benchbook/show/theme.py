"""Style of figures: markers, and colours for light and dark, also for the colour-blind (Okabe and Ito)."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

# matplotlib takes half a second to load: whoever draws nothing has only the colours of this module.
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

STYLE = Path(__file__).parent / "templates" / "figures.mplstyle"
_LIGHT = ("#fefefd", "#1f2832", "#5a6571", "#d6dbe1", "#f0f2f5", "#f6e6b0")
PAPER, INK, MUTED, RULE, ZONE, CLAIM = _LIGHT
_DARK = dict(zip(_LIGHT, ("#1b2127", "#e6e9ec", "#a4aeb9", "#3a444e", "#252d35", "#574a1c"), strict=True))
_ARMS = {
    "#0a66a5": "#6ab8f2",
    "#c2500a": "#ff9f5e",
    "#0a7c62": "#43d0a7",
    "#8d4484": "#de9fd6",
    "#86680a": "#e2c04e",
    "#47546a": "#adb7c6",
}
_AGAIN = {"#767c85": "#a2a9b3"}
PARTS = {"client": "#b9c3ce", "proxy": "#a98bbd", "server": "#3d6f8e"}
_PARTS_DARK = dict(zip(PARTS.values(), ("#76828f", "#b79acb", "#5fa0c6"), strict=True))
_MARKERS = "osD^vPX"
SHADES = {**_DARK, **_ARMS, **_AGAIN, **_PARTS_DARK}

# As wide as a phone shows it (360 pixels), so that 8.5 points are 11 pixels there and more elsewhere.
WIDTH = 3.75
SMALLEST = 8.5


def figure_style() -> AbstractContextManager[None]:
    """Context for drawing and writing figures."""
    import matplotlib as mpl

    style = mpl.rc_params_from_file(STYLE, use_default_template=False)
    return mpl.rc_context({**mpl.rcParamsDefault, "backend": "agg", **style})


def make_canvas(width_in: float = WIDTH, height_in: float = 2.75) -> "tuple[Figure, Axes]":
    """Start a figure with one pair of axes; the width suits half a page or a whole phone."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    return figure, figure.subplots()


def colour_of_arm(arm: str, arms: Sequence[str]) -> str:
    """Give the colour of an arm, fixed by its place in the order of arms; the A/A twin is grey."""
    return next(iter(_AGAIN)) if is_again(arm) else list(_ARMS)[list(arms).index(arm) % len(_ARMS)]


def marker_of_arm(arm: str, arms: Sequence[str]) -> str:
    """Give the marker of an arm, so that no figure depends on colour alone."""
    return _MARKERS[list(arms).index(arm) % len(_MARKERS)]


def is_again(arm: str) -> bool:
    """True if an arm is the second name of the baseline in the A/A pair."""
    return arm.endswith(("_again", " again"))


def shorten_name(name: object, length: int = 30) -> str:
    """Shorten a name that would not fit on a figure; the second name of an arm still ends in `again`."""
    text = str(name)
    end = "… again" if text.endswith(" again") else "…"
    return text if len(text) <= length else text[: length - len(end)] + end


_LEGEND_WIDTH = 52
"""Characters of a row, seven of them for each marker."""


def draw_legend(figure: "Figure", arms: Sequence[str], order: Sequence[str], **extra: "Line2D") -> None:
    """Put the arms' markers above the axes, and any extra handles after them."""
    from matplotlib.lines import Line2D

    handles: dict[str, Line2D] = {}
    for arm in arms:
        colour, marker = colour_of_arm(arm, order), marker_of_arm(arm, order)
        handles[shorten_name(arm)] = Line2D([], [], color=colour, marker=marker)
    handles |= {key.replace("_", " "): handle for key, handle in extra.items()}
    # A legend fills columns first; in one row the arms come first, and only long names need more rows.
    widths = [len(label) + 7 for label in handles]
    columns = len(handles) if sum(widths) <= _LEGEND_WIDTH else 2 if 2 * max(widths) <= _LEGEND_WIDTH else 1
    figure.legend([*handles.values()], [*handles], loc="outside upper left", ncols=columns)
