"""The settings files, command lines and manifests that the arms were started with, each to be unfolded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchbook.core import applied
from benchbook.show.markup import Html, element, join

ABOUT = (
    "As the programs read them, but for where they are: SERVER or FOLDER stands for the lab's folder, and "
    "the line that says where a server listens is left out. A file .argv is a command line, an argument a "
    "line. Passwords have files of their own."
)


def shown(texts: Mapping[str, str], facts: Mapping[str, Any] | None) -> list[Html]:
    """Return one block with a folded text for each file of `data/STUDY/applied`; none if none was kept.

    `texts` are the files by name, `facts` is the content of `facts.json`.
    """
    if not texts:
        return []
    named: dict[str, list[str]] = {}
    for arm, own in ((facts or {}).get("arms") or {}).items():
        for _, sha256 in applied.digests(own):
            named.setdefault(sha256, []).append(arm)
    blocks = []
    for name, text in texts.items():
        arms = ", ".join(dict.fromkeys(named.get(applied.digest(text), [])))
        pre = element("pre", text, tabindex="0")
        blocks.append(element("details", element("summary", f"{name}{f': {arms}' if arms else ''}"), pre))
    heading = element("h3", "Settings files and command lines", id="applied")
    return [join([heading, element("p", ABOUT, class_="caption"), *blocks])]
