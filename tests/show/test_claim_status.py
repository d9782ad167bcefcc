"""What stands behind a claim here: causes in the words of this code, not in those that git has."""

import shutil
from pathlib import Path

import pytest

from benchbook.compare.claims.transferability import Grade
from benchbook.core.artifacts import record
from benchbook.core.util import files
from benchbook.show import bottleneck_section, claim_status


def test_a_cause_is_told_in_the_words_of_the_session_as_it_was_made_again_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session = record.read_index().newest("lab-access")
    folder = tmp_path / "data" / "record" / "lab-access"
    folder.mkdir(parents=True)
    for file in (session.where.results, session.where.results.with_name(record.INDEX)):
        shutil.copyfile(file, folder / file.name)
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    session = record.read_index().newest("lab-access")
    again = session.results.findings.plain
    for cause in again["causes"]["contrasts"]:
        cause["sentence"] = cause["sentence"] and "worded here"
    files.write_json(session.where.findings, again)
    told = claim_status._explained_findings("lab-access", record.read_index())
    assert {cause.sentence for one in told for cause in bottleneck_section.select_causes(one)} == {
        "worded here"
    }


@pytest.mark.parametrize(
    ("closeness", "counts"), [("same", True), ("close", True), ("made", False), ("another question", False)]
)
def test_a_study_of_another_question_or_with_a_difference_of_its_own_making_says_nothing_elsewhere(
    closeness, counts
):
    assert claim_status.is_counted(Grade(closeness, "", "same size")) is counts
    assert claim_status.is_counted(None)
