"""Status of a claim here: measured, illustrated, or open, and the part that carries over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from benchbook.compare.claims import transferability
from benchbook.compare.claims.transferability import Grade, nearest_studies
from benchbook.compare.meta.cross_study import build_rows, sign_reversals
from benchbook.compare.meta.meta_analysis import SessionResult
from benchbook.compare.meta.recorded_sessions import build_recorded
from benchbook.core.artifacts import record
from benchbook.core.artifacts.findings import Answer, FindingData, Findings
from benchbook.core.artifacts.meta_analysis import FILE, MetaAnalysis, PooledContrast, read_all
from benchbook.core.published import source
from benchbook.core.published.audit import Audit, AuditedClaim
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.study import descriptors
from benchbook.core.study import load as study_files
from benchbook.core.study.study_arm import UNMEASURED, without_presentation
from benchbook.core.util import files, paths, source_files, yaml_file
from benchbook.core.util.errors import InputErrors
from benchbook.show import bottleneck_section, caveats_section
from benchbook.show.markup import make_slug
from benchbook.show.table import Table, build_table

Grades = Mapping[str, Mapping[str, Grade]]
_SITES = {"local": "one machine", "ssh": "hosts", "kubernetes": "a cluster"}


@dataclass(frozen=True)
class MeasuredStudy:
    """A study with findings: recorded in git, or measured in this clone.

    `illustrates` are claims by arm that shows them unjudged, `stands_in` what arms stand in for, `doubts`
    those that it was recorded with, `explained` findings of sessions that tell why, the newest first.
    """

    name: str
    found: Findings
    is_recorded: bool = False
    illustrates: Mapping[str, Sequence[str]] = field(default_factory=dict)
    place: str = ""
    doubts: Sequence[str] = ()
    stands_in: Mapping[str, str] = field(default_factory=dict)
    explained: Sequence[Findings] = ()

    @property
    def page(self) -> str:
        """The way from the first page to the page of the study."""
        return f"{'record/' if self.is_recorded else ''}studies/{make_slug(self.name)}.html"

    @property
    def whole_name(self) -> str:
        """Name, with a mark if it was measured here and the record has it too."""
        return self.name if self.is_recorded else f"{self.name} here"

    @property
    def runs(self) -> str:
        """The way from the first page to its single runs."""
        return f"{'record/' if self.is_recorded else ''}runs/{make_slug(self.name)}/index.html"

    @property
    def whose(self) -> str:
        """Word for one of two measurements of one study: recorded, or measured in this clone."""
        return "recorded" if self.is_recorded else "measured in this clone"

    def answers(self, claim: str) -> list[FindingData]:
        """Findings that were judged by a claim."""
        return [finding for finding in self.found.findings if finding.claim == claim]

    def shows(self, claim: str) -> list[FindingData]:
        """Findings that illustrate a claim unjudged, on QPS if they have it; none if the study was asked."""
        if self.asked(claim):
            return []
        arms = {arm for arm, claims in self.illustrates.items() if claim in claims}
        findings = [each for each in self.found.findings if each.treatment in arms and not each.claim]
        return [finding for finding in findings if finding.metric == "qps"] or findings

    def stand_ins(self, claim: str) -> list[str]:
        """Texts on what a claim's illustrating arms stand in for, once each, in order."""
        results: dict[str, None] = {}
        for (_, before), (arm, text) in pairwise([("", ""), *self.stands_in.items()]):
            if claim in self.illustrates.get(arm, ()):
                phrases = (before, text) if text.startswith("the same ") else (text,)
                results.update(dict.fromkeys(filter(None, phrases)))
        return list(results)

    def asked(self, claim: str) -> list[Answer]:
        """Outcomes of the study for a claim that is no effect between two arms: trends, values."""
        return [answer for answer in self.found.claims or [] if answer.claim == claim]


@dataclass(frozen=True)
class PlannedStudy:
    """A study file that would answer a claim, or illustrate it, once it is measured."""

    name: str
    is_answer: bool
    place: str


