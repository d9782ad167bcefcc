"""Arms that ask for the same part share it; what differs gets a part of its own."""

from pathlib import Path

import pytest

from benchbook.core.study.study_arm import Arm, find_conflicts
from benchbook.sites.local import placement
from benchbook.sites.local.site import LocalSite
from tests import small

CPUS = {"server": [0], "proxy": [1], "client": [1]}


def chains(**arms: dict) -> dict[str, placement.Chain]:
    return placement.build_chains({name: Arm.model_validate(arm) for name, arm in arms.items()}, 34000, CPUS)


def test_the_first_server_has_the_studys_port_and_proxies_the_next_ones() -> None:
    made = chains(direct={}, relay={"access": "haproxy"})
    assert [(part.name, part.port) for part in made["relay"].parts] == [("server", 34000), ("proxy", 34001)]
    assert made["direct"].entry == made["relay"].server


def test_a_twin_that_is_apart_has_a_server_of_its_own_with_the_same_prepared_data() -> None:
    arms = {name: Arm() for name in ("direct", "direct_again")}
    together = placement.build_chains(arms, 34000, CPUS)
    assert together["direct"].server == together["direct_again"].server
    made = placement.build_chains(arms, 34000, CPUS, apart={"direct_again"})
    first, twin = made["direct"].server, made["direct_again"].server
    assert [(one.name, one.port) for one in (first, twin)] == [("server", 34000), ("server-2", 34001)]
    assert first.prepared == twin.prepared == "snapshot"


def test_access_and_client_share_a_server_but_network_quota_and_weight_do_not() -> None:
    made = chains(
        direct={},
        service={"access": "service"},
        slow_client={"cpu": {"client": {"quota": 0.5}}},
        pod={"network": "pod"},
        pod_service={"network": "pod", "access": "service"},
        small={"cpu": {"server": {"quota": 0.5}}},
        poor={"qos": "best_effort"},
    )
    servers = {name: chain.server.name for name, chain in made.items()}
    assert servers == {
        "direct": "server",
        "service": "server",
        "slow_client": "server",
        "pod": "server-2",
        "pod_service": "server-2",
        "small": "server-3",
        "poor": "server-4",
    }
    ports = [part.port for chain in made.values() for part in chain.parts if part.kind == "server"]
    assert len(set(ports)) == len(set(servers.values()))
    assert made["service"].entry != made["pod_service"].entry


def test_a_load_balancer_stands_in_front_of_the_service_and_the_distance_behind_both() -> None:
    made = chains(
        near={"access": "load_balancer", "zones": {"latency_ms": 0}},
        far={"access": "load_balancer", "zones": {"latency_ms": 2}},
    )
    assert [part.kind for part in made["far"].parts] == ["server", "relay", "service", "load_balancer"]
    assert made["near"].server == made["far"].server
    assert [part.where.latency_ms for part in (made["near"].parts[1], made["far"].parts[1])] == [0, 2]
    used = [part.port for chain in made.values() for part in chain.parts[1:] if part.kind != "service"]
    assert len(set(used)) == 4


@pytest.mark.parametrize(
    ("arm", "shares"),
    [
        ({}, None),
        ({"qos": "best_effort"}, 2),
        ({"qos": "guaranteed"}, 1024),
        ({"qos": "guaranteed", "cpu": {"server": {"quota": 0.5}}}, 512),
        ({"cpu": {"server": {"quota": 0.5}}}, 1024),
        ({"neighbour": {"processes": 1}}, 1024),
        ({"cpu": {"server": {"cores": [0]}}}, None),
    ],
)
def test_the_weight_of_a_server(arm: dict, shares: int | None) -> None:
    """Kubernetes: 1024 shares a core that is requested, 2 for a pod that requests nothing."""
    assert chains(one=arm)["one"].server.where.shares == shares


def test_a_pod_has_kernel_settings_of_its_own() -> None:
    arms = {"a": Arm(), "b": Arm.model_validate({"network": "pod", "kernel": {"somaxconn": 9}})}
    assert list(find_conflicts(arms)) == []


