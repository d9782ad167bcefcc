"""The project's schedule as times, and its whole analysis on simulated runs."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchbook.compare.inference import findings
from benchbook.compare.stats.intervals import t_interval
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec
from benchbook.plan import schedule
from benchbook.read.schemas import SCHEMAS
from benchmarks.machines import STEP_S, Scenario, speed

THREADS = (1, 4, 8, 16, 32, 64)
LEVELS = len(THREADS)
DISCARD_S, RUN_S, DEPLOY_S = 15, 45, 60
BLOCKS = 20
BLOCK_S = DEPLOY_S + 2 * LEVELS * (DISCARD_S + RUN_S)
ARMS = ("direct", "haproxy")


def study(seed: int, blocks: int = BLOCKS) -> StudySpec:
    """Return a study of two arms at six thread levels, with the lengths of a campaign."""
    return StudySpec.model_validate(
        {
            "title": "A simulated study",
            "question": "How exact is it?",
            "site": {"kind": "local"},
            "engine": {"name": "mariadb"},
            "arms": {name: {"access": name} for name in ARMS},
            "aa": None,
            "dataset": {"tables": 1, "table_size": 1},
            "workloads": {"oltp_point_select": {}},
            "threads": list(THREADS),
            "plan": {"seed": seed, "blocks": blocks, "discard_s": DISCARD_S, "run_s": RUN_S},
            "warm_up": {"pilot_s": 0},
            "claims": [],
        }
    )


def placed(seed: int) -> NDArray[np.int64]:
    """Return the first step of each run as block × level × arm, in the order that `plan` gives."""
    steps = np.zeros((BLOCKS, LEVELS, len(ARMS)), dtype=np.int64)
    for run in schedule.plan_runs("simulated", study(seed), {}):
        where = run.block - 1, THREADS.index(run.threads), ARMS.index(run.arm)
        steps[where] = (run.block * DEPLOY_S + run.position * (DISCARD_S + RUN_S)) // STEP_S
    return steps


def agrees_with_findings(scenario: Scenario, campaigns: int) -> int:
    """Put whole campaigns through `findings.make`; return how many gave what the fast path gives, or raise.

    The fast path is the mean over levels of log ratios, then `t_interval` over blocks.
    """
    for seed in range(1, campaigns + 1):
        random = np.random.default_rng([scenario.name.encode()[0], seed])
        order = placed(seed)
        steps = int(order.max()) + (DISCARD_S + RUN_S) // STEP_S
        log_qps = 9.0 + speed(scenario, 1, steps, random)[0]
        runs, ratios = [], np.zeros((BLOCKS, LEVELS))
        for run in schedule.plan_runs("simulated", study(seed), {}):
            level, arm = THREADS.index(run.threads), ARMS.index(run.arm)
            begin = order[run.block - 1, level, arm] + DISCARD_S // STEP_S
            log = log_qps[begin : begin + RUN_S // STEP_S].mean() + random.normal(0, 0.02)
            ratios[run.block - 1, level] += log if arm else -log
            columns = ("run_id", "block", "position", "group", "arm", "workload", "threads")
            runs.append({name: getattr(run, name) for name in columns} | {"qps": float(np.exp(log))})
        made = findings.build_findings("simulated", study(seed), _tidy(runs), Analysis())
        interval = t_interval(ratios.mean(axis=1), Analysis().level)
        found = [getattr(made.findings[0], name) for name in ("effect", "low", "high")]
        expected = [interval.effect, interval.low, interval.high]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    return campaigns


def _tidy(runs: list[dict[str, object]]) -> dict[str, pd.DataFrame]:
    table = pd.DataFrame(runs).reindex(columns=list(SCHEMAS["runs"])).assign(
        order="runs", rate=0, started_s=lambda rows: rows["position"] * 60.0, sysbench_s=60.0,
        steal_pct=0.0, warnings="", cpu_client_cores=0.1, cpu_machine_pct=50.0, measured_s=45.0,
    )  # fmt: skip
    voids = pd.DataFrame(columns=["run_id", "attempt", "block", "arm", "workload", "threads", "status"])
    histograms = pd.DataFrame(columns=["run_id", "bucket", "count"])
    return {"runs": table, "voids": voids, "histograms": histograms}
