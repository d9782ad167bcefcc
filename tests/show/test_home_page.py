"""The rows of the first page: what a reader takes away in seconds must be what was found."""

import base64
import re
from itertools import pairwise
from typing import Any

from benchbook.core.artifacts.findings import FindingData
from benchbook.core.artifacts.meta_analysis import (
    MetaAnalysis,
    ObservedEffect,
    Occasion,
    PooledContrast,
    PooledEffect,
    Processor,
    StudySession,
)
from benchbook.show import forest, home_page
from benchbook.show.claim_status import ClaimStatus, MeasuredStudy
from benchbook.show.home_page import HEADLINES, SCALE, summarize_record
from tests import found, sources

STUDY = {"title": "What does a proxy cost?", "question": "", "baseline": "direct"}
NAMES = {"workload": "w", "baseline": "a", "treatment": "b"}
CONTRAST = {
    "id": "oltp_point_select.haproxy.qps", "workload": "oltp_point_select", "baseline": "direct",
    "treatment": "haproxy", "metric": "qps",
}  # fmt: skip


def finding(effect: float, low: float, high: float, label: str, **more: Any) -> FindingData:
    return found.finding(**{**CONTRAST, "effect": effect, "low": low, "high": high, "label": label, **more})


def groups(
    *measured: FindingData, pooled: dict[str, MetaAnalysis] | None = None
) -> list[home_page.QuestionGroup]:
    study = MeasuredStudy("lab", found.findings(*measured, **STUDY), True)
    return home_page.group_questions(
        ClaimStatus([], [study], {}, pooled=pooled or {}), {"lab": "tidb-cluster"}
    )


def lines(*measured: FindingData, pooled: dict[str, MetaAnalysis] | None = None) -> list[forest.ForestRow]:
    return [*groups(*measured, pooled=pooled)[0].rows[0].lines]


def plain_text(text: str) -> str:
    return text.replace("\xa0", " ")


def test_a_single_effect_is_one_number_with_its_interval_and_says_that_nobody_repeated_it():
    (group,) = groups(finding(-0.196, -0.204, -0.187, "lower"))
    (row,) = group.rows
    assert group.name == "TiDB cluster" and row.question == "What does a proxy cost?"
    (line,) = row.lines
    assert line.name == "HAProxy on point selects, 4\xa0threads"
    assert plain_text(line.effect_text) == "−19.6 % [−20.4, −18.7]"
    assert row.sessions == "one session on one machine" and not row.carries and not row.why
    assert row.lines[0].way == "record/studies/lab.html#finding-oltp_point_select.haproxy.qps"


def test_each_thread_level_has_its_line_and_no_number_stands_for_both():
    levels = [
        {"threads": 1, "effect": -0.179, "low": -0.22, "high": -0.13, "label": "lower"},
        {"threads": 8, "effect": 0.33, "low": 0.21, "high": 0.45, "label": "higher"},
    ]
    known = finding(0.045, 0.01, 0.08, "depends on threads", headline=False, levels=levels, threads=[1, 8])
    assert [(plain_text(one.name), plain_text(one.effect_text), one.direction) for one in lines(known)] == [
        ("HAProxy on point selects, 1 thread", "−17.9 % [−22.0, −13.0]", "lower"),
        ("HAProxy on point selects, 8 threads", "+33.0 % [+21.0, +45.0]", "higher"),
    ]
    quiet = lines(finding(-0.015, -0.047, 0.04, "not shown"))
    assert [one.direction for one in quiet] == [""]


def session(effect: float, label: str, reason: str | None = None) -> ObservedEffect:
    ends = {"low": effect - 0.02, "high": effect + 0.02}
    return ObservedEffect(session="s", effect=effect, label=label, reason=reason, **ends)


def pooled(*effects: ObservedEffect, **more: Any) -> dict[str, MetaAnalysis]:
    whole = PooledEffect(
        threads=None, seen=effects, occasions=(), processors=2, label="depends on the machine",
        **{"range_low": -0.17, "range_high": 0.27, **more},
    )  # fmt: skip
    machines = tuple(
        StudySession(
            id=f"s{one}", measured="2026-01-01T00:00", design="d",
            processor=Processor(name="EPYC", family=25, model=one % 2, stepping=1),
        )
        for one in range(len(effects))
    )  # fmt: skip
    one = PooledContrast(**CONTRAST, names=NAMES, whole=whole, levels=(), one_number=True)
    return {
        "lab": MetaAnalysis(study="lab", title="", level=0.9, design="d", sessions=machines, contrasts=(one,))
    }


