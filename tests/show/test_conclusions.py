"""The sentences that answer a study's title."""

import dataclasses
import math
import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from tests.show.test_first import finding

from benchbook.compare.inference.findings import make as made_of
from benchbook.compare.text import sentences
from benchbook.core.artifacts.findings import Finding, Findings
from benchbook.core.study.params import Analysis
from benchbook.show import bottleneck_section, caveats_section, conclusions, figures, numbers
from benchbook.show.caveats_section import Doubt
from tests import small
from tests.found import answer as put
from tests.found import changed, doubt, findings, runs
from tests.show import conftest, synthetic


def said(*found: Finding, **more: Any) -> list[str]:
    return [one.text.replace("\xa0", " ") for one in conclusions.said(findings(*found, **more))]


def test_one_effect_is_a_sentence_with_one_number_and_one_range():
    assert said(finding(-0.196, -0.214, -0.177, "lower")) == [
        "HAProxy served 20 % fewer queries per second than direct connections on point selects "
        "(−21 to −18 %)."
    ]


def test_thread_levels_that_differ_in_sign_are_said_with_their_threads():
    levels = [
        {"threads": 1, "effect": -0.179, "low": -0.22, "high": -0.13, "label": "lower"},
        {"threads": 4, "effect": 0.01, "low": -0.02, "high": 0.04, "label": "not shown"},
        {"threads": 8, "effect": 0.33, "low": 0.21, "high": 0.45, "label": "higher"},
    ]
    assert said(finding(0.04, 0.01, 0.08, "depends on threads", headline=False, levels=levels)) == [
        "HAProxy served 18 % fewer queries per second than direct connections at 1 thread and 33 % more at "
        "8 threads, on point selects."
    ]


def test_threads_that_change_nothing_that_was_shown_are_no_contradiction():
    level = {"effect": 0.01, "low": -0.02, "high": 0.04, "label": "not shown"}
    levels = [{**level, "threads": threads} for threads in (4, 64)]
    (only,) = said(finding(0.0, -0.02, 0.04, "depends on threads", headline=False, levels=levels))
    assert (
        only
        == "No difference between HAProxy and direct connections was shown on point selects (−2.0 to +4.0 %)."
    )


def test_workloads_that_agree_are_one_range_and_those_that_do_not_are_counted():
    names = ("oltp_point_select", "oltp_read_only", "oltp_insert")
    own = [finding(effect, effect - 0.02, effect + 0.02, "lower", workload=name)
           for effect, name in zip((-0.404, -0.217, -0.3), names, strict=True)]  # fmt: skip
    start = "HAProxy served 22 to 40 % fewer queries per second than direct connections on"
    assert said(*own) == [f"{start} 3 workloads."]
    quiet = finding(0.01, -0.02, 0.04, "not shown", workload="oltp_delete")
    assert said(*own, quiet) == [f"{start} 3 of 4 workloads."]
    assert said(own[0], quiet) == [
        "HAProxy served 40 % fewer queries per second than direct connections on point selects; "
        "no difference was shown on the other workload."
    ]


def test_another_metric_than_queries_is_higher_or_lower():
    (only,) = said(finding(0.56, 0.4, 0.7, "higher", metric="latency_p95_ms"))
    assert only.startswith("P95 latency was 56 % higher with HAProxy than with direct connections on ")


def test_an_interval_without_zero_that_the_correction_did_not_leave_shown_is_called_so():
    (only,) = said(finding(0.02, 0.001, 0.04, "not shown"))
    assert only.startswith("Once all contrasts of the study are counted (Holm), no difference is decided")


def test_many_thread_levels_say_where_most_was_served():
    found = [{"arm": arm, "workload": "w", "threads": [1, 2, 4, 8, 16], "observed_max_threads": threads,
              "observed_max_qps": 9.0, "usl": None, "peak_threads": None, "peak_qps": None, "reason": None}
             for arm, threads in (("direct", 8), ("haproxy", 16), ("direct_again", 4))]  # fmt: skip
    names = {"arms": {"direct": "direct connections", "haproxy": "HAProxy"}, "workloads": {}}
    assert said(scaling=found, names=names) == [
        "Most queries a second came from direct connections at 8 threads and HAProxy at 16 threads."
    ]


