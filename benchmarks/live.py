"""The same server under two names, on this machine, in both orders in the same hours.

There is nothing to find, so whatever a campaign finds is its error. A round is one campaign in our order
(pairs next to each other, ABBA or BAAB) and one in the published order (all of A, then all of B), with the
same number of runs; which comes first is drawn. The errors of the rounds give the ratio. How much there is
to gain depends on how much this machine drifts in the meantime: an idle one gives a ratio near 1.
"""

from __future__ import annotations

import subprocess
from typing import Any

import numpy as np

from benchbook.measure import dataset, ledger, sysbench
from benchbook.plan import order, schedule
from benchbook.read.sysbench_log import parse
from benchmarks import bench_site
from benchmarks.table import Row, main

ROUNDS = {False: 3, True: 12}
PAIRS = {False: 4, True: 10}
ARMS = ("A", "B")
SEED = 11


def rows(is_full: bool) -> list[Row]:
    """Run both orders in turn; return the root mean square of their errors, and the ratio of variances."""
    study = bench_site.study(
        workloads={"oltp_point_select": {}}, threads=[4],
        plan={"seed": SEED, "blocks": 1, "discard_s": 1, "run_s": 5 if is_full else 2, "order": "runs"},
    )  # fmt: skip
    errors: dict[str, list[float]] = {"paired": [], "published": []}
    with bench_site.opened(study) as (site, _):
        with ledger.session(site) as connection:
            dataset.prewarm(connection, study.dataset.tables)
        run = next(run for run in schedule.plan_runs("live", study, {}) if run.arm == "direct")
        argv = sysbench.run(site.up("direct"), run)
        for number in range(ROUNDS[is_full]):
            for kind in order.shuffled(sorted(errors), SEED, number):
                errors[kind].append(_error(argv, _order(kind, number, PAIRS[is_full])))
    size = {kind: float(np.sqrt(np.mean(np.square(found)))) for kind, found in errors.items()}
    ratio = (size["published"] / size["paired"]) ** 2
    return [
        Row(f"live A/A, {ROUNDS[is_full]} rounds of {2 * PAIRS[is_full]} runs, error of a campaign",
            f"{size['paired']:.2%}", f"all of A, then all of B {size['published']:.2%}",
            f"variance {ratio:.1f} × smaller"),
    ]  # fmt: skip


def _order(kind: str, number: int, pairs: int) -> list[str]:
    if kind == "published":
        return [arm for arm in ARMS for _ in range(pairs)]
    return [arm for pair in range(pairs) for arm in order.arm_order(ARMS, SEED, number + 1, pair, pairs)]


def _error(argv: list[str], arms: list[str]) -> float:
    """Make the runs and return the difference of the arms' mean log throughput; 0 would be right."""
    log_qps: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for arm in arms:
        final: Any = parse(subprocess.run(argv, capture_output=True, text=True, check=True).stdout).final
        log_qps[arm].append(float(np.log(final.queries_per_s)))
    return float(np.mean(log_qps["B"]) - np.mean(log_qps["A"]))


if __name__ == "__main__":
    main(rows, __doc__)
