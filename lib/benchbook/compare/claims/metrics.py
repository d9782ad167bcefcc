"""Metrics of documents under our names: their column of `runs`, and the comparable ones."""

from benchbook.core.published.table_cells import both_metrics

# What documents print, the column of `runs` that has it, and what that is multiplied by.
COLUMNS = {
    "qps": ("qps", 1),
    "tps": ("tps", 1),
    "qps_min": ("lowest_qps", 1),
    "latency_avg_ms": ("latency_avg_ms", 1),
    "latency_p95_ms": ("latency_p95_ms", 1),
    "latency_p99_ms": ("latency_p99_ms", 1),
    "cpu_proxy_pct": ("cpu_proxy_cores", 100),
    "cpu_tidb_pct": ("cpu_tidb_cores", 100),
    "cpu_tikv_pct": ("cpu_tikv_cores", 100),
    "memory_proxy_mb": ("memory_proxy_mib", 1.048576),
}
# What is known of each second of a run.
SECONDS = ("qps", "tps")
# Seconds that loading took: it is timed once, when data are prepared, so there is no contrast of runs.
LOADING = "load_s"
# The part whose processors a printed metric is about: conditions hold it against what the part may use.
USED = {"cpu_proxy_pct": "proxy", "cpu_tidb_pct": "server"}
# Ours that are one column of `runs` over another.
DERIVED = {f"{cpu}_for_a_query": (f"{cpu}_cores", "qps") for cpu in ("cpu_proxy", "cpu_server", "cpu_tidb")}


def metric_column(metric: str) -> str:
    """Name in findings and sentences of a metric that documents print.

    >>> metric_column("qps_min"), metric_column("cpu_proxy_pct / qps"), metric_column("block_cache_gb")
    ('lowest_qps', 'cpu_proxy_for_a_query', 'block_cache_gb')
    """
    columns = tuple(COLUMNS[name][0] for name in both_metrics(metric) if name in COLUMNS)
    derived = next((name for name, pair in DERIVED.items() if pair == columns), None)
    return derived or (columns[0] if columns and "/" not in metric else metric)


def is_compared(metric: str) -> bool:
    """True if a contrast of two arms can be made of a metric: effects are ratios, of any unit."""
    return metric_column(metric) in {*DERIVED, *(column for column, _ in COLUMNS.values())}


def is_known(metric: str, across: str | None) -> bool:
    """True if a study has a metric: for each run, for each second, or for the loading."""
    if metric == LOADING:
        return across is None
    columns = SECONDS if across == "second" else COLUMNS
    return across in (None, "second") and all(name in columns for name in both_metrics(metric))
