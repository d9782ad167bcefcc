"""Claims of every kind put to a study: what is asked of its cells, and what comes out, by hand."""

import math

import pandas as pd
import pytest

from benchbook.compare.claims import evaluate
from benchbook.compare.claims.evaluate import AssignedClaim
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference import findings
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.study.params import Analysis
from tests.found import runs as runs_of

# Five factors around one, so that there is a spread: their geometric mean is 1 within a hundred-thousandth.
NOISE = [1.01, 0.99, 1.005, 0.995, 1.0]
TOLD = {"claim": "It is so.", "stands": "Summary"}


def _claim(kind, **fields):
    return ClaimSpec.model_validate({"kind": kind, "metric": "qps", **TOLD, **fields})


def _runs(values, **columns):
    """Build runs from {(arm, workload, threads): qps}, five blocks with noise that differs between cells."""
    rows = [
        {
            "run_id": f"{block}-{arm}-{workload}-{threads}",
            "block": block,
            "group": f"{block}-{workload}-{threads}",
            "arm": arm,
            "workload": workload,
            "threads": threads,
            "qps": qps * NOISE[(block + place) % 5],
            **columns,
        }
        for block in range(1, 6)
        for place, ((arm, workload, threads), qps) in enumerate(values.items())
    ]
    return runs_of(rows)


def _judge(study, claim, runs, is_judged=True, **evidence):
    asked = AssignedClaim("s/c", claim, is_judged)
    assert evaluate.assign_claims(study, {asked.id: claim}, {}).left == []
    (found,) = evaluate.answer_claims(StudyEvidence(study, runs, Analysis(), **evidence), [asked])
    return found


SELECT = "oltp_point_select"


def test_a_trend_is_a_step_at_each_pair_of_levels_and_every_step_counts(make_study):
    """1000, 1500, 3000: +50 % and +100 %; both above zero, so it rises. Falling it does not."""
    runs = _runs(
        {("direct", SELECT, 4): 1000.0, ("direct", SELECT, 8): 1500.0, ("direct", SELECT, 16): 3000.0}
    )
    study = make_study(threads=(4, 8, 16))
    claim = _claim("trend", along="threads", direction="rises", cells={"arm": "direct"})
    found = _judge(study, claim, runs)
    assert [part.value for part in found.parts] == pytest.approx([0.5, 1.0], abs=0.01)
    assert (found.verdict, found.n, found.level) == ("confirmed", 5, 0.98)
    assert found.parts[0].where == "direct, oltp_point_select, threads 4 to 8"
    assert _judge(study, claim.model_copy(update={"direction": "falls"}), runs).verdict == "contradicted"


def test_one_step_that_is_not_shown_leaves_a_trend_open(make_study):
    runs = _runs(
        {("direct", SELECT, 4): 1000.0, ("direct", SELECT, 8): 1001.0, ("direct", SELECT, 16): 3000.0}
    )
    claim = _claim("trend", along="threads", direction="rises", cells={"arm": "direct"})
    found = _judge(make_study(threads=(4, 8, 16)), claim, runs)
    assert [part.outcome for part in found.parts] == ["inconclusive", "confirmed"]
    assert found.verdict == "inconclusive"


@pytest.mark.parametrize(("last", "direction"), [(950.0, "shrinks"), (400.0, "grows")])
def test_the_size_of_an_effect_is_followed_without_its_sign(make_study, last, direction):
    """−30 % at 4 threads; at 16 −5 % is less of it, −60 % is more, though both are numbers below zero."""
    runs = _runs(
        {
            ("direct", SELECT, 4): 1000.0,
            ("haproxy", SELECT, 4): 700.0,
            ("direct", SELECT, 16): 1000.0,
            ("haproxy", SELECT, 16): last,
        }
    )
    given = {"baseline": {"arm": "direct"}, "treatment": {"arm": "haproxy"}, "along": "threads"}
    study = make_study(threads=(4, 16))
    found = _judge(study, _claim("trend", direction=direction, **given), runs)
    # ln(0.95 / 0.70) is 0.305, +35.7 %; ln(0.4 / 0.7) is −0.560, −42.9 %.
    assert found.parts[0].value == pytest.approx(last / 700 - 1, abs=0.01)
    assert found.verdict == "confirmed"
    other = "grows" if direction == "shrinks" else "shrinks"
    assert _judge(study, _claim("trend", direction=other, **given), runs).verdict == "contradicted"


