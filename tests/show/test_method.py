"""The page on the method says how often equal arms came out unequal, small differences included."""

from benchbook.core.artifacts.findings import Findings
from benchbook.show import method
from tests.found import finding, findings
from tests.goldens import assert_page


def study(low: float, high: float, label: str) -> Findings:
    return findings(study="one", aa=finding(low=low, high=high, label=label, effect=(low + high) / 2))


def test_a_pair_that_leaves_zero_out_is_counted_however_small():
    known = {
        "a": study(-0.01, 0.02, "not shown"),
        "b": study(0.015, 0.111, "higher"),
        "c": study(-0.008, -0.002, "no practical difference"),
        "d": findings(study="none"),
        "e": study(-0.14, 8.79, "no useful interval"),
    }
    assert_page("method.txt", method.render_opening(known))


def test_results_of_campaigns_are_a_table_of_percent_and_times(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    nothing = method.tabulate_calibration()
    file = tmp_path / "data" / "record" / "calibration" / "results.csv"
    file.parent.mkdir(parents=True)
    file.write_text(
        "question,case,unit,campaigns,n,value,low,high,level\n"
        "alarms of equal arms,,%,100,500,0.02,0.0024,0.0704,0.95\n"
        'turns over whole runs,"burns, tidb, oltp_point_select",%,,10,-0.01,-0.05,0.03,0.98\n'
        "seconds of whole runs for the error of turns,haproxy,times,,,7.25,,,\n"
    )
    assert_page("calibration.txt", nothing, method.tabulate_calibration())
