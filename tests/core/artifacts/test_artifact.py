"""Documents come back as they were: what the record holds, read and written again, with each value."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchbook.core.artifacts import artifact, record
from benchbook.core.artifacts.findings import Findings
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.evidence import sessions
from tests.goldens import assert_golden_case


def test_recorded_results_are_read_and_written_without_losing_a_value(tmp_path: Path):
    for one in record.read_index().sessions():
        sessions.write_results(tmp_path / "results.json", one.results)
        written = files.read_json(tmp_path / "results.json")["findings"]
        recorded = files.read_json(one.where.results)["findings"]
        # Those of earlier releases have other words; to leave words out takes most of the time.
        if written != recorded:
            assert artifact.blank_wording(Findings, written) == artifact.blank_wording(Findings, recorded)


@pytest.mark.parametrize(("key", "value"), [("look", {"n": "five"}), ("more", 1)])
def test_findings_of_another_shape_are_refused_by_key_and_remedy(tmp_path: Path, key, value):
    file = tmp_path / "findings.json"
    found = record.read_index().newest("quick").results.findings.plain
    found[key] = {**found[key], **value} if isinstance(value, dict) else value
    file.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(BenchbookError) as refused:
        Findings.read(file, "`make pages`")
    assert_golden_case(
        "refused_artifacts.txt", f"findings: {key}", str(refused.value).replace(f"{tmp_path}/", "")
    )


FACTS = {"study": "quick", "arms": {"direct": {"engine": {"version": "10.11"}}}}
DATASET = {"fingerprint": "0123456789", "tables": 1, "table_size": 10, "rows": {"sbtest1": 10}}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    folder = tmp_path / "data" / "quick"
    folder.mkdir(parents=True)
    return folder


def test_what_a_stage_wrote_is_read(place: Path):
    (place / "facts.json").write_text(json.dumps(FACTS))
    (place / "dataset.json").write_text(json.dumps(DATASET))
    assert artifact.read_facts("quick") == artifact.Facts(**FACTS)
    assert artifact.read_dataset("quick") == DATASET


@pytest.mark.parametrize(
    "changed",
    [
        {"arms": {}},
        {"arms": []},
        {"arms": {"direct": 5}},
        {"arms": None},
        {"study": "other"},
        {"skipped": {"proxy": 1}},
    ],
)
def test_edited_facts_are_refused_by_key(place: Path, changed: dict[str, Any]):
    (place / "facts.json").write_text(json.dumps(FACTS | changed))
    with pytest.raises(BenchbookError) as refused:
        artifact.read_facts("quick")
    assert_golden_case("refused_artifacts.txt", f"facts: {changed}", str(refused.value))


@pytest.mark.parametrize("key", DATASET)
def test_a_dataset_that_lacks_a_key_is_refused(place: Path, key: str):
    (place / "dataset.json").write_text(json.dumps({name: DATASET[name] for name in DATASET if name != key}))
    with pytest.raises(BenchbookError) as refused:
        artifact.read_dataset("quick")
    assert_golden_case("refused_artifacts.txt", f"dataset without {key}", str(refused.value))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `quick` in a clone for all that a fuzzer writes."""
    folder = tmp_path_factory.mktemp("any") / "data" / "quick"
    folder.mkdir(parents=True)
    return folder


@settings(deadline=None)
@given(ANYTHING)
def test_whatever_json_stands_there_is_read_or_refused(folder: Path, value: Any):
    """Of what a fuzzer writes, nothing gets through as facts and nothing ends in another error."""
    with paths.use_root(folder.parents[1]):
        for name, read in (("facts", artifact.read_facts), ("dataset", artifact.read_dataset)):
            (folder / f"{name}.json").write_text(json.dumps(value))
            with pytest.raises(BenchbookError):
                read("quick")
