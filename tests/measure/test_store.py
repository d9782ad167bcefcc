"""The store agrees with the schedule, whatever happened to it, and loses nothing."""

import hashlib
import json
import os
import shutil
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
        notes = {note: json.loads(note.read_text()) for note in self.void.glob("*.void.json")}
        return {note.name.removesuffix(".void.json"): words["status"] for note, words in notes.items()}

    def digests(self) -> set[str]:
        """Return the hash of every file that is kept anywhere."""
        left_out = ("void.json", "README.txt")
        files = [path for path in self.base.rglob("*") if path.is_file() and not path.name.endswith(left_out)]
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


def half(kept: Store) -> None:
    """Leave one run, and one that was killed before its end."""
    shutil.rmtree(kept.raw)
    kept.keep(RUNS[0])
    kept.make(RUNS[1])


def half_named(kept: Store) -> None:
    shutil.rmtree(kept.raw)
    run_folder.seal_folder(kept.make(RUNS[0]), 1)


def change_a_file(kept: Store) -> None:
    out = kept.raw / RUNS[2].run_id / "sysbench.out"
    out.write_bytes(out.read_bytes().replace(b"s", b"S", 1))


def copy_under_another_name(kept: Store) -> None:
    (kept.raw / RUNS[0].run_id).rename(kept.base / "aside")
    (kept.raw / RUNS[1].run_id).rename(kept.raw / RUNS[0].run_id)


def damage_an_earlier_one(kept: Store) -> None:
    kept.tidy_up([])
    (kept.void / f"{RUNS[0].run_id}.a1" / "monitor.csv").unlink()


def judge(status: str, *numbers: int, is_earlier: bool = False) -> Callable[[Store], None]:
    """Find runs bad, which may have been made before a check was there, or before a limit was set."""

    def act(kept: Store) -> None:
        if is_earlier:
            kept.tidy_up([])
        kept.bad |= {RUNS[number].run_id: Verdict(status, ["V16 machine: stolen"]) for number in numbers}

    return act


AGAIN = f"{RUNS[0].group}: 1 of 3 runs were there; the whole group is made again"
BYTES = "sysbench.out: its bytes are not those of the manifest"
BAD = f"{RUNS[1].run_id}: invalid: V16 machine: stolen"


@pytest.mark.parametrize(
    ("act", "missing", "status", "said"),
    [
        (lambda kept: shutil.rmtree(kept.raw), RUNS, {}, []),
        (lambda kept: None, [], {}, []),
        # A partner was measured within another start of the servers.
        (half, RUNS, {0: "apart", 1: "killed"}, ["killed before it ended", AGAIN]),
        (half_named, RUNS, {0: "killed"}, ["killed before it ended"]),
        (change_a_file, RUNS[:3], {0: "apart", 1: "apart", 2: "broken"}, [BYTES, "2 of 3 runs were there"]),
        (copy_under_another_name, RUNS[:3], {0: "broken", 2: "apart"}, ["", "1 of 3 runs were there"]),
        (damage_an_earlier_one, RUNS[:3], {0: "earlier", 1: "apart", 2: "apart"}, ["2 of 3 runs were there"]),
        (judge("invalid", 1), RUNS[:3], {0: "partner", 1: "invalid", 2: "partner"}, [BAD]),
        (judge("invalid", 1, is_earlier=True), RUNS[:3], {0: "partner", 1: "invalid", 2: "partner"}, [BAD]),
        (judge("indeterminate", 0), RUNS[:3], {0: "indeterminate", 1: "partner", 2: "partner"}, [""]),
        (judge("invalid", 0, 1), RUNS[:3], {0: "invalid", 1: "invalid", 2: "partner"}, ["", BAD]),
    ],
)  # fmt: skip
def test_what_is_not_whole_or_not_valid_is_kept_as_evidence_and_its_group_made_again(
    kept: Store,
    act: Callable[[Store], None],
    missing: list[PlannedRun],
    status: dict[int, str],
    said: list[str],
):
    act(kept)
    before = kept.digests()
    assert kept.tidy_up() == ids(missing) and kept.names() == {*ids(RUNS)} - {*ids(missing)}
    attempts = {name.rpartition(".a")[0]: why for name, why in kept.voids().items()}
    assert attempts == {RUNS[number].run_id: why for number, why in status.items()}
    assert [part in text for part, text in zip(said, kept.said, strict=True)] == [True] * len(said), kept.said
    assert before <= kept.digests()
    for number, why in status.items():
        # A kill is no fault of a run and costs no attempt.
        counts = why in ("invalid", "indeterminate", "partner")
        assert store.count_attempts(kept.void, RUNS[number].run_id) == counts
    kept.bad.clear()
    assert kept.tidy_up() == ids(missing), "what is void never comes back, whatever the judge says now"


def test_the_partners_of_an_invalid_run_say_which_it_was(kept: Store):
    judge("invalid", 1)(kept)
    kept.tidy_up()
    notes = [json.loads(path.read_text()) for path in kept.void.glob("*.void.json")]
    reasons = {note["run_id"]: note["reasons"] for note in notes}
    assert reasons[RUNS[1].run_id] == ["V16 machine: stolen"]
    assert reasons[RUNS[0].run_id] == [f"stands next to {RUNS[1].run_id}"]


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


def test_blocks_that_are_taken_back_step_aside_too(kept: Store):
    first = [run for run in RUNS if run.block == 1]
    assert kept.tidy_up(first) == []
    assert kept.names() == set(ids(first))
    assert kept.tidy_up() == []


def test_attempts_count_what_went_wrong_and_nothing_else(kept: Store):
    run_id = RUNS[0].run_id
    statuses = ("invalid", "killed", "partner", "earlier", "broken", "indeterminate")
    for number, status in enumerate(statuses, start=1):
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
    assert ids(made) != ids(schedule.plan_runs("s", asked, {}, seed=seed % 2**30 + 1))
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
    assert "drawn by each session" in schedule.describe_plan("s", asked)
