"""Shares of several clients make the whole, and what can't be shared out is refused with its remedy."""

import pytest

from benchbook.core.study import client_sharding
from benchbook.plan import schedule
from tests import small


def test_shares_make_the_whole():
    plan = {"threads": 12, "rate": 100, "seed": 7}
    shares = [client_sharding.split_plan(plan, number, 3) for number in range(3)]
    # 100 = 34 + 33 + 33.
    assert [one["rate"] for one in shares] == [34, 33, 33]
    assert [one["threads"] for one in shares] == [4, 4, 4]
    assert client_sharding.split_plan({**plan, "rate": 0}, 0, 3)["rate"] == 0, "a closed loop stays one"


@pytest.mark.parametrize("seed", [1, 7, last := 2**31 - 2])
def test_no_two_clients_ask_for_the_same_rows(seed: int):
    plan = {"threads": 16, "seed": seed}
    seeds = [client_sharding.split_plan(plan, number, 16)["seed"] for number in range(16)]
    assert seeds[0] == seed and len(set(seeds)) == 16
    assert min(seeds) >= 1 and max(seeds) <= last


def test_client_i_uses_server_i_modulo_their_number():
    assert [client_sharding.server_of(client, 3) for client in range(6)] == [0, 1, 2, 0, 1, 2]


def test_runs_of_arms_without_the_keys_are_the_runs_they_were():
    study = small.study(arms={"single": {}, "three": {"clients": 3, "servers": 3}}, threads=(12,))
    settings = {run.arm: run.arm_setting for run in schedule.plan_runs("test", study, {})}
    assert settings["single"] == {"access": "direct"}
    assert settings["three"] == {"access": "direct", "clients": 3, "servers": 3}
    assert client_sharding.count_clients(settings["single"]) == 1
    assert client_sharding.count_servers(settings["three"]) == 3


def test_several_clients_of_one_server_may_have_a_proxy_and_a_load():
    arms = {"a": {}, "b": {"clients": 3, "access": "haproxy"}}
    arms["c"] = {"clients": 3, "load": {"idle_connections": 5}}
    study = small.study(arms=arms, threads=(12,), engine={"settings": {"max_connections": 200}})
    assert study.arms["b"].clients == 3
