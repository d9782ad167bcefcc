"""The walk asks before every block that has runs to make, and ends when it is told why to stop."""

from __future__ import annotations

import pytest

from benchbook.measure import matrix
from benchbook.plan import schedule
from tests.plan.test_schedule import make


@pytest.fixture
def walked(monkeypatch, tmp_path):
    """Walk a schedule of six blocks without a server; return blocks made, what was said, and the walk."""

    def walk(stop, there=0):
        runs = schedule.plan_runs("s", make(plan={"blocks": 6}), {})
        left = [run.run_id for run in runs if run.block > there]
        made, said = [], []
        monkeypatch.setattr(matrix, "tidy_up", lambda *_: left)
        monkeypatch.setattr(matrix, "_block", lambda state, number, *_: made.append(number))
        state = matrix.Walk(None, runs, None, tmp_path, tmp_path, None, {}, said.append, stop=stop)
        return made, said, matrix.walk(state)

    return walk


def test_it_stops_before_the_block_that_is_not_needed(walked):
    asked = []

    def stop(blocks):
        asked.append(blocks)
        return "all is decided" if blocks == 3 else None

    made, said, state = walked(stop)
    assert (made, asked, state.stopped) == ([1, 2, 3], [0, 1, 2, 3], "all is decided")
    assert said[-1] == "stopped before block 4: all is decided"
    assert state.table()["stopped early"].item() == "all is decided"


def test_without_a_rule_every_block_is_made(walked):
    made, _, state = walked(None)
    assert (made, state.stopped) == ([1, 2, 3, 4, 5, 6], None)


def test_a_resumed_walk_asks_before_its_first_block(walked):
    made, _, state = walked(lambda blocks: "decided" if blocks == 5 else None, there=5)
    assert (made, state.stopped) == ([], "decided")
