"""The errors that people see without a traceback, each kind with its remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class BenchbookError(Exception):
    """An error and its remedy, in one message for people."""


class NotThere(BenchbookError):
    """A missing thing and the command that brings it; in a notebook without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class InputErrors(BenchbookError):
    """All mistakes of an input file, as lines `FILE:LINE: path.to.key: VALUE: fault; what to write`."""

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = list(errors)
        super().__init__("\n".join(self.errors))

    def __reduce__(self) -> tuple[type[InputErrors], tuple[list[str]]]:
        """Way from another process: by the list, not by the joined text."""
        return type(self), (self.errors,)


class SiteError(BenchbookError):
    """A site's failure and its remedy."""


class CopyLost(SiteError):
    """Reason that a prepared copy of the data was removed; the data are to be loaded again."""


class LockHeld(SiteError):
    """The holder of this machine's lock."""


class SettingsDiffer(SiteError):
    """Settings that the server did not take, each with what was asked and got; None: it has no such one."""

    def __init__(self, differences: dict[str, tuple[Any, Any]]) -> None:
        self.differences = differences
        remedy = "write a value it can take, or remove the key"
        lines = [f"the server did not take its settings as asked; {remedy}"]
        for key, (request, value) in sorted(differences.items()):
            got = "no such variable" if value is None else repr(value)
            lines.append(f"engine.settings.{key}: asked {request!r}, got {got}")
        super().__init__("\n  ".join(lines))


MOST_NAMES, NEAREST = 24, 6
"""Names that a line lists, and how many of more."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`did you mean X` for the nearest known word, else a list of them, of many the nearest."""
    names = sorted(choices)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    if len(names) > MOST_NAMES:
        nearest = difflib.get_close_matches(word, names, n=NEAREST, cutoff=0.0)
        return f"nearest of {len(names)}: {', '.join(nearest)}"
    return f"known: {', '.join(names)}"


def require_value(value: T | None) -> T:
    """A value that earlier checks guarantee; ValueError if it is None even so."""
    if value is None:
        raise ValueError("a value is absent that its file was checked to have")
    return value