@pytest.mark.parametrize(
    ("kind", "places", "values", "told"),
    [
        ("proportional", ["point selects"], [1.037],
         "The highest rate is 1.04 times what is in proportion (0.937 to 1.14)."),
        ("trend", ["HAProxy, range size 10 to 100", "HAProxy, range size 100 to 1000"], [-0.46, -0.82],
         "Each step of range size from 10 to 1,000 meant 46 to 82 % fewer queries per second."),
        ("trend", ["a pool, threads per server 500 to 750"], [0.01],
         "Steps of threads per server from 500 to 750 showed no change in queries per second "
         "(−9.0 to +11.0 %)."),
    ],
)  # fmt: skip
def test_a_trend_and_a_proportion_answer_before_the_contrasts(kind, places, values, told):
    scale = "value" if kind == "proportional" else "share"
    parts = [{"where": where, "value": value, "low": value - 0.1, "high": value + 0.1, "scale": scale}
             for where, value in zip(places, values, strict=True)]  # fmt: skip
    assert said(claims=[put(*parts, claim="a/b", kind=kind)]) == [told]


def test_a_ratio_of_ratios_is_not_told_as_a_change_of_queries():
    part = {"where": "a against b, zones 1 to 3", "value": 0.5, "low": 0.4, "high": 0.6, "scale": "share"}
    assert said(claims=[put(part, claim="a/b", kind="trend")]) == []


def test_the_time_of_a_query_leads_and_what_was_full_is_named():
    def cause(threads: int, added: float, named: str | None, full: dict[str, list[str]]) -> dict:
        return {
            "workload": "w", "threads": threads, "treatment": "haproxy", "quantity": "latency", "cost": {},
            "qps": {"value": -0.15, "n": 5}, "full": full, "added_latency_us": {"value": added, "n": 5},
            "added_cpu_us": None, "sentence": named, "reason": None if named else "it is open",
        }  # fmt: skip

    def cell(threads: int, is_full: bool | None) -> dict:
        used = {"value": 0.5, "n": 5}
        place = {"parts": ["server"], "cores": 1, "used": used, "is_full": is_full}
        return {
            "workload": "w", "threads": threads, "arm": "haproxy", "qps": used, "latency_us": None,
            "parts": [], "places": [place],
        }  # fmt: skip

    def found(*contrasts: dict, cells: tuple[dict, ...] = ()) -> Findings:
        books = {"level": 0.98, "cells": cells, "contrasts": contrasts, "physics": []}
        names = {"arms": {"direct": "direct connections", "haproxy": "HAProxy"}, "workloads": {}}
        return findings(names=names, causes=books)

    one, other = cause(1, 16.6, "because", {}), cause(1, 18.2, "because", {})
    said = "HAProxy adds 17 to 18 µs to a query at 1 thread."
    assert bottleneck_section.latency(found(one, other), "haproxy", "HAProxy") == said
    less = found(cause(1, -6.9, "because", {}))
    assert (
        bottleneck_section.latency(less, "haproxy", "HAProxy")
        == "HAProxy takes 6.9 µs from a query at 1 thread."
    )
    # Not where it is another quantity, where the levels disagree, or where no cause is named.
    assert bottleneck_section.latency(found(one, cause(1, -3.0, "because", {})), "haproxy", "HAProxy") == ""
    assert bottleneck_section.latency(found(cause(1, 16.6, None, {})), "haproxy", "HAProxy") == ""
    of_capacity = cause(8, 16.6, "because", {}), cause(1, 9.0, "because", {"direct": ["server"]})
    assert bottleneck_section.latency(found(*of_capacity), "haproxy", "HAProxy") == ""
    cells = (cell(1, False), cell(8, True), cell(16, True), cell(4, None))
    said = "What was full: nothing at 1 thread; the server's core at 8 and 16 threads."
    assert bottleneck_section.full(found(cells=cells)).replace("\xa0", " ") == said
    aside = changed(found(cells=cells), client_full=[32, 64])
    assert (
        bottleneck_section.full(aside)
        .replace("\xa0", " ")
        .endswith("; the client's core in runs at 32 and 64 threads that are set aside.")
    )


def _text(html) -> str:
    return BeautifulSoup(html.text, "html.parser").get_text(" ", strip=True)


def _with(findings, **changes):
    return changed(findings, findings=[changed(found, **changes) for found in findings.findings])


