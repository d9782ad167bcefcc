"""Change points: series of sessions on one machine with the last three or more beyond others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from benchbook.compare.meta.random_effects import parse_time
from benchbook.compare.text import cpu_models
from benchbook.compare.text.sentences import render_paragraphs
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, StudySession
from benchbook.core.util.plural import count

SHORTEST = 3
"""Latest sessions at the least: fewer are an outlier, not a level."""
BEFORE = 5
"""Sessions before them at the least: then they lie beyond all once in 25 series by chance."""


def describe_shifts(meta_analysis: MetaAnalysis) -> list[str]:
    """Sentences on effects, machine by machine, with the latest sessions beyond all earlier ones."""
    shifts: list[str] = []
    for name, sessions, effects in _find_series(meta_analysis):
        logs = [math.log1p(effect) for effect in effects]
        if before := find_shift(logs):
            moved = math.expm1(float(np.mean(logs[before:]) - np.mean(logs[:before])))
            dates = [session.measured[:10] for session in sessions]
            shifts += render_paragraphs("course.j2", name=name, before=before, moved=moved, dates=dates)
    return shifts


def find_shift(values: Sequence[float]) -> int:
    """First place after a shift: all values lie beyond all before, by the widest gap; 0 if none.

    >>> find_shift([0.0, 0.1, 0.0, 0.1, 0.0, 5.0, 5.1, 5.2])
    5
    """
    parts = [(values[:at], values[at:]) for at in range(BEFORE, len(values) - SHORTEST + 1)]
    gaps = [max(min(late) - max(before), min(before) - max(late)) for before, late in parts]
    return BEFORE + int(np.argmax(gaps)) if gaps and max(gaps) > 0 else 0


def _find_series(meta_analysis: MetaAnalysis) -> Iterator[tuple[str, list[StudySession], list[float]]]:
    machine = {
        session.id: (cpu_models.name_processor(session.processor), session.cores)
        for session in meta_analysis.sessions
    }
    for contrast in meta_analysis.contrasts:
        for effect in contrast.told:
            observed = sorted(
                effect.sessions, key=lambda item: parse_time(meta_analysis.session(item.session).measured)
            )
            at = "" if effect.threads is None else f", {count(effect.threads, 'thread')}"
            what = f"{contrast.names.treatment} on {contrast.names.workload}{at}"
            for where in dict.fromkeys(machine[each.session] for each in observed):
                here = [
                    each for each in observed if machine[each.session] == where and each.effect is not None
                ]
                sessions = [meta_analysis.session(each.session) for each in here]
                yield f"{what}, {where[0]}", sessions, [each.effect or 0.0 for each in here]
