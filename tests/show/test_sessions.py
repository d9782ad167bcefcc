"""Sessions on a page: the answer over them, a forest each, what differed, and one's own beside them."""

import re
from itertools import count

import pytest

import benchbook
from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.core.artifacts import meta_analysis as core
from benchbook.core.util.errors import NotThere
from benchbook.show import forest
from benchbook.show import sessions as shown
from tests.compare import sessions as made_up
from tests.compare.sessions import MILAN, finding, part, session, sessions
from tests.goldens import assert_page
from tests.show import synthetic
from tests.show.conftest import build


def text(html) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html.text if hasattr(html, "text") else html).split())


@pytest.fixture
def study(monkeypatch):
    # Names are the same in whatever order tests run.
    monkeypatch.setattr(made_up, "_NUMBER", count(1))
    odd = session(finding(part(0.1, 0.01)), measured="2026-11-20T01:00", design="b2")
    return pool_sessions("quick", [*sessions(-0.16, -0.165, -0.155, -0.16), odd])


def test_sessions_have_a_line_each_in_forests_and_tables_and_joined_studies_both_signs(study):
    # Log effects of −0.2 and 0.3 are −18.1 and +35.0 %.
    turned, alone = pool_sessions("quick", sessions(-0.2, 0.3)), pool_sessions("quick", sessions(0.3))
    threads = pool_sessions("lab-threads", sessions(-0.2, processors=(MILAN,)))
    assert_page(
        "sessions.txt",
        shown.render_basis(study),
        forest.by_session(study),
        *map(forest.over_sessions, (study, turned, alone)),
        shown.tabulate_moderators(study),
        shown.left_out(study),
        *shown.tabulate_shared([alone, threads]),
        # One of five processors lies outside what the others predict.
        shown.coverage_by_study([pool_sessions("quick", sessions(0.10, 0.11, 0.09, 0.10, 0.50))]),
        shown.tabulate_equal_arms([]),
    )
    (row,) = forest.over_sessions(turned).rows
    assert row.square is None and row.ends == pytest.approx((-0.181, 0.350), abs=0.001)
    assert shown.tabulate_shared([alone]) == []


def test_a_session_of_ones_own_stands_beside(made, study, monkeypatch):
    far = session(finding(part(0.2, 0.01)), measured="2026-12-01T01:00", processor=MILAN)
    other = session(finding(part(0.2, 0.01)), measured="2026-12-01T01:00", design="b2")
    monkeypatch.setattr(shown, "_compared_sessions", lambda _: (far, study))
    assert_page("beside.txt", *shown.beside_record(made))
    monkeypatch.setattr(shown, "_compared_sessions", lambda _: (other, study))
    assert shown.beside_record(made) == []


def test_pooled_sessions_are_there_by_name(tmp_path, monkeypatch, study):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    with pytest.raises(NotThere, match=r"^quick: "):
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


def test_a_study_with_recorded_sessions_answers_over_them_first(tmp_path):
    made = synthetic.evidence(blocks=3, workloads={"oltp_point_select": (21_000.0, 1)})
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
