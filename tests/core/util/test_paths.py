"""Everything has one place, found from wherever a command is run."""

from pathlib import Path

import pytest

from benchbook.core.util import paths


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a clone, in which no root is named."""
    monkeypatch.delenv("BENCHBOOK_ROOT", raising=False)
    (tmp_path / "studies").mkdir()
    (tmp_path / "dvc.yaml").write_text("")
    for name in ("zebra", "ant"):
        (tmp_path / "studies" / f"{name}.yaml").write_text("")
    (tmp_path / "notebooks" / "explore").mkdir(parents=True)
    return tmp_path


def test_the_root_is_found_upwards(repository: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(repository / "notebooks" / "explore")
    assert paths.find_root() == repository
    assert paths.list_studies() == ["ant", "zebra"]


def test_a_study_is_found_by_its_name_in_any_folder_that_is_not_hidden(repository, monkeypatch):
    monkeypatch.chdir(repository)
    assert paths.list_studies() == ["ant", "zebra"]
    for folder in ("pool/of", ".ipynb_checkpoints"):
        (repository / "studies" / folder).mkdir(parents=True)
        (repository / "studies" / folder / f"bee{len(folder)}.yaml").write_text("")
    assert paths.list_studies() == ["ant", "bee7", "zebra"]
    assert paths.study_paths("bee7").file == repository / "studies" / "pool" / "of" / "bee7.yaml"
    assert paths.study_paths("bee7").shown == "studies/pool/of/bee7.yaml"
    assert paths.study_paths("bee7").data == repository / "data" / "bee7"
    assert paths.study_paths("not-yet").shown == "studies/not-yet.yaml"
    assert paths.study_paths("ee7").shown == "studies/ee7.yaml", "a name that another ends in"
    # In a notebook that stays open too, while files come and go in the same step of the clock.
    paths.study_paths("bee7").file.unlink()
    assert paths.list_studies() == ["ant", "zebra"]


def test_a_named_root_comes_first(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(repository)
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path / "other"))
    assert paths.find_root() == tmp_path / "other"


def test_elsewhere_it_is_this_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("BENCHBOOK_ROOT", raising=False)
    monkeypatch.chdir("/")
    assert paths.find_root() == Path(__file__).resolve().parents[3]


def test_a_study_keeps_to_its_own_folders(repository: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(repository)
    study = paths.study_paths("ant")
    assert study.file == repository / "studies" / "ant.yaml"
    made = [
        getattr(study, name)
        for name, place in vars(paths.StudyPaths).items()
        if isinstance(place, property | paths._In) and name not in ("file", "shown")
    ]
    assert len(set(made)) == len(made) > 10
    own = repository / "data" / "ant"
    assert not [path for path in made if not path.is_relative_to(own) and "reports" not in path.parts]
    assert not set(made) & {paths.study_paths("zebra").data}
