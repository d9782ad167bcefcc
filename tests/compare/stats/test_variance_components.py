"""Variance components of a session, held against what made it."""

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.stats import variance_components as components


def session(block_sd: float, run_sd: float, blocks: int = 400, follows: float = 0.0) -> pd.DataFrame:
    random, rows = np.random.default_rng(7), []
    for block in range(1, blocks + 1):
        of_block = random.normal(0, block_sd)
        for threads in (1, 4, 16):
            for arm in ("a", "b"):
                seen = random.normal(0, 0.03)
                noise = of_block * (arm == "b") + random.normal(0, run_sd / np.sqrt(2)) + follows * seen
                rows.append(
                    (block, "w", threads, arm, np.exp(9 + 0.05 * (arm == "b") + noise), 1e5, np.exp(seen))
                )
    return pd.DataFrame(
        rows, columns=["block", "workload", "threads", "arm", "qps", "events", "machine_speed"]
    )


@pytest.mark.parametrize(("block_sd", "run_sd"), [(0.02, 0.01), (0.0, 0.03), (0.03, 0.03)])
def test_blocks_and_runs_are_told_apart(block_sd: float, run_sd: float):
    found = components.variance_components(session(block_sd, run_sd), "a", "b")
    assert np.sqrt(found.block) == pytest.approx(block_sd, abs=0.003)
    assert np.sqrt(found.run) == pytest.approx(run_sd, abs=0.003)
    assert found.counting == pytest.approx(2e-5)
    assert found.of_mean == pytest.approx((block_sd**2 + run_sd**2 / 3) / 400, rel=0.25)
    assert found.table().share_of_mean.sum() == pytest.approx(1)


def test_the_share_of_the_machines_speed_is_that_of_the_variance_it_makes():
    # 0.03 * sqrt(2) of speed in a ratio beside 0.0424 of runs: a half.
    found = components.variance_components(session(0.0, 0.0424, follows=1.0), "a", "b")
    assert found.speed_share == pytest.approx(0.5, abs=0.06)
    assert components.variance_components(session(0.0, 0.03), "a", "b").speed_share < 0.02


def test_a_minute_goes_where_the_variance_is():
    starts = components.Components(4e-4, 1e-6, 0.0, None, 5, 4)
    noise = components.Components(0.0, 4e-4, 0.0, None, 5, 4)
    costs = {"measured_s": 4.0, "around_run_s": 2.0, "around_block_s": 20.0}
    assert components.estimate_narrowing(starts, **costs).iloc[0, 0] == "more blocks"
    first = components.estimate_narrowing(noise, **costs)
    assert first.iloc[0, 0] == "longer runs"
    # 5 blocks of 4 cells of 4 s; 3 s more in each: the variance is 4/7 of what it was.
    assert first.iloc[0, 1] == pytest.approx(1 - np.sqrt(4 / 7))


def test_too_few_blocks_have_no_components():
    assert components.variance_components(session(0.01, 0.01, blocks=2), "a", "b") is None
