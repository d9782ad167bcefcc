"""Read study files and params.yaml into types, or list every mistake in them."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchbook.core.study import interleaving, study_variants
from benchbook.core.study.params import Params
from benchbook.core.study.study import Study
from benchbook.core.study.study_base import NAME
from benchbook.core.study.validation_errors import in_place, validate
from benchbook.core.util import paths, source_files, yaml_file
from benchbook.core.util.errors import BenchbookError, InputErrors, did_you_mean

TAKEN = ("calibration", "fleet", "published", "record", "recorded", "review", "site")
"""Folders of `data` that are no study's."""


def study(name: str, *sections: str) -> Study:
    """Read the file NAME.yaml below `studies`, or a size of a study by the name STUDY-SIZE.

    `InputErrors` lists every mistake. With `sections` only these can be read from the result, so that a
    stage cannot depend on what its entry in dvc.yaml does not declare.
    """
    loaded = _checked(_document(name))
    return Sections(loaded, sections) if sections else loaded  # type: ignore[return-value]


def to_measure(name: str) -> Study:
    """Read a study that is about to be measured; what misleads is refused here, and not in older evidence."""
    document = _document(name)
    loaded = _checked(document)
    wrong = [*interleaving.misleading(loaded)]
    first: dict[str, str] = {}
    for arm, one in loaded.arms.items():
        other = first.setdefault(json.dumps(one.setting, sort_keys=True), arm)
        if other != arm:
            wrong.append(
                f"arms.{arm}: sets the same as {other}; change what differs, or take it out: "
                "aa compares the baseline with itself"
            )
    if wrong:
        raise InputErrors(in_place(document, text) for text in wrong)
    return loaded


def _document(name: str) -> yaml_file.Document:
    """Return the parsed file of a study, or of a size of one."""
    written = paths.study_files()
    whole = study_variants.origin(name) if name not in written else None
    if whole is not None:
        return study_variants.document(name, whole)
    study_variants.require_study(name)
    if wrong := list(_twice({name: written[name]})):
        raise InputErrors(wrong)
    where = paths.study(name)
    if not re.fullmatch(NAME, name):
        better = re.sub("[^a-z0-9_-]+", "-", name.lower()).strip("-") or "study"
        raise InputErrors([f"{where.shown}: not a name for a study; rename it, for example {better}.yaml"])
    if name in TAKEN:
        raise InputErrors([f"{where.shown}: data/{name} has a meaning of its own; rename the study"])
    return yaml_file.read(where.file, where.shown)


def study_file(file: Path) -> Study:
    """Read a study from any file; a claim that it names must be in a source."""
    return _checked(yaml_file.read(file, f"studies/{file.name}"))


def _checked(document: yaml_file.Document) -> Study:
    wrong = list(_unknown_claims(document))
    try:
        loaded = validate(document, Study)
    except InputErrors as error:
        raise InputErrors([*error.errors, *wrong]) from None
    if wrong:
        raise InputErrors(wrong)
    return loaded


def _unknown_claims(document: yaml_file.Document) -> Iterator[str]:
    """Yield the claims of a file, whatever else is wrong with it, that no source makes."""
    listed, arms = {"claims": document.data.get("claims")}, document.data.get("arms")
    for name, arm in arms.items() if isinstance(arms, dict) else ():
        listed |= {f"arms.{name}.illustrates": arm.get("illustrates")} if isinstance(arm, dict) else {}
    named = {
        f"{place}.{index}": one
        for place, claims in listed.items()
        for index, one in enumerate(claims if isinstance(claims, list) else ())
        if isinstance(one, str)
    }
    if not named:
        return
    asked = {claim.partition("/")[0] for claim in named.values()} & set(source_files.source_names())
    known = source_files.claim_ids(*asked) if asked else []
    if not set(named.values()) <= set(known):
        known = source_files.claim_ids()
    for place, claim in named.items():
        if claim not in known:
            yield in_place(document, f"{place}: {claim}: no such claim; {did_you_mean(claim, known)}")


def params(*sections: str) -> Params:
    """Read `params.yaml`, or only some sections of it; a study or source named there must exist."""
    document = yaml_file.read(paths.params(), "params.yaml")
    loaded = validate(document, Params)
    wrong = [*_misplaced(document, loaded.studies), *_twice(paths.study_files())]
    wrong += [
        in_place(document, f"sources.{index}: {name}: no folder data/published/{name}; add it or remove it")
        for index, name in enumerate(loaded.sources)
        if not (paths.source(name).published / "source.yaml").is_file()
    ]
    if wrong:
        raise InputErrors(wrong)
    return Sections(loaded, sections) if sections else loaded  # type: ignore[return-value]


def _misplaced(document: yaml_file.Document, named: Mapping[str, str]) -> Iterator[str]:
    """Name the studies of `params.yaml` that are not there, or whose file is another one."""
    known, is_list = paths.studies(), isinstance(document.data["studies"], list)
    for index, (name, file) in enumerate(named.items()):
        told = f"studies.{index if is_list else name}"
        if name not in known:
            remedy = f"no such study; {did_you_mean(name, known)}"
            if (study := study_variants.origin(name)) is not None:
                made = f"`make repro STUDY={name}` writes and measures it"
                remedy = f"a size of {study} whose file is not there yet; {made}"
            yield in_place(document, f"{told}: {name}: {remedy}")
        elif not is_list and file != paths.study(name).shown:
            remedy = f"write {paths.study(name).shown}"
            yield in_place(document, f"{told}: {file}: not the file of this study; {remedy}")


def _twice(written: Mapping[str, Sequence[Path]]) -> Iterator[str]:
    for name, several in written.items():
        if len(several) > 1:
            shown = " and ".join(file.relative_to(paths.root()).as_posix() for file in several)
            yield f"studies: {name}: {shown} have one name; a study is known by it: rename or delete one"


class Sections:
    """Show some sections of a model; reading another one is an error that names what to declare."""

    def __init__(self, model: BaseModel, names: Iterable[str]) -> None:
        self._model, self._names = model, frozenset(names)
        unknown = self._names - set(type(model).model_fields)
        if unknown:
            raise BenchbookError(
                f"{sorted(unknown)[0]}: not a section of {type(model).__name__}; correct the stage's notebook"
            )

    def __getattr__(self, name: str) -> Any:
        kind = type(self._model)
        if name in kind.model_fields:
            if name not in self._names:
                raise BenchbookError(
                    f"this stage reads `{name}` but does not declare it; "
                    "add it to load.study(…) and to dvc.yaml"
                )
            return getattr(self._model, name)
        found = kind.__dict__.get(name)
        if isinstance(found, property):
            return found.fget(self)  # type: ignore[misc]
        if isinstance(found, types.FunctionType):
            return types.MethodType(found, self)
        raise AttributeError(f"{kind.__name__} has no {name}")
