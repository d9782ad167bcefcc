"""Pre-registration: what git knows of the study file before its first run."""

import datetime
import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from benchbook.show import registration

STUDY = "question: What does it cost?\narms: {direct: {}, haproxy: {}}\nthreads: [1]\nplan: {blocks: 5}\n"
JUDGING = STUDY + "claims: [a/b]\n"
RUNS = pd.DataFrame({"started_utc": ["2026-03-02T10:00:05.000+00:00", "2026-03-02T10:00:00.000+00:00"]})


@pytest.fixture
def clone(tmp_path: Path, monkeypatch) -> Path:
    (tmp_path / "studies").mkdir()
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def commit(clone: Path, text: str, moment: str, place: str = "studies/one.yaml") -> None:
    (clone / place).parent.mkdir(exist_ok=True)
    (clone / place).write_text(text)
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
    for argv in (["add", "studies"], ["commit", "-qm", "x"]):
        subprocess.run(["git", "-C", clone, *argv], check=True, env=os.environ | who | dates)


def test_a_study_committed_before_its_first_run_held(clone):
    commit(clone, STUDY, "2026-03-02T10:59:00+01:00")  # a minute before ten in UTC
    said = registration.check_registration("one", RUNS)
    assert said.text.startswith("Held") and not said.is_care
    assert "2026-03-02 09:59 UTC" in said.text and "2026-03-02 10:00 UTC" in said.text


def test_more_blocks_later_break_nothing_and_are_said(clone):
    commit(clone, STUDY, "2026-03-01T10:00:00+00:00")
    commit(clone, STUDY.replace("blocks: 5", "blocks: 10"), "2026-03-03T10:00:00+00:00")
    said = registration.check_registration("one", RUNS)
    assert said.text.startswith("Held") and "only plan changed" in said.text


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("What does it cost?", "What does it gain?", "question"),
        ("{direct: {}, haproxy: {}}", "{haproxy: {}, direct: {}}", "arms"),  # another baseline
        ("[1]", "[1, 4]", "threads"),
    ],
)
def test_a_promise_changed_after_the_first_run_is_broken_also_before_it_is_committed(clone, old, new, key):
    commit(clone, STUDY, "2026-03-01T10:00:00+00:00")
    (clone / "studies" / "one.yaml").write_text(STUDY.replace(old, new))
    said = registration.check_registration("one", RUNS)
    assert said.is_care and said.text.startswith(f"Not held: {key} of the study")


def test_what_an_arm_is_called_promises_nothing_however_late_it_is_written(clone):
    sized = STUDY + "sizes: {full: {threads: [9], arms: {direct: {stands_in_for: a server}}}}\n"
    commit(clone, sized, "2026-03-01T10:00:00+00:00")
    named = sized.replace("direct: {}, haproxy: {}", "direct: {name: TiDB 5.0}, haproxy: {name: the proxy}")
    named = named.replace("stands_in_for: a server", "stands_in_for: a server, name: TiDB 3.0")
    commit(clone, named, "2026-03-03T10:00:00+00:00")
    for study in ("one", "one-full"):
        said = registration.check_registration(study, RUNS)
        assert said.text.startswith("Held") and "changed" not in said.text and not said.is_care
    # Nor does it hide a change beside it, or a name that is taken away again.
    commit(clone, named.replace("TiDB 5.0", "TiDB 5.0, access: haproxy"), "2026-03-04T10:00:00+00:00")
    assert registration.check_registration("one", RUNS).text.startswith("Not held: arms of the study")
    commit(clone, sized, "2026-03-05T10:00:00+00:00")
    assert registration.check_registration("one", RUNS).text.startswith("Held")


def test_a_file_that_moved_to_another_folder_is_the_same_study(clone):
    commit(clone, STUDY, "2026-03-01T10:00:00+00:00")
    # Another study that is nearly the same, which git could take for the origin of the moved one.
    commit(clone, STUDY.replace("cost", "take"), "2026-03-01T10:01:00+00:00", "studies/two.yaml")
    (clone / "studies" / "one.yaml").unlink()
    commit(clone, f"# moved\n{STUDY}", "2026-03-03T10:00:00+00:00", "studies/pool/one.yaml")
    said = registration.check_registration("one", RUNS)
    assert said.text.startswith("Held") and "2026-03-01 10:00 UTC" in said.text and "changed" not in said.text
    text = STUDY.replace("[1]", "[1, 4]")
    commit(clone, text, "2026-03-04T10:00:00+00:00", "studies/pool/one.yaml")
    assert registration.check_registration("one", RUNS).text.startswith("Not held: threads of the study")


