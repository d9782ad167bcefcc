"""All effects in one tidy table, and how one effect differs between two workloads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from benchbook.api.columns import documented
from benchbook.api.names import NotThere
from benchbook.compare import verdicts
from benchbook.compare.intervals import Interval, block_interval
from benchbook.compare.pairs import block_ratios
from benchbook.core import load
from benchbook.core import pooled as core
from benchbook.core.errors import did_you_mean

if TYPE_CHECKING:
    from benchbook.api.study import Study

HERE = "here"


def effects(studies: list[Study]) -> pd.DataFrame:
    """Return a row for each contrast, session and thread level; `threads` is missing over all of them.

    Effects and both ends are fractions: -0.12 is 12 % less. `session` is `here` for what was measured in
    this clone. NotThere where there is nothing yet, with the command that brings it.
    """
    rows = [row for study in studies for row in _of(study)]
    if not rows:
        which = f"{studies[0].name}: no effects" if len(studies) == 1 else "no effects"
        raise NotThere(f"{which} yet; run `make pages` first, which makes the recorded ones, or `make repro`")
    return documented("effects", pd.DataFrame(rows).astype({"threads": "Int64"}))


def _of(study: Study) -> Iterator[dict[str, Any]]:
    if study.is_analyzed and not study.is_recorded:
        for found in study.everything:
            parts = [{**found.data.plain, "threads": None}, *(level.plain for level in found.data.levels)]
            yield from (_row(study.name, found.data, part, HERE) for part in parts)
    recorded = core.of(study.name)
    for contrast in filter(None, (recorded.aa, *recorded.contrasts)) if recorded else ():
        for level in (contrast.whole, *contrast.levels):
            parts = [{**seen.model_dump(), "threads": level.threads} for seen in level.seen]
            yield from (_row(study.name, contrast, part, part["session"]) for part in parts)


def _row(study: str, of: Any, part: dict[str, Any], session: str) -> dict[str, Any]:
    return {
        "study": study,
        **{key: getattr(of, key) for key in ("workload", "treatment", "baseline", "metric")},
        "session": session,
        **{key: part.get(key) for key in ("threads", "effect", "low", "high", "level", "n", "label")},
    }


def between(study: Study, treatment: str, one: str, other: str, metric: str = "qps") -> pd.DataFrame:
    """Return an arm's effect under two workloads, and the one over the other, paired block by block."""
    for word, known in (
        (treatment, study.arms[1:]),
        (one, study.spec.workloads),
        (other, study.spec.workloads),
    ):
        if word not in known:
            raise NotThere(f"{word}: not in this study; {did_you_mean(word, known)}")
    runs = study.runs
    both = [
        block_ratios(runs, study.arms[0], treatment, workload, study.spec.threads, metric).ratios
        for workload in (one, other)
    ]
    analysis = load.params("analysis").analysis
    blocks = sorted(set(both[0].index) & set(both[1].index))
    looked = max((look for look in analysis.looks if look <= len(blocks)), default=None)
    ratios = [part.loc[blocks[:looked]] for part in both]
    rows = [
        _judged(name, block_interval(part, analysis.level), looked is not None)
        for name, part in (
            (one, ratios[0]),
            (other, ratios[1]),
            (f"{one} over {other}", ratios[0] - ratios[1]),
        )
    ]
    return documented("between", pd.DataFrame(rows))


def _judged(name: str, found: Interval, is_look: bool) -> dict[str, Any]:
    label = verdicts.label(found) if is_look and found.is_known else "not decided yet"
    return {
        "workload": name,
        **{key: getattr(found, key) for key in ("effect", "low", "high", "level", "n")},
        "label": label,
    }
