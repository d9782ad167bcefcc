"""No decision by the last bit: on a bound, and a bit to each side of it, the answer is one, and no claim."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.inference.decisions import Effect, Hypothesis, judge_candidates
from benchbook.compare.meta.sample_size import blocks_for
from benchbook.compare.stats import equivalence, tolerance
from benchbook.compare.stats.equivalence import EquivalenceBand, judge_interval, label_interval
from benchbook.compare.stats.intervals import Interval, t_interval
from benchbook.compare.stats.noninferiority import _answer_by_interval
from benchbook.compare.stats.pairs import BlockRatios
from benchbook.compare.stats.steady_state import truncation_point
from benchbook.core.artifacts.findings import Depends


def around(value: float) -> list[float]:
    """Return a value and its neighbours, one unit in the last place to each side."""
    return [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)]


def ends(low: float, high: float) -> Interval:
    return Interval(5, 0.98, (low + high) / 2, low, high, 0.01, 4)


@pytest.mark.parametrize("bound", [0.0, 0.05, -0.02, math.log1p(-0.01), math.log(1.5), 40.0, 3e7])
def test_a_number_on_its_bound_is_on_neither_side(bound):
    for value in around(bound):
        assert not tolerance.is_above(value, bound) and not tolerance.is_below(value, bound)
    apart = 2 * tolerance.TIE * max(1.0, abs(bound))
    assert tolerance.is_above(bound + apart, bound) and tolerance.is_below(bound - apart, bound)


def test_open_bounds_hold_everything_and_no_number_is_nowhere():
    assert tolerance.is_inside(-1e300, 1e300, -math.inf, math.inf)
    assert not tolerance.is_above(math.nan, 0) and not tolerance.is_below(math.nan, 0)


@pytest.mark.parametrize("low", around(0.0))
def test_an_interval_that_touches_zero_shows_no_difference(low):
    assert tolerance.sign_of_interval(low, 0.05) == tolerance.sign_of_interval(-0.05, -low) == 0
    assert (tolerance.sign_of_interval(1e-6, 0.05), tolerance.sign_of_interval(-0.05, -1e-6)) == (1, -1)
    assert label_interval(ends(low, 0.05)) == label_interval(ends(-0.05, -low)) == "not shown"


@pytest.mark.parametrize("high", around(math.log1p(0.01)))
def test_an_interval_that_touches_one_per_cent_is_not_shown_to_be_no_difference(high):
    assert label_interval(ends(-0.002, high)) == "not shown"


@pytest.mark.parametrize("end", around(math.log1p(0.05)))
def test_an_interval_that_touches_its_band_confirms_and_contradicts_nothing(end):
    assert judge_interval(ends(end, 0.06), EquivalenceBand(0.05, 0.09)) == "inconclusive"
    assert judge_interval(ends(0.04, end), EquivalenceBand(0.05, 0.09)) == "inconclusive"


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_a_contradicted_claim_has_no_sign_by_a_bit_and_an_interval_as_wide_as_is_useful_is_not(off):
    assert equivalence.judge_direction(ends(around(0.0)[off], 0.01), 0.2) == "no effect"
    assert not equivalence.is_useful(ends(0.0, around(math.log(1.5))[off]))


@pytest.mark.parametrize("end", around(math.log1p(-0.03)))
def test_a_gate_decides_nothing_on_its_margin(end):
    allowed = math.log1p(-0.03)
    assert _answer_by_interval(ends(end, 0.01), allowed, True)[0] == "undecided"
    assert _answer_by_interval(ends(-0.08, end), allowed, False)[0] == "undecided"
    on_zero = dataclasses.replace(ends(-0.08, end - allowed), log_mean=-0.05)
    assert _answer_by_interval(on_zero, allowed, True)[0] == "undecided"


def effect(interval: Interval, p: float, by_threads: tuple[float, ...], treatment: str = "b") -> Effect:
    ratios = pd.DataFrame([[0.0] * len(by_threads)] * 5, columns=range(1, len(by_threads) + 1))
    contrast = BlockRatios("a", treatment, "read", "qps", ratios, {}, (), threads=tuple(ratios.columns))
    levels = tuple((place, ends(mean, mean)) for place, mean in enumerate(by_threads, 1))
    return Effect(contrast, interval, None, levels, Depends(f=1.0, p=p, df1=1, df2=4))


@pytest.mark.parametrize("p", around(0.05))
def test_on_five_per_cent_an_effect_is_not_shown_to_depend_on_threads(p):
    assert not effect(ends(0.1, 0.2), p, (-0.1, 0.1)).depends


@pytest.mark.parametrize("mean", around(0.0))
def test_a_level_without_an_effect_has_no_other_sign(mean):
    made = effect(ends(0.1, 0.2), 0.001, (mean, 0.1))
    assert made.depends and made.has_headline


@pytest.mark.parametrize("place", [-1, 0, 1])
def test_a_step_of_holms_on_its_level_decides_nothing(place):
    """Of two contrasts one shows nothing, so the other's p counts twice: 0.01 becomes 0.02, or 1 - 0.98."""
    # p of |t| = 4.6041 with 4 degrees of freedom is 0.01, so at 98 % it is decided alone.
    t = 4.604094871349993
    mean = [math.nextafter(0.05, 0), 0.05, math.nextafter(0.05, 1)][place + 1]
    error = 0.05 / t
    shown = Interval(5, 0.98, mean, mean - 3.7469 * error, mean + 3.7469 * error, error, 4)
    nothing = ends(-0.05, 0.05)
    both = [effect(shown, 1.0, (mean,)), effect(nothing, 1.0, (0.0,), "c")]
    alone = judge_candidates([Hypothesis(both[0], 5, 5)], 5)
    together = judge_candidates([Hypothesis(one, 5, 5) for one in both], 5)
    assert [alone[0].label, together[0].label] == ["higher", "not shown"]


