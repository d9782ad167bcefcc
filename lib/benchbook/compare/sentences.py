"""Sentences made of numbers: one for each finding, with its interval and n, or the reason why not."""

from __future__ import annotations

from benchbook.compare.effects import Effect

NBSP = "\N{NO-BREAK SPACE}"
METRICS = {
    "qps": "QPS",
    "latency_p95_ms": "p95 latency",
    "latency_p99_ms": "p99 latency",
    "tps": "TPS",
    "lowest_qps": "lowest QPS",
    "cpu_proxy_cores": "processor time of the proxy",
    "cpu_proxy_for_a_query": "processor time of the proxy for a query",
    "cpu_server_cores": "processor time of the server",
    "cpu_server_for_a_query": "processor time of the server for a query",
    "cpu_tidb_cores": "processor time of TiDB without PD and TiKV",
    "cpu_tidb_for_a_query": "processor time of TiDB for a query, without PD and TiKV",
    "memory_proxy_mib": "memory of the proxy",
}


def percent(fraction: float) -> str:
    """Write a fraction as signed percent with one decimal and a real minus.

    >>> percent(-0.312)
    '−31.2\\xa0%'
    """
    return f"{_signed(fraction)}{NBSP}%"


def count(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> count(1, "block"), count(5, "block")
    ('1 block', '5 blocks')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def sentence(effect: Effect) -> str:
    """Say in one sentence what was found of a contrast."""
    contrast, interval = effect.contrast, effect.interval
    metric = METRICS.get(contrast.metric, contrast.metric)
    where = f"against {contrast.baseline} on {contrast.workload}"
    blocks = count(interval.n, "block")
    if interval.effect is None:
        return f"{contrast.treatment} {where}: {metric} not compared, because: {interval.reason}."
    if not effect.has_headline:
        return f"{contrast.treatment} has no single effect on {metric} {where}: {_range(effect)}, {blocks}."
    head = f"{contrast.treatment} {percent(interval.effect)} {metric} {where}"
    if not interval.is_known:
        return f"{head}, {blocks}, no interval: {interval.reason}."
    spread = f" ({_range(effect)})" if effect.depends else ""
    ends = f"[{_signed(interval.low)}, {_signed(interval.high)}]"
    return f"{head} {ends}{spread}, {blocks}, {100 * interval.level:g}{NBSP}%."


def _range(effect: Effect) -> str:
    points = [(part.effect, threads) for threads, part in effect.by_threads if part.effect is not None]
    (low, low_threads), (high, high_threads) = min(points), max(points)
    return f"from {percent(low)} at {low_threads} to {percent(high)} at {count(high_threads, 'thread')}"


def _signed(fraction: float) -> str:
    text = f"{abs(100 * fraction):.1f}"
    if float(text) == 0:
        return text
    return ("\N{MINUS SIGN}" if fraction < 0 else "+") + text
