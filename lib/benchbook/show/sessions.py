"""Sections of a page on a study's sessions: their joint results, forests, moderators."""

from collections.abc import Sequence

import pandas as pd

from benchbook.compare.meta import cross_study as same
from benchbook.compare.meta import prediction_check
from benchbook.compare.meta.meta_analysis import SessionResult, build_session, read_moderators
from benchbook.compare.text import cpu_models, labels
from benchbook.core.artifacts import design, meta_analysis
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import MetaAnalysis
from benchbook.core.study import load
from benchbook.core.util import paths
from benchbook.core.util.number_format import format_count, format_significant, glance_percent
from benchbook.show import forest
from benchbook.show.evidence import ReportInputs
from benchbook.show.forest import Forest
from benchbook.show.markup import Html
from benchbook.show.table import Table, TableColumn, build_table, number_column
from benchbook.show.templating import render_template

HEADINGS = {"steal_pct": ("Steal", "%"), "hour": ("Hour", "UTC")}


def pooled_sessions(report_inputs: ReportInputs) -> MetaAnalysis | None:
    """Joint results of several recorded sessions, on the page of one of them; else None."""
    recorded = meta_analysis.read_pooled(report_inputs.name) if _is_recorded(report_inputs) else None
    return recorded if recorded and len(recorded.sessions) > 1 else None


def _is_recorded(report_inputs: ReportInputs) -> bool:
    return paths.find_root().parent.name == report_inputs.name


def recorded_of(report_inputs: ReportInputs) -> MetaAnalysis | None:
    """Recorded sessions to show beside the effects of a study: those of its own design."""
    if recorded := pooled_sessions(report_inputs):
        return recorded
    both = _compared_sessions(report_inputs)
    return both[1] if both and both[0].session.design == both[1].design else None


def render_overview(report_inputs: ReportInputs) -> Html:
    """Write the top of a recorded study's page: the joint results of its sessions, if several."""
    recorded = pooled_sessions(report_inputs)
    return render_basis(recorded) if recorded else Html("")


def opposite_elsewhere(report_inputs: ReportInputs) -> Html:
    """Write the opposite answers in sessions of other studies, on the page of a recorded study."""
    rows = same.build_rows(meta_analysis.read_all()) if _is_recorded(report_inputs) else []
    sign_reversals = same.sign_reversals(report_inputs.name, rows)
    return render_template("elsewhere.html.j2", rows=sign_reversals) if sign_reversals else Html("")


def earlier_sessions(recorded: MetaAnalysis) -> list[tuple[str, str, Findings]]:
    """Other sessions pooled on a page of the record, by processor and day, newest first."""
    sessions = []
    for session in reversed(recorded.sessions):
        folder = paths.find_root().parent / session.id / "data" / recorded.study
        file = folder / paths.study_paths(recorded.study).findings.name
        if session.id != paths.find_root().name and file.is_file():
            processor = cpu_models.name_processor(session.processor)
            sessions.append((processor, session.measured[:10], Findings.read(file)))
    return sessions


def beside_record(report_inputs: ReportInputs) -> list[Html]:
    """Compare a local session with the recorded ones; empty on a page of the record."""
    both = _compared_sessions(report_inputs)
    told = prediction_check.describe_session(*both) if both else None
    return [render_template("beside.html.j2", told=told)] if told else []


def _compared_sessions(report_inputs: ReportInputs) -> tuple[SessionResult, MetaAnalysis] | None:
    """A local session and the recorded ones; None on a page of the record, or where either is missing."""
    recorded = None if _is_recorded(report_inputs) else meta_analysis.read_pooled(report_inputs.name)
    session_result = local_session(report_inputs) if recorded else None
    return (session_result, recorded) if recorded and session_result else None


