"""Differences of an archive from this clone, lost parts of it, limits of any check of files."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchbook.core.study.params import Params
from benchbook.core.study.study import StudySpec
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import files, paths, yaml_file
from benchbook.core.util.numeric_equality import diff_mappings, truncate_text
from benchbook.evidence.archive_reader import ArchiveContents

SENTENCES = (
    "that these servers ran, on that machine and at that time: who has all the files can write others "
    "that agree with each other, so it is the recorder's word",
    "what nothing else repeats: facts that are in no run's id, monitor.csv, and why attempts that were "
    "killed or damaged were set aside",
    "that nothing was left out: a session that was never recorded, or a study that was made smaller "
    "before it was packed, leaves nothing here",
)


def beside_ours(held: ArchiveContents, ours: Path) -> Iterator[str]:
    """Parts of the archive that differ from this clone, and the checks that were not made."""
    here = validate_document(yaml_file.read_mapping(ours / "params.yaml", "params.yaml"), Params)
    for section in ("limits", "analysis"):
        own_values, theirs = dict(getattr(here, section)), dict(getattr(held.params, section))
        for name, (due, statement) in diff_mappings(own_values, theirs).items():
            yield f"params.yaml: {section}.{name} is {statement} in the archive, {due} here"
    yield from _of_limits(held)
    yield from _of_settings(held)
    yield from _of_study_here(held, ours)
    yield from _of_published(held, ours)
    checks = (check for judged in held.judged.values() for check in judged.checks)
    for what, count in Counter(str(check) for check in checks if check.is_excused).items():
        yield f"{count} of {len(held.folders)} runs: not checked: {what}"


def _of_limits(held: ArchiveContents) -> Iterator[str]:
    """The first run that was measured under other limits than the archive's."""
    limits = held.params.limits.model_dump(mode="json")
    for folder in held.folders:
        at_run = folder.evidence().get("limits") or {}
        other = {key: value for key, value in at_run.items() if limits.get(key) != value}
        if other:
            yield f"raw/{folder.name}: measured under other limits than now: {truncate_text(other)}"
            return


def _of_published(held: ArchiveContents, ours: Path) -> Iterator[str]:
    for file in sorted((held.root / "data" / "published").rglob("*")):
        place = file.relative_to(held.root)
        kept = ours / place
        if file.is_file() and not (kept.is_file() and kept.read_bytes() == file.read_bytes()):
            yield f"{place}: not as this clone has it; claims and bands are the archive's"


def _of_settings(held: ArchiveContents) -> Iterator[str]:
    """Settings files and command lines that are gone: facts or runs name their digest, and no file has it."""
    kept = {files.digest_file(file) for file in held.where.applied.rglob("*") if file.is_file()}
    if absent := [place for digest, places in held.applied.items() if digest not in kept for place in places]:
        yield f"applied/: no file has the digest that is named by {', '.join(absent)}"


def _of_study_here(held: ArchiveContents, ours: Path) -> Iterator[str]:
    here = paths.StudyPaths(held.name, ours)
    if not here.file.is_file():
        yield f"{here.shown}: this clone has no such study to hold it against"
        return
    study = validate_document(yaml_file.read_mapping(here.file, here.shown), StudySpec)
    values, theirs = (each.model_dump(mode="json") for each in (study, held.study))
    if differing := [key for key in values if repr(values[key]) != repr(theirs[key])]:
        yield f"{here.shown}: {', '.join(differing)}: not as this clone has it"
