"""The top of a study's page and its summary in Markdown: table of results, claims, notes."""

import textwrap
from collections.abc import Sequence

from benchbook.compare.bottlenecks.operational_laws import list_violations
from benchbook.compare.text.results_table import build_results
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import MetaAnalysis
from benchbook.core.util.number_format import format_count
from benchbook.show import bottleneck_section, results_view, tables, templating
from benchbook.show.caveats_section import CaveatPoint, build_caveats
from benchbook.show.claim_rows import render_claims
from benchbook.show.evidence import ReportInputs
from benchbook.show.markup import Html
from benchbook.show.table import Table

_MOST_DOUBTS = 8
_NOTHING = Html("")


def describe_progress(findings: Findings) -> str:
    """Work left before the first look, or outcome of single runs with no more planned; else empty."""
    blocks, look = findings.blocks, findings.look
    if look.n or not look.next:
        return ""
    needed = format_count(look.next, "block")
    if blocks.planned >= look.next:
        done = f"{blocks.complete} of the {needed} that the first look needs are complete"
        return f"Not enough data yet: {done}."
    planned = f"{format_count(blocks.planned, 'block')} planned, and a decision needs {needed}"
    return " ".join([*(findings.described or ()), f"This describes runs and decides nothing: {planned}."])


def describe_obstacle(findings: Findings) -> str:
    """Reason that no effect is an answer, too few blocks or contradicting measurements; else empty."""
    if (progress := describe_progress(findings)) or not (broken := list_violations(findings.causes)):
        return progress
    return f"The measurements contradict each other, so no effect is an answer: {broken[0]}."


def list_notes(findings: Findings) -> list[str]:
    """Notes that a table of results has no place for: the best arm of a ladder, costs of a proxy."""
    if describe_obstacle(findings):
        return []
    return [
        *(rungs.sentence for rungs in (findings.ladder.workloads if findings.ladder else ())),
        *bottleneck_section.describe_proxy_cores(findings),
    ]


def render_opening(
    findings: Findings,
    recorded: MetaAnalysis | None = None,
    setting: Sequence[str] = (),
    sessions: Html = _NOTHING,
    elsewhere: Html = _NOTHING,
    losses: Sequence[Table] = (),
) -> Html:
    """Title, basis of the answer (`setting`, `sessions`), losses at events, results, notes, `elsewhere`."""
    inputs = {"setting": setting, "sessions": sessions, "elsewhere": elsewhere, "losses": losses}
    return templating.render_template(
        "answer.html.j2",
        found=findings,
        obstacle=describe_obstacle(findings),
        notes=list_notes(findings),
        table=results_view.render_html(build_results(findings, recorded)),
        **inputs,
    )


def render_summary(
    report_inputs: ReportInputs, more: Sequence[CaveatPoint] = (), recorded: MetaAnalysis | None = None
) -> str:
    """Summary of a study in Markdown for an issue; `more` are doubts that the findings don't know."""
    findings = report_inputs.findings
    points = list(build_caveats(report_inputs, more))
    first = [doubt for doubt in points if doubt.name in ("A/A", *(point.name for point in more))]
    table = build_results(findings, recorded)
    return templating.render_markdown(
        "summary.md.j2",
        found=findings,
        losses=[Html("\n".join(lost.render_text())) for lost in tables.tabulate_losses(report_inputs)],
        obstacle=describe_obstacle(findings),
        claims=Html("\n".join(render_claims(findings))),
        notes=list_notes(findings),
        caption=results_view.caption_of(table),
        table=Html(results_view.render_markdown(table)),
        doubts=list(dict.fromkeys([*first, *(doubt for doubt in points if doubt.is_care)])),
        most=_MOST_DOUBTS,
    )


def render_session(
    findings: Findings,
    recorded: MetaAnalysis | None = None,
    width: int = results_view.WIDTH,
    is_coloured: bool = False,
) -> list[str]:
    """Answer of a session as lines of text: what stands against it, its table of results, and notes."""
    table = build_results(findings, recorded)
    return [
        *wrap_lines([describe_obstacle(findings), results_view.caption_of(table)], width),
        *results_view.render_text(table, width, is_coloured),
        *render_claims(findings, width),
        *wrap_lines(list_notes(findings), width),
    ]


def wrap_lines(lines: Sequence[str], width: int) -> list[str]:
    """Lines of at most so many characters."""
    return [part for line in lines for part in textwrap.wrap(line, width)]
