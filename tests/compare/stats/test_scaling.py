"""The scalability law against published fits, and the gate in front of it."""

import numpy as np
import pandas as pd
import pytest
import scipy  # scipy.stats, which takes half a second, is loaded by the test that asks for it

from benchbook.compare.stats.scaling import UslFit, _lack_of_fit, check_scalability, describe_scaling, fit_usl
from tests.compare.claims.test_consistency import cells
from tests.goldens import assert_golden

# SPEC SDM91 as in Gunther's book and the R package usl.
LOAD = np.array([1, 18, 36, 72, 108, 144, 216], dtype=float)
THROUGHPUT = np.array([64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2])
# QPS of the pod and host network tables: 150 to 1500 threads, still rising.
LATE = [150, 300, 600, 900, 1200, 1500]
LAW = UslFit(1000, 0.02, 0.0005)


def _runs(table: dict[int, list[float]]) -> pd.DataFrame:
    rows = [
        {"block": block, "arm": "direct", "workload": "w", "threads": threads, "qps": qps}
        for threads, values in table.items()
        for block, qps in enumerate(values, start=1)
    ]
    return pd.DataFrame(rows, columns=["block", "arm", "workload", "threads", "qps"])


def _noisy(law, levels, blocks=5, spread=0.01, bend=0.0):
    rng = np.random.default_rng(7)
    logs = [spread * rng.standard_normal(blocks) + bend * (place % 2) for place in range(len(levels))]
    return _runs({level: list(law.qps(level) * np.exp(log)) for level, log in zip(levels, logs, strict=True)})


def _table(levels: list[int], **how: float) -> pd.DataFrame:
    runs = _noisy(LAW, levels, **how)
    return runs.pivot_table(index="block", columns="threads", values="qps")


def test_exact_data_give_back_the_law():
    law = fit_usl([1, 2, 4, 6, 8, 10], [1, 1.8868, 3.0769, 3.5294, 3.5398, 3.3557])
    assert (law.gamma, law.alpha, law.beta) == pytest.approx((1, 0.02, 0.02), abs=1e-5)


def test_the_log_fit_of_sdm91():
    law = fit_usl(LOAD, THROUGHPUT)
    assert (law.gamma, law.alpha, law.beta) == pytest.approx((67.94, 0.013452, 1.15110e-4), rel=1e-4)
    assert law.peak_threads == pytest.approx(92.577, abs=1e-3)
    assert law.qps(law.peak_threads) == pytest.approx(1960.79, abs=0.01)


def test_the_law_itself_is_the_one_of_the_r_package():
    from scipy.optimize import curve_fit

    # usl(throughput ~ load, specsdm91): least squares of throughput, not of its logarithm.
    values, covariance = curve_fit(lambda n, *abc: UslFit(*abc).qps(n), LOAD, THROUGHPUT, p0=[70, 0.02, 1e-4])
    law = UslFit(*values)
    assert (law.alpha, law.beta, law.gamma) == pytest.approx((0.0277285, 1.04365e-4, 89.9952), rel=1e-4)
    errors = np.sqrt(np.diag(covariance))
    assert errors == pytest.approx([14.2135, 0.0091217, 1.98753e-5], rel=1e-3)
    assert (law.peak_threads, law.qps(law.peak_threads)) == pytest.approx((96.51956, 1883.899), rel=1e-5)
    assert law.gamma / law.alpha == pytest.approx(3245.59, rel=1e-4)


def test_a_law_without_coherency_or_with_nothing_but_contention_has_no_peak():
    assert UslFit(100, 0.05, 0.0).peak_threads is None
    assert UslFit(100, 0.05, -0.001).peak_threads is None
    assert UslFit(100, 1.0, 0.001).peak_threads is None
    # The root of (1 - 0.1) / 0.001.
    assert UslFit(100, 0.1, 0.001).peak_threads == pytest.approx(30.0)


def test_good_data_pass_the_gate_with_intervals_over_blocks():
    found = describe_scaling(_noisy(LAW, [1, 4, 16, 32, 64, 128]), "direct", "w")
    assert found.reason is None
    assert found.peak_threads.n == 5
    assert found.peak_threads.low < LAW.peak_threads < found.peak_threads.high
    assert found.peak_qps.value == pytest.approx(LAW.qps(LAW.peak_threads), rel=0.02)


# Runs that show no law; the reason of each is in goldens/scaling.txt.
REFUSED = {
    "levels that begin with 150": _noisy(UslFit(600, 0.002, 1e-7), LATE),
    "five levels": _noisy(LAW, [1, 8, 32, 64, 128]),
    "still rising": _noisy(UslFit(1000, 0.02, 1e-7), [1, 2, 4, 8, 16, 32]),
    "a maximum by chance": _noisy(UslFit(1000, 1.0, 0.0), [1, 2, 4, 8, 16, 32], spread=0.03),
    "a shape that is not the law's": _noisy(LAW, [1, 4, 16, 32, 64, 128], bend=0.15),
    "a run of no throughput": _runs({1: [1000, 0], 4: [3800, 3800]}),
    "no run": _noisy(LAW, [1, 4]).iloc[:0],
}


