"""Pooled sessions as tidy tables: a row for each effect, and a row for each effect in each session."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchbook.compare import machines
from benchbook.compare.occasions import moment
from benchbook.core.pooled import Contrast, Pooled, PooledEffect, Session

_IN_OTHER_WORDS = {"seen", "sessions", "occasions", "tau_pct", "q_p", "short"}
MODERATORS = ("processor", "cores", "kernel", "steal_pct", "hour", "engine", "proxies")


def effects(pooled: Pooled) -> pd.DataFrame:
    """Return a row for each contrast over all threads (`threads` is missing) and at each level."""
    rows = [
        {
            **{key: getattr(contrast, key) for key in ("id", "workload", "treatment", "baseline", "metric")},
            **one.model_dump(exclude=_IN_OTHER_WORDS),
            "tau": None if one.tau_pct is None else one.tau_pct / 100,
            "occasions": one.k,
            "sessions": len(one.sessions),
        }
        for contrast, one in _each(pooled)
    ]
    return pd.DataFrame(rows, columns=None if rows else ["threads"]).astype({"threads": "Int64"})


def sessions(pooled: Pooled) -> pd.DataFrame:
    """Return a row for each effect in each session, with what may explain it beside it.

    Effects are fractions, `steal_pct` is per cent, `hour` that of UTC. Each probe of a machine is a column.
    """
    rows = [
        {
            "id": contrast.id,
            "threads": one.threads,
            "session": seen.session,
            "processor": machines.name(pooled.session(seen.session).processor),
            "label": seen.label,
            **seen.model_dump(),
            "measured": pooled.session(seen.session).measured,
            **moderators(pooled.session(seen.session)),
        }
        for contrast, one in _each(pooled)
        for seen in one.seen
    ]
    return pd.DataFrame(rows).astype({"threads": "Int64"}) if rows else pd.DataFrame()


def moderators(session: Session) -> dict[str, Any]:
    """Return what a session's effects may depend on, by column."""
    proxies = ", ".join(f"{name} {version}" for name, version in sorted(session.proxies.items()))
    told = session.model_dump() | {
        "processor": machines.name(session.processor),
        "hour": moment(session.measured).hour,
        "proxies": proxies,
    }
    return {name: told[name] for name in MODERATORS} | session.probes


def _each(pooled: Pooled) -> list[tuple[Contrast, PooledEffect]]:
    return [(contrast, one) for contrast in pooled.contrasts for one in (contrast.whole, *contrast.levels)]
