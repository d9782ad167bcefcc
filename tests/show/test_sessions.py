"""Sessions on a page: the answer over them, a forest each, what differed, and one's own beside them."""

import re

import pytest
from bs4 import BeautifulSoup

import benchbook
from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.core.artifacts import meta_analysis as core
from benchbook.core.util.errors import NotThere
from benchbook.show import forest
from benchbook.show import sessions as shown
from tests.compare.sessions import MILAN, finding, part, session, sessions
from tests.show.conftest import build


def text(html) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html.text if hasattr(html, "text") else html).split())


@pytest.fixture
def study():
    odd = session(finding(part(0.1, 0.01)), measured="2026-11-20T01:00", design="b2")
    return pool_sessions("quick", [*sessions(-0.16, -0.165, -0.155, -0.16), odd])


def test_it_is_said_what_effects_over_sessions_rest_on(study):
    told = text(shown.render_basis(study))
    assert "4 sessions of one design on 4 processor models, 2026-11-01 to 2026-11-04; 1 more is" in told
    assert "In time" not in told


def test_every_session_has_its_line_in_the_forest_and_its_row_in_the_table(study):
    (heading, *rows) = forest.by_session(study).rows
    assert heading.name == "HAProxy on point selects"
    # In the order of time; log effects of −0.16, −0.165 and −0.155 are −14.8, −15.2 and −14.4 %.
    assert [row.name for row in rows] == [
        "2026-11-01 06:00, Xeon Emerald Rapids",
        "2026-11-02 06:00, EPYC Zen 3",
        "2026-11-03 06:00, EPYC Zen 5",
        "2026-11-04 06:00, EPYC model 25/90",
    ]
    assert [row.effect_text.partition("\xa0")[0] for row in rows] == ["−14.8", "−15.2", "−14.4", "−14.8"]
    (row,) = forest.over_sessions(study).rows
    assert len(row.dots) == 4 and "expected −15 to −14" in row.effect_text.replace("\xa0", " ")
    table, left = shown.tabulate_moderators(study), shown.left_out(study)
    assert [row[0] for row in table.rows] == [one.id for one in study.sessions]
    assert ("HAProxy", "point selects") in {(column.label, column.unit) for column in table.columns}
    # A log effect of 0.1 is 10.5 %.
    assert left.rows[0][2:] == ["+11\xa0%", "another design (b2, not a1)"]
    assert '<th scope="row">Why' in left._repr_html_(), "fewer sessions than columns are columns themselves"
    assert '<th scope="row">Processor' not in table._repr_html_()


def test_what_depends_on_the_machine_has_no_mean():
    found = pool_sessions("quick", sessions(-0.2, 0.3))
    (row,) = forest.over_sessions(found).rows
    assert row.square is None and "depends on the machine" in row.effect_text
    # Log effects of −0.2 and 0.3 are −18.1 and +35.0 %.
    assert row.ends == pytest.approx((-0.181, 0.350), abs=0.001)


def test_one_session_draws_no_forest_and_has_nothing_to_be_held_beside():
    found = pool_sessions("quick", sessions(0.1))
    assert len(forest.over_sessions(found).rows) == 1 and not found.left_out


def test_a_session_of_ones_own_stands_beside(made, study, monkeypatch):
    far = session(finding(part(0.2, 0.01)), measured="2026-12-01T01:00", processor=MILAN)
    other = session(finding(part(0.2, 0.01)), measured="2026-12-01T01:00", design="b2")
    monkeypatch.setattr(shown, "_compared_sessions", lambda _: (far, study))
    assert "HAProxy on point selects +22 % (expected −17" in text(*shown.beside_record(made))
    monkeypatch.setattr(shown, "_compared_sessions", lambda _: (other, study))
    assert shown.beside_record(made) == []


def test_joined_studies_begin_with_the_sign_that_turns():
    quick = pool_sessions("quick", sessions(0.3))
    threads = pool_sessions("lab-threads", sessions(-0.2, processors=(MILAN,)))
    assert shown.tabulate_shared([quick]) == []
    (table,) = shown.tabulate_shared([quick, threads])
    (row,) = table.rows
    assert text(row[1]) == "Turns"
    smallest, largest = (BeautifulSoup(one.text, "html.parser").a for one in row[2:4])
    assert smallest.string.startswith("−18") and "lab-threads, EPYC Zen 3" in smallest.string
    assert "quick, Xeon Emerald Rapids" in largest.string
    # Every cell leads to its evidence.
    assert largest["href"] == "record/studies/quick.html#answer"
    assert re.findall(r'href="([^"#]+)', row[4].text) == [
        "record/studies/quick.html", "record/studies/lab-threads.html"
    ]  # fmt: skip


def test_pooled_sessions_are_there_by_name(tmp_path, monkeypatch, study):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    with pytest.raises(NotThere, match="no sessions are recorded that can be pooled"):
        benchbook.pooled("quick")
    folder = tmp_path / "data" / "recorded" / "quick"
    folder.mkdir(parents=True)
    study.write(folder / core.FILE)
    found = benchbook.pooled("quick")
    assert "HAProxy" in repr(found) and "point selects" in repr(found)
    assert "HAProxy on point selects: −15" in repr(found.plot())
    assert len(found.by_session[0].rows) == 1 + len(study.sessions)
    assert found.effects["effect"].tolist() == [study.contrasts[0].whole.effect]
    known = benchbook.columns(found.sessions)
    assert known.index.tolist() == found.sessions.columns.tolist()
    assert (found.sessions["processor"] == "Xeon Emerald Rapids").sum() == 1
    assert found.left_out["reason"].tolist() == ["another design (b2, not a1)"]
    # A recorded session lies beside the pooled ones of its study.
    monkeypatch.setenv("BENCHBOOK_ROOT", str(folder / study.sessions[0].id))
    assert core.read_pooled("quick") == study
    assert core.read_pooled("other") is None


def test_what_was_tried_is_counted_over_all_studies():
    """One of five processors lies outside what the others predict."""
    told = shown.coverage_by_study([pool_sessions("quick", sessions(0.10, 0.11, 0.09, 0.10, 0.50))])
    assert told.rows[-1][:2] == ["all", "4 of 5"]
    assert "No equal arms were measured" in shown.tabulate_equal_arms([])._repr_html_()


def test_a_study_with_recorded_sessions_answers_over_them_first(made, tmp_path):
    folder = tmp_path / "data" / "recorded" / made.name
    folder.mkdir(parents=True)
    pool_sessions(made.name, sessions(-0.16, -0.165, -0.155, -0.16)).write(folder / core.FILE)
    page = build(made, folder / "s1").soup
    answer = page.select_one("section.answer")
    row = answer.select_one("table.results tbody tr:not(.group)").get_text(" ")
    assert "−15" in row, "the mean over sessions stands beside the newest"
    headings = [one["id"] for one in page.select("h2, h3, summary[id]")]
    first = ["answer", "over-sessions", "what-could-be-wrong", "by-session", "moderators", "effects"]
    assert [one for one in headings if one in first] == first
    # A session of one's own answers for itself, and has the record's beside it.
    own = build(made, tmp_path).soup
    assert not own.select_one("#over-sessions") and own.select("#effects") and own.select("#by-session")
