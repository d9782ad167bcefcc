"""Sessions of a study pooled: each contrast over sessions, over threads and at each level.

Made of the sessions' findings alone: the same input gives the same pooled.json.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from benchbook.compare.meta import random_effects
from benchbook.compare.meta.random_effects import ProcessorPool, Value, group_occasions, parse_time
from benchbook.compare.stats import tolerance
from benchbook.compare.stats.equivalence import MARGIN
from benchbook.compare.stats.intervals import t_quantile
from benchbook.compare.text import cpu_models
from benchbook.core.artifacts import meta_analysis
from benchbook.core.artifacts.findings import ByThreads, FindingData, Findings, LevelContrast
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledContrast, PooledEffect, StudySession
from benchbook.core.artifacts.record import Superseded
from benchbook.core.util import numeric_equality
from benchbook.core.util.errors import require_value
from benchbook.core.util.grouping import group_by
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
    """Result of one session; `differs` says in words what its design has otherwise than the newest."""

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
    first: Mapping[str, Any] = next(iter(facts.values()), {})
    machine, probed = first.get("machine") or {}, probes or {}
    entry: dict[str, Any] = {"id": id, "measured": measured, "design": design} | _read_programs(facts)
    if superseded and superseded.arms:
        findings, superseded = _withhold_arms(findings, superseded), None
    session = StudySession(
        **entry | {key: machine.get(key) for key in ("cores", "kernel", "virtualization")},
        processor=cpu_models.parse_processor(machine.get("cpu_model")),
        steal_pct=_round_value(findings.quiet.steal_pct),
        probes={name: probed[name] for name in PROBES if probed.get(name) is not None},
        superseded=superseded.reason if superseded else None,
    )
    return SessionResult(session, findings, facts, differs)


def _read_programs(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Engine of the first arm and proxies of all, with their versions."""
    engine = next(iter(facts.values()), {}).get("engine") or {}
    name = " ".join(str(engine[key]) for key in ("name", "version") if engine.get(key))
    proxies = [arm.get("proxy") or {} for arm in facts.values()]
    versions = {str(proxy["name"]): str(proxy.get("version")) for proxy in proxies if proxy.get("name")}
    return {"engine": name or None, "proxies": versions}


def _withhold_arms(findings: Findings, superseded: Superseded) -> Findings:
    """Findings with the reason in place of a number for the effects of superseded arms."""
    blank: dict[str, Any] = dict.fromkeys(("effect", "low", "high", "label"))
    blank["reason"] = f"superseded: {superseded.reason}"
    results = []
    for finding in findings.findings:
        if {finding.treatment, finding.baseline} & {*superseded.arms}:
            levels = [part.model_copy(update=blank) for part in finding.at_levels]
            finding = finding.model_copy(update={**blank, "levels": levels})
        results.append(finding)
    return findings.model_copy(update={"findings": results})


def pool_sessions(study: str, sessions: Sequence[SessionResult], design: str | None = None) -> MetaAnalysis:
    """Pool the sessions of a study that have one design, that of most sessions unless it is given.

    Raise ValueError where there is none, or where one is there twice.
    """
    ordered = sorted(sessions, key=lambda item: (parse_time(item.session.measured), item.session.id))
    ids = [result.session.id for result in ordered]
    if twice := list(Counter(ids) - Counter(set(ids))):
        raise ValueError(f"{study}: session {join_words(twice)} is there twice; each counts once")
    usable = [result for result in ordered if result.session.superseded is None]
    chosen, results = _choose_design(study, usable, design)
    newest, twins = results[-1], [result for result in results if result.findings.aa]
    return MetaAnalysis(
        study=study,
        title=newest.findings.title,
        level=random_effects.LEVEL,
        design=chosen,
        sessions=tuple(result.session for result in results),
        left_out=tuple(_left_out(result, chosen) for result in ordered if result not in results),
        arms={arm: cpu_models.arm_signature(facts) for arm, facts in newest.facts.items()},
        contrasts=tuple(_pool_contrast(contrast, results) for contrast in _distinct_contrasts(results)),
        aa=_pool_contrast(require_value(twins[-1].findings.aa), twins) if twins else None,
        equal_arms=_list_equal_arms(usable),
    )


def _choose_design(
    study: str, usable: Sequence[SessionResult], design: str | None
) -> tuple[str, list[SessionResult]]:
    """The design to pool, that with most occasions unless it is given, and its sessions, oldest first."""
    if not usable:
        raise ValueError(f"{study}: there is no session to pool that is not superseded")
    # Among equals that of the newest session.
    designs = group_by((result.session for result in reversed(usable)), lambda session: session.design)
    chosen = design or max(designs, key=lambda name: len(group_occasions(designs[name])))
    if chosen not in designs:
        raise ValueError(f"{study}: no session has the design {chosen}")
    return chosen, [result for result in usable if result.session.design == chosen]


