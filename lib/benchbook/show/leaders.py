"""Where the leaders of a TiDB cluster's regions were while its arms were measured, in a line an arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.compare import words
from benchbook.core.runfolder import EVIDENCE, RunFolder
from benchbook.show import numbers
from benchbook.show.evidence import Evidence
from benchbook.show.table import Column, Table, long, number

CAPTION = (
    "Counted before each run: rows of a region are read and written at its leader. A cluster is started anew "
    "for each block, so leaders may be elsewhere in another one."
)
ZONES = (
    "Each store is in a zone of its own. What TiDB asks of a leader in its own zone goes without the added "
    "latency; the last column says how many of all leaders those are."
)


def tables(seen: Evidence) -> list[Table]:
    """Return how many regions each store led, and how many of them beside TiDB, as a table; none for a study
    without clusters."""
    arms = (seen.facts or {}).get("arms") or {}
    rows = []
    for arm, looks in _looks(seen).items():
        beside = _beside(arms.get(arm) or arms.get(arm.removesuffix(words.AGAIN)) or {})
        name = words.labels(seen.findings, "arms").get(arm, arm)
        regions = _span([sum(look.values()) for look in looks])
        stores = sorted(set().union(*looks))
        led = ", ".join(f"{store} {_span([look[store] for look in looks])}" for store in stores)
        rows.append([name, len(looks), regions, led, _share(looks, beside)])
    columns = [Column("Arm"), number("Runs"), number("Regions"), long("Led by")]
    columns += [number("In TiDB's zone", "%")]
    caption = f"{CAPTION} {ZONES}" if any(row[-1] for row in rows) else CAPTION
    return [Table("leaders", "Where leaders were", columns, rows, caption)] if rows else []


def _looks(seen: Evidence) -> dict[str, list[Counter[str]]]:
    """Return how many regions each store led before each run, by arm."""
    found: dict[str, list[Counter[str]]] = {}
    runs = seen.runs
    if "cpu_tidb_cores" not in runs or not runs.cpu_tidb_cores.notna().any():
        return found
    for arm, name in zip(runs.arm, runs.folder, strict=True):
        folder = RunFolder(seen.folder / name)
        told = folder.evidence() if (folder.path / EVIDENCE).is_file() else {}
        cluster = (told.get("arrangement") or {}).get("cluster") or {}
        led = [store for store in ((cluster.get("before") or {}).get("leaders") or {}).values() if store]
        if led:
            found.setdefault(arm, []).append(Counter(led))
    return found


def _beside(facts: Mapping[str, Any]) -> Sequence[str]:
    """Return the store that each TiDB shares a zone with; nothing where there are no zones."""
    cluster = (facts.get("engine") or {}).get("cluster") or {}
    stores: Sequence[str] = (cluster.get("zones") or {}).get("tidb_beside") or ()
    return stores


def _share(looks: Sequence[Counter[str]], beside: Sequence[str]) -> str:
    """Return the mean share of leaders in the zone of the TiDB that asks; each TiDB is asked as much."""
    if not beside:
        return ""
    shares = [sum(look[store] for store in beside) / len(beside) / sum(look.values()) for look in looks]
    return numbers.decimal(100 * sum(shares) / len(shares))


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
