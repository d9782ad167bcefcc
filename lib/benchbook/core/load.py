"""Read study files and params.yaml into types, or list every mistake in them."""

from __future__ import annotations

from pathlib import Path

from benchbook.core import paths, yamlfile
from benchbook.core.explain import validate
from benchbook.core.errors import InputErrors, did_you_mean
from benchbook.core.params import Params
from benchbook.core.study import Study

def study(name: str) -> Study:
    """Read `studies/NAME.yaml`; raise `InputErrors` with every mistake."""
    file = paths.study(name).file
    if not file.is_file():
        raise InputErrors([f"studies: {name}: no such study; {did_you_mean(name, paths.studies())}"])
    return study_file(file)


def study_file(file: Path) -> Study:
    """Read a study from any file."""
    return validate(yamlfile.read(file, f"studies/{file.name}"), Study)


def params() -> Params:
    """Read `params.yaml`; a study named there must exist."""
    document = yamlfile.read(paths.params(), "params.yaml")
    loaded = validate(document, Params)
    known = paths.studies()
    wrong = [
        f"{document.where(('studies', index))}: studies.{index}: {name}: no such study; {did_you_mean(name, known)}"
        for index, name in enumerate(loaded.studies)
        if name not in known
    ]
    wrong += [
        f"{document.where(('sources', index))}: sources.{index}: {name}: no folder data/published/{name}; add it or remove the name"
        for index, name in enumerate(loaded.sources)
        if not (paths.published(name) / "source.yaml").is_file()
    ]
    if wrong:
        raise InputErrors(wrong)
    return loaded
