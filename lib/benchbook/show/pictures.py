"""The figures of a study: its effects, and those of its runs that show something."""

from __future__ import annotations

from benchbook.compare.turns import orders
from benchbook.core.turns import TURNS
from benchbook.show import causes, curves, figures, forest, ladder, percentiles, sessions
from benchbook.show.evidence import Evidence
from benchbook.show.picture import Picture


def of_effects(seen: Evidence) -> list[object]:
    """Draw the effects of a study, over its recorded sessions if it is recorded, and say below why."""
    found, several = seen.findings, sessions.several(seen)
    earlier = sessions.earlier(several) if several else ()
    lines, told = curves.over_sessions(several) if several else curves.of_findings(found.findings)
    drawn = (
        forest.over_sessions(several, told) if several else forest.of_findings(found.findings, found.aa, told)
    )
    shown = [one for one in (lines, drawn if drawn.rows or not lines else None) if one is not None]
    return [*shown, *causes.shown(found, earlier)]


def beside_effects(seen: Evidence) -> list[object]:
    """Return what else there is on effects: session by session, the ladder, what a query cost each part."""
    found = seen.findings
    own = [forest.of_findings(found.findings, found.aa)] if sessions.several(seen) else []
    return [
        *sessions.shown(seen),
        *own,
        *ladder.shown(found),
        *causes.tables(found),
        *percentiles.tables(found),
    ]


def of_runs(seen: Evidence) -> list[Picture]:
    """Draw what the runs of a study show.

    Throughput over threads takes several levels. In turns a second holds the turns of all arms, so its series
    tells nothing of one.
    """
    drawn, names = seen.drawn
    found = [figures.qps(drawn, names)] if drawn.threads.nunique() > 1 else []
    is_shared = (orders(drawn) == TURNS).any()
    return [*found, *([] if is_shared else [figures.seconds(seen.intervals, drawn, names)])]
