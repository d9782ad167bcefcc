"""Series of sessions on one machine: whether the last three or more lie beyond all before them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from benchbook.compare.meta.random_effects import moment
from benchbook.compare.text import cpu_models
from benchbook.compare.text.sentences import told
from benchbook.core.artifacts.meta_analysis import Pooled, Session
from benchbook.core.util.plural import count

SHORTEST = 3
"""Latest sessions at the least: fewer are an outlier, not a level."""
BEFORE = 5
"""Sessions before them at the least: then they lie beyond all once in 25 series by chance."""


def in_time(found: Pooled) -> list[str]:
    """Sentences on effects, machine by machine, whose latest sessions lie beyond all before."""
    said: list[str] = []
    for name, sessions, effects in _series(found):
        logs = [math.log1p(effect) for effect in effects]
        if before := latest(logs):
            moved = math.expm1(float(np.mean(logs[before:]) - np.mean(logs[:before])))
            dates = [session.measured[:10] for session in sessions]
            said += told("course.j2", name=name, before=before, moved=moved, dates=dates)
    return said


def latest(values: Sequence[float]) -> int:
    """Place from which on all values lie beyond all before, by the widest gap; 0 where there is none.

    >>> latest([0.0, 0.1, 0.0, 0.1, 0.0, 5.0, 5.1, 5.2])
    5
    """
    parts = [(values[:at], values[at:]) for at in range(BEFORE, len(values) - SHORTEST + 1)]
    gaps = [max(min(late) - max(before), min(before) - max(late)) for before, late in parts]
    return BEFORE + int(np.argmax(gaps)) if gaps and max(gaps) > 0 else 0


def _series(found: Pooled) -> Iterator[tuple[str, list[Session], list[float]]]:
    machine = {one.id: (cpu_models.name(one.processor), one.cores) for one in found.sessions}
    for contrast in found.contrasts:
        for effect in contrast.told:
            known = sorted(effect.sessions, key=lambda one: moment(found.session(one.session).measured))
            at = "" if effect.threads is None else f", {count(effect.threads, 'thread')}"
            what = f"{contrast.names.treatment} on {contrast.names.workload}{at}"
            for where in dict.fromkeys(machine[one.session] for one in known):
                own = [one for one in known if machine[one.session] == where and one.effect is not None]
                sessions = [found.session(one.session) for one in own]
                yield f"{what}, {where[0]}", sessions, [one.effect or 0.0 for one in own]
