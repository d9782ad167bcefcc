"""Claims of every kind put to a study: what is judged, what is illustrated, and why some can't be asked.

Effects of QPS between two arms are findings of their own (`claims`); everything else is here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare import claims, conditions, words
from benchbook.compare.claimed import published_text
from benchbook.compare.intervals import Interval, t_interval
from benchbook.compare.multiple import holm
from benchbook.compare.sentences import ends, listing, percent
from benchbook.compare.study_cells import Unfit, cells, chosen, is_known, loading, logarithms
from benchbook.compare.study_kinds import BUSIEST, Bounds, Part, Place, parts
from benchbook.compare.verdicts import Verdict, decide_verdict, point_band, reached_look, verdict
from benchbook.core import claim as published
from benchbook.core.errors import given
from benchbook.core.params import Analysis
from benchbook.core.study import Study

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Asked:
    """A claim that a study is asked beside its findings; `is_judged` is false where it only illustrates."""

    id: str
    claim: published.Claim
    is_judged: bool


@dataclass(frozen=True)
class Evidence:
    """What claims are computed from: tidy `runs`, the `intervals` of their seconds, `loads` by arm, facts."""

    study: Study
    runs: pd.DataFrame
    analysis: Analysis
    intervals: pd.DataFrame | None = None
    loads: Mapping[str, Mapping[str, Any]] | None = None
    facts: Mapping[str, Mapping[str, Any]] | None = None


def asked(
    study: Study, judged: Mapping[str, published.Claim], shown: Mapping[str, published.Claim]
) -> tuple[list[Asked], list[str]]:
    """Return what a study is asked beside its findings, and a sentence for each claim it can't be asked.

    `judged` are the claims that it names, `shown` those that its arms illustrate; an effect of QPS that is
    illustrated is seen in the findings.
    """
    found, left = [], []
    for name, claim in {**shown, **judged}.items():
        is_judged = name in judged
        if claims.is_finding(claim) if is_judged else _is_seen(study, claim):
            continue
        one = Asked(name, claim, is_judged)
        reason = obstacle(study, one)
        if reason is None:
            found.append(one)
        else:
            left.append(f"Claim {name} is not {'answered' if is_judged else 'illustrated'}: {reason}.")
    return found, left


@dataclass(frozen=True)
class Put:
    """All claims of a study: `effects` are judged as findings, `asked` beside them, `left` says why not."""

    effects: list[claims.ClaimedEffect]
    asked: list[Asked]
    left: list[str]


def put(study: Study, judged: Mapping[str, published.Claim], shown: Mapping[str, published.Claim]) -> Put:
    """Put all claims to a study: those that it names are judged, those that its arms illustrate shown."""
    effects, unanswered = claims.answerable(study, judged)
    beside, left = asked(study, judged, shown)
    return Put(effects, beside, [*unanswered, *left])


def obstacle(study: Study, one: Asked) -> str | None:
    """Say what keeps a claim from being put to a study's cells; None if nothing does."""
    claim = one.claim
    if claim.metric is None or not is_known(claim.metric, claim.across):
        return (
            f"its metric {claim.metric} is not measured" if claim.metric else "it is a text without a number"
        )
    if not all(each.key is not None or (each.metric in claims.USED and each.whole) for each in claim.where):
        return "it holds under conditions that a study does not look at"
    try:
        parts(claim, cells(study))
    except Unfit as error:
        return str(error)
    return None


def tables(several: Sequence[Asked]) -> tuple[str, ...]:
    """Return which tidy tables they need beside the usual ones."""
    return ("intervals",) if any(one.claim.across == "second" for one in several) else ()


def findings(evidence: Evidence, several: Sequence[Asked]) -> list[dict[str, Any]]:
    """Return an entry for each claim: its parts with intervals, a verdict if it is judged, a sentence.

    Effects are fractions; `reason` says why there is no number.
    """
    return [_entry(evidence, one) for one in several]


def _is_seen(study: Study, claim: published.Claim) -> bool:
    """Tell whether the findings themselves show a claim: an effect of throughput without conditions.

    What a study compares the other way round is not shown by its findings, whose sign is the other one.
    """
    if not claims.is_finding(claim) or claim.metric not in ("qps", "tps") or claim.where:
        return False
    return study.baseline not in claims.players(study, claim.treatment or {})


