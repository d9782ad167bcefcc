"""The table of results: the same rows in a terminal, on a page, in Markdown and in a data frame."""

import re

import pytest
from bs4 import BeautifulSoup

from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.compare.text.results_table import ResultRow, build_pooled_results, build_results, describe_aa
from benchbook.core.util.estimate import Estimate
from benchbook.show import results_view, study_answer
from tests.compare.sessions import finding, part, session, sessions
from tests.found import findings
from tests.goldens import assert_golden
from tests.recorded_findings import chosen_findings, recorded_findings

STUDIES = ("quick", "lab-access", "lab-rates", "lab-engines")


@pytest.mark.parametrize("width", [80, 110])
def test_a_terminal_shows_it_within_its_width(width):
    parts = []
    for study in STUDIES:
        table = build_results(chosen_findings(study))
        lines = [results_view.caption_of(table), *results_view.render_text(table, width)]
        assert max(map(len, lines)) <= width
        for most in range(70, width):
            assert max(map(len, results_view.render_text(table, most))) <= most
        parts += [f"== {study}", *lines]
    assert_golden(f"results-{width}.txt", "\n".join(parts).replace("\xa0", " ") + "\n")


def test_markdown_and_page_have_every_row_of_the_terminal():
    table = build_results(chosen_findings("quick"))
    assert_golden("results.md", results_view.render_markdown(table).replace("\xa0", " ") + "\n")
    page = BeautifulSoup(results_view.render_html(table).text, "html.parser")
    assert len(page.select("tbody tr:not(.group)")) == len(table.rows)
    assert len(page.select("tfoot tr:not(.group)")) == len(table.aa)
    rows = page.select("tbody tr:not(.group), tfoot tr:not(.group)")
    assert all(row.find("th", scope="row") for row in rows)
    (first, *_) = page.select("tbody td a")
    assert first.get_text() == "−25.0\xa0%" and first["href"].startswith("#finding-oltp_point_select")
    assert {mark["title"] for mark in page.select("abbr")} == {"lower", "not shown"}
    cells = [row.find_all(["th", "td"]) for row in page.select("tr")]
    assert len({sum(int(cell.get("colspan", 1)) for cell in row) for row in cells}) == 1


def test_a_frame_has_a_row_for_each_effect_with_its_interval():
    frame = results_view.results_frame(build_results(chosen_findings("quick")))
    row = frame[(frame.treatment == "HAProxy") & (frame.threads == 8)].iloc[0]
    assert (row.low < row.change < row.high) and row.baseline == "direct connections" and row.n == 5
    assert frame.is_aa.sum() == 3


def test_colour_is_only_where_it_is_asked_for():
    table = build_results(chosen_findings("quick"))
    assert not any("\033" in line for line in results_view.render_text(table))
    assert any("\033[33m" in line for line in results_view.render_text(table, is_coloured=True))


def test_recorded_sessions_stand_beside_each_effect():
    levels = {1: part(-0.2, 0.01, label="lower"), 8: part(0.2, 0.01)}
    own = finding(part(0.0, 0.01, label="depends on threads"), levels, headline=False, threads=[1, 8])
    days = [session(own, measured=f"2026-11-0{n}T06:00", processor=f"Xeon {n}") for n in range(1, 6)]
    recorded = pool_sessions("quick", days)
    table = build_results(findings(own), recorded)
    # Log effects of −0.2, −0.25, 0.1, 0.2 and 0.3 are −18.1, −22.1, +10.5, +22.1 and +35.0 %.
    others = [pool_sessions("quick", sessions(*each)) for each in ((-0.2, 0.3), (-0.2, -0.25), (0.1,))]
    several = [table, *map(build_pooled_results, [recorded, *others])]
    shown = [results_view.render_markdown(one) + "\n".join(results_view.render_text(one)) for one in several]
    assert_golden("results-sessions.txt", "\n\n".join(shown).replace("\xa0", " ") + "\n")


def test_nothing_found_is_an_empty_table():
    table = build_results(findings())
    assert results_view.caption_of(table) == "" and results_view.results_frame(table).empty


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (-0.01, 0.049, "ok"),
        (-0.06, 0.01, "detects 6\xa0% or more"),
        (0.002, 0.023, "excludes zero, within 5\xa0%"),
        (-0.05, -0.01, "detects 5\xa0% or more"),
        (None, None, "no interval"),
    ],
)
def test_equal_arms_are_ok_only_with_zero_inside_and_within_five_per_cent(low, high, told):
    row = ResultRow("aa", "a", "a", "w", "qps", 1, None, Estimate(0.0, low, high, 0.98, 5), "not shown")
    assert describe_aa(row) == told


@pytest.mark.parametrize("width", [80, 110])
def test_an_answer_of_any_recorded_study_fits_a_terminal_and_has_the_footnotes_that_it_names(width):
    newest = {study: found for (study, _), found in sorted(recorded_findings().items())}
    for study, found in newest.items():
        lines = "\n".join(study_answer.render_session(found, width=width)).split("\n")
        assert max(map(len, lines)) <= width, study
        notes = {line[0] for line in lines if re.match("[¹²³⁴⁵⁶⁷⁸⁹] ", line)}
        marks = re.findall("(?<=[▲▼≈~?])[¹²³⁴⁵⁶⁷⁸⁹]+", "\n".join(lines))
        assert set("".join(marks)) == notes, study
