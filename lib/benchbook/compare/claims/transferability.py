"""Transfer of claims from the author's machine: similarity of the arms, and session results, side by side."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from benchbook.compare.bottlenecks.service_demand import FEWEST_RATES
from benchbook.compare.claims import estimands
from benchbook.compare.claims.bands import claim_limits, judged_by
from benchbook.compare.claims.metrics import USED, metric_column
from benchbook.compare.claims.study_cells import StudyCells, list_arms, list_contrasts
from benchbook.compare.meta import random_effects
from benchbook.compare.meta.meta_analysis import SessionResult
from benchbook.compare.meta.random_effects import Averaged, RandomEffects
from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import t_quantile
from benchbook.compare.text import cpu_models
from benchbook.core.artifacts.findings import Answer, FindingData, Findings, LevelContrast
from benchbook.core.artifacts.meta_analysis import StudySession
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.published.source import SourceSpec
from benchbook.core.study import descriptors
from benchbook.core.study.engines import engine_of
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import join_words

Closeness = Literal["same", "close", "kin", "made", "another question"]
Outcome = Literal[
    "same size", "same direction, smaller", "same direction, larger", "same direction",
    "not seen", "too wide to tell", "depends on the machine", "depends on the rate",
    "opposite", "outside the claim", "not asked",
]  # fmt: skip
CLOSENESS: tuple[Closeness, ...] = get_args(Closeness)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
SEEN = OUTCOMES[:4]
Facts = Mapping[str, Mapping[str, Any]]
Program = tuple[str, str]
STORE = "unistore"
_SIZED_BY = ("quotas of processor time", "the neighbour", "the distance of zones")
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")


@dataclass(frozen=True)
class Grade:
    """Similarity of a study's arms to those of a claim, the reason, and its sessions' outcome.

    `parts` has the outcome of each number that the claim asks for; the claim's is that which says least for
    it. `low` and `high` are of that part, on its `scale` (a share is a fraction): the prediction interval
    from three processors on, else the range of the sessions' intervals.
    """

    closeness: Closeness
    because: str
    outcome: Outcome
    parts: tuple[tuple[str, Outcome], ...] = ()
    sessions: int = 0
    occasions: int = 0
    processors: int = 0
    low: float | None = None
    high: float | None = None
    scale: str = "share"

    @property
    def carries_over(self) -> bool:
        """True if the claim holds elsewhere: near enough, often enough, several processors."""
        is_near, is_seen = self.closeness in ("same", "close"), self.outcome in SEEN
        is_often = self.occasions >= random_effects.FEWEST_OCCASIONS
        return is_near and is_seen and is_often and self.processors >= random_effects.FEWEST_PROCESSORS


def grade_claim(
    name: str,
    claim: ClaimSpec,
    source: SourceSpec,
    study: StudySpec,
    sessions: Sequence[SessionResult],
    printed: float | None = None,
) -> Grade:
    """Grade a claim by a study and its sessions; without sessions it was not asked.

    `claim` is the claim as it is put to studies, `name` its id `source/claim`, `printed` the document's mean
    of the dose (`dose_metric`) at the claim's baseline.
    """
    if not sessions:
        return Grade(*judge_closeness(claim, source, study, {}), "not asked")
    newest = sessions[-1]
    dose = other_dose(claim, printed, newest.findings)
    near, why = judge_closeness(claim, source, study, newest.facts, dose)
    observations: dict[str, list[_Observation]] = {}
    for session in sessions if near != "another question" else ():
        put = next((answer for answer in session.findings.claims or () if answer.claim == name), None)
        for number in _of_parts(put) if put else _of_contrasts(claim, source, study, session.findings):
            observations.setdefault(number.where, []).append((session.session, number))
    if not observations:
        return Grade(near, why, "not asked", sessions=len(sessions))
    messages = {where: _session_outcome(numbers) for where, numbers in observations.items()}
    worst = max(messages, key=lambda where: OUTCOMES.index(messages[where][0]))
    outcome, low, high, often = messages[worst]
    if put and (ends := _ends_over_rates(put, study)):
        outcome, low, high = "depends on the rate", *ends
    scale = observations[worst][-1][1].scale
    processors = cpu_models.count_models([session.session.processor for session in sessions])
    parts = tuple((where, result[0]) for where, result in messages.items())
    return Grade(near, why, outcome, parts, len(sessions), often, processors, low, high, scale)


def judge_closeness(
    claim: ClaimSpec, source: SourceSpec, study: StudySpec, facts: Facts, dose: str = ""
) -> tuple[Closeness, str]:
    """Similarity of a study's arms to those that a claim compares, and the reason in a few words.

    `dose` says where the study gives another dose of what the claim varies: then its arms are kin at best.
    `facts` are one nested mapping by arm, as `facts.json` has them; programs without any are another kind.
    """
    try:
        claim_test = estimands.build_test(claim, StudyCells(study))
    except estimands.NotApplicable as error:
        return "another question", str(error)
    if settings := _dose_settings(claim, claim_test, study):
        return "made", f"the study itself sets {join_words(settings)}, and with it the size"
    programs = {arm: _list_programs(facts.get(arm, {})) for arm in list_arms(claim_test.items)}
    differences: list[tuple[Closeness, str]] = [("kin", dose)] if dose else []
    differences += _compare_programs(claim, source, list(programs.values()))
    if differences:
        degrees, reasons = zip(*differences, strict=True)
        return max(degrees, key=CLOSENESS.index), "; ".join(dict.fromkeys(reasons))
    if not any(map(facts.get, programs)):
        return "kin", "nothing is known of its programs yet"
    if source.place != study.site.kind:
        return "close", f"on {study.site.kind}, the document's on {source.place or 'an unknown place'}"
    return "same", "the same programs in the same kind of place"


DOSES = {"new_connections_per_s": "new connections a second", "idle_connections": "idle connections"}
"""Keys that are so many beside the queries: what they cost depends on how many queries there are."""
OTHER_DOSE = 2.0
"""How many times as many of them a query, or as much CPU, is another dose."""


def dose_metric(claim: ClaimSpec) -> str | None:
    """Metric at the baseline on which the size of a claim's effect depends: queries/s, or CPU of a part.

    A part that hardly works spends most of its CPU time on what it does without any query.
    """
    if any(key in (claim.treatment or {}) for key in DOSES):
        return "qps"
    numerator, _, denominator = (claim.metric or "").partition(" / ")
    return numerator if denominator == "qps" and numerator in USED else None


def other_dose(claim: ClaimSpec, printed: float | None, findings: Findings) -> str:
    """Difference of dose between study and document, in words; empty without one.

    `printed` is the document's mean of `dose_metric`, if it has any.
    """
    metric = dose_metric(claim)
    name = USED.get(metric or "")
    here = _measured_dose(findings, name)
    if metric is None or not printed or here is None or max(printed / here, here / printed) < OTHER_DOSE:
        return ""
    if name is not None:
        return f"another dose: the {name} uses {here:,.0f} % of a core, the document's {printed:,.0f} %"
    key = next(key for key in DOSES if key in (claim.treatment or {}))
    beside = f"beside {here:,.0f} queries a second, the document's beside {printed:,.0f}"
    return f"another dose: as many {DOSES[key]} {beside}"


def _measured_dose(findings: Findings, part: str | None) -> float | None:
    """Mean over cells: queries a second of the baseline, or CPU of a part of all arms, % of a core."""
    cells = findings.causes.cells if findings.causes else ()
    if part is None:
        values = [cell.qps.value for cell in cells if cell.arm == findings.baseline]
    else:
        costs = itertools.chain.from_iterable(cell.parts for cell in cells)
        values = [100 * cost.busy_cores.value for cost in costs if cost.part == part]
    return sum(values) / len(values) if values else None


def _ends_over_rates(put: Answer, study: StudySpec) -> tuple[float, float] | None:
    """Ends of a claim's cells where they differ in the offered rate alone, and two exclude each other."""
    rates = {workload.rate for workload in study.workloads.values() if workload.rate}
    if len(rates) < max(FEWEST_RATES, len(study.workloads)) or len(study.threads) > 1:
        return None
    spans = [
        (cell.low, require_value(cell.high))
        for cell in put.parts
        if cell.low is not None and not cell.decides
    ]
    if not spans:
        return None
    lows, highs = zip(*spans, strict=True)
    return (min(lows), max(highs)) if max(lows) > min(highs) else None


