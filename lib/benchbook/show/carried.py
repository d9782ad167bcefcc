"""What carries over of each claim: how close each study's arms are, beside what its sessions came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchbook.compare.claims import grades
from benchbook.compare.claims.grades import Brought, Grade
from benchbook.compare.pooled import without
from benchbook.core import files, load, paths, pooled, record, source
from benchbook.core.errors import InputErrors
from benchbook.core.findings import Findings
from benchbook.show import numbers
from benchbook.show.table import Column, Table, long

Grades = Mapping[str, Mapping[str, Grade]]
WITHOUT = "no study asks it"


def graded(studies: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Grade]]:
    """Return for each claim the grade of each study that is asked it, by the study's recorded sessions.

    `studies` has the names of study files by claim. Only sessions that are pooled count. What lies in no
    document here, and a study whose file has mistakes, is left ungraded.
    """
    known: dict[str, list[Brought]] = {}
    found: dict[str, dict[str, Grade]] = {}
    for document in {claim.partition("/")[0] for claim in studies} & set(source.names()):
        loaded = source.load(document)
        for name in (one for one in studies if one.partition("/")[0] == document):
            claim = source.put(loaded, name.partition("/")[2])
            for study in studies[name]:
                try:
                    read = load.study(study)
                except InputErrors:
                    continue
                sessions = known.setdefault(study, _sessions(study))
                found.setdefault(name, {})[study] = grades.grade(name, claim, loaded, read, sessions)
    return found


def table(claims: Sequence[str], found: Grades) -> Table:
    """List the nearest study of each claim, both grades side by side."""
    columns = [
        Column("Claim"), long("Study"), Column("Arms"), long("Because"), Column("Sessions came to"),
        Column("Between"), Column("Carries over"),
    ]  # fmt: skip
    lines = [_line(claim, found.get(claim, {})) for claim in claims]
    caption = (
        "Of several studies the nearest that was measured. Both grades stand side by side and are no verdict."
    )
    return Table("carries-over", "What carries over", columns, lines, caption, empty="No claim is carried.")


def is_counted(grade: Grade | None) -> bool:
    """Tell whether a study's number says anything of a claim elsewhere; an ungraded one may."""
    return grade is None or grade.closeness not in ("made", "another question")


def _line(claim: str, own: Mapping[str, Grade]) -> list[object]:
    study = next(iter(grades.nearest(own)), None)
    if study is None:
        return [claim, "", "", WITHOUT, "not asked", "", "no"]
    one = own[study]
    told = numbers.count(one.occasions, "occasion"), numbers.count(one.processors, "processor")
    outcome = f"{one.outcome} ({', '.join(told)})" if one.occasions else one.outcome
    carries = "yes" if one.carries_over else "not shown"
    return [claim, study, one.closeness, one.because, outcome, _between(one), carries]


def _between(one: Grade) -> str:
    if one.low is None or one.high is None:
        return ""
    if one.scale == "share":
        return numbers.span(one.low, one.high)
    return f"{numbers.significant(one.low)} to {numbers.significant(one.high)}"


def _sessions(study: str) -> list[Brought]:
    """Return the pooled sessions of a study with their findings and facts; none where it has no record."""
    folder = paths.root() / "data" / "recorded" / study
    if not (folder / pooled.FILE).is_file():
        return []
    found, index = [], record.read().studies
    known = index[study].sessions if study in index else {}
    for session in pooled.read(folder / pooled.FILE).sessions:
        where = paths.StudyPaths(study, folder / session.id)
        if where.findings.is_file() and where.facts.is_file():
            facts = files.read_json(where.facts)["arms"]
            own = Findings.read(where.findings)
            why = known[session.id].superseded if session.id in known else None
            own = without(own, why.arms, f"superseded: {why.reason}") if why else own
            found.append(Brought(session, own, facts))
    return found
