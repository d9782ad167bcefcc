"""Content of an unpacked archive, each file read once, nothing of it believed."""

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from benchbook.core.artifacts import applied_config, run_folder
from benchbook.core.artifacts.artifact import Facts, describe_error
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.params import Params
from benchbook.core.study.study import StudySpec
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import files, paths, yaml_file
from benchbook.plan import earlier_rules, schedule
from benchbook.read import validity


class ArchiveContents:
    """The files of an archive as types; reading one that is damaged raises whatever its damage asks for."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        self.where = paths.StudyPaths(name, root)

    @cached_property
    def study(self) -> StudySpec:
        """The study file; its claims need not be in a source."""
        document = yaml_file.read_mapping(self.where.file, f"studies/{self.name}.yaml")
        return validate_document(document, StudySpec)

    @cached_property
    def params(self) -> Params:
        """The archive's own settings."""
        return validate_document(yaml_file.read_mapping(self.root / "params.yaml", "params.yaml"), Params)

    @cached_property
    def facts(self) -> Facts:
        """Facts that provision found."""
        try:
            facts = Facts.model_validate(_read_json(self.where.facts))
        except ValidationError as error:
            raise ValueError(f"facts.json: {describe_error(error)}") from None
        if facts.study != self.name:
            raise ValueError(f"facts.json is of the study {facts.study!r}")
        return facts

    @cached_property
    def data(self) -> dict[str, Any]:
        """Data that prepare loaded."""
        return _read_json(self.where.dataset)

    @cached_property
    def warm_up(self) -> dict[str, Any]:
        """Results of the pilots, by the present rules."""
        return earlier_rules.lift_warm_up(self.study, _read_json(self.where.warm_up))

    @cached_property
    def session(self) -> dict[str, Any]:
        """Values that the session drew; empty in archives with the seed in the study file."""
        return _read_json(self.where.session) if self.where.session.is_file() else {}

    @cached_property
    def conditions(self) -> dict[str, dict[str, Any]]:
        """The digests of facts and data for each arm as its first run names them."""
        named: dict[str, dict[str, Any]] = {}
        for plan in self.plans.values():
            named.setdefault(self.study.deployed(plan["arm"]), plan["conditions"])
        # Where facts or data are not those of the runs, it is reported once, and not of every run again.
        due = schedule.run_conditions(self.facts.arms, self.data)
        return {arm: named.get(arm, due[arm]) for arm in due}

    @cached_property
    def runs(self) -> list[PlannedRun]:
        """The runs that study, facts, data and settled rates ask for."""
        drawn = self.session.get("seed")
        return schedule.plan_runs(self.name, self.study, self.conditions, self.warm_up, drawn)

    @cached_property
    def folders(self) -> list[RunFolder]:
        """The run folders of raw."""
        return list(run_folder.list_folders(self.where.raw))

    @cached_property
    def pilots(self) -> list[RunFolder]:
        """The run folders of the pilots."""
        return list(run_folder.list_folders(self.where.pilots))

    @cached_property
    def plans(self) -> dict[str, dict[str, Any]]:
        """The plan of each run folder of raw."""
        return {folder.name: folder.plan() for folder in self.folders}

    @cached_property
    def applied(self) -> dict[str, list[str]]:
        """Places in facts and runs that name a settings file, by its digest: fact's name and its arms."""
        results: dict[str, list[str]] = {}
        for arm, facts in self.facts.arms.items():
            for name, digest in applied_config.find_digests(facts):
                results.setdefault(digest, []).append(f"{name} of {arm}")
        for folder in [*self.folders, *self.pilots]:
            for name, digest in applied_config.find_digests(folder.evidence().get("identity_before") or {}):
                results.setdefault(digest, [f"{name} of runs such as {folder.name}"])
        results.pop(applied_config.NOTHING, None)
        return results

    @cached_property
    def voids(self) -> list[tuple[run_folder.Note, RunFolder]]:
        """The notes of void, each with the folder that it stands beside."""
        notes = sorted(self.where.void.glob(f"*.{run_folder.VOID}")) if self.where.void.is_dir() else []
        return [(run_folder.read_note(note), run_folder.voided_by(note)) for note in notes]

    @cached_property
    def voided(self) -> Counter[str]:
        """Times that each run was voided for its course."""
        return Counter(note.run_id for note, _ in self.voids if note.status in run_folder.COUNTED)

    @cached_property
    def failed(self) -> dict[str, str | None]:
        """Each run that was voided for its course, with its group; None if its folder can't say."""
        results: dict[str, str | None] = {}
        for note, folder in self.voids:
            if note.status in run_folder.FAILED:
                is_whole = folder.path.is_dir() and not folder.verify()
                results[note.run_id] = folder.planned().group if is_whole else results.get(note.run_id)
        return results

    @cached_property
    def judged(self) -> dict[str, validity.Judgement]:
        """Each run judged by the archive's own limits."""
        return {folder.name: validity.judge_run(folder, self.params.limits) for folder in self.folders}


def _read_json(file: Path) -> Any:
    try:
        return files.parse_json(files.read_plain(file))
    except ValueError as error:
        raise ValueError(f"{file.name}: {error}") from None
