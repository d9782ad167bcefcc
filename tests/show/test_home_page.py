"""The rows of the first page: what a reader takes away in seconds must be what was found."""

import base64
import re
from dataclasses import replace
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
from benchbook.show.home_page import SCALE, summarize_record
from tests import found, sources
from tests.goldens import assert_golden

STUDY = {"title": "What does a proxy cost?", "question": "", "baseline": "direct"}
NAMES = {"workload": "w", "baseline": "a", "treatment": "b"}
CONTRAST = {
    "id": "oltp_point_select.haproxy.qps", "workload": "oltp_point_select", "baseline": "direct",
    "treatment": "haproxy", "metric": "qps",
}  # fmt: skip


def finding(effect: float, low: float, high: float, label: str, **more: Any) -> FindingData:
    return found.finding(**{**CONTRAST, "effect": effect, "low": low, "high": high, "label": label, **more})


def study(*measured: FindingData, name: str = "lab", **more: Any) -> MeasuredStudy:
    causes = more.pop("causes", None)
    return MeasuredStudy(name, found.findings(*measured, causes=causes, **STUDY), True, **more)


def describe(title: str, *studies: MeasuredStudy, audits: Any = (), pooled: Any = None) -> str:
    """Rows of the first page: a line for each question, and one for each of its effects with its marks."""
    status = ClaimStatus(audits, studies, {}, pooled=pooled or {})
    lines = [title]
    for name, rows in home_page.group_questions(status, {"lab": "tidb-cluster", "quick": ""}).items():
        for row in rows:
            ways = (f"{text} ({way})" for text, way in (row.carries, row.why))
            texts = [name, row.question, *(claim.id for claim in row.claims), row.sessions, *ways]
            lines.append("  " + " | ".join(text for text in texts if text and text != " ()"))
            for line in row.lines:
                dots = " ".join(f"{value:+.2f}" for value, _ in line.dots)
                bar = line.ends and " to ".join(f"{end:+.2f}" for end in line.ends)
                told = f"{line.name} ({line.way}): {line.effect_text}; dots {dots}, bar {bar}"
                lines.append(f"    {line.direction or 'quiet'}: {told}")
    return "\n".join(lines).replace("\xa0", " ")


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


def books(*contrasts: dict[str, Any], passed: bool = True) -> dict[str, Any]:
    law = {"law": "no part is busier than its cores", "passed": passed, "detail": ""}
    return {"level": 0.98, "cells": [], "contrasts": contrasts, "physics": [law]}


def test_each_question_has_its_effects_its_sessions_and_its_cause(monkeypatch):
    levels = [
        {"threads": 1, "effect": -0.179, "low": -0.22, "high": -0.13, "label": "lower"},
        {"threads": 8, "effect": 0.33, "low": 0.21, "high": 0.45, "label": "higher"},
    ]
    by_level = finding(0.045, 0.01, 0.08, "depends on threads", headline=False, levels=levels, threads=[1, 8])
    own, quiet = finding(0.27, 0.23, 0.31, "higher"), finding(-0.015, -0.047, 0.04, "not shown")
    # One of another design is no dot. Processors that share a name and differ in their model are two.
    known = [session(-0.17, "lower"), session(0.27, "higher"), session(0.9, "higher", "another design")]
    range_ = {"prediction_low": -0.5, "prediction_high": 0.6}
    here = replace(study(finding(0.9, 0.8, 1.0, "higher")), is_recorded=False)
    pod = finding(-0.05, -0.06, -0.04, "lower", id="oltp_point_select.pod.qps", treatment="pod")
    audit = sources.audited("tidb-kubernetes")
    quick = {"name": "quick", "illustrates": {"pod": ["tidb-kubernetes/host-network"]}}
    cause = {
        "workload": "oltp_point_select", "threads": 8, "treatment": "haproxy", "quantity": "capacity",
        "qps": {"value": 0.33, "n": 5}, "full": {"direct": ["server"], "haproxy": ["server"]},
        "cost": {"server": {"value": -0.28, "n": 5}}, "added_latency_us": None, "added_cpu_us": None,
        "sentence": "server CPU-bound", "short": "server CPU-bound; its CPU time per query falls by 28 %",
    }  # fmt: skip
    silent = {**cause, "sentence": None}
    explained = study(own, causes=books(silent), explained=[found.findings(causes=books(cause))])
    parts = [
        describe("one effect", study(finding(-0.196, -0.204, -0.187, "lower"))),
        describe("each thread level, and what was not shown", study(by_level), study(quiet)),
        describe("several sessions", study(own), pooled=pooled(*known)),
        describe("with an expectation", study(own), pooled=pooled(*known, **range_)),
        describe("a single pooled session", study(own), pooled=pooled(session(0.27, "higher"))),
        describe("measured here and recorded", here, study(own), pooled=pooled(*known[:2])),
        describe("an arm that no row above tells of", study(own, pod, **quick), audits=[audit]),
        describe("all arms are told of above", study(pod, **quick), audits=[audit]),
        describe("a known cause", study(own, causes=books(cause))),
        describe("a cause without a sentence", study(own, causes=books(silent)), study(own, causes=books())),
        describe("a cause that another session tells", explained),
        describe("a cause of another effect", study(own, causes=books({**cause, "treatment": "pod"}))),
        describe("counters that contradict each other", study(own, causes=books(cause, passed=False))),
    ]  # fmt: skip
    monkeypatch.setattr(ClaimStatus, "reversals", {"lab": ["lower in another study"]})
    parts.append(describe("an opposite sign in other studies", study(own)))
    assert_golden("questions.txt", "\n\n".join(parts) + "\n")


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
    summary = summarize_record(ClaimStatus(audits, [], {}, pooled=known))
    assert_golden("held.txt", summary.replace("\xa0", " ") + "\n")
    assert summarize_record(ClaimStatus([], [], {})) == ""
