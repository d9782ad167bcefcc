"""A figure as SVG text: small, always the same bytes for the same numbers, light or dark as the reader."""

from __future__ import annotations

import io
import re
from collections import Counter

from matplotlib.figure import Figure

from benchbook.show import theme

_STYLE = re.compile(r' style="([^"]*)"')
_PLACE = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')
# matplotlib sets the text with the first; a reader who has none of them sees one as wide or less.
_FONTS = "'DejaVu Sans', Verdana, system-ui, sans-serif"
# What matplotlib writes for people who edit the file: the text again as a comment, a name for every group.
_UNUSED = re.compile(r'<!--.*?-->|(?<=<g) id="[^"]*"|(?<=>)\s+(?=<)', re.DOTALL)


def write(figure: Figure) -> str:
    """Return a figure as SVG without date, version or random ids.

    Colours become CSS variables with a light and a dark value; styles that repeat, as those of points do,
    become classes; coordinates keep a hundredth of a point.
    """
    buffer = io.StringIO()
    with theme.style():
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = buffer.getvalue()
    text = _UNUSED.sub("", text[text.index("<svg") :])
    text = text.replace("xlink:href", "href")
    text = text.replace("'DejaVu Sans'", _FONTS)
    text = _PLACE.sub(lambda place: re.sub(r"(\.\d\d)\d+", r"\1", place[0]), text)
    text, classes = _classes(text)
    return following(text, classes)


def following(text: str, classes: str = "") -> str:
    """Return an SVG whose colours are those of the reader's scheme; `classes` are rules that it needs too."""
    used = [shade for shade in theme.SHADES if shade in text or shade in classes]
    for number, shade in enumerate(used):
        text, classes = (one.replace(shade, f"var(--c{number})") for one in (text, classes))
    light = ";".join(f"--c{number}:{shade}" for number, shade in enumerate(used))
    dark = ";".join(f"--c{number}:{theme.SHADES[shade]}" for number, shade in enumerate(used))
    rules = f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{classes}"
    return re.sub(r"<svg[^>]*>", lambda tag: f"{tag[0]}<style>{rules}</style>", text, count=1)


def _classes(text: str) -> tuple[str, str]:
    """Turn every style that repeats into a class, and give the rules."""
    repeated = [style for style, times in Counter(_STYLE.findall(text)).items() if times > 1]
    names = {style: f"s{number}" for number, style in enumerate(repeated)}
    text = _STYLE.sub(lambda found: f' class="{names[found[1]]}"' if found[1] in names else found[0], text)
    return text, "".join(f".{name}{{{style}}}" for style, name in names.items())