def test_the_size_of_nothing_has_no_trend(make_study):
    cells = {(arm, SELECT, threads): 1000.0 for threads in (4, 16) for arm in ("direct", "haproxy")}
    given = {"baseline": {"arm": "direct"}, "treatment": {"arm": "haproxy"}, "along": "threads"}
    found = _judge(make_study(threads=(4, 16)), _claim("trend", direction="shrinks", **given), _runs(cells))
    assert found.verdict == "inconclusive"
    assert found.parts[0].reason == "no effect was shown, so its size has no trend"


SIZES = {"two": {"plays": {"vcpus": 2}}, "four": {"plays": {"vcpus": 4}}, "eight": {"plays": {"vcpus": 8}}}


@pytest.mark.parametrize(
    ("qps", "power", "verdict"),
    [
        # 2, 4, 8 and 1000, 2000, 4000: slope 1. And 1000, 1200, 1440: log2(1.2) = 0.263.
        ((1000.0, 2000.0, 4000.0), 1.0, "confirmed"),
        ((1000.0, 1200.0, 1440.0), 0.263, "contradicted"),
    ],
)
def test_a_proportion_is_a_power_of_one_within_a_fifth(make_study, qps, power, verdict):
    # Half as much at 4 threads everywhere: the arm counts where it has the most.
    cells = {(arm, SELECT, 16): value for arm, value in zip(SIZES, qps, strict=True)}
    cells |= {(arm, SELECT, 4): value / 2 for arm, value in zip(SIZES, qps, strict=True)}
    study = make_study(arms=SIZES, threads=(4, 16))
    found = _judge(study, _claim("proportional", along="vcpus", cells={}), _runs(cells))
    (part,) = found.parts
    assert part.value == pytest.approx(power, abs=0.01)
    assert (part.scale, part.band) == ("power", pytest.approx([0.8, 1.2]))
    assert found.verdict == verdict


ROWS = {f"rows-{n}": {"script": "oltp_read_only", "range_size": n} for n in (10, 100)}


@pytest.mark.parametrize(("theirs", "verdict"), [(500.0, "confirmed"), (900.0, "contradicted")])
def test_two_arms_are_alike_where_one_change_is_in_the_point_band_of_the_other(make_study, theirs, verdict):
    """−52 % beside −50 % (allowed −60 to −40 %), and beside −10 % (allowed −12 to −8 %)."""
    runs = _runs(
        {
            ("direct", "rows-10", 16): 1000.0,
            ("direct", "rows-100", 16): 480.0,
            ("haproxy", "rows-10", 16): 1000.0,
            ("haproxy", "rows-100", 16): theirs,
        }
    )
    claim = _claim("same_effect", along="range_size", one={"arm": "direct"}, other={"arm": "haproxy"})
    found = _judge(make_study(workloads=ROWS, threads=(16,)), claim, runs)
    assert found.parts[0].value == pytest.approx(480 / theirs - 1, abs=0.01)
    assert found.verdict == verdict


def test_a_value_may_be_one_metric_over_another(make_study):
    """8 cores of TiDB for each core of the proxy lie in 5 to 12."""
    runs = _runs({("direct", SELECT, 4): 1000.0})
    runs = runs.assign(cpu_tidb_cores=8 * runs["qps"] / 1000, cpu_proxy_cores=1.0)
    claim = _claim("value", cells={"arm": "direct"}, band={"range": (5, 12)})
    claim = claim.model_copy(update={"metric": "cpu_tidb_pct / cpu_proxy_pct"})
    found = _judge(make_study(), claim, runs)
    (part,) = found.parts
    assert part.value == pytest.approx(8.0, rel=0.001)
    # 2 % of the value around the ends: 4.9 to 12.24.
    assert part.band == pytest.approx([4.9, 12.24])
    assert (found.verdict, part.where) == ("confirmed", "direct, oltp_point_select, 4 threads")


def test_beyond_a_number_of_connections_nothing_may_be_gained(make_study):
    """From 400 on the levels beyond 500 are held against 400: the last that is still inside."""
    cells = {("direct", SELECT, 200): 900.0, ("direct", SELECT, 400): 1000.0, ("direct", SELECT, 800): 800.0}
    study = make_study(threads=(200, 400, 800), settings={"max_connections": 2000})
    claim = _claim("peak", along="threads_per_server", cells={"arm": "direct"}, band={"below": 500})
    found = _judge(study, claim, _runs(cells))
    assert found.parts[0].value == pytest.approx(-0.2, abs=0.01)
    assert found.verdict == "confirmed"
    cells["direct", SELECT, 800] = 1500.0
    assert _judge(study, claim, _runs(cells)).verdict == "contradicted"


