"""A forest small enough for a row of a table: dots for effects, a bar as far as their intervals go."""

from __future__ import annotations

import base64

from benchbook.show import numbers, theme
from benchbook.show.lines import Line, place
from benchbook.show.markup import Html, element
from benchbook.show.shape import shaped

WIDTH, HEIGHT, _EDGE = 190, 16, 5
_TICKS = (-0.5, 0.0, 1.0)
_SHADES = {"higher": "#0a66a5", "lower": "#c2500a", "": theme.MUTED}


def mini(line: Line) -> Html:
    """Draw the effects of a line on the scale that all rows share; its numbers stand beside it."""
    ends = line.ends and [_x(end) for end in line.ends]
    shade = _SHADES[line.direction]
    dots = [(_x(one.value), one in line.decided) for one in line.effects]
    return _image("", shade, ends=ends, dots=dots, ticks=())


def axis() -> Html:
    """Write the numbers of the scale, for the heading of the table."""
    ticks = [(_x(tick), numbers.percent(tick, 0)) for tick in _TICKS]
    return _image("scale from half to twice the baseline", theme.MUTED, ends=None, dots=(), ticks=ticks)


def _image(alt: str, shade: str, **drawing: object) -> Html:
    shades = {"shade": shade, "rule": theme.RULE, "paper": theme.PAPER}
    dark = {key: theme.SHADES[one] for key, one in shades.items()}
    drawn = shaped("mini.svg.j2", width=WIDTH, height=HEIGHT, zero=_x(0), light=shades, dark=dark, **drawing)
    data = base64.b64encode(drawn.text.encode()).decode("ascii")
    image = element("img", alt=alt, width=WIDTH, height=HEIGHT, src=f"data:image/svg+xml;base64,{data}")
    return Html(image.text.removesuffix("</img>"))


def _x(fraction: float) -> float:
    return round(_EDGE + (WIDTH - 2 * _EDGE) * place(fraction), 1)
