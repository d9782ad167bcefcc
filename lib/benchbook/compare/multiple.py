"""Several tests at once: Holm's step-down for contrasts, Benjamini-Hochberg for exploratory tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values adjusted so that the chance of any false rejection stays bounded (Holm 1979).

    >>> [round(p, 2) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    steps = p[order] * np.arange(len(p), 0, -1)
    return _restore(np.minimum(np.maximum.accumulate(steps), 1), order)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return q values: the expected share of false ones among all at least as small (Benjamini 1995).

    >>> [round(q, 2) for q in benjamini_hochberg([0.01, 0.04, 0.03, 0.005])]
    [0.02, 0.04, 0.04, 0.02]
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")[::-1]
    steps = p[order] * len(p) / np.arange(len(p), 0, -1)
    return _restore(np.minimum(np.minimum.accumulate(steps), 1), order)


def _checked(p_values: Sequence[float]) -> np.ndarray:
    p = np.asarray(p_values, dtype=float)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p values must lie between 0 and 1: {list(p_values)}")
    return p


def _restore(values: np.ndarray, order: np.ndarray) -> list[float]:
    restored = np.empty_like(values)
    restored[order] = values
    return restored.tolist()
