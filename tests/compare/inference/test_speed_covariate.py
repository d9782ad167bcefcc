"""The machine's speed as a covariate: narrower where it helps, off where it doesn't, and never an effect."""

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.inference import speed_covariate as speed
from benchbook.compare.stats.intervals import t_interval
from tests import depth

LEVEL = 0.95


def session(random: np.random.Generator, effect: float = 0.0, follows: float = 1.0, blocks: int = 10):
    """Runs of two arms at two levels on a machine whose speed wanders, of which the loop sees nearly all."""
    cells = pd.MultiIndex.from_product([range(1, blocks + 1), ["reads"], (1, 8), ("a", "b")])
    runs = cells.to_frame(index=False, name=["block", "workload", "threads", "arm"])
    of_machine, of_run, of_loop = random.normal(0, [[0.05], [0.01], [0.005]], size=(3, len(runs)))
    log_qps = 8 + follows * of_machine + effect * (runs["arm"] == "b") + of_run
    return runs.assign(qps=np.exp(log_qps), machine_speed=30 * np.exp(of_machine + of_loop))


def log_ratios(runs: pd.DataFrame, metric: str) -> pd.DataFrame:
    # Rows are sorted by block, level and arm; a pivot table of each session would take most of the time.
    of_a, of_b = np.moveaxis(np.log(runs[metric].to_numpy()).reshape(-1, 2, 2), 2, 0)
    return pd.DataFrame(of_b - of_a, columns=[1, 8])


def intervals(runs: pd.DataFrame):
    slope, ratios = speed.speed_slope(runs), log_ratios(runs, "qps")
    plain = t_interval(ratios.mean(axis=1).to_numpy(), LEVEL)
    adjusted = speed.adjusted_interval(ratios, log_ratios(runs, "machine_speed"), slope, LEVEL)
    return slope, plain, adjusted


def test_the_slope_is_that_of_the_least_squares_within_cells():
    runs = session(np.random.default_rng(1))
    found = speed.speed_slope(runs)
    logs = pd.DataFrame({"x": np.log(runs.machine_speed), "y": np.log(runs.qps)})
    dummies = pd.get_dummies(runs.arm + runs.threads.astype(str)).astype(float)
    design = np.column_stack([logs.x, dummies])
    solved, rest, *_ = np.linalg.lstsq(design, logs.y, rcond=None)
    assert found.slope == pytest.approx(solved[0])
    within = logs.y - logs.y.groupby(runs.arm + runs.threads.astype(str)).transform("mean")
    assert found.share == pytest.approx(1 - rest[0] / (within**2).sum())


def test_an_interval_is_narrower_by_what_the_machine_moves_and_the_effect_stays():
    slope, plain, adjusted = intervals(session(np.random.default_rng(2), effect=np.log(1.05)))
    assert slope.is_used and slope.slope == pytest.approx(1.0, abs=0.1)
    assert plain.standard_error > 2 * adjusted.standard_error
    assert adjusted.low < 0.05 < adjusted.high


@pytest.mark.parametrize("follows", [0.0, 0.5, 1.0])
def test_equal_arms_stay_equal(follows: float):
    """Of sessions without an effect some 5 % leave out zero, whether speed matters or not."""
    random, missed, used, number = np.random.default_rng(3), 0, 0, depth.examples(150)
    for _ in range(number):
        slope, plain, adjusted = intervals(session(random, follows=follows))
        shown = adjusted if slope.is_used else plain
        used += slope.is_used
        missed += not shown.log_low < 0 < shown.log_high
    # Three standard errors beyond a share of 5 %: 10.3 % of 150.
    assert missed / number < 0.05 + 3 * np.sqrt(0.05 * 0.95 / number)
    assert used < 0.02 * number if follows == 0 else used > 0.93 * number


def test_without_a_loop_or_with_few_runs_nothing_is_taken_out():
    runs = session(np.random.default_rng(4), blocks=3)
    assert speed.speed_slope(runs.drop(columns="machine_speed")) is None
    assert speed.speed_slope(runs.assign(machine_speed=np.nan)) is None
    assert not speed.speed_slope(runs).is_used
