"""Published claims put to a study: answered, or left with a reason."""

import pytest

from benchbook.compare.claims import answerable
from benchbook.core.claim import Claim


def _claim(**changes):
    fields = {
        "kind": "effect",
        "claim": "The proxy costs a third.",
        "stands": "Summary",
        "metric": "qps",
        "baseline": {"arm": "direct"},
        "treatment": {"arm": "haproxy"},
        "band": {"point": "-30 %"},
    }
    return Claim.model_validate({**fields, **changes})


def test_a_claim_about_two_arms_of_the_study_is_put_to_them(make_study):
    found, left = answerable(make_study(threads=(4, 16)), {"source/third": _claim(cells={"threads": (4,)})})
    assert left == []
    (claim,) = found
    assert (claim.baseline, claim.treatment, claim.threads, claim.value) == ("direct", "haproxy", (4,), -0.30)
    # A fifth of 30 % is more than 2 points.
    assert (claim.band.low, claim.band.high) == pytest.approx((-0.36, -0.24))


def test_a_tolerance_of_the_source_is_kept_and_never_taken_for_the_claim(make_study):
    (claim,), _ = answerable(make_study(), {"s/c": _claim(band={"point": "2 %", "tolerance": "2 %"})})
    assert (claim.value, claim.band.low, claim.band.high) == pytest.approx((0.02, 0.0, 0.04))


def test_a_bound_is_one_sided(make_study):
    (claim,), _ = answerable(make_study(), {"s/c": _claim(band={"above": "-5 %"})})
    assert (claim.value, claim.band.low, claim.band.high) == (-0.05, -0.05, None)


def test_workloads_are_found_by_their_script_too(make_study):
    study = make_study(workloads={"reads": {"script": "oltp_read_only"}, "oltp_point_select": {}})
    (claim,), _ = answerable(study, {"s/c": _claim(cells={"workload": "oltp_read_only"})})
    assert claim.workloads == ("reads",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"treatment": {"arm": "tiproxy"}}, "no arm for arm tiproxy"),
        ({"baseline": {"arm": "direct", "version": "2.1"}}, "no arm for"),
        ({"metric": "cpu_proxy_pct / qps"}, "is not compared"),
        ({"cells": {"threads": (4, 150)}}, "thread counts"),
        ({"cells": {"workload": "oltp_read_only"}}, "workloads are not measured"),
        ({"cells": {"zone": "one"}}, "does not vary zone"),
        ({"where": ({"metric": "cpu_proxy_pct", "below": 80.0},)}, "conditions"),
    ],
)
def test_what_a_study_cannot_answer_is_said(make_study, changes, reason):
    found, (left,) = answerable(make_study(), {"source/third": _claim(**changes)})
    assert found == []
    assert left.startswith("Claim source/third is not answered")
    assert reason in left