def test_a_unit_is_judged_by_the_metric_that_was_written(make_study):
    claim = _claim("unit", candidates=("qps", "tps"), cells={"arm": "direct"}, band={"point": 1000})
    assert _judge(make_study(), claim, _runs({("direct", SELECT, 4): 1000.0})).verdict == "confirmed"
    assert _judge(make_study(), claim, _runs({("direct", SELECT, 4): 16000.0})).verdict == "contradicted"


def test_seconds_of_a_run_are_put_together_first(make_study):
    """Bare metal has 100 a second; the slowest second of the other has 48, its fastest 92: −52 and −8 %."""
    runs = _runs({("direct", SELECT, 4): 1000.0, ("haproxy", SELECT, 4): 700.0})
    seconds = [
        {"run_id": run["run_id"], "is_discarded": second == 0, "tps": tps * NOISE[run["block"] % 5]}
        for run in runs.to_dict("records")
        for second, tps in enumerate((1.0, 100.0, 100.0) if run["arm"] == "direct" else (1.0, 48.0, 92.0))
    ]
    claim = _claim(
        "effect",
        baseline={"arm": "direct"},
        treatment={"arm": "haproxy"},
        across="second",
        by="min",
        baseline_by="mean",
        band={"point": "-52 %"},
    ).model_copy(update={"metric": "tps"})
    # The same noise in both arms leaves no spread at all, which is no evidence; so the arms differ by place.
    jitter = pd.Series([1.001, 0.999, 1.0, 1.002, 0.998])
    table = pd.DataFrame(seconds)
    is_other = table["run_id"].str.contains("haproxy")
    table.loc[is_other, "tps"] *= (
        table.loc[is_other, "run_id"].str[0].astype(int).map(lambda n: jitter[n - 1])
    )
    found = _judge(make_study(), claim, runs, intervals=table)
    assert found.parts[0].value == pytest.approx(-0.52, abs=0.005)
    assert found.verdict == "confirmed"
    fastest = claim.model_copy(update={"by": "max"})
    assert _judge(make_study(), fastest, runs, intervals=table).parts[0].value == pytest.approx(
        -0.08, abs=0.005
    )
    in_turns = _judge(make_study(), claim, runs.assign(order="turns"), intervals=table)
    assert in_turns.parts == [] and "no second belongs to one arm alone" in in_turns.reason


def test_loading_was_timed_once_so_it_shows_a_direction_and_decides_nothing(make_study):
    claim = _claim("effect", baseline={"arm": "direct"}, treatment={"arm": "haproxy"}, band={"below": "0 %"})
    claim = claim.model_copy(update={"metric": "load_s"})
    runs = _runs({("direct", SELECT, 4): 1000.0, ("haproxy", SELECT, 4): 700.0})
    found = _judge(
        make_study(), claim, runs, loads={"direct": {"seconds": 10.0}, "haproxy": {"seconds": 8.0}}
    )
    (part,) = found.parts
    assert (part.value, part.low, found.verdict) == (pytest.approx(-0.2), None, None)
    assert found.reason == (
        "loading was timed once, so there is no interval: HAProxy 8 s, direct connections 10 s"
    )


def test_what_only_illustrates_has_no_verdict(make_study):
    runs = _runs({("direct", SELECT, 4): 1000.0, ("direct", SELECT, 8): 1500.0})
    claim = _claim("trend", along="threads", direction="rises", cells={"arm": "direct"})
    found = _judge(make_study(threads=(4, 8)), claim, runs, is_judged=False)
    assert (found.verdict, found.judged, found.parts[0].outcome) == (None, False, "confirmed")


def test_nothing_is_decided_before_the_first_look(make_study):
    runs = _runs({("direct", SELECT, 4): 1000.0, ("direct", SELECT, 8): 1500.0})
    claim = _claim("trend", along="threads", direction="rises", cells={"arm": "direct"})
    found = _judge(make_study(threads=(4, 8)), claim, runs[runs["block"] < 5])
    assert (found.verdict, found.n) == (None, 4)
    assert found.reason == "nothing is decided before 5 blocks; there are 4"