def test_data_that_show_no_law_give_the_observed_maximum_only():
    lines = []
    for title, table in REFUSED.items():
        found = describe_scaling(table, "direct", "w")
        assert (found.usl, found.peak_threads, found.peak_qps) == (None, None, None)
        assert (found.observed_max_threads in found.threads) == (found.observed_max_qps is not None)
        lines.append(f"{title}: {found.reason}; most at {found.observed_max_threads}")
    logs = np.log(_table([1, 4, 16, 32, 64, 128], spread=0.0, bend=0.15))
    lines.append(f"such a shape in blocks that agree to the last digit: {_lack_of_fit(logs, LAW)}")
    # X(N) = 1000 N / (1 + 0.05 (N - 1) + 0.005 N (N - 1)): its peak is sqrt(0.95 / 0.005) = 13.8 threads.
    printed = {n: 1000 * n / (1 + 0.05 * (n - 1) + 0.005 * n * (n - 1)) for n in (1, 2, 4, 8, 16, 32)}
    series = {
        "a printed series of six levels": printed,
        "one number of it halved": printed | {8: printed[8] / 2},
        "five levels of it": {n: qps for n, qps in printed.items() if n > 1},
        "and one of nothing": printed | {2: 0.0},
        "it rises to the end": printed | {32: 9000.0},
    }
    for title, qps in series.items():
        (check,) = check_scalability(cells(rows(qps)))
        lines.append(f"{title}: {check.passed}, {check.where}: {check.detail}")
    assert_golden("scaling.txt", "\n".join(lines).replace("\xa0", " ") + "\n")


def test_the_observed_maximum_is_the_geometric_mean_of_its_blocks_in_the_arm_and_workload_asked_for():
    mine = _runs({1: [100, 400], 4: [10, 10]})
    others = [mine.assign(arm="other", qps=9999.0), mine.assign(workload="other", qps=9999.0)]
    found = describe_scaling(pd.concat([mine, *others]), "direct", "w")
    # The root of 100 x 400.
    assert found.observed_max_qps == pytest.approx(200.0)
    assert (found.observed_max_threads, found.threads) == (1, [1, 4])
    assert (found.arm, found.workload) == ("direct", "w")


def test_blocks_that_agree_to_the_last_digit_are_held_to_the_law_all_the_same():
    logs = (np.log(_table([1, 4, 16, 32, 64, 128], spread=0.0, bend=bend)) for bend in (0.0, 0.15))
    assert [_lack_of_fit(each, LAW) is None for each in logs] == [True, False]


@pytest.mark.parametrize("bend", [0.0, 0.012, 0.02, 0.15])
def test_lack_of_fit_is_the_f_test_of_the_levels_against_the_noise_between_blocks(bend: float):
    logs = np.log(_table([1, 4, 16, 32, 64, 128], bend=bend))
    values = logs.to_numpy()
    left = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    # Six levels less the law's three parameters; 5 x 4 degrees of freedom of five blocks.
    misfit = 5 * ((values.mean(axis=0) - np.log(LAW.qps(logs.columns.to_numpy(float)))) ** 2).sum() / 3
    p = scipy.stats.f.sf(misfit / ((left**2).sum() / 20), 3, 20)
    said = _lack_of_fit(logs, LAW)
    due = f"lack of fit: the law misses the levels by more than noise (p = {p:.2g})"
    assert said == (due if p <= 0.05 else None)


def rows(qps: dict[int, float]) -> list[tuple]:
    """Return rows of QPS by threads."""
    return [("t", "a", threads, "qps", f"{value:g}") for threads, value in qps.items()]


def test_the_scalability_law_is_fitted_where_it_can_be():
    """X(N) = 1000 N / (1 + 0.02 (N - 1) + 0.001 N (N - 1)): its peak is sqrt(0.98 / 0.001) = 31.3 threads."""
    qps = {n: 1000 * n / (1 + 0.02 * (n - 1) + 0.001 * n * (n - 1)) for n in (1, 2, 4, 8, 16, 32, 64)}
    (found,) = check_scalability(cells(rows(qps)))
    assert found.passed is True
    assert "contention 0.02, coherency 0.001" in found.detail and " 31 threads" in found.detail
    (off,) = check_scalability(cells(rows({**qps, 8: qps[8] / 2})))
    assert off.passed is False


def test_a_level_that_stands_in_a_table_twice_is_no_series():
    (nothing,) = check_scalability(cells(rows({8: 600, 16: 900}) + rows({8: 700})))
    assert (nothing.passed, nothing.where) == (None, "nowhere")


@pytest.mark.parametrize("law", [UslFit(100.0, -0.02, 0.0), UslFit(100.0, 0.2, -0.0005)])
def test_neither_contention_nor_coherency_is_negative(law):
    """Throughput that grows faster than threads has a reason that the law does not know."""
    threads = np.array([1, 2, 4, 8, 16, 32], dtype=float)
    fit = fit_usl(threads, law.qps(threads))
    assert fit.alpha >= 0 and fit.beta >= 0
