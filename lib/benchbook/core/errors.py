"""The two kinds of trouble that are told to people without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BenchbookError(Exception):
    """Say what went wrong and what to do about it, in one message for people."""


class InputErrors(BenchbookError):
    """Carry every mistake of an input file at once.

    `errors` is a list of lines `FILE:LINE: path.to.key: VALUE: what is wrong; what to write`.
    """

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = list(errors)
        super().__init__("\n".join(self.errors))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean X` for the nearest known word, or a list of the known words."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    return f"known: {', '.join(names)}"
