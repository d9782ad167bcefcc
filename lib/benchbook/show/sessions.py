"""What the sessions of a study say together, as it stands on a page: answer, forests, moderators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from benchbook.compare.meta import change_points, prediction_check
from benchbook.compare.meta import cross_study as same
from benchbook.compare.meta import prediction_check as checks
from benchbook.compare.meta.meta_analysis import Brought, brought
from benchbook.compare.meta.moderators import WORDS, Ordered, moderators, ordered, sentence
from benchbook.compare.text import cpu_models, labels
from benchbook.core.artifacts import design, meta_analysis
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import Contrast, Pooled, PooledEffect
from benchbook.core.study import load
from benchbook.core.util import number_format, paths
from benchbook.core.util.number_format import glance_percent
from benchbook.show import forest, theme
from benchbook.show.evidence import Evidence
from benchbook.show.forest import Forest
from benchbook.show.markup import Html, element, join, slug
from benchbook.show.picture import Panel, Picture
from benchbook.show.table import Table, number, tabulated
from benchbook.show.templating import render

_MOST_ASKED = 4
"""Moderators that are drawn of a contrast."""
HEADINGS = {"steal_pct": ("Steal", "%"), "hour": ("Hour", "UTC")}


def several(seen: Evidence) -> Pooled | None:
    """Return what several recorded sessions say together, on the page of one of them."""
    found = meta_analysis.of(seen.name) if paths.root().parent.name == seen.name else None
    return found if found and len(found.sessions) > 1 else None


def recorded_of(seen: Evidence) -> Pooled | None:
    """Recorded sessions to show beside the effects of a study: those of its own design."""
    if found := several(seen):
        return found
    found = None if paths.root().parent.name == seen.name else meta_analysis.of(seen.name)
    own = here(seen) if found else None
    return found if found and own and own.session.design == found.design else None


def over(seen: Evidence) -> Html:
    """Write what comes first on the page of a recorded study: what its sessions say together, if several."""
    found = several(seen)
    return render_basis(found) if found else Html("")


def opposite_elsewhere(seen: Evidence) -> Html:
    """Write on the page of a recorded study what has the opposite answer in sessions of another one."""
    rows = same.joined(meta_analysis.several()) if paths.root().parent.name == seen.name else []
    told = same.elsewhere(seen.name, rows)
    return render("elsewhere.html.j2", rows=told) if told else Html("")


def earlier(found: Pooled) -> list[tuple[str, str, Findings]]:
    """Return the other sessions pooled on a page of the record, by processor and day, newest first."""
    known = []
    for one in reversed(found.sessions):
        file = paths.root().parent / one.id / "data" / found.study / paths.study(found.study).findings.name
        if one.id != paths.root().name and file.is_file():
            known.append((cpu_models.name(one.processor), one.measured[:10], Findings.read(file)))
    return known


def beside_record(seen: Evidence) -> list[Html]:
    """Write where a session of one's own lies beside the recorded ones; nothing on a page of the record."""
    found = None if paths.root().parent.name == seen.name else meta_analysis.of(seen.name)
    own = here(seen) if found else None
    return [told] if found and own and (told := beside(own, found)).text else []


def here(seen: Evidence) -> Brought | None:
    """Return what was measured in this clone as a session; None where its facts don't tell its design."""
    methods: Mapping[str, int] | None = seen.facts.get("methods")
    if methods is None or seen.runs.empty:
        return None
    study = load.study(seen.name)
    used = {name: methods[name] for name in design.used(study, {*seen.runs.order}) if name in methods}
    return brought(
        "here",
        str(seen.runs.started_utc.min()),
        design.of(study, seen.facts["arms"], used),
        seen.findings,
        seen.facts["arms"],
        probes=(seen.facts.get("machine") or {}).get("probes"),
    )


def shown(seen: Evidence) -> list[Forest | Picture | Table]:
    """Return the figure and the tables over sessions; none where the record has no session of the study."""
    found = meta_analysis.of(seen.name)
    return evidence(found) if found else []


def evidence(found: Pooled) -> list[Forest | Picture | Table]:
    """Return each session on a line, what differed between them, and who is left out."""
    made: list[Forest | Picture | Table] = []
    if len(found.sessions) > 1:
        made += [forest.by_session(found), moderating(found)]
    made += ordering(found)
    if found.left_out or found.not_recorded:
        made.append(left_out(found))
    return made


