"""reports/STORY.md: the executed story as a repository shows it, with neither script nor style."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bs4 import BeautifulSoup

from benchbook.core.util import files, paths
from benchbook.show.story import ABSENT

if TYPE_CHECKING:
    from nbformat import NotebookNode

FILE = "STORY.md"
# What a repository's page draws itself; everything else gives its text alone.
_KEPT = {
    "b", "br", "caption", "code", "em", "h2", "h3", "li", "ol", "p", "strong", "table", "tbody", "td",
    "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"colspan", "rowspan", "scope"}


def write_story() -> None:
    """Write the file from the executed notebook, where there is one that had the record."""
    import nbformat

    place = paths.find_root() / "data" / "site" / "notebooks" / "story.ipynb"
    text = render_story(nbformat.read(place, as_version=4)) if place.is_file() else ABSENT
    # A story of the published reports alone replaces no file.
    if ABSENT not in text:
        files.write_text(paths.reports_folder() / FILE, text)


def render_story(notebook: NotebookNode) -> str:
    """The notebook's prose and outputs as Markdown; its code stays where it is."""
    parts = ["Made by `make pages` from the record. The pages that it makes have every figure and link."]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        for output in cell.get("outputs", []):
            # A figure's table stands there as Markdown, its drawing as HTML.
            if (html := output.get("data", {}).get("text/html")) is not None:
                parts.append(simplify_html(output.data.get("text/markdown", html)))
    first, title, *rest = parts
    return "\n\n".join([title, first, *rest]) + "\n"


def simplify_html(text: str) -> str:
    """HTML with plain elements alone, and without the empty lines that would end it in Markdown."""
    soup = BeautifulSoup(text, "html.parser")
    for element in soup.find_all(["svg", "style", "script"]):
        element.decompose()
    for element in soup.find_all(True):
        if element.name not in _KEPT:
            element.unwrap()
        else:
            element.attrs = {key: value for key, value in element.attrs.items() if key in _ATTRIBUTES}
    return re.sub(r"\s*\n\s*", "\n", str(soup)).strip()