def test_sessions_are_dots_and_the_bar_is_where_a_further_one_is_expected():
    own = finding(0.27, 0.23, 0.31, "higher")
    known = [session(-0.17, "lower"), session(0.27, "higher"), session(0.9, "higher", "another design")]
    (seen,) = lines(own, pooled=pooled(*known))
    assert [value for value, _ in seen.dots] == [-0.17, 0.27]
    row = groups(own, pooled=pooled(*known))[0].rows[0]
    # Processors that share a name and differ in their model are two.
    assert plain_text(row.sessions) == "3 sessions, 2 processors"
    (expected,) = lines(own, pooled=pooled(*known, prediction_low=-0.5, prediction_high=0.6))
    assert expected.ends == (-0.5, 0.6)


def test_an_opposite_sign_in_other_studies_is_named(monkeypatch):
    measured = finding(0.27, 0.2, 0.3, "higher")
    assert groups(measured)[0].rows[0].carries == ""
    monkeypatch.setattr(ClaimStatus, "reversals", {"lab": ["lower in another study"]})
    assert groups(measured)[0].rows[0].carries == "opposite sign in other studies"


def test_an_arm_that_no_row_above_tells_of_has_its_own_beside_the_published_findings():
    """The first finding is illustrated by one arm of a study; what the other arm costs is named nowhere."""
    audit = sources.audited("tidb-kubernetes")
    pod = finding(-0.05, -0.06, -0.04, "lower", id="oltp_point_select.pod.qps", treatment="pod")
    own = found.findings(finding(0.24, 0.2, 0.3, "higher"), pod, **STUDY)
    shown = {"pod": ["tidb-kubernetes/host-network"]}
    study = MeasuredStudy("quick", own, True, illustrates=shown)
    (group,) = home_page.group_questions(ClaimStatus([audit], [study], {}), {"quick": ""})
    top, last = group.rows[0], group.rows[-1]
    assert top.question.startswith("Host network") and ["pod" in one.way for one in top.lines] == [True]
    assert last.question == STUDY["title"] and ["haproxy" in one.way for one in last.lines] == [True]
    assert last.claims == (), "the claim stands above"
    by_id = {one.id: one.claim for one in audit.claims}
    alone = MeasuredStudy("quick", found.findings(pod, **STUDY), True, illustrates=shown)
    (group,) = home_page.group_questions(ClaimStatus([audit], [alone], {}), {"quick": ""})
    assert [row.question for row in group.rows] == [by_id[name] for name in HEADLINES]


def test_what_was_measured_here_stands_beside_what_is_recorded_with_its_own_numbers():
    known = pooled(session(-0.17, "lower"), session(0.27, "higher"))
    one = found.findings(finding(0.9, 0.8, 1.0, "higher"), **STUDY)
    studies = [MeasuredStudy("lab", one), MeasuredStudy("lab", one, True)]
    (group,) = home_page.group_questions(ClaimStatus([], studies, {}, pooled=known), {"lab": "proxies"})
    here, recorded = group.rows
    assert here.question == f"{STUDY['title']} (measured in this clone)" != recorded.question
    assert plain_text(here.lines[0].effect_text).startswith("+90.0 %")
    assert here.sessions == "one session on one machine"


def test_a_single_pooled_session_changes_nothing():
    own = finding(0.27, 0.23, 0.31, "higher")
    assert lines(own, pooled=pooled(session(0.27, "higher"))) == lines(own)


def test_small_effects_stand_apart_from_zero_and_what_was_published_is_shaded():
    at = home_page.SCALE
    places = [at(value) for value in (-0.6, -0.09, 0.0, 0.038, 0.07, 0.6)]
    assert places == sorted(places) and min(b - a for a, b in pairwise(places)) > 4
    row = forest.ForestRow("", dots=((0.1, True), (0.01, False)), band=(0.05, 0.09))
    drawn = base64.b64decode(
        forest.draw_bar(row, SCALE).text.partition("base64,")[2].partition('"')[0]
    ).decode()
    dots = re.findall(r'<circle[^>]* fill="([^"]+)" stroke="([^"]+)"', drawn)
    assert sorted(fill == stroke for fill, stroke in dots) == [False, True]
    assert "<rect" in drawn


