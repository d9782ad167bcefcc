from dataclasses import asdict
from types import SimpleNamespace

import pandas as pd
import pytest

from benchbook.compare.stats import interleaved_runs, steady_state
from benchbook.show import tables
from benchbook.show.caveats_section import DIFFERS, build_caveats, report_differences
from tests.found import changed

APART = "arms were voided at different rates: that itself is a finding"


def _points(findings, runs, warm_up=None):
    return build_caveats(SimpleNamespace(findings=findings, runs=runs, warm_up=warm_up))


def _by_name(findings, runs):
    return {doubt.name: doubt for doubt in _points(findings, runs)}


def test_a_sound_study_asks_for_care_only_where_it_warns(made):
    found = _by_name(made.findings, made.runs)
    assert [name for name, doubt in found.items() if doubt.is_care] == ["Short runs"]
    assert "A/A" not in found
    assert "65\xa0runs, each measured for 6 s after a discard of 2 s." in found["Runs"].text
    assert "1 of 31\xa0runs of direct connections and 1 of 31\xa0runs of HAProxy" in found["Voids"].text


def test_a_difference_where_there_is_none_asks_for_care(made):
    little = changed(made.findings.aa, label="no practical difference", low=-0.008, high=-0.002)
    corrected = changed(made.findings.aa, label="not shown", low=0.0005, high=0.0205)
    for aa in (None, changed(made.findings.aa, label="lower", low=-0.03, high=-0.01), little, corrected):
        assert _by_name(changed(made.findings, aa=aa), made.runs)["A/A"].is_care


def test_a_pair_that_could_hide_a_difference_is_no_comfort(made):
    """Equal arms within ±19 % show no difference, and would not show one either."""
    aa = changed(made.findings.aa, label="not shown", low=-0.192, high=0.137)
    said = [{"title": "A/A", "text": "as findings have it", "favours": []}]
    text = _by_name(changed(made.findings, aa=aa, warnings=said), made.runs)["A/A"].text.replace("\xa0", " ")
    assert text.endswith("they may differ by up to 19.2 %.")


def test_equal_arms_that_differ_by_threads_ask_for_care(made):
    """The trap: no difference over all thread counts, and an opposite one at each of them."""
    steps = [{"threads": 1, "effect": -0.046}, {"threads": 8, "effect": 0.03}]
    aa = changed(made.findings.aa, label="depends on threads", by_threads=steps)
    aa = changed(aa, headline=False, depends_on_threads={"f": 6.1, "df1": 1, "df2": 4, "p": 0.036})
    found = _by_name(changed(made.findings, aa=aa), made.runs)["A/A"]
    assert found.is_care and found.text.endswith("treat effects of this size as noise.")


def test_a_check_without_anything_to_check_neither_passed_nor_failed(made):
    checks = [
        {"check": "percentile grid", "passed": True, "where": "everywhere", "detail": ""},
        {"check": "Little's law", "passed": None, "where": "nowhere", "detail": ""},
    ]
    found = changed(made.findings, checks=checks)
    text = _by_name(found, made.runs)["Checks"].text.replace("\xa0", " ")
    assert text == "1 consistency check, all passed. Nothing to check for Little's law."
    shown = tables.tabulate_checks(found)._repr_html_()
    assert "failed" not in shown.split("<tbody>")[1] and "nothing to check" in shown
    none = _by_name(changed(made.findings, checks=checks[1:]), made.runs)["Checks"]
    assert none.is_care


def test_a_warm_up_without_steady_state_asks_for_care(made):
    warm_up = {"is_steady": False, "reason": "a pilot of 5 s is too short to judge"}
    (doubt,) = [one for one in _points(made.findings, made.runs, warm_up) if one.name == "Warm-up"]
    assert doubt.is_care and "a pilot of 5 s is too short" in doubt.text
    known = _points(made.findings, made.runs, {"is_steady": True})
    assert not [one for one in known if one.name == "Warm-up"]


def test_a_study_without_pilots_does_not_say_that_they_showed_something(made):
    warm_up = asdict(steady_state.discard_advice(pd.DataFrame(columns=["arm", "workload", "threads"])))
    (doubt,) = [one for one in _points(made.findings, made.runs, warm_up) if one.name == "Warm-up"]
    assert doubt.is_care and doubt.text.startswith("No pilot was run")
    assert "did not show a steady state" not in doubt.text


