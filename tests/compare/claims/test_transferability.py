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
from tests.compare.sessions import PROCESSORS

XEON = "Intel(R) Xeon(R) Processor (family 6, model 207, stepping 2)"
EPYC = "AMD EPYC (family 26, model 2, stepping 1)"
ARMS = {"haproxy": {"access": "haproxy"}, "tiproxy": {"access": "tiproxy"}}
NAME = "tiproxy-haproxy/of-ours"
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
    when = StudySession(
        id=f"s{day}",
        measured=f"2026-11-{day:02d}T00:00",
        design="d",
        processor=cpu_models.parse_processor(cpu),
    )
    return SessionResult(when, found.findings(own), given.get("facts") or facts())


@pytest.fixture
def graded(make_study):
    def grade(*sessions, of=None, arms=None):
        study = make_study(arms=arms or ARMS, threads=(4,), workloads={"oltp_point_select": {}})
        return transferability.grade_claim(
            NAME, of or claim(), source.load_source("tiproxy-haproxy"), study, sessions
        )

    return grade


@pytest.mark.parametrize(
    ("given", "near", "why"),
    [
        # The document has TiDB 8.0.0, TiProxy 1.0.0 and 1.3.0, HAProxy 2.9.0, on hosts; this study is local.
        (facts(), "close", "on local, the document's on ssh"),
        (facts(tiproxy="v1.3.0"), "close", "on local"),
        (facts(haproxy="2.9.6"), "close", "HAProxy 2.9.6 for 2.9.0"),
        (facts(haproxy="2.6.12-1+deb12u4"), "kin", "HAProxy 2.6.12-1+deb12u4 for 2.9.0"),
        (facts(engine="mariadb", tidb="10.11.6"), "kin", "MariaDB is not in the document"),
        (facts(storage="embedded (unistore)"), "kin", "embedded storage is not in the document"),
        # Both arms have the cluster, so that what is compared does not depend on which one it is.
        (facts(tidb="5.0.0"), "close", "TiDB 5.0.0 for 8.0.0, on both sides"),
        (facts(storage="unistore, not TiKV: 3 stores"), "close", "unistore, not TiKV"),
        ({}, "kin", "nothing is known of its programs yet"),
    ],
)
def test_closeness_follows_from_programs_and_their_versions(graded, given, near, why):
    found = graded(session(-0.1, facts=given)) if given else graded()
    assert found.closeness == near
    assert why in found.because


@pytest.mark.parametrize(
    ("given", "near"),
    [
        # Along a key nothing is compared but its levels; a plain value belongs to programs and versions.
        ({"kind": "trend", "along": "threads", "direction": "rises", "cells": {"arm": "tiproxy"}}, "close"),
        ({"kind": "value", "band": {"above": 5}, "cells": {"arm": "tiproxy"}}, "kin"),
    ],
)
def test_a_course_is_near_with_another_version_where_a_value_is_not(make_study, given, near):
    told = {"claim": "So it is.", "stands": "Here", "metric": "qps"}
    asked = ClaimSpec.model_validate({**told, **given})
    study = make_study(arms=ARMS, threads=(4, 8))
    seen = transferability.judge_closeness(
        asked, source.load_source("tiproxy-haproxy"), study, facts(tidb="5.0.0")
    )
    assert seen[0] == near


def test_what_a_distance_costs_is_made_and_so_is_its_course(make_study):
    arms = {"haproxy": {"zones": {"latency_ms": 0}}, "tiproxy": {"zones": {"latency_ms": 1}}}
    study = make_study(arms=arms, threads=(4, 8))
    document = source.load_source("tiproxy-haproxy")
    course = {"kind": "trend", "along": "threads", "direction": "shrinks", "band": None}
    assert transferability.judge_closeness(claim(), document, study, facts())[0] == "made"
    # Little's law makes a fixed delay cost less, the more threads there are.
    assert transferability.judge_closeness(claim(**course), document, study, facts())[0] == "made"


def test_the_same_programs_in_the_same_kind_of_place_are_the_same(make_study):
    document = source.load_source("tiproxy-haproxy").model_copy(update={"place": "local"})
    study = make_study(arms=ARMS, threads=(4,))
    assert transferability.judge_closeness(claim(), document, study, facts())[0] == "same"


@pytest.mark.parametrize(
    "dial", [{"cpu": {"server": {"quota": 0.5}}}, {"qos": "best_effort", "neighbour": {"processes": 2}}]
)
def test_an_effect_that_a_setting_of_the_study_makes_counts_for_nothing(graded, dial):
    arms = {"haproxy": {"access": "haproxy"}, "tiproxy": {"access": "tiproxy", **dial}}
    found = graded(
        *(session(-0.1, day=day, cpu=cpu) for day, cpu in ((1, XEON), (2, EPYC), (3, XEON))), arms=arms
    )
    assert (found.closeness, found.outcome, found.carries_over) == ("made", "same direction", False)


