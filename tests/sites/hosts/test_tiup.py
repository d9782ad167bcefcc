"""The topology file for tiup, held against the fields that its reference documents; nothing is started."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from benchbook.core.study.inventory import Target
from benchbook.core.study.study import StudySpec
from benchbook.sites.hosts import placement, tiup
from benchbook.sites.hosts.watch import merge_rows, sum_events
from benchbook.sites.machine.local_machine import COLUMNS
from tests.house import tree

# Fields of tiup's topology reference with the types that it gives them; only those that we write.
COMMON = {"host": str, "ssh_port": int, "deploy_dir": str, "log_dir": str}
BOUND = {"numa_node": str, "config": dict}
REFERENCE: dict[str, dict[str, type]] = {
    "global": {"user": str, "arch": str},
    "monitored": {"node_exporter_port": int, "blackbox_exporter_port": int},
    "server_configs": {"tidb": dict, "tikv": dict, "pd": dict},
    "pd_servers": {**COMMON, "name": str, "client_port": int, "peer_port": int, "data_dir": str},
    "tidb_servers": {**COMMON, **BOUND, "port": int, "status_port": int},
    "tikv_servers": {**COMMON, **BOUND, "port": int, "status_port": int, "data_dir": str},
}
FACTS = {"architecture": "x86_64", "numa": {"node0": "0-9,20-29", "node1": "10-19,30-39"}}


def hosts() -> dict[str, Target]:
    """Three machines with all of a cluster, as the how-to has them, and one for the rest."""
    how = {"key_file": None, "known_hosts": Path("known"), "folder": None, "user": "root"}
    waits = {"lease_s": 9.0, "patience_s": 5.0, "timeout_s": 1.0}
    roles = {f"db{rank}": ("server", "pd", "tikv") for rank in (1, 2, 3)}
    roles["gen1"] = ("client", "control", "proxy")
    return {
        name: Target(name=name, host=name, address=f"{name}.lan", roles=its, port=2222, **how, **waits)
        for name, its in roles.items()
    }


def made(arm: str, study: StudySpec | None = None) -> dict[str, Any]:
    """Return the topology of an arm as tiup would read it."""
    asked = study or tree.study("tidb-sysbench-howto")
    part = placement.build_chains(asked, hosts())[arm].server
    folders = dict.fromkeys(hosts(), "/srv/lab")
    built = tiup.build_topology(asked, part, hosts(), folders, dict.fromkeys(hosts(), FACTS))
    return YAML(typ="safe").load(tiup.topology_text(built))


@pytest.mark.parametrize("arm", ["three-servers", "numa-nodes"])
def test_every_field_is_one_of_the_references_and_no_two_instances_share_a_port_or_a_folder(arm: str):
    found = made(arm)
    assert set(found) == set(REFERENCE)
    for section, fields in REFERENCE.items():
        for entry in found[section] if section.endswith("_servers") else [found[section]]:
            assert set(entry) <= set(fields)
            assert {key: type(entry[key]) for key in entry} == {key: fields[key] for key in entry}
    ports: list[tuple[str, int]] = []
    folders: list[tuple[str, str]] = []
    for one in (*found["pd_servers"], *found["tidb_servers"], *found["tikv_servers"]):
        ports += [(one["host"], one[key]) for key in one if key.endswith("port") and key != "ssh_port"]
        folders.append((one["host"], one["deploy_dir"]))
    assert len(ports) == len(set(ports)) and len(folders) == len(set(folders))
    exporters = set(found["monitored"].values())
    assert not exporters & {port for _, port in ports}


def test_a_tidb_for_each_numa_node_is_bound_to_it_and_has_its_cores():
    each = made("numa-nodes")["tidb_servers"]
    assert [(one["host"], one["numa_node"]) for one in each[:2]] == [("db1.lan", "0"), ("db1.lan", "1")]
    # 0-9 and 20-29 are twenty.
    assert len(each) == 6 and all(one["config"] == {"performance.max-procs": 20} for one in each)
    assert not any("numa_node" in one for one in made("three-servers")["tidb_servers"])


def test_settings_of_the_source_are_there_and_none_that_its_version_does_not_know():
    found = made("three-servers")["server_configs"]
    assert found["tikv"]["storage.block-cache.capacity"] == "30GB" and found["tikv"]["log-level"] == "error"
    assert found["tidb"]["log.level"] == "error" and found["tidb"]["prepared-plan-cache.enabled"] is True
    assert "enable-telemetry" not in found["tidb"], "3.0 would not know it"


def test_arms_that_differ_in_access_alone_share_a_cluster_and_others_do_not():
    asked = tree.study("tidb-sysbench-howto")
    chains = placement.build_chains(asked, hosts())
    assert chains["haproxy"].server == chains["three-servers"].server != chains["numa-nodes"].server
    assert [place.port for place in placement.list_endpoints(chains["three-servers"])] == [4000] * 3
    ends = placement.list_endpoints(chains["three-servers"])
    assert [place.host for place in ends] == ["db1", "db2", "db3"]
    # Six clients, six servers: two on each host, on ports of a block of their own.
    assert [(one.host, one.port) for one in placement.list_endpoints(chains["numa-nodes"])[:3]] == [
        *(("db1", 4064), ("db1", 4066), ("db2", 4064))
    ]
    proxy = placement.reached_at(chains["haproxy"].proxy)[0]
    assert placement.list_endpoints(chains["haproxy"]) == (proxy,) * 3


def test_rows_of_a_part_on_two_hosts_are_added_and_a_second_of_one_alone_is_left_out():
    def row(second: str, part: str, cpu: str, sent: str) -> list[str]:
        known = [second, part, cpu, "10", "", "", "", "", "1", sent]
        return known + [""] * (len(COLUMNS) - len(known))

    one = [row("1.0", "server", "0.5", "2"), row("2.0", "server", "0.75", ""), row("3.0", "server", "1", "1")]
    two = [row("1.1", "server", "0.25", "3"), row("2.1", "server", "0.25", "4")]
    found = merge_rows([[*one, row("1.0", "machine", "2", "")], two])
    # 0.5 + 0.25 cores and 2 + 3 MiB/s; then 0.75 + 0.25, and no sum where one has no figure.
    assert [(line[0], line[1], float(line[2]), line[9]) for line in found] == [
        ("1.0", "server", 0.75, "5.0000"),
        ("1.0", "machine", 2.0, ""),
        ("2.0", "server", 1.0, ""),
    ]


def test_events_of_a_part_on_two_hosts_are_added_where_both_count_them():
    one = {
        "server": {"cpu_s": 0.5, "cycles": 1e9, "llc_misses": 7.0},
        "client": {"cpu_s": 1.0, "cycles": 2e9},
    }
    found = sum_events([one, {"server": {"cpu_s": 0.25, "cycles": 5e8}}])
    assert found == {"server": {"cpu_s": 0.75, "cycles": 1.5e9}, "client": {"cpu_s": 1.0, "cycles": 2e9}}
