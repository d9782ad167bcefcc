"""Published claims put to the arms of a study: which of them it can answer, and with which band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from benchbook.compare.claimed import limits
from benchbook.compare.verdicts import Band
from benchbook.core import claim as published
from benchbook.core.errors import given
from benchbook.core.study import Study

Value = published.Scalar | tuple[published.Scalar, ...]
# Metrics that sources print, and which of ours is compared for each: effects are ratios, so units are free.
METRICS = {
    "qps": "qps",
    "tps": "tps",
    "qps_min": "lowest_qps",
    "latency_avg_ms": "latency_avg_ms",
    "latency_p95_ms": "latency_p95_ms",
    "latency_p99_ms": "latency_p99_ms",
    "cpu_proxy_pct": "cpu_proxy_cores",
    "cpu_proxy_pct / qps": "cpu_proxy_for_a_query",
    "cpu_tidb_pct": "cpu_tidb_cores",
    "cpu_tidb_pct / qps": "cpu_tidb_for_a_query",
    "memory_proxy_mb": "memory_proxy_mib",
}
# What a source prints of a part's processors, the column of `runs` that has the cores it used, and the part.
USED = {"cpu_proxy_pct": ("cpu_proxy_cores", "proxy"), "cpu_tidb_pct": ("cpu_tidb_cores", "server")}
# Seconds that loading took: it is timed once, when data are prepared, so there is no contrast of runs.
LOADING = "load_s"
# Ours that are one column of `runs` over another.
DERIVED = {
    "cpu_proxy_for_a_query": ("cpu_proxy_cores", "qps"),
    "cpu_server_for_a_query": ("cpu_server_cores", "qps"),
    "cpu_tidb_for_a_query": ("cpu_tidb_cores", "qps"),
}


@dataclass(frozen=True)
class ClaimedEffect:
    """A claim about one contrast of a study.

    `id` is `source/claim`; `value` is the effect that was claimed as a fraction (the middle of a range, a
    bound), of which only the sign is used. `threads` None means all thread levels of the study, `workloads`
    None all its workloads. Contrasts with the same id share one error level. `metric` is one of `runs`, or of
    `DERIVED`. `where` says which of these cells are meant, once they were measured (`conditions.narrowed`).
    """

    id: str
    baseline: str
    treatment: str
    value: float
    band: Band
    workloads: tuple[str, ...] | None = None
    threads: tuple[int, ...] | None = None
    metric: str = "qps"
    where: tuple[published.Condition, ...] = ()

    @property
    def arms(self) -> tuple[str, str]:
        """The baseline and the treatment."""
        return self.baseline, self.treatment


def answerable(study: Study, claims: Mapping[str, published.Claim]) -> tuple[list[ClaimedEffect], list[str]]:
    """Return the claims that a study can answer, and a sentence for each that it cannot.

    `claims` has the ids `source/claim` that the study names. A claim is answered where it speaks of an
    effect between arms that the study has, at workloads and thread levels that it measures; one that speaks
    of several treatments, with each of them. An arm is the source's if it has its name, bears its load, or
    says in `plays` what it is.
    """
    found: list[ClaimedEffect] = []
    left: list[str] = []
    for name, claim in claims.items():
        if not is_finding(claim):
            continue
        reason = _obstacle(study, claim)
        if reason:
            left.append(f"Claim {name} is not answered: {reason}.")
            continue
        workloads, threads = _workloads(study, claim), _levels(study, claim)
        (baseline,) = players(study, given(claim.baseline))
        found += [
            ClaimedEffect(
                name,
                baseline,
                treatment,
                _middle(given(claim.band)),
                given(limits(claim)),
                workloads,
                threads,
                METRICS[given(claim.metric)],
                claim.where,
            )
            for treatment in players(study, given(claim.treatment))
        ]
    return found, left


def is_finding(claim: published.Claim) -> bool:
    """Tell whether a claim is answered by a contrast of two arms, as findings are; others are `study_claims`.

    Per-second values and those of a document's own words are no contrasts of runs.
    """
    is_mean = claim.across is None or (claim.by == "mean" and claim.baseline_by in (None, "mean"))
    return claim.kind == "effect" and is_mean and claim.metric != LOADING


def _obstacle(study: Study, claim: published.Claim) -> str | None:
    """Say what keeps a claim from being answered; None if nothing does."""
    baseline, treatment = given(claim.baseline), given(claim.treatment)
    if claim.metric not in METRICS:
        return f"its metric {claim.metric} is not compared"
    if not all(one.metric in USED and one.whole for one in claim.where):
        return "it holds under conditions that a study does not look at"
    for selector in (baseline, treatment):
        if len(players(study, selector)) != _asked(selector):
            wanted = ", ".join(f"{key} {_words(value)}" for key, value in selector.items())
            return f"the study has no arm for {wanted}"
    if _asked(baseline) != 1:
        return "it speaks of several baselines"
    if strange := sorted({*(claim.cells or {})} - {"workload", "threads", "threads_per_process"}):
        return f"the study does not vary {', '.join(strange)}"
    if not set(_levels(study, claim) or ()) <= set(study.threads):
        return "its thread counts are not all measured"
    if _workloads(study, claim) == ():
        return "its workloads are not measured"
    return None


def _workloads(study: Study, claim: published.Claim) -> tuple[str, ...] | None:
    """Return the study's workloads that a claim means, by their names or scripts; None: all of them."""
    asked = (claim.cells or {}).get("workload")
    if asked is None:
        return None
    return tuple(one for one in study.workloads if {one, study.script(one)} & set(_several(asked)))


def _levels(study: Study, claim: published.Claim) -> tuple[int, ...] | None:
    """Return the thread levels that a claim means, those of a process times the processes; or None."""
    cells = claim.cells or {}
    levels, each = cells.get("threads"), cells.get("threads_per_process")
    if each is None:
        return None if levels is None else tuple(int(level) for level in _several(levels))
    clients = {
        study.arms[name].clients
        for selector in (given(claim.baseline), given(claim.treatment))
        for name in players(study, selector)
    }
    return tuple(int(threads) * max(clients, default=1) for threads in _several(each))


def players(study: Study, selector: published.Selector) -> list[str]:
    """Return the arms that are what a selector asks for, in the study's order."""
    return [
        name
        for name, arm in study.arms.items()
        if all(_is_one(arm.role(name).get(key), value) for key, value in selector.items())
    ]


def _is_one(role: published.Scalar | None, value: Value) -> bool:
    return role is not None and role in _several(value)


def _asked(selector: published.Selector) -> int:
    """Return how many arms a selector speaks of."""
    return prod(len(_several(value)) for value in selector.values())


def _words(value: Value) -> str:
    return " and ".join(map(str, _several(value)))


def _middle(band: published.Band) -> float:
    amounts = band.range or [one for one in (band.point, band.above, band.below) if one is not None]
    return sum(published.number(one) for one in amounts) / len(amounts)


def _several(value: Value) -> tuple[published.Scalar, ...]:
    return value if isinstance(value, tuple) else (value,)
