"""Pre-registration: what git knows of the study file before its first run."""

import datetime
import os
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from ruamel.yaml import YAML

from benchbook.show import registration
from tests.goldens import assert_golden

STUDY = "question: What does it cost?\narms: {direct: {}, haproxy: {}}\nthreads: [1]\nplan: {blocks: 5}\n"
JUDGING = STUDY + "claims: [a/b]\n"
RUNS = pd.DataFrame({"started_utc": ["2026-03-02T10:00:05.000+00:00", "2026-03-02T10:00:00.000+00:00"]})


CASES = Path(__file__).parents[1] / "data" / "registrations.yaml"


def begin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder a clone without a commit."""
    (folder / "studies").mkdir(parents=True)
    monkeypatch.setenv("BENCHBOOK_ROOT", str(folder))
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


@pytest.fixture
def clone(tmp_path: Path, monkeypatch) -> Path:
    return begin(tmp_path, monkeypatch)


def commit(clone: Path, text: str, moment: str, place: str = "studies/one.yaml") -> None:
    (clone / place).parent.mkdir(exist_ok=True)
    (clone / place).write_text(text)
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
    for argv in (["add", "studies"], ["commit", "-qm", "x"]):
        subprocess.run(["git", "-C", clone, *argv], check=True, env=os.environ | who | dates)


def test_what_git_knows_of_a_study_before_its_first_run(tmp_path, monkeypatch):
    answers = []
    for title, cases in YAML(typ="safe").load(CASES).items():
        answers.append(f"\n{title}")
        for case in cases:
            folder = begin(tmp_path / str(len(answers)), monkeypatch)
            for step in case["steps"]:
                text = JUDGING if case.get("judges") else STUDY
                for old, new in step.get("change", {}).items():
                    assert old in text
                    text = text.replace(old, new)
                place = step.get("place", "studies/one.yaml")
                if "moved" in step:
                    (folder / step["moved"]).unlink()
                if "at" in step:
                    commit(folder, text, step["at"], place)
                (folder / place).write_text(text)
            looks = [
                registration.EarlierSession(datetime.datetime.fromisoformat(moment), not_recorded)
                for moment, not_recorded in case.get("looks", ())
            ]
            monkeypatch.setattr(registration, "read_sessions", lambda study, looks=looks: looks)
            said = registration.check_registration(case.get("study", "one"), RUNS)
            text = re.sub("commit [0-9a-f]{10}", "commit HASH", said.text)
            answers.append(f"  - {'care: ' if said.is_care else ''}{text}")
    assert_golden("registrations.txt", "\n".join(answers).lstrip().replace("\xa0", " ") + "\n")


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


def test_without_git_it_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    said = registration.check_registration("one", RUNS)
    assert said.text.startswith("Not known")
