"""findings.json as a whole: structure, fail-closed cases, and the same bytes for the same input."""

import json

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.inference import findings
from benchbook.compare.stats.equivalence import point_band
from benchbook.compare.text import worked_arithmetic
from benchbook.compare.text.results_table import build_results, describe_aa, describe_help, rows_of_finding
from benchbook.core.artifacts.findings import Attempts, BlockCounts, Verdicts
from benchbook.core.study.params import Analysis
from benchbook.core.util import histogram

LOWER = [0.690, 0.685, 0.693, 0.688, 0.684]
SAME = [1.001, 0.999, 1.002, 0.998, 1.0]
AA = {"workloads": ["oltp_point_select"], "threads": [4]}


@pytest.fixture
def found(make_study, no_voids, no_histograms):
    def make(runs, study=None, claims=(), voids=no_voids, histograms=no_histograms, **given):
        tidy = {"runs": runs, "voids": voids, "histograms": histograms}
        return findings.build_findings("quick", study or make_study(), tidy, Analysis(), claims, **given)

    return make


def test_a_clear_study_says_so_in_numbers(found, make_runs, make_study):
    made = found(make_runs({"haproxy": {4: LOWER}, "direct_again": {4: SAME}}), make_study(aa=AA))
    (one,) = made.findings
    assert one.id == "oltp_point_select.haproxy.qps"
    assert (one.label, one.n, one.level, one.headline) == ("lower", 5, 0.98, True)
    assert (one.low, one.high) == (pytest.approx(-0.318, abs=5e-4), pytest.approx(-0.306, abs=5e-4))
    assert made.aa.treatment == "direct_again"
    assert made.aa.label == "no practical difference"
    assert made.blocks == BlockCounts(planned=5, complete=5)
    assert (made.look.n, made.look.next) == (5, 10)
    assert (one.pairs, len(one.runs)) == (5, 10)
    assert made.warnings == []


def test_the_machines_speed_is_taken_out_beside_the_interval_that_decides(found, make_runs, make_study):
    """Noise of the machine that its loop saw goes out of a second interval; without a loop there is none."""
    runs = make_runs({"haproxy": {4: LOWER + LOWER}, "direct_again": {4: SAME + SAME}})
    random = np.random.default_rng(5)
    moved = np.exp(random.normal(0, 0.05, len(runs)))
    seen = found(runs.assign(qps=runs.qps * moved, machine_speed=30 * moved))
    one = seen.findings[0]
    assert one.speed_adjusted.high - one.speed_adjusted.low < (one.high - one.low) / 2
    assert one.speed_adjusted.slope == pytest.approx(1.0, abs=0.1)
    assert any(text.startswith("adjusted for the machine's speed: ") for text in one.warnings)
    plain = found(runs.assign(qps=runs.qps * moved)).findings[0]
    assert (plain.speed_adjusted, plain.low, plain.label) == (None, one.low, one.label)


def test_what_an_arm_is_called_changes_words_and_no_number(found, make_runs, make_study):
    runs = make_runs({"haproxy": {4: LOWER}, "direct_again": {4: SAME}})
    arms = {"direct": {"access": "direct"}, "haproxy": {"access": "haproxy"}}
    named = {"direct": arms["direct"] | {"name": "the n1 machine"}, "haproxy": arms["haproxy"]}
    plain, other = (found(runs, make_study(arms=one, aa=AA)) for one in (arms, named))
    assert other.names.arms == {
        "direct": "the n1 machine",
        "haproxy": "HAProxy",
        "direct_again": "the n1 machine again",
    }
    assert other.findings[0].names.baseline == "the n1 machine"
    assert other.findings[0].baseline == "direct"
    text = json.dumps(other.plain).replace("the n1 machine", "direct connections")
    assert json.loads(text) == plain.plain