def test_a_study_that_came_by_a_merge_is_found(clone):
    commit(clone, STUDY, "2026-03-01T09:00:00+00:00", "studies/two.yaml")
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "checkout", "-qb", "side"], check=True)
    commit(clone, STUDY, "2026-03-01T10:00:00+00:00")
    subprocess.run([*git, "checkout", "-q", "-"], check=True)
    later = os.environ | {"GIT_COMMITTER_DATE": "2026-03-01T11:00:00+00:00"}
    subprocess.run([*git, "merge", "-q", "--no-ff", "--no-edit", "side"], check=True, env=later)
    said = registration.check_registration("one", RUNS)
    # The commit that wrote it, and not the merge, in which it is as one of its parents has it.
    assert said.text.startswith("Held") and "2026-03-01 10:00 UTC" in said.text


def test_a_claim_added_after_the_first_run_is_broken(clone):
    commit(clone, STUDY + "claims: []\n", "2026-03-01T10:00:00+00:00")
    commit(clone, STUDY + "claims: [a/b]\n", "2026-03-04T10:00:00+00:00")
    assert registration.check_registration("one", RUNS).text.startswith("Not held: claims")


@pytest.mark.parametrize(("study", "is_care"), [(JUDGING, True), (STUDY, False)])
def test_a_study_committed_after_its_first_run_asks_for_care_if_it_judges_a_claim(clone, study, is_care):
    commit(clone, study, "2026-03-02T10:00:01+00:00")
    said = registration.check_registration("one", RUNS)
    assert said.is_care == is_care and "after the first run" in said.text


def test_what_git_does_not_know_is_not_known(clone):
    (clone / "studies" / "one.yaml").write_text(STUDY)
    assert registration.check_registration("one", RUNS).text.startswith("Not known")


def test_without_git_it_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    said = registration.check_registration("one", RUNS)
    assert said.text.startswith("Not known")


def look(moment: str, not_recorded: str = "") -> registration.EarlierSession:
    return registration.EarlierSession(datetime.datetime.fromisoformat(moment), not_recorded)


def test_what_was_looked_at_before_a_study_changed_is_named(clone):
    """As it was: rates of 30, 50 and 70 % were recorded, changed three minutes later, and measured again."""
    commit(clone, JUDGING, "2026-03-02T09:00:00+00:00")
    commit(clone, JUDGING.replace("threads: [1]", "threads: [2]"), "2026-03-02T09:33:00+00:00")
    looks = [look("2026-03-02T09:30:00+00:00")]
    said = registration.check_registration("one", RUNS, looks)
    assert said.is_care and said.text == (
        "Not held: 1\xa0session had been measured before the study had its present form: "
        "2026-03-02 09:30 UTC, with other threads."
    )
    # Without the look, the file alone is older than the first run.
    assert registration.check_registration("one", RUNS).text.startswith("Held")


def test_looks_at_the_same_design_and_later_ones_break_nothing(clone):
    commit(clone, STUDY, "2026-03-02T09:00:00+00:00")
    commit(clone, STUDY.replace("blocks: 5", "blocks: 10"), "2026-03-02T09:33:00+00:00")
    looks = [look("2026-03-02T09:30:00+00:00"), look("2026-03-02T12:00:00+00:00")]
    assert registration.check_registration("one", RUNS, looks).text.startswith("Held")


def test_another_length_is_another_design_and_a_look_before_git_knew_the_study_counts(clone):
    commit(clone, JUDGING, "2026-03-02T09:00:00+00:00")
    (clone / "studies" / "one.yaml").write_text(JUDGING.replace("blocks: 5", "blocks: 5, run_s: 9"))
    assert "lengths of the study changed" in registration.check_registration("one", RUNS).text
    (clone / "studies" / "one.yaml").write_text(JUDGING)
    said = registration.check_registration("one", RUNS, [look("2026-03-01T08:00:00+00:00", "stopped")])
    assert (
        said.is_care
        and "2026-03-01 08:00 UTC, of a design that git does not have (not recorded: stopped)" in said.text
    )