def _list_equal_arms(results: Sequence[SessionResult]) -> tuple[meta_analysis.EqualArms, ...]:
    """Intervals of the sessions' equal arms, of those that have one."""
    return tuple(
        meta_analysis.EqualArms(session=each.session.id, order=each.findings.order, low=aa.low, high=aa.high)
        for each in results
        if (aa := each.findings.aa) and aa.low is not None and aa.high is not None
    )


def _left_out(result: SessionResult, chosen: str) -> meta_analysis.ExcludedSession:
    more = f": {result.differs}" if result.differs else ""
    reason = f"another design ({result.session.design}, not {chosen}){more}"
    if result.session.superseded is not None:
        reason = f"superseded: {result.session.superseded}"
    shown = (finding for finding in result.findings.findings if finding.headline)
    effects = {finding.id: finding.effect for finding in shown if finding.effect is not None}
    return meta_analysis.ExcludedSession(session=result.session, reason=reason, effects=effects)


def _distinct_contrasts(results: Sequence[SessionResult]) -> list[FindingData]:
    """Each contrast once, in the order of the newest session, without those for a further claim."""
    findings: dict[str, FindingData] = {}
    for entry in (entry for result in reversed(results) for entry in result.findings.findings):
        if entry.id.count(".") == 2:
            findings.setdefault(entry.id, entry)
    return list(findings.values())


def _pool_contrast(entry: FindingData, results: Sequence[SessionResult]) -> PooledContrast:
    """Pool a contrast; `entry` is that of the newest session."""
    sessions = [result.session for result in results]
    by_session = {result.session.id: result.findings.everything for result in results}
    findings = {name: each for name in by_session for each in by_session[name] if each.id == entry.id}
    by_level: dict[int, dict[str, _Part]] = {}
    for name, finding in findings.items():
        for part in finding.at_levels:
            by_level.setdefault(part.threads, {}).setdefault(name, part)
    levels = tuple(_pool_effect(threads, sessions, by_level[threads]) for threads in sorted(by_level))
    # One number may not stand for all levels where a session's may not, where a level depends on the machine,
    # or where the means of two levels leave zero out on both sides.
    signs = {tolerance.sign_of_interval(level.low, level.high) for level in levels}
    is_even = not {-1, 1} <= signs and all(level.label != "depends on the machine" for level in levels)
    return PooledContrast(
        **{key: getattr(entry, key) for key in ("id", "workload", "baseline", "treatment", "metric")},
        names=entry.names,
        one_number=is_even and all(finding.headline for finding in findings.values()),
        whole=_pool_effect(None, sessions, findings),
        levels=levels,
    )


_Part = FindingData | LevelContrast | ByThreads


def _pool_effect(
    threads: int | None, sessions: Sequence[StudySession], parts: Mapping[str, _Part]
) -> PooledEffect:
    observed = tuple(_session_effect(session, parts.get(session.id)) for session in sessions)
    counted = {seen.session: seen for seen in observed if seen.reason is None}
    study_sessions = [session for session in sessions if session.id in counted]
    fields = {"session", "n", "level", "label", "standard_error"}
    values = {
        name: Value(**seen.model_dump(include=fields), log_effect=math.log1p(require_value(seen.effect)))
        for name, seen in counted.items()
    }
    members = group_occasions(study_sessions)
    groups = [random_effects.average_occasion([values[session.id] for session in group]) for group in members]
    keys_of_sessions = cpu_models.model_keys([session.processor for session in study_sessions])
    models = dict(zip(values, keys_of_sessions, strict=True))
    keys = [models[group[0].id] for group in members]
    effects = [require_value(seen.effect) for seen in counted.values()]
    results: dict[str, Any] = {
        "threads": threads,
        "seen": observed,
        "occasions": tuple(
            meta_analysis.Occasion(
                sessions=group.sessions,
                effect=numeric_equality.round_significant(math.expm1(group.log_effect), SIGNIFICANT_DIGITS),
                standard_error=numeric_equality.round_significant(group.standard_error, SIGNIFICANT_DIGITS),
                sign=group.sign,
                processor=key,
            )
            for group, key in zip(groups, keys, strict=True)
        ),
        "elsewhere": _describe_machine_kind(study_sessions),
        "range_low": _round_value(min(effects, default=None)),
        "range_high": _round_value(max(effects, default=None)),
    }
    return PooledEffect(**results | _pool_occasions(groups, keys))


