"""The store agrees with the schedule, whatever happened to it, and loses nothing."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchbook.core.artifacts import run_folder
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.measure import store
from benchbook.plan import schedule
from tests import small

STUDY = small.study(
    aa={},
    dataset={"tables": 1, "table_size": 10},
    workloads={"oltp_point_select": {}},
    threads=(1,),
    plan={"seed": 1, "blocks": 2, "discard_s": 0, "run_s": 2},
)
# Two blocks of one group: direct, direct_again and proxy.
RUNS = schedule.plan_runs("s", STUDY, {})


@dataclass
class Verdict:
    status: str = "valid"
    reasons: list[str] = field(default_factory=list)


@dataclass
class Store:
    """A store in a temporary folder, and a judge that finds the runs invalid whose ids it is given."""

    base: Path
    said: list[str] = field(default_factory=list)
    bad: dict[str, Verdict] = field(default_factory=dict)

    @property
    def raw(self) -> Path:
        return self.base / "raw"

    @property
    def void(self) -> Path:
        return self.base / "void"

    def make(self, run: PlannedRun) -> Path:
        """Begin a run and leave all that a run leaves, each with its own bytes."""
        part = run_folder.begin_folder(self.raw, run.to_dict())
        for name in run_folder.CONTENT[1:]:
            (part / name).write_text(f"{name} of {run.run_id}\n")
        return part

    def keep(self, run: PlannedRun, attempt: int = 1) -> None:
        run_folder.move_to_raw(run_folder.seal_folder(self.make(run), attempt), self.raw)

    def tidy_up(self, runs: list[PlannedRun] | None = None) -> list[str]:
        judge: Callable = lambda folder: self.bad.get(folder.name, Verdict())  # noqa: E731
        return store.tidy_up(RUNS if runs is None else runs, self.raw, self.void, judge, self.said.append)

    def names(self) -> set[str]:
        return {path.name for path in self.raw.iterdir()}

    def voids(self) -> dict[str, str]:
        """Return status by voided folder."""
        return {
            note.name.removesuffix(".void.json"): json.loads(note.read_text())["status"]
            for note in self.void.glob("*.void.json")
        }

    def digests(self) -> set[str]:
        """Return the hash of every file that is kept anywhere."""
        left_out = ("void.json", "README.txt")
        files = [path for path in self.base.rglob("*") if path.is_file() and path.name not in left_out]
        return {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(autouse=True)
def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about power cuts, and waiting for the disk takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    """A store with all runs of the schedule."""
    made = Store(tmp_path)
    for run in RUNS:
        made.keep(run)
    return made


def ids(runs: list[PlannedRun]) -> list[str]:
    return [run.run_id for run in runs]


def test_an_empty_store_misses_everything_in_order(tmp_path: Path):
    assert Store(tmp_path).tidy_up() == ids(RUNS)


def test_a_whole_store_is_left_alone(kept: Store):
    before = kept.digests()
    assert kept.tidy_up() == []
    assert (kept.names(), kept.voids(), kept.said) == (set(ids(RUNS)), {}, [])
    assert kept.digests() == before


def test_a_killed_run_is_kept_as_evidence_and_made_again(tmp_path: Path):
    half = Store(tmp_path)
    half.keep(RUNS[0])
    half.make(RUNS[1])
    before = half.digests()
    assert half.tidy_up() == ids(RUNS), "its partner was measured within another start of the servers"
    assert half.voids() == {f"{RUNS[1].run_id}.a1": "killed", f"{RUNS[0].run_id}.a1": "apart"}
    for run in RUNS[:2]:
        assert store.count_attempts(half.void, run.run_id) == 0, (
            "a kill is no fault of a run and costs no attempt"
        )
    assert half.said[1] == f"{RUNS[0].group}: 1 of 3 runs were there; the whole group is made again"
    assert "killed before it ended" in half.said[0]
    assert before <= half.digests()


def test_a_run_killed_between_seal_and_name_is_made_again(tmp_path: Path):
    sealed = Store(tmp_path)
    run_folder.seal_folder(sealed.make(RUNS[0]), 1)
    assert sealed.tidy_up() == ids(RUNS)
    assert sealed.voids() == {f"{RUNS[0].run_id}.a1": "killed"}


def test_a_changed_file_is_found_and_its_run_made_again(kept: Store):
    out = kept.raw / RUNS[2].run_id / "sysbench.out"
    out.write_bytes(out.read_bytes().replace(b"s", b"S", 1))
    assert kept.tidy_up() == ids(RUNS[:3]), "the group is made again whole, the other one stays"
    status = dict(zip(ids(RUNS[:3]), ("apart", "apart", "broken"), strict=True))
    assert kept.voids() == {f"{run_id}.a1": why for run_id, why in status.items()}
    assert "sysbench.out: its bytes are not those of the manifest" in kept.said[0]
    assert kept.tidy_up() == ids(RUNS[:3]), "what is broken or apart never comes back"


def test_a_copy_under_another_name_is_no_run(kept: Store):
    (kept.raw / RUNS[0].run_id).rename(kept.base / "aside")
    (kept.raw / RUNS[1].run_id).rename(kept.raw / RUNS[0].run_id)
    assert kept.tidy_up() == ids(RUNS[:3])
    assert set(kept.voids().values()) == {"broken", "apart"}


def test_runs_of_other_settings_step_aside_and_come_back(kept: Store):
    changed = StudySpec.model_validate(STUDY.model_dump() | {"plan": STUDY.plan.model_dump() | {"run_s": 3}})
    others = schedule.plan_runs("s", changed, {})
    before = kept.digests()
    assert kept.tidy_up(others) == ids(others)
    assert (kept.names(), set(kept.voids().values())) == (set(), {"earlier"})
    for run in others:
        kept.keep(run)
    assert kept.tidy_up() == [], "the settings are asked for again: nothing is measured twice"
    assert kept.names() == set(ids(RUNS))
    assert set(kept.voids()) == {f"{run.run_id}.a1" for run in others}
    assert before <= kept.digests()


def test_an_earlier_run_that_was_damaged_stays_where_it_is(kept: Store):
    kept.tidy_up([])
    (kept.void / f"{RUNS[0].run_id}.a1" / "monitor.csv").unlink()
    assert kept.tidy_up() == ids(RUNS[:3])
    status = {name.rpartition(".")[0]: status for name, status in kept.voids().items()}
    assert status == {run.run_id: "earlier" if run is RUNS[0] else "apart" for run in RUNS[:3]}


def test_an_earlier_run_is_judged_before_it_comes_back(kept: Store):
    """It may have been made before a check was there, or before a limit was set."""
    before = kept.digests()
    kept.tidy_up([])
    bad = RUNS[1]
    kept.bad[bad.run_id] = Verdict("invalid", ["V16 machine: 5.0 % stolen"])
    group = [run for run in RUNS if run.group == bad.group]
    assert kept.tidy_up() == ids(group)
    assert kept.names() == set(ids(RUNS)) - set(ids(group))
    status = {name.rpartition(".")[0]: status for name, status in kept.voids().items()}
    assert status == {run.run_id: "invalid" if run is bad else "partner" for run in group}
    assert kept.said == [f"{bad.run_id}: invalid: V16 machine: 5.0 % stolen"]
    assert before <= kept.digests()


def test_blocks_that_are_taken_back_step_aside_too(kept: Store):
    first = [run for run in RUNS if run.block == 1]
    assert kept.tidy_up(first) == []
    assert kept.names() == set(ids(first))
    assert kept.tidy_up() == []


def test_one_invalid_run_voids_its_whole_group_and_no_other(kept: Store):
    bad = RUNS[1]
    kept.bad[bad.run_id] = Verdict("invalid", ["V10 ledger: 3 queries more"])
    before = kept.digests()
    group = [run for run in RUNS if run.group == bad.group]
    assert kept.tidy_up() == ids(group)
    assert kept.names() == set(ids(RUNS)) - set(ids(group))
    status = {name.removesuffix(".a1"): status for name, status in kept.voids().items()}
    assert status == {run.run_id: "invalid" if run is bad else "partner" for run in group}
    notes = [json.loads(path.read_text()) for path in sorted(kept.void.glob("*.void.json"))]
    reasons = {note["run_id"]: note["reasons"] for note in notes}
    assert reasons[bad.run_id] == ["V10 ledger: 3 queries more"]
    assert reasons[RUNS[0].run_id] == [f"stands next to {bad.run_id}"]
    assert kept.said == [f"{bad.run_id}: invalid: V10 ledger: 3 queries more"]
    assert before <= kept.digests()


def test_indeterminate_is_no_better_than_invalid(kept: Store):
    kept.bad[RUNS[0].run_id] = Verdict("indeterminate", ["V10 ledger: no counters"])
    assert len(kept.tidy_up()) == 3
    assert kept.voids()[f"{RUNS[0].run_id}.a1"] == "indeterminate"


def test_two_invalid_runs_of_a_group_are_voided_once_each(kept: Store):
    for run in RUNS[:2]:
        kept.bad[run.run_id] = Verdict("invalid", ["V1"])
    kept.tidy_up()
    assert sorted(kept.voids()) == sorted(f"{run.run_id}.a1" for run in RUNS[:3])


def test_voided_runs_never_come_back_as_data(kept: Store):
    kept.bad[RUNS[0].run_id] = Verdict("invalid", ["V1"])
    kept.tidy_up()
    kept.bad.clear()
    assert kept.tidy_up() == ids(RUNS[:3]), (
        "the judge may have changed its mind; what was voided stays voided"
    )


def test_attempts_count_what_went_wrong_and_nothing_else(kept: Store):
    run_id = RUNS[0].run_id
    for number, status in enumerate(
        ("invalid", "killed", "partner", "earlier", "broken", "indeterminate"), start=1
    ):
        run_folder.void_folder(kept.raw / run_id, kept.void, status, [])
        assert (kept.void / f"{run_id}.a{number}").is_dir()
        kept.keep(RUNS[0])
    assert store.count_attempts(kept.void, run_id) == 3
    assert store.count_attempts(kept.void, RUNS[1].run_id) == 0
    assert store.count_attempts(kept.base / "nowhere", run_id) == 0


def test_strange_files_do_no_harm(kept: Store):
    (kept.raw / ".DS_Store").write_text("")
    kept.void.mkdir()
    (kept.void / "notes.txt").write_text("by hand")
    (kept.raw / "my folder").mkdir()
    assert kept.tidy_up() == []
    assert (kept.void / "my folder.a1").is_dir()
    assert kept.tidy_up() == []


PLAN = {"blocks": 2, "discard_s": 0, "run_s": 2, "order": "runs"}


def study(**changes: Any) -> StudySpec:
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
    named = study(plan=PLAN | {"seed": store.read_session(place)["seed"]})
    assert made == schedule.plan_runs("s", named, {})
    assert [run.run_id for run in made] != [
        run.run_id for run in schedule.plan_runs("s", asked, {}, seed=seed % 2**30 + 1)
    ]
    assert f"order drawn from seed {seed}" in schedule.describe_plan("s", asked, seed=seed)


def test_a_study_file_with_another_seed_begins_another_session(tmp_path: Path):
    place = where(tmp_path)
    store.begin_session(place, study(plan=PLAN))
    assert store.begin_session(place, study(plan=PLAN | {"seed": 5})) == 5
    assert files.read_json(place.session)["seed"] == 5


def test_without_a_seed_nothing_is_planned_and_the_sketch_says_that_it_is_drawn_later():
    asked = study(plan=PLAN)
    with pytest.raises(BenchbookError, match="no session drew one"):
        schedule.plan_runs("s", asked, {})
    assert "order drawn by each session" in schedule.describe_plan("s", asked)
