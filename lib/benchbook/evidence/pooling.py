"""The recorded sessions of a study brought together, as they were made again: what pooled.json is made of."""

from __future__ import annotations

from typing import Any

from benchbook.compare.pooled import Brought, brought, pool
from benchbook.core import design, files, load, paths, record
from benchbook.core.pooled import Pooled, Processor, save


def write(name: str, study: record.Recorded) -> Pooled | None:
    """Pool the sessions of a study that stand in `data/recorded` and write its pooled.json.

    Those of the newest session's design count, others stand beside with what differs. None, and no file,
    where no session that counts was made.
    """
    there = {one: paths.recorded(name, one) for one in study.sessions}
    made = {one: where for one, where in there.items() if where.findings.is_file() and where.facts.is_file()}
    target = paths.recorded(name, study.newest).pooled
    target.unlink(missing_ok=True)
    if study.newest not in made or study.sessions[study.newest].superseded is not None:
        return None
    newest = study.sessions[study.newest]
    shape = _described(made[study.newest], newest)
    several = [_brought(where, study.sessions[one], newest.design, shape) for one, where in made.items()]
    found = pool(name, several, newest.design)
    save(target, found)
    return found


def _brought(
    where: paths.RecordedPaths, entry: record.Entry, design_id: str, shape: dict[str, Any]
) -> Brought:
    machine, facts = entry.machine, files.read_json(where.facts)["arms"]
    differs = [] if entry.design == design_id else design.differing(shape, _described(where, entry))
    why = entry.superseded
    superseded = None if why is None else f"{why.reason} ({why.commit})"
    given = brought(
        where.session_id,
        entry.measured,
        entry.design,
        files.read_json(where.findings),
        facts,
        superseded=superseded,
        differs="; ".join(differs),
    )
    processor = Processor(
        name=machine.processor, family=machine.family, model=machine.model, stepping=machine.stepping
    )
    told = {"processor": processor, "cores": machine.cores, "kernel": machine.kernel}
    return Brought(given.session.model_copy(update=told), given.findings, facts, given.differs)


def _described(where: paths.RecordedPaths, entry: record.Entry) -> dict[str, Any]:
    with paths.at(where.base):
        study = load.study_file(paths.StudyPaths(where.name, where.base).file)
    return design.described(study, files.read_json(where.facts), entry.methods)
