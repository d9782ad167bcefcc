"""Sessions pooled: which count, what each effect is over them, and the label and sentence that follow."""

import json
import math
import random
from typing import Any

import pytest

from benchbook.api.meta_analysis import effect_rows
from benchbook.compare.meta.meta_analysis import build_session, pool_sessions, standard_error
from benchbook.compare.meta.prediction_check import compare_with_prediction, describe_session
from benchbook.compare.meta.sample_size import advise_study
from benchbook.core.artifacts import meta_analysis as core
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.record import Superseded
from benchbook.core.util.errors import BenchbookError
from tests.compare.cases import DATA, assert_cases
from tests.compare.sessions import MILAN, PROCESSORS, TURIN, XEON, finding, part, session, sessions, twins
from tests.found import changed, findings, level
from tests.found import finding as findable

SESSIONS = json.loads((DATA / "quick-sessions.json").read_text())


def told(short: dict) -> Findings:
    """Return findings of which only what pooling takes was kept."""
    own, aa = [findable(**one) for one in short["findings"]], findable(**short["aa"])
    whole = findings(*own, title=short["title"], aa=aa)
    return whole.model_copy(update={"quiet": changed(whole.quiet, **short["quiet"])})


def recorded():
    """Five sessions of `quick` that were measured in November 2026."""
    return [
        build_session(one["id"], one["measured"], "a1", told(one["findings"]), one["facts"])
        for one in SESSIONS
    ]


def test_a_session_is_told_by_its_first_arms_machine_and_server():
    machines = [
        {"cpu_model": XEON, "cores": 2, "kernel": "6.1"},
        {"cpu_model": TURIN, "cores": 8, "kernel": "6.12"},
    ]
    engines = [{"name": "mariadb", "version": version} for version in ("10.11", "11.4")]
    arms = zip(("before", "after"), machines, engines, strict=True)
    facts = {arm: {"machine": machine, "engine": engine} for arm, machine, engine in arms}
    whole = told(SESSIONS[0]["findings"])
    one = build_session("s", "2026-11-01T01:00", "a1", whole, facts).session
    assert (one.cores, one.kernel, one.engine) == (2.0, "6.1", "mariadb 10.11")
    assert one.processor.name.startswith("Intel")


def only(found) -> core.PooledEffect:
    (contrast,) = found.contrasts
    return contrast.whole


def test_the_error_of_a_session_follows_from_its_interval():
    # t with 4 degrees of freedom at 98 % is 3.747.
    assert standard_error(findable(**part(0.1, 0.02))) == pytest.approx(0.02)
    wide = standard_error(level(1, 0.0, math.expm1(-3.747), math.expm1(3.747)))
    assert wide == pytest.approx(1.0, abs=1e-4)
    assert standard_error(level(1, 0.0, None, None, n=2)) is None
    assert standard_error(level(1, 0.0, -1.0, 2.0)) is None


def test_recorded_sessions_of_one_night_count_as_one_occasion():
    found = pool_sessions("quick", recorded())
    contrast = next(one for one in found.contrasts if one.id == "oltp_point_select.haproxy.qps")
    one, eight = contrast.levels
    # 06:11 · 16:58, 18:21 and 20:40 within six hours on what may be one model · 01:43 the next day.
    assert [len(occasion.sessions) for occasion in one.occasions] == [1, 3, 1]
    assert (one.k, len(one.sessions), one.processors) == (3, 5, 1)
    assert (one.prediction_low, one.label) == (None, "same direction")
    # Effects of the sessions as their pages had them.
    assert [round(100 * seen.effect, 1) for seen in eight.seen] == [-5.5, 41.2, 30.2, 35.3, 33.0]
    assert eight.label == "depends on the machine"
    assert (contrast.one_number, contrast.shown) == (False, contrast.levels)


def test_the_order_in_which_sessions_are_brought_changes_nothing():
    mixed = recorded()
    random.Random(7).shuffle(mixed)
    one, other = (pool_sessions("quick", each).model_dump_json() for each in (mixed, recorded()))
    assert one == other