def _entry(evidence: Evidence, one: Asked) -> dict[str, Any]:
    claim = one.claim
    made: dict[str, Any] = {
        "claim": one.id,
        "kind": claim.kind,
        "metric": claim.metric,
        "published": published_text(claim),
        "read_as": claim.note if claim.note else None,
        "judged": one.is_judged,
        "n": 0,
        "level": evidence.analysis.level,
        "parts": [],
        "verdict": None,
        "reason": None,
    }
    try:
        own, logs = _parts(evidence, claim), _logarithms(evidence, claim)
        used = sorted({place for part in own for place in (*part.weights, *part.beside)})
        blocks, reason = _complete(logs, used)
    except Unfit as error:
        return _told({**made, "reason": str(error)}, {})
    look = reached_look(len(blocks), evidence.analysis.looks)
    blocks = blocks if look is None else blocks.iloc[:look]
    judged = [_judged(part, blocks, evidence.analysis.level) for part in own]
    made |= {"n": len(blocks), "parts": [entry for entry, _, _ in judged], "reason": reason}
    if claim.metric == claims.LOADING:
        made["reason"] = "loading was timed once, so there is no interval"
    elif look is None:
        made["reason"] = (
            f"nothing is decided before {min(evidence.analysis.looks)} blocks; there are {len(blocks)}"
        )
    if one.is_judged and look is not None:
        made["verdict"] = _verdict([(outcome, p) for _, outcome, p in judged], evidence.analysis.level)
    known = words.names(evidence.study)
    return _told(made, {**known["arms"], **known["workloads"]})


def _parts(evidence: Evidence, claim: published.Claim) -> list[Part]:
    """Return what is asked of the cells that were measured and meet the claim's conditions."""
    table = cells(evidence.study)
    measured = set(map(tuple, evidence.runs[["arm", "workload", "threads"]].drop_duplicates().to_numpy()))
    places = list(zip(table["name"], table["workload"], table["threads"], strict=True))
    table = table[[place in measured for place in places]]
    for one in claim.where:
        if one.metric is not None:
            table = table[_meets(evidence, claim, one, table)]
    return parts(claim.model_copy(update={"where": tuple(one for one in claim.where if one.key)}), table)


def _meets(
    evidence: Evidence, claim: published.Claim, one: published.Condition, table: pd.DataFrame
) -> list[bool]:
    """Tell of each cell whether the arm that a condition looks at used what it asks for, by its mean."""
    column, part = claims.USED[str(one.metric)]
    selector = claim.treatment if one.of == "treatment" else claim.baseline
    arms = set(chosen(table, selector)["name"])
    used = evidence.runs.groupby(["arm", "workload", "threads"])[column].mean()
    low, high = conditions.ends(one)
    allowed = set()
    for (arm, workload, threads), value in used.items():
        cores = conditions.room((evidence.facts or {}).get(arm, {}), part)
        if arm in arms and cores is not None and low < value / cores < high:
            allowed.add((workload, threads))
    kept = [place in allowed for place in zip(table["workload"], table["threads"], strict=True)]
    if not any(kept):
        raise Unfit(f"no cell has the {part} at {conditions.band(one)} of its CPU")
    return kept


def _logarithms(evidence: Evidence, claim: published.Claim) -> dict[str, pd.DataFrame]:
    """Return the logarithms of a claim's metric for the side of treatments and that of baselines."""
    if claim.metric == claims.LOADING:
        table = loading(evidence.study, evidence.loads or {})
        return {"treatment": table, "baseline": table}
    runs = evidence.runs[evidence.runs["arm"].isin(evidence.study.arms)]
    ways = {"treatment": claim.by, "baseline": claim.baseline_by or claim.by}
    made = {
        by: logarithms(runs, str(claim.metric), by if claim.across else None, evidence.intervals)
        for by in set(ways.values())
    }
    return {side: made[by] for side, by in ways.items()}


def _complete(logs: Mapping[str, pd.DataFrame], used: Sequence[Place]) -> tuple[pd.DataFrame, str | None]:
    """Return the logarithms of all places, one row a block that has them all, and why blocks are left out."""
    columns = {}
    for place in used:
        arm, workload, threads, side = place
        table = logs[side]
        if threads == BUSIEST:
            own = table[arm][workload]
            threads = int(own.mean().idxmax())
        if (arm, workload, threads) not in table.columns:
            raise Unfit(f"{arm} has no such number on {workload} at {threads} threads")
        columns[place] = table[arm, workload, threads]
    whole = pd.DataFrame(columns)
    kept = whole.dropna()
    dropped = len(whole) - len(kept)
    if kept.empty:
        raise Unfit("no block has all of its numbers")
    return kept, f"{dropped} blocks lack one of its numbers" if dropped else None


