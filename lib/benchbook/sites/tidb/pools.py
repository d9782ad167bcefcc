"""What the threads of TiKV use, by pool, as its metrics tell it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# TiKV's status port has this path, and this counter for each thread, since 3.0.
PATH = "/metrics"
LINE = re.compile(r'^tikv_thread_cpu_seconds_total\{[^}]*\bname="([^"]+)"[^}]*\}\s+(\S+)', re.MULTILINE)


def seconds(text: str) -> dict[str, float]:
    """Return the processor time in s of each thread pool of one TiKV; empty where it is not told."""
    found: dict[str, float] = {}
    for name, value in LINE.findall(text):
        pool = re.sub(r"[-_:]*\d*$", "", name) or name
        found[pool] = found.get(pool, 0.0) + float(value)
    return found


def spent(
    before: Iterable[Mapping[str, float]], after: Iterable[Mapping[str, float]]
) -> dict[str, float] | None:
    """Return the seconds that each pool of all TiKV used, busiest first; None if one started again."""
    total: dict[str, float] = {}
    for first, last in zip(before, after, strict=True):
        for pool, value in last.items():
            used = value - first.get(pool, 0.0)
            if used < -0.5:
                return None
            total[pool] = total.get(pool, 0.0) + max(0.0, used)
    shown = {pool: round(value, 2) for pool, value in total.items() if value >= 0.01}
    return dict(sorted(shown.items(), key=lambda one: -one[1]))