def test_a_session_that_is_there_twice_is_refused():
    twice = [*recorded(), recorded()[0]]
    with pytest.raises(ValueError, match=r"2026-11-22T0611 is there twice"):
        pool_sessions("quick", twice)


def test_superseded_and_other_designs_stand_beside_with_the_reason():
    own = sessions(0.1, 0.1)
    why = Superseded(reason="its cold arm was warm", commit="1234567")
    old = session(finding(part(0.3, 0.01)), measured="2026-11-09T01:00", superseded=why)
    of_other = {"measured": "2026-11-10T01:00", "design": "b2", "differs": "run_s 8 instead of 5"}
    other = session(finding(part(0.4, 0.01)), **of_other)
    found = pool_sessions("quick", [*own, old, other])
    assert [(one.session.id, one.reason) for one in found.left_out] == [
        (old.session.id, "superseded: its cold arm was warm"),
        (other.session.id, "another design (b2, not a1): run_s 8 instead of 5"),
    ]
    assert {one.session for one in only(found).seen} == {one.session.id for one in own}
    assert found.design == "a1"
    assert pool_sessions("quick", [*own, other], design="b2").sessions == (other.session,)
    with pytest.raises(ValueError, match="no session has the design c3"):
        pool_sessions("quick", own, design="c3")
    with pytest.raises(ValueError, match="not superseded"):
        pool_sessions("quick", [old])


def test_of_designs_measured_equally_often_the_newest_counts():
    old = session(finding(part(0.1, 0.01)), measured="2026-11-01T01:00")
    new = session(finding(part(0.1, 0.01)), measured="2026-11-02T01:00", design="b2")
    assert pool_sessions("quick", [new, old]).design == "b2"


NAMES = {"XEON": XEON, "TURIN": TURIN, "MILAN": MILAN, "third": PROCESSORS[3], "fourth": PROCESSORS[4]}


def pooled_of(case: dict[str, Any]) -> core.MetaAnalysis:
    """Sessions of a case, pooled; each has one effect, or one at 1 thread and one at 8."""
    if "logs" in case:
        on = tuple(NAMES[name] for name in case["on"]) if "on" in case else PROCESSORS
        more = {"label": case["label"]} if "label" in case else {}
        made = sessions(*case["logs"], error=case.get("error", 0.005), processors=on, **more)
        return pool_sessions("quick", made)
    several = []
    for place, logs in enumerate(case["levels"], 1):
        levels = {threads: part(log, 0.005) for threads, log in zip((1, 8), logs, strict=True)}
        whole = part(sum(logs) / 2, 0.005)
        own = finding(whole, levels, headline=place != case.get("without_headline"))
        several.append(session(own, measured=f"2026-11-{place:02d}T01:00"))
    return pool_sessions("quick", several)


def later(log: float | None = None, error: float = 0.005, processor: str = "XEON", design: str = "a1"):
    """Bring a session after those of a case, whose effect may have no interval."""
    open_ = {**part(0.1, 0.1), "low": None, "high": None, "reason": "too few"}
    of = finding(open_ if log is None else part(log, error))
    return session(of, measured="2026-12-01T06:00", processor=NAMES[processor], design=design)


def per_cent(*values: float | None) -> str:
    return " to ".join("none" if value is None else f"{round(100 * value, 2) + 0.0:+.2f}" for value in values)


def describe(known: core.MetaAnalysis) -> list[str]:
    (contrast,), lines = known.contrasts, []
    for effect in (contrast.whole, *contrast.levels):
        counted = f"{effect.k} occasions on {effect.processors} models"
        expected = per_cent(effect.prediction_low, effect.prediction_high)
        told = (
            f"{effect.label} ({effect.standing}), {per_cent(effect.effect)}, expected {expected}, {counted}"
        )
        lines.append(f"{'' if effect.threads is None else f'at {effect.threads}: '}{told}")
    lines.append("one number" if contrast.one_number else "no number stands for all")
    return lines + [f"advice: {'; '.join(filter(None, one.cells))}" for one in advise_study(known)]