def test_every_contrast_has_a_sentence_with_a_way_to_the_evidence_and_its_claims(made):
    soup = BeautifulSoup(conclusions.opening(made.findings).text, "html.parser")
    (item,) = soup.select(".answers > li")
    first, _ = made.findings.findings
    assert (
        item.get_text(strip=True).startswith("HAProxy served ") and "on point selects and" in item.get_text()
    )
    assert item.find("a", class_="way")["href"] == f"#finding-{first.id}"
    for found in made.findings.findings:
        assert found.verdict in item.get_text()
        assert numbers.span(*found.band) in item.get_text()


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("not shown", "No difference between HAProxy and direct connections was shown on point"),
        ("no practical difference", "There is no practical difference for HAProxy against direct"),
        ("no useful interval", "No useful interval yet for HAProxy against direct connections"),
    ],
)  # fmt: skip
def test_no_effect_is_quoted_where_nothing_was_shown(made, label, said):
    findings = _with(made.findings, label=label, low=-0.3, high=0.1)
    line = conclusions.text(findings)
    assert said in line
    assert "fewer" not in line
    assert ("(−" in line) is (label != "no useful interval"), line


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("not shown", "No difference in p99 latency between HAProxy and direct connections was shown on "),
        ("no useful interval", "No useful interval yet for HAProxy against direct connections in p99"),
    ],
)  # fmt: skip
def test_a_metric_that_is_not_what_was_served_is_named(made, label, said):
    findings = _with(made.findings, label=label, low=-0.3, high=0.1, metric="latency_p99_ms")
    assert said in conclusions.text(findings)


def test_an_arm_that_was_skipped_is_named_with_the_reason(made):
    """As a study has it whose proxy is not installed; another has an effect of too few blocks beside it."""
    none = {
        "n": 0,
        "label": "not shown",
        "low": None,
        "high": None,
        "effect": None,
        "reason": "it was skipped",
    }
    first, second = _with(made.findings, **none).findings
    few = changed(second, n=1, effect=0.02, reason=None)
    told = [changed(one, sentence=sentences.sentence(one)) for one in (first, few)]
    assert conclusions.text(changed(made.findings, findings=told)) == (
        "HAProxy could not be compared with direct connections on point selects: it was skipped. "
        "HAProxy served 2.0\xa0% more queries per second than direct connections on read-write transactions "
        "(1 block); there is no interval: too few blocks."
    )


def test_before_the_first_look_the_answer_is_that_there_is_none_yet(made):
    early = {"blocks": {"planned": 5, "complete": 2}, "look": {"n": 0, "level": 0.98, "next": 5, "note": ""}}
    line = conclusions.text(changed(made.findings, **early))
    assert line == "Nothing is decided yet: 2 of the 5\xa0blocks that the first look needs are complete."


def test_a_study_of_fewer_blocks_than_a_decision_needs_says_what_its_runs_did(made):
    early = {"blocks": {"planned": 2, "complete": 2}, "look": {"n": 0, "level": 0.98, "next": 5, "note": ""}}
    why = (
        "This describes runs and decides nothing: 2\xa0blocks are planned, and a decision needs 5\xa0blocks."
    )
    line = conclusions.text(changed(made.findings, **early))
    assert line == why
    line = conclusions.text(changed(made.findings, **early, described=["A stood still for 9 s."]))
    assert line == f"A stood still for 9 s. {why}"


def test_an_aa_pair_without_an_interval_is_no_comfort(made):
    aa = changed(made.findings.aa, low=None, high=None, n=2, label="not shown")
    text = _text(caveats_section.doubts(replace(made, findings=changed(made.findings, aa=aa))))
    assert "2\xa0blocks. Without an interval it shows nothing yet." in text and "as it should be" not in text


def test_two_claims_about_one_comparison_are_quoted_once(made):
    first = made.findings.findings[0]
    again = changed(first, id=f"{first.id}.other", claim="source/other")
    line = conclusions.text(changed(made.findings, findings=[first, again]))
    assert line.count("point selects") == 1


def test_an_inconclusive_claim_says_how_many_more_blocks(made):
    text = _text(conclusions.opening(_with(made.findings, verdict="inconclusive")))
    assert "About 3\xa0more blocks (7\xa0minutes) would narrow the interval to 2\xa0% on either side." in text
    assert "more blocks" not in _text(conclusions.opening(made.findings))


