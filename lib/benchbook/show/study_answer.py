"""The top of a study's page and its summary in Markdown: conclusions, table of results, claims."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchbook.compare.bottlenecks import operational_laws
from benchbook.compare.text import conclusions
from benchbook.compare.text.results_table import ResultsTable, build_results
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import MetaAnalysis
from benchbook.core.util.number_format import format_count
from benchbook.show import bottleneck_section, results_view, tables, templating
from benchbook.show.caveats_section import CaveatPoint, build_caveats
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
        return (
            f"Not enough data yet: {blocks.complete} of the {needed} that the first look needs are complete."
        )
    described = "".join(f"{sentence} " for sentence in findings.described or ())
    return (
        f"{described}This describes runs and decides nothing: {format_count(blocks.planned, 'block')} "
        f"planned, and a decision needs {needed}."
    )


def conclude_study(findings: Findings, table: ResultsTable | None = None) -> list[str]:
    """Sentences that answer a study: its ladder, each treatment, then trends; nothing may be left out."""
    if early := describe_progress(findings):
        return [early]
    if broken := operational_laws.list_violations(findings.causes):
        return [f"The measurements contradict each other, so no effect is an answer: {broken[0]}."]
    rows = (table or build_results(findings)).rows
    return [
        *(rungs.sentence for rungs in (findings.ladder.workloads if findings.ladder else ())),
        *(conclusion.text for conclusion in conclusions.summarize_rows(rows)),
        *_list_trends(findings),
        *bottleneck_section.describe_proxy_cores(findings),
    ]


def _list_trends(findings: Findings) -> list[str]:
    """Outcomes of trends and proportions; no contrast of two arms states them."""
    kinds = ("trend", "proportional")
    return [claim.sentence for claim in findings.claims or () if claim.kind in kinds and claim.sentence]


def render_opening(
    findings: Findings,
    recorded: MetaAnalysis | None = None,
    setting: Sequence[str] = (),
    sessions: Html = _NOTHING,
    elsewhere: Html = _NOTHING,
    losses: Sequence[Table] = (),
) -> Html:
    """Title, basis of the answer, and the table of results with its conclusions.

    `setting` is that of `setup_section`, `sessions` says which sessions are recorded, `elsewhere` what other
    studies found, `losses` what an event cost, which a study with one answers first.
    """
    table = build_results(findings, recorded)
    return templating.render_template(
        "answer.html.j2",
        found=findings,
        early=describe_progress(findings),
        table=results_view.render_html(table, conclude_study(findings, table)),
        setting=setting,
        sessions=sessions,
        elsewhere=elsewhere,
        losses=losses,
    )


def render_summary(
    report_inputs: ReportInputs, more: Sequence[CaveatPoint] = (), recorded: MetaAnalysis | None = None
) -> str:
    """Summary of a study in Markdown for an issue; `more` are doubts that the findings don't know."""
    findings = report_inputs.findings
    caveat_points = list(build_caveats(report_inputs, more))
    first = [
        doubt
        for doubt in caveat_points
        if doubt.name in ("A/A", *(caveat_point.name for caveat_point in more))
    ]
    table = build_results(findings, recorded)
    return templating.render_markdown(
        "summary.md.j2",
        found=findings,
        answer=conclude_study(findings, table),
        losses=[Html("\n".join(lost.render_text())) for lost in tables.tabulate_losses(report_inputs)],
        caption=results_view.caption_of(table),
        table=Html(results_view.render_markdown(table)),
        doubts=list(dict.fromkeys([*first, *(doubt for doubt in caveat_points if doubt.is_care)])),
        most=_MOST_DOUBTS,
    )


def sentence_of_session(findings: Findings) -> str:
    """Answer of a session in one paragraph of plain text."""
    return re.sub(r"\s+", " ", " ".join(conclude_study(findings)))
