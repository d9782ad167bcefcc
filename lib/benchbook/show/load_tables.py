"""Tables of what runs asked of the machine, what long ones did by the second, and where leaders were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.compare import seconds, words
from benchbook.core.runfolder import EVIDENCE, RunFolder
from benchbook.show import numbers
from benchbook.show.evidence import Evidence
from benchbook.show.table import Table, tabulated

STORES = "TiKV"
UNISTORE = "unistore"


def parts(runs: pd.DataFrame, facts: Mapping[str, Any] | None = None) -> Table:
    """List what client, proxy and server used in each cell: medians over its runs.

    Bytes are those that TCP carried, without headers. A proxy's are of both its sides. `facts` is the content
    of `facts.json`, which says what the stores of a cluster are: on one machine unistore, which speaks TiKV's
    protocol.
    """
    engines = [arm.get("engine") or {} for arm in ((facts or {}).get("arms") or {}).values()]
    is_unistore = any(str(engine.get("storage") or "").startswith(UNISTORE) for engine in engines)
    stores = f"store ({UNISTORE})" if is_unistore else STORES
    present = [name for name in runs if runs[name].notna().any()]
    cells = runs.groupby(["workload", "threads", "arm"], sort=True)
    return tabulated("parts", cells, stores=stores, present=present)


def stability(runs: pd.DataFrame, intervals: pd.DataFrame) -> tuple[Table, ...]:
    """List every run of five minutes or more: its slowest second, its stalls, and the levels it stayed at.

    No table where all runs are shorter.
    """
    about = runs.set_index("run_id")
    rows = [(about.loc[one.run_id], one) for one in seconds.long_runs(runs, intervals)]
    return (tabulated("stability", rows, stalls=_stalls, modes=_modes),) if rows else ()


def dips(
    runs: pd.DataFrame, intervals: pd.DataFrame, facts: Mapping[str, Any] | None, arms: Mapping[str, str]
) -> tuple[Table, ...]:
    """List what an event in the middle of each run cost, beside runs without it over the same seconds.

    `arms` has their readable names. No table where no arm has an event.
    """
    about = runs.set_index("run_id")
    found = seconds.dips(runs, intervals, seconds.events((facts or {}).get("arms")))
    rows = [(about.loc[one.run_id], one) for one in found]
    return (tabulated("dips", rows, arms=arms),) if rows else ()


def _stalls(stalls: tuple[seconds.Stall, ...]) -> str:
    if not stalls:
        return "none"
    first = [f"second {stall.second:g} ({stall.length_s} s)" for stall in stalls[:5]]
    more = f" and {len(stalls) - 5} more" if len(stalls) > 5 else ""
    return f"{len(stalls)}: {', '.join(first)}{more}"


def _modes(modes: tuple[seconds.Mode, ...]) -> str:
    if not modes:
        return "too few seconds to tell"
    if len(modes) == 1:
        return f"one, {numbers.significant(modes[0].qps)}"
    text = [f"{numbers.significant(mode.qps)} for {100 * mode.share:.0f} %" for mode in modes]
    return f"{len(modes)}: {', '.join(text)}"


def leaders(seen: Evidence) -> list[Table]:
    """Return how many regions each store led, and how many of them beside TiDB, as a table; none for a study
    without clusters."""
    arms = (seen.facts or {}).get("arms") or {}
    rows = []
    for arm, looks in _looks(seen).items():
        own = arms.get(arm) or arms.get(arm.removesuffix(words.AGAIN)) or {}
        # The store that each TiDB shares a zone with, where there are zones.
        zones = ((own.get("engine") or {}).get("cluster") or {}).get("zones") or {}
        beside = zones.get("tidb_beside") or ()
        name = words.labels(seen.findings, "arms").get(arm, arm)
        regions = _span([sum(look.values()) for look in looks])
        stores = sorted(set().union(*looks))
        led = ", ".join(f"{store} {_span([look[store] for look in looks])}" for store in stores)
        rows.append([name, len(looks), regions, led, _share(looks, beside)])
    return [tabulated("leaders", rows, has_zones=any(row[-1] for row in rows))] if rows else []


def _looks(seen: Evidence) -> dict[str, list[Counter[str]]]:
    """Return how many regions each store led before each run, by arm."""
    found: dict[str, list[Counter[str]]] = {}
    runs = seen.runs
    if not runs.cpu_tidb_cores.notna().any():
        return found
    for arm, name in zip(runs.arm, runs.folder, strict=True):
        folder = RunFolder(seen.folder / name)
        told = folder.evidence() if (folder.path / EVIDENCE).is_file() else {}
        cluster = (told.get("arrangement") or {}).get("cluster") or {}
        led = [store for store in ((cluster.get("before") or {}).get("leaders") or {}).values() if store]
        if led:
            found.setdefault(arm, []).append(Counter(led))
    return found


def _share(looks: Sequence[Counter[str]], beside: Sequence[str]) -> str:
    """Return the mean share of leaders in the zone of the TiDB that asks; each TiDB is asked as much."""
    if not beside:
        return ""
    shares = [sum(look[store] for store in beside) / len(beside) / sum(look.values()) for look in looks]
    return numbers.decimal(100 * sum(shares) / len(shares))


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
