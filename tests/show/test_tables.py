import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from benchbook.compare.stats import stalls
from benchbook.core.artifacts.run_folder import EVIDENCE
from benchbook.core.util import number_format
from benchbook.show import run_tables, study_answer, tables, templating
from benchbook.show.table import build_table
from tests.found import changed, findings

STYLE = (Path(templating.__file__).parent / "templates" / "page" / "style.css").read_text(encoding="utf-8")
# Where nothing was shown, nothing is coloured.
PLAIN = {"nothing to check", "no practical difference", "not shown", "not decided yet"}
PLAIN |= {"not judged", "not computed"}


def _soup(table) -> BeautifulSoup:
    return BeautifulSoup(table._repr_html_(), "html.parser")


def test_every_cell_can_be_found_from_its_headings(made):
    for table in (
        tables.tabulate_effects(made.findings),
        run_tables.tabulate_runs(made.runs, "x"),
        tables.tabulate_checks(made.findings),
    ):
        soup = _soup(table)
        headings = soup.thead.find_all("th")
        assert all(cell["scope"] == "col" for cell in headings)
        for row in soup.tbody.find_all("tr"):
            assert len(row.find_all(["th", "td"])) == len(headings)
            assert row.th["scope"] == "row"
        assert soup.find(role="region")["tabindex"] == "0"


def test_a_finding_without_headline_shows_no_effect(made):
    found = changed(made.findings.findings[0], headline=False, label="depends on threads")
    text = _soup(tables.tabulate_effects(changed(made.findings, aa=None, findings=[found]))).tbody.get_text()
    assert "depends on threads" in text
    assert number_format.format_percent(found.effect) not in text


def test_runs_are_in_order_linked_and_carry_their_warnings_as_footnotes(made):
    table = run_tables.tabulate_runs(made.runs.sample(frac=1, random_state=1), "../data/quick")
    soup = _soup(table)
    assert [int(row.th.span.get_text()) for row in soup.tbody.find_all("tr")] == list(range(65))
    log, *_ = soup.tbody.tr.find_all("a")
    assert soup.tbody.tr.th.span["id"] == f"run-{made.runs['run_id'][0].lower()}"
    assert log["href"] == f"../data/quick/{made.runs['folder'][0]}/sysbench.out"
    assert table.notes.texts == ["PSI cpu above 40 % for 2 s"]
    assert soup.find(id="runs-note-1").get_text() == "PSI cpu above 40 % for 2 s"
    assert [row.th.span.get_text() for row in soup.tbody.find_all("tr") if row.sup] == ["20"]


def test_a_ledger_that_could_not_be_read_is_a_footnote(made):
    runs = made.runs.head(2).assign(ledger=["agrees", "not available: no right to read it"])
    assert run_tables.tabulate_runs(runs, "x").notes.texts == ["ledger not available: no right to read it"]


def test_the_same_warning_is_one_footnote(made):
    runs = made.runs.assign(warnings="short; slow disk")
    assert run_tables.tabulate_runs(runs, "x").notes.texts == ["short", "slow disk"]


def test_every_reason_of_a_void_is_listed(made):
    reasons = [item.get_text() for item in _soup(run_tables.tabulate_voids(made.voids, "x")).find_all("li")]
    assert "V20 pause: no tick for 612 ms" in reasons
    assert len(reasons) == 3


def test_hostile_names_and_logs_stay_text(made):
    evil = "<script>alert(1)</script>\x1b[31m"
    voids = made.voids.assign(reasons=evil, arm=evil, workload=f'" onmouseover="{evil}')
    shown = _soup(run_tables.tabulate_voids(voids, '"><script>'))
    assert shown.script is None
    assert "<script>alert(1)</script>" in shown.get_text()
    assert "\x1b" not in str(shown)
    facts = _soup(tables.tabulate_facts({evil: {evil: evil}}, evil, "facts")[0])
    assert facts.script is None


def test_a_fact_nobody_reported_is_said_to_be_missing():
    soup = _soup(tables.tabulate_facts({"governor": None, "empty": {}}, "Facts", "facts")[0])
    assert soup.tbody.tr.td.get_text() == "not reported"
    assert "Not recorded." in tables.tabulate_facts(None, "Facts", "facts")[0]._repr_html_()


def test_a_setting_is_one_row_and_a_list_of_records_a_table_of_its_own():
    asked = {"asked": "ON", "from": "benchbook", "got": "OFF"}
    taken = {"asked": "2", "from": "study", "got": "2"}
    table, pilots = tables.tabulate_facts(
        {"log": asked, "flush": taken, "pilots": [{"arm": "a", "s": None}]}, "Facts", "facts"
    )
    assert table.rows == [["log", "OFF, asked for as ON (benchbook)"], ["flush", "2 (study)"]]
    assert pilots.title == "Facts, pilots" and pilots.rows == [["a", "not reported"]]
    assert [column.label for column in pilots.columns] == ["arm", "s"]


def test_a_fitted_peak_has_its_interval_and_no_column_where_nothing_was_fitted(made):
    assert len(tables.tabulate_scaling(made.findings).columns) == 6
    peak = {"value": 11.42, "low": 9.96, "high": 13.1, "level": 0.95, "n": 5}
    first, *rest = made.findings.scaling
    fitted = changed(first, peak_threads=peak, peak_qps=peak, reason=None)
    table = tables.tabulate_scaling(changed(made.findings, scaling=[fitted, *rest]))
    assert table.rows[0][-3:] == ["11.4 (9.96 to 13.1)", "11.4 (9.96 to 13.1)", ""]
    assert table.rows[1][-3:-1] == ["", ""]


