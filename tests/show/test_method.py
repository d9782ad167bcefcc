"""The page on the method says how often equal arms came out unequal, small differences included."""

from benchbook.core.artifacts import calibration_store
from benchbook.core.artifacts.findings import Findings
from benchbook.show import method
from tests.found import finding, findings


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
    text = method.render_opening(known).text.replace("\N{NO-BREAK SPACE}", " ")
    assert (
        "Of 4 studies that compared an arm with itself (A/A), 2 came out with an interval that leaves zero "
        "out. In 1 of them the interval is too wide to tell." in text
    )


def test_what_the_recorded_campaigns_show_is_told_with_their_machine_and_load(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    assert "No calibration is recorded yet." in method.render_calibration().text
    calibration_store.table_file().parent.mkdir(parents=True)
    row = "same,,mariadb,oltp_point_select,turns,50,20.0"
    calibration_store.table_file().write_text(
        "name,kind,what,engine,workload,order,turn_ms,active_s,began_utc,load_1min,low,high,log_ratios,machine\n"
        f"a,{row},2026-01-05T01:00:00+00:00,0.25,-0.02,0.03,0.01 -0.01 0.02,2 cores of made up\n"
        f"b,{row},2026-01-06T01:00:00+00:00,8.5,0.01,0.03,0.01 0.03 0.02,2 cores of made up\n"
        f"c,{row},2026-01-06T02:00:00+00:00,1,,,0.01,2 cores of made up\n"
    )
    text = method.render_calibration().text.replace("\N{NO-BREAK SPACE}", " ")
    assert "3 campaigns, 2026-01-05 to 2026-01-06, on 2 cores of made up; load 0.2 to 8.5" in text
    assert "Of 2 campaigns in which both arms were the same server, 1 showed a difference: 50.0 %" in text
    assert text.count("<li>") == 1, "known effects and lengths were not asked about"
