"""Run folders made up from a seed: whole, valid, and as large as a campaign's.

A few different outputs of sysbench are written once; the folders share them by hard link, so that ten
thousand folders fit on a small disk. Plan, evidence and manifest are each folder's own.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchbook.core.artifacts import run_folder
from benchbook.core.study import sysbench_options
from benchbook.core.study.model import PlannedRun
from benchbook.core.util import files, histogram
from benchmarks.order import study

THREADS, DISCARD_S, PERCENTILE, TPS = 16, 15, 99, 800
CLIENT_CORES = 0.6
TABLES, TABLE_SIZE = 2, 20_000
# Reading, writing and other statements of one transaction of oltp_read_write.
STATEMENTS = (14, 4, 2)
DIFFERENT = 20
ARMS = ("direct", "haproxy")
COLUMNS = ("run_id", "position", "block", "group", "arm", "workload", "threads", "seed")


def campaign(folder: Path, runs: int, seconds: int = 600) -> pd.DataFrame:
    """Write `runs` run folders of `seconds` report lines into `folder/raw`; return their schedule."""
    raw = folder / "raw"
    shared = [_shared(folder / f"shared-{number}", number, seconds) for number in range(min(DIFFERENT, runs))]
    (folder / "void").mkdir(parents=True, exist_ok=True)
    plans = [_plan(position, seconds) for position in range(runs)]
    for plan in plans:
        _folder(raw / plan["run_id"], plan, *shared[plan["position"] % len(shared)])
    return pd.DataFrame([{name: plan[name] for name in COLUMNS} for plan in plans])


def output(number: int, seconds: int) -> tuple[str, tuple[int, int]]:
    """Return what sysbench 1.0.20 prints in a run, and its transactions in discard and window."""
    random = np.random.default_rng([20261121, number])
    counts = random.poisson(TPS * np.exp(random.normal(0, 0.05, seconds)))
    # Each thread has done as much as the others, which makes the means of threads exact.
    split = DISCARD_S
    for part in (slice(0, split), slice(split, seconds)):
        counts[part.stop - 1] += -counts[part].sum() % THREADS
    parts = int(counts[:split].sum()), int(counts[split:].sum())
    lines = [
        "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)",
        "",
        "Running the test with following options:",
        f"Number of threads: {THREADS}",
        "Report intermediate results every 1 second(s)",
        f"Report checkpoint(s) at {DISCARD_S} seconds",
        "Initializing random number generator from seed (7).",
        *("", "", "Initializing worker threads...", "", "Threads started!", ""),
    ]
    latencies = histogram.value_of(histogram.bucket_of(random.lognormal(np.log(60), 0.3, seconds)))
    for second, (done, latency) in enumerate(zip(counts.tolist(), latencies, strict=True), 1):
        lines.append(_report(second, done * 1.0007, float(latency)))
        if second == DISCARD_S:
            lines.append(f"[ {DISCARD_S}s ] Checkpoint report:")
            lines += _totals(parts[0], DISCARD_S, DISCARD_S, _counts(random, parts[0]))
    found = _counts(random, parts[1])
    lines += [*_histogram(found), *_totals(parts[1], seconds - DISCARD_S, seconds, found)]
    return "\n".join(lines) + "\n", parts


def _report(second: int, tps: float, latency: float) -> str:
    rates = [round(each * tps, 2) for each in STATEMENTS]
    split = "/".join(f"{rate:.2f}" for rate in rates)
    return (
        f"[ {second}s ] thds: {THREADS} tps: {tps:.2f} qps: {sum(rates):.2f} (r/w/o: {split}) "
        f"lat (ms,{PERCENTILE}%): {latency:.2f} err/s: 0.00 reconn/s: 0.00"
    )


def _counts(random: np.random.Generator, events: int) -> np.ndarray:
    """Return events by bucket, whose latencies fill 95 % of the threads' time."""
    mean_ms = 0.95 * 1000 * THREADS / TPS
    # The mean of a lognormal is exp(mu + sigma^2 / 2).
    values = random.lognormal(np.log(mean_ms) - 0.4**2 / 2, 0.4, 20_000)
    shape = np.bincount(histogram.bucket_of(values), minlength=histogram.BUCKETS) / values.size
    return random.multinomial(events, shape)


def _histogram(counts: np.ndarray) -> list[str]:
    full = [f"{histogram.value_of(at):12.3f} |{'*' * round(40 * counts[at] / counts.max()):<40} {counts[at]}"
            for at in np.flatnonzero(counts)]  # fmt: skip
    head = [
        "Latency histogram (values are in milliseconds)",
        "       value  ------------- distribution ------------- count",
    ]
    return [*head, *full, " "]


