"""The site's first page: one table, a row a question."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from benchbook.compare.bottlenecks import operational_laws
from benchbook.compare.claims.transferability import nearest_studies
from benchbook.compare.text import cpu_models
from benchbook.compare.text.results_table import DECIDED, rows_of_finding
from benchbook.core.artifacts import record
from benchbook.core.artifacts.findings import FindingData, Findings
from benchbook.core.artifacts.meta_analysis import LABELS
from benchbook.core.published.audit import AuditedClaim
from benchbook.core.study import descriptors
from benchbook.core.util import paths
from benchbook.core.util.grouping import group_by
from benchbook.core.util.number_format import format_count, format_percent
from benchbook.show import bottleneck_section, forest
from benchbook.show.claim_rows import is_opposite
from benchbook.show.claim_status import ClaimStatus, MeasuredStudy, PlannedStudy
from benchbook.show.markup import Html, make_slug
from benchbook.show.templating import render_template

# All rows share it: logarithmic beyond 2 %, so that 4, 7 and 60 % stand apart in a narrow figure.
SCALE = forest.Scale(-1.4, 1.4, ticks_at=(-0.5, 0.0, 1.0), linear_up_to=0.02)


def render_page(status: ClaimStatus) -> Html:
    """Write the first page: the answer, a description of Benchbook, each question and its answer."""
    base, names = paths.find_root() / "studies", paths.list_studies()
    folders = {name: "/".join(paths.study_paths(name).file.parent.relative_to(base).parts) for name in names}
    return render_template(
        "first.html.j2",
        answer=summarize_record(status),
        groups=group_questions(status, folders),
        mini=lambda line: forest.draw_bar(line, SCALE),
        axis=forest.draw_axis(SCALE),
    )


def summarize_record(status: ClaimStatus) -> str:
    """Number of claims that hold in their own tables, and of effects with the same sign elsewhere."""
    pooled = forest.on_throughput(status.pooled.values())
    effects = [effect for *_, effect in pooled if len(effect.occasions) > 1]
    by_kind = group_by(status.audits, lambda audit: audit.source in REPORTS)
    held = [
        (len(audits), kind, Counter(claim.verdict for audit in audits for claim in audit.claims))
        for is_report, kind in ((True, "published report"), (False, "other source"))
        if (audits := by_kind.get(is_report))
    ]
    labels = Counter(effect.standing for effect in effects)
    places = {effect.elsewhere for effect in effects} - {"elsewhere"}
    return render_template("held.html.j2", held=held, labels=labels, places=places).text


_NEAR = {
    "same": "the same programs",
    "close": "similar programs",
    "kin": "different programs",
    "made": "the effect was made",
    "another question": "another question",
}
_NOTHING = {"not shown", "not computed"}
# From what says most of another machine to what says that each has its own answer.
_ORDER: list[str] = sorted(LABELS, key=lambda label: label == "depends on the machine")
_NO = ("opposite", "not seen", "depends on the machine")
REPORTS = ("tidb-kubernetes", "mysql-kubernetes", "tidb-sysbench-howto", "tidb-upgrade", "tiproxy-haproxy")
"""Sources that come with the repository; those that a reader adds are counted apart."""
# The four findings of the first document, which the page opens with.
HEADLINES = tuple(
    f"tidb-kubernetes/{claim}" for claim in ("host-network", "load-balancer", "c2-machines", "ubuntu")
)
# The words for a finding that was measured once.
ONE_SESSION = "one session on one machine"


Answers = Sequence[tuple[MeasuredStudy, FindingData]]
Link = tuple[str, str]
"""Text, and the page that it leads to."""
NOWHERE = "", ""


@dataclass(frozen=True)
class QuestionRow:
    """One question; its cause and its note on carrying over are empty if they are not known."""

    question: str
    way: str
    claims: tuple[AuditedClaim, ...]
    lines: tuple[forest.ForestRow, ...]
    sessions: str = ""
    why: Link = NOWHERE
    carries: Link = NOWHERE
    would: str = ""


def group_questions(status: ClaimStatus, folders: Mapping[str, str]) -> dict[str, list[QuestionRow]]:
    """Rows by heading: published findings and studies without a folder, then others without arms named above.

    Headings are those of the folders of `studies/`; the published findings and `quick` have none.
    """
    audited_claims = {claim.id: claim for claim in status.claims}
    headlines = [audited_claims[name] for name in HEADLINES if name in audited_claims]
    by_folder = {"": [_row_of_claim(status, claim) for claim in headlines]}
    for study, row in _rows_of_studies(status, _arms_above(status, headlines)):
        by_folder.setdefault(folders.get(study.name, ""), []).append(row)
    return {_name_folder(folder): rows for folder, rows in sorted(by_folder.items()) if rows}


def _arms_above(status: ClaimStatus, claims: Sequence[AuditedClaim]) -> dict[str, set[str]]:
    """Arms by page of a study, with effects in the row of a claim; all arms if none is named."""
    above: dict[str, set[str]] = {}
    for name in (claim.id for claim in claims):
        for study in _studies_behind(status, name):
            treatments = {answer.treatment for answer in study.answers(name)}
            treatments |= {arm for arm, shown in study.illustrates.items() if name in shown}
            every = {finding.treatment for finding in study.found.findings}
            above.setdefault(study.page, set()).update(treatments or every)
    return above


def _rows_of_studies(
    status: ClaimStatus, above: Mapping[str, Collection[str]]
) -> Iterator[tuple[MeasuredStudy, QuestionRow]]:
    """Row of each study that has arms which are not named above."""
    for study in status.studies:
        is_above, arms = study.page in above, above.get(study.page, ())
        left = [finding for finding in study.found.findings if finding.treatment not in arms]
        if left or not is_above:
            yield study, _row_of_study(status, study, left, () if is_above else status.claims)


def _describe_sessions(
    status: ClaimStatus,
    studies: Sequence[MeasuredStudy],
    answers: Answers,
) -> dict[str, Any]:
    """Sessions behind a row, and the label on carrying over, as far as they say it."""
    if not studies:
        return {}
    labels = _extreme_labels(status, answers)
    carries = [f"partly {label}" if len(labels) > 1 else label for label in labels]
    if "depends on the machine" not in labels and {study.name for study in studies} & status.reversals.keys():
        carries.append("opposite sign in other studies")
    return {
        "why": _find_cause(studies, {finding.treatment for _, finding in answers}),
        "sessions": _count_sessions(status, studies, bool(labels)),
        "carries": (", ".join(carries), f"{studies[0].page}#answer") if carries else NOWHERE,
    }


def _extreme_labels(status: ClaimStatus, answers: Answers) -> dict[str, None]:
    """Labels on carrying over: what says most of another machine, and what says least."""
    contrasts = (status.over_sessions(study, finding) for study, finding in answers)
    standing = {effect.standing for contrast in contrasts if contrast for effect in contrast.shown}
    verdicts = sorted(standing - _NOTHING or standing, key=_ORDER.index)
    return dict.fromkeys([*verdicts[:1], *verdicts[-1:]])


def _count_sessions(status: ClaimStatus, studies: Sequence[MeasuredStudy], is_pooled: bool) -> str:
    if len(studies) > 1:
        return f"{len(studies)} studies" + ("" if is_pooled else f", each {ONE_SESSION}")
    if not is_pooled:
        return ONE_SESSION
    several = [session.processor for session in status.pooled[studies[0].name].sessions]
    processors = format_count(cpu_models.count_models(several), "processor")
    return f"{format_count(len(several), 'session')}, {processors}"


def _find_cause(studies: Sequence[MeasuredStudy], treatments: Collection[str]) -> Link:
    """First cause known of a treatment in these lines, with the way to all of its study."""
    for study in studies:
        if operational_laws.list_violations(study.found.causes):
            return "the counters contradict each other", f"{study.page}#why"
        for treatment, why in _explain_treatments([study.found, *study.explained]):
            if treatment in treatments:
                return why, f"{study.page}#why"
    return NOWHERE


def _explain_treatments(several: Sequence[Findings]) -> Iterator[tuple[str, str]]:
    """Treatment and cause, those first whose effects have opposite signs in several sessions."""
    turns = bottleneck_section.of_both_signs([(str(place), of) for place, of in enumerate(several)])
    for (_, threads, treatment), (first, *_, last) in turns.items():
        ends = [f"{format_percent(effect)}: {cause.short}" for effect, _, cause in (first, last)]
        yield treatment, f"at {format_count(threads, 'thread')}, {'; '.join(ends)}"
    for cause in chain.from_iterable(map(bottleneck_section.select_causes, several)):
        if cause.short:
            yield cause.treatment, f"at {format_count(cause.threads, 'thread')}: {cause.short}"


def _name_folder(folder: str) -> str:
    """Name a folder of studies as a heading does: tidb-cluster is TiDB cluster."""
    words = ("how-to" if part == "howto" else descriptors.product_name(part) for part in folder.split("-"))
    name = " ".join(words)
    return name[:1].upper() + name[1:]


def _studies_behind(status: ClaimStatus, claim: str) -> list[MeasuredStudy]:
    """Studies with effects in the row of a claim."""
    studies = [study for study, _ in (*status.answers(claim), *status.shows(claim))]
    studies += [study for is_judged in (True, False) for study, _ in status.asked(claim, is_judged)]
    return list({study.page: study for study in studies}.values())


def _row_of_claim(status: ClaimStatus, claim: AuditedClaim) -> QuestionRow:
    studies = _studies_behind(status, claim.id)
    answers = [
        (study, each) for study in studies for each in (*study.answers(claim.id), *study.shows(claim.id))
    ]
    lines = [
        replace(
            line,
            name=f"{study.whole_name}: {line.name}",
            band=claim.shares,
            effect_text=line.effect_text + ", the other way" * is_opposite(finding, claim.shares),
        )
        for study, finding in answers
        for line in _lines_of_finding(status, study, finding)
    ]
    lines += [line for study in studies for line in _lines_of_parts(study, claim)]
    return QuestionRow(
        claim.claim,
        f"claims.html#claim-{make_slug(claim.id)}",
        (claim,),
        tuple(lines),
        would="" if lines else _name_command(status.shipped.get(claim.id, ())),
        **{**_describe_sessions(status, studies, answers), **_describe_grade(status, claim.id)},
    )


def _name_command(ways: Sequence[PlannedStudy]) -> str:
    """Command that gives a claim lines: of its first study, or of what is recorded and not made again."""
    index = record.read_index()
    recorded = [index.newest(way.name) for way in ways if way.name in index.studies]
    if any(not session.where.findings.is_file() for session in recorded):
        return "make pages"
    return f"make repro STUDY={ways[0].name}" if ways else ""


def _describe_grade(status: ClaimStatus, claim: str) -> dict[str, Link]:
    """Outcome for a claim in the sessions of the nearest measured study, and its nearness."""
    grades = status.grades.get(claim, {})
    for grade in map(grades.__getitem__, nearest_studies(grades)):
        if grade.occasions:
            word = "Yes" if grade.carries_over else "No" if grade.outcome in _NO else "Unknown"
            message = f"{word}: {grade.outcome}, {_NEAR[grade.closeness]}"
            return {"carries": (message, f"claims.html#claim-{make_slug(claim)}")}
    return {}


def _lines_of_parts(study: MeasuredStudy, claim: AuditedClaim) -> Iterator[forest.ForestRow]:
    """Lines of a claim's parts that no pair of arms answers by itself."""
    for answer in (answer for answer in study.asked(claim.id) if answer.kind == "effect"):
        way = f"{study.page}#finding-{make_slug(answer.claim)}"
        for part in (part for part in answer.parts if part.scale == "share" and part.estimate.ends):
            name = f"{study.whole_name}: {part.where}"
            yield forest.row_of_estimate(part.estimate, name, way, part.band)


