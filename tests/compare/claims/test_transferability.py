"""How close a study's arms are to a claim's, and what its sessions came to, each by a rule."""

import math

import pytest

from benchbook.compare.claims import transferability
from benchbook.compare.meta.meta_analysis import SessionResult
from benchbook.compare.stats.intervals import t_quantile
from benchbook.compare.text import cpu_models
from benchbook.core.artifacts.meta_analysis import StudySession
from benchbook.core.published import source
from benchbook.core.published.claim import ClaimSpec
from tests import found
from tests.compare.cases import assert_cases
from tests.compare.sessions import PROCESSORS, XEON

ARMS = {"haproxy": {"access": "haproxy"}, "tiproxy": {"access": "tiproxy"}}
NAME = "tiproxy-haproxy/of-ours"
DOCUMENT = source.load_source("tiproxy-haproxy")
# Student's t of five blocks at 98 %: 3.747 standard errors on either side.
T = t_quantile(0.99, 4)


def claim(**given) -> ClaimSpec:
    told = {"kind": "effect", "claim": "So it is.", "stands": "Here", "metric": "qps"}
    sides = {"baseline": {"arm": "haproxy"}, "treatment": {"arm": "tiproxy"}, "band": {"point": "-10 %"}}
    return ClaimSpec.model_validate({**told, **sides, **given})


def facts(tidb="8.0.0", tiproxy="1.0.0", haproxy="2.9.0", engine="tidb", **more):
    server = {"name": engine, "version": tidb, **more}
    return {
        arm: {"engine": server, "proxy": {"name": arm, "version": version}}
        for arm, version in (("haproxy", haproxy), ("tiproxy", tiproxy))
    }


def session(effect: float, half: float = 0.01, day: int = 1, cpu: str = XEON, **given) -> SessionResult:
    """Return a session whose effect has an interval of so much of log on either side."""
    ends = [math.expm1(math.log1p(effect) + off) for off in (-half, half)]
    contrast = {"baseline": "haproxy", "treatment": "tiproxy", "workload": "oltp_point_select"}
    own = found.finding(**contrast, effect=effect, low=ends[0], high=ends[1])
    entry = {"id": f"s{day}", "measured": f"2026-11-{day:02d}T00:00", "design": "d"}
    when = StudySession(**entry, processor=cpu_models.parse_processor(cpu))
    return SessionResult(when, found.findings(own), given.get("facts") or facts())


@pytest.fixture
def graded(make_study):
    def grade(*sessions, of=None, arms=None):
        study = make_study(arms=arms or ARMS)
        return transferability.grade_claim(NAME, of or claim(), DOCUMENT, study, sessions)

    return grade


def describe(came: transferability.Grade) -> str:
    """Closeness of a study to a claim with its reason, what its sessions came to, and how many there are."""
    ends = "" if came.low is None else f", {came.low:+.4f} to {came.high:+.4f}".replace("-0.0000", "+0.0000")
    counted = f"{came.sessions} sessions, {came.occasions} occasions, {came.processors} processors"
    carries = ", carries over" * came.carries_over
    return f"{came.closeness} ({came.because}): {came.outcome}{ends}; {counted}{carries}"


def test_a_study_is_as_close_as_its_programs_and_came_to_what_its_sessions_show(graded):
    def grade(case):
        effects, given = case["effects"], facts(**case.get("facts", {}))
        days, on = case.get("days", range(1, len(effects) + 1)), case.get("on", range(len(effects)))
        asked = [session(effect, case.get("half", 0.01), day, PROCESSORS[cpu], facts=given)
                 for effect, day, cpu in zip(effects, days, on, strict=True)]  # fmt: skip
        return [describe(graded(*asked, of=claim(**case.get("claim", {})), arms=ARMS | case.get("arms", {})))]

    assert_cases("transferability", grade)


