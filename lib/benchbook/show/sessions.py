"""Joint results of a study's sessions, as they stand on a page: answer, forests, moderators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from benchbook.compare.meta import change_points, prediction_check
from benchbook.compare.meta import cross_study as same
from benchbook.compare.meta import prediction_check as checks
from benchbook.compare.meta.meta_analysis import SessionResult, build_session
from benchbook.compare.meta.moderators import (
    WORDS,
    ModeratorCorrelation,
    describe_best,
    rank_moderators,
    read_moderators,
)
from benchbook.compare.text import cpu_models, labels
from benchbook.core.artifacts import design, meta_analysis
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledContrast, PooledEffect
from benchbook.core.study import load
from benchbook.core.util import number_format, paths
from benchbook.core.util.number_format import glance_percent
from benchbook.show import forest, theme
from benchbook.show.evidence import ReportInputs
from benchbook.show.forest import Forest
from benchbook.show.markup import Html, join_html, make_element, make_slug
from benchbook.show.picture import Panel, Picture
from benchbook.show.table import Table, build_table, number_column
from benchbook.show.templating import render_template

_MOST_ASKED = 4
"""Moderators that are drawn of a contrast."""
HEADINGS = {"steal_pct": ("Steal", "%"), "hour": ("Hour", "UTC")}


def pooled_sessions(seen: ReportInputs) -> MetaAnalysis | None:
    """Joint results of several recorded sessions, on the page of one of them; else None."""
    found = meta_analysis.read_pooled(seen.name) if paths.find_root().parent.name == seen.name else None
    return found if found and len(found.sessions) > 1 else None


def recorded_of(seen: ReportInputs) -> MetaAnalysis | None:
    """Recorded sessions to show beside the effects of a study: those of its own design."""
    if found := pooled_sessions(seen):
        return found
    found = None if paths.find_root().parent.name == seen.name else meta_analysis.read_pooled(seen.name)
    own = local_session(seen) if found else None
    return found if found and own and own.session.design == found.design else None


def render_overview(seen: ReportInputs) -> Html:
    """Write the top of a recorded study's page: the joint results of its sessions, if several."""
    found = pooled_sessions(seen)
    return render_basis(found) if found else Html("")


def opposite_elsewhere(seen: ReportInputs) -> Html:
    """Write the opposite answers in sessions of other studies, on the page of a recorded study."""
    rows = same.build_rows(meta_analysis.read_all()) if paths.find_root().parent.name == seen.name else []
    told = same.sign_reversals(seen.name, rows)
    return render_template("elsewhere.html.j2", rows=told) if told else Html("")


def earlier_sessions(found: MetaAnalysis) -> list[tuple[str, str, Findings]]:
    """Other sessions pooled on a page of the record, by processor and day, newest first."""
    known = []
    for one in reversed(found.sessions):
        file = (
            paths.find_root().parent
            / one.id
            / "data"
            / found.study
            / paths.study_paths(found.study).findings.name
        )
        if one.id != paths.find_root().name and file.is_file():
            known.append((cpu_models.name_processor(one.processor), one.measured[:10], Findings.read(file)))
    return known


def beside_record(seen: ReportInputs) -> list[Html]:
    """Compare a local session with the recorded ones; empty on a page of the record."""
    found = None if paths.find_root().parent.name == seen.name else meta_analysis.read_pooled(seen.name)
    own = local_session(seen) if found else None
    return [told] if found and own and (told := render_comparison(own, found)).text else []


def local_session(seen: ReportInputs) -> SessionResult | None:
    """Measurement of this clone as a session; None if its facts don't tell its design."""
    methods: Mapping[str, int] | None = seen.facts.get("methods")
    if methods is None or seen.runs.empty:
        return None
    study = load.load_study(seen.name)
    used = {name: methods[name] for name in design.methods_used(study, {*seen.runs.order}) if name in methods}
    return build_session(
        "here",
        str(seen.runs.started_utc.min()),
        design.compute_digest(study, seen.facts["arms"], used),
        seen.findings,
        seen.facts["arms"],
        probes=(seen.facts.get("machine") or {}).get("probes"),
    )


def build_section(seen: ReportInputs) -> list[Forest | Picture | Table]:
    """Figure and tables over sessions; empty if the record has no session of the study."""
    found = meta_analysis.read_pooled(seen.name)
    return build_evidence(found) if found else []


def build_evidence(found: MetaAnalysis) -> list[Forest | Picture | Table]:
    """Each session on a line, the differences between them, and the sessions left out."""
    made: list[Forest | Picture | Table] = []
    if len(found.sessions) > 1:
        made += [forest.by_session(found), tabulate_moderators(found)]
    made += draw_moderators(found)
    if found.left_out or found.not_recorded:
        made.append(left_out(found))
    return made


def render_basis(found: MetaAnalysis) -> Html:
    """Sessions behind effects over sessions, and their course in time."""
    return render_template(
        "sessions.html.j2",
        found=found,
        processors=max(cpu_models.count_models([session.processor for session in found.sessions]), 1),
        days=dict.fromkeys((found.sessions[0].measured[:10], found.sessions[-1].measured[:10])),
        in_time=change_points.describe_shifts(found),
    )