def test_a_setting_leaves_out_what_it_does_not_ask_for() -> None:
    """A key that a later version adds must not ask for old runs to be made again."""
    assert Arm().setting == {"access": "direct"}
    told = Arm(network="pod", stands_in_for="a pod of a cluster")
    assert told.setting == {"access": "direct", "network": "pod"}


def test_netem_is_used_only_if_it_can_make_the_distance_of_every_arm() -> None:
    """A hop in one arm and none in the other would compare the hop."""
    near, far = {"network": "pod", "zones": {"latency_ms": 0}}, {"network": "pod", "zones": {"latency_ms": 2}}
    arms = {name: Arm.model_validate(arm) for name, arm in {"near": near, "far": far}.items()}
    cable = placement.build_chains(arms, 34000, CPUS, has_netem=True)
    assert [chain.hop("relay") for chain in cable.values()] == [None, None]
    assert [chain.server.where.latency_ms for chain in cable.values()] == [0, 2]
    assert cable["near"].server != cable["far"].server
    on_host = Arm.model_validate(far | {"network": "host"})
    hop = placement.build_chains(arms | {"host": on_host}, 34000, CPUS, True)
    assert all(chain.hop("relay") for chain in hop.values()) and hop["far"].server.where.latency_ms is None


def test_another_engine_or_load_is_another_server_with_a_copy_of_its_own() -> None:
    arms = {
        "old": {},
        "pod": {"network": "pod"},
        "cold": {"data": {"prewarm": False}},
        "new": {"engine": {"version": "6.6"}},
        "relay": {"engine": {"version": "6.6"}, "access": "haproxy"},
    }
    both = dict.fromkeys(arms, 2)
    asked = {name: Arm.model_validate(arm) for name, arm in arms.items()}
    made = placement.build_chains(asked, 34000, CPUS, ports=both)
    servers = {name: chain.server for name, chain in made.items()}
    assert [servers[name].name for name in arms] == ["server", "server-2", "server-3", "server-4", "server-4"]
    copies = [servers[name].prepared for name in arms]
    assert copies == ["snapshot", "snapshot", "snapshot", "snapshot-2", "snapshot-2"]
    # Each has a status port behind its own.
    assert [servers[name].port for name in arms] == [34000, 34002, 34004, 34006, 34006]
    assert made["relay"].entry.port == 34008


def test_an_arm_with_three_servers_has_two_of_its_own_and_shares_the_first() -> None:
    arms = {
        "one": Arm(),
        "three": Arm(clients=3, servers=3),
        "proxy": Arm(access="haproxy"),
        "pair": Arm(clients=2, servers=2),
    }
    found = placement.build_chains(arms, 33000, CPUS, ports=dict.fromkeys(arms, 2))
    # TiDB takes two ports each; the proxy comes after the servers of the arms before it.
    assert [(part.name, part.port) for part in found["three"].servers] == [
        ("server", 33000),
        ("server-2", 33002),
        ("server-3", 33004),
    ]
    assert found["one"].servers == found["three"].servers[:1]
    assert found["pair"].servers == found["three"].servers[:2], "what is the same is made once"
    assert found["proxy"].parts[-1].port == 33006
    assert found["three"].entry == found["three"].server
    assert {part.prepared for part in found["three"].parts} == {"snapshot"}


def test_a_server_takes_as_many_ports_as_its_engine_asks_for() -> None:
    arms = {"tidb": {}, "mariadb": {"engine": {"name": "mariadb"}}, "relay": {"access": "haproxy"}}
    engine = {"name": "tidb", "version": "6.6"}
    made = LocalSite(small.study(site={"port": 34000}, engine=engine, arms=arms), Path()).chains
    # TiDB has a status port behind its own, MariaDB one port; the proxy comes after both.
    assert [made[name].server.port for name in arms] == [34000, 34002, 34000]
    assert made["relay"].entry.port == 34003
