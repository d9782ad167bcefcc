"""What a command prints and what a page says, held in files that a person can read.

`make goldens` writes them anew; the difference is then read in git.
"""

import base64
import os
import re
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

FOLDER = Path(__file__).parent / "data" / "goldens"
UNREAD = "head, footer, script, style, details.code, a.anchor, a.skip"
FOLDS = {"details": ("[", "]"), "summary": ("+ ", "\n")}
LINES = "h1, h2, h3, h4, p, li, tr, div, section, details, summary, figure, figcaption, caption, dt, dd"


def assert_golden(name: str, text: str) -> None:
    """Compare a text with the file of this name; write it where asked."""
    file = FOLDER / name
    if os.environ.get("BENCHBOOK_WRITE_GOLDENS"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    expected = file.read_text(encoding="utf-8") if file.is_file() else ""
    assert text == expected, f"{name} differs; `make goldens` writes it anew"


def assert_golden_case(name: str, case: str, text: str) -> None:
    """Compare a text with one of several in a file, each below a line with the name of its case."""
    file = FOLDER / name
    parts = re.split(r"^=== (.*)\n", file.read_text(encoding="utf-8") if file.is_file() else "", flags=re.M)
    cases = dict(zip(parts[1::2], parts[2::2], strict=True))
    if os.environ.get("BENCHBOOK_WRITE_GOLDENS"):
        cases[case] = f"{text}\n"
        lines = (f"=== {each}\n{cases[each]}" for each in sorted(cases))
        file.write_text("".join(lines), encoding="utf-8")
    assert cases.get(case) == f"{text}\n", f"{name}, {case}: differs; `make goldens` writes it anew"


def assert_page(name: str, *parts: Any) -> None:
    """Compare what a page says with a file: a row or text a line, pictures and links by what they are of."""
    shown = [part if isinstance(part, str) else part._repr_html_() for part in parts]
    soup = BeautifulSoup(" ".join("\n".join(shown).split()), "html.parser")
    for tag in soup.select(UNREAD):
        tag.decompose()
    for tag in soup.select("[alt], [title], [href]"):
        told = tag.get("alt") or tag.get("title") or tag.get("href", "")
        told = " ".join([told, *marks(tag.get("src", ""))]).strip()
        tag.append(f" ({told})" if told and "#run-" not in told else "")
    for tag in soup.select("th, td"):
        tag.string = tag.get_text(" ") + " | " * bool(tag.find_next_sibling(["th", "td"]))
    for tag in soup.select(LINES):
        opened, closed = FOLDS.get(tag.name, ("", ""))
        tag.insert(0, f"\n{opened}")
        tag.append(f"{closed}\n")
    lines = (" ".join(line.split()) for line in soup.get_text().split("\n"))
    assert_golden(name, "\n".join(filter(None, lines)) + "\n")


def marks(source: str) -> dict[str, None]:
    """Return the texts of a drawing, and where the marks of one of our own stand, in per cent of it."""
    drawn = base64.b64decode(source.partition("base64,")[2]).decode()
    return dict.fromkeys(re.findall(r'(?<=")[\d.]+(?=%")|(?<=>)[^<>]+(?=</text>)', drawn))
