"""reports/FINDINGS.md, which git has, follows from the record."""

from pathlib import Path

from benchbook.commands import findings_summary
from tests import sources

FILE = Path(__file__).parents[2] / "reports" / findings_summary.FILE


def test_the_file_in_git_follows_from_the_record_and_the_published_tables():
    audits = [audit for _, audit in sorted(sources.audits().items())]
    text = findings_summary.render_summary(audits, findings_summary.pooled_studies())
    assert FILE.read_text(encoding="utf-8") == text, "`make pages` writes it anew"
