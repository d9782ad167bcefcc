"""A session's seed: drawn once, kept, and enough to make its schedule again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchbook.core import files, paths
from benchbook.core.errors import BenchbookError
from benchbook.core.study import Study
from benchbook.measure import store
from benchbook.plan import schedule
from tests import small

PLAN = {"blocks": 2, "discard_s": 0, "run_s": 2, "order": "runs"}


def study(**changes: Any) -> Study:
    return small.study(site={}, engine={"name": "mariadb"}, **changes)


def where(base: Path) -> paths.StudyPaths:
    found = paths.StudyPaths("s", base)
    found.data.mkdir(parents=True)
    return found


def test_a_session_draws_once_and_a_resumed_one_keeps_what_was_drawn(tmp_path: Path):
    place, asked = where(tmp_path / "a"), study(plan=PLAN)
    seed = store.begin_session(place, asked)
    kept = files.read_json(place.session)
    assert (kept["study"], kept["seed"], kept["blocks"]) == ("s", seed, 2) and 1 <= seed < 2**31
    assert store.begin_session(place, asked) == seed and files.read_json(place.session) == kept
    # Two in a row are the same once in 2**31.
    assert store.begin_session(where(tmp_path / "b"), asked) != seed


def test_the_schedule_follows_from_the_kept_seed_and_from_a_study_file_that_names_it(tmp_path: Path):
    place, asked = where(tmp_path), study(plan=PLAN)
    seed = store.begin_session(place, asked)
    made = schedule.plan_runs("s", asked, {}, seed=seed)
    named = study(plan=PLAN | {"seed": store.session(place)["seed"]})
    assert made == schedule.plan_runs("s", named, {})
    assert [run.run_id for run in made] != [
        run.run_id for run in schedule.plan_runs("s", asked, {}, seed=seed % 2**30 + 1)
    ]
    assert f"order drawn from seed {seed}" in schedule.summary("s", asked, seed=seed)


def test_a_study_file_with_another_seed_begins_another_session(tmp_path: Path):
    place = where(tmp_path)
    store.begin_session(place, study(plan=PLAN))
    assert store.begin_session(place, study(plan=PLAN | {"seed": 5})) == 5
    assert files.read_json(place.session)["seed"] == 5


def test_without_a_seed_nothing_is_planned_and_the_sketch_says_that_it_is_drawn_later():
    asked = study(plan=PLAN)
    with pytest.raises(BenchbookError, match="no session drew one"):
        schedule.plan_runs("s", asked, {})
    assert "order drawn by each session" in schedule.summary("s", asked)
