"""findings.json as a whole: structure, fail-closed cases, and the same bytes for the same input."""

import json

import numpy as np
import pandas as pd
import pytest

from benchbook.compare.claims.effects import ClaimedEffect
from benchbook.compare.inference import findings
from benchbook.compare.inference.caveats import wide_contrasts
from benchbook.compare.stats.equivalence import point_band
from benchbook.compare.text import worked_arithmetic
from benchbook.compare.text.results_table import build_results, describe_aa, describe_help, rows_of_finding
from benchbook.core.artifacts.findings import Attempts, FindingData, Rungs
from benchbook.core.study.params import Analysis
from benchbook.core.util import histogram
from tests.compare.cases import read_cases
from tests.goldens import assert_golden

LOWER = [0.690, 0.685, 0.693, 0.688, 0.684]
SAME = [1.001, 0.999, 1.002, 0.998, 1.0]
LOAD = "oltp_point_select"
AA = {"workloads": [LOAD], "threads": [4]}


@pytest.fixture
def found(make_study, no_voids, no_histograms):
    def make(runs, study=None, claims=(), voids=no_voids, histograms=no_histograms, **given):
        tidy = {"runs": runs, "voids": voids, "histograms": histograms}
        return findings.build_findings("quick", study or make_study(), tidy, Analysis(), claims, **given)

    return make


def shares(*values: float | None) -> str:
    return " ".join("none" if value is None else f"{round(value, 4) + 0.0:+.4f}" for value in values)


def describe_finding(one: FindingData) -> list[str]:
    """Label, numbers and verdict of one finding, its warnings, and a line for each row of a table."""
    effect = f"{shares(one.effect)} [{shares(one.low, one.high)}] at {one.level}"
    counts = f"n = {one.n}, {one.pairs} pairs of {len(one.runs)} runs{', no headline' * (not one.headline)}"
    lines = [f"{one.id}: {one.label}, {effect}, {counts}"]
    if one.claim:
        lines.append(f"  claim {one.claim} at {one.threads} in {shares(*one.band)}: {one.verdict}")
    if one.more_blocks:
        lines.append(f"  {one.more_blocks.blocks} more blocks, {one.more_blocks.minutes:.2f} min")
    if one.second_opinion and not one.second_opinion.agrees:
        lines.append("  the second opinion differs")
    if one.depends_on_threads:
        lines.append(f"  depends on threads: p = {one.depends_on_threads.p:.1g}")
    lines += [f"  {text}" for text in filter(None, (one.reason, one.withheld, *one.warnings))]
    lines += [f"  at {level.threads}: {level.label} {shares(level.effect)}" for level in one.levels]
    lines += [f"  by {level.threads}: q = {level.q:.1g}" for level in one.by_threads if level.q is not None]
    return lines + [
        f"  row at {row.threads}: {row.mark} {row.label} {row.notes}" for row in rows_of_finding(one)
    ]


def describe_rungs(own: Rungs) -> list[str]:
    """Contrasts of a ladder by what they answer, the best arm up to each, and its sentence."""
    lines = [f"ladder of {own.workload}, {own.metric}: {own.sentence}"]
    for name in ("against_first", "against_neighbour", "pairs"):
        labels = (f"{one.baseline}-{one.treatment} {one.label}" for one in getattr(own, name))
        lines.append(f"  {name}: {', '.join(labels)}")
    return [*lines, f"  best: {own.best and ' '.join(f'{one.arm}:{one.best}' for one in own.best)}"]


def describe(made: findings.Findings) -> str:
    results, ladder = build_results(made), made.ladder
    lines = [f"{made.blocks.complete} of {made.blocks.planned} blocks; {made.look.note}"]
    lines += [line for one in made.findings for line in describe_finding(one)]
    lines += [f"A/A of {pair.workload}, {pair.treatment}: {pair.label}" for pair in made.aa_pairs or ()]
    lines += [f"A/A row of {row.workload}: {describe_aa(row)}" for row in results.aa]
    lines += [f"help: {text}" for text in filter(None, [describe_help(results.rows)])]
    lines += [f"too wide: {text}" for text in wide_contrasts(made.findings)]
    if ladder:
        lines.append(f"ladder: {' '.join(ladder.arms)}; skipped: {' '.join(ladder.skipped) or 'none'}")
        lines += [line for own in ladder.workloads for line in describe_rungs(own)]
    verdicts = f"{made.verdicts.number} verdicts, {made.verdicts.expected_false_at_most:g} false at most"
    return "\n  ".join([*lines, verdicts, *(f"{each.title}: {each.text}" for each in made.warnings)])


def draw_histograms(runs: pd.DataFrame, events: int) -> pd.DataFrame:
    """Buckets and counts of log-normal latencies, half as long again with HAProxy."""
    rng = np.random.default_rng(11)
    parts = []
    for run in runs.itertuples():
        latencies = rng.lognormal(0, 0.3, events) * (1.5 if run.arm == "haproxy" else 1)
        buckets, counts = np.unique(histogram.bucket_of(latencies), return_counts=True)
        parts.append(pd.DataFrame({"run_id": run.run_id, "bucket": buckets, "count": counts}))
    return pd.concat(parts)


def move_speed(runs: pd.DataFrame, noise: float) -> pd.DataFrame:
    """Runs on a machine whose speed changes by so much, as its loop saw."""
    moved = np.exp(np.random.default_rng(5).normal(0, noise, len(runs)))
    return runs.assign(qps=runs.qps * moved, machine_speed=30 * moved)