def _label_effect(
    occasions: Sequence[random_effects.Averaged], by_processor: ProcessorPool
) -> meta_analysis.Label:
    """Label of the occasions of an effect together, by the first rule that holds."""
    if len(occasions) == 1:
        return "one session"
    signs, mean = {each.sign for each in occasions}, by_processor.pool
    if _depends_on_machine(signs, by_processor):
        return "depends on the machine"
    is_often = len(occasions) >= random_effects.FEWEST_OCCASIONS
    is_often &= by_processor.processors >= random_effects.FEWEST_PROCESSORS
    if is_often and tolerance.sign_of_interval(mean.prediction_low, mean.prediction_high):
        return "holds elsewhere"
    if 0 not in signs:
        return "same direction"
    return "on average" if tolerance.sign_of_interval(mean.low, mean.high) else "not shown"


def _depends_on_machine(signs: Set[int], by_processor: ProcessorPool) -> bool:
    """True if occasions have both signs, or a spread beyond what makes no practical difference.

    A spread between processors, or between occasions of one, counts only with an occasion that is decided or
    a test (Cochran's) that finds it.
    """
    mean = by_processor.pool
    differ = bool(signs - {0}) or tolerance.is_below(mean.p if mean.p is not None else 1.0, HETEROGENEOUS_P)
    practical = max(abs(mean.mean), math.log1p(MARGIN))
    spread = max(mean.tau or 0.0, by_processor.within_tau or 0.0)
    return {-1, 1} <= signs or (differ and tolerance.is_above(spread, practical))


def _describe_machine_kind(sessions: Sequence[StudySession]) -> str:
    """Machines that an effect may be expected on: those of the kind of all sessions, or any."""
    cores = {each.cores for each in sessions}
    systems = {each.virtualization for each in sessions} - {None}
    if len(cores) != 1 or None in cores or not systems or "none" in systems:
        return "elsewhere"
    return f"on other virtual machines of {cores.pop() or 0:g} cores"


def read_moderators(session: StudySession) -> dict[str, Any]:
    """Possible moderators of a session's effects by column: its machine, hour, programs and probes."""
    values = session.model_dump() | {
        "processor": cpu_models.name_processor(session.processor),
        "hour": parse_time(session.measured).hour,
        "proxies": ", ".join(f"{name} {version}" for name, version in sorted(session.proxies.items())),
    }
    return {name: values[name] for name in MODERATORS} | session.probes


def standard_error(part: FindingData | LevelContrast | ByThreads) -> float | None:
    """Standard error of a mean log ratio: half its interval over t of n − 1 degrees of freedom.

    None without an interval, or where an end is no ratio.
    """
    if part.low is None or part.high is None or part.n < 2 or part.low <= -1:
        return None
    half = (math.log1p(part.high) - math.log1p(part.low)) / 2
    return half / t_quantile((1 + part.level) / 2, part.n - 1)


def _session_effect(session: StudySession, part: _Part | None) -> meta_analysis.ObservedEffect:
    if part is None:
        return meta_analysis.ObservedEffect(session=session.id, effect=None, reason="not in this session")
    error, reason = standard_error(part), None
    if part.effect is None or not error:
        reason = getattr(part, "reason", None) or "there is no interval over its blocks"
    inputs: dict[str, Any] = {key: getattr(part, key, None) for key in SEEN}
    inputs |= {"standard_error": _round_value(error), "reason": reason}
    return meta_analysis.ObservedEffect(session=session.id, **inputs)


def _pool_occasions(groups: Sequence[random_effects.Averaged], keys: Sequence[str]) -> dict[str, Any]:
    """Label of the occasions of an effect together, their numbers, and how many processors they have."""
    if not groups:
        return {"label": "not computed", "processors": 0}
    logs, variances = [group.log_effect for group in groups], [group.standard_error**2 for group in groups]
    by_processor = random_effects.pool_by_processor(logs, variances, keys)
    pool, within, processors = by_processor.pool, by_processor.within_tau, by_processor.processors
    tau = pool.tau if processors > 1 else None
    ratios = {"effect": pool.mean, "low": pool.low, "high": pool.high}
    ratios |= {"prediction_low": pool.prediction_low, "prediction_high": pool.prediction_high}
    values = {name: None if log is None else math.expm1(log) for name, log in ratios.items()}
    values |= {"tau_pct": None if tau is None else 100 * tau}
    values |= {"within_tau_pct": None if within is None else 100 * within}
    values |= {"q": pool.q, "q_p": pool.p, "i_squared": pool.i_squared}
    numbers = {name: _round_value(value) for name, value in values.items()}
    return {"label": _label_effect(groups, by_processor), "processors": processors, **numbers}


def _round_value(value: float | None) -> float | None:
    """Round, so that the last bits of a processor's exp never change the file."""
    return None if value is None else numeric_equality.round_significant(value, SIGNIFICANT_DIGITS)