@pytest.mark.parametrize(
    ("given", "near"),
    [
        # Along a key nothing is compared but its levels; a plain value belongs to programs and versions.
        ({"kind": "trend", "along": "threads", "direction": "rises", "cells": {"arm": "tiproxy"}}, "close"),
        ({"kind": "value", "band": {"above": 5}, "cells": {"arm": "tiproxy"}}, "kin"),
    ],
)
def test_a_course_is_near_with_another_version_where_a_value_is_not(make_study, given, near):
    asked = ClaimSpec.model_validate({"claim": "So it is.", "stands": "Here", "metric": "qps", **given})
    study = make_study(arms=ARMS, threads=(4, 8))
    assert transferability.judge_closeness(asked, DOCUMENT, study, facts(tidb="5.0.0"))[0] == near


def test_what_a_distance_costs_is_made_and_so_is_its_course(make_study):
    arms = {"haproxy": {"zones": {"latency_ms": 0}}, "tiproxy": {"zones": {"latency_ms": 1}}}
    study = make_study(arms=arms, threads=(4, 8))
    # Little's law makes a fixed delay cost less, the more threads there are.
    course = {"kind": "trend", "along": "threads", "direction": "shrinks", "band": None}
    for asked in (claim(), claim(**course)):
        assert transferability.judge_closeness(asked, DOCUMENT, study, facts())[0] == "made"


def test_the_same_programs_in_the_same_kind_of_place_are_the_same(make_study):
    document = DOCUMENT.model_copy(update={"place": "local"})
    assert transferability.judge_closeness(claim(), document, make_study(arms=ARMS), facts())[0] == "same"


def test_a_claim_of_parts_is_as_good_as_the_part_that_says_least_for_it(graded):
    one = session(-0.1)
    parts = [
        {"where": where, "scale": "share", "value": 0.2, "low": low, "high": 0.4, "band": [0.0, None]}
        for where, low in (("threads 1 to 4", 0.1), ("threads 4 to 16", -0.05))
    ]
    seen = found.findings(claims=[found.answer(*parts, claim=NAME)])
    came = graded(SessionResult(one.session, seen, one.facts))
    assert came.parts == (("threads 1 to 4", "same direction"), ("threads 4 to 16", "too wide to tell"))
    assert came.outcome == "too wide to tell"


COST = "cpu_proxy_pct / qps"
PER_QUERY = {"metric": COST, "band": {"point": "25 %"}}


def at_rates(*effects: float, half: float = 0.05, cores: float = 0.16) -> SessionResult:
    """Session whose claim was asked at offered rates; the proxy is busy as given."""
    cells = [
        {
            "where": f"at {place}",
            "value": effect,
            "low": effect - half,
            "high": effect + half,
            "decides": False,
        }
        for place, effect in enumerate(effects)
    ]
    mean = sum(effects) / len(effects)
    whole = {"where": "all of them together", "value": mean, "low": mean - half, "high": mean + half}
    put = found.answer(*cells, {**whole, "band": [0.2, 0.3]}, claim=NAME, kind="effect", metric=COST)
    cell = {
        "workload": "at-10", "threads": 4, "arm": "haproxy", "latency_us": None, "qps": {"value": 1, "n": 5},
        "parts": [{"part": "proxy", "busy_cores": {"value": cores, "n": 5}, "a_query": {}}], "places": [],
    }  # fmt: skip
    causes = {"level": 0.98, "cells": [cell], "contrasts": [], "physics": []}
    return SessionResult(session(0.0).session, found.findings(claims=[put], causes=causes), facts())


@pytest.mark.parametrize(
    ("effects", "rates", "outcome"),
    [
        # Nine, six and three tenths more at three rates are no size of 60 %.
        ((0.9, 0.6, 0.3), (10, 20, 40), "depends on the rate"),
        ((0.62, 0.6, 0.58), (10, 20, 40), "same direction, larger"),
        # Workloads may differ; so may two rates, through which any line goes.
        ((0.9, 0.6, 0.3), (0, 0, 0), "same direction, larger"),
        ((0.9, 0.3), (10, 20), "same direction, larger"),
    ],
)
def test_a_cost_per_query_that_falls_with_the_offered_rate_has_no_one_size(
    make_study, effects, rates, outcome
):
    script = {"script": "oltp_point_select"}
    workloads = {f"at-{place}": {**script, "rate": rate} for place, rate in enumerate(rates)}
    study = make_study(arms=ARMS, threads=(4,), workloads=workloads)
    came = transferability.grade_claim(NAME, claim(**PER_QUERY), DOCUMENT, study, [at_rates(*effects)])
    assert came.outcome == outcome
    if outcome == "depends on the rate":
        assert (came.low, came.high) == (pytest.approx(0.25), pytest.approx(0.95))


