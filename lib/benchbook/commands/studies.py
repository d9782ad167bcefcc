"""Commands about study files: whether they are in order, what they plan, and what is written of them."""

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
from benchbook.core.study.study import Study
from benchbook.core.util import files, paths, source_files, yaml_file
from benchbook.core.util.errors import InputErrors

# Sections of a study file that may be left out, and what they are then.
OPTIONAL = {"aa": "{}", "dataset": "{}", "warm_up": "{}", "claims": "[]"}


def check() -> str:
    """Check params.yaml and every study file; InputErrors with all that is wrong."""
    wrong: list[str] = []
    written = paths.studies()
    named = list(written)
    for name in written:
        # Loading the study lists what is wrong with its file.
        with contextlib.suppress(InputErrors):
            named += [size for size in study_variants.names(name) if size not in written]
    attempts: list[Callable[[], object]] = [load.params, *(partial(load.to_measure, name) for name in named)]
    for attempt in attempts:
        try:
            attempt()
        except InputErrors as error:
            wrong += error.errors
    if wrong:
        raise InputErrors(wrong)
    return f"params.yaml and {len(written)} study files are in order"


def plan(study: str, manifests: bool) -> int:
    """Print a study's schedule, what it takes, and what can't be made here; return an exit code.

    BenchbookError in provision's words where what can't be made leaves nothing to compare.
    """
    of = load.to_measure(study)
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
    print(schedule.summary(study, of))
    advice = sample_size.lines(meta_analysis.of(study))
    for text in filter(None, (kind.needs(study, of), site_commands.cluster_summary(of), *advice)):
        print(text)
    skipped = feasibility.foreseen(of)
    for arm, why in skipped.items():
        print(f"  not made    {arm}: {why}")
    if not kind.needs_account:
        feasibility.must_leave_a_pair(of, skipped)
    return 0


def schema(check: bool) -> int:
    """Write the JSON schemas of study files, sources, findings and audits; return an exit code."""
    from benchbook.core import schema_docs as made

    return made.write_schemas(paths.root() / "schemas", check=check)


def reference(check: bool) -> int:
    """Write the pages that are made from code and studies; return an exit code."""
    from benchbook.core import schema_docs as made

    pages = {"studies/README.md": questions(), "docs/parameters.md": made.page()}
    root = paths.root()
    return max(made.keep(root / name, text, "reference", check) for name, text in pages.items())


def write_size(name: str) -> None:
    """Write the file of a study at another size, which DVC follows; one that is there is kept as it is."""
    study = study_variants.origin(name)
    if study is None:
        return
    where, whole, wanted = paths.study(name), paths.study(study), study_variants.text(name, study)
    if not where.file.is_file():
        files.write_text(whole.file.with_name(f"{name}.yaml"), wanted)
        print(f"{where.shown}: written from {whole.shown}; commit it before its first run")
    elif where.file.read_text(encoding="utf-8") != wanted:
        print(
            f"{where.shown} differs from this size in {whole.shown}, and is measured as it is; "
            "delete it to have it written again",
        )


def complete(name: str) -> None:
    """Write the sections that a study file leaves out, for DVC stops at a key that it follows and misses."""
    where = paths.study(name)
    document = yaml_file.read(where.file, where.shown)
    absent = {key: text for key, text in OPTIONAL.items() if key not in document.data}
    if absent:
        lines = "".join(f"{key}: {text}\n" for key, text in absent.items())
        files.write_text(where.file, where.file.read_text(encoding="utf-8").rstrip("\n") + f"\n{lines}")
        print(f"{where.shown}: {', '.join(absent)} written with their defaults; commit it")


def unlisted(root: Path) -> list[str]:
    """Say what to write where `params.yaml` names studies without the files that DVC follows."""
    document = yaml_file.read(root / "params.yaml", "params.yaml")
    named = document.data.get("studies")
    if not isinstance(named, list):
        return []
    lines = "".join(f"\n  {name}: {paths.study(str(name)).shown}" for name in named)
    return [
        f"{document.where(('studies',))}: studies: a list of names, and DVC needs the file of each; write\n"
        f"studies:{lines}"
    ]


def enlist(root: Path, study: str) -> bool:
    """Add a study to params.yaml; return whether it was added, InputErrors if it can't be."""
    file, line = root / "params.yaml", f"{study}: {paths.study(study).shown}"
    if study in yaml_file.read(file).data.get("studies", {}):
        return False
    text = file.read_text(encoding="utf-8")
    found = re.search(r"^studies:[^\n\S]*(?:#[^\n]*)?\n(?P<items>(?:[^\n\S]+[^\n]+\n)+)", text, re.M)
    if found is None:
        raise InputErrors([f"params.yaml: studies: {study} is not there; add the line `  {line}`"])
    indent = re.match(r"\s*", found["items"])[0]  # type: ignore[index]
    text = f"{text[: found.end()]}{indent}{line}\n{text[found.end() :]}"
    files.write_text(file, text)
    print(f"params.yaml: {study} added under studies, what the pipeline measures")
    return True


def questions() -> str:
    """Return the page of `studies/`: the studies of each folder, then the claims of each source."""
    # Both bring pandas along.
    from benchbook.plan import schedule
    from benchbook.show import templating

    folders: dict[str, list[dict[str, Any]]] = {}
    for name in study_variants.wholes():
        study, file = load.study(name), paths.study(name).file.relative_to(paths.root() / "studies")
        of_sizes = {size: schedule.duration(size, load.study(size)) for size in study_variants.names(name)}
        times = {name: schedule.duration(name, study), **of_sizes}
        row = {"title": study.title, "file": file.as_posix(), "kind": study.site.kind, "times": times}
        folders.setdefault(file.parent.as_posix(), []).append(row)
    documents = {name: source.load(name) for name in source_files.source_names()}
    given = {"folders": dict(sorted(folders.items())), "documents": documents, "answers": _answers()}
    return templating.text("studies.md.j2", **given)


def _answers() -> dict[str, dict[str, list[str]]]:
    """Return for each claim the studies that judge or illustrate it, at another size where that differs."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in study_variants.wholes():
        whole = _claims(load.study(name))
        asked = [(name, claim, how) for claim, how in whole.items()]
        for size in study_variants.names(name):
            own = _claims(load.study(size)).items()
            asked += [(size, claim, how) for claim, how in own if whole.get(claim) != how]
        for study, claim, how in asked:
            found.setdefault(claim, {}).setdefault(how, []).append(study)
    return found


def _claims(study: Study) -> dict[str, str]:
    """Return the claims of a study, each with what the study does with it."""
    shown = {claim: "illustrates" for arm in study.arms.values() for claim in arm.illustrates}
    return {**shown, **dict.fromkeys(study.claims, "judges")}
