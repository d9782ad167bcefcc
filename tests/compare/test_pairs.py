"""Pairing: which runs meet, which blocks drop out, and what is refused."""

import math

import pytest

from benchbook.compare.pairs import block_ratios

WORKLOAD = "oltp_point_select"


def test_each_block_pairs_its_own_runs(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, 0.8], 16: [0.9, 1.1]}}).sample(frac=1, random_state=3)
    found = block_ratios(runs, "direct", "haproxy", WORKLOAD, [16, 4])
    assert found.ratios.loc[2].tolist() == pytest.approx([math.log(0.8), math.log(1.1)])
    assert list(found.ratios.columns) == [4, 16]
    assert found.run_ids[1] == tuple(
        f"b01-{WORKLOAD}-t{threads:04d}-{arm}" for threads in (4, 16) for arm in ("direct", "haproxy")
    )


def test_a_block_without_all_its_pairs_is_dropped_and_said(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, 0.8, 0.75], 16: [0.9, None, 0.95]}})
    found = block_ratios(runs, "direct", "haproxy", WORKLOAD, [4, 16])
    assert list(found.ratios.index) == [1, 3]
    assert found.dropped == ("block 2 has no pair at 16 threads",)
    assert 2 not in found.run_ids


def test_a_run_without_a_number_drops_its_block(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, math.nan, 0.75]}})
    found = block_ratios(runs, "direct", "haproxy", WORKLOAD, [4])
    assert found.n == 2
    assert found.dropped


def test_a_run_without_any_query_refuses_the_contrast_instead_of_favouring_its_arm(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, 0.0, 0.75]}})
    found = block_ratios(runs, "direct", "haproxy", WORKLOAD, [4])
    assert found.n == 0
    assert "block 2, haproxy, 4 threads" in found.refusal


def test_arms_without_runs_leave_an_empty_table(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, 0.8]}})
    found = block_ratios(runs, "direct", "tiproxy", WORKLOAD, [4])
    assert (found.n, found.refusal) == (0, None)


def test_two_pairs_in_one_place_are_an_error(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, 0.8]}})
    runs.loc[runs["block"] == 2, ["block"]] = 1
    with pytest.raises(ValueError, match="several pairs"):
        block_ratios(runs, "direct", "haproxy", WORKLOAD, [4])


def test_an_arm_that_runs_in_another_group_is_not_a_partner(make_runs):
    runs = make_runs({"haproxy": {4: [0.7, 0.8]}})
    runs.loc[(runs["block"] == 2) & (runs["arm"] == "haproxy"), "group"] = "elsewhere"
    assert block_ratios(runs, "direct", "haproxy", WORKLOAD, [4]).n == 1
