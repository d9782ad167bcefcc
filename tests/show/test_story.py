"""The story: on what it rests, how far effects carry, and the forest of those with several sessions."""

from dataclasses import replace

from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.show import story
from benchbook.show.claim_status import ClaimStatus
from benchbook.show.forest import on_throughput
from tests.compare.sessions import sessions

NOTHING = ClaimStatus([], [], {})


def test_without_a_record_it_says_what_makes_one():
    assert "run `make pages` first" in story.render_opening(NOTHING).text
    assert story.draw_forest(NOTHING).rows == () and story.tabulate_labels(NOTHING).rows == []


def test_an_effect_of_several_sessions_is_drawn_and_counted_by_how_far_it_carries():
    """Log ratios of −0.2 and −0.21 on two occasions: both lost a fifth, one direction."""
    found = pool_sessions("made", sessions(-0.2, -0.21))
    seen = replace(NOTHING, pooled={"made": found})
    counted = {
        row[0].text.partition(">")[2].partition("<")[0]: row[1] for row in story.tabulate_labels(seen).rows
    }
    assert sum(counted.values()) == len(list(on_throughput([found])))
    (row,) = story.draw_forest(seen).rows
    assert row.name == "HAProxy on point selects (made)" and len(row.dots) == 2
    assert "2 sessions" in story.render_opening(seen).text.replace("\N{NO-BREAK SPACE}", " ")


def test_what_no_session_shows_is_counted_as_not_shown_and_not_drawn():
    apart = pool_sessions("made", sessions(0.05, -0.05, error=0.02))
    seen = replace(NOTHING, pooled={"made": apart})
    (row,) = story.tabulate_labels(seen).rows
    assert "not shown" in row[0].text and row[1] == 1
    assert story.draw_forest(seen).rows == ()
