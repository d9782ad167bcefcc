"""Sessions of a study pooled: each contrast over sessions, over threads and at each level.

Made of the sessions' findings alone: the same input gives the same pooled.json.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchbook.compare.meta.random_effects import (
    FEWEST_OCCASIONS,
    FEWEST_PROCESSORS,
    LEVEL,
    Averaged,
    ProcessorPool,
    Value,
    average_occasion,
    group_occasions,
    parse_time,
    pool_by_processor,
)
from benchbook.compare.stats import tolerance
from benchbook.compare.stats.equivalence import MARGIN
from benchbook.compare.stats.intervals import t_quantile
from benchbook.compare.text import cpu_models
from benchbook.core.artifacts.findings import ByThreads, FindingData, Findings, LevelContrast
from benchbook.core.artifacts.meta_analysis import (
    EqualArms,
    ExcludedSession,
    Label,
    MetaAnalysis,
    ObservedEffect,
    Occasion,
    PooledContrast,
    PooledEffect,
    StudySession,
)
from benchbook.core.artifacts.record import Superseded
from benchbook.core.util import numeric_equality
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import join_words

SIGNIFICANT_DIGITS = 6
PROBES = (
    *("wake_other_core_us", "wake_same_core_us", "system_call_ns", "clock_read_ns"),
    *("memory_latency_ns", "copy_gb_per_s", "flush_ms"),
)
"""What is told of a machine that was measured; how long that took, and its tails, explain nothing."""
MODERATORS = ("processor", "cores", "virtualization", "kernel", "steal_pct", "hour", "engine", "proxies")
SEEN = ("effect", "low", "high", "level", "n", "label")
HETEROGENEOUS_P = 0.05


@dataclass(frozen=True)
class SessionResult:
    """Result of one session: its entry, its findings.json, and the facts of its arms.

    `differs` says in words what its design has otherwise than the newest.
    """

    session: StudySession
    findings: Findings
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    differs: str = ""


def build_session(
    id: str,
    measured: str,
    design: str,
    findings: Findings,
    facts: Mapping[str, Mapping[str, Any]],
    superseded: Superseded | None = None,
    probes: Mapping[str, Any] | None = None,
    differs: str = "",
) -> SessionResult:
    """Session with processor, cores, kernel, steal and versions from its findings and facts.

    `superseded` says why it is not pooled, or why some arms of it are not.
    `facts` are one mapping by arm, as `facts.json` has under `arms`; the first arm's machine counts.
    """
    arms = list(facts.values())
    machine: Mapping[str, Any] = (arms[0].get("machine") if arms else None) or {}
    engine: Mapping[str, Any] = (arms[0].get("engine") if arms else None) or {}
    proxies = [arm["proxy"] for arm in arms if arm.get("proxy")]
    engine_name = " ".join(str(engine[key]) for key in ("name", "version") if engine.get(key))
    session = StudySession(
        id=id,
        measured=measured,
        design=design,
        processor=cpu_models.parse_processor(machine.get("cpu_model")),
        cores=machine.get("cores"),
        kernel=machine.get("kernel"),
        virtualization=machine.get("virtualization"),
        steal_pct=_round_value(findings.quiet.steal_pct),
        engine=engine_name or None,
        proxies={str(proxy["name"]): str(proxy.get("version")) for proxy in proxies if proxy.get("name")},
        probes={name: probes[name] for name in PROBES if probes and probes.get(name) is not None},
        superseded=superseded.reason if superseded and not superseded.arms else None,
    )
    if superseded and superseded.arms:
        findings = withhold_arms(findings, superseded)
    return SessionResult(session, findings, facts, differs)


def withhold_arms(findings: Findings, superseded: Superseded) -> Findings:
    """Findings with the reason in place of a number for the effects of superseded arms."""
    blank: dict[str, Any] = dict.fromkeys(("effect", "low", "high", "label"))
    blank["reason"] = f"superseded: {superseded.reason}"

    def one(finding: FindingData) -> FindingData:
        if not {finding.treatment, finding.baseline} & {*superseded.arms}:
            return finding
        levels = [part.model_copy(update=blank) for part in finding.at_levels]
        return finding.model_copy(update={**blank, "levels": levels})

    return findings.model_copy(update={"findings": [one(finding) for finding in findings.findings]})


def pool_sessions(study: str, sessions: Sequence[SessionResult], design: str | None = None) -> MetaAnalysis:
    """Pool the sessions of a study that have one design, that of most sessions unless it is given.

    Raise ValueError where there is none, or where one is there twice.
    """
    ordered = sorted(sessions, key=lambda item: (parse_time(item.session.measured), item.session.id))
    usable = _usable_sessions(study, ordered)
    chosen = design or _most_measured(usable)
    results = [result for result in usable if result.session.design == chosen]
    if not results:
        raise ValueError(f"{study}: no session has the design {chosen}")
    newest = results[-1]
    twins = [result for result in results if result.findings.aa]
    twin = twins[-1].findings.aa if twins else None
    return MetaAnalysis(
        study=study,
        title=newest.findings.title,
        level=LEVEL,
        design=chosen,
        sessions=tuple(result.session for result in results),
        left_out=tuple(_left_out(result, chosen) for result in ordered if result not in results),
        arms={arm: cpu_models.arm_signature(facts) for arm, facts in newest.facts.items()},
        contrasts=tuple(_pool_contrast(contrast, results) for contrast in _distinct_contrasts(results)),
        aa=_pool_contrast(twin, twins) if twin else None,
        equal_arms=tuple(
            EqualArms(session=each.session.id, order=each.findings.order, low=aa.low, high=aa.high)
            for each in usable
            if (aa := each.findings.aa) and aa.low is not None and aa.high is not None
        ),
    )


def _usable_sessions(study: str, ordered: Sequence[SessionResult]) -> list[SessionResult]:
    """Sessions that are not superseded; ValueError where there is none, or where one is there twice."""
    counts = Counter(result.session.id for result in ordered)
    if twice := [name for name, often in counts.items() if often > 1]:
        raise ValueError(f"{study}: session {join_words(twice)} is there twice; each counts once")
    usable = [result for result in ordered if result.session.superseded is None]
    if not usable:
        raise ValueError(f"{study}: there is no session to pool that is not superseded")
    return usable


def _most_measured(usable: Sequence[SessionResult]) -> str:
    """Design with most occasions, among equals that of the newest session."""
    by_design: dict[str, list[StudySession]] = {}
    for result in reversed(usable):
        by_design.setdefault(result.session.design, []).append(result.session)
    return max(by_design, key=lambda design: len(group_occasions(by_design[design])))


def _left_out(result: SessionResult, chosen: str) -> ExcludedSession:
    more = f": {result.differs}" if result.differs else ""
    reason = f"another design ({result.session.design}, not {chosen}){more}"
    if result.session.superseded is not None:
        reason = f"superseded: {result.session.superseded}"
    findings = [
        finding for finding in result.findings.findings if finding.effect is not None and finding.headline
    ]
    return ExcludedSession(
        session=result.session,
        reason=reason,
        effects={finding.id: require_value(finding.effect) for finding in findings},
    )


def _distinct_contrasts(results: Sequence[SessionResult]) -> list[FindingData]:
    """Each contrast once, in the order of the newest session; those made for a further claim repeat
    one and are left out."""
    findings: dict[str, FindingData] = {}
    for result in reversed(results):
        for entry in result.findings.findings:
            if entry.id.count(".") == 2:
                findings.setdefault(entry.id, entry)
    return list(findings.values())


def _pool_contrast(entry: FindingData, results: Sequence[SessionResult]) -> PooledContrast:
    """Pool a contrast; `entry` is that of the newest session."""
    entries = {
        result.session.id: next((each for each in result.findings.everything if each.id == entry.id), None)
        for result in results
    }
    sessions = [result.session for result in results]
    levels = sorted({part.threads for finding in entries.values() if finding for part in finding.at_levels})
    by_level = [
        _pool_effect(entry, level, sessions, {name: _at_level(each, level) for name, each in entries.items()})
        for level in levels
    ]
    return PooledContrast(
        **{key: getattr(entry, key) for key in ("id", "workload", "baseline", "treatment", "metric")},
        names=entry.names,
        one_number=_has_one_number(by_level, entries.values()),
        whole=_pool_effect(entry, None, sessions, entries),
        levels=tuple(by_level),
    )


def _at_level(finding: FindingData | None, threads: int) -> LevelContrast | ByThreads | None:
    levels = finding.at_levels if finding else ()
    return next((part for part in levels if part.threads == threads), None)


def _has_one_number(levels: Sequence[PooledEffect], entries: Iterable[FindingData | None]) -> bool:
    """True if one number may stand for all levels: not if a session's may not, if a level depends
    on the machine, or where the means of two levels leave zero out on both sides."""
    signs = {tolerance.sign_of_interval(level.low, level.high) for level in levels}
    return (
        all(entry.headline for entry in entries if entry)
        and not any(level.label == "depends on the machine" for level in levels)
        and not {-1, 1} <= signs
    )


def _pool_effect(
    entry: FindingData,
    threads: int | None,
    sessions: Sequence[StudySession],
    parts: Mapping[str, FindingData | LevelContrast | ByThreads | None],
) -> PooledEffect:
    observed = tuple(_session_effect(session, parts[session.id]) for session in sessions)
    fields = {"session", "n", "level", "label", "standard_error"}
    values = {
        seen.session: Value(
            **seen.model_dump(include=fields),
            log_effect=math.log1p(seen.effect or 0.0),
        )
        for seen in observed
        if seen.reason is None
    }
    study_sessions = [session for session in sessions if session.id in values]
    members = group_occasions(study_sessions)
    groups = [average_occasion([values[session.id] for session in group]) for group in members]
    logs, variances = [group.log_effect for group in groups], [group.standard_error**2 for group in groups]
    models = dict(
        zip(values, cpu_models.model_keys([session.processor for session in study_sessions]), strict=True)
    )
    keys = [models[group[0].id] for group in members]
    by_processor = pool_by_processor(logs, variances, keys) if groups else None
    effects = [seen.effect for seen in observed if seen.effect is not None and seen.reason is None]
    results: dict[str, Any] = {
        "threads": threads,
        "seen": observed,
        "occasions": tuple(
            Occasion(
                sessions=group.sessions,
                effect=numeric_equality.round_significant(math.expm1(group.log_effect), SIGNIFICANT_DIGITS),
                standard_error=numeric_equality.round_significant(group.standard_error, SIGNIFICANT_DIGITS),
                sign=group.sign,
                processor=key,
            )
            for group, key in zip(groups, keys, strict=True)
        ),
        "processors": by_processor.processors if by_processor else 0,
        "elsewhere": describe_machine_kind(study_sessions),
        "label": label_effect(groups, by_processor),
        "range_low": _round_value(min(effects, default=None)),
        "range_high": _round_value(max(effects, default=None)),
        **(_pool_numbers(by_processor) if by_processor else {}),
    }
    return PooledEffect(**results)


def label_effect(occasions: Sequence[Averaged], by_processor: ProcessorPool | None) -> Label:
    """Label of the occasions of an effect together, by the first rule that holds.

    Too little to say; a sign that turns, or a spread (between processors, or between occasions of one) larger
    than the mean; four occasions on three processors and a prediction interval without zero; all occasions
    decided with one sign; a mean whose interval leaves zero out. A spread counts only beyond what makes no
    practical difference, and with an occasion that is decided or a test (Cochran's) that finds it: of noise
    alone nothing depends on anything.
    """
    if by_processor is None:
        return "not computed"
    if len(occasions) == 1:
        return "one session"
    signs, mean = {each.sign for each in occasions}, by_processor.pool
    differ = bool(signs - {0}) or tolerance.is_below(mean.p if mean.p is not None else 1.0, HETEROGENEOUS_P)
    practical = max(abs(mean.mean), math.log1p(MARGIN))
    spread = max(mean.tau or 0.0, by_processor.within_tau or 0.0)
    if {-1, 1} <= signs or (differ and tolerance.is_above(spread, practical)):
        return "depends on the machine"
    is_often = len(occasions) >= FEWEST_OCCASIONS and by_processor.processors >= FEWEST_PROCESSORS
    if is_often and tolerance.sign_of_interval(mean.prediction_low, mean.prediction_high):
        return "holds elsewhere"
    if 0 not in signs:
        return "same direction"
    return "on average" if tolerance.sign_of_interval(mean.low, mean.high) else "not shown"


def describe_machine_kind(sessions: Sequence[StudySession]) -> str:
    """Machines that an effect may be expected on: the kind of all sessions, or any other.

    Sessions of one kind tell nothing of another, so the kind is named until something else was measured.
    """
    cores = {each.cores for each in sessions}
    systems = {each.virtualization for each in sessions} - {None}
    if len(cores) != 1 or None in cores or not systems or "none" in systems:
        return "elsewhere"
    return f"on other virtual machines of {cores.pop() or 0:g} cores"


def read_moderators(session: StudySession) -> dict[str, Any]:
    """Possible moderators of a session's effects by column: its machine, hour, programs and probes."""
    proxies = ", ".join(f"{name} {version}" for name, version in sorted(session.proxies.items()))
    values = session.model_dump() | {
        "processor": cpu_models.name_processor(session.processor),
        "hour": parse_time(session.measured).hour,
        "proxies": proxies,
    }
    return {name: values[name] for name in MODERATORS} | session.probes


def standard_error(part: FindingData | LevelContrast | ByThreads) -> float | None:
    """Standard error of a mean log ratio from its interval: half its width on the log scale over t
    with n − 1 degrees of freedom; None without an interval, or where an end is no ratio."""
    if part.low is None or part.high is None or part.n < 2 or part.low <= -1:
        return None
    half = (math.log1p(part.high) - math.log1p(part.low)) / 2
    return half / t_quantile((1 + part.level) / 2, part.n - 1)


def _session_effect(
    session: StudySession, part: FindingData | LevelContrast | ByThreads | None
) -> ObservedEffect:
    if part is None:
        return ObservedEffect(session=session.id, effect=None, reason="not in this session")
    error, reason = standard_error(part), None
    if part.effect is None or not error:
        reason = getattr(part, "reason", None) or "there is no interval over its blocks"
    inputs: dict[str, Any] = {key: getattr(part, key, None) for key in SEEN}
    return ObservedEffect(session=session.id, **inputs, standard_error=_round_value(error), reason=reason)


def _pool_numbers(by_processor: ProcessorPool) -> dict[str, float | None]:
    pooled, within = by_processor.pool, by_processor.within_tau
    ends = ("low", "high", "prediction_low", "prediction_high")
    is_between = by_processor.processors > 1 and pooled.tau is not None
    return {
        "effect": _to_fraction(pooled.mean),
        **{end: _to_fraction(getattr(pooled, end)) for end in ends},
        "tau_pct": _round_value(100 * require_value(pooled.tau)) if is_between else None,
        "within_tau_pct": None if within is None else _round_value(100 * within),
        "q": _round_value(pooled.q),
        "q_p": _round_value(pooled.p),
        "i_squared": _round_value(pooled.i_squared),
    }


def _to_fraction(log: float | None) -> float | None:
    return None if log is None else _round_value(math.expm1(log))


def _round_value(value: float | None) -> float | None:
    """Round, so that the last bits of a processor's exp never change the file."""
    return None if value is None else numeric_equality.round_significant(value, SIGNIFICANT_DIGITS)