def test_failed_checks_come_first(made):
    failed = {"check": "ledger", "passed": False, "where": "b01", "detail": "41 more"}
    table = tables.tabulate_checks(changed(made.findings, checks=[*made.findings.checks, failed]))
    assert table.rows[0][0] == "ledger"


def test_empty_tables_say_so(made):
    empty = pd.DataFrame(columns=made.voids.columns)
    assert "No run was voided." in run_tables.tabulate_voids(empty, "x")._repr_html_()
    same = changed(made.findings, facts_differ=[])
    assert "same facts" in tables.tabulate_differences(same, made.named)._repr_html_()


@pytest.mark.parametrize("word", [*templating.LABELS, *templating.VERDICTS, *templating.RESULTS.values()])
def test_every_word_that_claims_something_has_its_colour(word):
    shown = templating.render_badge(word).text
    kind = word.replace(" ", "-")
    assert shown == f'<span class="badge {kind}">{word}</span>'
    assert (f".badge.{kind}" in STYLE) == (word not in PLAIN)


def test_an_unknown_word_looks_like_no_verdict_and_breaks_nothing():
    assert templating.render_badge('passed" onclick="x').text.startswith('<span class="badge">passed&quot;')


def test_arms_that_share_data_share_a_row_with_rows_a_second():
    dataset = {
        "tables": 4,
        "table_size": 50_000,
        "loads": {
            "first": {"index": "before the rows", "seconds": 8.0},
            "cold": {"index": "before the rows", "seconds": 8.0},
            "last": {"index": "after the rows", "seconds": 12.5},
        },
    }
    (table,) = tables.tabulate_loading(dataset, {"first": "the first"})
    # 4 x 50,000 rows in 8 s are 25,000 a second, in 12.5 s 16,000.
    assert [row[:2] for row in table.rows] == [
        ["the first, cold", "before the rows"],
        ["last", "after the rows"],
    ]
    assert [str(row[3]).replace(",", "").replace("\u202f", "") for row in table.rows] == ["25000", "16000"]
    assert "loaded once" in table.caption and "no interval" in table.caption


def test_data_that_were_loaded_once_for_all_arms_have_no_table():
    once = {"tables": 1, "table_size": 10}
    for dataset in (once, once | {"loads": {}}, None):
        assert tables.tabulate_loading(dataset, {}) == []


@pytest.mark.parametrize(
    ("arm", "periods", "shown"),
    [
        ({"resources": {"limits": {"cpu": "2"}}, "qos_class": "Burstable"}, 100, ["30.0", "1.50", "2.00"]),
        # A limit that somebody set by hand, and a pod without any.
        ({"qos_class": "BestEffort"}, 100, ["30.0", "1.50", "2.00"]),
        ({"qos_class": "BestEffort"}, 0, None),
        ({"cpu": {"server": {"quota_cores": None}}}, 100, None),
    ],
)
def test_what_a_limit_held_back_has_a_row_with_shares_and_seconds(arm, periods, shown, tmp_path):
    for name, count, seconds in (("one", 40, 2.0), ("two", 20, 1.0)):
        (tmp_path / name).mkdir()
        held = {"server": {"periods": periods, "throttled": count, "throttled_s": seconds}}
        (tmp_path / name / EVIDENCE).write_text(json.dumps({"arrangement": {"throttled": held}}))
    runs = pd.DataFrame({"arm": "a", "folder": ["one", "two"]})
    findings = SimpleNamespace(names=SimpleNamespace(arms={}))
    seen = SimpleNamespace(facts={"arms": {"a": arm}}, runs=runs, folder=tmp_path, findings=findings)
    found = tables.tabulate_throttling(seen)
    assert [row[3:] for table in found for row in table.rows] == ([shown] if shown else [])


def test_what_an_event_lost_is_a_row_an_arm_on_a_page_and_in_a_terminal():
    killed = stalls.EventLoss("a", True, [4, 6], [0.54, 12.0], [0, 1200], [3])
    gone = stalls.EventLoss("b", True, [4], [40.0], [40], [])
    steady = stalls.EventLoss("c", False, [0], [0.0], [0], [0])
    named = {"a": "first killed", "b": "both killed", "c": "two servers"}
    table = build_table("losses", [killed, gone, steady], arms=named)
    assert table.render_text()[1:] == [
        "Arm                    Blocks  Failed transactions  As before after s       Lost s    Silent s",
        "first killed                2               4 to 6     3 in 1 of them  0.5 to 12.0  0 to 1,200",
        "both killed                 1                    4              never         40.0          40",
        "two servers, no event       1                    0                  0          0.0           0",
    ]
    opening = study_answer.render_opening(findings(), losses=[table]).text
    assert opening.index("Lost at the event") < opening.index('class="results"')


@pytest.mark.parametrize(
    ("planned", "says"), [(5, "Not enough data yet: 1 of the 5 "), (4, "This describes ")]
)
def test_a_study_describes_alone_where_it_plans_fewer_blocks_than_the_first_look(planned: int, says: str):
    look = {"n": 0, "next": 5, "level": 0.98, "note": ""}
    planned_blocks = findings(blocks={"complete": 1, "planned": planned}, look=look)
    assert study_answer.describe_progress(planned_blocks).replace("\xa0", " ").startswith(says)