def local_session(report_inputs: ReportInputs) -> SessionResult | None:
    """Measurement of this clone as a session; None if its facts don't tell its design."""
    facts, runs = report_inputs.facts, report_inputs.runs
    if facts.get("methods") is None or runs.empty:
        return None
    study, methods = load.load_study(report_inputs.name), facts["methods"]
    used = {name: methods[name] for name in design.methods_used(study, {*runs.order}) if name in methods}
    digest = design.compute_digest(study, facts["arms"], used)
    probes = (facts.get("machine") or {}).get("probes")
    began = str(runs.started_utc.min())
    return build_session("here", began, digest, report_inputs.findings, facts["arms"], probes=probes)


def build_evidence(recorded: MetaAnalysis | None) -> list[Forest | Table]:
    """Each session on a line, the differences between them, and those left out; empty without a record."""
    if recorded is None:
        return []
    evidence: list[Forest | Table] = []
    if len(recorded.sessions) > 1:
        evidence += [forest.by_session(recorded), tabulate_moderators(recorded)]
    if recorded.left_out or recorded.not_recorded:
        evidence.append(left_out(recorded))
    return evidence


def render_basis(recorded: MetaAnalysis) -> Html:
    """Sessions behind effects over sessions: their number, processors and days."""
    return render_template(
        "sessions.html.j2",
        found=recorded,
        processors=max(cpu_models.count_models([session.processor for session in recorded.sessions]), 1),
        days=dict.fromkeys((recorded.sessions[0].measured[:10], recorded.sessions[-1].measured[:10])),
    )


def tabulate_moderators(recorded: MetaAnalysis) -> Table:
    """List possible moderators of effects, session by session, beside the reported effects."""
    messages = [(contrast, effect) for contrast in recorded.contrasts for effect in contrast.shown]
    facts = [read_moderators(session) for session in recorded.sessions]
    about = list(dict.fromkeys(key for values in facts for key in values if key != "processor"))
    inputs = {
        "about": [*map(_moderator_column, about)],
        "effects": [
            number_column(
                labels.strip_article(contrast.names.treatment),
                contrast.names.workload
                + ("" if effect.threads is None else f", {format_count(effect.threads, 'thread')}"),
            )
            for contrast, effect in messages
        ],
        "value": _format_value,
        "percent": glance_percent,
    }
    rows = zip(recorded.sessions, facts, strict=True)
    return build_table("moderators", rows, told=messages, keys=about, **inputs)


def _moderator_column(key: str) -> TableColumn:
    name = labels.NAMES["moderators"].get(key, key)
    return number_column(*HEADINGS.get(key, (f"{name[:1].upper()}{name[1:]}", "")))


def left_out(recorded: MetaAnalysis) -> Table:
    """Table of sessions that are not pooled, each with reason and outcome, and of those not recorded."""
    measured = {name for other in recorded.left_out for name in other.effects}
    contrasts = [contrast for contrast in recorded.contrasts if contrast.id in measured]
    effects = [
        number_column(labels.strip_article(contrast.names.treatment), contrast.names.workload)
        for contrast in contrasts
    ]
    inputs = {"contrasts": contrasts, "effects": effects, "processor": cpu_models.name_processor}
    rows = [*recorded.left_out, *recorded.not_recorded]
    return build_table("sessions-left-out", rows, percent=glance_percent, **inputs)


def tabulate_shared(several: Sequence[MetaAnalysis]) -> list[Table]:
    """List contrasts that several studies ask, first those with both signs; no table if none does."""
    rows = same.build_rows(several)
    return [build_table("joined", rows, percent=glance_percent)] if rows else []


def tabulate_equal_arms(several: Sequence[MetaAnalysis]) -> Table:
    """Share of the intervals of equal arms that hold zero, a row a kind of measuring."""
    return build_table("equal-arms", prediction_check.equal_arms(several).items())


def coverage_by_study(several: Sequence[MetaAnalysis]) -> Table:
    """Share of left-out sessions inside the prediction of the rest, a row a study."""
    return build_table("coverage", prediction_check.estimate_coverage(several))


def _format_value(value: object) -> object:
    if value is None or pd.isna(value):
        return ""
    if not isinstance(value, float):
        return value
    # Two digits would write 2 cores as 2.0.
    return f"{value:.0f}" if value.is_integer() and value < 100 else format_significant(value, 2)
