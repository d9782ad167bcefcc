"""The Parquet dataset of all effects: what the results in git say, made again only where an index changed."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from benchbook.core.artifacts import effects, record
from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError
from tests.goldens import assert_golden_case


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with two recorded studies, without their archives."""
    for name in ("lab-howto", "quick"):
        into = tmp_path / "data" / "record" / name
        shutil.copytree(paths.record_folder() / name, into, ignore=shutil.ignore_patterns("*.tar.xz"))
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    return tmp_path


def test_every_session_has_its_effects_by_level_and_says_if_it_is_pooled(root: Path):
    table, index = pd.read_parquet(effects.refresh_files()), record.read_index()
    assert set(table.study) == {"lab-howto", "quick"}
    for session in index.sessions():
        found = session.results.findings.findings[0]
        rows = table[(table.session == session.id) & ~table.is_aa]
        own = rows[(rows.workload == found.workload) & (rows.treatment == found.treatment)]
        whole = own[own.threads.isna() & (own.metric == found.metric)].iloc[0]
        assert whole.effect == found.effect and whole.processor == session.entry.machine.processor_model
        assert set(own.threads.dropna()) == {level.threads for level in found.levels}
    arms = table[table.superseded.notna()].treatment
    assert {"not-warmed", "index-last", "not-analyzed"} == set(arms)
    assert not table[table.superseded.notna()].is_pooled.any() and table.is_pooled.any()


def test_only_a_study_whose_index_changed_is_made_again(root: Path):
    folder = effects.refresh_files()
    before = {file.parent.name: file.stat().st_mtime_ns for file in folder.rglob("*.parquet")}
    quick = record.read_index().studies["quick"]
    record.write_study("quick", quick.model_copy(update={"title": "Another"}))
    shutil.rmtree(root / "data" / "record" / "lab-howto")
    effects.refresh_files()
    after = {file.parent.name: file.stat().st_mtime_ns for file in folder.rglob("*.parquet")}
    assert [*after] == ["study=quick"] and after["study=quick"] > before["study=quick"]
    effects.refresh_files()
    assert {file.stat().st_mtime_ns for file in folder.rglob("*.parquet")} == {*after.values()}


def test_results_that_are_not_those_of_the_index_are_refused(root: Path):
    session = record.read_index().newest("quick")
    text = session.where.results.read_text()
    session.where.results.write_text(re.sub(r'"n":\d+', '"n":4', text, count=1))
    with pytest.raises(BenchbookError) as refused:
        effects.refresh_files()
    text = str(refused.value).replace(session.id, "SESSION")
    assert_golden_case("refused_artifacts.txt", "results of another digest", text)
