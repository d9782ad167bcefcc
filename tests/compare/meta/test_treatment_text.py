"""One sentence on a treatment over sessions: what is told together, and what is left out first."""

import pytest

from benchbook.compare.meta.meta_analysis import pool
from benchbook.compare.meta.meta_analysis_text import words_in
from benchbook.compare.meta.treatment_text import sentence
from benchbook.core.artifacts.meta_analysis import Contrast, PooledEffect, Seen
from tests.compare.sessions import sessions


def effect(label, value, low, high, threads=None, is_expected=True) -> PooledEffect:
    """Make an effect of four sessions with its range; without a prediction it is the one that was seen."""
    ends = dict(zip(("prediction_low", "prediction_high"), (low, high), strict=True)) if is_expected else {}
    return PooledEffect(
        threads=threads,
        seen=tuple(Seen(session=f"s{one}", effect=value) for one in range(4)),
        occasions=(),
        processors=4,
        effect=value,
        range_low=low,
        range_high=high,
        label=label,
        headline=f"{label} at {threads}.",
        short="",
        **ends,
    )


def contrast(*told: PooledEffect, workload: str = "reads", metric: str = "qps") -> Contrast:
    """Make a contrast of HAProxy, told by its levels or by one number."""
    is_one = told[0].threads is None
    return Contrast(
        id=f"{workload}.haproxy.{metric}",
        workload=workload,
        baseline="direct",
        treatment="haproxy",
        metric=metric,
        names={"workload": workload, "baseline": "direct connections", "treatment": "HAProxy"},
        one_number=is_one,
        whole=told[0],
        levels=() if is_one else told,
    )


def said(*contrasts: Contrast) -> str:
    """Return the sentence with plain spaces, which has at most 25 words."""
    text = sentence(contrasts)
    assert words_in(text) <= 25
    return text.replace("\xa0", " ")


def test_one_effect_has_its_own_sentence():
    assert said(contrast(effect("on average", -0.19, -0.35, 0.03))) == "on average at None."


def test_workloads_that_agree_are_told_as_one_range():
    reads = contrast(effect("same direction", 0.16, -0.02, 0.37))
    writes = contrast(effect("holds elsewhere", 0.10, 0.02, 0.19), workload="writes")
    assert said(reads, writes) == (
        "HAProxy served 10 to 16 % more queries than direct connections; "
        "expect −2 to +37 % elsewhere (4 sessions, 4 processors)."
    )


def test_beside_more_and_fewer_a_range_of_one_sign_has_none():
    reads = contrast(effect("same direction", -0.16, -0.19, -0.10))
    writes = contrast(effect("holds elsewhere", -0.10, -0.15, -0.02), workload="writes")
    assert said(reads, writes).endswith("expect 2 to 19 % elsewhere (4 sessions, 4 processors).")
    own = [effect("not shown", -0.1, -0.15, -0.05, is_expected=False) for _ in range(2)]
    quiet = said(contrast(own[0]), contrast(own[1], workload="writes"))
    assert quiet.endswith("was shown, though 4 sessions on 4 processors measured −15 to −5 %.")


def test_two_levels_are_told_one_after_the_other():
    reads = contrast(effect("on average", -0.19, -0.35, 0.03, 1), effect("on average", 0.24, -0.12, 0.73, 8))
    writes = contrast(
        effect("on average", -0.16, -0.35, 0.08, 1),
        effect("holds elsewhere", 0.033, 0.002, 0.064, 8),
        workload="writes",
    )
    assert said(reads, writes) == (
        "At 1 thread HAProxy served 16 to 19 % fewer queries (expect −35 to +8 % elsewhere); "
        "at 8 threads 3 to 24 % more (−12 to +73 %)."
    )


def test_what_depends_on_the_machine_has_no_number_of_its_own():
    reads = contrast(
        effect("depends on the machine", 0.05, -0.09, 0.13, 4),
        effect("on average", 0.20, -0.01, 0.45, 16),
        effect("depends on the machine", 0.11, -0.08, 0.38, 64),
    )
    assert said(reads) == (
        "What HAProxy changes against direct connections depends on the machine and on threads: −9 to +45 %."
    )
    reads = contrast(
        effect("not shown", 0.0, -0.02, 0.02, 4), effect("depends on the machine", 0.0, -0.05, 0.05, 64)
    )
    assert said(reads).endswith("at 64 threads it depends on the machine.")
    assert said(reads).startswith("At 4 threads no difference between HAProxy and direct connections was")


def test_a_claim_says_on_how_many_workloads_it_is_so():
    more, quiet = effect("same direction", 0.12, 0.08, 0.16), effect("not shown", 0.0, -0.01, 0.01)
    several = [contrast(more), *(contrast(quiet, workload=f"w{one}") for one in range(3))]
    told = said(*several)
    assert "12 % more queries" in told and " on 1 of 4 workloads" in told


def test_levels_of_three_kinds_are_told_by_their_ends():
    several = [
        ("on average", -0.2, 1),
        ("not shown", 0.0, 4),
        ("on average", 0.3, 16),
        ("not shown", 0.1, 64),
    ]
    made = contrast(*(effect(label, at, at - 0.1, at + 0.1, threads) for label, at, threads in several))
    assert said(made) == (
        "What HAProxy changes against direct connections depends on threads: "
        "from −20 % at 1 thread to +30 % at 16 threads."
    )


@pytest.mark.parametrize(("value", "word"), [(0.2, "higher"), (-0.2, "lower")])
def test_a_latency_is_higher_or_lower(value, word):
    own = [
        contrast(effect("same direction", value, value - 0.1, value + 0.1), workload=one, metric="p95_ms")
        for one in ("a", "b")
    ]
    assert f"was 20 % {word} with HAProxy than with direct connections" in said(*own)


def test_neighbouring_levels_that_came_to_the_same_are_told_together():
    reads = contrast(
        effect("on average", -0.20, -0.30, -0.10, 1),
        effect("on average", -0.15, -0.30, -0.10, 4),
        effect("on average", 0.10, 0.05, 0.20, 16),
    )
    # 25 words, as many as there may be: with "than direct connections" they are 28.
    assert said(reads) == (
        "At 1 and 4 threads HAProxy served 15 to 20 % fewer queries (expect 10 to 30 % elsewhere); "
        "at 16 threads 10 % more (5 to 20 %)."
    )


def test_workloads_of_both_signs_are_told_from_one_to_the_other():
    reads = contrast(effect("same direction", 0.10, -0.10, 0.20))
    writes = contrast(effect("holds elsewhere", -0.05, -0.08, 0.0), workload="writes")
    assert said(reads, writes) == (
        "HAProxy served from 5.0 % fewer to 10 % more queries than direct connections; "
        "expect −10 to +20 % elsewhere (4 sessions, 4 processors)."
    )


def test_a_level_behind_one_that_depends_on_the_machine_says_what_it_served():
    reads = contrast(
        effect("depends on the machine", 0.05, -0.09, 0.13, 4), effect("on average", 0.20, 0.01, 0.45, 64)
    )
    assert said(reads) == (
        "At 4 threads what HAProxy changes against direct connections depends on the machine; "
        "at 64 threads it served 20 % more queries."
    )


def test_what_was_seen_is_not_told_as_expected():
    (one,) = pool("quick", sessions(0.08, -0.08, 0.08, -0.08, error=0.025)).contrasts
    assert one.whole.prediction_low is not None and one.whole.standing == "not shown"
    told = said(one, one.model_copy(update={"workload": "writes"}))
    assert told.endswith("was shown: −7.7 to +8.3 % in 4 sessions on 4 processors.")
