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
from benchbook.show.table import Column, Table, long, number

STORES = "TiKV"
UNISTORE = "unistore"
# Column of `runs`, heading, unit. What no run has is left out. Stores are called what they are (`_stores`).
_USED = (
    ("lowest_qps", "Lowest QPS", "of 5 s"),
    ("cpu_client_cores", "Client", "cores"),
    ("cpu_proxy_cores", "Proxy", "cores"),
    ("cpu_server_cores", "Server", "cores"),
    ("cpu_tidb_cores", "TiDB", "cores"),
    ("cpu_tikv_cores", STORES, "cores"),
    ("cpu_pd_cores", "PD", "cores"),
    ("memory_proxy_mib", "Proxy", "MiB"),
    ("memory_server_mib", "Server", "MiB"),
    ("memory_tidb_mib", "TiDB", "MiB"),
    ("memory_tikv_mib", STORES, "MiB"),
    ("memory_pd_mib", "PD", "MiB"),
    ("received_proxy_mib_s", "Proxy gets", "MiB/s"),
    ("sent_proxy_mib_s", "sends", "MiB/s"),
    ("received_server_mib_s", "Server gets", "MiB/s"),
    ("sent_server_mib_s", "sends", "MiB/s"),
)


def parts(runs: pd.DataFrame, facts: Mapping[str, Any] | None = None) -> Table:
    """List what client, proxy and server used in each cell: medians over its runs.

    Bytes are those that TCP carried, without headers. A proxy's are of both its sides. `facts` is the content
    of `facts.json`, which says what the stores of a cluster are.
    """
    stores = _stores(facts)
    heading = f"{stores[0].upper()}{stores[1:]}"
    used = [(name, heading if label == STORES else label, unit) for name, label, unit in _USED]
    shown = [
        (name, number(label, unit)) for name, label, unit in used if name in runs and runs[name].notna().any()
    ]
    rows = [
        [workload, threads, arm, *(_middle(own[name]) for name, _ in shown)]
        for (workload, threads, arm), own in runs.groupby(["workload", "threads", "arm"], sort=True)
    ]
    columns = [Column("Workload"), number("Threads"), Column("Arm"), *(column for _, column in shown)]
    is_cluster = any(name == "cpu_tidb_cores" for name, _ in shown)
    together = f" The server of a TiDB cluster is TiDB, {stores} and PD together." if is_cluster else ""
    caption = (
        "Processor time, memory and bytes of each part while a cell was measured, medians over its runs. "
        f"Bytes are those that TCP carried, without headers; a proxy's are those of both its sides.{together}"
    )
    return Table("parts", "What the parts used", columns, rows, caption, "No run was valid.")


def stability(runs: pd.DataFrame, intervals: pd.DataFrame) -> tuple[Table, ...]:
    """List every run of five minutes or more: its slowest second, its stalls, and the levels it stayed at.

    No table where all runs are shorter.
    """
    about = runs.set_index("run_id")
    rows = []
    for one in seconds.long_runs(runs, intervals):
        run = about.loc[one.run_id]
        rows.append(
            [
                *(run.workload, run.threads, run.arm, run.block),
                one.seconds,
                numbers.significant(one.median_qps),
                numbers.significant(one.lowest_qps),
                _stalls(one.stalls),
                _modes(one.modes),
            ]
        )
    columns = [
        Column("Workload"), number("Threads"), Column("Arm"), number("Block"), number("Seconds"),
        number("QPS", "median"), number("Slowest", "second"), long("Stalls"), long("Levels"),
    ]  # fmt: skip
    caption = (
        "A stall is a second with less than a tenth of its run's median. A level is a speed at which the run "
        "stayed for a twentieth of its seconds or more, with a valley between it and the next."
    )
    return (Table("stability", "How steady long runs were", columns, rows, caption),) if rows else ()


def dips(
    runs: pd.DataFrame, intervals: pd.DataFrame, facts: Mapping[str, Any] | None, arms: Mapping[str, str]
) -> tuple[Table, ...]:
    """List what an event in the middle of each run cost, beside runs without it over the same seconds.

    `arms` has their readable names.

    No table where no arm has an event.
    """
    about = runs.set_index("run_id")
    rows = []
    for one in seconds.dips(runs, intervals, seconds.events(facts)):
        run = about.loc[one.run_id]
        rows.append(
            [
                arms[run.arm],
                run.block,
                "yes" if one.has_event else "no",
                numbers.significant(one.before_qps),
                numbers.significant(one.lowest_qps),
                one.silent_s,
                "not in this run" if one.recovered_s is None else str(one.recovered_s),
                numbers.significant(one.lost_s),
                run.warnings if one.has_event else "",
            ]
        )
    columns = [
        Column("Arm"), number("Block"), Column("Event"), number("QPS before", "median"),
        number("Slowest", "second after"), number("Silent", "s"), number("Recovered", "after s"),
        number("Lost", "s of QPS before"), long("What was done"),
    ]  # fmt: skip
    caption = (
        "Each run is held against its own seconds before the event; a run without it is looked at over the "
        "same seconds. A silent second has less than a tenth of the median before. A run has recovered when "
        "two windows of 5 s in a row are no slower than its slowest such window before. This describes each "
        "run and decides nothing; the effects above are means over whole runs, the event included."
    )
    return (Table("dips", "What the event cost", columns, rows, caption),) if rows else ()


def _stores(facts: Mapping[str, Any] | None) -> str:
    """Name the stores of a TiDB cluster: on one machine they are unistore, which speaks TiKV's protocol."""
    engines = [arm.get("engine") or {} for arm in ((facts or {}).get("arms") or {}).values()]
    is_unistore = any(str(engine.get("storage") or "").startswith(UNISTORE) for engine in engines)
    return f"store ({UNISTORE})" if is_unistore else STORES


def _middle(values: pd.Series) -> str:
    """Write the median; nothing where an arm has no such part."""
    return numbers.significant(values.median()) if values.notna().any() else ""


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


CAPTION = (
    "Counted before each run: rows of a region are read and written at its leader. A cluster is started anew "
    "for each block, so leaders may be elsewhere in another one."
)
ZONES = (
    "Each store is in a zone of its own. What TiDB asks of a leader in its own zone goes without the added "
    "latency; the last column says how many of all leaders those are."
)


def leaders(seen: Evidence) -> list[Table]:
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
