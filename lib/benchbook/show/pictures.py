"""The figures of a study: its effects with their causes, and those of its runs that show something."""

from __future__ import annotations

from benchbook.compare.turns import orders
from benchbook.core.turns import TURNS
from benchbook.show import figures, sessions, why
from benchbook.show.evidence import Evidence
from benchbook.show.markup import Html
from benchbook.show.picture import Picture
from benchbook.show.table import Table


def of_effects(seen: Evidence) -> list[Picture | Table | Html]:
    """Draw the effects of a study, over recorded sessions first, and write below why they are what they are,
    as far as that is known."""
    return [*sessions.shown(seen), figures.forest(seen.findings, seen.arms), *why.shown(seen.findings)]


def of_runs(seen: Evidence) -> list[Picture]:
    """Draw what the runs of a study show.

    Latency over threads takes several thread levels. In turns a second holds the turns of all arms, so its
    series tells nothing of one.
    """
    drawn, names = seen.drawn
    found = [figures.qps(drawn, names, seen.pages)]
    if drawn["threads"].nunique() > 1:
        found.append(figures.latency(drawn, names, seen.pages))
    found += [figures.run_order(drawn, seen.voids, names, seen.pages), figures.cpu(drawn, names)]
    if not (orders(drawn) == TURNS).any():
        found.append(figures.seconds(seen.intervals, drawn, names))
    return [*found, figures.histogram(seen.histograms, drawn, names)]
