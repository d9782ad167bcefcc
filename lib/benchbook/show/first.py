"""The site's first page: one table, a row a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from benchbook.core import paths
from benchbook.core import pooled as core
from benchbook.show import forest, numbers, rows
from benchbook.show.lines import Line
from benchbook.show.markup import Html
from benchbook.show.shape import shaped
from benchbook.show.standing import Overview

# All rows share it: from two fifths of the baseline to two and a half times it. It is narrow.
SCALE = forest.Scale(-0.92, 0.92, most_ticks=3)
_ALIKE, _TURNS = ("holds elsewhere", "same direction"), "depends on the machine"


def page(seen: Overview) -> Html:
    """Write the first page: the answer, what Benchbook is, and every question with its own answer."""
    known = pooled()
    found = rows.groups(seen, folders(), known)
    given = {"groups": found, "has": _columns(found), "mini": mini, "axis": forest.axis(SCALE)}
    return shaped("first.html.j2", answer=answer(seen, known), **given)


def answer(seen: Overview, known: rows.Pooled) -> str:
    """Say how many claims hold in their own tables, and how many effects keep their sign elsewhere."""
    held = Counter(claim.verdict for claim in seen.claims)
    told = []
    if held:
        claims = numbers.count(len(seen.claims), "published claim")
        told.append(
            f"Of {claims}, their own tables bear out {held['holds']}, contradict {held['does not hold']} "
            f"and leave {held['not derivable']} open."
        )
    labels = Counter[str](
        effect.label
        for study in known.values()
        for one in study.contrasts
        if one.metric == "qps"
        for effect in one.told
        if len(effect.occasions) > 1
    )
    if several := sum(labels.values()):
        alike = sum(labels[label] for label in _ALIKE)
        turns = labels[_TURNS]
        told.append(
            f"Of {numbers.count(several, 'effect')} measured in several sessions, {alike} keep one "
            f"direction, {turns} depend on the machine, and {several - alike - turns} stay open."
        )
    return " ".join(told)


def folders() -> dict[str, str]:
    """Return the folder below `studies/` in which each study lies; empty for those that lie in none."""
    base = paths.root() / "studies"
    return {name: "/".join(paths.study(name).file.relative_to(base).parts[:-1]) for name in paths.studies()}


def pooled() -> rows.Pooled:
    """Return what the sessions of each recorded study say together, by its name."""
    return {one.study: one for one in core.several()}


def _columns(found: Sequence[rows.Group]) -> Mapping[str, bool]:
    """Say which of the columns that may be empty some row fills."""
    every = [row for group in found for row in group.rows]
    return {name: any(getattr(row, name) for row in every) for name in ("why", "carries")}


def mini(line: Line) -> Html:
    """Draw the effects of a line on the scale of all rows; its numbers stand beside it."""
    dots = tuple((one.value, one in line.decided) for one in line.effects)
    return forest.bar(forest.Row("", dots=dots, ends=line.ends), SCALE)
