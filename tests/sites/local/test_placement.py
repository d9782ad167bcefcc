"""Arms that ask for the same part share it; what differs gets a part of its own."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchbook.core.study.study_arm import Arm, find_conflicts
from benchbook.sites.local import placement
from benchbook.sites.local.site import LocalSite
from tests import small
from tests.goldens import assert_golden

DATA = Path(__file__).parents[2] / "data"
CPUS = {"server": [0], "proxy": [1], "client": [1]}


def describe(part: Any) -> str:
    """Tell name and port of a part, its prepared data, and what differs from the usual."""
    where = part.where
    terms = {"shares": where.shares, "latency_ms": where.latency_ms}
    told = [f"{name} {value}" for name, value in terms.items() if value is not None]
    prepared = [part.prepared] if part.kind == "server" else []
    return " ".join([f"{part.kind} {part.name}:{part.port}", *prepared, *told])


def test_parts_of_arms_are_where_they_are_and_shared_where_they_are_alike() -> None:
    lines = []
    for name, given in YAML(typ="safe").load(DATA / "arm_places.yaml")["machine"].items():
        arms = {arm: Arm.model_validate(asked, strict=False) for arm, asked in given.pop("arms").items()}
        given["ports"] = dict.fromkeys(arms, given.get("ports", 1))
        lines.append(f"\n{name}")
        for arm, chain in placement.build_chains(arms, 34000, CPUS, **given).items():
            entry = f"{chain.entry.kind} {chain.entry.name}:{chain.entry.port}"
            lines.append(f"  {arm}: {', '.join(map(describe, chain.parts))}; into {entry}")
    assert_golden("arm_places.txt", "\n".join(lines).lstrip() + "\n")


def test_a_pod_has_kernel_settings_of_its_own() -> None:
    arms = {"a": Arm(), "b": Arm.model_validate({"network": "pod", "kernel": {"somaxconn": 9}})}
    assert list(find_conflicts(arms)) == []


def test_a_setting_leaves_out_what_it_does_not_ask_for() -> None:
    """A key that a later version adds must not ask for old runs to be made again."""
    assert Arm().setting == {"access": "direct"}
    told = Arm(network="pod", stands_in_for="a pod of a cluster")
    assert told.setting == {"access": "direct", "network": "pod"}


def test_a_server_takes_as_many_ports_as_its_engine_asks_for() -> None:
    arms = {"tidb": {}, "mariadb": {"engine": {"name": "mariadb"}}, "relay": {"access": "haproxy"}}
    engine = {"name": "tidb", "version": "6.6"}
    made = LocalSite(small.study(site={"port": 34000}, engine=engine, arms=arms), Path()).chains
    # TiDB has a status port behind its own, MariaDB one port; the proxy comes after both.
    assert [made[name].server.port for name in arms] == [34000, 34002, 34000]
    assert made["relay"].entry.port == 34003
