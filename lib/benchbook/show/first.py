"""The site's first page: one table, a row a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchbook.core import files, paths
from benchbook.show import rows
from benchbook.show.markup import Html
from benchbook.show.mini import axis, mini
from benchbook.show.shape import shaped
from benchbook.show.standing import Overview


def page(seen: Overview) -> Html:
    """Write the first page: what Benchbook is, how to read a row, and every question with its answer."""
    found = rows.groups(seen, folders(), pooled())
    return shaped("first.html.j2", groups=found, has=_columns(found), mini=mini, axis=axis())


def folders() -> dict[str, str]:
    """Return the folder below `studies/` in which each study lies; empty for those that lie in none."""
    base = paths.root() / "studies"
    return {name: "/".join(paths.study(name).file.relative_to(base).parts[:-1]) for name in paths.studies()}


def pooled() -> rows.Pooled:
    """Return what the sessions of each recorded study say together, by its name."""
    found = sorted((paths.root() / "data" / "recorded").glob("*/pooled.json"))
    return {file.parent.name: files.read_json(file) for file in found}


def _columns(found: Sequence[rows.Group]) -> Mapping[str, bool]:
    """Say which of the columns that may be empty some row fills."""
    every = [row for group in found for row in group.rows]
    return {name: any(getattr(row, name) for row in every) for name in ("why", "carries")}
