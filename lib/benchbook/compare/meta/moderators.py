"""Moderators of an effect over sessions: rank correlation with their machines and hours.

Exact by permutation, over all moderators at once: what is asked ten times finds something once in two.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchbook.compare.meta.random_effects import parse_time
from benchbook.compare.stats import tolerance
from benchbook.compare.text import cpu_models, labels
from benchbook.compare.text.labels import name_effect
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledContrast, PooledEffect, StudySession

FEWEST, ALL_ORDERS, DRAWN = 4, 8, 40_000
"""Occasions from which a moderator is asked for; those of which all orders are tried, else so many drawn."""
SHOWN_P = 0.05
MODERATORS = ("processor", "cores", "virtualization", "kernel", "steal_pct", "hour", "engine", "proxies")
WORDS = labels.NAMES["moderators"]
"""Moderators that have an order, with their units."""


@dataclass(frozen=True)
class ModeratorCorrelation:
    """Rank correlation of a moderator with an effect: Spearman's `rho`; `p` counts all tested."""

    name: str
    values: tuple[float, ...]
    effects: tuple[float, ...]
    rho: float
    p: float
    asked: int


def read_moderators(session: StudySession) -> dict[str, Any]:
    """Possible moderators of a session's effects, by column."""
    proxies = ", ".join(f"{name} {version}" for name, version in sorted(session.proxies.items()))
    messages = session.model_dump() | {
        "processor": cpu_models.name_processor(session.processor),
        "hour": parse_time(session.measured).hour,
        "proxies": proxies,
    }
    return {name: messages[name] for name in MODERATORS} | session.probes


def rank_moderators(pooled: MetaAnalysis, effect: PooledEffect) -> list[ModeratorCorrelation]:
    """Correlation of each moderator with values in four occasions or more, the strongest first.

    Sessions of an occasion are averaged, as they are for the effect. p is the share of orders of the effects
    in which some moderator is as rare (least p, Westfall and Young 1993), so that each counts all of them.
    """
    usable_moderators = dict(_usable_moderators(pooled, effect))
    if not usable_moderators:
        return []
    effects = np.array([occasion.effect for occasion in effect.occasions])
    # The first of the orders is their own.
    shuffled = effects[_permute_places(len(effects))]
    rhos = {name: _rank_correlations(values, shuffled) for name, values in usable_moderators.items()}
    # For each correlation the share of orders in which it is as large.
    sizes = {name: np.abs(several) for name, several in rhos.items()}
    rare = {
        name: 1 - np.searchsorted(np.sort(siz), siz - tolerance.TIE) / len(siz) for name, siz in sizes.items()
    }
    least = np.min(list(rare.values()), axis=0)
    result = []
    for name, values in usable_moderators.items():
        is_known, rho = ~np.isnan(values), float(rhos[name][0])
        p = float(np.mean(least < rare[name][0] + tolerance.TIE))
        observed = tuple(map(float, values[is_known])), tuple(map(float, effects[is_known]))
        result.append(ModeratorCorrelation(name, *observed, rho, p, len(usable_moderators)))
    return sorted(result, key=lambda item: (item.p, -abs(item.rho), item.name))


def describe_best(
    contrast: PooledContrast, effect: PooledEffect, correlations: Sequence[ModeratorCorrelation]
) -> str | None:
    """Sentence on the moderator that orders an effect best; None without any."""
    shown = [each for each in correlations if tolerance.is_below(each.p, SHOWN_P)]
    if not shown:
        return None
    best, way = shown[0], "higher" if shown[0].rho > 0 else "lower"
    others = {1: "", 2: " (so does 1 other)"}.get(len(shown), f" (so do {len(shown) - 1} others)")
    return (
        f"{name_effect(contrast, effect)}: the more {WORDS[best.name]}, the {way} the effect{others}; "
        f"rank correlation {best.rho:+.2f} over {len(best.effects)} occasions, "
        f"p = {best.p:.2g} with all {best.asked} that were asked."
    )


def _usable_moderators(pooled: MetaAnalysis, effect: PooledEffect) -> Iterator[tuple[str, np.ndarray]]:
    """Moderators with their mean in each occasion, if enough are known and they differ."""
    by_session = {session.id: read_moderators(session) for session in pooled.sessions}
    for name in WORDS:
        table: list[list[float]] = [
            [
                float(value)
                for session in occasion.sessions
                if (value := by_session[session].get(name)) is not None
            ]
            for occasion in effect.occasions
        ]
        values = np.array([float(np.mean(row)) if row else math.nan for row in table])
        known = values[~np.isnan(values)]
        if len(known) >= FEWEST and len(set(known)) > 1:
            yield name, values


def _rank_correlations(values: np.ndarray, effects: np.ndarray) -> np.ndarray:
    """Rank correlation of a moderator with each row of effects, over occasions with a value of it."""
    is_known = ~np.isnan(values)
    ranks = effects[:, is_known].argsort(axis=1).argsort(axis=1) - (is_known.sum() - 1) / 2
    value_ranks = pd.Series(values[is_known]).rank().to_numpy()
    value_ranks = value_ranks - value_ranks.mean()
    return ranks @ value_ranks / np.sqrt((ranks[0] @ ranks[0]) * (value_ranks @ value_ranks))


def _permute_places(n: int) -> np.ndarray:
    """All orders of n effects, or for many effects a random sample, their own order first."""
    if n <= ALL_ORDERS:
        return np.array(list(itertools.permutations(range(n))))
    places = np.arange(n)
    drawn = np.random.default_rng(n).permuted(np.tile(places, (DRAWN, 1)), axis=1)
    return np.vstack([places, drawn])
