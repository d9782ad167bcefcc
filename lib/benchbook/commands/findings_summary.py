"""reports/FINDINGS.md: the published claims by their own tables, then every effect over recorded sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchbook.commands import review_record
from benchbook.compare.text import labels
from benchbook.compare.text.conclusions import name_metric
from benchbook.compare.text.results_table import build_pooled_results, describe_range
from benchbook.core.artifacts import record
from benchbook.core.artifacts.meta_analysis import Pooled
from benchbook.core.published.audit import Audit
from benchbook.core.util import files, paths
from benchbook.core.util.number_format import glance_percent
from benchbook.show.audit_page import recomputed
from benchbook.show.markup import safe

FILE = "FINDINGS.md"
_CLAIMS = ("claim", "published", "its own tables", "computed again")
_EFFECTS = ("study", "treatment", "against", "workload", "metric", "threads", "mean", "other sessions",
            "sessions", "processors", "over sessions")  # fmt: skip


def write(audits: Sequence[Audit]) -> None:
    """Write the file, made of audits and of the record."""
    files.write_text(paths.reports() / FILE, render(audits, pooled_studies()))


def pooled_studies() -> list[Pooled]:
    """Recorded studies, each over the sessions of its newest design, by the results that git has."""
    index = record.read()
    found = (review_record.recorded(name, index.newest(name).entry.design) for name in sorted(index.studies))
    return [pooled for pooled in found if pooled is not None]


def render(audits: Sequence[Audit], studies: Sequence[Pooled]) -> str:
    """Both tables as Markdown."""
    claims = [
        [claim.claim, claim.published, claim.verdict, recomputed(claim)]
        for audit in audits
        for claim in audit.claims
    ]
    return "\n".join(
        [
            "# Findings",
            "",
            "Made by `make pages` from the record and the published tables.",
            "",
            "## Published claims, by their own tables",
            "",
            *_table(_CLAIMS, claims),
            "",
            "## Effects over recorded sessions",
            "",
            "Mean change; where nine of ten further sessions are expected, or the range that was seen.",
            "",
            *_table(_EFFECTS, [row for pooled in studies for row in _effects(pooled)]),
            "",
        ]
    )


def _effects(pooled: Pooled) -> Iterator[list[object]]:
    for row in build_pooled_results(pooled).rows:
        found = row.elsewhere
        if found is not None and found.mean.value is not None:
            is_one_number = found.kind != "depends on the machine"
            yield [
                *(pooled.study, labels.label(row.treatment), labels.label(row.baseline), row.workload),
                *(name_metric(row.metric), "all" if row.threads is None else row.threads),
                glance_percent(found.mean.value) if is_one_number else "",
                *(describe_range(found), found.sessions, found.processors, found.label),
            ]


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] * len(head), *([safe(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]