def nearest_studies(grades: Mapping[str, Grade]) -> list[str]:
    """Studies of a claim: the informative ones first, then the nearest, then those on most processors."""

    def rank(name: str) -> tuple[object, ...]:
        grade = grades[name]
        is_silent, is_wide = grade.outcome == "not asked", grade.outcome == "too wide to tell"
        near = CLOSENESS.index(grade.closeness)
        return is_silent, is_wide, near, -grade.processors, -grade.occasions, name

    return sorted(grades, key=rank)


@dataclass(frozen=True)
class _Number:
    """One number of one session on its own scale (logarithm, or a plain power), and its band there."""

    where: str
    middle: float
    low: float
    high: float
    n: int
    level: float
    band: tuple[float, float]
    scale: str = "share"

    @property
    def error(self) -> float:
        return (self.high - self.low) / 2 / t_quantile((1 + self.level) / 2, self.n - 1)


def _of_parts(put: Answer) -> Iterator[_Number]:
    """Yield the numbers of a claim that was put to the cells of a study, those with an interval."""
    for part in put.parts:
        if part.low is None or not part.decides:
            continue
        take = {"share": math.log1p, "value": math.log, "power": float}[part.scale]
        low, high = (None if end is None else take(end) for end in part.band)
        band = (-math.inf if low is None else low, math.inf if high is None else high)
        middle, least, most = (take(require_value(value)) for value in (part.value, part.low, part.high))
        yield _Number(part.where, middle, least, most, put.n, put.level, band, part.scale)


