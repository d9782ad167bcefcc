"""A claim about cells where a proxy is not yet busy looks at what was used there, and at nothing else."""

import math

import pytest

from benchbook.compare.claims import study_cells
from benchbook.compare.claims.estimands import NotApplicable
from benchbook.core.published.claim import Condition
from benchbook.core.study.params import Analysis

# Two cores may be used, so 80 % of them are 1.6.
FACTS = {"tiproxy": {"cpu": {"proxy": {"cores": [2, 3]}}}, "haproxy": {"cpu": {"proxy": {"cores": [2]}}}}
IDLE = Condition(metric="cpu_proxy_pct", below=320, whole=400)


@pytest.fixture
def runs(make_runs):
    """Two blocks at 4, 16 and 64 threads: TiProxy takes 0.5, 1.5 and 1.7 cores in the mean."""
    table = make_runs({"tiproxy": {level: [1.0, 1.0] for level in (4, 16, 64)}}, baseline="haproxy")
    used = {4: (0.4, 0.6), 16: (1.35, 1.65), 64: (1.55, 1.85)}
    table["cpu_proxy_cores"] = [
        used[row.threads][row.block - 1] if row.arm == "tiproxy" else 0.9 for row in table.itertuples()
    ]
    return table


def used(runs, facts=FACTS, arm="tiproxy", threads=16, condition=IDLE):
    return study_cells.used_share(runs, facts, condition, (arm, "oltp_point_select", threads))


def test_the_mean_over_all_blocks_is_held_against_what_an_arm_may_use(runs):
    shares = [used(runs, threads=threads) for threads in (4, 16, 64)]
    # HAProxy has one core and takes 0.9 of it everywhere.
    assert [*shares, used(runs, arm="haproxy")] == pytest.approx([0.25, 0.75, 0.85, 0.9])
    # TiDB's processors are held against the room of the server.
    facts = {"tiproxy": {"cpu": {"server": {"cores": [2, 3, 4]}, "proxy": {"cores": [1]}}}}
    busy = Condition(metric="cpu_tidb_pct", below=320, whole=400)
    own = runs.assign(cpu_tidb_cores=runs["cpu_proxy_cores"])
    assert used(own, facts, condition=busy) == pytest.approx(0.5)
    # What is not known is no number.
    assert used(runs, facts={}) is None
    assert used(runs.assign(cpu_proxy_cores=float("nan"))) is None
    assert used(runs.iloc[:0]) is None


def test_a_condition_has_its_ends_as_shares_of_the_whole():
    busy = Condition(metric="cpu_proxy_pct", above=300, below=340, whole=400)
    assert study_cells.condition_ends(busy) == (0.75, 0.85)
    assert study_cells.condition_band(busy) == "75% to 85%"
    assert study_cells.condition_ends(IDLE) == (float("-inf"), 0.8)
    assert study_cells.condition_band(IDLE) == "less than 80%"


def test_a_quota_is_what_there_is_and_hosts_tell_of_their_own_cores():
    assert study_cells.allowed_cores({"cpu": {"proxy": {"cores": [1], "quota_cores": 0.4}}}, "proxy") == 0.4
    hosts = {"cpu": {"proxy": {"cores": None}}, "hosts": {"proxy": {"cores": 4}}, "machine": {"cores": 8}}
    assert study_cells.allowed_cores(hosts, "proxy") == 4.0
    del hosts["hosts"]
    assert study_cells.allowed_cores(hosts, "proxy") == 8.0
    assert study_cells.allowed_cores({"machine": {"cores": 8}}, "proxy") is None


def test_a_zero_leaves_no_ratio_and_is_named_with_its_block(runs, make_study):
    study = make_study(arms=("haproxy", "tiproxy"), threads=(4, 16, 64))
    place = {"name": "tiproxy", "workload": "oltp_point_select", "threads": 4}
    cell = study_cells.StudyCell(place, "qps", None)

    def amount(table):
        evidence = study_cells.StudyEvidence(study, table, Analysis())
        return study_cells.StudyCells(study, evidence).amount(((cell, 1.0),))

    assert amount(runs.assign(qps=runs.qps / 20_000)).log_mean == pytest.approx(math.log(0.2))
    is_zero = (runs.arm == "tiproxy") & (runs.block == 2) & (runs.threads == 16)
    with pytest.raises(NotApplicable, match=r"0 in block 2 \(tiproxy, .*, 16 threads\)"):
        amount(runs.assign(qps=runs.qps.mask(is_zero, 0.0)))
