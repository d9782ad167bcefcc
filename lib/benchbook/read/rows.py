"""One judged run → its rows of the tidy tables."""

import datetime
import math
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from benchbook.core.util import numeric_equality
from benchbook.core.util.histogram import bucket_percentile, value_of
from benchbook.read import checks_cluster, costs
from benchbook.read.evidence import Evidence
from benchbook.read.intervals import ReportLine
from benchbook.read.log import require_printed
from benchbook.read.schemas import SCHEMAS
from benchbook.read.validity import Judgement

Columns = dict[str, Any]

OF_SCHEDULE = ("run_id", "block", "position", "group", "arm", "workload", "threads", "seed")
WINDOW = (
    *("events", "transactions", "reads", "writes", "other", "queries", "ignored_errors", "reconnects"),
    *("latency_min_ms", "latency_avg_ms", "latency_max_ms"),
)
SERIES = [name for name in SCHEMAS["intervals"] if name in ReportLine._fields]
LOWEST_S = 5
SHOWN = (95, 99)
CARRYING_SHARE = 0.1
"""Share of the events beyond a percentile that may carry a pause between turns."""
# Parts of a TiDB cluster that are programs of their own; all of them together are the server.
OF_CLUSTER = ("tidb", "tikv", "pd")


def run_row(judged: Judgement, scheduled: dict[str, Any], monitor: pa.Table, folder: str) -> Columns:
    """Row of a valid run in `runs`; `started_s` counts from the epoch until all runs are known."""
    evidence, log = judged.evidence, judged.evidence.log
    observations, final, measured = evidence.observed, evidence.final, evidence.active_s
    full = log.histogram.full() if log.histogram else None
    percentiles = {p: None if full is None else bucket_percentile(full, p) for p in SHOWN}
    ended_s = require_printed(final.total_time_s, "total time")
    whole = {
        **{name: scheduled[name] for name in OF_SCHEDULE},
        **{name: observations[name] for name in ("attempt", "started_utc", "sysbench_s")},
        "clients": len(evidence.clients),
        "rate": evidence.planned.rate,
        "started_s": _begun_s(evidence),
        "server_started_s": _server_started(evidence),
        "discard_s": evidence.planned.discard_s,
        "run_s": evidence.planned.run_s,
        "measured_s": measured,
        **{name: getattr(final, name) for name in WINDOW},
        "qps": require_printed(final.queries, "queries") / measured,
        "lowest_qps": _lowest_mean(judged),
        "tps": require_printed(final.transactions, "transactions") / measured,
        "printed_percentile": final.percentile,
        "printed_percentile_ms": costs.to_number(final.latency_percentile_ms),
        **{f"latency_p{p}_ms": costs.to_number(value) for p, value in percentiles.items()},
        **{"order": "runs", "turn_ms": None, "turns": None, "active_s": math.nan, "stopped": ""},
        "machine_speed": math.nan,
        **_load_columns(monitor, evidence.clock_s[0], ended_s, observations),
        "ledger": judged.ledger,
        "event": checks_cluster.describe_event(evidence),
        "warnings": "; ".join(judged.warnings),
        "folder": folder,
    }
    return whole | (columns_in_turns(evidence) if evidence.is_in_turns else {})


def columns_in_turns(run: Evidence) -> Columns:
    """Columns of a run in turns that differ from a whole run's; a monitor second holds all arms.

    Of latencies it has what the pauses between turns don't reach: the mean by Little's law over the active
    seconds; a percentile where events that carry a pause are fewer than a tenth of those beyond it.
    """
    turns, threads, events = run.get("turns"), run.plan_value("threads"), run.final.events or 0
    used = run.turn_cpu_s if run.active_s else {}
    cores = {part: costs.to_number(cpu_s) / run.active_s for part, cpu_s in used.items()}
    carry = threads * turns["count"]
    lost = [
        *("latency_max_ms", "printed_percentile_ms", "lowest_qps"),
        *(f"latency_p{p}_ms" for p in SHOWN if carry >= CARRYING_SHARE * events * (1 - p / 100)),
        *(f"{way}_{part}_mib_s" for way in ("received", "sent") for part in ("proxy", "server")),
    ]
    return {
        "order": run.planned.order,
        "turn_ms": run.planned.turn_ms,
        "turns": turns["count"],
        "active_s": run.active_s,
        "machine_speed": 1000 / turns["loop_us"] if turns.get("loop_us") else math.nan,
        "stopped": ", ".join(turns["stopped"]),
        "latency_avg_ms": 1000 * threads * run.active_s / events if events else math.nan,
        **{f"cpu_{part}_cores": cores.get(part, math.nan) for part in ("client", "proxy", "server")},
        **dict.fromkeys(lost, math.nan),
    }


