"""The summary for an issue: its numbers, its doubts, and nothing that acts."""

from __future__ import annotations

import re
from dataclasses import replace

from benchbook.show import answer, numbers
from benchbook.show.doubts import Doubt
from tests.found import changed, doubt
from tests.show import synthetic


def test_it_has_the_answer_the_numbers_and_the_aa_result(made):
    text = answer.markdown(made, [Doubt("Pre-registration", "Held: all of it.")])
    assert text.startswith("### What a proxy costs\n")
    assert re.search(
        r"\*\*HAProxy served 1\d( to 1\d)?\s% fewer queries per second than direct connections on", text
    )
    for found in (*made.findings.findings, made.findings.aa):
        assert numbers.percent(found.effect) in text
        assert numbers.span(found.low, found.high) in text
    assert "- **A/A**: One arm under two names" in text and "- **Pre-registration**: Held: all of it." in text
    assert len(text.splitlines()) < 40 and len(text) < 4000


def test_every_row_of_the_table_has_as_many_cells(made):
    rows = [line for line in answer.markdown(made).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {
        8
    }  # seven columns: one finding has a claim


def test_names_stay_text(made):
    evil = "<img src=x onerror=alert(1)> | @all [x](http://evil) ~~a~~\n# b"
    hostile = replace(
        made, findings=changed(made.findings, title=evil, question=evil, warnings=[doubt(evil)])
    )
    text = answer.markdown(hostile)
    assert not re.search(r"(?<!\\)<(?!/?sub>)", text)
    assert not re.search(r"(?<!\\)@|(?<!\\)\[|\n# b", text)


def test_without_findings_it_says_so(made):
    text = answer.markdown(synthetic.empty(made))
    assert "**No finding could be computed.**" in text and "|" not in text