def describe_case(case: dict[str, Any]) -> list[str]:
    known = pooled_of(case)
    lines = describe(known)
    for given in case.get("here", ()):
        own, places = later(**given), []
        for one in compare_with_prediction(own, known):
            seen = f"{one.place}, {per_cent(one.effect)} beside {per_cent(*(one.expected or ()))}"
            places.append(f"{seen}{' (coarse)' * one.is_coarse}: ")
        lines.append(f"here {''.join(places)}{describe_session(own, known) or 'no word'}")
    return lines


def test_sessions_are_pooled_to_labels_what_is_expected_and_what_would_narrow_it():
    assert_cases("pooled", describe_case)


def test_two_sessions_within_six_hours_are_one_session_for_the_label():
    both = [session(finding(part(0.1, 0.01)), measured=f"2026-11-01T0{hour}:00") for hour in (1, 3)]
    found = only(pool_sessions("quick", both))
    assert (found.k, found.label) == (1, "one session")


def test_a_session_without_an_interval_is_named_and_not_pooled():
    nothing = {"low": None, "high": None, "reason": "an interval needs 3 blocks"}
    broken = session(finding(part(0.1, 0.01) | nothing), measured="2026-11-20T01:00")
    found = only(pool_sessions("quick", [*sessions(0.1, 0.1), broken]))
    assert (found.k, found.seen[-1].reason) == (2, "an interval needs 3 blocks")
    alone = only(pool_sessions("quick", [broken]))
    assert (alone.label, alone.effect) == ("not computed", None)


def test_the_equal_arms_are_pooled_too():
    twin = pool_sessions("quick", twins(0.001, -0.001, 0.002, 0.0)).aa
    assert twin.treatment == "direct_again"
    assert (twin.whole.k, twin.whole.label) == (4, "not shown")
    assert twin.whole.low < 0 < twin.whole.high


def test_what_is_written_is_read_again(tmp_path):
    other = session(finding(part(0.1, 0.1)), measured="2026-12-01T01:00", design="z")
    found = pool_sessions("quick", [*recorded(), other])
    path = tmp_path / "quick" / core.FILE
    path.parent.mkdir()
    found.write(path)
    assert core.MetaAnalysis.read(path) == found
    text = path.read_text().replace('"version": 1', '"version": 2')
    path.write_text(text)
    with pytest.raises(BenchbookError, match=r"quick/pooled\.json: version: .*make pages"):
        core.MetaAnalysis.read(path, core.REMEDY)


def test_last_bits_of_exp_change_no_byte(monkeypatch):
    before = pool_sessions("quick", recorded()).model_dump_json()
    exact, exact_log = math.expm1, math.log1p
    monkeypatch.setattr(math, "expm1", lambda value: math.nextafter(exact(value), math.inf))
    monkeypatch.setattr(math, "log1p", lambda value: math.nextafter(exact_log(value), -math.inf))
    assert pool_sessions("quick", recorded()).model_dump_json() == before


def test_facts_of_a_session_come_with_it():
    newest = pool_sessions("quick", recorded()).sessions[-1]
    processor = {"name": "Intel(R) Xeon(R) Processor", "family": 6, "model": 207, "stepping": 2}
    assert newest.processor == core.Processor(**processor)
    assert (newest.kernel, newest.cores, newest.steal_pct) == ("6.18.44-fc-v657", 2.0, 0.0163152)
    assert newest.engine == "mariadb 10.11.19-MariaDB-0+deb12u1"
    assert newest.proxies == {"haproxy": "2.6.12-1+deb12u4"}


def test_a_row_has_the_effect_and_what_sessions_differ_by_as_fractions():
    """Logs of 0.02, 0.02, 0.02 and 0.30 have a mean of 0.09, a variance of (3 x 0.07² + 0.21²) / 3 = 0.0196.

    Each has an error of 0.005, whose square is 0.000025: what remains is tau² = 0.019575, its root 0.1399.
    """
    found = pool_sessions("quick", sessions(0.02, 0.02, 0.02, 0.30))
    (row,) = effect_rows(found).to_dict("records")
    assert row["tau"] == pytest.approx(0.1399, rel=2e-3)
    assert row["effect"] == pytest.approx(0.0942, abs=1e-3)
    assert (row["occasions"], row["sessions"], row["processors"]) == (4, 4, 4)
