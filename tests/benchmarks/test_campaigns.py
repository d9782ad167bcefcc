"""Joint results of campaigns, held against numbers worked out by hand."""

import math

import pandas as pd
import pytest
import scipy  # scipy.stats, which takes half a second, is loaded by the first test that asks for it

from benchbook.commands.machine_noise import log_ratios
from benchmarks import campaigns


def ends(*intervals: tuple[float | None, float | None]) -> pd.DataFrame:
    return pd.DataFrame(intervals, columns=["low", "high"], dtype=float)


def campaign(order: str, ratios: list[float], **changes: object) -> dict[str, object]:
    return {
        "kind": "known", "what": "haproxy", "engine": "mariadb", "workload": "oltp_point_select",
        "order": order, "turn_ms": 50, "active_s": 20.0, "low": None, "high": None,
        "log_ratios": campaigns.text_of(ratios),
    } | changes  # fmt: skip


def test_no_alarm_in_a_hundred_leaves_up_to_four():
    result = campaigns.count_false_alarms(ends(*[(-0.01, 0.01)] * 100))
    assert result is not None and (result.number, result.of, result.low) == (0, 100, 0.0)
    # (1 - p)^100 = 0.025
    assert result.high == pytest.approx(1 - 0.025**0.01)


def test_alarms_on_both_sides_are_counted_and_campaigns_without_interval_are_not():
    result = campaigns.count_false_alarms(
        ends((0.001, 0.02), (-0.03, -0.001), *[(-0.01, 0.01)] * 8, (None, None))
    )
    assert result is not None and (result.number, result.of, result.share) == (2, 10, 0.2)
    exact = scipy.stats.binomtest(2, 10).proportion_ci(0.95, "exact")
    assert (result.low, result.high) == pytest.approx((exact.low, exact.high))


def test_sides_are_arms_or_workloads():
    rows = [
        (block, workload, arm, qps * (1 + block / 10))
        for block in (1, 2)
        for workload, arm, qps in (
            ("small", "one", 100.0), ("small", "other", 200.0),
            ("large", "one", 50.0), ("large", "other", 50.0),
        )
    ]  # fmt: skip
    runs = pd.DataFrame(rows, columns=["block", "workload", "arm", "qps"]).assign(threads=4)
    # Arms: the mean of ln 2 and ln 1. Workloads: the mean of ln(1/2) and ln(1/4).
    assert log_ratios(runs, "one", "other").tolist() == pytest.approx([math.log(2) / 2] * 2)
    by_workload = log_ratios(runs, "small", "large", side="workload")
    assert by_workload.tolist() == pytest.approx([math.log(1 / 8) / 2] * 2)


def test_orders_that_agree_are_the_same_and_the_seconds_count():
    turns, runs = [-0.20, -0.21, -0.22, -0.19, -0.18], [-0.1, -0.3, -0.2, -0.15, -0.25]
    table = pd.DataFrame([campaign("turns", turns), campaign("runs", runs, active_s=40.0)])
    row = campaigns.compare_orders(table).iloc[0]
    assert row["turns_effect"] == pytest.approx(math.expm1(-0.2)) and row["runs_n"] == 5
    welch = scipy.stats.ttest_ind(turns, runs, equal_var=False).confidence_interval(0.98)
    assert (row["difference_low"], row["difference_high"]) == pytest.approx(
        (math.expm1(welch.low), math.expm1(welch.high))
    )
    assert row["is_same"]
    # Variances 0.00025 and 0.00625, and the whole runs took twice the seconds.
    assert row["times"] == pytest.approx(50)
    results = campaigns.tabulate_results(table).set_index("question")
    assert results.filter(like="seconds", axis=0)["value"].item() == pytest.approx(50)
    assert results.loc["turns over whole runs", "low"] == pytest.approx(math.expm1(welch.low))


def test_orders_that_differ_are_named():
    ratios = {"turns": [-0.2, -0.21, -0.19, -0.2], "runs": [-0.4, -0.41, -0.39, -0.42]}
    table = pd.DataFrame([campaign(*one) for one in ratios.items()])
    assert not campaigns.compare_orders(table).iloc[0]["is_same"]


def test_an_effect_of_one_order_or_of_too_few_blocks_decides_nothing():
    assert campaigns.compare_orders(pd.DataFrame([campaign("turns", [-0.2, -0.21, -0.19])])).empty
    table = pd.DataFrame([campaign("turns", [-0.2, -0.21]), campaign("runs", [-0.4, -0.41])])
    assert campaigns.compare_orders(table).iloc[0]["is_same"] is None


def test_repeated_campaigns_of_an_effect_are_taken_together():
    halves = [campaign("turns", [-0.20, -0.21, -0.22]), campaign("turns", [-0.19, -0.18])]
    table = pd.DataFrame([*halves, campaign("runs", [-0.1, -0.3, -0.2])])
    assert campaigns.compare_orders(table).iloc[0]["turns_n"] == 5


def test_the_spread_of_a_length_is_pooled_within_campaigns():
    ratios = (([0.0, 0.02], 20), ([0.10, 0.14], 20), ([0.3], 500))
    table = pd.DataFrame([campaign("turns", of, kind="lengths", turn_ms=ms) for of, ms in ratios])
    result = campaigns.estimate_spreads(table)
    assert result["turn_ms"].tolist() == [20], "one block has no spread"
    # Squares about the own mean: 2 x 0.01² + 2 x 0.02² = 0.001, on 2 degrees of freedom.
    spread = math.sqrt(0.001 / 2)
    assert result.loc[0, "spread"] == pytest.approx(spread)
    ends_ = [math.sqrt(0.001 / scipy.stats.chi2.ppf(p, 2)) for p in (0.975, 0.025)]
    assert result.loc[0, ["low", "high"]].tolist() == pytest.approx(ends_)
    assert (result.loc[0, "campaigns"], result.loc[0, "blocks"]) == (2, 4)
