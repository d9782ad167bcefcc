"""The site's first page: one table, a row a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchbook.core import files, paths
from benchbook.show import forest, rows
from benchbook.show.lines import Line
from benchbook.show.markup import Html
from benchbook.show.shape import shaped
from benchbook.show.standing import Overview

# All rows share it: from two fifths of the baseline to two and a half times it.
SCALE = forest.Scale(-0.92, 0.92)


def page(seen: Overview) -> Html:
    """Write the first page: what Benchbook is, how to read a row, and every question with its answer."""
    found = rows.groups(seen, folders(), pooled())
    return shaped("first.html.j2", groups=found, has=_columns(found), mini=mini, axis=forest.axis(SCALE))


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


def mini(line: Line) -> Html:
    """Draw the effects of a line on the scale of all rows; its numbers stand beside it."""
    dots = tuple((one.value, one in line.decided) for one in line.effects)
    return forest.bar(forest.Row("", dots=dots, ends=line.ends), SCALE)