def test_no_finding_is_said(made):
    assert "No finding could be computed" in _text(conclusions.opening(changed(made.findings, findings=[])))


def test_names_are_escaped_everywhere(made):
    evil = "<script>alert(1)</script>"
    hostile = _with(made.findings, treatment=evil, workload=evil, sentence=evil, claim=evil, warnings=[evil])
    hostile = changed(hostile, title=evil, question=evil, scope=evil, warnings=[doubt(evil)], aa=None)
    for shown in (conclusions.opening(hostile), caveats_section.doubts(replace(made, findings=hostile))):
        assert "<script" not in shown.text
        assert "&lt;script&gt;" in shown.text


def test_it_has_the_answer_the_numbers_and_the_aa_result(made):
    text = conclusions.markdown(made, [Doubt("Pre-registration", "Held: all of it.")])
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
    rows = [line for line in conclusions.markdown(made).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {
        8
    }  # seven columns: one finding has a claim


def test_names_stay_text(made):
    evil = "<img src=x onerror=alert(1)> | @all [x](http://evil) ~~a~~\n# b"
    hostile = replace(
        made, findings=changed(made.findings, title=evil, question=evil, warnings=[doubt(evil)])
    )
    text = conclusions.markdown(hostile)
    assert not re.search(r"(?<!\\)<(?!/?sub>)", text)
    assert not re.search(r"(?<!\\)@|(?<!\\)\[|\n# b", text)


def test_without_findings_it_says_so(made):
    text = conclusions.markdown(synthetic.empty(made))
    assert "**No finding could be computed.**" in text and "|" not in text


ARMS = {"pool-8": 1.0, "pool-32": 1.3, "pool-128": 1.301}


@pytest.fixture(scope="module")
def found():
    """Make the findings of a ladder of three arms, 30 % between the first two and nothing after."""
    rows, noise = [], (0.001, -0.001, 0.0005, -0.0005, 0.0)
    for block in range(1, 6):
        for place, (arm, ratio) in enumerate(ARMS.items()):
            rows.append(
                {
                    "run_id": f"{block}-{arm}", "block": block, "position": len(rows), "group": f"{block}",
                    "arm": arm, "workload": "oltp_point_select", "threads": 4, "started_s": 10.0 * len(rows),
                    "sysbench_s": 10.0, "qps": 1000 * ratio * math.exp(noise[(block + place) % 5]),
                    "steal_pct": 0.1,
                    "warnings": "",
                }
            )  # fmt: skip
    study = small.study(
        arms={arm: {} for arm in ARMS},
        workloads={"oltp_point_select": {}},
        threads=[4],
        plan={"seed": 1, "blocks": 5, "discard_s": 1, "run_s": 5, "ladder": list(ARMS)},
    )
    voids = pd.DataFrame(
        columns=["run_id", "attempt", "block", "arm", "workload", "threads", "status", "reasons"]
    )
    tidy = {"runs": runs(rows), "voids": voids, "histograms": pd.DataFrame(columns=["run_id"])}
    return made_of("pools", study, tidy, Analysis())


def test_the_answer_names_the_best_arm(found):
    text = conclusions.opening(found).text.replace("\xa0", " ")
    assert "Best up to pool-128 on point selects: pool-32." in text
    assert 'href="#ladder"' in text


def test_the_figure_has_a_line_an_arm_against_the_first(found):
    drawn, table = figures.ladder(found)
    assert [row.name for row in drawn.rows] == ["pool-32", "pool-128"]
    assert drawn.rows[0].told.startswith("+30.") and drawn.rows[0].direction == "higher"
    assert [row[0] for row in table.rows] == [
        "pool-32 against pool-8", "pool-128 against pool-8", "pool-128 against pool-32",
    ]  # fmt: skip
    assert [cell.text.count("no practical difference") for cell in table.rows[2][5:]] == [1, 1]


def test_a_study_without_one_shows_none(made):
    assert figures.ladder(made.findings) == []


def test_the_page_of_a_study_has_it(found, made, tmp_path):
    """The whole report notebook, on the made-up study with a ladder in its findings."""
    with_ladder = dataclasses.replace(made, findings=changed(made.findings, ladder=found.ladder))
    soup = conftest.build(with_ladder, tmp_path).soup
    assert soup.find(id="ladder") and soup.find(id="ladder-1")
    assert synthetic.evidence().findings.ladder is None
