"""Tables say what they are of, show what is missing, and hold hostile names as text."""

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from benchbook.compare.stats import stalls
from benchbook.core.artifacts.run_folder import EVIDENCE
from benchbook.show import run_tables, study_answer, tables, templating
from benchbook.show.table import build_table
from tests.found import changed, findings
from tests.goldens import assert_golden, assert_page

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


def test_what_tables_say_of_findings_runs_and_facts(made):
    found, runs = made.findings, made.runs.iloc[18:22].sample(frac=1, random_state=1)
    by_threads = changed(found.findings[0], headline=False, label="depends on threads")
    failed = {"check": "ledger", "passed": False, "where": "b01", "detail": "41 more"}
    nothing = {"check": "Little's law", "passed": None, "where": "nowhere", "detail": ""}
    peak = {"value": 11.42, "low": 9.96, "high": 13.1, "level": 0.95, "n": 5}
    fitted = changed(found.scaling[0], peak_threads=peak, peak_qps=peak, reason=None)
    ledger = ["agrees", "agrees", "not available: no right to read it", "agrees"]
    facts = {
        "governor": None,
        "empty": {},
        "log": {"asked": "ON", "from": "benchbook", "got": "OFF"},
        "flush": {"asked": "2", "from": "study", "got": "2"},
        "pilots": [{"arm": "a", "s": None}],
    }
    loads = {name: {"index": "before the rows", "seconds": 8.0} for name in ("first", "cold")}
    loads["last"] = {"index": "after the rows", "seconds": 12.5}
    once = {"tables": 4, "table_size": 50_000}
    assert_page(
        "tables.txt",
        tables.tabulate_effects(changed(found, aa=None, findings=[by_threads])),
        tables.tabulate_checks(changed(found, checks=[nothing, *found.checks, failed])),
        tables.tabulate_scaling(found),
        tables.tabulate_scaling(changed(found, scaling=[fitted, *found.scaling[1:]])),
        run_tables.tabulate_runs(runs, "../data/quick"),
        run_tables.tabulate_runs(runs.assign(ledger=ledger, warnings="short; slow disk"), "x"),
        run_tables.tabulate_voids(made.voids, "x"),
        run_tables.tabulate_voids(made.voids.head(0), "x"),
        tables.tabulate_differences(changed(found, facts_differ=[]), made.named),
        *tables.tabulate_facts(facts, "Facts", "facts"),
        *tables.tabulate_facts(None, "Facts", "facts"),
        # 4 x 50,000 rows in 8 s are 25,000 a second, in 12.5 s 16,000.
        *tables.tabulate_loading({**once, "loads": loads}, {"first": "the first"}),
    )
    told = run_tables.tabulate_runs(runs, "x")._repr_html_()
    assert f'id="run-{made.runs.run_id[20].lower()}"' in told and 'id="runs-note-1"' in told
    for dataset in (once, {**once, "loads": {}}, None):
        assert tables.tabulate_loading(dataset, {}) == []


def test_hostile_names_and_logs_stay_text(made):
    evil = "<script>alert(1)</script>\x1b[31m"
    voids = made.voids.assign(reasons=evil, arm=f"a | {evil}", workload=f'" onmouseover="{evil}')
    shown = _soup(run_tables.tabulate_voids(voids, '"><script>'))
    assert shown.script is None and "\x1b" not in str(shown)
    assert "a | <script>alert(1)</script>" in [cell.get_text() for cell in shown.find_all("td")]
    facts = _soup(tables.tabulate_facts({evil: {evil: evil}}, evil, "facts")[0])
    assert facts.script is None


@pytest.mark.parametrize("word", [*templating.LABELS, *templating.VERDICTS, *templating.RESULTS.values()])
def test_every_word_that_claims_something_has_its_colour(word):
    shown = templating.render_badge(word).text
    kind = word.replace(" ", "-")
    assert shown == f'<span class="badge {kind}">{word}</span>'
    assert (f".badge.{kind}" in STYLE) == (word not in PLAIN)


def test_an_unknown_word_looks_like_no_verdict_and_breaks_nothing():
    word = 'passed" onclick="x'
    badge = BeautifulSoup(templating.render_badge(word).text, "html.parser").span
    assert (badge.attrs, badge.get_text()) == ({"class": ["badge"]}, word)


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
    assert_golden("losses.txt", "\n".join(table.render_text()) + "\n")
    opening = study_answer.render_opening(findings(), losses=[table]).text
    assert opening.index("Lost at the event") < opening.index('class="results"')


@pytest.mark.parametrize(
    ("planned", "says"), [(5, "Not enough data yet: 1 of the 5 "), (4, "This describes ")]
)
def test_a_study_describes_alone_where_it_plans_fewer_blocks_than_the_first_look(planned: int, says: str):
    look = {"n": 0, "next": 5, "level": 0.98, "note": ""}
    planned_blocks = findings(blocks={"complete": 1, "planned": planned}, look=look)
    assert study_answer.describe_progress(planned_blocks).replace("\xa0", " ").startswith(says)