def test_each_weakness_asks_for_care(made):
    voids = {"by_arm": {"direct": {"runs": 30, "voided": 9}}, "fisher_p": 0.01, "note": APART}
    failed = [{"check": "little", "passed": False, "where": "", "detail": ""}]
    weak = changed(
        made.findings,
        blocks={"planned": 5, "complete": 3},
        voids=voids,
        checks=failed,
        findings=[changed(made.findings.findings[0], warnings=["pair missing"])],
    )
    found = _by_name(weak, made.runs)
    for name in ("Blocks", "Voids", "Checks", "HAProxy on point selects, QPS"):
        assert found[name].is_care
    assert "little" in found["Checks"].text
    assert _by_name(changed(weak, checks=[]), made.runs)["Checks"].is_care
    assert _by_name(weak, made.runs.head(0))["Runs"].is_care


def test_what_a_pair_and_voids_came_to_is_told_once_and_nothing_of_an_arm_without_a_run(made):
    voids = {"by_arm": {"direct": {"runs": 30, "voided": 9}}, "fisher_p": 0.01, "note": APART}
    said = [{"title": one, "text": "as findings have it", "favours": []} for one in ("A/A", "Voided runs")]
    skipped = changed(
        made.findings.findings[0], treatment="mysql", effect=None, warnings=["block 1 has no pair"]
    )
    aa = changed(made.findings.aa, label="not shown", low=-0.192, high=0.137)
    found = changed(made.findings, aa=aa, voids=voids, warnings=said, findings=[skipped])
    told = _points(found, made.runs)
    assert not [one for one in told if "as findings have it" in one.text or "no pair" in one.text]
    care = {one.name for one in told if one.is_care}
    assert {"A/A", "Voids"} <= care and "different rates" in _by_name(found, made.runs)["Voids"].text
    note = "voided runs cannot be compared between arms"
    alone = _by_name(changed(found, voids=voids | {"fisher_p": None, "note": note}), made.runs)["Voids"]
    assert alone.is_care and alone.text.endswith(" Voided runs cannot be compared between arms.")


def test_turns_say_what_stands_still_and_why_the_log_has_other_rates(made):
    runs = made.runs.assign(order="turns", turn_ms=50, turns=60, active_s=3.0, stopped="client")
    runs.loc[runs["arm"] == "haproxy", "stopped"] = "client, proxy"
    runs = runs.assign(latency_p99_ms=float("nan"))
    said = _by_name(changed(made.findings, turns=interleaved_runs.summarize_turns(runs, {})), runs)[
        "Turns"
    ].text
    assert "these stand still: client of direct connections; client and proxy of HAProxy." in said
    assert "too low by a factor of the number of arms" in said and "percentiles are left out" in said
    assert "Turns" not in _by_name(made.findings, made.runs)


def test_an_arm_with_a_limit_that_the_baseline_has_not_is_doubted_for_it_alone(made):
    base, other = made.findings.baseline, made.findings.findings[0].treatment
    fact = "resources.limits.cpu"
    limited = changed(made.findings, facts_differ=[{"fact": fact, "values": {base: None, other: "1"}}])
    told = _by_name(limited, made.runs)["Limit of its own"]
    assert told.is_care and "has a limit of 1 CPU" in told.text and "that limit alone" in told.text
    for values in ({base: "1", other: None}, {base: "2", other: "1"}):
        both = changed(made.findings, facts_differ=[{"fact": fact, "values": values}])
        assert "Limit of its own" not in _by_name(both, made.runs)


@pytest.mark.parametrize(("many", "more"), [(3, ""), (5, "; and 2 more")])
def test_values_that_came_out_otherwise_are_named_and_those_beyond_three_counted(
    monkeypatch, tmp_path, many: int, more: str
):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    (tmp_path / DIFFERS).write_text("".join(f"value {number}\n" for number in range(many)))
    (caveat,) = report_differences()
    assert caveat.text == f"Made again here, values differ: value 0; value 1; value 2{more}."
    assert caveat.is_care
