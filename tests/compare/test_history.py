"""A study over time: rows of a measurement, changes of effect and baseline told apart, and what is left
out."""

import numpy as np
import pandas as pd
import pytest

from benchbook.compare import findings, history
from benchbook.core.params import Analysis

DAYS = [f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T06:00:00Z" for day in range(30)]


def table(effects, baselines, contrast="oltp_point_select.haproxy.qps", settings="same"):
    rows = [
        {
            **dict.fromkeys(history.COLUMNS),
            "study": "quick", "measured_at": day, "contrast": contrast, "workload": "oltp_point_select",
            "baseline": "direct", "treatment": "haproxy", "metric": "qps", "effect": effect,
            "low": effect - 0.02, "high": effect + 0.02, "level": 0.98, "n": 5, "label": "lower",
            "baseline_qps": baseline, "settings": settings, "commit": "abc",
        }
        for day, effect, baseline in zip(DAYS, effects, baselines, strict=False)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def made(effect_step=0.0, baseline_step=0.0, at=18, seed=1, **given):
    """Thirty measurements: effects of -10 % ± 1 %, a baseline of 20,000 QPS ± 3 %, each with a step in it."""
    random, after = np.random.default_rng(seed), np.arange(30) >= at
    effects = np.expm1(np.log(0.9) + random.normal(0, 0.01, 30) + np.log1p(effect_step) * after)
    baselines = 20_000 * np.exp(random.normal(0, 0.03, 30) + np.log1p(baseline_step) * after)
    return table(effects, baselines, **given)


def test_a_step_of_the_effect_is_found_at_its_date_and_size():
    (one,) = history.series(made(effect_step=-0.05))
    (change,) = one.changes
    assert (change.place, change.measured_at, change.what) == (18, DAYS[18], "effect")
    # Ten measurements and more on each side: the step of 5 % is known to 0.4 %.
    assert change.effect == pytest.approx(-0.05, abs=0.012)
    assert change.baseline is None
    assert "which shows no change" in one.sentence and DAYS[18][:10] in one.sentence


def test_a_machine_that_slows_down_is_no_change_of_the_effect():
    (one,) = history.series(made(baseline_step=-0.2))
    (change,) = one.changes
    assert (change.place, change.what, change.effect) == (18, "baseline", None)
    assert change.baseline == pytest.approx(-0.2, abs=0.04)
    assert "machine or server moved for both arms alike" in one.sentence


def test_both_at_once_are_one_change():
    (one,) = history.series(made(effect_step=0.08, baseline_step=-0.2))
    assert [change.what for change in one.changes] == ["both"]
    assert "both moved" in one.sentence


def test_thirty_series_without_a_step_have_no_change():
    assert [one.changes for seed in range(30) for one in history.series(made(seed=seed))] == [()] * 30


def test_too_few_measurements_say_how_many_are_needed():
    (one,) = history.series(made(effect_step=-0.5, at=6).head(12))
    assert one.changes == ()
    # A level in two halves: 2 / C(15, 7) = 2 / 6435 is the first below 0.0005.
    assert one.sentence == "12 measurements so far; it takes 15 to show a change."


def test_other_settings_are_another_study():
    early, late = made(effect_step=-0.5), made()
    early["settings"] = ["old"] * 18 + ["new"] * 12
    late["settings"] = "new"
    (one,) = history.series(early)
    assert len(one.rows) == 12 and one.changes == ()
    assert "18 measurements with other settings of the study left out" in one.notes
    assert history.series(late)[0].notes == ()


def test_a_measurement_without_one_number_is_left_out_and_counted():
    series = made()
    series.loc[3, ["effect", "low", "high"]] = None
    (one,) = history.series(series)
    assert len(one.rows) == 29
    assert one.notes == ("1 measurement without one effect for all threads left out",)


def test_measurements_of_another_machine_are_left_out_and_said_to_be():
    """An AMD's five and an Intel's twenty-five: the step between them is the machine's, and no change."""
    both = made(effect_step=0.5, baseline_step=1.0, at=5).assign(machine=["AMD"] * 5 + ["Intel"] * 25)
    (one,) = history.series(both)
    assert len(one.rows) == 25 and not one.changes
    assert one.notes == ("5 measurements of another machine left out",)
    assert history.series(both.assign(machine=None))[0].changes


def test_more_contrasts_share_the_error():
    both = pd.concat([made(), made(contrast="oltp_read_write.haproxy.qps")])
    # 0.001 / 2 contrasts / 2: 2 / C(16, 8) = 2 / 12870 = 0.00016 <= 0.00025.
    assert [one.fewest for one in history.series(both)] == [16, 16]


def test_rows_of_findings_and_the_same_measurement_kept_once(make_runs, make_study, no_voids, no_histograms):
    """1000 QPS a thread at 4 and 16 threads: the geometric mean of 4000 and 16000 is 8000."""
    ratios = [0.690, 0.685, 0.693, 0.688, 0.684]
    runs = make_runs({"haproxy": {4: ratios, 16: ratios}})
    runs["started_utc"] = [f"2026-11-22T10:00:{second % 60:02d}Z" for second in range(len(runs))]
    tidy = {"runs": runs, "voids": no_voids, "histograms": no_histograms}
    found = findings.make("quick", make_study(threads=(4, 16)), tidy, Analysis())
    own = history.rows(found, runs, "quick", "digest", "0123456789", "site local: 2 cores of an AMD")
    assert set(own["machine"]) == {"site local: 2 cores of an AMD"}
    assert list(own.columns) == list(history.COLUMNS)
    (row,) = own.to_dict("records")
    assert (row["contrast"], row["measured_at"]) == ("oltp_point_select.haproxy.qps", "2026-11-22T10:00:00Z")
    assert row["baseline_qps"] == pytest.approx(8000)
    assert row["effect"] == found["findings"][0]["effect"]
    assert len(history.together([own, own])) == 1
    later = own.assign(measured_at="2026-11-21T09:00:00Z")
    assert [day[:10] for day in history.together([own, later])["measured_at"]] == ["2026-11-21", "2026-11-22"]
