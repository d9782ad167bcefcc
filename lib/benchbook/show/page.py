"""An executed notebook as an HTML page that needs no network or other file; always the same bytes."""

import base64
import copy
import hashlib
import os
import re
from collections.abc import Sequence
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

import nbformat
from bs4 import BeautifulSoup, Tag
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from benchbook.core.util.errors import require_value
from benchbook.core.util.plural import count
from benchbook.show.markup import Html, make_element, make_slug, show_invisible
from benchbook.show.sanitize import sanitize_html
from benchbook.show.templating import TEMPLATES, render_template

_FOLDER = TEMPLATES / "page"
_RENDERER = IPythonRenderer(escape=False, exclude_anchor_links=True)
_SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/plain"]


def render_page(
    notebook: Path,
    page: Path,
    study: str | None = None,
    commit: str | None = None,
    root: Path | None = None,
    edited: int = 0,
) -> Path:
    """Write the page of an executed notebook; with `root` it leads to the places that every page has."""
    places = {"Findings": "index.html", "Story": "story.html", "Claims": "claims.html"}
    places |= {"Studies": "claims.html#studies", "Sources": "claims.html#sources"}
    places |= {study: f"studies/{study}.html"} if study else {}
    places |= {"Runs": f"runs/{study}/index.html" if study else "claims.html#runs", "Method": "method.html"}
    ways = [(name, root / "reports" / place) for name, place in places.items()] if root else []
    crumbs = [(name, os.path.relpath(way, page.parent)) for name, way in ways if way != page]
    text = render_html(nbformat.read(notebook, as_version=4), None, study, commit, root, crumbs, edited)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    return page


def render_html(
    notebook: NotebookNode,
    title: str | None = None,
    study: str | None = None,
    commit: str | None = None,
    root: Path | None = None,
    crumbs: Sequence[tuple[str, str]] = (),
    edited: int = 0,
) -> str:
    """Page of an executed notebook; the same outputs give the same bytes.

    A cell tagged `hide` or `hide-output` shows nothing; the code of all cells is at the end, folded. The
    title is the first level-1 heading unless given. Study and commit stand in the foot, `crumbs` (name and
    link of other pages) on top. `edited` files of the code were changed since the commit: foot and doubts
    say so. Raises ValueError for a picture without alt text: not every reader sees it.
    """
    notebook = _mask_outputs(notebook, root)
    _check_pictures(notebook)
    made_by = commit and commit + (f", with {count(edited, 'changed file')}" if edited else "")
    provenance = {"benchbook": version("benchbook"), "study": study, "commit": made_by}
    style, script = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("style.css", "sort.js"))
    body = render_template(
        "page.html.j2",
        cells=notebook.cells,
        title=title or "",
        crumbs=crumbs,
        made_by={key: value for key, value in provenance.items() if value},
        style=Html(style),
        script=Html(script),
        script_hash=_encode(hashlib.sha256(script.encode()).digest()),
        kinds=_SHOWN,
        base64=lambda text: _encode(text.encode()),
        sanitize=lambda html: Html(sanitize_html(html)),
        markdown=lambda text: Html(sanitize_html(MarkdownWithMath(renderer=_RENDERER).render(text))),
    )
    return _finish_page(f"{body.text}\n", title, edited_code(commit, edited) if edited else "")


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def edited_code(commit: str | None, edited: int) -> str:
    """Say, as a doubt, that a page was not made by the code of any commit."""
    since = f"{f'commit {commit}' if commit else 'the last commit'} with {count(edited, 'changed file')}"
    remedy = "No commit has that code: commit it and render the page again."
    return f"This page was made by {since} in its code. {remedy}"


def _check_pictures(notebook: NotebookNode) -> None:
    for number, cell in enumerate(notebook.cells, 1):
        for output in cell.get("outputs", []):
            kinds = [kind for kind in output.get("data", {}) if kind.startswith("image/")]
            alts = [output.metadata.get(kind, {}).get("alt") for kind in kinds]
            if kinds and "text/html" not in output.data and not (cell.metadata.get("alt") or any(alts)):
                raise ValueError(
                    f"cell {number}: a picture without alt text; show it as a picture.Picture, or write "
                    "the text under `alt` in the cell's metadata"
                )


