"""Effects against the published tables, and when one number may stand for several thread levels."""

import math

import pytest

from benchbook.compare.effects import Effect, effect, p_value
from benchbook.compare.intervals import Interval, ThreadTest
from benchbook.compare.pairs import block_ratios

# QPS gained per thread level as the documents' own tables give it, in percent, and the geometric mean.
PUBLISHED = {
    "pod to host network": ([3.89, 5.75, 6.19, 7.68, 6.25, 6.83], 6.093),
    "COS to Ubuntu": ([13.56, 15.41, 13.15, 10.41, 10.91, 9.46], 12.130),
    "service to load balancer": ([-11.94, -13.35, -11.62, -9.43, -9.84, -8.64], -10.818),
    "one zone to several": ([-30.83, -19.09, -12.97, -12.90, -12.19, -6.20], -16.075),
    "n1 to c2": ([42.58, 55.39, 65.62, 63.72, 65.97, 64.08], 59.331),
    "v2.1 to v3.0, all workloads": ([50.803, 34.352, 44.744, 28.590], 39.353),
}


def _effect(make_runs, by_threads):
    runs = make_runs({"haproxy": by_threads})
    ratios = block_ratios(runs, "direct", "haproxy", "oltp_point_select", by_threads)
    return effect(ratios, 0.98, 0.95)


@pytest.mark.parametrize(("percents", "mean"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_tables_have_these_geometric_means(percents, mean, make_runs):
    # The inputs are rounded to 0.01, so their mean is known to 0.01 only.
    levels = {2**level: [1 + percent / 100] * 5 for level, percent in enumerate(percents)}
    assert 100 * _effect(make_runs, levels).interval.effect == pytest.approx(mean, abs=0.01)


def test_the_mean_does_not_depend_on_which_arm_is_the_baseline(make_runs):
    ratios = [1.2, 0.7, 1.05, 1.1, 0.9]
    there, back = (_effect(make_runs, {4: [ratio**power for ratio in ratios]}) for power in (1, -1))
    assert (1 + there.interval.effect) * (1 + back.interval.effect) == pytest.approx(1)


def test_thread_levels_are_averaged_before_blocks(make_runs):
    found = _effect(make_runs, {4: [1.062, 1.071, 1.058, 1.081, 1.049]})
    assert (found.interval.low, found.interval.high) == pytest.approx((0.0437901431, 0.0848935910))
    # √5 · standard error is the spread of a block again.
    assert found.spread == pytest.approx(0.01159, abs=1e-4)
    assert found.has_headline


def test_no_headline_where_thread_levels_are_shown_to_have_different_signs(make_runs):
    found = _effect(make_runs, {4: [1.10, 1.11, 1.09, 1.10, 1.12], 16: [0.90, 0.91, 0.90, 0.89, 0.90]})
    assert found.depends
    assert not found.has_headline


def test_a_range_over_zero_that_is_only_noise_keeps_its_headline(make_runs):
    found = _effect(make_runs, {4: [1.02, 0.97, 1.03, 0.98, 1.01], 16: [0.97, 1.02, 0.98, 1.01, 0.99]})
    assert not found.depends
    assert found.has_headline


def test_levels_that_differ_in_size_only_keep_their_headline(make_runs):
    found = _effect(make_runs, {4: [1.04, 1.041, 1.039, 1.04, 1.042], 16: [1.08, 1.081, 1.08, 1.079, 1.08]})
    assert found.depends
    assert found.has_headline


def test_p_is_small_exactly_when_the_interval_leaves_zero_out(make_runs):
    found = _effect(make_runs, {4: [1.062, 1.071, 1.058, 1.081, 1.049]}).by_threads[0][1]
    assert p_value(found) < 0.05
    # The t of these blocks: mean .06217 / (.01159 / √5) = 12.0 with 4 df.
    assert math.isclose(p_value(found), 0.00027, rel_tol=0.05)


def test_a_refused_contrast_has_no_effect_but_a_reason(make_runs):
    found = _effect(make_runs, {4: [1.1, 0.0, 1.2, 1.1, 1.1]})
    assert found.interval.effect is None
    assert "cannot be taken" in found.interval.reason
    assert p_value(found.interval) is None


@pytest.mark.parametrize(
    ("p", "means", "depends", "has_headline"),
    [
        (0.049, (-0.1, 0.1), True, False),
        # On its bound a test shows nothing, and nothing is on neither side of nothing.
        (0.05, (-0.1, 0.1), False, True),
        (0.049, (0.0, 0.1), True, True),
        (0.049, (-0.1, 0.0), True, True),
        (0.049, (None, 0.1), True, True),
    ],
)
def test_one_number_stands_for_levels_unless_their_signs_are_shown_to_differ(p, means, depends, has_headline):
    by_threads = tuple((4 * place, Interval(5, 0.98, mean)) for place, mean in enumerate(means, start=1))
    found = Effect(None, Interval(5, 0.98), None, by_threads, ThreadTest(9.0, p, 1, 4))
    assert (found.depends, found.has_headline, found.spread) == (depends, has_headline, None)
