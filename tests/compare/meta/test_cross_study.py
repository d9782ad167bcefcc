"""Studies that ask the same contrast, joined by the facts of their arms."""

import math

import pytest

from benchbook.compare.meta.cross_study import build_rows, sign_reversals
from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.compare.text.cpu_models import arm_signature
from benchbook.core.artifacts import meta_analysis
from tests.compare.sessions import MILAN, finding, part, session, sessions
from tests.goldens import assert_golden


def of(study: str, *logs: float, **more):
    return pool_sessions(study, sessions(*logs, **more))


def test_a_sign_that_turns_is_the_first_word():
    (row,) = build_rows([of("quick", 0.34, 0.30), of("lab-threads", -0.20, processors=(MILAN,))])
    assert (row.first, row.studies) == ("Turns", ("quick", "lab-threads"))
    # exp(-0.2) - 1 = -0.181 and exp(0.34) - 1 = 0.405, whoever measured them.
    ends = [(one.study, one.processor, round(one.effect, 3)) for one in row.parts]
    assert min(ends, key=lambda one: one[2]) == ("lab-threads", "EPYC Zen 3", -0.181)
    assert max(ends, key=lambda one: one[2]) == ("quick", "Xeon Emerald Rapids", 0.405)
    assert_golden("sign_reversals.txt", "".join(f"{text}\n" for text in sign_reversals("lab-threads", [row])))
    assert sign_reversals("another", [row]) == []
    (both,) = build_rows([of("quick", 0.34, -0.30), of("lab-threads", -0.20, processors=(MILAN,))])
    assert sign_reversals("quick", [both]) == [], "what turns in its own sessions is its own answer"
    assert sign_reversals("lab-threads", [both])
    (row,) = build_rows([of("quick", 0.34), of("lab-threads", 0.20)])
    assert row.first == "Agrees" and sign_reversals("quick", [row]) == []
    (row,) = build_rows([of("quick", 0.001), of("lab-threads", -0.001)])
    assert row.first == "Open"


def test_one_study_alone_is_no_row():
    assert build_rows([of("quick", 0.34, -0.30)]) == []


def test_levels_are_joined_with_their_own_kind_alone():
    def at(study: str, threads: int, log: float):
        found = finding(part(log, 0.005), {threads: part(log, 0.005)})
        return pool_sessions(study, [session(found, measured="2026-11-01T06:00")])

    assert build_rows([at("quick", 8, 0.3), at("lab-threads", 16, -0.3)]) == []
    (row,) = build_rows([at("quick", 8, 0.3), at("lab-threads", 8, -0.3)])
    (whole,) = build_rows([of("quick", 0.3), of("lab-threads", -0.3)])
    assert row.name == f"{whole.name}, 8 threads"


def test_a_contrast_asked_the_other_way_round_is_turned():
    own = of("quick", 0.2)
    (contrast,) = own.contrasts
    back = contrast.model_copy(update={"baseline": contrast.treatment, "treatment": contrast.baseline})
    turned = own.model_copy(update={"study": "back", "contrasts": (back,)})
    (row,) = build_rows([own, turned])
    assert [part.effect for part in row.parts] == pytest.approx([math.expm1(0.2), math.expm1(-0.2)])
    assert [part.sign for part in row.parts] == [1, -1]
    assert row.first == "Turns"


def test_arms_are_known_by_their_facts():
    facts = {
        "engine": {"name": "mariadb", "version": "10.11"},
        "proxy": {"name": "haproxy", "version": "2.6"},
        **{"service": None, "network": "pod", "qos": "none", "neighbour": None, "zones": None},
        "site": {"kind": "kubernetes", "port": 3306},
        "cpu": {"proxy": {"cores": [1], "quota_cores": 0.5}},
    }
    assert arm_signature(facts) == {
        "site": "kubernetes", "engine": "mariadb", "proxy": "haproxy", "network": "pod", "proxy cores": "0.5",
    }  # fmt: skip


def test_all_studies_are_read_from_a_clone_and_from_a_session_wherever_the_clone_lies(tmp_path, monkeypatch):
    clone = tmp_path / "recorded" / "clone"
    for study in ("quick", "lab-threads"):
        folder = clone / "data" / "recorded" / study
        (folder / "20260101T0000Z-0001").mkdir(parents=True)
        of(study, 0.3).write(folder / meta_analysis.FILE)
    for root in (clone, clone / "data" / "recorded" / "quick" / "20260101T0000Z-0001"):
        monkeypatch.setenv("BENCHBOOK_ROOT", str(root))
        assert [one.study for one in meta_analysis.read_all()] == ["lab-threads", "quick"]