@dataclass(frozen=True)
class ClaimStatus:
    """Audits in source order, studies, study files and grades by claim, joint results by study."""

    audits: Sequence[Audit]
    studies: Sequence[MeasuredStudy]
    shipped: Mapping[str, Sequence[PlannedStudy]]
    grades: Grades = field(default_factory=dict)
    pooled: Mapping[str, MetaAnalysis] = field(default_factory=dict)

    @cached_property
    def reversals(self) -> dict[str, list[str]]:
        """Contrasts of each study that have the opposite sign in sessions of another one."""
        rows = build_rows([*self.pooled.values()])
        return {name: texts for name in self.pooled if (texts := sign_reversals(name, rows))}

    @property
    def claims(self) -> list[AuditedClaim]:
        """Every claim of every source."""
        return [claim for audit in self.audits for claim in audit.claims]

    def over_sessions(self, study: MeasuredStudy, finding: FindingData) -> PooledContrast | None:
        """Effect of a finding over several recorded sessions, the number that all pages show; else None."""
        pooled = self.pooled.get(study.name) if study.is_recorded else None
        contrasts = pooled.contrasts if pooled else ()
        several = (each for each in contrasts if each.id == finding.id and len(each.whole.sessions) > 1)
        return next(several, None)

    def answers(self, claim: str) -> list[tuple[MeasuredStudy, FindingData]]:
        """(study, finding) for every finding that answers a claim."""
        return [(study, answer) for study in self.studies for answer in study.answers(claim)]

    def shows(self, claim: str) -> list[tuple[MeasuredStudy, FindingData]]:
        """(study, finding) for each finding that illustrates a claim and judges nothing, nearest first."""
        return [(study, show) for study in self.nearest(claim) for show in study.shows(claim)]

    def asked(self, claim: str, is_judged: bool) -> list[tuple[MeasuredStudy, Answer]]:
        """Pairs (study, outcome) of a claim that is no effect between two arms."""
        return [
            (study, answer)
            for study in (self.studies if is_judged else self.nearest(claim))
            for answer in study.asked(claim)
            if answer.judged == is_judged
            and (is_judged or any(part.value is not None for part in answer.parts))
        ]

    def without_number(self, claim: str) -> list[tuple[MeasuredStudy, Answer]]:
        """Pairs (study, outcome) of recorded studies that were asked for a claim and have no number."""
        return [
            (study, answer)
            for study in self.studies
            for answer in study.asked(claim)
            if study.is_recorded and answer.reason and all(part.value is None for part in answer.parts)
        ]

    def nearest(self, claim: str) -> list[MeasuredStudy]:
        """Studies with numbers that may say something of a claim, the nearest first."""
        grades = self.grades.get(claim, {})
        order = {name: place for place, name in enumerate(nearest_studies(grades))}
        # A session may have been asked what its study file, as it is now, no longer says that it shows.
        studies = [study for study in self.studies if not self.grades or study.name in grades]
        counted = [study for study in studies if is_counted(grades.get(study.name))]
        return sorted(counted, key=lambda item: order.get(item.name, len(order)))


def load_status(source: str = "") -> ClaimStatus:
    """Read every audit (or that of one source), and the findings of every study that has them."""
    data = paths.find_root() / "data"
    audits = [Audit.read(file) for file in sorted(data.glob("audit/*/audit.json"))]
    chosen = [audit for audit in audits if source in ("", audit.source)]
    ways = list_planned()
    claim_ids = {claim.id for audit in chosen for claim in audit.claims}
    requests = {claim: [way.name for way in studies] for claim, studies in ways.items() if claim in claim_ids}
    pooled = {analysis.study: analysis for analysis in read_all()}
    return ClaimStatus(chosen, load_studies(), ways, grade_studies(requests), pooled)


