"""Pooling held against published examples, against statsmodels, and against what must hold of any input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from benchbook.compare.occasions import FEWEST, Pool, pool, tau_squared

# Thirteen trials of the BCG vaccine: with tuberculosis and without it, treated and control
# (Colditz et al. 1994; `dat.bcg` of R's metafor).
BCG = (
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761),
    (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232),
    (17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825),
)  # fmt: skip

# Sessions of `quick`, HAProxy against direct connections, ten blocks each: effect and interval in per cent,
# and the interval's level.
ONE_THREAD = (
    (-17.9, -21.9, -13.7, 0.95), (-14.9, -16.6, -13.1, 0.95), (-14.4, -15.4, -13.5, 0.95),
    (-15.1, -16.2, -13.8, 0.95), (-18.3, -23.8, -12.5, 0.98),
)  # fmt: skip
EIGHT_THREADS = (
    (33.0, 21.6, 45.4, 0.95), (30.2, 25.4, 35.2, 0.95), (41.2, 33.6, 49.3, 0.95), (35.3, 32.4, 38.2, 0.95),
    (19.8, 14.9, 24.9, 0.98),
)  # fmt: skip


def of_sessions(sessions) -> Pool:
    effects = [math.log1p(effect / 100) for effect, *_ in sessions]
    errors = [
        (math.log1p(high / 100) - math.log1p(low / 100)) / 2 / stdtrit(9, (1 + level) / 2)
        for _, low, high, level in sessions
    ]
    return pool(effects, [error**2 for error in errors])


def percents(*logs: float) -> list[float]:
    return [round(100 * math.expm1(log), 1) for log in logs]


def test_the_bcg_trials_come_out_as_published():
    effects = [math.log(a / (a + b) / (c / (c + d))) for a, b, c, d in BCG]
    variances = [1 / a - 1 / (a + b) + 1 / c - 1 / (c + d) for a, b, c, d in BCG]
    found = pool(effects, variances)
    assert found.tau**2 == pytest.approx(0.3181, abs=5e-5)
    assert found.q == pytest.approx(152.233, abs=5e-4)
    assert found.i_squared == pytest.approx(0.9212, abs=5e-5)


@pytest.mark.parametrize(
    ("sessions", "mean", "interval", "prediction", "tau", "i_squared"),
    [
        (ONE_THREAD, -15.3, [-16.7, -14.0], [-17.9, -12.7], 1.2, 43),
        (EIGHT_THREADS, 31.5, [23.9, 39.5], [14.7, 50.8], 5.8, 93),
    ],
)
def test_five_sessions_come_out_as_worked_out_by_others(sessions, mean, interval, prediction, tau, i_squared):
    found = of_sessions(sessions)
    assert percents(found.mean) == [mean]
    assert percents(found.low, found.high) == interval
    assert percents(found.prediction_low, found.prediction_high) == prediction
    assert (round(100 * found.tau, 1), round(100 * found.i_squared)) == (tau, i_squared)


def test_statsmodels_says_the_same_of_drawn_inputs():
    # Here, for it loads scipy.stats: half a second of each process that collects tests.
    from statsmodels.stats.meta_analysis import combine_effects

    rng = np.random.default_rng(20261123)
    for _ in range(60):
        k = int(rng.integers(2, 16))
        variances = rng.uniform(1e-4, 1e-2, k)
        effects = rng.normal(0.1, rng.choice([0.02, 0.1, 0.4]), k)
        mine, theirs = pool(effects, variances), combine_effects(effects, variances, method_re="iterated")
        assert mine.q == pytest.approx(theirs.q)
        # Its iteration ends when tau² changes by less than 1e-5.
        assert mine.tau**2 == pytest.approx(theirs.tau2, abs=1e-5)
        assert mine.mean == pytest.approx(theirs.mean_effect_re, abs=1e-5)
        factor = max(1.0, theirs.scale_hksj_re)
        assert mine.standard_error**2 == pytest.approx(factor * theirs.var_eff_w_re, rel=1e-3)


def test_tau_is_where_the_weighted_squares_are_what_they_should_be():
    effects, variances = [0.1, 0.3, -0.2, 0.05], [0.001, 0.002, 0.0005, 0.004]
    weights = 1 / (np.array(variances) + tau_squared(effects, variances))
    mean = (weights * effects).sum() / weights.sum()
    assert (weights * (np.array(effects) - mean) ** 2).sum() == pytest.approx(3)


def test_values_closer_than_their_errors_have_no_tau_and_no_narrower_mean():
    # Equal effects: Hartung and Knapp's own factor is 0 and would leave no interval at all.
    found = pool([0.1, 0.1, 0.1, 0.1], [0.01] * 4)
    assert (found.tau, found.q, found.i_squared) == (0.0, 0.0, 0.0)
    # 0.1 / sqrt(4) = 0.05
    assert found.standard_error == pytest.approx(0.05)
    # Without tau a further session lies where the mean does: t with 3 degrees of freedom at 95 % is 2.353.
    assert found.prediction_low == pytest.approx(0.1 - 2.3534 * 0.05, abs=1e-5)


def test_few_values_have_no_prediction_interval():
    for k in range(1, FEWEST + 1):
        found = pool([0.1, 0.2, 0.3, 0.4][:k], [0.001] * k)
        assert (found.prediction_low is not None) == (k == FEWEST), k
        assert (found.low is not None) == (k > 1), k


@pytest.mark.parametrize("variances", [[0.0, 0.1], [math.nan, 0.1], [math.inf, 0.1], [0.1], []])
def test_what_has_no_variance_is_refused(variances):
    with pytest.raises(ValueError, match=r"variance"):
        pool([0.1, 0.2], variances)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(1e-6, 0.1)), min_size=2, max_size=12),
    st.floats(-1, 1),
)
def test_a_shift_moves_all_and_changes_nothing_else(pairs, shift):
    effects, variances = zip(*pairs, strict=True)
    found = pool(effects, variances)
    moved = pool([effect + shift for effect in effects], variances)
    assert moved.mean == pytest.approx(found.mean + shift, abs=1e-6)
    assert moved.tau == pytest.approx(found.tau, abs=1e-5)
    assert min(effects) - 1e-9 <= found.mean <= max(effects) + 1e-9