def draw_moderators(found: MetaAnalysis) -> Iterator[Picture]:
    """Pictures, a contrast each, of its effect against each moderator, at the most telling level."""
    # How to read them is said once.
    note = (
        " Each dot is an occasion: the sessions of one processor model within six hours. p is how often "
        "chance would put them in as good an order, with all that was tried."
    )
    for contrast in found.contrasts:
        asked = [
            (describe_best(contrast, effect, known), effect, known)
            for effect in contrast.told
            if (known := rank_moderators(found, effect))
        ]
        if asked:
            said, effect, known = min(asked, key=lambda one: (one[0] is None, -(one[1].tau_pct or 0.0)))
            told = f"{said or 'The effect follows none of them.'}{note}"
            yield plot_moderators(known[:_MOST_ASKED], contrast, effect, told)
            note = ""


def tabulate_moderators(found: MetaAnalysis) -> Table:
    """List possible moderators of effects, session by session, beside the reported effects."""
    told = [(contrast, one) for contrast in found.contrasts for one in contrast.told]
    known = [read_moderators(one) for one in found.sessions]
    about = list(dict.fromkeys(key for one in known for key in one if key != "processor"))
    given = {
        "about": [
            number_column(*HEADINGS.get(key, (f"{name[:1].upper()}{name[1:]}", "")))
            for key, name in ((key, WORDS.get(key, key)) for key in about)
        ],
        "effects": [
            number_column(labels.strip_article(contrast.names.treatment), _name_place(contrast, one))
            for contrast, one in told
        ],
    }
    rows = zip(found.sessions, known, strict=True)
    return build_table(
        "moderators", rows, told=told, keys=about, value=_format_value, percent=glance_percent, **given
    )


def _name_place(contrast: PooledContrast, effect: PooledEffect) -> str:
    at = "" if effect.threads is None else f", {number_format.format_count(effect.threads, 'thread')}"
    return f"{contrast.names.workload}{at}"


def left_out(found: MetaAnalysis) -> Table:
    """Table of sessions that are not pooled, each with reason and outcome, and of those that
    were started and are not recorded."""
    contrasts = [one for one in found.contrasts if any(one.id in other.effects for other in found.left_out)]
    rows = [*found.left_out, *found.not_recorded]
    effects = [
        number_column(labels.strip_article(one.names.treatment), one.names.workload) for one in contrasts
    ]
    given = {
        "contrasts": contrasts,
        "effects": effects,
        "processor": cpu_models.name_processor,
        "percent": glance_percent,
    }
    return build_table("sessions-left-out", rows, **given)


def render_comparison(here: SessionResult, record: MetaAnalysis) -> Html:
    """Compare a local session with the recorded ones, effect by effect."""
    known = prediction_check.compare_with_prediction(here, record)
    if not known:
        return Html("")
    differing = prediction_check.machine_differences(here.session, record.sessions)
    machine = "No difference of the machine is known."
    if differing:
        machine = f"Different here: {number_format.join_words(differing)}."
    return render_template("beside.html.j2", told=prediction_check.describe_session(here, record) or machine)


def tabulate_shared(several: Sequence[MetaAnalysis]) -> list[Table]:
    """List contrasts that several studies ask, first those with both signs; no table if none does."""
    rows = same.build_rows(several)
    return [build_table("joined", rows, percent=glance_percent)] if rows else []


def render_coverage(several: Sequence[MetaAnalysis]) -> Html:
    """Sentences on the share of prediction intervals, and of those of equal arms, that held."""
    return join_html(make_element("p", sentence) for sentence in checks.render_checks(several))


def coverage_by_study(several: Sequence[MetaAnalysis]) -> Table:
    """Share of left-out sessions inside the prediction of the rest, a row a study."""
    return build_table("coverage", checks.estimate_coverage(several))


def _format_value(value: object) -> object:
    if value is None or pd.isna(value):
        return ""
    if not isinstance(value, float):
        return value
    # Two digits would write 2 cores as 2.0.
    return (
        f"{value:.0f}" if value.is_integer() and value < 100 else number_format.format_significant(value, 2)
    )


def plot_moderators(
    found: Sequence[ModeratorCorrelation], contrast: PooledContrast, effect: PooledEffect, caption: str
) -> Picture:
    """Draw an effect against the differences of its sessions, a panel a moderator, the best first."""
    panels = []
    for one in found:
        with theme.figure_style():
            figure, axes = theme.make_canvas(theme.WIDTH, 1.7)
            effects = [100 * value for value in one.effects]
            axes.plot(one.values, effects, "o", color=theme.ACCENT, markersize=4.5)
            axes.axhline(0, color=theme.MUTED, linewidth=0.8)
            told = f"{WORDS[one.name]}: rank correlation {one.rho:+.2f}, p = {one.p:.2g}"
            axes.set(xlabel=told, ylabel="%")
        told = "; ".join(
            f"{value:g}: {glance_percent(seen)}"
            for value, seen in sorted(zip(one.values, one.effects, strict=True))
        )
        panels.append(Panel(figure, f"{WORDS[one.name]}: {told}."))
    title = f"{contrast.names.treatment} on {_name_place(contrast, effect)}, by what differed"
    return Picture(f"moderators-{make_slug(contrast.id)}", title, tuple(panels), caption)
