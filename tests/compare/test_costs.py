"""What a million queries cost: from an hour's price, QPS by block, and nothing where no price is known."""

import math

import pytest

from benchbook.compare import findings
from benchbook.core.params import Analysis
from benchbook.core.study import Study

FASTER = [1.25, 1.26, 1.24, 1.255, 1.245]


@pytest.fixture
def costs(make_study, make_runs, no_voids, no_histograms):
    def make(prices, ratios=FASTER, **given):
        arms = {"direct": {}, "haproxy": {"access": "haproxy"}}
        for arm, price in prices.items():
            arms[arm]["price_per_hour"] = price
        runs = make_runs({"haproxy": {4: ratios}}, base_qps=250.0)
        tidy = {"runs": runs, "voids": no_voids, "histograms": no_histograms}
        made = findings.make("mine", make_study(arms=arms, **given), tidy, Analysis())
        return made.get("costs")

    return make


def test_the_cost_is_price_over_queries_an_hour(costs):
    """1000 queries a second are 3.6 million an hour; at 3.60 an hour a million costs 1.00.

    1.25 times as many at 5.40 an hour: 4.5 million, so 1.20; 20 % more than without.
    """
    found = costs(
        {"direct": {"amount": 3.6, "currency": "EUR"}, "haproxy": {"amount": 5.4, "currency": "EUR"}}
    )
    assert found["currency"] == "EUR"
    direct, haproxy = found["arms"]
    assert (direct["cost"], direct["low"], direct["n"]) == (pytest.approx(1.0), None, 5)
    assert "same ratio" in direct["reason"]
    assert haproxy["cost"] == pytest.approx(1.2, rel=1e-4)
    # ln 1.24 to ln 1.26 has s = 0.00632; t(0.99, 4) = 3.747; 3.747 × 0.00632 / √5 = 0.0106
    assert haproxy["low"] == pytest.approx(1.2 * math.exp(-0.0106), rel=1e-3)
    assert haproxy["high"] == pytest.approx(1.2 * math.exp(0.0106), rel=1e-3)
    (ratio,) = found["contrasts"]
    assert ratio["effect"] == pytest.approx(0.20, abs=1e-3)
    assert ratio["label"] == "higher"
    assert (
        ratio["sentence"]
        .replace("\xa0", " ")
        .startswith(
            "cost per million queries was 20.0 % higher with HAProxy than with direct connections on "
            "point selects"
        )
    )


def test_a_price_of_one_arm_alone_compares_nothing(costs):
    found = costs({"haproxy": {"amount": 1.0, "currency": "USD"}})
    assert [one["arm"] for one in found["arms"]] == ["haproxy"]
    assert found["contrasts"] == []


def test_without_a_price_or_in_an_open_loop_there_is_no_cost(costs):
    assert costs({}) is None
    rate = {"oltp_point_select": {"rate": 100}}
    assert costs({"direct": {"amount": 1.0, "currency": "USD"}}, workloads=rate) is None


def test_an_arm_that_answered_nothing_has_no_cost_and_says_why(costs):
    price = {"amount": 1.0, "currency": "USD"}
    found = costs({"direct": price, "haproxy": price}, [1.0, 0.0, 1.0, 1.0, 1.0])
    haproxy = next(one for one in found["arms"] if one["arm"] == "haproxy")
    assert haproxy["cost"] is None and "no query" in haproxy["reason"]
    assert found["contrasts"][0]["effect"] is None


def test_two_currencies_are_refused_and_a_price_makes_no_other_run(make_study):
    with pytest.raises(
        ValueError, match=r"haproxy.price_per_hour.currency: USD: another arm is priced in EUR"
    ):
        make_study(
            arms={
                "direct": {"price_per_hour": {"amount": 1.0, "currency": "EUR"}},
                "haproxy": {"price_per_hour": {"amount": 1.0, "currency": "USD"}},
            }
        )
    study: Study = make_study(arms={"a": {}, "b": {"price_per_hour": {"amount": 1.0}}})
    assert study.arms["a"].setting == study.arms["b"].setting