def test_a_study_without_the_arms_of_a_claim_asks_another_question(graded):
    found = graded(session(-0.1), of=claim(treatment={"arm": "proxysql"}))
    assert (found.closeness, found.outcome) == ("another question", "not asked")
    assert found.because == "the study has no arm proxysql"


@pytest.mark.parametrize(
    ("effects", "half", "outcome"),
    [
        # 10 % lower allows 8 to 12 % lower. Below three processors there is no prediction interval.
        ([-0.1], 0.005, "same direction"),
        ([-0.04], 0.005, "same direction, smaller"),
        ([-0.2], 0.005, "same direction, larger"),
        ([0.1], 0.005, "opposite"),
        # 0 +- 1 % ends well before 8 %; -4 % +- 9 % does not.
        ([0.0], 0.01, "not seen"),
        ([-0.04], 0.09, "too wide to tell"),
        ([-0.1, 0.1], 0.005, "depends on the machine"),
        ([-0.1, -0.101, -0.099, -0.1], 0.002, "same size"),
        # Scattered so widely, a fifth may lie anywhere, though all four lie on one side.
        ([-0.02, -0.1, -0.18, -0.1], 0.002, "too wide to tell"),
    ],
)
def test_outcomes_over_sessions(graded, effects, half, outcome):
    days = enumerate(zip(effects, PROCESSORS, strict=False), start=1)
    found = graded(*(session(effect, half, day, cpu) for day, (effect, cpu) in days))
    assert found.outcome == outcome
    assert (found.sessions, found.occasions, found.processors) == (len(effects),) * 3


def test_where_no_difference_was_claimed_an_interval_inside_holds_it(graded):
    nothing = claim(band={"point": "0 %"})
    assert graded(session(0.005, 0.005), of=nothing).outcome == "same size"
    assert graded(session(0.05, 0.005), of=nothing).outcome == "outside the claim"
    assert graded(session(0.015, 0.01), of=nothing).outcome == "too wide to tell"


def test_it_carries_over_with_three_processors_and_four_occasions(graded):
    own = [session(-0.1, 0.005, day, PROCESSORS[day % 3]) for day in (1, 2, 3, 4)]
    found = graded(*own)
    assert (found.closeness, found.carries_over) == ("close", True)
    assert (found.occasions, found.processors) == (4, 3)
    assert not graded(*own[:3]).carries_over
    assert not graded(*(session(-0.1, 0.005, day, PROCESSORS[day % 2]) for day in (1, 2, 3, 4))).carries_over
    # Two sessions of one night on one processor are one occasion.
    assert graded(session(-0.1), session(-0.11, day=1)).occasions == 1


def test_the_range_of_the_sessions_is_shown_before_there_is_a_prediction(graded):
    found = graded(session(-0.1, 0.01))
    # ln 0.9 is -0.10536, so -0.11536 and -0.09536: -10.9 and -9.1 %.
    assert (found.low, found.high) == pytest.approx((-0.10895, -0.09096), abs=1e-4)


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
    document = source.load_source("tiproxy-haproxy")
    came = transferability.grade_claim(NAME, claim(**PER_QUERY), document, study, [at_rates(*effects)])
    assert came.outcome == outcome
    if outcome == "depends on the rate":
        assert (came.low, came.high) == (pytest.approx(0.25), pytest.approx(0.95))


@pytest.mark.parametrize(("cores", "near"), [(0.16, "kin"), (2.0, "close")])
def test_a_proxy_that_hardly_works_is_another_dose_of_cpu_per_query(make_study, cores, near):
    study = make_study(arms=ARMS, threads=(4,))
    document, told = source.load_source("tiproxy-haproxy"), at_rates(0.6, cores=cores)
    came = transferability.grade_claim(NAME, claim(**PER_QUERY), document, study, [told], printed=289.0)
    assert came.closeness == near
    dose = "another dose: the proxy uses 16 % of a core, the document's 289 %"
    assert came.because.startswith(dose) == (near == "kin")


def test_the_nearest_study_that_was_asked_comes_first():
    made = transferability.Grade("made", "", "same size", occasions=9)
    kin = transferability.Grade("kin", "", "opposite", occasions=1)
    often = transferability.Grade("kin", "", "too wide to tell", occasions=2)
    close = transferability.Grade("close", "", "not asked")
    assert transferability.nearest_studies({"a": made, "b": kin, "c": often, "d": close}) == [
        "b",
        "a",
        "c",
        "d",
    ]


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
    loads = {"oltp_point_select": {}, "oltp_read_write": {}}
    study = make_study(arms=arms, threads=(4,), workloads=loads, settings={"max_connections": 500})
    own = [
        found.finding(
            baseline="short-100", treatment="short-200", workload=load, effect=0.0, low=-half, high=half
        )
        for load, half in (("oltp_point_select", 0.01), ("oltp_read_write", 0.5))
    ]
    one = SessionResult(session(0.0).session, found.findings(*own), {})
    asked = claim(**sides, band={"point": "0 %"})
    came = transferability.grade_claim(NAME, asked, source.load_source("tiproxy-haproxy"), study, [one])
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