def test_the_same_input_in_any_order_gives_the_same_bytes(found, make_runs, make_study, tmp_path):
    runs = make_runs({"haproxy": {4: LOWER, 16: SAME}, "direct_again": {4: SAME}})
    study = make_study(aa=AA, threads=(4, 16))
    for name, table in (("a", runs), ("b", runs.sample(frac=1, random_state=1))):
        found(table, study).write(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert findings.Findings.read(tmp_path / "a") == found(runs, study)


def test_nothing_in_it_is_nan_or_a_foreign_type(found, make_runs):
    json.dumps(found(make_runs({"haproxy": {4: LOWER[:2]}})).plain, allow_nan=False)


def test_floats_carry_eight_digits(found, make_runs):
    (one,) = found(make_runs({"haproxy": {4: LOWER}})).findings
    for value in (one.effect, one.low, one.detectable_effect):
        assert value == float(f"{value:.8g}")


@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_before_the_first_look_there_is_no_verdict(found, make_runs, blocks):
    claim = ClaimedEffect("s/c", "direct", "haproxy", -0.31, point_band(-0.31))
    made = found(make_runs({"haproxy": {4: LOWER[:blocks]}}), claims=[claim])
    (one,) = made.findings
    assert (one.label, one.verdict) == ("not decided yet", None)
    assert (one.low is None) == (blocks < 3)
    assert one.effect is not None
    assert made.look.n == 0
    assert any("first look" in warning.text for warning in made.warnings)


def test_between_looks_only_the_blocks_of_the_last_look_count(found, make_runs):
    made = found(make_runs({"haproxy": {4: [*LOWER, 5.0, 5.0]}}))
    (one,) = made.findings
    assert one.n == 5
    assert one.effect == pytest.approx(-0.312, abs=1e-3)
    assert "2 blocks after the look at 5 wait for the next look" in one.warnings
    assert made.blocks.complete == 7


def test_the_last_planned_block_past_the_first_look_is_a_look(found, make_runs, make_study):
    made = found(make_runs({"haproxy": {4: [*LOWER, 0.69, 0.70]}}), make_study(blocks=7))
    assert (made.findings[0].n, made.look.n, made.look.next) == (7, 7, None)
    assert made.look.note == "judged at 7 blocks, the last look"


def test_a_claim_has_its_band_verdict_and_the_way_to_more_certainty(found, make_runs):
    claim = ClaimedEffect("source/third", "direct", "haproxy", -0.30, point_band(-0.30))
    wide = [0.60, 0.75, 0.70, 0.66, 0.73]
    (sure,) = found(make_runs({"haproxy": {4: LOWER}}), claims=[claim]).findings
    (unsure,) = found(make_runs({"haproxy": {4: wide}}), claims=[claim]).findings
    assert (sure.claim, sure.verdict) == ("source/third", "confirmed")
    assert sure.band == pytest.approx([-0.36, -0.24])
    assert unsure.verdict == "inconclusive"
    # A block is two runs of 10 s.
    assert unsure.more_blocks.minutes == pytest.approx(unsure.more_blocks.blocks / 3)


def test_further_claims_and_other_baselines_are_findings_of_their_own(found, make_runs, make_study):
    runs = make_runs({"haproxy": {4: LOWER, 16: LOWER}, "tiproxy": {4: SAME, 16: SAME[::-1]}})
    study = make_study(arms=("direct", "haproxy", "tiproxy"), threads=(4, 16))
    claims = [
        ClaimedEffect("a/whole", "direct", "haproxy", -0.3, point_band(-0.3)),
        ClaimedEffect("b/again", "direct", "haproxy", -0.1, point_band(-0.1)),
        ClaimedEffect("a/few", "direct", "haproxy", -0.3, point_band(-0.3), threads=(4,)),
        ClaimedEffect("a/other", "haproxy", "tiproxy", 0.45, point_band(0.45)),
    ]
    made = found(runs, study, claims)
    names = [one.id for one in made.findings]
    assert names == [
        "oltp_point_select.haproxy.qps",
        "oltp_point_select.tiproxy.qps",
        "oltp_point_select.haproxy.qps.b-again",
        "oltp_point_select.haproxy.qps.a-few",
        "oltp_point_select.tiproxy-vs-haproxy.qps.a-other",
    ]
    assert [one.verdict for one in made.findings] == [
        "confirmed",
        None,
        "contradicted",
        "confirmed",
        "confirmed",
    ]
    assert made.findings[3].threads == [4]
    assert made.verdicts == Verdicts(number=4, expected_false_at_most=0.2)


def test_thread_levels_share_one_family_of_q_values(found, make_runs, make_study):
    runs = make_runs({"haproxy": {4: LOWER, 16: [1.01, 0.98, 1.03, 1.0, 0.99]}})
    (one,) = found(runs, make_study(threads=(4, 16))).findings
    small, large = (level.q for level in one.by_threads)
    assert small < 1e-3 < 0.5 < large
    assert one.depends_on_threads.p < 0.001
    # −31.2 % at 4 and +0.2 % at 16 differ in sign, so each level has a row of its own.
    assert [(row.threads, row.label) for row in rows_of_finding(one)] == [(4, "lower"), (16, "not shown")]


def test_signs_that_differ_leave_no_headline(found, make_runs, make_study):
    runs = make_runs({"haproxy": {4: LOWER, 16: [1.21, 1.18, 1.23, 1.2, 1.19]}})
    (one,) = found(runs, make_study(threads=(4, 16))).findings
    assert (one.headline, one.label) == (False, "depends on threads")
    assert [level.label for level in one.levels] == ["lower", "higher"]
    assert [level.effect for level in one.levels] == pytest.approx([-0.312, 0.202], abs=5e-4)


def test_an_aa_pair_that_differs_casts_doubt_on_every_finding(found, make_runs, make_study):
    runs = make_runs({"haproxy": {4: LOWER}, "direct_again": {4: [1.05, 1.06, 1.055, 1.052, 1.058]}})
    made = found(runs, make_study(aa=AA))
    assert made.aa.label == "higher"
    assert any("Equal arms differ on point selects by +5.5" in warning.text for warning in made.warnings)
    assert any("A/A pair differs" in warning for warning in made.findings[0].warnings)


def test_each_workload_keeps_its_aa_pair_the_one_furthest_from_equal_first(found, make_runs, make_study):
    parts = {"oltp_point_select": SAME, "oltp_read_only": [1.05, 1.06, 1.055, 1.052, 1.058]}
    runs = [
        make_runs({"haproxy": {4: LOWER}, "direct_again": {4: again}}, workload=workload)
        for workload, again in parts.items()
    ]
    study = make_study(workloads={key: {} for key in parts}, aa={"workloads": [*parts], "threads": [4]})
    made = found(pd.concat(runs, ignore_index=True), study)
    assert [(pair.workload, pair.label) for pair in made.aa_pairs] == [
        ("oltp_read_only", "higher"), ("oltp_point_select", "no practical difference"),
    ]  # fmt: skip
    # Only effects on the workload of the pair that differs are in doubt.
    doubted = [
        each.workload for each in made.findings if any("A/A pair differs" in text for text in each.warnings)
    ]
    assert doubted == ["oltp_read_only"]
    rows = build_results(made).aa
    assert [(row.workload, describe_aa(row)) for row in rows] == [
        ("point selects", "ok"), ("read-only transactions", "differs, and should not"),
    ]  # fmt: skip


def test_an_aa_pair_that_differs_a_little_casts_doubt_on_effects_of_that_size_only(
    found, make_runs, make_study
):
    # 0.5 % between equal arms in every block: of no practical size, and its interval leaves zero out.
    again = [1.005, 1.006, 1.0055, 1.0052, 1.0058]
    small, large = [1.004, 1.008, 1.006, 1.005, 1.007], [1.05, 1.06, 1.055, 1.052, 1.058]
    for ratios, is_within in ((small, True), (large, False)):
        made = found(make_runs({"haproxy": {4: ratios}, "direct_again": {4: again}}), make_study(aa=AA))
        assert made.aa.label == "no practical difference"
        assert any("Equal arms differed a little" in warning.text for warning in made.warnings)
        noted = [warning for warning in made.findings[0].warnings if "A/A pair differs by" in warning]
        assert bool(noted) is is_within


def test_a_study_without_an_aa_pair_says_what_that_costs(found, make_runs):
    made = found(make_runs({"haproxy": {4: LOWER}}))
    assert made.aa is None
    assert any("no A/A pair" in warning.text for warning in made.warnings)


def test_an_arm_that_never_ran_leaves_a_reason_not_a_number(found, make_runs, make_study):
    runs, study = make_runs({"haproxy": {4: LOWER}}), make_study(arms=("direct", "haproxy", "tiproxy"))
    made = found(runs, study)
    missing = made.findings[1]
    assert (missing.effect, missing.n, missing.label) == (None, 0, "not shown")
    assert "no complete block" in missing.reason
    why = "Arm tiproxy was skipped on this machine: there is no tiproxy"
    first, missing = found(runs, study, skipped={"tiproxy": why}).findings
    assert (first.reason, missing.reason) == (None, why)
    assert made.blocks.complete == 5
    assert "Arm tiproxy has no run." in [warning.text for warning in made.warnings]


def test_no_runs_at_all_give_a_file_without_findings(found, make_runs):
    made = found(make_runs({"haproxy": {4: LOWER}}).iloc[:0])
    assert made.findings[0].effect is None
    assert made.machine_minutes == 0


def test_zero_queries_are_said_and_never_compared(found, make_runs):
    (one,) = found(make_runs({"haproxy": {4: [0.69, 0.0, 0.68, 0.69, 0.7]}})).findings
    assert (one.effect, one.verdict, one.label) == (None, None, "not shown")
    assert "qps is 0" in one.reason


def test_heavy_tails_are_named_in_the_warnings(found, make_runs):
    heavy = [*(1.03 + step / 1000 for step in range(-9, 10)), 0.60]
    made = found(make_runs({"haproxy": {4: heavy}}))
    assert made.findings[0].second_opinion.agrees is False
    assert any("Heavy-tailed" in warning.text for warning in made.warnings)


def test_several_workloads_are_kept_apart(found, make_runs, make_study):
    runs = pd.concat(
        [make_runs({"haproxy": {4: LOWER}}), make_runs({"haproxy": {4: SAME}}, workload="oltp_read_only")]
    )
    made = found(runs, make_study(workloads={"oltp_point_select": {}, "oltp_read_only": {}}))
    assert [one.label for one in made.findings] == ["lower", "no practical difference"]


def test_a_workload_with_a_rate_is_compared_by_latency(found, make_runs, make_study):
    study = make_study(workloads={"oltp_point_select": {"rate": 500}}, threads=(4, 16))
    runs = make_runs({"haproxy": {4: SAME, 16: SAME}})
    rng = np.random.default_rng(11)
    parts = []
    for run in runs.itertuples():
        latencies = rng.lognormal(0, 0.3, 6000) * (1.5 if run.arm == "haproxy" else 1)
        buckets, counts = np.unique(histogram.bucket_of(latencies), return_counts=True)
        parts.append(pd.DataFrame({"run_id": run.run_id, "bucket": buckets, "count": counts}))
    p50, p95, p99 = found(runs, study, histograms=pd.concat(parts)).findings
    assert p50.id.endswith(".latency_p50_ms") and p50.effect == pytest.approx(0.5, abs=0.02)
    assert p95.id == "oltp_point_select.haproxy.latency_p95_ms"
    assert p95.effect == pytest.approx(0.5, abs=0.05)
    assert [level.threads for level in p95.by_threads] == [4, 16]
    # 6000 events leave 60 beyond p99, so both levels of a block are pooled.
    assert (p99.by_threads, p99.threads, p99.label) == ([], [4, 16], "higher")
    assert len(p99.runs) == 20
    assert any("pooled" in warning for warning in p99.warnings)


def test_checks_facts_and_voids_are_carried(found, make_runs):
    reasons = "V15: the client used 97 % of its cores, less than 90 %"
    void = {"run_id": "x", "arm": "haproxy", "status": "invalid", "threads": 4, "reasons": reasons}
    voids = pd.DataFrame([void])
    check = worked_arithmetic.build_check("little", False, "haproxy, 4 threads", "6 % off")
    facts = {"direct": {"flush": 1}, "haproxy": {"flush": 2}}
    made = found(make_runs({"haproxy": {4: LOWER}}), voids=voids, checks=[check], facts=facts)
    assert made.checks == [check]
    assert [one.plain for one in made.facts_differ] == [
        {"fact": "flush", "values": facts and {"direct": 1, "haproxy": 2}}
    ]
    assert made.voids.by_arm["haproxy"] == Attempts(runs=6, voided=1)
    assert made.client_full == [4]
    assert any(warning.text.startswith("Check failed: little") for warning in made.warnings)


def test_what_a_wide_aa_pair_withholds_says_how_many_blocks_the_pair_needs(found, make_runs, make_study):
    """The A/A pair's log ratios have s = .2236, those of the effect .008."""
    noise = list(np.exp([-0.9, -0.7, -0.8, -0.5, -1.1]))
    made = found(make_runs({"haproxy": {4: LOWER}, "direct_again": {4: noise}}), make_study(aa=AA))
    (one,) = made.findings
    assert (one.label, made.aa.label) == ("no useful interval", "no useful interval")
    # s with 80 % assurance is .2236 × √(4 / 1.6488) = .3483; t × .3483 / √n ≤ ln √1.5 = .2027 wants 20:
    # 2.552 × .3483 / √19 = .2039 is too much, 2.539 × .3483 / √20 = .1977 is not. 20 less 5 are 15.
    assert one.blocks_to_useful.blocks == made.aa.blocks_to_useful.blocks == 15
    # Of two workloads, only the one whose own pair is wide waits for it.
    runs = [
        make_runs({"haproxy": {4: LOWER}, "direct_again": {4: again}}, workload=workload)
        for workload, again in {
            "oltp_point_select": noise,
            "oltp_read_only": [*np.exp([-0.5, 0.5, 0, 0.3, -0.3])],
        }.items()
    ]
    workloads = {"oltp_point_select": {}, "oltp_read_only": {}}
    both = found(
        pd.concat(runs, ignore_index=True),
        make_study(workloads=workloads, aa={"workloads": [*workloads], "threads": [4]}),
    )
    needs = {pair.workload: pair.blocks_to_useful.blocks for pair in both.aa_pairs}
    assert {each.workload: each.blocks_to_useful.blocks for each in both.findings} == needs
    assert needs["oltp_point_select"] == 15 != needs["oltp_read_only"]
    (row,) = rows_of_finding(one)
    assert row.notes == ("Equal arms (A/A) came out too far apart to tell.",)
    assert describe_help([row]).startswith("Intervals too wide to decide need about 15\u00a0more blocks")


def test_a_block_takes_from_its_first_start_to_its_last_end():
    # 0 to 60, and 100 to 140: 60 and 40 s, whose median is 50.
    runs = pd.DataFrame({"block": [1, 1, 2], "started_s": [0.0, 50.0, 100.0], "sysbench_s": [10.0, 10.0, 40]})
    assert findings._block_seconds(runs) == 50.0
    assert findings._block_seconds(runs.iloc[:0]) is None


@pytest.mark.parametrize(
    ("complete", "n", "following", "note"),
    [
        (1, 0, 5, "1 complete block: nothing is decided before 5"),
        (5, 5, 10, "judged at 5 blocks; the next look is at 10"),
        (12, 10, 20, "judged at 10 blocks; the next look is at 20"),
        (20, 20, None, "judged at 20 blocks, the last look"),
    ],
)
def test_a_look_says_where_it_is_and_when_the_next_one_is(complete, n, following, note):
    found = findings._current_look(complete, (5, 10, 20), 0.98)
    assert (found.n, found.next, found.note, found.level) == (n, following, note, 0.98)


def test_an_effect_of_one_block_is_not_decided_where_a_mark_of_no_difference_would_mislead(found, make_runs):
    (finding,) = found(make_runs({"haproxy": {4: [0.43]}})).findings
    (row,) = rows_of_finding(finding)
    assert (row.mark, row.label, row.change.ends) == ("?", "not decided yet", None)
    assert row.change.value == pytest.approx(-0.57) and row.notes