def load_studies() -> list[MeasuredStudy]:
    """Every study with findings, by name: this clone's, unless recorded to the byte, then recorded ones."""
    data, index = paths.find_root() / "data", record.read_index()
    result, observed = [], set()
    for name in sorted(index.studies):
        newest = index.newest(name)
        where, entry = newest.where, newest.entry
        if where.findings.is_file():
            observed.add((name, where.findings.read_bytes()))
            with paths.use_root(where.base):
                messages = [doubt.text for doubt in caveats_section.report_differences()]
            measured_study = _build_study(name, where, True, [*messages, *entry.doubts])
            result.append(replace(measured_study, explained=_explained_findings(name, index)))
    for file in sorted(data.glob("*/findings.json")):
        if (file.parent.name, file.read_bytes()) not in observed:
            result.append(_build_study(file.parent.name, paths.study_paths(file.parent.name), False))
    return sorted(result, key=lambda item: item.is_recorded)


def _explained_findings(name: str, index: record.Index) -> list[Findings]:
    """Findings that give a cause, of the present design, newest first: made again here, else as in git."""
    alike = index.studies[name].of_design(index.newest(name).entry.design)
    every = []
    for session in reversed([*index.sessions(name)]):
        if session.id in alike and session.where.results.is_file():
            file = session.where.findings
            every.append(Findings.read(file) if file.is_file() else session.results.findings)
    return [findings for findings in every if bottleneck_section.select_causes(findings)]


def _build_study(
    name: str, where: paths.StudyPaths, is_recorded: bool, doubts: Sequence[str] = ()
) -> MeasuredStudy:
    inputs, now = _read_study(where), _read_study(paths.study_paths(name))
    findings, today = Findings.read(where.findings), _illustrated_claims(now)
    # Without the claims that the study file has withdrawn since.
    shown = {
        arm: [claim for claim in claims if claim in today.get(arm, claims)]
        for arm, claims in _illustrated_claims(inputs).items()
    }
    place = _describe_place(inputs, is_on_one_node=_count_nodes(where) == 1)
    return MeasuredStudy(name, findings, is_recorded, shown, place, doubts, _stands_in(inputs, now))


def _count_nodes(where: paths.StudyPaths) -> int:
    """Number of a cluster's nodes that arms ran on, by the facts of a study."""
    facts = files.read_json(where.facts) if where.facts.is_file() else {}
    moments = [arm.get("moment") or {} for arm in (facts.get("arms") or {}).values()]
    return len({node for moment in moments for key, node in moment.items() if key.endswith("_node")})


def list_planned() -> dict[str, list[PlannedStudy]]:
    """Study files by claim: first those that would answer it, then those that would illustrate it."""
    planned: dict[str, list[PlannedStudy]] = {}
    for name in paths.list_studies():
        study = _read_study(paths.study_paths(name))
        shown = {claim for claims in _illustrated_claims(study).values() for claim in claims}
        answered = [str(claim) for claim in study.get("claims") or []]
        for claim in dict.fromkeys([*answered, *sorted(shown)]):
            way = PlannedStudy(name, claim in answered, _describe_place(study))
            planned.setdefault(claim, []).append(way)
    for ways in planned.values():
        ways.sort(key=lambda item: (not item.is_answer, item.name))
    return planned


def _read_study(where: paths.StudyPaths) -> Mapping[str, Any]:
    return yaml_file.read_mapping(where.file, where.shown).data if where.file.is_file() else {}