def render_basis(found: Pooled) -> Html:
    """Which sessions effects over sessions rest on, and how they went in time."""
    return render(
        "sessions.html.j2",
        found=found,
        processors=max(cpu_models.models([session.processor for session in found.sessions]), 1),
        days=dict.fromkeys((found.sessions[0].measured[:10], found.sessions[-1].measured[:10])),
        in_time=change_points.in_time(found),
    )


def ordering(found: Pooled) -> Iterator[Picture]:
    """Yield for each contrast its effect against each moderator, at the level that says most of it."""
    # How to read them is said once.
    note = (
        " Each dot is an occasion: the sessions of one processor model within six hours. p is how often "
        "chance would put them in as good an order, with all that was tried."
    )
    for contrast in found.contrasts:
        asked = [
            (sentence(contrast, effect, known), effect, known)
            for effect in contrast.told
            if (known := ordered(found, effect))
        ]
        if asked:
            said, effect, known = min(asked, key=lambda one: (one[0] is None, -(one[1].tau_pct or 0.0)))
            told = f"{said or 'The effect follows none of them.'}{note}"
            yield against(known[:_MOST_ASKED], contrast, effect, told)
            note = ""


def moderating(found: Pooled) -> Table:
    """List what effects may depend on, session by session, and beside it the effects a reader is told."""
    told = [(contrast, one) for contrast in found.contrasts for one in contrast.told]
    known = [moderators(one) for one in found.sessions]
    about = list(dict.fromkeys(key for one in known for key in one if key != "processor"))
    given = {
        "about": [
            number(*HEADINGS.get(key, (f"{name[:1].upper()}{name[1:]}", "")))
            for key, name in ((key, WORDS.get(key, key)) for key in about)
        ],
        "effects": [
            number(labels.label(contrast.names.treatment), _place(contrast, one)) for contrast, one in told
        ],
    }
    rows = zip(found.sessions, known, strict=True)
    return tabulated("moderators", rows, told=told, keys=about, value=_value, percent=glance_percent, **given)


def _place(contrast: Contrast, effect: PooledEffect) -> str:
    at = "" if effect.threads is None else f", {number_format.format_count(effect.threads, 'thread')}"
    return f"{contrast.names.workload}{at}"


def left_out(found: Pooled) -> Table:
    """List the sessions that are not pooled, each with its reason and what it came to, and those that
    were started and are not recorded."""
    contrasts = [one for one in found.contrasts if any(one.id in other.effects for other in found.left_out)]
    rows = [*found.left_out, *found.not_recorded]
    effects = [number(labels.label(one.names.treatment), one.names.workload) for one in contrasts]
    given = {
        "contrasts": contrasts,
        "effects": effects,
        "processor": cpu_models.name,
        "percent": glance_percent,
    }
    return tabulated("sessions-left-out", rows, **given)


def beside(here: Brought, record: Pooled) -> Html:
    """Write where a session of one's own lies beside the recorded ones, effect by effect."""
    known = prediction_check.placed(here, record)
    if not known:
        return Html("")
    differing = prediction_check.different(here.session, record.sessions)
    machine = "No difference of the machine is known."
    if differing:
        machine = f"Different here: {number_format.join_words(differing)}."
    return render("beside.html.j2", told=prediction_check.summary(here, record) or machine)


def joined(several: Sequence[Pooled]) -> list[Table]:
    """List contrasts that several studies ask, those first whose sign turns; no table where none does."""
    rows = same.joined(several)
    return [tabulated("joined", rows, percent=glance_percent)] if rows else []


def coverage(several: Sequence[Pooled]) -> Html:
    """Sentences on how often prediction intervals and those of equal arms kept their word."""
    return join(element("p", sentence) for sentence in checks.sentences(several))


def coverage_by_study(several: Sequence[Pooled]) -> Table:
    """How often what was left out lay inside the prediction of the rest, a row a study."""
    return tabulated("coverage", checks.coverage(several))


def _value(value: object) -> object:
    if value is None or pd.isna(value):
        return ""
    if not isinstance(value, float):
        return value
    # Two digits would write 2 cores as 2.0.
    return (
        f"{value:.0f}" if value.is_integer() and value < 100 else number_format.format_significant(value, 2)
    )


def against(found: Sequence[Ordered], contrast: Contrast, effect: PooledEffect, caption: str) -> Picture:
    """Draw an effect against what its sessions differ in, a panel for each moderator, the best first."""
    panels = []
    for one in found:
        with theme.style():
            figure, axes = theme.canvas(theme.WIDTH, 1.7)
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
    title = f"{contrast.names.treatment} on {_place(contrast, effect)}, by what differed"
    return Picture(f"moderators-{slug(contrast.id)}", title, tuple(panels), caption)
