"""Labels and verdicts as small badges: a word first, a colour only beside it."""

from __future__ import annotations

from benchbook.show.markup import Html, element, slug


def badge(word: str) -> Html:
    """Write a label or verdict; its colour comes from the word."""
    return element("span", word, class_=f"badge {slug(word)}")