def test_conditions_on_processor_time_choose_the_cells(make_study):
    """At 4 threads the proxy uses 0.5 of its 4 cores, at 16 3.0 of them: 12 % and 75 %."""
    arms = {"haproxy": {"access": "haproxy"}, "tiproxy": {"access": "tiproxy"}}
    runs = _runs({(arm, SELECT, threads): 1000.0 for arm in arms for threads in (4, 16)})
    runs = runs.assign(
        cpu_proxy_cores=runs["threads"].map({4: 0.5, 16: 3.0}),
        lowest_qps=runs["qps"] * runs["arm"].map({"haproxy": 1.0, "tiproxy": 0.9}),
    )
    claim = _claim(
        "effect",
        baseline={"arm": "haproxy"},
        treatment={"arm": "tiproxy"},
        where=({"metric": "cpu_proxy_pct", "above": 240.0, "below": 320.0, "whole": 400.0},),
        band={"point": "-10 %"},
    ).model_copy(update={"metric": "qps_min"})
    facts = {arm: {"cpu": {"proxy": {"quota_cores": 4}}} for arm in arms}
    study = make_study(arms=arms, threads=(4, 16))
    found = _judge(study, claim, runs, facts=facts)
    assert found.parts[0].value == pytest.approx(-0.1, abs=0.005)
    none = claim.where[0].model_copy(update={"above": 390.0, "below": 400.0})
    nothing = _judge(study, claim.model_copy(update={"where": (none,)}), runs, facts=facts)
    assert "no cell has the proxy at 98% to 100% of its CPU" in nothing.reason


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (_claim("trend", along="zone", direction="rises", cells={"arm": "direct"}), "does not vary zone"),
        (
            _claim("trend", along="threads", direction="rises", cells={"arm": "direct"}),
            "fewer than two levels",
        ),
        (_claim("trend", along="threads", direction="rises", cells={"arm": "tiproxy"}), "no arm tiproxy"),
        (_claim("value", cells={"table": "best"}, band={"point": 1}), "does not vary table"),
        (_claim("proportional", along="vcpus", cells={}), "does not vary vCPUs"),
        (_claim("peak", along="threads", cells={"arm": "direct"}, band={"below": 500}), "none outside"),
        (ClaimSpec(kind="text_only", published="4 to 1", because="No table.", **TOLD), "without a number"),
        (
            _claim("value", cells={"arm": "direct"}, band={"point": 1}).model_copy(update={"metric": "gb"}),
            "gb is not measured",
        ),
    ],
)
def test_what_a_study_cannot_be_asked_is_said(make_study, claim, reason):
    put = evaluate.assign_claims(make_study(), {"s/c": claim}, {})
    assert (put.effects, put.asked) == ([], [])
    (left,) = put.left
    assert left.startswith("Claim s/c is not answered") and reason in left


def test_an_effect_of_throughput_stays_a_finding(make_study):
    effect = _claim("effect", baseline={"arm": "direct"}, treatment={"arm": "haproxy"}, band={"point": "7 %"})
    judged = evaluate.assign_claims(make_study(), {"s/c": effect}, {})
    shown = evaluate.assign_claims(make_study(), {}, {"s/c": effect})
    assert (len(judged.effects), judged.asked, judged.left) == (1, [], [])
    assert shown == evaluate.ClaimAssignment([], [], [])


def test_findings_hold_them_and_count_their_verdicts(make_study, make_runs, no_voids, no_histograms):
    """The proxy has 0.70 at 4 threads and 0.90 at 16: its cost shrinks. Without a claim the key is absent."""
    ratios = {"haproxy": {4: [0.70, 0.71, 0.69, 0.70, 0.70], 16: [0.90, 0.91, 0.89, 0.90, 0.905]}}
    tidy = {"runs": make_runs(ratios), "voids": no_voids, "histograms": no_histograms}
    claim = _claim(
        "trend",
        baseline={"arm": "direct"},
        treatment={"arm": "haproxy"},
        along="threads",
        direction="shrinks",
    )
    study = make_study(threads=(4, 16))
    made = findings.build_findings(
        "s", study, tidy, Analysis(), assigned_claims=[AssignedClaim("s/c", claim, True)]
    )
    (one,) = made.claims
    assert (one.verdict, made.verdicts.number) == ("confirmed", 1)
    # ln 0.9 − ln 0.7 is 0.2513, which is +28.6 %.
    assert one.parts[0].value == pytest.approx(math.exp(0.2513) - 1, abs=0.005)
    assert findings.build_findings("s", study, tidy, Analysis()).claims is None
