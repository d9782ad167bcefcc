"""Commands about study files: their check, their plan, and the files written about them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchbook.commands import site_commands
from benchbook.core.published import source
from benchbook.core.study import load, study_variants
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, paths, source_files, yaml_file
from benchbook.core.util.errors import InputErrors

# Sections of a study file that may be left out, and what they are then.
OPTIONAL = {"aa": "{}", "dataset": "{}", "warm_up": "{}", "claims": "[]"}


def check_studies() -> str:
    """Check params.yaml and every study file; InputErrors with all that is wrong."""
    wrong = list[str]()
    written = paths.list_studies()
    named = list(written)
    for name in written:
        # Loading the study lists what is wrong with its file.
        with contextlib.suppress(InputErrors):
            named += [size for size in study_variants.variant_names(name) if size not in written]
    attempts: list[Callable[[], object]] = [load.load_params]
    attempts += [partial(load.load_for_measuring, name) for name in named]
    for attempt in attempts:
        try:
            attempt()
        except InputErrors as error:
            wrong += error.errors
    if wrong:
        raise InputErrors(wrong)
    return f"params.yaml and {len(written)} study files are in order"


def print_plan(study: str, manifests: bool) -> int:
    """Print a study's schedule, duration, and arms that can't be made; BenchbookError if no pair is left."""
    of = load.load_for_measuring(study)
    # A study with a mistake is refused before what takes long to import.
    from benchbook import sites
    from benchbook.compare.meta import sample_size
    from benchbook.core.artifacts import meta_analysis
    from benchbook.plan import schedule
    from benchbook.sites.topology import feasibility

    kind = sites.kind(of)
    if manifests and (written := kind.manifests(study, of)):
        print(written)
        return 0
    print(schedule.describe_plan(study, of))
    advice = sample_size.format_advice(meta_analysis.read_pooled(study))
    for text in filter(None, (kind.needs(study, of), site_commands.cluster_summary(of), *advice)):
        print(text)
    skipped = feasibility.find_infeasible(of)
    for arm, why in skipped.items():
        print(f"  not made    {arm}: {why}")
    if not kind.needs_account:
        feasibility.must_leave_a_pair(of, skipped)
    return 0


def write_schema(check: bool) -> int:
    """Write the JSON schemas of study files, sources, findings and audits; return an exit code."""
    from benchbook.core import schema_docs

    return schema_docs.write_schemas(paths.find_root() / "schemas", check=check)


def write_reference(check: bool) -> int:
    """Write the pages that are made from code and studies; return an exit code."""
    from benchbook.core import schema_docs

    pages = {"studies/README.md": render_questions(), "docs/parameters.md": schema_docs.render_page()}
    files = {paths.find_root() / name: text for name, text in pages.items()}
    return max(schema_docs.write_generated(file, text, "reference", check) for file, text in files.items())


def write_size(name: str) -> None:
    """Write the file of a study at another size, for DVC to follow; an existing one is kept."""
    study = study_variants.find_origin(name)
    if study is None:
        return
    where, whole = paths.study_paths(name), paths.study_paths(study)
    wanted = study_variants.render_variant(name, study)
    if not where.file.is_file():
        files.write_text(whole.file.with_name(f"{name}.yaml"), wanted)
        print(f"{where.shown}: written from {whole.shown}; commit it before its first run")
    elif where.file.read_text(encoding="utf-8") != wanted:
        kept = f"{where.shown} differs from this size in {whole.shown}, and is measured as it is"
        print(f"{kept}; delete it to have it written again")


def complete_study(name: str) -> None:
    """Write the sections that a study file leaves out, for DVC stops at a key that it follows and misses."""
    where = paths.study_paths(name)
    document = yaml_file.read_mapping(where.file, where.shown)
    absent = {key: text for key, text in OPTIONAL.items() if key not in document.data}
    if absent:
        lines = "".join(f"{key}: {text}\n" for key, text in absent.items())
        files.write_text(where.file, where.file.read_text(encoding="utf-8").rstrip("\n") + f"\n{lines}")
        print(f"{where.shown}: {', '.join(absent)} written with their defaults; commit it")


def find_unlisted(root: Path) -> list[str]:
    """Remedies for studies that `params.yaml` names without the files that DVC follows."""
    document = yaml_file.read_mapping(root / "params.yaml", "params.yaml")
    named = document.data.get("studies")
    if not isinstance(named, list):
        return []
    lines = (f"  {name}: {paths.study_paths(str(name)).shown}" for name in named)
    why = f"{document.where(('studies',))}: studies: a list of names, and DVC needs the file of each; write"
    return ["\n".join([why, "studies:", *lines])]


def enlist_study(root: Path, study: str) -> bool:
    """Add a study to params.yaml; True if it was added, InputErrors if it can't be."""
    file, line = root / "params.yaml", f"{study}: {paths.study_paths(study).shown}"
    if study in yaml_file.read_mapping(file).data.get("studies", {}):
        return False
    text = file.read_text(encoding="utf-8")
    match = re.search(r"^studies:[^\n\S]*(?:#[^\n]*)?\n(?P<items>(?:[^\n\S]+[^\n]+\n)+)", text, re.M)
    if match is None:
        raise InputErrors([f"params.yaml: studies: {study} is not there; add the line `  {line}`"])
    indent = re.match(r"\s*", match["items"])[0]  # type: ignore[index]
    text = f"{text[: match.end()]}{indent}{line}\n{text[match.end() :]}"
    files.write_text(file, text)
    print(f"params.yaml: {study} added under studies, what the pipeline measures")
    return True


def render_questions() -> str:
    """Page of `studies/`: the studies of each folder, then the claims of each source."""
    # Both bring pandas along.
    from benchbook.plan import schedule
    from benchbook.show import templating

    folders: dict[str, list[dict[str, Any]]] = {}
    for name in study_variants.list_wholes():
        study = load.load_study(name)
        file = paths.study_paths(name).file.relative_to(paths.find_root() / "studies")
        sizes = name, *study_variants.variant_names(name)
        times = {size: schedule.describe_duration(size, load.load_study(size)) for size in sizes}
        row = {"title": study.title, "file": file.as_posix(), "kind": study.site.kind, "times": times}
        folders.setdefault(file.parent.as_posix(), []).append(row)
    documents = {name: source.load_source(name) for name in source_files.source_names()}
    inputs = {"folders": dict(sorted(folders.items())), "documents": documents, "answers": _list_answers()}
    return templating.render_text("studies.md.j2", **inputs)


def _list_answers() -> dict[str, dict[str, list[str]]]:
    """Studies by claim that judge or illustrate it, at another size if that differs."""
    answers: dict[str, dict[str, list[str]]] = {}
    for name in study_variants.list_wholes():
        whole = _list_claims(load.load_study(name))
        for size in (name, *study_variants.variant_names(name)):
            for claim, how in _list_claims(load.load_study(size)).items():
                if size == name or whole.get(claim) != how:
                    answers.setdefault(claim, {}).setdefault(how, []).append(size)
    return answers


def _list_claims(study: StudySpec) -> dict[str, str]:
    """Claims of a study, each with the study's use of it."""
    shown = {claim: "illustrates" for arm in study.arms.values() for claim in arm.illustrates}
    return {**shown, **dict.fromkeys(study.claims, "judges")}
