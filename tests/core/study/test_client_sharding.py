"""Shares of several clients make the whole, and what can't be shared out is refused with its remedy."""

from benchbook.core.study import client_sharding
from benchbook.core.study.study import StudySpec
from benchbook.plan import schedule
from tests import small


def study(**changes) -> StudySpec:
    return small.study(
        **{
            "arms": {"one": {}, "three": {"clients": 3, "servers": 3}},
            "dataset": {"tables": 1, "table_size": 100},
            "workloads": {"oltp_point_select": {}},
            "threads": (12,),
            "plan": {"seed": 1, "blocks": 1, "discard_s": 1, "run_s": 2},
        }
        | changes
    )


def test_shares_make_the_whole():
    plan = {"threads": 12, "rate": 100, "seed": 7}
    shares = [client_sharding.split_plan(plan, number, 3) for number in range(3)]
    # 100 = 34 + 33 + 33.
    assert [one["rate"] for one in shares] == [34, 33, 33]
    assert [one["threads"] for one in shares] == [4, 4, 4]
    assert client_sharding.split_plan({**plan, "rate": 0}, 0, 3)["rate"] == 0, "a closed loop stays one"


def test_no_two_clients_ask_for_the_same_rows():
    last = 2**31 - 2
    for seed in (1, 7, last):
        seeds = [
            client_sharding.split_plan({"threads": 16, "seed": seed}, number, 16)["seed"]
            for number in range(16)
        ]
        assert seeds[0] == seed
        assert len(set(seeds)) == 16
        assert all(1 <= one <= last for one in seeds)


def test_client_i_uses_server_i_modulo_their_number():
    assert [client_sharding.server_of(client, 3) for client in range(6)] == [0, 1, 2, 0, 1, 2]


def test_runs_of_arms_without_the_keys_are_the_runs_they_were():
    one, three = schedule.plan_runs("test", study(), {})
    if one.arm != "one":
        one, three = three, one
    assert one.arm_setting == {"access": "direct"}
    assert three.arm_setting == {"access": "direct", "clients": 3, "servers": 3}
    assert (
        client_sharding.count_clients(one.arm_setting),
        client_sharding.count_servers(three.arm_setting),
    ) == (1, 3)


def test_several_clients_of_one_server_may_have_a_proxy_and_a_load():
    arms = {
        "a": {},
        "b": {"clients": 3, "access": "haproxy"},
        "c": {"clients": 3, "load": {"idle_connections": 5}},
    }
    made = study(arms=arms, engine={"settings": {"max_connections": 200}})
    assert made.arms["b"].clients == 3
