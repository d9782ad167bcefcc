"""Outputs and run folders made up from numbers, for what no recorded run has."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchbook.core.artifacts import run_folder
from benchbook.core.study import client_sharding
from benchbook.core.study.params import Limits
from benchbook.core.util import histogram
from benchbook.read.evidence import Evidence
from tests.read.corpus import OPTIONS, PLAN, argv, healthy, merged

LATENCIES_MS = (20.0, 1000 / 60, 1000 / 70)
"""Of three clients of one run, with 2 threads each and 100, 120 and 140 transactions a second."""


def output(
    threads: int = 4,
    discard_s: int = 2,
    run_s: int = 5,
    tps: int = 100,
    percentile: int = 99,
    statements: tuple[int, int, int] = (14, 4, 2),
    seed: int = 7,
    errors: int = 0,
    latency_ms: float | None = None,
) -> str:
    """Return what sysbench 1.0.20 prints when every second has the same number of transactions.

    Every transaction takes `latency_ms`, by default what fills the threads' time: 40 ms with 4 threads and
    100 transactions a second, 500 x 40 ms = 20 s in a window of 5 s. `statements` are the
    reads, writes and others of one transaction.
    """
    latency_ms = 1000 * threads / tps if latency_ms is None else latency_ms
    lines = [
        "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)",
        "",
        "Running the test with following options:",
        f"Number of threads: {threads}",
        "Report intermediate results every 1 second(s)",
        *([f"Report checkpoint(s) at {discard_s} seconds"] if discard_s else []),
        f"Initializing random number generator from seed ({seed}).",
        "",
        "",
        "Initializing worker threads...",
        "",
        "Threads started!",
        "",
    ]
    rates = [tps * count for count in statements]
    for second in range(1, discard_s + run_s + 1):
        if second == discard_s:
            lines.append(f"[ {second}s ] Checkpoint report:")
            lines += totals(threads, discard_s, discard_s, tps, percentile, statements, 0, latency_ms)
        lines.append(
            f"[ {second}s ] thds: {threads} tps: {tps:.2f} qps: {sum(rates):.2f} "
            f"(r/w/o: {rates[0]:.2f}/{rates[1]:.2f}/{rates[2]:.2f}) lat (ms,{percentile}%): {latency_ms:.2f} "
            f"err/s: {errors / run_s * (second > discard_s):.2f} reconn/s: 0.00"
        )
    bucket = histogram.bucket_of(latency_ms)
    lines += [
        "Latency histogram (values are in milliseconds)",
        "       value  ------------- distribution ------------- count",
        f"{histogram.value_of(bucket):12.3f} |{'*' * 40} {tps * run_s}",
        " ",
        *totals(threads, run_s, discard_s + run_s, tps, percentile, statements, errors, latency_ms),
    ]
    return "\n".join(lines) + "\n"


def totals(
    threads: int,
    window_s: int,
    total_s: int,
    tps: int,
    percentile: int,
    statements: tuple[int, int, int],
    errors: int,
    latency_ms: float,
) -> list[str]:
    """Return one block of totals as lines."""
    events = tps * window_s
    reads, writes, other = (count * events for count in statements)
    queries, spent_ms = reads + writes + other, latency_ms * events
    grid = histogram.value_of(histogram.bucket_of(latency_ms))
    return [
        "SQL statistics:",
        "    queries performed:",
        f"        read:                            {reads}",
        f"        write:                           {writes}",
        f"        other:                           {other}",
        f"        total:                           {queries}",
        f"    transactions:                        {events:<6d} ({events / window_s:.2f} per sec.)",
        f"    queries:                             {queries:<6d} ({queries / window_s:.2f} per sec.)",
        f"    ignored errors:                      {errors:<6d} ({errors / window_s:.2f} per sec.)",
        "    reconnects:                          0      (0.00 per sec.)",
        "",
        "General statistics:",
        f"    total time:                          {total_s:.4f}s",
        f"    total number of events:              {events}",
        "",
        "Latency (ms):",
        f"         min: {latency_ms:39.2f}",
        f"         avg: {latency_ms:39.2f}",
        f"         max: {latency_ms:39.2f}",
        f"        {percentile:3d}th percentile: {grid:27.2f}",
        f"         sum: {spent_ms:39.2f}",
        "",
        "Threads fairness:",
        f"    events (avg/stddev):           {events / threads:.4f}/0.00",
        f"    execution time (avg/stddev):   {spent_ms / threads / 1000:.4f}/0.00",
        "",
    ]


def planned(**changed: Any) -> dict[str, Any]:
    """Return a plan that `output()` without arguments fulfils."""
    plan = {**PLAN, "discard_s": 2, "run_s": 5, "percentile": 99, "seed": 7, "histogram": True, **changed}
    plan["options"] = {**OPTIONS, **changed.get("options", {})}
    return plan


def healthy_run(changed: dict[str, Any] | None = None, **plan: Any) -> Evidence:
    """Return the healthy run of `output()`, but for parts of its evidence or its plan."""
    return healthy(output(), planned(**plan), "", changed)


def find_faults(check: Callable[[Evidence, Limits], Iterator[str]], run: Evidence) -> list[str]:
    """Return what a check finds by the usual limits."""
    return list(check(run, Limits()))


def monitor(seconds: int, renamed: dict[str, str] | None = None, **more: float) -> str:
    """Return a `monitor.csv` with constant use and `more` columns; the machine's is the sum and a bit."""
    head = "second,part,cpu_cores,rss_mib,steal_pct,psi_cpu_pct,psi_io_pct,psi_memory_pct"
    parts = ("client,0.3,20.5,,,,", "server,1.2,300.0,,,,", "machine,1.6,900.0,0.5,1.5,0.0,0.0")
    rows = [f"{second}.01,{part}" for second in range(1, seconds + 1) for part in parts]
    lines = [",".join([head, *more]), *(",".join([row, *map(str, more.values())]) for row in rows)]
    text = "\n".join(lines) + "\n"
    for part, other in (renamed or {}).items():
        text = text.replace(part, other)
    return text