def _arms_of(inputs: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {arm: entry or {} for arm, entry in (inputs.get("arms") or {}).items()}


def _illustrated_claims(inputs: Mapping[str, Any]) -> dict[str, list[str]]:
    arms = _arms_of(inputs).items()
    return {arm: [str(item) for item in entry.get("illustrates") or []] for arm, entry in arms}


def _stands_in(inputs: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """Text by arm on the thing it stands in for; from the present file if the arm is the same."""
    then, today = _arms_of(inputs), _arms_of(now)
    ran, would_run = (without_presentation(arms, UNMEASURED) for arms in (then, today))
    texts = {}
    for arm, statement in then.items():
        is_same = ran[arm] == would_run.get(arm, {})
        texts[arm] = (is_same and today.get(arm, {}).get("stands_in_for")) or statement.get("stands_in_for")
    return {arm: str(text) for arm, text in texts.items() if text}


def _describe_place(inputs: Mapping[str, Any], is_on_one_node: bool = False) -> str:
    kind, engine = str((inputs.get("site") or {}).get("kind") or ""), (inputs.get("engine") or {}).get("name")
    site = "one node of a cluster" if is_on_one_node else _SITES.get(kind, kind)
    is_split = any(arm.get("network") == "pod" or arm.get("zones") for arm in _arms_of(inputs).values())
    namespaces = "namespaces" if kind == "local" and is_split else ""
    return ", ".join(filter(None, [site, namespaces, descriptors.product_name(str(engine or ""))]))


def grade_studies(studies: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Grade]]:
    """Grades by claim and study from its pooled sessions; none where study or document can't be read."""
    sessions_by_study: dict[str, list[SessionResult]] = {}
    graded: dict[str, dict[str, Grade]] = {}
    doses: dict[str, float | None] = {}
    for document in {claim.partition("/")[0] for claim in studies} & set(source_files.source_names()):
        loaded = source.load_source(document)
        for name in (study_id for study_id in studies if study_id.partition("/")[0] == document):
            claim = source.claim_for_study(loaded, name.partition("/")[2])
            for study in studies[name]:
                try:
                    read = study_files.load_study(study)
                except InputErrors:
                    continue
                sessions = sessions_by_study.setdefault(study, _pooled_sessions(study))
                dose = doses.setdefault(name, _printed_dose(document, name, claim))
                grade = transferability.grade_claim(name, claim, loaded, read, sessions, dose)
                graded.setdefault(name, {})[study] = grade
    return graded


def _printed_dose(document: str, name: str, claim: ClaimSpec) -> float | None:
    """Mean of the numbers that a document printed of a claim's dose, at its baseline; None without any."""
    file, metric = paths.source_paths(document).audit, transferability.dose_metric(claim)
    if metric is None or not file.is_file():
        return None
    audit = Audit.read(file)
    baselines = _printed_baselines(audit, name)
    values = [
        number.value
        for table in audit.tables
        for number in table.numbers
        if number.metric == metric and (table.name, number.row) in baselines and number.value
    ]
    return sum(values) / len(values) if values else None


def _printed_baselines(audit: Audit, claim: str) -> set[tuple[str | None, int | None]]:
    """Table and row of each number that a claim takes as a baseline."""
    cells = [cell for each in audit.claims if each.id == claim for cell in each.cells]
    return {(cell.baseline.table, cell.baseline.row) for cell in cells if cell.baseline}


def carries_over(claims: Sequence[str], results: Grades) -> Table:
    """List the nearest study of each claim, both grades side by side."""
    rows = []
    for claim in claims:
        # Nothing is said of a study that was never run.
        grades = {name: grade for name, grade in results.get(claim, {}).items() if grade.sessions}
        study = next(iter(nearest_studies(grades)), "")
        rows.append((claim, study, grades.get(study)))
    return build_table("carries-over", rows)


def is_counted(grade: Grade | None) -> bool:
    """True if a study's number says anything of a claim elsewhere; an ungraded one may."""
    return grade is None or grade.closeness not in ("made", "another question")


def _pooled_sessions(study: str) -> list[SessionResult]:
    """Pooled sessions of a study with their findings and facts; none if it has no record."""
    folder, index = paths.find_root() / "data" / "recorded" / study, record.read_index()
    if not (folder / FILE).is_file() or study not in index.studies:
        return []
    pooled = {session.id for session in MetaAnalysis.read(folder / FILE).sessions}
    return [
        build_recorded(session.id, session.entry, session.pooled_results)
        for session in index.sessions(study)
        if session.id in pooled and session.where.results.is_file()
    ]