def _finish_page(body: str, title: str | None, edited: str) -> str:
    """Give headings and repeated ids anchors of their own, fill the contents list, name the page."""
    soup = BeautifulSoup(body, "html.parser")
    _separate_ids(soup)
    _box_tables(soup)
    first = soup.find("h1")
    name = title or (first.get_text(" ", strip=True) if first else "Report")
    require_value(soup.title).string = name
    if first is None:
        first = soup.new_tag("h1")
        first.string = name
        require_value(soup.main).insert(0, first)
    _fold_sections(soup)
    for heading in soup.find_all(["h2", "h3"]):
        if not heading.find_parent("summary"):
            label = f"Link to “{heading.get_text(' ', strip=True)}”"
            link = make_element("a", class_="anchor", href=f"#{heading['id']}", aria_label=label)
            heading.append(_parse_tag(link))
    if edited:
        # First among the page's doubts, or right below the title without any.
        item = _parse_tag(make_element("p", make_element("b", "Edited code. "), edited, class_="broken"))
        listed = soup.select_one("div.doubts")
        listed.insert(0, item) if listed else require_value(soup.find("h1")).insert_after(item)
    _insert_contents(soup)
    # The parser has resolved character references, so what a log wrote as &#8238; is seen here too.
    return show_invisible(str(soup))


def _parse_tag(html: Html) -> Tag:
    return require_value(BeautifulSoup(html.text, "html.parser").find())


def _box_tables(soup: BeautifulSoup) -> None:
    """Let a table that is in no box scroll in one of its own, so that it never widens the page."""
    for number, table in enumerate(require_value(soup.main).find_all("table"), 1):
        if table.find_parent(class_="scroll"):
            continue
        # An index of pandas has a heading without a word, which is none.
        for cell in table.find_all("th"):
            cell.name = "th" if cell.get_text(strip=True) else "td"
        heading = table.find_previous(["h1", "h2", "h3"])
        label = f"Table {number}: {heading.get_text(' ', strip=True)}" if heading else f"Table {number}"
        box = make_element("div", class_="scroll whole", role="region", tabindex="0", aria_label=label)
        table.wrap(_parse_tag(box))


def _fold_sections(soup: BeautifulSoup) -> None:
    """Fold the content below a heading of a cell tagged `fold`, up to the next heading."""
    for marked in soup.select("div.fold"):
        heading = require_value(marked.find("h2")).extract()
        folded, summary = soup.new_tag("details", attrs={"class": "part"}), soup.new_tag("summary")
        below = takewhile(lambda part: not _begins_part(part), marked.next_siblings)
        inside = [*marked.contents, *below]
        marked.replace_with(folded)
        summary.append(heading)
        folded.extend([summary, *(part.extract() for part in inside)])


def _begins_part(part: Any) -> bool:
    classes = {*part.get_attribute_list("class")} if isinstance(part, Tag) else set()
    return part.name == "h2" or bool({"fold", "code"} & classes)


def _separate_ids(soup: BeautifulSoup) -> None:
    for heading in soup.find_all(["h1", "h2", "h3", "h4"]):
        heading["id"] = heading.get("id") or make_slug(heading.get_text(" ", strip=True))
    observations: set[str] = set()
    for tag in soup.find_all(id=True):
        wanted, number = str(tag["id"]), 2
        name = wanted
        while name in observations:
            name = f"{wanted}-{number}"
            number += 1
        tag["id"] = name
        observations.add(name)


def _insert_contents(soup: BeautifulSoup) -> None:
    """Put the contents list before the second section, so that on a small screen the answer comes first."""
    nav, sections = require_value(soup.find("nav")), require_value(soup.main).find_all("h2")
    listed = require_value(nav.ol)
    if len(sections) < 3:
        nav.decompose()
        return
    for heading in sections:
        link = make_element("a", heading.get_text(" ", strip=True), href=f"#{heading['id']}")
        listed.append(_parse_tag(make_element("li", link)))
    second = sections[1]
    # A section in a box of its own stays whole.
    (second.find_parent("section") or second).insert_before(nav.extract())


_MASKS = (
    (re.compile(r"0x[0-9a-f]{6,}"), "0x…"),  # where an object lived
    (re.compile(r"ipykernel_\d+(?:/\d+\.py)?"), "ipykernel"),  # the kernel's process and cell files
    (re.compile(r"/tmp/[\w./-]+"), "/tmp/…"),
)


def _mask_outputs(notebook: NotebookNode, root: Path | None) -> NotebookNode:
    """Copy a notebook; what changes with each execution is masked in its texts, and HTML stays as it is."""
    clean = copy.deepcopy(notebook)
    for output in (output for cell in clean.cells for output in cell.get("outputs", [])):
        if output.output_type == "stream":
            output.text = _mask_text(output.text, root)
        elif output.output_type == "error":
            output.traceback = [_mask_text(line, root) for line in output.traceback]
        elif "text/plain" in output.data:
            output.data["text/plain"] = _mask_text(output.data["text/plain"], root)
    return clean


def _mask_text(text: str, root: Path | None) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text.replace(str(root), ".") if root else text
