"""Published claims put to a study: answered, or left with a reason."""

import pandas as pd
import pytest

from benchbook.compare.claims import evaluate
from benchbook.compare.claims.metrics import DERIVED
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference.contrasts import contrast_candidates
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.study.params import Analysis


def answerable(study, claims):
    """Return the contrasts that answer claims, and why others are not answered."""
    put = evaluate.assign_claims(study, claims, {})
    return put.effects, put.left


FIELDS = {
    "kind": "effect", "claim": "The proxy costs a third.", "stands": "Summary", "metric": "qps",
    "baseline": {"arm": "direct"}, "treatment": {"arm": "haproxy"}, "band": {"point": "-30 %"},
}  # fmt: skip
PROXIES = {"baseline": {"arm": "haproxy"}, "treatment": {"arm": "tiproxy"}, "band": {"point": "25 %"}}


def _claim(**changes):
    return ClaimSpec.model_validate(FIELDS | changes)


def test_a_claim_about_two_arms_of_the_study_is_put_to_them(make_study):
    claims, left = answerable(make_study(threads=(4, 16)), {"source/third": _claim(cells={"threads": (4,)})})
    assert left == []
    (claim,) = claims
    assert (claim.baseline, claim.treatment, claim.threads, claim.value) == ("direct", "haproxy", (4,), -0.30)
    # A fifth of 30 % is more than 2 points.
    assert (claim.band.low, claim.band.high) == pytest.approx((-0.36, -0.24))


@pytest.mark.parametrize(
    ("band", "ends"),
    # A tolerance of the source is never taken for the claim; a bound is one-sided.
    [({"point": "2 %", "tolerance": "2 %"}, (0.02, 0.0, 0.04)), ({"above": "-5 %"}, (-0.05, -0.05, None))],
)
def test_a_tolerance_of_the_source_is_kept_and_a_bound_is_one_sided(make_study, band, ends):
    (claim,), _ = answerable(make_study(), {"s/c": _claim(band=band)})
    assert (claim.value, claim.band.low, claim.band.high) == pytest.approx(ends)


def test_workloads_are_found_by_their_script_too(make_study):
    study = make_study(workloads={"reads": {"script": "oltp_read_only"}, "oltp_point_select": {}})
    (claim,), _ = answerable(study, {"s/c": _claim(cells={"workload": "oltp_read_only"})})
    assert claim.workloads == ("reads",)


def test_a_claim_of_several_treatments_is_put_to_each_arm_that_bears_such_a_load(make_study):
    arms = {f"idle-{n}": {"access": "haproxy", "load": {"idle_connections": n}} for n in (5000, 10000, 15000)}
    study = make_study(arms=arms, threads=(16,), settings={"max_connections": 20000})
    sides = {"baseline": {"idle_connections": 5000}, "treatment": {"idle_connections": (10000, 15000)}}
    claim = _claim(**sides, band={"point": "0 %"}, judged_by="every_cell")
    claims, left = answerable(study, {"s/idle": claim})
    assert left == []
    contrasts = [(one.baseline, one.treatment) for one in claims]
    assert contrasts == [("idle-5000", "idle-10000"), ("idle-5000", "idle-15000")]
    # A machine that can't bear 15,000 is asked about 10,000; one that bears neither is not asked.
    most = {"max_connections": 20000}
    fewer = make_study(arms={name: arms[name] for name in list(arms)[:2]}, threads=(16,), settings=most)
    assert [one.treatment for one in answerable(fewer, {"s/idle": claim})[0]] == ["idle-10000"]
    neither = make_study(arms={"idle-5000": arms["idle-5000"], "direct": {}}, threads=(16,), settings=most)
    assert "no idle connections 10000 and 15000" in answerable(neither, {"s/idle": claim})[1][0]
    # Their mean is no contrast, and neither is each of two thread levels: the study's cells answer these.
    both = evaluate.assign_claims(study, {"s/idle": claim.model_copy(update={"judged_by": None})}, {})
    two = make_study(arms=arms, threads=(4, 16), settings={"max_connections": 20000})
    each = evaluate.assign_claims(two, {"s/idle": claim}, {})
    assert [(put.effects, len(put.asked), put.left) for put in (both, each)] == [([], 1, [])] * 2


def test_an_arm_of_another_name_says_what_it_plays(make_study):
    arms = {"plain": {"plays": {"arm": "direct"}}, "relay": {"access": "haproxy"}}
    study = make_study(arms=arms)
    _, (left,) = answerable(study, {"s/c": _claim()})
    assert "no arm haproxy" in left
    arms["relay"]["plays"] = {"arm": "haproxy"}
    (claim,), _ = answerable(make_study(arms=arms), {"s/c": _claim()})
    assert (claim.baseline, claim.treatment) == ("plain", "relay")
    # What an arm plays is for reading alone: it asks for no run to be made again.
    assert study.arms["plain"].setting == {"access": "direct"}


def test_processor_time_for_a_query_is_compared_where_a_source_claims_something_about_it(make_study):
    """20 % more processor time at 20 % fewer queries: half as much again for each query."""
    study = make_study(arms=("haproxy", "tiproxy"))
    answered, left = answerable(study, {"s/cpu": _claim(metric="cpu_proxy_pct / qps", **PROXIES)})
    rows = [
        (f"{arm}-{block}", block, f"b{block}", arm, "oltp_point_select", 4, qps, cores)
        for block in range(1, 6)
        for arm, qps, cores in (("haproxy", 1000.0 + block, 0.5), ("tiproxy", 800.0 + 0.8 * block, 0.6))
    ]
    columns = ["run_id", "block", "group", "arm", "workload", "threads", "qps", "cpu_proxy_cores"]
    evidence = StudyEvidence(study, pd.DataFrame(rows, columns=columns), Analysis())
    throughput, processor = contrast_candidates(evidence, answered)
    assert (throughput.claim, throughput.effect.contrast.metric) == (None, "qps")
    assert processor.effect.contrast.metric == "cpu_proxy_for_a_query"
    assert processor.effect.interval.effect == pytest.approx(0.5)
    assert left == [] and processor.claim.id == "s/cpu"


def test_a_claim_about_tidbs_processors_reads_those_of_tidb_and_not_of_its_storage(make_study):
    study = make_study(arms=("haproxy", "tiproxy"))
    columns = {"cpu_tidb_pct": "cpu_tidb_cores", "cpu_tidb_pct / qps": "cpu_tidb_for_a_query"}
    for metric, column in columns.items():
        ((answered,), left) = answerable(study, {"s/cpu": _claim(metric=metric, **PROXIES)})
        assert (answered.metric, left) == (column, [])
    assert DERIVED["cpu_tidb_for_a_query"] == ("cpu_tidb_cores", "qps")