def _judged(part: Part, blocks: pd.DataFrame, level: float) -> tuple[dict[str, Any], Verdict, float | None]:
    """Return a part as an entry, with its outcome and the p value of that."""
    series, bounds, reason = _series(blocks, part.weights), part.bounds, None
    if part.rule == "size":
        overall = t_interval(_series(blocks, part.beside), level)
        if overall.log_mean is not None and overall.log_mean < 0:
            bounds = Bounds(-bounds.log_high, -bounds.log_low)
        if not overall.is_known or given(overall.log_low) <= 0 <= given(overall.log_high):
            reason = "no effect was shown, so its size has no trend"
    if part.rule == "alike":
        theirs = float(_series(blocks, part.beside).mean())
        allowed = point_band(math.expm1(theirs))
        bounds = Bounds(allowed.log_low - theirs, allowed.log_high - theirs)
    interval = t_interval(series, level)
    outcome: Verdict = "inconclusive"
    p: float | None = None
    if interval.is_known and reason is None:
        outcome, p = verdict(interval, bounds), decide_verdict(interval, bounds).p
    return _part(part, interval, bounds, outcome, reason or interval.reason), outcome, p


def _series(blocks: pd.DataFrame, weights: Mapping[Place, float]) -> np.ndarray:
    return sum(blocks[[place]].to_numpy()[:, 0] * weight for place, weight in weights.items())


def _part(part: Part, interval: Interval, bounds: Bounds, outcome: str, reason: str | None) -> dict[str, Any]:
    def back(log: float | None) -> float | None:
        if log is None or not math.isfinite(log):
            return None
        return {"share": math.expm1, "value": math.exp, "power": float}[part.scale](log)

    return {
        "where": part.where,
        "scale": part.scale,
        "value": back(interval.log_mean),
        "low": back(interval.log_low),
        "high": back(interval.log_high),
        "band": [back(bounds.log_low), back(bounds.log_high)],
        "outcome": outcome,
        "reason": reason,
    }


def _verdict(outcomes: Sequence[tuple[Verdict, float | None]], level: float) -> Verdict:
    """Judge a claim of several parts: all of them must hold; one that is shown not to hold is enough against.

    All at once needs no correction; any of several does, and Holm's is made.
    """
    if all(outcome == "confirmed" for outcome, _ in outcomes):
        return "confirmed"
    p_values = [p if outcome == "contradicted" and p is not None else 1.0 for outcome, p in outcomes]
    return "contradicted" if min(holm(p_values)) <= 1 - level + _ROUNDING else "inconclusive"


def _told(made: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Add the sentence: what was seen in each part, and of a judged claim how many parts are as claimed.

    `names` has the readable ones of arms and workloads.
    """
    seen = [part for part in made["parts"] if part["value"] is not None]
    if not seen:
        return {**made, "sentence": f"No number: {made['reason'] or 'nothing was measured for it'}."}
    column = claims.METRICS.get(made["metric"], made["metric"])
    has_unit = column.endswith("_ms") and any(part["scale"] != "share" for part in seen)
    metric = words.metric(column).replace("_", " ") + (" (ms)" if has_unit else "")
    told = listing([f"{_readable(part['where'], names)} {_amount(part)}" for part in seen])
    held = sum(part["outcome"] == "confirmed" for part in made["parts"])
    is_counted = made["judged"] and made["n"] and made["parts"][0]["low"] is not None
    counted = f" {held} of {len(made['parts'])} lie in what was claimed." if is_counted else ""
    return {**made, "sentence": f"{metric[0].upper()}{metric[1:]}: {told}.{counted}"}


def _readable(where: str, names: Mapping[str, str]) -> str:
    """Put readable names of arms and workloads in the place of the study's own."""
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"(?<![\w-])(?:{known})(?![\w-])", lambda own: names[own[0]], where) if names else where


def _amount(part: Mapping[str, Any]) -> str:
    def write(value: float) -> str:
        return percent(value) if part["scale"] == "share" else f"{value:,.4g}"

    if part["low"] is None or part["high"] is None:
        return write(part["value"])
    seen = ends(part) if part["scale"] == "share" else f"{write(part['low'])} to {write(part['high'])}"
    return f"{write(part['value'])} ({seen})"