def _totals(events: int, window_s: int, total_s: int, counts: np.ndarray) -> list[str]:
    reads, writes, other = (each * events for each in STATEMENTS)
    queries, values = reads + writes + other, np.asarray(histogram.value_of(np.flatnonzero(counts)))
    sum_ms = float((values * counts[counts > 0]).sum())
    mean_ms, percentile_ms = sum_ms / events, float(histogram.bucket_percentile(counts, PERCENTILE) or 0.0)
    return [
        "SQL statistics:",
        "    queries performed:",
        f"        read:                            {reads}",
        f"        write:                           {writes}",
        f"        other:                           {other}",
        f"        total:                           {queries}",
        f"    transactions:                        {events:<6d} ({events / window_s:.2f} per sec.)",
        f"    queries:                             {queries:<6d} ({queries / window_s:.2f} per sec.)",
        "    ignored errors:                      0      (0.00 per sec.)",
        "    reconnects:                          0      (0.00 per sec.)",
        "",
        "General statistics:",
        f"    total time:                          {total_s + 0.0123:.4f}s",
        f"    total number of events:              {events}",
        "",
        "Latency (ms):",
        f"         min: {values[0]:39.2f}",
        f"         avg: {mean_ms:39.2f}",
        f"         max: {values[-1]:39.2f}",
        f"         {PERCENTILE}th percentile: {percentile_ms:27.2f}",
        f"         sum: {sum_ms:39.2f}",
        "",
        "Threads fairness:",
        f"    events (avg/stddev):           {events / THREADS:.4f}/31.50",
        f"    execution time (avg/stddev):   {sum_ms / THREADS / 1000:.4f}/0.01",
        "",
    ]


def _monitor(random: np.random.Generator, seconds: int) -> str:
    rows = ["second,part,cpu_cores,rss_mib,steal_pct,psi_cpu_pct,psi_io_pct,psi_memory_pct"]
    used = random.uniform(0.3, 0.9, (seconds, 3))
    used[:, 0] = CLIENT_CORES
    for second, use in enumerate(used, 1):
        rows += [
            f"{second}.014,{part},{cores:.4f},{100 * cores:.2f},,,,"
            for part, cores in zip(("client", "proxy", "server"), use, strict=True)
        ]
        rows.append(f"{second}.014,machine,{use.sum():.4f},1177.12,0.0,{40 * use[0]:.2f},2.09,0.0")
    return "\n".join(rows) + "\n"


def _shared(folder: Path, number: int, seconds: int) -> tuple[Path, tuple[int, int], dict[str, Any]]:
    """Write output, stderr and monitor once; return the folder, transactions, and the manifest's lines."""
    folder.mkdir(parents=True)
    text, parts = output(number, seconds)
    (folder / run_folder.OUT).write_text(text, encoding="utf-8")
    (folder / run_folder.ERR).write_text("", encoding="utf-8")
    monitor = _monitor(np.random.default_rng([7, number]), seconds)
    (folder / run_folder.MONITOR).write_text(monitor, encoding="utf-8")
    return folder, parts, {path.name: _listed(path) for path in folder.iterdir()}


def _listed(path: Path) -> dict[str, Any]:
    return {"sha256": files.digest_file(path), "bytes": path.stat().st_size}


def _plan(position: int, seconds: int) -> dict[str, Any]:
    block, arm = position // 2 + 1, ARMS[position % 2]
    workload = study(1).workloads["oltp_point_select"].model_dump(mode="json")
    group = f"b{block:02d}-oltp_read_write-t{THREADS:04d}"
    return {
        "format": 1, "study": "made-up", "run_id": f"{group}-{arm}-{position:010x}", "block": block,
        "position": position, "group": group, "arm": arm, "arm_setting": {"access": "haproxy"},
        "workload": "oltp_read_write", "script": "oltp_read_write", "options": workload, "threads": THREADS,
        "discard_s": DISCARD_S, "run_s": seconds - DISCARD_S, "percentile": PERCENTILE, "rate": 0, "seed": 7,
        "tables": TABLES, "table_size": TABLE_SIZE, "conditions": {},
    }  # fmt: skip