def test_a_study_is_found_to_say_what_its_blocks_show(found, make_runs, make_study):
    answers = []
    for title, case in read_cases("findings")["studies"].items():
        tables = {key.removeprefix("runs").removeprefix(" of ") or LOAD: case[key] for key in case
                  if key.startswith("runs")}  # fmt: skip
        parts = [make_runs(ratios, workload=load) for load, ratios in tables.items()]
        runs = pd.concat(parts, ignore_index=True)
        rate = {"rate": case["rate"]} if "rate" in case else {}
        asked = case.get("study", {}) | {"workloads": dict.fromkeys(tables, rate)}
        pair = {"aa": {"workloads": [*tables], "threads": [4]}} if "aa" in asked else {}
        study = make_study(**asked | pair)
        claims = [ClaimedEffect(*claim[:4], point_band(claim[3]), threads=tuple(*claim[4:]) or None)
                  for claim in case.get("claims", ())]  # fmt: skip
        given = {"histograms": draw_histograms(runs, case["events"])} if rate else {}
        runs = move_speed(runs, case["noise"]) if "noise" in case else runs
        made = found(runs, study, claims, skipped=case.get("skipped", {}), **given)
        json.dumps(made.plain, allow_nan=False)
        answers.append(f"{title}\n  {describe(made)}".replace("\xa0", " "))
    assert_golden("findings.txt", "\n\n".join(answers) + "\n")


def test_the_machines_speed_is_taken_out_beside_the_interval_that_decides(found, make_runs, make_study):
    """Noise of the machine that its loop saw goes out of a second interval; without a loop there is none."""
    runs = make_runs({"haproxy": {4: LOWER + LOWER}, "direct_again": {4: SAME + SAME}})
    moved = move_speed(runs, 0.05)
    one = found(moved).findings[0]
    assert one.speed_adjusted.high - one.speed_adjusted.low < (one.high - one.low) / 2
    assert one.speed_adjusted.slope == pytest.approx(1.0, abs=0.1)
    plain = found(moved.drop(columns="machine_speed")).findings[0]
    assert len(one.warnings) == len(plain.warnings) + 1
    assert (plain.speed_adjusted, plain.low, plain.label) == (None, one.low, one.label)


def test_what_an_arm_is_called_changes_words_and_no_number(found, make_runs, make_study):
    runs = make_runs({"haproxy": {4: LOWER}, "direct_again": {4: SAME}})
    arms = {"direct": {"access": "direct"}, "haproxy": {"access": "haproxy"}}
    named = {"direct": arms["direct"] | {"name": "the n1 machine"}, "haproxy": arms["haproxy"]}
    plain, other = (found(runs, make_study(arms=one, aa=AA)) for one in (arms, named))
    again = {"direct": "the n1 machine", "direct_again": "the n1 machine again"}
    assert other.names.arms == {"haproxy": "HAProxy", **again}
    (one,) = other.findings
    assert (one.baseline, one.names.baseline) == ("direct", "the n1 machine")
    text = json.dumps(other.plain).replace("the n1 machine", "direct connections")
    assert json.loads(text) == plain.plain


def test_the_same_input_in_any_order_gives_the_same_bytes(found, make_runs, make_study, tmp_path):
    runs = make_runs({"haproxy": {4: LOWER, 16: SAME}, "direct_again": {4: SAME}})
    study = make_study(aa=AA, threads=(4, 16))
    for name, table in (("a", runs), ("b", runs.sample(frac=1, random_state=1))):
        found(table, study).write(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert findings.Findings.read(tmp_path / "a") == found(runs, study)


def test_floats_carry_eight_digits_and_nothing_is_nan_or_a_foreign_type(found, make_runs):
    json.dumps(found(make_runs({"haproxy": {4: LOWER[:2]}})).plain, allow_nan=False)
    (one,) = found(make_runs({"haproxy": {4: LOWER}})).findings
    values = (one.effect, one.low, one.detectable_effect)
    assert values == tuple(float(f"{value:.8g}") for value in values)


def test_no_runs_at_all_give_a_file_without_findings(found, make_runs):
    made = found(make_runs({"haproxy": {4: LOWER}}).iloc[:0])
    assert (made.findings[0].effect, made.machine_minutes) == (None, 0)


def test_a_workload_with_a_rate_is_compared_by_latency(found, make_runs, make_study):
    study = make_study(workloads={"oltp_point_select": {"rate": 500}}, threads=(4, 16))
    runs = make_runs({"haproxy": {4: SAME, 16: SAME}})
    p50, p95, p99 = found(runs, study, histograms=draw_histograms(runs, 6000)).findings
    assert p50.id.endswith(".latency_p50_ms") and p50.effect == pytest.approx(0.5, abs=0.02)
    assert p95.id == f"{LOAD}.haproxy.latency_p95_ms"
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
    (differ,) = made.facts_differ
    assert differ.plain == {"fact": "flush", "values": {"direct": 1, "haproxy": 2}}
    assert (made.checks, made.client_full) == ([check], [4])
    assert made.voids.by_arm["haproxy"] == Attempts(runs=6, voided=1)
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
    pairs = {LOAD: noise, "oltp_read_only": [*np.exp([-0.5, 0.5, 0, 0.3, -0.3])]}
    runs = [
        make_runs({"haproxy": {4: LOWER}, "direct_again": {4: again}}, workload=workload)
        for workload, again in pairs.items()
    ]
    study = make_study(workloads={load: {} for load in pairs}, aa={"workloads": [*pairs], "threads": [4]})
    both = found(pd.concat(runs, ignore_index=True), study)
    needs = {pair.workload: pair.blocks_to_useful.blocks for pair in both.aa_pairs}
    assert {each.workload: each.blocks_to_useful.blocks for each in both.findings} == needs
    assert needs["oltp_point_select"] == 15 != needs["oltp_read_only"]
    (row,) = rows_of_finding(one)
    assert row.notes == ("Equal arms (A/A) came out too far apart to tell.",)


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
