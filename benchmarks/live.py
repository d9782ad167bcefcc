"""The same server under two names, on this machine, in three orders in the same hours.

There is nothing to find, so whatever a campaign finds is its error. A round is one campaign in turns of
50 ms, one of whole runs next to each other (ABBA or BAAB) and one in the published order (all of A, then all
of B), with the same measured seconds; which comes first is drawn. The errors of the rounds give the ratios.
How much there is to gain depends on what else this machine does in the meantime.
"""

import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchbook.commands.machine_noise import log_ratios
from benchbook.core.study.params import Limits
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset, scheduler, statement_counters, sysbench
from benchbook.plan import order, schedule
from benchbook.read import tidy, validity
from benchbook.read.sysbench_log import parse_log
from benchmarks import bench_site
from benchmarks.table import Row, main

ROUNDS = {False: 3, True: 12}
PAIRS = {False: 4, True: 10}
ARMS = ("A", "B")
SEED = 11


def rows(is_full: bool) -> list[Row]:
    """Run all orders one after another; return the root mean square of their errors, and the ratios of their
    variances."""
    study = bench_site.study(
        workloads={"oltp_point_select": {}}, threads=[4],
        plan={"seed": SEED, "blocks": 1, "discard_s": 1, "run_s": 5 if is_full else 2, "order": "runs"},
    )  # fmt: skip
    errors: dict[str, list[float]] = {"turns": [], "paired": [], "published": []}
    plan = {"order": "turns", "run_s": PAIRS[is_full] * study.plan.run_s, "max_repeats": 5}
    in_turns = study.model_copy(
        update={
            "arms": {"direct": study.arms["direct"], "again": study.arms["direct"]},
            "plan": study.plan.model_copy(update=plan),
        }
    )
    with bench_site.opened(in_turns) as (site, base):
        with statement_counters.open_session(site) as connection:
            dataset.prewarm_tables(connection, study.dataset.tables)
        run = next(run for run in schedule.plan_runs("live", study, {}) if run.arm == "direct")
        argv = sysbench.run_argv(site.up("direct"), run)
        for number in range(ROUNDS[is_full]):
            for kind in order.shuffle_items(sorted(errors), SEED, number):
                errors[kind].append(
                    _error_in_turns(site, in_turns, number, base / f"turns-{number}")
                    if kind == "turns"
                    else _error(argv, _order(kind, number, PAIRS[is_full]))
                )
    size = {kind: float(np.sqrt(np.mean(np.square(found)))) for kind, found in errors.items()}
    seconds = 2 * PAIRS[is_full] * study.plan.run_s
    what = f"live A/A, {ROUNDS[is_full]} rounds of {seconds} s, error of a campaign"
    others = {"paired": "whole runs next to each other", "published": "all of A, then all of B"}
    return [
        Row(what, f"turns {size['turns']:.2%}", f"{name} {size[kind]:.2%}",
            f"variance {(size[kind] / size['turns']) ** 2:.0f} × smaller")
        for kind, name in others.items()
    ]  # fmt: skip


def _error_in_turns(site: Any, study: StudySpec, number: int, into: Path) -> float:
    """Let both arms take turns once and return the difference of their log throughput."""
    asked = study.model_copy(update={"plan": study.plan.model_copy(update={"seed": SEED + number})})
    limits = Limits(**bench_site.LIMITS)
    site.study = asked
    runs = schedule.plan_runs("live", asked, {})
    where = (into / "raw", into / "void")
    judge = partial(validity.judge_run, limits=limits)
    scheduler.run_missing(
        scheduler.MatrixRunner(asked, runs, site, *where, judge, limits.model_dump(), lambda _: None)
    )
    made = tidy.read_study(*where, schedule.schedule_table(runs), limits)["runs"].to_pandas()
    return float(log_ratios(made, "direct", "again").iloc[0])


def _order(kind: str, number: int, pairs: int) -> list[str]:
    if kind == "published":
        return [arm for arm in ARMS for _ in range(pairs)]
    return [arm for pair in range(pairs) for arm in order.arm_order(ARMS, SEED, number + 1, pair, pairs)]


def _error(argv: list[str], arms: list[str]) -> float:
    """Make the runs and return the difference of the arms' mean log throughput; 0 would be right."""
    log_qps: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for arm in arms:
        final: Any = parse_log(subprocess.run(argv, capture_output=True, text=True, check=True).stdout).final
        log_qps[arm].append(float(np.log(final.queries_per_s)))
    return float(np.mean(log_qps["B"]) - np.mean(log_qps["A"]))


if __name__ == "__main__":
    main(rows, __doc__)
