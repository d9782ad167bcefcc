"""A figure on a page: heading, panels with texts for those that can't see them, caption."""

import base64
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from benchbook.show import theme
from benchbook.show.markup import Html, make_element
from benchbook.show.templating import render_template

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def inline_svg(drawn: str, alt: str, **attributes: object) -> Html:
    """Write an SVG as an <img> that needs no other file."""
    data = base64.b64encode(drawn.encode()).decode("ascii")
    image = make_element("img", alt=alt, **attributes, src=f"data:image/svg+xml;base64,{data}")
    return Html(image.text.removesuffix("</img>"))


def render_svg(template: str, alt: str, size: Mapping[str, object], **inputs: object) -> Html:
    """Draw an SVG of `templates` in the reader's colours; `size` has class, width and height of its image."""
    return inline_svg(follow_scheme(render_template(template, theme=theme, **inputs).text), alt, **size)


def by_arm(table: pd.DataFrame, arms: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Rows of each arm that has some, in the arms' order."""
    results = dict(iter(table.groupby("arm", sort=False, observed=True)))
    return {arm: results[arm] for arm in arms if arm in results}


@dataclass(frozen=True)
class Panel:
    """One drawing and its alt text, with the numbers that the drawing shows."""

    figure: "Figure"
    alt: str

    def image(self) -> Html:
        """Write the drawing as an <img> that needs no other file."""
        width, height = (round(96 * inches) for inches in self.figure.get_size_inches())
        return inline_svg(write_svg(self.figure), self.alt, width=width, height=height)


@dataclass(frozen=True)
class Picture:
    """Panels, side by side where there is room, under one heading and caption; shows itself in a notebook."""

    anchor: str
    title: str
    panels: tuple[Panel, ...]
    caption: str
    most: int | None = None
    """Panels that are seen at once; the others are folded."""

    def _repr_html_(self) -> str:
        return render_template("picture.html.j2", picture=self).text

    def __repr__(self) -> str:
        return f"<Picture {self.anchor}, {len(self.panels)} panels>"


_STYLE = re.compile(r' style="([^"]*)"')
_PLACE = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')
# matplotlib sets the text with the first; a reader who has none of them sees one as wide or less.
_FONTS = "'DejaVu Sans', Verdana, system-ui, sans-serif"
# What matplotlib writes for people who edit the file: the text again as a comment, a name for every group.
_UNUSED = re.compile(r'<!--.*?-->|(?<=<g) id="[^"]*"|(?<=>)\s+(?=<)', re.DOTALL)


def write_svg(figure: "Figure") -> str:
    """SVG of a figure, always the same bytes: classes for repeated styles, places to a hundredth point."""
    buffer = io.StringIO()
    with theme.figure_style():
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = buffer.getvalue()
    text = _UNUSED.sub("", text[text.index("<svg") :])
    text = text.replace("xlink:href", "href").replace("'DejaVu Sans'", _FONTS)
    text = _PLACE.sub(lambda place: re.sub(r"(\.\d\d)\d+", r"\1", place[0]), text)
    repeated = [style for style, times in Counter(_STYLE.findall(text)).items() if times > 1]
    names = {style: f"s{number}" for number, style in enumerate(repeated)}
    text = _STYLE.sub(lambda own: f' class="{names[own[1]]}"' if own[1] in names else own[0], text)
    return follow_scheme(text, "".join(f".{name}{{{style}}}" for style, name in names.items()))


def follow_scheme(text: str, classes: str = "") -> str:
    """SVG in the colours of the reader's scheme; `classes` are rules that it needs too."""
    used = [shade for shade in theme.SHADES if shade in text or shade in classes]
    for number, shade in enumerate(used):
        text, classes = (item.replace(shade, f"var(--c{number})") for item in (text, classes))
    light = ";".join(f"--c{number}:{shade}" for number, shade in enumerate(used))
    dark = ";".join(f"--c{number}:{theme.SHADES[shade]}" for number, shade in enumerate(used))
    rules = f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{classes}"
    return re.sub(r"<svg[^>]*>", lambda tag: f"{tag[0]}<style>{rules}</style>", text, count=1)
