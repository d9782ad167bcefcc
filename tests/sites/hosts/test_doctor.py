"""The doctor asks a host for the programs that the studies at hand need for its roles, and for no other."""

import pytest

from benchbook.core.study import inventory, load
from benchbook.core.study.inventory import Target
from benchbook.core.study.study import StudySpec
from benchbook.sites.agent.facts import HostSnapshot
from benchbook.sites.hosts import doctor
from tests.sites.hosts.test_placement import HOSTS, study

LOAD = inventory.load_hosts


def made(engine: str) -> StudySpec:
    return study({"direct": {}, "proxy": {"access": "haproxy"}}, name=engine)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each host answers, and has every program but PostgreSQL's and HAProxy."""

    def look(target: Target) -> tuple[HostSnapshot, float]:
        known = {"system": "Linux", "cores": 2, "mariadb": "10.11.6"}
        tools = dict.fromkeys(("mariadbd", "mariadb-install-db", "sysbench"), "/bin/it")
        moment = {"disk_free_mib": 1 << 20}
        return HostSnapshot(known, moment, tools, "root", "/", True, "3", 0.0, open_files=-1), 0.0

    monkeypatch.setattr(doctor, "_inspect_target", look)
    monkeypatch.setattr(inventory, "load_hosts", lambda name: HOSTS)


def told(*studies: StudySpec) -> dict[str, bool]:
    """Return for each host's program whether it is there; other abilities are left out."""
    others = {"ssh", "disk", "open files", "clock", "rights"}
    found = {one.name: one.ok for one in doctor.of_inventory("rack", studies)}
    return {name: ok for name, ok in found.items() if name.partition(": ")[2] not in others}


def needs(role: str, is_there: bool, *programs: str) -> dict[str, bool]:
    """Return what is told of programs on all hosts with a role."""
    hosts = [host for host, target in HOSTS.items() if role in target.roles]
    return {f"{host}: {program}": is_there for host in hosts for program in programs}


def test_each_role_is_asked_for_its_programs_and_servers_for_the_engines_of_the_studies_alone(there: None):
    others = needs("proxy", False, "haproxy") | needs("client", True, "sysbench")
    mariadb = others | needs("server", True, "mariadbd", "mariadb-install-db")
    postgresql = others | needs("server", False, "postgres")
    studies = [made("mariadb"), made("postgresql")]
    assert [told(study) for study in studies] == [mariadb, postgresql]
    # What two studies need is told once.
    assert told(*studies, studies[0]) == mariadb | postgresql


def test_the_client_outside_a_cluster_is_looked_at_for_sysbench_alone(there, tmp_path, monkeypatch):
    file = tmp_path / "outside.yaml"
    file.write_text("hosts: {gen1: {host: 192.0.2.9, roles: [client]}}\n")
    monkeypatch.setattr(inventory, "load_hosts", LOAD)
    monkeypatch.setenv(inventory.VARIABLE, str(file))
    monkeypatch.setattr(doctor.paths, "list_studies", lambda: ["tidb-kubernetes-access"])
    assert told(load.load_study("tidb-kubernetes-access")) == {"gen1: sysbench": True}
    assert {"gen1: ssh", "gen1: sysbench"} <= {one.name for one in doctor.examine()}


def test_only_the_pipelines_studies_ask_where_they_name_the_inventory(there, tmp_path, monkeypatch):
    studies = {"mine": made("mariadb"), "other": made("postgresql")}
    for name in studies:
        (tmp_path / name).write_text("inventory: rack")
    monkeypatch.setattr(doctor.paths, "list_studies", lambda: list(studies))
    monkeypatch.setattr(doctor.paths, "study_paths", lambda name: type("File", (), {"file": tmp_path / name}))
    monkeypatch.setattr(inventory, "inventory_file", lambda name: tmp_path / "mine")
    monkeypatch.setattr(load, "load_study", studies.__getitem__)
    asked = type("Params", (), {"studies": ["mine"]})
    monkeypatch.setattr(load, "load_params", lambda: asked)
    assert not [one.name for one in doctor.examine() if "postgres" in one.name]
    asked.studies = []
    assert [one.name for one in doctor.examine() if "postgres" in one.name]
