"""The figures of a study: its effects, and those of its runs that show something."""

from __future__ import annotations

from benchbook.compare.turns import orders
from benchbook.core.turns import TURNS
from benchbook.show import causes, figures, ladder, sessions
from benchbook.show.evidence import Evidence
from benchbook.show.picture import Picture
from benchbook.show.table import Table


def of_effects(seen: Evidence) -> list[object]:
    """Draw the effects of a study, over recorded sessions first, and say below why they are as they are."""
    drawn = figures.forest(seen.findings, seen.arms)
    return [*sessions.shown(seen), drawn, *causes.shown(seen.findings)]


def beside_effects(seen: Evidence) -> list[Picture | Table]:
    """Return the ladder of a study and what a query cost each part, as far as it has them."""
    found = seen.findings
    return [*ladder.shown(found), *causes.tables(found)]


def of_runs(seen: Evidence) -> list[Picture]:
    """Draw what the runs of a study show.

    Latency over threads takes several thread levels. In turns a second holds the turns of all arms, so its
    series tells nothing of one.
    """
    drawn, names = seen.drawn
    found = [figures.qps(drawn, names)]
    if drawn["threads"].nunique() > 1:
        found.append(figures.latency(drawn, names))
    found += [figures.run_order(drawn, seen.voids, names), figures.cpu(drawn, names)]
    if not (orders(drawn) == TURNS).any():
        found.append(figures.seconds(seen.intervals, drawn, names))
    return [*found, figures.histogram(seen.histograms, drawn, names)]