def _row_of_study(
    status: ClaimStatus,
    study: MeasuredStudy,
    findings: Sequence[FindingData],
    claims: Sequence[AuditedClaim],
) -> QuestionRow:
    """Row of a study by its findings, with those of the claims that it speaks to."""
    shown = [] if operational_laws.list_violations(study.found.causes) else findings
    lines = [line for finding in shown for line in _lines_of_finding(status, study, finding)]
    lines.sort(key=lambda line: not line.direction)
    title = study.found.title
    return QuestionRow(
        title if study.is_recorded else f"{title} ({study.whose})",
        study.page,
        tuple(claim for claim in claims if study in _studies_behind(status, claim.id)),
        tuple(lines),
        **_describe_sessions(status, [study], [(study, finding) for finding in findings]),
    )


def _lines_of_finding(
    status: ClaimStatus, study: MeasuredStudy, finding: FindingData
) -> Iterator[forest.ForestRow]:
    """A line for each effect: over sessions if several are recorded, else each row of the finding."""
    way = f"{study.page}#finding-{make_slug(finding.id)}"
    if contrast := status.over_sessions(study, finding):
        yield from (replace(forest.row_of_sessions(contrast, effect), way=way) for effect in contrast.shown)
        return
    for row in rows_of_finding(finding):
        yield forest.row_of_estimate(row.change, row.name, way, None, row.label in DECIDED)