def _of_contrasts(
    claim: ClaimSpec, source: SourceSpec, study: StudySpec, findings: Findings
) -> Iterator[_Number]:
    """Yield the numbers of the contrasts that show a claim, under the loads of its document's tables."""
    band = claim_limits(claim)
    if claim.kind != "effect" or band is None or claim.where:
        return
    ends = (band.log_low, band.log_high)
    for finding in _findings_that_show(claim, source, study, findings):
        where = f"{finding.treatment} against {finding.baseline}, {finding.workload}"
        parts: list[tuple[str, FindingData | LevelContrast]] = [(where, finding)]
        if finding.levels and judged_by(claim) != "mean":
            parts = [(f"{where}, at threads {level.threads}", level) for level in finding.levels]
        for place, part in parts:
            if part.low is not None and part.n > 1:
                fractions = (part.effect, part.low, part.high)
                middle, low, high = (math.log1p(require_value(fraction)) for fraction in fractions)
                yield _Number(place, middle, low, high, part.n, part.level, ends)


def _findings_that_show(
    claim: ClaimSpec, source: SourceSpec, study: StudySpec, findings: Findings
) -> Iterator[FindingData]:
    contrasts = list_contrasts(estimands.build_test(claim, StudyCells(study)).items)
    loads = _table_loads(claim, source)
    metric = "qps" if claim.metric in estimands.RATES else metric_column(str(claim.metric))
    for finding in findings.findings:
        is_load = not loads or {finding.workload, study.script(finding.workload)} & loads
        contrast = (finding.baseline, finding.treatment, finding.workload)
        if finding.metric == metric and contrast in contrasts and is_load:
            yield finding


def _table_loads(claim: ClaimSpec, source: SourceSpec) -> set[str]:
    """Loads of the tables about the arms of a claim; none if tables don't say."""
    sides = [side or {} for side in (claim.baseline, claim.treatment)]
    named = [side.get("arm") for side in sides]
    arms = {arm for item in named for arm in (item if isinstance(item, tuple) else (item,))}
    # A side that names no arm is in the tables that vary what it names.
    keys = set().union(*sides) - {"arm", "table"}
    tables = [
        table.at
        for table in source.tables.values()
        if (table.at.get("arm") in arms if arms != {None} else keys <= {*table.columns, *table.at})
    ]
    return {str(at["workload"]) for at in tables if "workload" in at}


_Observation = tuple[StudySession, _Number]


def _session_outcome(observations: Sequence[_Observation]) -> tuple[Outcome, float, float, int]:
    """Outcome of the sessions for one number, its range as fractions, and the number of occasions."""
    numbers = [number for _, number in observations]
    values, pool = _pool_sessions(observations)
    band, back = numbers[-1].band, estimands.BACK[numbers[-1].scale]
    is_predicted, is_bounded = pool.prediction_low is not None, math.isfinite(sum(band))
    if pool.prediction_low is None:
        low, high = min(number.low for number in numbers), max(number.high for number in numbers)
    else:
        low, high = pool.prediction_low, require_value(pool.prediction_high)
    # A plain value has no direction.
    sign = _band_sign(band) if numbers[-1].scale == "share" else 0
    if sign and {-1, 1} <= {value.sign for value in values}:
        outcome: Outcome = "depends on the machine"
    elif tolerance.is_inside(low, high, *band) and (not sign or (is_predicted and is_bounded)):
        outcome = "same size"
    elif not sign:
        outcome = "outside the claim" if tolerance.is_outside(low, high, *band) else "too wide to tell"
    else:
        outcome = _directed_outcome(low, high, pool.mean, band)
    return outcome, back(low), back(high), len(values)


def _pool_sessions(observations: Sequence[_Observation]) -> tuple[list[Averaged], RandomEffects]:
    """Means of a number by occasion, and all of them pooled by processor."""
    by_session = {
        session.id: random_effects.Value(session.id, number.middle, number.error, number.n, number.level)
        for session, number in observations
    }
    groups = random_effects.group_occasions([session for session, _ in observations])
    members = ([by_session[session.id] for session in group] for group in groups)
    values = list(map(random_effects.average_occasion, members))
    models = cpu_models.model_keys([group[0].processor for group in groups])
    variances = [max(value.standard_error, 1e-9) ** 2 for value in values]
    logs = [value.log_effect for value in values]
    return values, random_effects.pool_by_processor(logs, variances, models).pool


