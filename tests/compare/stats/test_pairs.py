"""Pairing: which runs meet, which blocks drop out, and what is refused."""

import math

import pytest

from benchbook.compare.inference import findings
from benchbook.compare.stats import pairs
from benchbook.compare.stats.pairs import block_ratios
from benchbook.core.study.params import Analysis
from tests.found import runs

WORKLOAD = "oltp_point_select"


def test_each_block_pairs_its_own_runs(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, 0.8], 16: [0.9, 1.1]}}).sample(frac=1, random_state=3)
    found = block_ratios(runs, "direct", "haproxy", WORKLOAD, [16, 4])
    assert found.ratios.loc[2].tolist() == pytest.approx([math.log(0.8), math.log(1.1)])
    assert list(found.ratios.columns) == [4, 16]
    assert found.run_ids[1] == tuple(
        f"b01-{WORKLOAD}-t{threads:04d}-{arm}" for threads in (4, 16) for arm in ("direct", "haproxy")
    )


@pytest.mark.parametrize(
    ("ratios", "treatment", "kept", "dropped", "refusal"),
    [
        # A block without all its pairs is dropped and said, and so is one with a run without a number.
        ({4: [0.7, 0.8, 0.75], 16: [0.9, None, 0.95]}, "haproxy", [1, 3],
         "block 2 has no pair at 16 threads", ""),
        ({4: [0.7, math.nan, 0.75]}, "haproxy", [1, 3], "block 2 has no pair at 4 threads", ""),
        # A run without any query refuses the contrast instead of favouring its arm.
        ({4: [0.7, 0.0, 0.75]}, "haproxy", [], "", "block 2, haproxy, 4 threads"),
        ({4: [0.7, 0.8]}, "tiproxy", [], "block 1 has no pair at 4 threads", ""),
    ],
)  # fmt: skip
def test_what_has_no_ratio_drops_its_block_or_all(make_runs, ratios, treatment, kept, dropped, refusal):
    found = block_ratios(make_runs({"haproxy": ratios}), "direct", treatment, WORKLOAD, list(ratios))
    assert (list(found.ratios.index), found.n, list(found.run_ids)) == (kept, len(kept), kept)
    assert dropped in (found.dropped or ("",))[0] and refusal in (found.refusal or "")
    assert bool(refusal) == (found.refusal is not None)


def test_two_pairs_in_one_place_are_an_error(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, 0.8]}})
    runs.loc[runs["block"] == 2, ["block"]] = 1
    with pytest.raises(ValueError, match="several pairs"):
        block_ratios(runs, "direct", "haproxy", WORKLOAD, [4])


def test_an_arm_that_runs_in_another_group_is_not_a_partner(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, 0.8]}})
    runs.loc[(runs["block"] == 2) & (runs["arm"] == "haproxy"), "group"] = "elsewhere"
    assert block_ratios(runs, "direct", "haproxy", WORKLOAD, [4]).n == 1


USUAL = [10.0, 11.0, 10.0, 12.0, 10.0]


def _runs(apart, server=None, arms=("direct", "haproxy")):
    """Make one group a block, whose runs start `apart` seconds after each other; servers start at -60."""
    rows = []
    for block, seconds in enumerate(apart, 1):
        for place, arm in enumerate(arms):
            started = 1000.0 * block + seconds * place
            own = (server or {}).get((block, arm), -60.0)
            rows.append({
                "run_id": f"b{block}-{arm}", "block": block, "group": f"b{block}", "arm": arm, "threads": 4,
                "workload": WORKLOAD, "started_s": started, "server_started_s": own,
            })  # fmt: skip
    return runs(rows)


def test_the_time_between_partners_is_given_by_block_and_of_three_arms_the_longest_gap():
    table = pairs.partner_gaps(_runs(USUAL))
    assert [one.max_s for one in table] == USUAL
    assert not any(one.is_far or one.left_out for one in table)
    (one,) = pairs.partner_gaps(_runs([7.0], arms=("direct", "haproxy", "direct_again")))
    assert one.max_s == 7.0


def test_partners_far_apart_are_a_doubt_but_count_and_servers_of_unknown_age_leave_nothing_out():
    # 2100 s is more than four times the usual 10 s.
    runs = _runs([*USUAL[:4], 2100.0])
    for each in (runs, runs.assign(server_started_s=math.nan)):
        assert [one.is_far for one in pairs.partner_gaps(each)] == [False] * 4 + [True]
        assert pairs.select_usable(each)[1] == []


def test_partners_far_apart_with_a_server_start_in_between_are_left_out():
    """The half that was made again alone, 35 minutes and a server start later: block 5 began at 5000 s."""
    runs = _runs([*USUAL[:4], 2100.0], server={(5, "haproxy"): 7000.0})
    kept, told = pairs.select_usable(runs)
    assert set(kept["block"]) == {1, 2, 3, 4}
    assert told == [
        "Block 5: left out on oltp_point_select at 4 threads, because partners started 35 minutes apart and "
        "a server was started in between."
    ]


def test_a_server_started_before_its_block_or_right_beside_its_partner_is_usual():
    early = {(block, arm): 1000.0 * block - 30 for block in range(1, 6) for arm in ("direct", "haproxy")}
    own = {(block, "haproxy"): 1000.0 * block + 5 for block in range(1, 6)}
    for server in (early, own):
        kept, told = pairs.select_usable(_runs(USUAL, server=server))
        assert (len(kept), told) == (10, [])


def test_a_block_that_is_left_out_is_missing_from_the_effect_and_named(
    make_runs, make_study, no_voids, no_histograms
):
    runs = make_runs({"haproxy": {4: [0.69, 0.70, 0.68, 0.69, 0.70, 9.0]}}).assign(server_started_s=-60.0)
    late = (runs["block"] == 6) & (runs["arm"] == "haproxy")
    runs.loc[late, ["started_s", "server_started_s"]] = [9000.0, 8000.0]
    tidy = {"runs": runs, "voids": no_voids, "histograms": no_histograms}
    made = findings.build_findings("s", make_study(blocks=6), tidy, Analysis())
    assert made.findings[0].effect == pytest.approx(-0.308, abs=1e-3)
    assert made.blocks.complete == 5
    (said,) = pairs.select_usable(runs)[1]
    assert [one.text for one in made.warnings if one.title == "Time between partners"] == [said]
    assert said.startswith("Block 6: ") and " 148 minutes " in said


@pytest.mark.parametrize(
    ("usual", "apart", "is_far"),
    [
        # Four times the usual 10 s are more than 10 s above it; above 2 s it is the 10 s that count.
        (10.0, 40.0, False),
        (10.0, 40.1, True),
        (2.0, 12.0, False),
        (2.0, 12.1, True),
    ],
)
def test_far_is_four_times_the_usual_and_ten_seconds_more(usual: float, apart: float, is_far: bool):
    assert pairs.partner_gaps(_runs([usual] * 4 + [apart]))[4].is_far == is_far


@pytest.mark.parametrize(("after_s", "kept"), [(2.0, 10), (2.1, 8)])
def test_the_age_of_a_server_is_known_to_the_second_before_and_behind(after_s: float, kept: int):
    """Block 5 began at 5000 s."""
    runs = _runs([10.0] * 4 + [2100.0], server={(5, "haproxy"): 5000.0 + after_s})
    assert len(pairs.select_usable(runs)[0]) == kept


def test_spans_are_told_in_minutes_from_two_on():
    assert [pairs.format_span(seconds) for seconds in (0.04, 119.9, 120.0, 150.1)] == [
        "0.0 s", "119.9 s", "2 minutes", "3 minutes"
    ]  # fmt: skip
