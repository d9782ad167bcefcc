"""Arms that can't be made: one list for `plan`, `doctor` and `repro`, before anything starts."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping

from benchbook.core.study import load as study_files
from benchbook.core.study.engines import engine_of, program_of
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.sites import kind, load
from benchbook.sites.contract import Site
from benchbook.sites.machine.capabilities import Ability


def find_infeasible(study: StudySpec) -> dict[str, str]:
    """Arms that can't be made, with the reason, as far as it is known beforehand."""
    if study.site.kind == "local" and (wrong := list(_find_misspelt(study))):
        raise InputErrors(wrong)
    foreseen = kind(study).foreseeable_obstacles
    messages = {arm: "; ".join(dict.fromkeys(foreseen(study, arm))) for arm in study.arms}
    return {arm: why for arm, why in messages.items() if why}


def must_leave_a_pair(study: StudySpec, skipped: Mapping[str, str]) -> None:
    """BenchbookError if the baseline is among the arms that can't be made, or no treatment is left."""
    if study.baseline in skipped or all(arm in skipped for arm in study.treatments):
        message = "; ".join(f"{arm}: {reason}" for arm, reason in skipped.items())
        raise BenchbookError(f"nothing is left to compare: {message}")


def _find_misspelt(study: StudySpec) -> Iterator[str]:
    for arm in study.arms:
        engine = engine_of(study, arm)
        places = study.arms[arm].engine
        settings = set(places.settings) if places is not None else set()
        for name, near in load(program_of(engine)).misspelt(engine).items():
            where = f"arms.{arm}.engine" if name in settings else "engine"
            if where != "engine" or arm == study.baseline:
                remedy = f"did you mean {near}?" if near else "remove it, or load the plugin that has it"
                yield f"{where}.settings.{name}: unknown to the server; {remedy}"


def of_site(site: Site, arms: Iterable[str]) -> dict[str, str]:
    """Arms that an open site can't make, with the reason; nothing of them is started."""
    return {arm: why for arm in arms if (why := site.missing(arm)) is not None}


def examine_studies() -> list[Ability]:
    """Feasibility of all arms of each study of params.yaml, as doctor shows it."""
    abilities: list[Ability] = []
    # A study file with mistakes is named by whatever asks for that study.
    with contextlib.suppress(InputErrors):
        for name in study_files.load_params().studies:
            skipped = find_infeasible(study_files.load_study(name))
            message = "; ".join(f"{arm} is skipped: {why}" for arm, why in skipped.items())
            detail = message or "all arms can be made"
            abilities.append(Ability(f"study {name}", not skipped, detail, is_needed=False))
    return abilities
