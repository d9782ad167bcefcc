"""Read study files and params.yaml into types, or list every mistake in them."""

import json
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchbook.core.study import interleaving, study_variants
from benchbook.core.study.params import Params
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_base import NAME
from benchbook.core.study.validation_errors import locate_error, validate_document
from benchbook.core.util import paths, source_files, yaml_file
from benchbook.core.util.errors import BenchbookError, InputErrors, did_you_mean

TAKEN = ("calibration", "fleet", "published", "record", "recorded", "review", "site")
"""Folders of `data` that are no study's."""


def load_study(name: str, *sections: str) -> StudySpec:
    """Read the file NAME.yaml below `studies`, or a size of a study by the name STUDY-SIZE.

    With `sections` only these can be read: no stage depends on what its entry in dvc.yaml doesn't declare.
    """
    loaded = _validate_study(_parse_study(name))
    return Sections(loaded, sections) if sections else loaded  # type: ignore[return-value]


def load_for_measuring(name: str) -> StudySpec:
    """Read a study about to be measured; a misleading one is refused, though not in old evidence."""
    document = _parse_study(name)
    loaded = _validate_study(document)
    wrong = [*interleaving.find_misleading(loaded)]
    first: dict[str, str] = {}
    for arm, settings in loaded.arms.items():
        other = first.setdefault(json.dumps(settings.setting, sort_keys=True), arm)
        if other != arm:
            remedy = "change what differs, or take it out: aa compares the baseline with itself"
            wrong.append(f"arms.{arm}: sets the same as {other}; {remedy}")
    if wrong:
        raise InputErrors(locate_error(document, text) for text in wrong)
    return loaded


def _parse_study(name: str) -> yaml_file.YamlDocument:
    """Parsed file of a study, or of a size of one."""
    written = paths.study_files()
    whole = study_variants.find_origin(name) if name not in written else None
    if whole is not None:
        return study_variants.load_variant(name, whole)
    study_variants.require_study(name)
    if wrong := list(_find_duplicates({name: written[name]})):
        raise InputErrors(wrong)
    where = paths.study_paths(name)
    if not re.fullmatch(NAME, name):
        better = re.sub("[^a-z0-9_-]+", "-", name.lower()).strip("-") or "study"
        raise InputErrors([f"{where.shown}: not a name for a study; rename it, for example {better}.yaml"])
    if name in TAKEN:
        raise InputErrors([f"{where.shown}: data/{name} has a meaning of its own; rename the study"])
    return yaml_file.read_mapping(where.file, where.shown)


def study_file(file: Path) -> StudySpec:
    """Read a study from any file; a claim that it names must be in a source."""
    return _validate_study(yaml_file.read_mapping(file, f"studies/{file.name}"))


def _validate_study(document: yaml_file.YamlDocument) -> StudySpec:
    wrong = list(_unknown_claims(document))
    try:
        loaded = validate_document(document, StudySpec)
    except InputErrors as error:
        raise InputErrors([*error.errors, *wrong]) from None
    if wrong:
        raise InputErrors(wrong)
    return loaded


def _unknown_claims(document: yaml_file.YamlDocument) -> Iterator[str]:
    """Yield the claims of a file, whatever else is wrong with it, that no source makes."""
    if not (named := _claims_in(document)):
        return
    requests = {claim.partition("/")[0] for claim in named.values()} & set(source_files.source_names())
    claim_ids = source_files.claim_ids(*requests) if requests else []
    if not set(named.values()) <= set(claim_ids):
        claim_ids = source_files.claim_ids()
    for place, claim in named.items():
        if claim not in claim_ids:
            yield locate_error(document, f"{place}: {claim}: no such claim; {did_you_mean(claim, claim_ids)}")


def _claims_in(document: yaml_file.YamlDocument) -> dict[str, str]:
    """Claims that a file names, by their place in it."""
    listed, arms = {"claims": document.data.get("claims")}, document.data.get("arms")
    for name, arm in arms.items() if isinstance(arms, dict) else ():
        listed |= {f"arms.{name}.illustrates": arm.get("illustrates")} if isinstance(arm, dict) else {}
    return {
        f"{place}.{index}": item
        for place, claims in listed.items()
        for index, item in enumerate(claims if isinstance(claims, list) else ())
        if isinstance(item, str)
    }


def load_params(*sections: str) -> Params:
    """Read `params.yaml`, or only some sections of it; a study or source named there must exist."""
    document = yaml_file.read_mapping(paths.params_file(), "params.yaml")
    loaded = validate_document(document, Params)
    wrong = [*_find_misplaced(document, loaded.studies), *_find_duplicates(paths.study_files())]
    for index, name in enumerate(loaded.sources):
        if not (paths.source_paths(name).published / "source.yaml").is_file():
            text = f"sources.{index}: {name}: no folder data/published/{name}; add it or remove it"
            wrong.append(locate_error(document, text))
    if wrong:
        raise InputErrors(wrong)
    return Sections(loaded, sections) if sections else loaded  # type: ignore[return-value]


def _find_misplaced(document: yaml_file.YamlDocument, named: Mapping[str, str]) -> Iterator[str]:
    """Studies of `params.yaml` that are not there, or lie in a file of another one."""
    studies, is_list = paths.list_studies(), isinstance(document.data["studies"], list)
    for index, (name, file) in enumerate(named.items()):
        message = f"studies.{index if is_list else name}"
        if name not in studies:
            remedy = f"no such study; {did_you_mean(name, studies)}"
            if (study := study_variants.find_origin(name)) is not None:
                result = f"`make repro STUDY={name}` writes and measures it"
                remedy = f"a size of {study} whose file is not there yet; {result}"
            yield locate_error(document, f"{message}: {name}: {remedy}")
        elif not is_list and file != (shown := paths.study_paths(name).shown):
            yield locate_error(document, f"{message}: {file}: not the file of this study; write {shown}")


def _find_duplicates(written: Mapping[str, Sequence[Path]]) -> Iterator[str]:
    for name, several in written.items():
        if len(several) > 1:
            shown = " and ".join(file.relative_to(paths.find_root()).as_posix() for file in several)
            yield f"studies: {name}: {shown} have one name; a study is known by it: rename or delete one"


class Sections:
    """Some sections of a model; reading another one is an error naming the missing declaration."""

    def __init__(self, model: BaseModel, names: Iterable[str]) -> None:
        self._model, self._names = model, frozenset(names)
        unknown = self._names - set(type(model).model_fields)
        if unknown:
            what = f"{min(unknown)}: not a section of {type(model).__name__}"
            raise BenchbookError(f"{what}; correct the stage's notebook")

    def __getattr__(self, name: str) -> Any:
        kind = type(self._model)
        if name in kind.model_fields:
            if name not in self._names:
                what = f"this stage reads `{name}` but does not declare it"
                raise BenchbookError(f"{what}; add it to load.study(…) and to dvc.yaml")
            return getattr(self._model, name)
        result = kind.__dict__.get(name)
        if isinstance(result, property):
            return result.fget(self)  # type: ignore[misc]
        if isinstance(result, types.FunctionType):
            return types.MethodType(result, self)
        raise AttributeError(f"{kind.__name__} has no {name}")
