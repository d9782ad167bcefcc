"""Tables of what runs asked of the machine, and of what long runs did second by second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchbook.compare import dips as compared
from benchbook.compare import stability as found
from benchbook.show import numbers
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
    shown = [(name, number(label, unit)) for name, label, unit in used if _has(runs, name)]
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
    for one in found.of_runs(runs, intervals):
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
    for one in compared.of_runs(runs, intervals, compared.events(facts)):
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


def _has(runs: pd.DataFrame, name: str) -> bool:
    return name in runs and bool(runs[name].notna().any())


def _stalls(stalls: tuple[found.Stall, ...]) -> str:
    if not stalls:
        return "none"
    first = [f"second {stall.second:g} ({stall.length_s} s)" for stall in stalls[:5]]
    more = f" and {len(stalls) - 5} more" if len(stalls) > 5 else ""
    return f"{len(stalls)}: {', '.join(first)}{more}"


def _modes(modes: tuple[found.Mode, ...]) -> str:
    if not modes:
        return "too few seconds to tell"
    if len(modes) == 1:
        return f"one, {numbers.significant(modes[0].qps)}"
    text = [f"{numbers.significant(mode.qps)} for {100 * mode.share:.0f} %" for mode in modes]
    return f"{len(modes)}: {', '.join(text)}"