def _folder(
    path: Path, plan: dict[str, Any], shared: Path, parts: tuple[int, int], listed: dict[str, Any]
) -> None:
    path.mkdir(parents=True)
    for name in listed:
        os.link(shared / name, path / name)
    seen = _evidence(plan, sum(parts))
    for name, content in ((run_folder.PLAN, plan), (run_folder.EVIDENCE, seen)):
        (path / name).write_text(_json(content), encoding="utf-8")
    own = {name: _listed(path / name) for name in (run_folder.PLAN, run_folder.EVIDENCE)}
    manifest = {"format": 1, "run_id": plan["run_id"], "attempt": 1, "files": {**listed, **own}}
    (path / run_folder.MANIFEST).write_text(_json(manifest), encoding="utf-8")


def _json(value: Any) -> str:
    return files.json.dumps(value, sort_keys=True, indent=1)


def _argv(plan: dict[str, Any]) -> list[str]:
    place = {
        "db-driver": "mysql", "mysql-host": "127.0.0.1", "mysql-port": "33060", "mysql-db": "sbtest",
        "mysql-ssl": "off",
    }  # fmt: skip
    run = PlannedRun.of(plan)
    own, of_script = place | sysbench_options.general_options(run), sysbench_options.of_script(run)
    return [
        "sysbench", "--config-file=/run/account.cnf", *(f"--{name}={value}" for name, value in own.items()),
        plan["script"], *(f"--{name}={value}" for name, value in of_script.items()), "run",
    ]  # fmt: skip


def _state() -> dict[str, Any]:
    """Return what a server that nobody changed or used between two runs leaves in the evidence."""
    same = {"at_start": "s", "before": "s", "after": "s"}
    between = {
        "seconds": 2.0, "uptime_s": 2, "connections": 3, "own": 3, "refused": 0, "counters": {},
        "not_held": {}, "is_shared": False,
    }  # fmt: skip
    return {"settings": same, "tables": same, "written_between": {}, "not_held": {}, "between": between}


def _evidence(plan: dict[str, Any], done: int) -> dict[str, Any]:
    lasted = plan["discard_s"] + plan["run_s"] + 0.05
    hours, rest = divmod(plan["position"] * (plan["discard_s"] + plan["run_s"]), 3600)
    who = {
        "pid": 10, "started": 5, "version": "10.11.6", "datadir": "/d/", "port": 33060, "config_hash": "c",
        "proxy_pid": 11, "proxy_started": 6,
    }  # fmt: skip
    sizes = {f"sbtest{number}": TABLE_SIZE for number in range(1, TABLES + 1)}
    reads = STATEMENTS[0] * done
    grown = {
        "Com_select": reads, "Com_begin": done, "Com_commit": done, "Connections": THREADS,
        "Com_stmt_execute": sum(STATEMENTS) * done, "Com_stmt_prepare": THREADS * (9 * TABLES + 2),
        "Com_update": 2 * done, "Com_delete": done, "Com_insert": done, "Rows_sent": 311 * done,
        "Ssl_accepts": 0,
    }  # fmt: skip
    return {
        "attempt": 1, "argv": _argv(plan),
        "exit_code": 0, "ended_by": "itself", "sysbench_s": lasted, "machine_cores": 2,
        "started_utc": f"2026-01-{1 + hours // 24:02d}T{hours % 24:02d}:{rest // 60:02d}:{rest % 60:02d}"
        ".000+00:00" if hours < 30 * 24 else "2026-01-31T00:00:00.000+00:00",
        "ended_utc": "2026-01-31T00:00:00.000+00:00",
        "started_monotonic_s": 100.0, "ended_monotonic_s": 100.0 + lasted,
        "identity_at_start": who, "identity_before": who, "identity_after": who, "state": _state(),
        "uptime_before_s": 50,
        "uptime_after_s": 50 + round(lasted), "rows_before": sizes, "rows_after": sizes,
        "ledger": {
            "available": True, "reason": None, "own_connections": 0,
            "before": dict.fromkeys(grown, 1000),
            "after": {name: 1000 + count for name, count in grown.items()},
        },
        "client": {
            "runqueue_wait_s": 0.1, "threads": THREADS, "cpu_s": CLIENT_CORES * lasted,
            "allowance_cores": 1.0,
        },
        "foreign_sessions": 0, "longest_pause_ms": 3.0, "oom_kills": 0, "clock_step_s": 0.0,
        "steal_pct": 0.0, "server_log_errors": [], "tls": {"asked": "off", "cipher": ""},
        "free_bytes_before": 10**10, "free_bytes_after": 10**10, "limits": {},
    }  # fmt: skip
