"""A claim about cells where a proxy is not yet busy is put to such cells of ours, and to no others."""

import pandas as pd
import pytest

from benchbook.compare import conditions
from benchbook.compare.claims import ClaimedEffect, answerable
from benchbook.compare.verdicts import at_least
from benchbook.core import source
from benchbook.core.claim import Condition

# Two cores may be used, so 80 % of them are 1.6.
FACTS = {"tiproxy": {"cpu": {"proxy": {"cores": [2, 3]}}}, "haproxy": {"cpu": {"proxy": {"cores": [2]}}}}
IDLE = Condition(metric="cpu_proxy_pct", below=320, whole=400)


def claim(*where, **changes):
    return ClaimedEffect("s/c", "haproxy", "tiproxy", -0.05, at_least(-0.05), where=where, **changes)


@pytest.fixture
def runs(make_runs):
    """Two blocks at 4, 16 and 64 threads: TiProxy takes 0.5, 1.5 and 1.7 cores in the mean."""
    table = make_runs({"tiproxy": {level: [1.0, 1.0] for level in (4, 16, 64)}}, baseline="haproxy")
    used = {4: (0.4, 0.6), 16: (1.35, 1.65), 64: (1.55, 1.85)}
    # At 16 threads one block is beyond 1.6 and at 64 one is below it: the mean decides for all blocks.
    table["cpu_proxy_cores"] = [
        used[row.threads][row.block - 1] if row.arm == "tiproxy" else 0.9 for row in table.itertuples()
    ]
    return table


def test_only_cells_that_meet_the_condition_are_compared(runs):
    (held,), left = conditions.narrowed([claim(IDLE)], runs, FACTS)
    assert (held.workloads, held.threads, left) == (("oltp_point_select",), (4, 16), [])
    assert held.where == () and held.id == "s/c"


def test_a_share_has_two_ends_and_they_do_not_belong_to_it(runs):
    busy = Condition(metric="cpu_proxy_pct", above=300, below=340, whole=400)
    # 75 % to 85 % of two cores are 1.5 to 1.7: what is used at 16 and at 64 threads is just outside.
    held, (left,) = conditions.narrowed([claim(busy)], runs, FACTS)
    assert held == []
    assert left == (
        "Claim s/c is not answered: no cell has the proxy of tiproxy at 75% to 85% of its CPU "
        "(seen: 25% to 85%)."
    )


def test_the_baseline_may_be_what_is_looked_at(runs):
    # HAProxy has one core and takes 0.9 of it everywhere.
    of_baseline = Condition(metric="cpu_proxy_pct", of="baseline", above=320, whole=400)
    (held,), _ = conditions.narrowed([claim(of_baseline, threads=(16, 64))], runs, FACTS)
    assert held.threads == (16, 64)


def test_a_quota_is_what_there_is_and_hosts_tell_of_their_own_cores():
    assert conditions.room({"cpu": {"proxy": {"cores": [1], "quota_cores": 0.4}}}, "proxy") == 0.4
    hosts = {"cpu": {"proxy": {"cores": None}}, "hosts": {"proxy": {"cores": 4}}, "machine": {"cores": 8}}
    assert conditions.room(hosts, "proxy") == 4.0
    assert conditions.room({"cpu": {"proxy": {"cores": None}}, "machine": {"cores": 8}}, "proxy") == 8.0
    assert conditions.room({"machine": {"cores": 8}}, "proxy") is None


def test_where_it_is_not_known_what_a_proxy_may_use_nothing_is_claimed(runs):
    held, (left,) = conditions.narrowed([claim(IDLE)], runs, {})
    assert held == [] and "how many cores the proxy of tiproxy may use is not known" in left


def test_a_cell_without_a_reading_and_a_study_without_runs_answer_nothing(runs):
    held, (left,) = conditions.narrowed([claim(IDLE)], runs.assign(cpu_proxy_cores=float("nan")), FACTS)
    assert held == [] and left.endswith("of its CPU (nothing was seen of it).")
    held, left = conditions.narrowed([claim(IDLE)], runs.iloc[:0], FACTS)
    assert held == [] and len(left) == 1


def test_claims_without_a_condition_are_left_as_they_are(runs):
    assert conditions.narrowed([claim()], pd.DataFrame(columns=runs.columns), {}) == ([claim()], [])


def test_the_published_claim_is_put_to_a_study_with_both_proxies(make_study):
    told = source.load("tiproxy-haproxy").claims["below-80-percent-cpu"]
    arms = {"haproxy": {"access": "haproxy"}, "tiproxy": {"access": "tiproxy"}}
    (found,), left = answerable(make_study(arms=arms), {"tiproxy-haproxy/below-80-percent-cpu": told})
    assert left == [] and found.where == (IDLE,)


def test_tidbs_processors_are_held_against_the_room_of_the_server(runs):
    """The same 0.5, 1.5 and 1.7 of two cores, of TiDB this time: below 80 % at 4 and 16 threads."""
    facts = {"tiproxy": {"cpu": {"server": {"cores": [2, 3]}, "proxy": {"cores": [1]}}}}
    busy = Condition(metric="cpu_tidb_pct", below=320, whole=400)
    (held,), left = conditions.narrowed(
        [claim(busy)], runs.assign(cpu_tidb_cores=runs["cpu_proxy_cores"]), facts
    )
    assert (held.threads, left) == ((4, 16), [])