@pytest.mark.parametrize("spread", around(0.02 / 2.776445105197799 * math.sqrt(5)))
def test_blocks_are_planned_for_an_interval_that_is_narrower_than_was_asked(spread):
    """The quantile of 97.5 % at 4 degrees of freedom is 2.7764: five blocks give an interval just as wide."""
    assert blocks_for(math.expm1(0.02), spread, 0.95) == 6


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_a_point_on_the_limit_of_steadiness_is_not_steady_yet(off):
    """Twelve batches, the first of them higher by what makes the score of all 1.10 times the least."""
    series = np.repeat([1.0, -1.0] * 6, 5) * 0.01 + 5.0
    limit = _first_batch(series)
    series[:5] = [math.nextafter(limit, 0), limit, math.nextafter(limit, 10)][off + 1]
    assert truncation_point(series) == 5
    series[:5] = limit - 1e-6
    assert truncation_point(series) == 0


def _first_batch(series: np.ndarray) -> float:
    """Find by halving where all batches score 1.10 times the least; a score is variance over number."""

    def scored(first: float) -> float:
        batches = np.concatenate([[first], series[5::5]])
        scores = [batches[start:].var() / (len(batches) - start) for start in range(len(batches) - 4)]
        return scores[0] / min(scores[1:])

    low, high = 5.01, 6.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if scored(middle) < 1.10 else (low, middle)
    return low


def test_an_interval_of_blocks_that_end_on_zero_is_the_same_with_and_without_the_last_bit():
    """Five ratios whose interval begins at zero: mean and half-width are both 3.7469 s / √5."""
    data = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) * 0.01
    begin = t_interval(data, 0.98)
    for shift in around(-begin.log_low):
        assert label_interval(t_interval(data + shift, 0.98)) == "not shown"
    assert label_interval(t_interval(data - begin.log_low + 1e-6, 0.98)) == "higher"
