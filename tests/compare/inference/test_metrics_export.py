"""What `dvc metrics` and `dvc plots` compare: the findings in small, in percent, nothing renamed or lost."""

import pandas as pd
import pytest

from benchbook.compare.inference import metrics_export
from tests.found import changed, finding, findings, level

QPS = {
    "workload": "reads", "metric": "qps", "treatment": "proxy", "baseline": "direct", "effect": -0.123456789,
    "low": -0.2, "high": None, "n": 5, "label": "lower", "claim": "s/c", "verdict": "confirmed",
    "levels": [level(4, -0.1, -0.15, -0.05, label="lower"), level(16, None, None, None)],
}  # fmt: skip
LATENCY = QPS | {"metric": "latency_p99_ms", "effect": 0.5, "low": 0.25, "high": 0.75, "verdict": None}
AA = QPS | {"treatment": "direct_again", "effect": 0.001, "low": -0.01, "high": 0.012, "levels": []}
AA |= {"label": "not shown"}
BY_ARM = {"direct": {"voided": 2, "runs": 9}, "proxy": {"voided": 1, "runs": 8}}
VOIDS = {"by_arm": BY_ARM, "fisher_p": None, "note": ""}
FOUND = findings(
    *(finding(**each) for each in (QPS, LATENCY)), voids=VOIDS, machine_minutes=12.5, aa=finding(**AA)
)


def test_effects_by_workload_treatment_and_metric():
    # Percent with four digits.
    qps = {"effect_pct": -12.3457, "low_pct": -20.0, "high_pct": None, "n": 5, "shown": "lower"}
    latency = {"effect_pct": 50.0, "low_pct": 25.0, "high_pct": 75.0, "n": 5, "shown": "lower"}
    again = {"effect_pct": 0.1, "low_pct": -1.0, "high_pct": 1.2, "n": 5, "shown": "not shown"}
    assert metrics_export.export_metrics(FOUND) == {
        "blocks": 5, "voided_runs": 3, "machine_minutes": 12.5,
        "reads": {"proxy": {"qps": qps, "latency_p99_ms": latency}, "direct_again": {"qps": again}},
    }  # fmt: skip
    assert "direct_again" not in metrics_export.export_metrics(changed(FOUND, aa=None))["reads"]


def test_thread_levels_are_those_of_qps():
    table = metrics_export.by_threads(FOUND).astype(object)
    rows = table.where(table.notna(), None).to_dict("records")
    assert rows == [
        {"workload": "reads", "treatment": "proxy", "threads": 4, "effect_pct": -10.0, "low_pct": -15.0,
         "high_pct": -5.0, "shown": "lower"},
        {"workload": "reads", "treatment": "proxy", "threads": 16, "effect_pct": None, "low_pct": None,
         "high_pct": None, "shown": "not shown"},
    ]  # fmt: skip
    assert list(metrics_export.by_threads(findings()).columns) == list(table.columns)


def test_blocks_have_the_mean_over_their_thread_levels(make_runs, make_study):
    """The geometric mean of 0.8 and 1.25 is 1, of 0.9 and 0.9 it is 0.9."""
    runs = make_runs({"haproxy": {4: [0.8, 0.9], 16: [1.25, 0.9]}})
    table = metrics_export.by_block(make_study(threads=(4, 16)), runs)
    assert table.to_dict("records") == [
        {"workload": "oltp_point_select", "treatment": "haproxy", "block": 1, "effect_pct": 0.0},
        {"workload": "oltp_point_select", "treatment": "haproxy", "block": 2, "effect_pct": -10.0},
    ]
    pd.testing.assert_index_equal(metrics_export.by_block(make_study(), runs.iloc[:0]).columns, table.columns)


def test_every_finding_is_a_row_the_pair_of_equals_first():
    table = metrics_export.findings_table(FOUND)
    assert table.iloc[1].to_dict() == {
        "workload": "reads", "metric": "qps", "treatment": "proxy", "baseline": "direct",
        "effect_pct": -12.3457, "low_pct": -20.0, "high_pct": pytest.approx(float("nan"), nan_ok=True),
        "blocks": 5, "shown": "lower", "claim": "s/c", "verdict": "confirmed",
    }  # fmt: skip
    assert list(table["treatment"]) == ["direct_again", "proxy", "proxy"]
    assert list(metrics_export.findings_table(changed(FOUND, aa=None))["metric"]) == ["qps", "latency_p99_ms"]