def turns(
    first_ms: dict[float, int] | None = None, cycle_ms: Sequence[float] = (50,), order: str = "abba",
    gap_ms: float = 0.5, count: int = 40, begin_s: float = 100.5, without: Sequence[int] = (),
) -> str:  # fmt: skip
    """Return the `turns.csv` of two arms in turn, the first ones so many of other lengths in milliseconds."""
    lengths = [length for length, times in (first_ms or {}).items() for _ in range(times)]
    lines, now = ["turn,arm,begin_us,end_us"], round(1e6 * begin_s)
    for number in range(count):
        length = lengths[number] if number < len(lengths) else cycle_ms[number % len(cycle_ms)]
        end = now + int(1000 * length)
        if number + 1 not in without:
            arm = ("direct", "haproxy")["ab".index(order[number % 4])]
            lines.append(f"{len(lines)},{arm},{now},{end}")
        now = end + int(1000 * gap_ms)
    return "\n".join(lines) + "\n"


def folder(
    raw: Path, plan: dict[str, Any], out: str, changed: dict[str, Any] | None = None, attempt: int = 1
) -> run_folder.RunFolder:
    """Write a whole run folder with evidence that agrees with its output, but for `changed`."""
    run = replace(healthy(out, plan, "", changed), plan=plan)
    part = run_folder.begin_folder(raw, plan)
    (part / run_folder.OUT).write_text(out, encoding="utf-8")
    (part / run_folder.ERR).write_text("", encoding="utf-8")
    (part / run_folder.MONITOR).write_text(monitor(plan["discard_s"] + plan["run_s"]), encoding="utf-8")
    run_folder.files.write_json(part / run_folder.EVIDENCE, run.observed)
    return run_folder.move_to_raw(run_folder.seal_folder(part, attempt), raw)


def three(
    changed: dict[str, Any] | None = None, servers: int = 3, outs: tuple[str, ...] | None = None
) -> Evidence:
    """Return the evidence of a healthy run of three clients with 100, 120 and 140 transactions a second.

    `servers` of 3 gives each its own, 1 gives them one. `changed` overrides parts of what was seen.
    """
    plan = planned(threads=6, arm_setting={"access": "direct", "clients": 3, "servers": servers})
    seeds = [client_sharding.split_plan(plan, number, 3)["seed"] for number in range(3)]
    outs = outs or tuple(
        output(threads=2, tps=tps, seed=seed, latency_ms=latency_ms)
        for tps, seed, latency_ms in zip((100, 120, 140), seeds, LATENCIES_MS, strict=True)
    )
    each = [healthy(out, {**plan, "threads": 2}).observed for out in outs]
    seen = healthy(outs[0], plan).observed
    books = ("ledger", "rows_before", "rows_after", "uptime_before_s", "uptime_after_s", "state")
    sides = {
        side: {name: sum(one["ledger"][side][name] for one in each) for name in seen["ledger"]["before"]}
        for side in ("before", "after")
    }
    seen["ledger"] |= sides
    if servers == 3:
        seen["servers"] = [{name: one[name] for name in books} for one in each]
    seen["start_spread_ms"] = 6.5
    seen["clients"] = [
        {"number": number, "server": number % servers, "exit_code": 0, "ended_by": "itself",
         "runqueue_wait_s": 0.1, "argv": argv(plan | client_sharding.split_plan(plan, number, 3))}
        for number in range(3)
    ]  # fmt: skip
    others = tuple((out, "") for out in outs[1:])
    return Evidence(plan, merged(seen, changed or {}), outs[0], "", others=others)


def folder_of_three(raw: Path) -> run_folder.RunFolder:
    """Write the whole run folder of `three`."""
    run = three()
    part = run_folder.begin_folder(raw, run.plan)
    for number, (out, err) in enumerate([(run.out, ""), *run.others]):
        (part / run_folder.client_file(number, run_folder.OUT)).write_text(out, encoding="utf-8")
        (part / run_folder.client_file(number, run_folder.ERR)).write_text(err, encoding="utf-8")
    (part / run_folder.MONITOR).write_text(monitor(7), encoding="utf-8")
    run_folder.files.write_json(part / run_folder.EVIDENCE, run.observed)
    return run_folder.move_to_raw(run_folder.seal_folder(part, 1), raw)
