"""What a million queries cost, where a study gives an arm's price of an hour."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.contrasts import Evidence, contrast, metrics
from benchbook.compare.entries import Context, entry
from benchbook.compare.intervals import t_interval
from benchbook.compare.judgement import judge
from benchbook.compare.ladders import KEPT
from benchbook.compare.verdicts import reached_look
from benchbook.core.errors import given
from benchbook.core.study import Study

METRIC = "cost_per_million"


def findings(evidence: Evidence, context: Context) -> dict[str, Any]:
    """Return {"costs": …} for a study in which an arm has a price, else nothing.

    `arms` has the cost of a million queries of each priced arm in each closed-loop cell, with its interval
    over blocks, in `currency`; `contrasts` has each priced treatment against a priced baseline, judged as
    findings are: the ratio inside a block needs no quiet machine.
    """
    study = evidence.study
    prices = {name: arm.price_per_hour for name, arm in study.arms.items() if arm.price_per_hour is not None}
    workloads = [name for name in study.workloads if "qps" in metrics(study, name)]
    if not prices or not workloads:
        return {}
    priced = replace(
        evidence, runs=_with_cost(evidence.runs, study, {k: p.amount for k, p in prices.items()})
    )
    return {
        "costs": {
            "currency": next(iter(prices.values())).currency,
            "arms": [
                {**_of_cell(priced, arm, workload, threads), "price_per_hour": price.amount}
                for workload in workloads
                for threads in study.threads
                for arm, price in prices.items()
            ],
            "contrasts": _contrasts(priced, list(prices), workloads, context),
        }
    }


def _with_cost(runs: pd.DataFrame, study: Study, prices: Mapping[str, float]) -> pd.DataFrame:
    """Add the cost of a million queries at each run's QPS; nothing where an arm has no price."""
    price = runs["arm"].map(study.deployed).map(prices).astype(float)
    return runs.assign(**{METRIC: price / 3600 / runs["qps"].astype(float) * 1e6})


def _of_cell(evidence: Evidence, arm: str, workload: str, threads: int) -> dict[str, Any]:
    runs = evidence.runs
    own = runs[(runs["arm"] == arm) & (runs["workload"] == workload) & (runs["threads"] == threads)]
    values = own.sort_values("block")[METRIC].dropna().to_numpy(dtype=float)
    made = {"arm": arm, "workload": workload, "threads": threads}
    if not np.isfinite(values).all():
        none = {"cost": None, "low": None, "high": None, "level": evidence.analysis.level, "n": len(values)}
        return {**made, **none, "reason": "a run answered no query, so a query has no cost"}
    look = reached_look(len(values), evidence.analysis.looks)
    found = t_interval(np.log(values if look is None else values[:look]), evidence.analysis.level)
    ends = {"cost": found.log_mean, "low": found.log_low, "high": found.log_high}
    return {
        **made,
        **{key: None if log is None else math.exp(log) for key, log in ends.items()},
        "level": found.level,
        "n": found.n,
        "reason": found.reason,
    }


def _contrasts(
    evidence: Evidence, priced: list[str], workloads: list[str], context: Context
) -> list[dict[str, Any]]:
    study, first_look = evidence.study, min(evidence.analysis.looks)
    if study.baseline not in priced:
        return []
    twins = [
        contrast(evidence, study.baseline, given(study.twin), workload, METRIC, levels)
        for workload in workloads
        if (levels := [level for level in study.threads if study.has_twin(workload, level)])
    ]
    candidates = [
        contrast(evidence, study.baseline, arm, workload, METRIC)
        for workload in workloads
        for arm in study.treatments
        if arm in priced
    ]
    found = [entry(one, context, {}) for one in judge(candidates, first_look, twins=twins)]
    return [{key: one[key] for key in KEPT} for one in found]