def _directed_outcome(low: float, high: float, mean: float, band: tuple[float, float]) -> Outcome:
    """Outcome of a range and its mean against a band of one sign that doesn't hold it."""
    sign = _band_sign(band)
    near, far = (low, high) if sign > 0 else (-high, -low)
    least, most = sorted(abs(end) for end in band)
    if tolerance.is_below(far, 0.0):
        return "opposite"
    if not tolerance.is_above(near, 0.0):
        return "not seen" if tolerance.is_below(far, least) else "too wide to tell"
    if not math.isfinite(most):
        return "same direction" if tolerance.is_inside(low, high, *band) else "same direction, smaller"
    if tolerance.is_below(sign * mean, least):
        return "same direction, smaller"
    return "same direction, larger" if tolerance.is_above(sign * mean, most) else "same direction"


def _band_sign(band: tuple[float, float]) -> int:
    """Sign of all values in a band, 0 if it allows both signs or none."""
    if band[0] >= 0 and band[1] > 0:
        return 1
    return -1 if band[1] <= 0 and band[0] < 0 else 0


def _dose_settings(claim: ClaimSpec, claim_test: estimands.ClaimTest, study: StudySpec) -> list[str]:
    """Settings of compared arms that set the size of their effect: a share of time, or a delay; in words."""
    pairs = {contrast[:2] for contrast in list_contrasts(claim_test.items)}
    if not pairs and claim.along is not None:
        # Along a key every level is compared with the others.
        pairs = set(itertools.combinations(list_arms(claim_test.items), 2))

    def settings(arm: str) -> dict[str, object]:
        spec, cluster = study.arms[arm], engine_of(study, arm).cluster
        quotas = {part: cpu.quota for part, cpu in spec.cpu.items() if cpu.quota}
        zones = (spec.zones, cluster and cluster.zones_ms)
        return dict(zip(_SIZED_BY, (quotas, spec.neighbour, zones), strict=True))

    both = [(settings(base), settings(other)) for base, other in pairs]
    return [key for key in _SIZED_BY if any(base[key] != other[key] for base, other in both)]


def _list_programs(facts: Mapping[str, Any]) -> list[Program]:
    """Programs and versions of an arm; a store that is not TiKV counts as a program."""
    engine, proxy = facts.get("engine") or {}, facts.get("proxy") or {}
    storage = str(engine.get("storage") or "")
    name = "embedded storage" if "embedded" in storage else STORE if storage.startswith(STORE) else ""
    parts = [(part.get("name"), part.get("version")) for part in (engine, proxy)] + [(name, "")]
    return [(str(program), str(version or "")) for program, version in parts if program]


def _compare_programs(
    claim: ClaimSpec, source: SourceSpec, of_arms: Sequence[Sequence[Program]]
) -> Iterator[tuple[Closeness, str]]:
    """Yield how close each program is that is not the document's own, and the reason."""
    # What all arms have in common, and what stays the same along a key, is what they are compared in.
    is_along = claim.baseline is None and claim.kind in ("trend", "proportional", "peak")
    theirs = {name.casefold().replace(" ", ""): text for name, text in source.versions.items()}
    for program in dict.fromkeys(itertools.chain(*of_arms)):
        is_compared = not is_along and any(program not in programs for programs in of_arms)
        near, why = _program_closeness(*program, theirs, is_compared or claim.kind == "value")
        if near != "same":
            yield near, why


def _program_closeness(
    program: str, version: str, theirs: Mapping[str, str | None], is_compared: bool
) -> tuple[Closeness, str]:
    """Similarity of a program to those of a document, by minor version if it is compared, and the reason."""
    if program == STORE and not is_compared:
        return "close", f"{STORE}, not TiKV"
    product = descriptors.product_name(program)
    if program not in theirs:
        return "kin", f"{product} is not in the document"
    printed = theirs[program] or "an unknown one"
    versions = _VERSION.findall(printed)
    measured = next(iter(_VERSION.findall(version)), "")
    if measured in versions:
        return "same", ""
    if measured.split(".")[:2] in [text.split(".")[:2] for text in versions]:
        return "close", f"{product} {measured} for {', '.join(versions)}"
    message = f"{product} {version or 'of an unknown version'} for {printed}"
    return ("kin", message) if is_compared else ("close", f"{message}, on both sides")
