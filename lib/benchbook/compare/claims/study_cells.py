"""The cells of a study, as claims are put to them: under the keys of documents, with a value a block."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchbook.compare.claims import estimands
from benchbook.compare.claims.estimands import CellPair, NotApplicable, Series, Terms
from benchbook.compare.claims.metrics import COLUMNS, LOADING, USED, is_known
from benchbook.compare.stats.equivalence import reached_look
from benchbook.compare.stats.intervals import Interval, t_interval
from benchbook.compare.text import labels
from benchbook.core.published.claim import ClaimSpec, Condition, Selector
from benchbook.core.published.table_cells import both_metrics
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import require_value

OF_THREADS = ("threads", "threads_per_process", "threads_per_server")
OF_WORKLOAD = ("workload", "script", "range_size")
OF_A_PART = ("workload", "idle_connections", "new_connections_per_s")
# What else a value of a key may name: an arm by itself, a workload by its script.
ALSO = {"arm": ["name"], "workload": ["script"]}


@dataclass(frozen=True)
class StudyEvidence:
    """Input of findings and claims: tidy `runs`, `histograms` and `intervals`, `loads` and `facts` by arm."""

    study: StudySpec
    runs: pd.DataFrame
    analysis: Analysis
    intervals: pd.DataFrame | None = None
    loads: Mapping[str, Mapping[str, Any]] | None = None
    facts: Mapping[str, Mapping[str, Any]] | None = None
    histograms: pd.DataFrame | None = None


class CellLocation(NamedTuple):
    """Arm, workload and threads, by the study's own names; a pair's arm is its two."""

    name: str
    workload: str
    threads: int

    @classmethod
    def of(cls, place: Mapping[str, Any]) -> CellLocation:
        return cls(*(place[name] for name in cls._fields))


PLACE = CellLocation._fields


@dataclass(frozen=True, eq=False)
class StudyCell:
    """Cell of a study; `by` combines the seconds of its runs, None takes the run's value."""

    place: Mapping[str, Any]
    metric: str
    by: str | None

    @property
    def at(self) -> CellLocation:
        return CellLocation.of(self.place)