def test_why_is_told_in_a_few_words_and_only_where_a_cause_is_known():
    own = finding(0.33, 0.21, 0.45, "higher")
    cause = {
        "workload": "oltp_point_select", "threads": 8, "treatment": "haproxy", "quantity": "capacity",
        "qps": {"value": 0.33, "n": 5}, "full": {"direct": ["server"], "haproxy": ["server"]},
        "cost": {"server": {"value": -0.28, "n": 5}}, "added_latency_us": None, "added_cpu_us": None,
        "sentence": "server CPU-bound", "short": "server CPU-bound; its CPU time per query falls by 28 %",
    }  # fmt: skip

    def row(*contrasts: dict[str, Any], passed: bool = True) -> home_page.QuestionRow:
        law = {"law": "no part is busier than its cores", "passed": passed, "detail": ""}
        books = {"level": 0.98, "cells": [], "contrasts": contrasts, "physics": [law]}
        study = MeasuredStudy("lab", found.findings(own, causes=books, **STUDY), True)
        return home_page.group_questions(ClaimStatus([], [study], {}), {})[0].rows[0]

    why = "at 8 threads: server CPU-bound; its CPU time per query falls by 28 %"
    assert plain_text(row(cause).why) == why
    assert row(cause).why_way == "record/studies/lab.html#why"
    assert row({**cause, "sentence": None}).why == "" and row().why == ""
    # Another session tells why where the newest doesn't.
    silent = {"level": 0.98, "cells": [], "contrasts": [{**cause, "sentence": None}], "physics": []}
    other = found.findings(causes={**silent, "contrasts": [cause]})
    study = MeasuredStudy("lab", found.findings(own, causes=silent, **STUDY), True, explained=[other])
    (group,) = home_page.group_questions(ClaimStatus([], [study], {}), {})
    assert plain_text(group.rows[0].why) == why
    assert row({**cause, "treatment": "pod"}).why == "", "that is another effect"
    broken = row(cause, passed=False)
    assert broken.why == "the counters contradict each other" and not (broken.lines or broken.more)


def test_the_first_page_says_how_many_claims_hold_and_how_many_effects_carry():
    once = Occasion(sessions=("s",), effect=0.1, standard_error=0.01, sign=1, processor="6/1/1")
    (lab,) = pooled().values()

    def effect(label: str, occasions: int) -> PooledEffect:
        changes = {"label": label, "occasions": (once,) * occasions}
        return lab.contrasts[0].whole.model_copy(update=changes)

    def contrast(whole: PooledEffect, *levels: PooledEffect) -> PooledContrast:
        changes = {"whole": whole, "levels": levels, "one_number": not levels}
        return lab.contrasts[0].model_copy(update=changes)

    audit = sources.audited("tidb-kubernetes")
    verdicts = ("holds", "holds", "does not hold", "not derivable")
    claims = [audit.claims[0].model_copy(update={"verdict": one}) for one in verdicts]
    known = {"lab": lab.model_copy(update={"contrasts": (
        contrast(effect("holds elsewhere", 4)), contrast(effect("one session", 1)),
        contrast(effect("not shown", 4), effect("same direction", 2), effect("depends on the machine", 2)),
    )})}  # fmt: skip
    audits = [
        audit.model_copy(update={"claims": claims[:3]}),
        audit.model_copy(update={"source": "my-own", "claims": claims[3:]}),
    ]
    assert plain_text(summarize_record(ClaimStatus(audits, [], {}, pooled=known))) == (
        "Of 3 claims of 1 published report, their own tables bear out 2, contradict 1 and leave 0 open. "
        "Of 1 claim of 1 other source, their own tables bear out 0, contradict 0 and leave 1 open. "
        "Of 3 effects measured in several sessions, without those whose size the study itself sets, "
        "2 keep one direction, 1 depend on the machine, and 0 stay open."
    )
    assert summarize_record(ClaimStatus([], [], {})) == ""
