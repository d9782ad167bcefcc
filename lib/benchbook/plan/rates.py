"""A fixed rate from what the arms can do: a share of the slower arm's saturation, found by the pilots.

Latency is compared at the same rate in all arms, below what each of them can do: at saturation latency is
only the length of the queue, and an arm that does more would be asked for more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from benchbook.core.errors import BenchbookError
from benchbook.core.study import Study
from benchbook.core.study_sections import Rate
from benchbook.core.wording import count

# Pilots that differ by a percent or two then ask for the same rate, and runs that exist are kept.
DIGITS = 2

Rates = Mapping[str, Mapping[int, int]]


class Settled(NamedTuple):
    """A row of `rates` in `warm_up.json`."""

    workload: str
    threads: int
    share: float
    slower_arm: str
    saturation_tps: float
    rate: int


def piloted(study: Study, workload: str) -> str:
    """Return the workload whose pilots stand for this one: the first that differs in nothing but its rate."""
    asked = study.workloads[workload]
    # A workload with a number as its rate has pilots of its own, at that rate.
    if not isinstance(asked.rate, Rate):
        return workload
    return next(
        name
        for name, other in study.workloads.items()
        if (isinstance(other.rate, Rate) or other.rate == 0)
        and study.script(name) == study.script(workload)
        and other.model_copy(update={"rate": 0, "script": None, "order": asked.order})
        == asked.model_copy(update={"rate": 0, "script": None})
    )


def levels(study: Study, workload: str) -> list[int]:
    """Return the thread levels of a workload's pilots: all where a rate depends on them, else the ends."""
    depends = any(
        isinstance(study.workloads[other].rate, Rate) and piloted(study, other) == workload
        for other in study.workloads
    )
    return sorted(set(study.threads) if depends else {min(study.threads), max(study.threads)})


def settle(study: Study, pilots: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rate of every workload that asks for a share, at each thread level, and where it is from.

    `pilots` has the columns arm, workload, threads, second (from 1) and tps. An arm's saturation is its mean
    over the second half of the pilot; `slower_arm` has the lowest. The rate is rounded down to two digits.
    """
    settled = []
    for name, workload in study.workloads.items():
        if not isinstance(workload.rate, Rate):
            continue
        seen = pilots[pilots.workload == piloted(study, name)]
        for threads in study.threads:
            found = {
                str(arm): float(part.loc[2 * part.second > part.second.max(), "tps"].mean())
                for arm, part in seen[seen.threads == threads].groupby("arm", sort=True)
            }
            if not found:
                raise BenchbookError(
                    f"workloads.{name}.rate: no pilot at {count(threads, 'thread')}; warm up again"
                )
            slower = min(found, key=lambda arm: found[arm])
            share, most = workload.rate.share, found[slower]
            row = Settled(name, threads, share, slower, round(most, 1), _down(share * most))
            settled.append(row._asdict())
    return settled


def told(settled: list[dict[str, Any]]) -> list[str]:
    """Say each settled rate in a sentence."""
    return [
        f"{row.workload}, {count(row.threads, 'thread')}: {row.rate} transactions a second, "
        f"{100 * row.share:g} % of what {row.slower_arm} does ({row.saturation_tps:g})"
        for row in (Settled(**one) for one in settled)
    ]


def of(study: Study, warm_up: Mapping[str, Any]) -> Rates:
    """Return the settled rates by workload and threads from `warm_up.json`; BenchbookError if one lacks."""
    found: dict[str, dict[int, int]] = {}
    for row in warm_up.get("rates", ()):
        found.setdefault(row["workload"], {})[int(row["threads"])] = int(row["rate"])
    for name, workload in study.workloads.items():
        lacking = [level for level in study.threads if not found.get(name, {}).get(level)]
        if isinstance(workload.rate, Rate) and lacking:
            raise BenchbookError(
                f"workloads.{name}.rate: the pilots settled none at {count(lacking[0], 'thread')}; "
                "run warm-up again with longer pilots, or write the rate as a number"
            )
    return found


def _down(rate: float) -> int:
    """Round a positive rate down to two significant digits."""
    if rate < 1:
        return 0
    step = 10 ** max(0, math.floor(math.log10(rate)) + 1 - DIGITS)
    return int(rate // step * step)
