"""Which sessions count as one occasion, and what their average is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from benchbook.compare.meta import random_effects
from benchbook.compare.meta.random_effects import Value, average_occasion, pool_by_processor, pool_effects
from benchbook.compare.text.cpu_models import count_models, name_processor, parse_processor
from benchbook.core.artifacts.meta_analysis import StudySession
from tests.compare.cases import read_cases

XEON = "Intel(R) Xeon(R) Processor (family 6, model 207, stepping 2)"
OTHER_XEON = "Intel(R) Xeon(R) Processor (family 6, model 143, stepping 8)"
UNTOLD_XEON = "Intel(R) Xeon(R) Processor"
EPYC = "AMD EPYC (family 26, model 2, stepping 1)"


def at(measured: str, told: str = XEON) -> StudySession:
    return StudySession(id=measured, measured=measured, design="a1", processor=parse_processor(told))


@pytest.mark.parametrize(
    ("sessions", "groups"),
    [
        # 02:00 to 08:00 are six hours; 08:01 begins anew, and 14:00 is within six hours of that.
        ([("22T08:00",), ("22T14:00",), ("22T02:00",), ("22T08:01",)],
         [["22T02:00", "22T08:00"], ["22T08:01", "22T14:00"]]),
        # Another model is another occasion, though its name is the same.
        ([("22T02:00",), ("22T02:00", OTHER_XEON)], [["22T02:00"], ["22T02:00"]]),
        ([("22T02:00",), ("22T03:00", EPYC)], [["22T02:00"], ["22T03:00"]]),
        # A name alone may be any model of that name; the last can't be the second's, so it stands alone.
        ([("22T02:00", UNTOLD_XEON), ("22T03:00",), ("22T04:00", OTHER_XEON)],
         [["22T02:00", "22T03:00"], ["22T04:00"]]),
        # Times of other zones are compared as moments.
        ([("22T02:00+02:00",), ("22T05:00Z",)], [["22T02:00+02:00", "22T05:00Z"]]),
    ],
)  # fmt: skip
def test_sessions_of_six_hours_on_one_model_are_one_occasion(sessions, groups):
    found = random_effects.group_occasions([at(f"2026-11-{moment}", *told) for moment, *told in sessions])
    assert [[one.measured[8:] for one in group] for group in found] == groups


def test_a_name_alone_counts_as_a_model_that_is_known_by_that_name():
    told = [parse_processor(one) for one in (UNTOLD_XEON, XEON, OTHER_XEON)]
    assert [count_models(models) for models in ([], told[:1], told)] == [0, 1, 2]
    assert count_models([*told, parse_processor("AMD EPYC")]) == 3


def test_an_average_has_the_error_of_independent_blocks():
    # sqrt(0.03² + 0.04²) / 2 = 0.025; t with 8 degrees of freedom at 98 % is 2.896, so ±0.0724.
    far = average_occasion([Value("a", 0.10, 0.03, 5, 0.98), Value("b", 0.06, 0.04, 5, 0.95)])
    assert (far.log_effect, far.standard_error, far.sign) == pytest.approx((0.08, 0.025, 1))
    near = average_occasion([Value("a", -0.10, 0.03, 5, 0.98), Value("b", -0.04, 0.04, 5, 0.95)])
    assert near.sign == 0


@pytest.mark.parametrize("label", ["no useful interval", "not decided yet"])
def test_what_a_session_withholds_decides_nothing(label):
    assert average_occasion([Value("a", 0.5, 0.01, 5, 0.98, label)]).sign == 0
    assert average_occasion([Value("a", 0.5, 0.01, 5, 0.98, "higher")]).sign == 1


def test_processors_are_called_what_people_call_them():
    assert name_processor(parse_processor(XEON)) == "Xeon Emerald Rapids"
    gold = "Intel(R) Xeon(R) Gold 6226 CPU @ 2.70GHz (family 6, model 85, stepping 7)"
    assert name_processor(parse_processor(gold)) == "Xeon Gold 6226"
    assert name_processor(parse_processor(None)) == "unknown"


@pytest.mark.parametrize(("maker", "family", "model", "generation"), read_cases("processor_names"))
def test_a_processor_of_a_cloud_has_the_name_of_its_generation(maker, family, model, generation):
    told = f"{maker} Processor (family {family}, model {model}, stepping 1)"
    assert name_processor(parse_processor(told)) == generation


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


def of_sessions(sessions) -> random_effects.RandomEffects:
    effects = [math.log1p(effect / 100) for effect, *_ in sessions]
    errors = [
        (math.log1p(high / 100) - math.log1p(low / 100)) / 2 / stdtrit(9, (1 + level) / 2)
        for _, low, high, level in sessions
    ]
    return pool_effects(effects, [error**2 for error in errors])


def percents(*logs: float) -> list[float]:
    return [round(100 * math.expm1(log), 1) for log in logs]


def test_the_bcg_trials_come_out_as_published():
    effects = [math.log(a / (a + b) / (c / (c + d))) for a, b, c, d in BCG]
    variances = [1 / a - 1 / (a + b) + 1 / c - 1 / (c + d) for a, b, c, d in BCG]
    found = pool_effects(effects, variances)
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
        mine = pool_effects(effects, variances)
        theirs = combine_effects(effects, variances, method_re="iterated")
        assert mine.q == pytest.approx(theirs.q)
        # Its iteration ends when tau² changes by less than 1e-5.
        assert mine.tau**2 == pytest.approx(theirs.tau2, abs=1e-5)
        assert mine.mean == pytest.approx(theirs.mean_effect_re, abs=1e-5)
        factor = max(1.0, theirs.scale_hksj_re)
        assert mine.standard_error**2 == pytest.approx(factor * theirs.var_eff_w_re, rel=1e-3)


def test_tau_is_where_the_weighted_squares_are_what_they_should_be():
    effects, variances = [0.1, 0.3, -0.2, 0.05], [0.001, 0.002, 0.0005, 0.004]
    weights = 1 / (np.array(variances) + random_effects.tau_squared((effects, variances)))
    mean = (weights * effects).sum() / weights.sum()
    assert (weights * (np.array(effects) - mean) ** 2).sum() == pytest.approx(3)


def test_values_closer_than_their_errors_have_no_tau_and_no_narrower_mean():
    # Equal effects: Hartung and Knapp's own factor is 0 and would leave no interval at all.
    found = pool_effects([0.1, 0.1, 0.1, 0.1], [0.01] * 4)
    assert (found.tau, found.q, found.i_squared) == (0.0, 0.0, 0.0)
    # 0.1 / sqrt(4) = 0.05
    assert found.standard_error == pytest.approx(0.05)
    # Without tau a further session lies where the mean does: t with 3 degrees of freedom at 95 % is 2.353.
    assert found.prediction_low == pytest.approx(0.1 - 2.3534 * 0.05, abs=1e-5)


def test_few_values_have_no_prediction_interval():
    for k in (1, 2, 3):
        found = pool_effects([0.1, 0.2, 0.3][:k], [0.001] * k)
        assert ((found.prediction_low is not None), (found.low is not None)) == (k == 3, k > 1), k


@pytest.mark.parametrize("variances", [[0.0, 0.1], [math.nan, 0.1], [math.inf, 0.1], [0.1], []])
def test_what_has_no_variance_is_refused(variances):
    with pytest.raises(ValueError, match=r"variance"):
        pool_effects([0.1, 0.2], variances)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(1e-6, 0.1)), min_size=2, max_size=12), st.floats(-1, 1))
def test_a_shift_moves_all_and_changes_nothing_else(pairs, shift):
    effects, variances = zip(*pairs, strict=True)
    found = pool_effects(effects, variances)
    moved = pool_effects([effect + shift for effect in effects], variances)
    assert moved.mean == pytest.approx(found.mean + shift, abs=1e-6)
    assert moved.tau == pytest.approx(found.tau, abs=1e-5)
    assert min(effects) - 1e-9 <= found.mean <= max(effects) + 1e-9


def test_occasions_of_one_processor_are_averaged_before_processors_are_pooled():
    # Means 0.2, 0.2 and 0.5; the variance of the first is (0.01 + 0.03) / 2².
    logs, variances = [0.1, 0.3, 0.2, 0.5], [0.01, 0.03, 0.02, 0.01]
    found = pool_by_processor(logs, variances, "aabc")
    by_hand = pool_effects([0.2, 0.2, 0.5], [0.01, 0.02, 0.01])
    assert (found.pool, found.processors) == (by_hand, 3)
    # Their spread within the one processor: (0.1 - 0.3)² / 2 is 0.02, just what their variances explain.
    assert found.within_tau == pytest.approx(0.0, abs=1e-6)


def test_many_sessions_on_one_processor_predict_no_other():
    found = pool_by_processor([0.1, 0.2, 0.3, 0.4], [1e-6] * 4, "aaaa")
    assert (found.processors, found.pool.prediction_low) == (1, None)
    # The standard deviation of 0.1, 0.2, 0.3, 0.4.
    assert found.within_tau == pytest.approx(0.1291, abs=1e-4)
    assert pool_by_processor([0.1, 0.4], [1e-6] * 2, "ab").within_tau is None
