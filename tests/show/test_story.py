"""The story: on what it rests, how far effects carry, and the forest of those with several sessions."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.show import claims_page, forest, home_page, method, story
from benchbook.show import sessions as over
from benchbook.show.claim_status import ClaimStatus, MeasuredStudy
from benchbook.show.forest import on_throughput
from tests import sources
from tests.compare.sessions import MILAN, sessions
from tests.goldens import assert_page
from tests.recorded_findings import SESSIONS, chosen_findings

NOTHING = ClaimStatus([], [], {})


def test_without_a_record_it_says_what_makes_one():
    assert "run `make pages` first" in story.render_opening(NOTHING).text
    assert story.draw_forest(NOTHING).rows == () and story.tabulate_labels(NOTHING).rows == []


def test_effects_of_several_sessions_are_counted_by_how_far_they_carry_and_drawn_where_shown():
    """Log ratios of −0.2 and −0.21 on two occasions: both lost a fifth, one direction."""
    alike, apart = sessions(-0.2, -0.21), sessions(0.05, -0.05, error=0.02)
    shown = []
    for several in (alike, apart):
        pooled = pool_sessions("made", several)
        seen = replace(NOTHING, pooled={"made": pooled})
        shown += [story.render_opening(seen), story.tabulate_labels(seen), story.draw_forest(seen)]
        shown.append(story.draw_forest(seen).table)
        assert sum(row[1] for row in story.tabulate_labels(seen).rows) == len([*on_throughput([pooled])])
    assert_page("story.txt", *shown)


def test_what_was_measured_for_all_sources_is_told_on_each_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = {name: chosen_findings(name) for name in SESSIONS}
    audits = [*sources.audits().values()]
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    several = [
        pool_sessions("quick", sessions(-0.2, 0.3)),
        pool_sessions("lab-access", sessions(-0.16, -0.165, -0.155, -0.16)),
        pool_sessions("lab-zones", sessions(-0.2, processors=(MILAN,))),
    ]
    pooled = {one.study: one for one in several}
    studies = [MeasuredStudy(name, one, True, explained=[one]) for name, one in found.items()]
    seen = ClaimStatus(audits, studies, {}, pooled=pooled)
    tables = story.tabulate_measured, story.tabulate_reasons, story.tabulate_labels, story.draw_forest
    assert_page(
        "record.txt",
        *(part(seen) for part in (home_page.render_page, claims_page.render_opening, *tables)),
        *(part(found) for part in (method.render_opening, method.aa_figure, method.aa_table)),
        *(part(several) for part in (over.coverage_by_study, over.tabulate_equal_arms)),
        *over.tabulate_shared(several),
        forest.by_session(several[1]),
    )
