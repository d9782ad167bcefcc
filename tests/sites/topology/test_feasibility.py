"""One list says which arms can't be made and why, before anything starts, whatever the kind of site."""

import os
from pathlib import Path
from typing import Any

import pytest

from benchbook.commands import cli
from benchbook.core.study import inventory, load
from benchbook.core.study.study import StudySpec
from benchbook.sites.topology import feasibility, parts
from tests.sites import kubernetes_study
from tests.sites.hosts import test_placement

ABSENT = 1000 + (os.cpu_count() or 1)


@pytest.fixture
def listed(make_study, monkeypatch: pytest.MonkeyPatch) -> StudySpec:
    """A study of this machine, one of whose arms asks for a core that is not there, as params.yaml has it."""
    arm = {"access": "direct", "cpu": {"server": {"cores": [ABSENT]}}}
    study = make_study()
    far = type(study.arms["direct"]).model_validate(arm)
    study = study.model_copy(update={"arms": {**study.arms, "far_core": far}})
    for reader in ("load_study", "load_for_measuring"):
        monkeypatch.setattr(load, reader, lambda name, *_: study)
    return study


def test_plan_and_doctor_name_the_arm_and_the_reason(listed: StudySpec, capsys: pytest.CaptureFixture):
    (arm,) = found = feasibility.find_infeasible(listed)
    assert arm == "far_core" and found[arm].startswith(f"core {ABSENT} is not there")
    assert cli.main(["plan", "quick"]) == 0
    assert f"  not made    far_core: {found[arm]}\n" in capsys.readouterr().out
    ability = feasibility.examine_studies()[0]
    assert (ability.ok, ability.is_needed) == (False, False)
    assert ability.name.startswith("study ") and ability.detail == f"far_core is skipped: {found[arm]}"


def test_of_hosts_all_reasons_are_told_at_once_from_the_inventory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inventory, "load_hosts", lambda _: test_placement.HOSTS)
    odd = {"cpu": {"server": {"quota": 1.5}}, "hosts": {"server": "gen1"}}
    found = feasibility.find_infeasible(test_placement.study({"direct": {}, "odd": odd}))
    assert list(found) == ["odd"]
    first, second = found["odd"].split("; ")[:2]
    assert first.startswith("hosts.server: gen1: no host")
    assert second.startswith("cpu.server.quota: ") and "site.kind: ssh" in second


def test_an_inventory_that_is_not_there_is_no_reason_of_an_arm(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(inventory.VARIABLE, str(tmp_path / "none.yaml"))
    assert feasibility.find_infeasible(test_placement.study({"direct": {}, "other": {"clients": 2}})) == {}


def test_of_a_cluster_what_rules_out_any_is_told_without_one():
    old = kubernetes_study.make(("pod", "host"), engine={"name": "tidb", "version": "5.0"})
    assert set(feasibility.find_infeasible(old)) == {"pod", "host"}
    assert "before it has accounts" in feasibility.find_infeasible(old)["pod"]
    assert feasibility.find_infeasible(kubernetes_study.make()) == {}


def test_parts_that_are_asked_for_alike_are_one_and_ports_go_on_at_each_place():
    made = parts.Arranged[str](4000)

    def part(key: str, role: str, *places: str, ports: int = 1, **rest: Any) -> parts.ChainPart[str]:
        return made.once(role, role, ports, places, key, **{"where": places[0], **rest})

    def told(one: parts.ChainPart[str]) -> tuple[str, int, int, str]:
        return one.name, one.rank, one.port, one.where

    assert told(part("a", "server", "db1")) == ("server", 0, 4000, "db1")
    assert part("a", "server", "db1") is part("a", "server", "db1")
    assert told(part("b", "server", "db1", ports=2)) == ("server-2", 1, 4001, "db1")
    assert told(part("c", "proxy", "db2")) == ("proxy", 0, 4000, "db2")
    assert part("one of its own", "service", "db2", port=3306).port == 3306, "it takes none of them"
    # At several places the same ports: after the most that are taken at one of them.
    assert part("d", "server", "db1", "db2", ports=64, where=str).where == "4003"
    assert part("e", "proxy", "db2").port == 4067


def test_a_cluster_of_programs_is_not_asked_for_settings_before_it_is_up():
    """It lists none; what it took is read back once it is up."""
    foreseen = feasibility.find_infeasible(load.load_study("lab-cluster-tidb"))
    assert set(foreseen) <= {"one-tidb", "three-tidb"}
