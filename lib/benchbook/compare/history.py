"""The same study measured again and again: what changed in its effects, and what in the machine under them.

A series is a tidy table, one row for each contrast and measurement, wherever the rows come from.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.changes import LEVEL, change_points
from benchbook.compare.intervals import Interval, t_interval
from benchbook.compare.sentences import NBSP, count, percent
from benchbook.core.errors import given

COLUMNS = (
    *(
        "study",
        "measured_at",
        "contrast",
        "workload",
        "baseline",
        "treatment",
        "metric",
        "effect",
        "low",
        "high",
    ),
    *("level", "n", "label", "baseline_qps", "settings", "commit", "machine"),
)
KEY = ["study", "measured_at", "contrast"]
# In what the measurements of a series are like the newest one, and how those that are not are told.
ALIKE = {"settings": "with other settings of the study", "machine": "of another machine"}
SEGMENT_LEVEL = 0.95


@dataclass(frozen=True)
class Level:
    """A stretch of a series without a change: its measurements from `first` to `last` (dates) and their
    mean."""

    first: str
    last: str
    places: tuple[int, ...]
    mean: Interval


@dataclass(frozen=True)
class Change:
    """A change at `measured_at`, of the `effect`, the `baseline` or `both`.

    `effect` and `baseline` are the ratio of the levels after and before, less one; None where that one
    stayed.
    """

    place: int
    measured_at: str
    what: str
    effect: float | None
    baseline: float | None


@dataclass(frozen=True)
class Series:
    """One contrast over time: `rows` in time order, levels of effect and baseline, changes, and what to
    know."""

    contrast: str
    rows: pd.DataFrame
    effects: tuple[Level, ...]
    baselines: tuple[Level, ...]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    fewest: int

    @property
    def sentence(self) -> str:
        """Say what changed and when, or that nothing was shown to change."""
        return _sentence(self)


def rows(
    found: Mapping[str, Any],
    runs: pd.DataFrame,
    study: str,
    settings: str = "",
    commit: str = "",
    machine: str = "",
) -> pd.DataFrame:
    """Return a measurement as rows of a series, one for each finding but those made for a further claim.

    `found` is the content of findings.json, `runs` the tidy table that it was made from. `measured_at` is the
    start of the first run; `baseline_qps` the geometric mean over threads and blocks of the baseline's QPS at
    the workload. `settings` stands for everything that makes it the same study, `commit` for the code,
    `machine` for where it was measured. An effect that has no one number for all threads is left empty.
    """
    if not len(runs):
        return pd.DataFrame(columns=list(COLUMNS))
    measured_at = str(runs["started_utc"].min())
    made = []
    for one in found["findings"]:
        if one["id"].count(".") != 2:
            continue
        own = runs[(runs["arm"] == one["baseline"]) & (runs["workload"] == one["workload"])]
        served = own["qps"].to_numpy(dtype=float)
        is_known = one["headline"] and one["effect"] is not None
        made.append(
            {
                **{
                    key: one[key]
                    for key in ("workload", "baseline", "treatment", "metric", "level", "n", "label")
                },
                **{key: one[key] if is_known else None for key in ("effect", "low", "high")},
                "study": study,
                "measured_at": measured_at,
                "contrast": one["id"],
                "baseline_qps": float(np.exp(np.log(served).mean()))
                if len(served) and (served > 0).all()
                else None,
                "settings": settings,
                "commit": commit,
                "machine": machine,
            }
        )
    return pd.DataFrame(made, columns=list(COLUMNS))


def fewest(level: float) -> int:
    """Return how many values a change needs at least: fewer have too few orders for a p that small.

    A level in halves has 2 of all C(n, n / 2) halves on its side: 2 / 6435 < 0.0005 at 15, 2 / 3432 is not.

    >>> fewest(0.0005)
    15
    """
    return next(n for n in range(2, 100) if 2 / math.comb(n, n // 2) <= level)


def parse(csv: str) -> pd.DataFrame:
    """Return a series from its CSV; `machine` is empty in one that was begun before machines were kept."""
    types = dict.fromkeys(("settings", "commit", "measured_at", "machine"), str)
    table = pd.read_csv(io.StringIO(csv), dtype=types, float_precision="round_trip")
    return table if "machine" in table else table.assign(machine=None)


def together(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put rows together in the order of time; a measurement that is there twice counts once, as first
    given."""
    known = [table for table in tables if len(table)]
    if not known:
        return pd.DataFrame(columns=list(COLUMNS))
    whole = pd.concat(known, ignore_index=True).drop_duplicates(KEY, keep="first")
    return whole.sort_values(["study", "contrast", "measured_at"], kind="stable", ignore_index=True)[
        list(COLUMNS)
    ]


