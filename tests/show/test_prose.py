from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from benchbook.show import numbers, prose


def _text(html) -> str:
    return BeautifulSoup(html.text, "html.parser").get_text(" ", strip=True)


def _with(findings, **changes):
    return {**findings, "findings": [{**found, **changes} for found in findings["findings"]]}


def test_the_answer_comes_in_one_line_with_its_numbers(made):
    first, second = made.findings["findings"]
    line = _text(prose.answer(made.findings)).split(" lower ")[0]
    assert line == (
        "The answer haproxy served fewer queries per second than direct : "
        f"{numbers.percent(first['effect'])} on oltp_point_select and "
        f"{numbers.percent(second['effect'])} on oltp_read_write."
    )


def test_every_finding_has_its_sentence_verdict_and_a_way_to_the_evidence(made):
    soup = BeautifulSoup(prose.answer(made.findings).text, "html.parser")
    for found, item in zip(made.findings["findings"], soup.select(".answers > li"), strict=True):
        assert prose.sentence(found) in item.get_text()
        assert found["verdict"] in item.get_text()
        assert numbers.span(*found["band"]) in item.get_text()
        assert item.find("a", class_="way")["href"] == f"#finding-{found['id']}"
    assert soup.section.get_text(strip=True).endswith("Stop here if all you want is the answer.")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"label": "not shown"}, "no difference shown on oltp_point_select and oltp_read_write."),
        ({"label": "no practical difference"}, "no practical difference on oltp_point_select and oltp_read"),
        ({"headline": False}, "no single effect on oltp_point_select and oltp_read_write, it depends on"),
    ],
)
def test_no_number_is_quoted_where_nothing_was_shown(made, changes, said):
    line = "".join(str(part) for part in prose.headline(_with(made.findings, **changes)))
    assert said in line
    assert "%" not in line


def test_what_is_alike_on_several_workloads_is_said_once(made):
    first, second = made.findings["findings"]
    third = {**first, "workload": "oltp_insert", "label": "not shown"}
    own = [third, {**third, "workload": "oltp_delete"}, second]
    line = "".join(str(part) for part in prose.headline({**made.findings, "findings": own}))
    shown = f"{numbers.percent(second['effect'])} on oltp_read_write"
    assert line.endswith(f"no difference shown on oltp_insert and oltp_delete; {shown}.")


def test_before_the_first_look_the_answer_is_that_there_is_none_yet(made):
    early = {"blocks": {"planned": 5, "complete": 2}, "look": {"n": 0, "level": 0.98, "next": 5, "note": ""}}
    (line,) = prose.headline({**made.findings, **early})
    assert line == "Nothing is decided yet: 2 of the 5\xa0blocks that the first look needs are complete."


def test_an_aa_pair_without_an_interval_is_no_comfort(made):
    aa = {**made.findings["aa"], "low": None, "high": None, "n": 2, "label": "not shown"}
    text = _text(prose.doubts({**made.findings, "aa": aa}, made.runs))
    assert "n = 2. Without an interval it shows nothing yet." in text and "as it should be" not in text


def test_two_claims_about_one_comparison_are_quoted_once(made):
    first = made.findings["findings"][0]
    again = {**first, "id": f"{first['id']}.other", "claim": "source/other"}
    line = "".join(str(part) for part in prose.headline({**made.findings, "findings": [first, again]}))
    assert line.count("oltp_point_select") == 1


def test_an_inconclusive_claim_says_how_many_more_blocks(made):
    text = _text(prose.answer(_with(made.findings, verdict="inconclusive")))
    assert "About 3\xa0more blocks (7\xa0minutes) would narrow the interval to 2\xa0% on either side." in text
    assert "more blocks" not in _text(prose.answer(made.findings))


def test_no_finding_is_said(made):
    assert "No finding could be computed" in _text(prose.answer({**made.findings, "findings": []}))


def test_names_are_escaped_everywhere(made):
    evil = "<script>alert(1)</script>"
    hostile = _with(made.findings, treatment=evil, workload=evil, sentence=evil, claim=evil, warnings=[evil])
    hostile |= {"title": evil, "question": evil, "scope": evil, "warnings": [evil], "aa": None}
    for shown in (prose.opening(hostile), prose.answer(hostile), prose.doubts(hostile, made.runs)):
        assert "<script" not in shown.text
        assert "&lt;script&gt;" in shown.text
