"""A rerun by others is judged by our effect with the band of a claimed number, or not, with a reason."""

import pytest

from benchbook.compare import reruns
from tests.found import finding, findings

# A loss of 30 % has a band of a fifth of it on each side: -36 to -24 %.
NOTHING_SHOWN = "we did not show an effect, so there is nothing to confirm"
OURS = {"id": "a", "label": "lower", "headline": True, "effect": -0.30, "low": -0.32, "high": -0.28}


def judged(ours: dict, theirs: dict | None) -> reruns.Judged:
    second = findings(*([] if theirs is None else [finding(id="a", **theirs)]))
    (one,) = reruns.judge(findings(finding(**OURS | ours)), second)
    return one


@pytest.mark.parametrize(
    ("low", "high", "verdict", "direction", "overlaps"),
    [
        (-0.35, -0.25, "confirmed", None, False),
        (-0.40, -0.25, "inconclusive", None, False),
        (-0.20, -0.10, "contradicted", "right", False),
        (0.05, 0.10, "contradicted", "opposite", False),
    ],
)
def test_their_interval_is_held_against_our_band(low, high, verdict, direction, overlaps):
    found = judged({}, {"low": low, "high": high})
    assert (found.verdict, found.direction, found.overlaps) == (verdict, direction, overlaps)
    assert (found.band.low, found.band.high) == (pytest.approx(-0.36), pytest.approx(-0.24))
    assert found.obstacle == ""


@pytest.mark.parametrize(
    ("ours", "theirs", "overlaps"),
    [
        ((-0.45, -0.15), (-0.20, -0.16), True),
        ((-0.45, -0.15), (-0.15, -0.10), True),
        ((-0.45, -0.15), (-0.149, -0.10), False),
        ((-0.45, -0.15), (-0.60, -0.45), True),
        ((-0.45, -0.15), (-0.60, -0.451), False),
    ],
)
def test_intervals_that_meet_could_both_be_true(ours, theirs, overlaps):
    found = judged(dict(zip(("low", "high"), ours, strict=True)), {"low": theirs[0], "high": theirs[1]})
    assert (found.verdict, found.overlaps) == ("contradicted", overlaps)


def test_no_practical_difference_has_the_band_it_was_shown_with():
    """One percent to each side."""
    ours = {"label": "no practical difference", "effect": 0.001, "low": -0.008, "high": 0.009}
    assert judged(ours, {"low": -0.01, "high": 0.009}).verdict == "inconclusive", "it touches an end"
    near = judged(ours, {"low": -0.0099, "high": 0.009})
    assert (near.verdict, near.band.low, near.band.high) == ("confirmed", -0.01, 0.01)
    assert judged(ours, {"low": -0.02, "high": 0.005}).verdict == "inconclusive"
    far = judged(ours, {"low": 0.10, "high": 0.20})
    assert (far.verdict, far.direction) == ("contradicted", None), "no difference has no sign"


def test_an_interval_down_to_nothing_is_still_one():
    assert judged({}, {"low": -1.0, "high": -0.25}).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("ours", "theirs", "obstacle"),
    [
        ({}, None, "the rerun has no such finding"),
        ({"headline": False}, {"low": 0, "high": 1}, NOTHING_SHOWN),
        ({"label": "not shown"}, {"low": 0, "high": 1}, NOTHING_SHOWN),
        ({}, {"low": 0, "high": 1, "headline": False}, "in the rerun the effect depends on threads"),
        ({}, {"low": None, "high": 1.0}, "the rerun has no interval"),
        ({}, {"low": 0.0, "high": float("inf")}, "the rerun has no interval"),
    ],
)  # fmt: skip
def test_what_can_not_be_judged_says_why(ours, theirs, obstacle):
    found = judged(ours, theirs)
    assert (found.obstacle, found.verdict, found.band) == (obstacle, None, None)
    assert found.first.id == "a" and (found.second is None) == (theirs is None)


def test_other_sections_than_those_that_ask_the_question_may_differ():
    own = {name: name for name in reruns.PROMISED} | {"title": "ours", "plan": 1}
    assert reruns.differing(own, own | {"title": "theirs", "plan": 2}) == []
    for name in ("question", "arms", "workloads", "threads", "claims", "dataset", "engine"):
        assert reruns.differing(own, own | {name: "other"}) == [name]
        assert reruns.differing(own, {key: own[key] for key in own if key != name}) == [name]


def test_what_an_arm_is_called_leaves_it_the_same_question():
    own = {"arms": {"a": {"access": "direct", "name": None}}}
    assert reruns.differing(own, {"arms": {"a": {"access": "direct", "name": "TiDB 6.6"}}}) == []
    assert reruns.differing(own, {"arms": {"a": {"access": "haproxy", "name": None}}}) == ["arms"]