class StudyCells:
    """A study's cells, as `kinds.Board` asks for them; without evidence all that are planned.

    A block counts for a claim only if it has all numbers that the claim asks for (`settle`).
    """

    def __init__(self, study: StudySpec, evidence: StudyEvidence | None = None) -> None:
        self._study, self._evidence = study, evidence
        self._rows: pd.Index | None = None
        self._values: dict[tuple[str, str | None], pd.DataFrame] = {}

    @property
    def n(self) -> int:
        """Blocks that count for the claim."""
        return 0 if self._rows is None else len(self._rows)

    def cells(self, claim: ClaimSpec, metric: str, side: Selector | None, by: str | None) -> list[StudyCell]:
        """Cells of a selection, in the study's order; none if the metric is not measured."""
        if not is_known(metric, claim.across):
            return []
        way = (by or "mean") if claim.across else None
        table = _select_cells(_select_cells(self._table, claim.cells), side)
        return [StudyCell(row, metric, way) for row in table.to_dict("records")]

    def pairs(
        self, baseline: list[StudyCell], treatment: list[StudyCell], compared: set[str]
    ) -> list[CellPair]:
        """Pair cells that differ only in the carrier of the keys compared."""
        owners = set(map(_key_owner, compared))
        same = [key for key in PLACE if key not in owners]
        result = []
        for cell in treatment:
            match = [other for other in baseline if all(other.place[key] == cell.place[key] for key in same)]
            if len(match) > 1:
                raise NotApplicable("it speaks of several baselines")
            for other in match:
                name = " against ".join(dict.fromkeys((cell.at.name, other.at.name)))
                result.append(CellPair({**cell.place, "name": name}, cell, other))
        return result

    def meets(self, condition: Condition, cell: StudyCell) -> bool:
        """True if a cell has a key, or its mean use over all blocks, between the ends of a condition."""
        low, high = condition_ends(condition)
        if condition.key is not None:
            if condition.key not in self._table:
                raise NotApplicable(f"the study does not vary {labels.label_key(condition.key)}")
            return bool(low < cell.place[condition.key] < high)
        if self._evidence is None:
            return True
        share = used_share(self._evidence.runs, self._evidence.facts or {}, condition, cell.at)
        return share is not None and low < share < high

    def none_left(self, claim: ClaimSpec, cell_pairs: Sequence[CellPair]) -> str:
        """Say that the study has no such cell, or that none meets the conditions."""
        condition = next((each for each in claim.where if each.metric is not None), None)
        if condition is None:
            return "no cell of the study is what it speaks of"
        return f"no cell has the {USED[str(condition.metric)]} at {condition_band(condition)} of its CPU"

    def series(self, items: Sequence[CellPair], key: str, free: tuple[str, ...] = ()) -> Series:
        """Series that vary only the carrier of a key; NotApplicable if one level stands twice."""
        owner = _key_owner(key)
        rest = [name for name in PLACE if name not in (owner, *free)]
        levelled = [item for item in items if pd.notna(item.place.get(key))]
        if items and not levelled:
            raise NotApplicable(f"the study does not vary {labels.label_key(key)}")

        def describe(item: CellPair) -> str:
            words = {**item.place, "threads": _format_threads(item.place["threads"])}
            return ", ".join(str(words[name]) for name in rest)

        series = estimands.group_series(levelled, key, describe)
        if "threads" not in free and any(len(dict(levels)) < len(levels) for _, levels in series):
            raise NotApplicable(f"two {owner}s have the same {labels.label_key(key)}")
        return series

    def group(self, item: CellPair) -> Hashable:
        """Arm and workload: thread levels are shown together."""
        return CellLocation.of(item.place)[:2]

    def named(self, items: Sequence[CellPair]) -> str:
        """Arm, workload and threads in words; of pairs the threads only if there are several levels."""
        places = [CellLocation.of(item.place) for item in items]
        name, workload, levels = *places[0][:2], _format_threads(*(place.threads for place in places))
        if items[0].baseline is None:
            return f"{name}, {workload}, {levels}"
        is_one = len(items) == 1 and len(self._study.threads) > 1
        return f"{name}, {f'{levels}, ' if is_one else ''}{workload}"

    def has(self, metric: str) -> bool:
        """True if any run has a metric, or before there are runs."""
        return self._evidence is None or _of_runs(self._evidence.runs, metric).notna().any()

    def amount(self, terms: Terms) -> Interval:
        """Sum of logarithms over blocks with its interval; of a study not yet measured none."""
        if self._evidence is None:
            return Interval(0, 0.0, reason="nothing was measured")
        total: Any = sum(self._logs(cell) * weight for cell, weight in terms)
        values = total.dropna() if self._rows is None else total.loc[self._rows]
        return t_interval(values.to_numpy(), self._evidence.analysis.level)

    def settle(self, claim_test: estimands.ClaimTest) -> tuple[int, str | None]:
        """Keep the complete blocks up to the last look; their number, and why others are left out."""
        sums = [terms for part in claim_test.parts for terms in (part.terms, *part.of)]
        if self._evidence is None or not sums:
            return 0, None
        whole = pd.concat([self._logs(cell) for terms in sums for cell, _ in terms], axis=1)
        kept = whole.dropna().index
        if kept.empty:
            raise NotApplicable("no block has all of its numbers")
        look = reached_look(len(kept), self._evidence.analysis.looks)
        self._rows = kept if look is None else kept[:look]
        dropped = len(whole) - len(kept)
        return len(kept), f"{dropped} blocks lack one of its numbers" if dropped else None

    @cached_property
    def _table(self) -> pd.DataFrame:
        """Every cell of the study, without its twin, under the keys of documents; only measured ones."""
        study, rows = self._study, []
        for name, workload, threads in itertools.product(study.arms, study.workloads, study.threads):
            place, arm = {"name": name, "workload": workload, "threads": threads}, study.arms[name]
            load = {"script": study.script(workload), "range_size": study.workloads[workload].range_size}
            shares = {"threads_per_process": arm.clients, "threads_per_server": arm.servers}
            each = {key: threads // number for key, number in shares.items()}
            rows.append({**place, **load, **each, **arm.role(name)})
        if self._evidence is None:
            return pd.DataFrame(rows)
        columns = ["arm", "workload", "threads"]
        measured = set(self._evidence.runs[columns].itertuples(index=False, name=None))
        kept = [row for row in rows if tuple(row[key] for key in PLACE) in measured]
        return pd.DataFrame(kept, columns=list(rows[0]))

    def _logs(self, study_cell: StudyCell) -> pd.Series:
        """Logarithm of a cell's metric by block, NaN if a run has no such number."""
        key = (study_cell.metric, study_cell.by)
        if key not in self._values:
            self._values[key] = self._logarithms(*key)
        if study_cell.at not in self._values[key].columns:
            name, workload, threads = study_cell.at
            raise NotApplicable(f"{name} has no such number on {workload} at {threads} threads")
        return self._values[key][study_cell.at]

    def _logarithms(self, metric: str, by: str | None) -> pd.DataFrame:
        """Logarithm of a metric, one row a block, one column a cell; NotApplicable at zero or below."""
        evidence = require_value(self._evidence)
        if metric == LOADING:
            return _loading_logs(self._study, evidence.loads or {})
        runs = evidence.runs[evidence.runs.arm.isin(self._study.arms)]
        values = _of_runs(runs, metric) if by is None else _of_seconds(runs, metric, by, evidence.intervals)
        rows = runs[["block", "workload", "threads"]].assign(name=runs.arm, value=values.astype(float))
        if not rows.value.notna().any():
            raise NotApplicable(f"no run has {labels.label_metric(metric)}")
        if (rows.value <= 0).any():
            worst = rows[rows.value <= 0].iloc[0]
            place = ", ".join(str(worst[key]) for key in PLACE)
            zero = f"{labels.label_metric(metric)} is {worst.value:g} in block {worst.block}"
            raise NotApplicable(f"{zero} ({place} threads), so no ratio can be taken")
        return np.log(rows.pivot_table("value", "block", list(PLACE), aggfunc="mean", dropna=False))


def list_arms(items: Iterable[CellPair]) -> list[str]:
    """Arms of a study's items, a baseline before what is held against it."""
    cells = (cell for item in items for cell in (item.baseline, item.cell) if cell is not None)
    return list(dict.fromkeys(cell.at.name for cell in cells))


def list_contrasts(items: Iterable[CellPair]) -> set[tuple[str, str, str]]:
    """Baseline, treatment and workload of each pair among a study's items."""
    pairs = ((item.baseline.at, item.cell.at) for item in items if item.baseline is not None)
    return {(base.name, cell.name, cell.workload) for base, cell in pairs}


def _select_cells(table: pd.DataFrame, selector: Selector | None) -> pd.DataFrame:
    """Cells of a selector; NotApplicable if the study lacks its key or, of a workload or load, all values."""
    for key, wanted in (selector or {}).items():
        any_of = wanted if isinstance(wanted, tuple) else (wanted,)
        if key not in table:
            raise NotApplicable(f"the study does not vary {labels.label_key(key)}")
        columns = table[[key, *ALSO.get(key, ())]]
        missing = [str(item) for item in any_of if not columns.isin([item]).any(axis=None)]
        if missing and (key not in OF_A_PART or len(missing) == len(any_of)):
            raise NotApplicable(f"the study has no {labels.label_key(key)} {' and '.join(missing)}")
        table = table[columns.isin(any_of).any(axis=1)]
    return table


def _key_owner(key: str) -> str:
    """Carrier of a key in a cell: its threads, its workload, or its arm."""
    return "threads" if key in OF_THREADS else "workload" if key in OF_WORKLOAD else "name"


def _format_threads(*levels: int) -> str:
    return f"{', '.join(map(str, levels))} thread{'' if list(levels) == [1] else 's'}"


def _of_runs(runs: pd.DataFrame, metric: str) -> pd.Series:
    columns = (COLUMNS[name] for name in both_metrics(metric))
    first, *rest = (runs[name].astype(float) * times for name, times in columns)
    return first / rest[0] if rest else first


def _of_seconds(runs: pd.DataFrame, metric: str, by: str, intervals: pd.DataFrame | None) -> pd.Series:
    if (runs.order == "turns").any():
        raise NotApplicable("arms took turns within each second, so no second belongs to one arm alone")
    if intervals is None or intervals.empty:
        raise NotApplicable("the seconds of the runs are not there")
    counted = intervals[~intervals.is_discarded.astype(bool)]
    return runs.run_id.map(counted.groupby("run_id")[metric].agg(by))


def _loading_logs(study: StudySpec, loads: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Logarithm of the loading time, s; it is timed once for each arm, so in one row."""
    seconds = {arm: float(load["seconds"]) for arm, load in loads.items() if load.get("seconds")}
    if not seconds:
        raise NotApplicable("loading was not timed")
    columns = pd.MultiIndex.from_product([seconds, study.workloads, study.threads], names=PLACE)
    return pd.DataFrame([[np.log(seconds[arm]) for arm, _, _ in columns]], columns=columns, index=[1])


def used_share(
    runs: pd.DataFrame, facts: Mapping[str, Mapping[str, Any]], condition: Condition, at: tuple[str, str, int]
) -> float | None:
    """Mean utilization of a part, as a share of its limit, in a cell; None where either is unknown."""
    metric, (arm, workload, threads) = require_value(condition.metric), at
    cores = allowed_cores(facts.get(arm, {}), USED[metric])
    cell_runs = runs[(runs.arm == arm) & (runs.workload == workload) & (runs.threads == threads)]
    observed = cell_runs[COLUMNS[metric][0]].dropna()
    return None if cores is None or observed.empty else float(observed.mean()) / cores


def allowed_cores(facts: Mapping[str, Any], part: str) -> float | None:
    """Limit of a part of an arm in cores, by its facts; None if they don't say."""
    arguments = (facts.get("cpu") or {}).get(part)
    if arguments is None:
        return None
    if arguments.get("quota_cores"):
        return float(arguments["quota_cores"])
    if arguments.get("cores"):
        return float(len(arguments["cores"]))
    machine = facts["hosts"].get(part) if facts.get("hosts") else facts.get("machine")
    return float(machine["cores"]) if machine and machine.get("cores") else None


def condition_ends(condition: Condition) -> tuple[float, float]:
    """Allowed range of a key's value, or of a utilization as a share of the whole."""
    whole = condition.whole or 1.0
    low = -math.inf if condition.above is None else condition.above / whole
    return low, math.inf if condition.below is None else condition.below / whole


def condition_band(condition: Condition) -> str:
    """Write the share of a part's CPU that a condition asks for."""
    low, high = condition_ends(condition)
    if low == -math.inf:
        return f"less than {high:.0%}"
    return f"more than {low:.0%}" if high == math.inf else f"{low:.0%} to {high:.0%}"
