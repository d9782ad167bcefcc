"""What run-matrix takes around sysbench, beside a bash loop with the same commands.

A real MariaDB and a real HAProxy. Both sides make the same runs in the same order. Ours restarts the servers
and puts the data back at every block, reads the server's books around every run, watches the machine, judges
and seals a folder; the loop starts sysbench and keeps its output.
"""

import resource
import shlex
import subprocess
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchbook.compare.stats.intervals import t_interval
from benchbook.core.artifacts import run_folder
from benchbook.core.study.study import StudySpec
from benchbook.measure import scheduler, sysbench
from benchbook.plan import schedule
from benchbook.read import tidy, validity
from benchbook.sites.machine.local_machine import Monitor
from benchmarks import bench_site
from benchmarks.table import Row, main

MONITOR_S = 8.0
# Long enough that a run of 60 s can be computed from one: what is around a run does not grow with it.
SHORT = {"seed": 3, "blocks": 2, "discard_s": 1, "run_s": 2}
LONG = {"seed": 3, "blocks": 1, "discard_s": 15, "run_s": 45}
THREADS = {False: [1, 4], True: [1, 4, 16]}


def rows(is_full: bool) -> list[Row]:
    """Walk a schedule of short runs (with --full also one of 60 s runs) and loop over the same commands."""
    found = _compare("3 s runs", bench_site.study(plan=SHORT, threads=THREADS[is_full]))
    if is_full:
        found += _compare("60 s runs", bench_site.study(plan=LONG, threads=[4]))
    return [*found, *_reading(24 if is_full else 12)]


def _reading(blocks: int) -> list[Row]:
    """Let two instances of one arm take turns, of which one has its costs read at both ends of each.

    Instances differ for as long as they live. So every block has two groups with the same servers, and in
    the second the other instance is read.
    """
    plan = {"seed": 3, "blocks": blocks, "discard_s": 1, "run_s": 8, "order": "turns", "turn_ms": 50}
    same = {"script": "oltp_point_select"}
    arms = {"one": {}, "other": {"engine": {"settings": {"max_connections": 200}}}}
    study = bench_site.study(plan=plan, arms=arms, workloads={"first": same, "second": same}, threads=[1])
    with bench_site.opened(study) as (site, base):
        clock = site.clock

        def half_read(takers: Mapping[str, Any], asked: Mapping[str, Any]) -> Any:
            folder = next(iter(takers.values())).logs[0].parent.name
            return clock(takers, {**asked, "unread": ["other" if "-first-" in folder else "one"]})

        site.clock = half_read
        _walk(site, study, base)
        plans = schedule.schedule_table(schedule.plan_runs("bench", study, {}))
        raw = base / "raw"
        runs = tidy.read_study(raw, base / "void", plans, bench_site.LIMITS)["runs"].to_pandas()
        turned = [one.evidence()["turns"] for one in run_folder.list_folders(raw)]
    qps = np.log(runs.pivot(index="block", columns=["workload", "arm"], values="qps"))
    gained = (qps["first"]["one"] - qps["first"]["other"] + qps["second"]["other"] - qps["second"]["one"]) / 2
    found = t_interval(gained.to_numpy(), 0.95)
    share = max(one["reading_s"] / (one["clock"]["window"][1] - one["clock"]["window"][0]) for one in turned)
    assert found.log_mean is not None and found.log_low is not None and found.log_high is not None
    low, mean, high = (100 * np.expm1(log) for log in (found.log_low, found.log_mean, found.log_high))
    return [
        Row("turns: the time that reading costs takes", f"{share:.2%}", "", "", "≤ 1 %", share <= 0.01),
        Row(f"turns: QPS with the costs read ({len(qps)} blocks)", f"{mean:+.2f} % [{low:+.2f}, {high:+.2f}]",
            "not read", "", "within 0.5 %", low >= -0.5 and high <= 0.5),
    ]  # fmt: skip


def _compare(name: str, study: StudySpec) -> list[Row]:
    with bench_site.opened(study) as (site, base):
        state, wall_s, cpu_s = _walk(site, study, base)
        loop_s, loop_sysbench_s = _loop(site, study, base)
        watched = _monitor(site, base)
    each = (wall_s - state.sysbench_s) / state.done
    loop_each = (loop_s - loop_sysbench_s) / state.done
    ratio, loop_ratio = wall_s / state.sysbench_s, loop_s / loop_sysbench_s
    at_60 = (60 + each) / 60
    return [
        Row(f"{name}: seconds around a run", f"{each:.2f} s", f"bash loop {loop_each:.2f} s",
            f"{each - loop_each:+.2f} s", "≤ 0.7 s", each <= 0.7),
        Row(f"{name}: wall over sysbench's seconds", f"{ratio:.3f}", f"bash loop {loop_ratio:.3f}",
            f"{at_60:.3f} at 60 s", "≤ 1.03 at 60 s", at_60 <= 1.03),
        Row(f"{name}: our CPU outside sysbench", f"{cpu_s / state.done:.2f} s a run"),
        Row(f"{name}: CPU of the monitor", f"{watched:.2%} of a core", "", "", "≤ 1 %", watched <= 0.01),
    ]  # fmt: skip


def _walk(site: Any, study: StudySpec, base: Path) -> tuple[scheduler.MatrixRunner, float, float]:
    runs = schedule.plan_runs("bench", study, {})
    judge = partial(validity.judge_run, limits=bench_site.LIMITS)
    state = scheduler.MatrixRunner(
        study, runs, site, base / "raw", base / "void", judge, bench_site.LIMITS, say=lambda _: None
    )
    began, cpu = time.monotonic(), time.process_time()
    scheduler.run_missing(state)
    return state, time.monotonic() - began, time.process_time() - cpu


def _loop(site: Any, study: StudySpec, base: Path) -> tuple[float, float]:
    """Run the same commands from a bash script; return its wall seconds, and those of its sysbench alone."""
    lines = ["set -u", f"cd {shlex.quote(str(base))}"]
    runs = schedule.plan_runs("bench", study, {})
    for run in runs:
        argv = sysbench.run_argv(site.up(study.deployed(run.arm)), run)
        lines.append(f"{shlex.join(argv)} > {run.run_id}.out 2> {run.run_id}.err")
    script = base / "loop.sh"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    began = time.monotonic()
    subprocess.run(["bash", str(script)], check=True)
    wall_s = time.monotonic() - began
    spent = [
        float(line.split()[-1].removesuffix("s"))
        for run in runs
        for line in (base / f"{run.run_id}.out").read_text().splitlines()[-20:]
        if "total time:" in line
    ]
    return wall_s, sum(spent)


def _monitor(site: Any, base: Path) -> float:
    """Return the share of a core that the monitor itself takes while it watches the arms."""
    site.up("haproxy")
    watched = {name: pids for name, pids in site.monitored("haproxy").items() if pids}
    client = watched["server"]
    monitor = Monitor({"client": client, **watched}, base / "monitor.csv", client[0])
    before = _cpu_s()
    monitor.start()
    time.sleep(MONITOR_S)
    monitor.stop()
    return (_cpu_s() - before) / MONITOR_S


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main(rows, __doc__)
