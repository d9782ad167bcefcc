"""A figure as it stands on a page: heading, panels with texts for those who can't see them, caption."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from benchbook.show import svg
from benchbook.show.markup import Html, element
from benchbook.show.shape import shaped


def inline(drawn: str, alt: str, **attributes: object) -> Html:
    """Write an SVG as an <img> that needs no other file."""
    data = base64.b64encode(drawn.encode()).decode("ascii")
    image = element("img", alt=alt, **attributes, src=f"data:image/svg+xml;base64,{data}")
    return Html(image.text.removesuffix("</img>"))


def by_arm(table: pd.DataFrame, arms: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the rows of each arm that has some, in the arms' order."""
    found = dict(iter(table.groupby("arm", sort=False, observed=True)))
    return {arm: found[arm] for arm in arms if arm in found}


@dataclass(frozen=True)
class Panel:
    """One drawing and its alt text, which holds the numbers the drawing shows."""

    figure: Figure
    alt: str

    def image(self) -> Html:
        """Write the drawing as an <img> that needs no other file."""
        width, height = (round(96 * inches) for inches in self.figure.get_size_inches())
        return inline(svg.write(self.figure), self.alt, width=width, height=height)


@dataclass(frozen=True)
class Picture:
    """One or more panels under one heading and one caption; shows itself in a notebook.

    Panels stand side by side where there is room and below each other on a phone.
    """

    anchor: str
    title: str
    panels: tuple[Panel, ...]
    caption: str
    missing: str = "Nothing was recorded that this figure could show."

    @property
    def alt(self) -> str:
        """Give the texts of all panels."""
        return " ".join(panel.alt for panel in self.panels)

    def _repr_html_(self) -> str:
        return shaped("picture.html.j2", picture=self).text

    def __repr__(self) -> str:
        return f"<Picture {self.anchor}, {len(self.panels)} panels>"