def series(table: pd.DataFrame, level: float = LEVEL) -> list[Series]:
    """Judge every contrast of a study's series.

    The error `level` is shared by all contrasts and, in each, by effect and baseline, so that a study with
    many contrasts does not find more changes for that reason alone (Bonferroni).
    """
    names = list(dict.fromkeys(table["contrast"]))
    return [_one(name, table[table["contrast"] == name], level / max(1, len(names))) for name in names]


def _one(name: str, table: pd.DataFrame, level: float) -> Series:
    ordered = table.sort_values("measured_at", kind="stable")
    same, notes = ordered, []
    for column, which in ALIKE.items():
        values = same[column].fillna("")
        alike = same[values == values.iloc[-1]]
        if len(alike) < len(same):
            notes.append(f"{count(len(same) - len(alike), 'measurement')} {which} left out")
        same = alike
    own = same.dropna(subset=["effect", "baseline_qps"]).reset_index(drop=True)
    if len(own) < len(same):
        notes.append(
            f"{count(len(same) - len(own), 'measurement')} without one effect for all threads left out"
        )
    least = fewest(level / 2)
    effect = np.log1p(own["effect"].to_numpy(dtype=float))
    baseline = np.log(own["baseline_qps"].to_numpy(dtype=float))
    at_effect, at_baseline = (_changes(values, level / 2) for values in (effect, baseline))
    dates = own["measured_at"].astype(str).to_list()
    effects, baselines = _levels(effect, at_effect, dates), _levels(baseline, at_baseline, dates)
    changes = _merged(at_effect, at_baseline, effects, baselines, dates)
    return Series(name, own, effects, baselines, changes, tuple(notes), least)


def _changes(values: np.ndarray, level: float) -> list[int]:
    return (
        change_points(values, level, permutations=math.ceil(5 / level) - 1)
        if len(values) >= fewest(level)
        else []
    )


def _levels(values: np.ndarray, places: Sequence[int], dates: Sequence[str]) -> tuple[Level, ...]:
    edges = [0, *places, len(values)]
    return tuple(
        Level(
            dates[first],
            dates[end - 1],
            tuple(range(first, end)),
            t_interval(values[first:end], SEGMENT_LEVEL),
        )
        for first, end in itertools.pairwise(edges)
        if end > first
    )


def _merged(
    at_effect: Sequence[int],
    at_baseline: Sequence[int],
    effects: Sequence[Level],
    baselines: Sequence[Level],
    dates: Sequence[str],
) -> tuple[Change, ...]:
    """Set changes of effect and baseline beside each other; one measurement apart counts as at once."""
    by_effect = {place: _step(effects, place) for place in at_effect}
    by_baseline = {place: _step(baselines, place) for place in at_baseline}
    found = []
    for place, step in by_effect.items():
        near = next((other for other in by_baseline if abs(other - place) <= 1), None)
        beside = None if near is None else by_baseline.pop(near)
        found.append(Change(place, dates[place], "effect" if near is None else "both", step, beside))
    found += [Change(place, dates[place], "baseline", None, step) for place, step in by_baseline.items()]
    return tuple(sorted(found, key=lambda change: change.place))


def _step(levels: Sequence[Level], place: int) -> float:
    """Return the ratio of the levels after and before a change, less one."""
    before = next(level for level in levels if level.places[-1] == place - 1)
    after = next(level for level in levels if level.places[0] == place)
    return math.expm1(given(after.mean.log_mean) - given(before.mean.log_mean))


def _sentence(found: Series) -> str:
    many = count(len(found.rows), "measurement")
    if len(found.rows) < found.fewest:
        so_far = f"{many} so far" if len(found.rows) else "No measurement counts yet"
        return f"{so_far}; it takes {found.fewest} to show a change."
    told = []
    for change in found.changes:
        day = change.measured_at[:10]
        if change.what == "effect":
            told.append(
                f"From {day} on the treatment is {percent(given(change.effect))} against before, relative to "
                "the baseline, "
                "which shows no change"
            )
        elif change.what == "baseline":
            told.append(
                f"From {day} on the baseline is {percent(given(change.baseline))} against before and the "
                "effect shows no "
                "change: machine or server moved for both arms alike"
            )
        else:
            told.append(
                f"From {day} on both moved: the baseline is {percent(given(change.baseline))} against "
                "before, the treatment "
                f"{percent(given(change.effect))} relative to it"
            )
    if told:
        return f"{'. '.join(told)} ({many})."
    last = found.effects[-1].mean
    seen = "" if last.effect is None else f": {percent(last.effect)} on average"
    ends = ""
    if last.low is not None and last.high is not None:
        ends = f" (95{NBSP}% interval {percent(last.low)} to {percent(last.high)})"
    return f"No change was shown in {many}, neither of the effect nor of the baseline{seen}{ends}."