@pytest.mark.parametrize(("cores", "near"), [(0.16, "kin"), (2.0, "close")])
def test_a_proxy_that_hardly_works_is_another_dose_of_cpu_per_query(make_study, cores, near):
    asked, sessions = (NAME, claim(**PER_QUERY)), [at_rates(0.6, cores=cores)]
    came = transferability.grade_claim(*asked, DOCUMENT, make_study(arms=ARMS), sessions, printed=289.0)
    assert came.closeness == near
    dose = "another dose: the proxy uses 16 % of a core, the document's 289 %"
    assert came.because.startswith(dose) == (near == "kin")


def test_the_nearest_study_that_was_asked_comes_first():
    rows = {
        "a": ("made", "", "same size", (), 1, 9), "b": ("kin", "", "opposite", (), 1, 1),
        "c": ("kin", "", "too wide to tell", (), 1, 2), "d": ("close", "", "not asked"),
    }  # fmt: skip
    grades = {name: transferability.Grade(*row) for name, row in rows.items()}
    assert transferability.nearest_studies(grades) == ["b", "a", "c", "d"]


def test_a_contrast_without_an_interval_is_no_outcome(graded):
    contrast = {"baseline": "haproxy", "treatment": "tiproxy", "workload": "oltp_point_select"}
    one, own = session(-0.1), found.finding(**contrast, effect=-0.1, low=None, high=None)
    assert own.n > 1
    came = graded(SessionResult(one.session, found.findings(own), one.facts))
    assert (came.outcome, came.low) == ("not asked", None)
    # One block has no spread, whatever its ends are said to be.
    once = found.findings(found.changed(own, n=1, low=-0.12, high=-0.08))
    assert graded(SessionResult(one.session, once, one.facts)).outcome == "not asked"


def test_sides_without_an_arm_have_the_loads_of_the_tables_that_vary_what_they_name(make_study):
    # The document's table of short connections is of point selects, others of other loads.
    arms = {
        name: {"access": "tiproxy", "load": {"new_connections_per_s": number}}
        for name, number in (("short-100", 100), ("short-200", 200))
    }
    sides = {"baseline": {"new_connections_per_s": 100}, "treatment": {"new_connections_per_s": 200}}
    halves = {"oltp_point_select": 0.01, "oltp_read_write": 0.5}
    loads = {load: {} for load in halves}
    study = make_study(arms=arms, workloads=loads, settings={"max_connections": 500})
    about = {"baseline": "short-100", "treatment": "short-200", "effect": 0.0}
    own = [found.finding(**about, workload=load, low=-half, high=half) for load, half in halves.items()]
    one = SessionResult(session(0.0).session, found.findings(*own), {})
    came = transferability.grade_claim(NAME, claim(**sides, band={"point": "0 %"}), DOCUMENT, study, [one])
    assert (came.outcome, came.low, came.high) == ("same size", pytest.approx(-0.01), pytest.approx(0.01))


@pytest.mark.parametrize(
    ("band", "where"),
    [({"point": "-10 %"}, [""]), ({"range": ["-12 %", "-8 %"]}, [", at threads 4", ", at threads 16"])],
)
def test_a_range_is_asked_of_each_level_and_a_point_of_their_mean(graded, band, where):
    one = session(-0.1)
    (own,) = one.findings.findings
    levels = [found.level(threads, -0.1, -0.11, -0.09) for threads in (4, 16)]
    several = found.findings(found.changed(own, levels=levels))
    came = graded(SessionResult(one.session, several, one.facts), of=claim(band=band))
    whole = "tiproxy against haproxy, oltp_point_select"
    assert [part for part, _ in came.parts] == [f"{whole}{at}" for at in where]