def turn_columns(judged: Judgement) -> Columns:
    """The run's own turns, as arrays without `run_id`; of a whole run none."""
    run = judged.evidence
    taken = run.taken if run.is_in_turns and run.turns else []
    mine = [(number, turn) for number, turn in enumerate(taken, start=1) if turn.arm == run.planned.arm]
    table = np.array([(number, turn.begin_us, turn.end_us) for number, turn in mine], dtype=np.int64)
    return dict(zip(("turn", "begin_us", "end_us"), table.reshape(-1, 3).T, strict=True))


def _begun_s(evidence: Evidence) -> float:
    return datetime.datetime.fromisoformat(evidence.observed["started_utc"]).timestamp()


def _server_started(evidence: Evidence) -> float:
    """Start of the youngest server of a run, from the epoch; NaN if its age is unknown."""
    ages = [costs.to_number(server.observed.get("uptime_before_s")) for server in evidence.servers]
    return _begun_s(evidence) - (math.nan if any(map(math.isnan, ages)) else min(ages))


def interval_columns(judged: Judgement) -> Columns:
    """The run's columns of `intervals`, as arrays without `run_id`."""
    reports = judged.evidence.log.intervals
    columns: Columns = {name: reports.column(name) for name in SERIES}
    columns["is_discarded"] = columns["second"] <= judged.evidence.clock_s[0]
    return columns


def histogram_columns(judged: Judgement) -> Columns:
    """The run's columns of `histograms`, as arrays without `run_id`."""
    bars, none = judged.evidence.log.histogram, np.array([], dtype=np.int64)
    buckets, counts = (bars.buckets, bars.counts) if bars else (none, none)
    return {"bucket": buckets, "value_ms": np.asarray(value_of(buckets)), "count": counts}


def _load_columns(monitor: pa.Table, discard_s: float, end_s: float, observations: dict[str, Any]) -> Columns:
    second = monitor["second"].to_numpy()
    # A sample covers the second before it.
    inside = (second >= discard_s + 0.5) & (second <= end_s + 0.5)
    part, cores = monitor["part"], monitor["cpu_cores"].to_numpy()
    parts = ("client", "proxy", "server", *OF_CLUSTER, "machine")
    at = {name: inside & compute.equal(part, name).to_numpy() for name in parts}
    used = {name: costs.nan_mean(cores[at[name]]) for name in parts}
    stolen = costs.nan_mean(monitor["steal_pct"].to_numpy()[at["machine"]])
    memory, hops = monitor["rss_mib"].to_numpy(), ("proxy", "server")
    most = {name: np.fmax.reduce(memory[at[name]], initial=math.nan) for name in (*hops, *OF_CLUSTER)}
    bytes_of = {way: monitor[f"{way}_mib_s"].to_numpy() for way in ("received", "sent")}
    carried = {
        f"{way}_{hop}_mib_s": costs.nan_mean(bytes_of[way][at[hop]]) for hop in hops for way in bytes_of
    }
    return {
        **{f"cpu_{name}_cores": used[name] for name in ("client", "proxy", "server", *OF_CLUSTER)},
        "cpu_machine_pct": 100 * used["machine"] / observations.get("machine_cores", math.nan),
        **{f"memory_{name}_mib": float(mib) for name, mib in most.items()},
        **carried,
        "steal_pct": observations["steal_pct"] if math.isnan(stolen) else stolen,
    }


def _lowest_mean(judged: Judgement) -> float:
    """Lowest mean of five seconds of the window, NaN if it is shorter than that."""
    reports = judged.evidence.log.intervals
    qps = reports.column("qps")[reports.column("second") > judged.evidence.clock_s[0]]
    whole = len(qps) // LOWEST_S
    five = qps[: whole * LOWEST_S].reshape(whole, LOWEST_S)
    return min(map(numeric_equality.exact_mean, five)) if whole else math.nan
