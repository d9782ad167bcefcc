"""What orders an effect over sessions: found where it is planted, and silent about the rest."""

import math

import pytest

from benchbook.compare.meta import moderators
from benchbook.compare.meta.meta_analysis import pool_sessions
from tests.compare.sessions import finding, part, session

WAKES = (8.0, 11.0, 14.0, 16.0, 21.0, 30.0)


def asked_of(effects, **probes):
    """Pool a session a day and ask what orders its effects; `probes` have a value for each."""
    sessions = [
        session(
            finding(part(math.log1p(effect), 0.005)),
            measured=f"2026-11-{10 + day}T0{day % 3}:00Z",
            probes={name: values[day] for name, values in probes.items() if values[day] is not None},
        )
        for day, effect in enumerate(effects)
    ]
    pooled = pool_sessions("quick", sessions)
    contrast = pooled.contrasts[0]
    asked = moderators.rank_moderators(pooled, contrast.whole)
    return asked, moderators.describe_best(contrast, contrast.whole, asked)


def test_the_planted_moderator_is_named_with_all_that_were_asked():
    effects = (-0.18, -0.12, -0.04, 0.05, 0.17, 0.33)
    calls = (200.0, 300.0, 180.0, 250.0, 400.0, 220.0)
    asked, said = asked_of(effects, wake_other_core_us=WAKES, system_call_ns=calls)
    best, *rest = asked
    assert best.name == "wake_other_core_us" and best.rho == pytest.approx(1)
    # Of 720 orders only the first and the last correlate as much; a call and the hour were asked as well.
    assert 2 / 720 <= best.p < 0.05 and best.asked == 3 and all(one.p > 0.05 for one in rest)
    assert "the more waking the other core (µs), the higher the effect" in said and "6 occasions" in said


def test_four_sessions_decide_nothing_and_three_are_not_asked():
    # The most extreme of 24 orders, and its mirror image, are 2/24 = 0.083.
    asked, said = asked_of((-0.1, 0.0, 0.1, 0.2), wake_other_core_us=WAKES[:4])
    assert said is None and min(one.p for one in asked) >= 2 / 24 - 1e-9
    assert asked_of((-0.1, 0.0, 0.1), wake_other_core_us=WAKES[:3]) == ([], None)


def test_one_that_few_sessions_tell_of_hides_no_other():
    # Four sessions have 24 orders, so what only they tell of is never rarer than 2/24.
    effects = (-0.18, -0.12, -0.04, 0.05, 0.17, 0.33)
    few = (None, None, 0.1, 0.4, 0.2, 0.3)
    (best, *_), said = asked_of(effects, wake_other_core_us=WAKES, flush_ms=few)
    assert best.name == "wake_other_core_us" and best.p < 0.05 and said is not None


def test_a_moderator_that_few_sessions_tell_of_is_asked_of_those():
    wakes = (None, *WAKES[1:])
    (best, *_), _ = asked_of((-0.18, -0.12, -0.04, 0.05, 0.17, 0.33), wake_other_core_us=wakes)
    assert best.name == "wake_other_core_us" and len(best.effects) == 5


@pytest.mark.parametrize(
    ("p_values", "rho", "said"),
    [
        # On its bound nothing is shown.
        ((0.05, 0.06), 0.9, None),
        ((0.049, 0.05), 0.9, "the higher the effect; rank correlation +0.90 over 4 occasions, p = 0.049 "),
        ((0.03, 0.04), -0.9, "the lower the effect (so does 1 other); rank correlation -0.90 over 4 occ"),
        ((0.02, 0.03, 0.04), 0.9, "the higher the effect (so do 2 others); rank correlation"),
    ],
)
def test_the_first_of_those_that_order_an_effect_is_told_and_how_many_more_do(p_values, rho, said):
    pooled = pool_sessions("quick", [session(finding(part(0.1, 0.005)), measured="2026-11-10T00:00Z")])
    (contrast,) = pooled.contrasts
    values = (1.0, 2.0, 3.0, 4.0)
    found = [
        moderators.ModeratorCorrelation("steal_pct", values, values, rho, p, len(p_values)) for p in p_values
    ]
    told = moderators.describe_best(contrast, contrast.whole, found)
    if said is None:
        assert told is None
    else:
        assert told is not None and told.startswith("HAProxy on point selects: the more steal (%), the ")
        assert said in told and told.endswith(f"with all {len(p_values)} that were asked.")
    at_one = contrast.whole.model_copy(update={"threads": 1})
    assert told is None or " on point selects at 1 thread:" in moderators.describe_best(
        contrast, at_one, found
    )
    at_two = contrast.whole.model_copy(update={"threads": 2})
    assert told is None or " on point selects at 2 threads:" in moderators.describe_best(
        contrast, at_two, found
    )
