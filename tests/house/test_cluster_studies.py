"""The studies for clusters ask what their sources print: sizes, settings, nodes and time."""

import os
import subprocess
from pathlib import Path

import pytest

from benchbook.commands import site_commands
from benchbook.core.util import paths
from benchbook.plan import schedule
from benchbook.sites.kube import placement as placement_module
from benchbook.sites.kube import plan_output
from tests.house import tree

# The minutes that the source's runs took for as many arms.
PUBLISHED_MINUTES = {
    **dict.fromkeys([f"tidb-kubernetes-{name}" for name in ("network", "system", "access")], 120),
    **dict.fromkeys([f"tidb-kubernetes-{name}" for name in ("machines", "zones")], 120),
    # One arm of three loads was published: 3 × 6 × 600 s.
    **{"tidb-kubernetes-workloads": 2 * 180, "mysql-kubernetes-qos": 90},
}
# Small ones for a cluster of one machine, each at most this many minutes.
SMALL = ("cluster-access", "cluster-network", "cluster-qos")
SMALL_MINUTES = 12


def origin(name: str) -> str:
    return "tidb-kubernetes" if name.startswith("tidb") else "mysql-kubernetes"


def test_no_study_for_a_cluster_is_left_out():
    found = {
        name
        for name in paths.list_studies()
        if "kind: kubernetes" in paths.study_paths(name).file.read_text()
    }
    assert found == {*PUBLISHED_MINUTES, *SMALL}


@pytest.mark.parametrize("name", SMALL)
def test_a_small_one_is_done_in_minutes_and_tells_how_to_get_its_cluster(name: str):
    asked = tree.study(name)
    runs = schedule.sketch_runs(name, asked)
    assert schedule.estimate_seconds(asked, runs) + schedule.pilot_seconds(asked) <= 60 * SMALL_MINUTES
    assert {run.order for run in runs} == {"runs" if name == "cluster-qos" else "turns"}
    text = paths.study_paths(name).file.read_text(encoding="utf-8")
    assert f"make repro STUDY={name}" in text and "tools/images/one-machine.sh up" in text
    assert f"`{name}`" in (tree.ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")


def test_a_cluster_that_was_not_built_is_not_started(tmp_path: Path):
    tool = tree.ROOT / "tools" / "images" / "one-machine.sh"
    up = subprocess.run(
        [tool, "up"], env=os.environ | {"KUBE_DIR": str(tmp_path)}, capture_output=True, text=True
    )
    assert up.returncode == 1 and up.stderr.endswith(f"first: {tool} build\n") and up.stdout == ""
    assert not list((tmp_path / "run").iterdir()) and not (tmp_path / "before").exists()


@pytest.mark.parametrize("name", PUBLISHED_MINUTES)
def test_sizes_levels_and_time_are_those_that_the_source_prints(name: str):
    asked, options = tree.study(name), tree.document(origin(name)).sysbench.options
    assert (asked.dataset.tables, asked.dataset.table_size) == (options["tables"], options["table-size"])
    assert set(asked.threads) <= tree.printed_levels(origin(name)) | {options.get("threads")}
    seconds = schedule.estimate_seconds(asked, schedule.sketch_runs(name, asked))
    assert 0.9 * 60 * PUBLISHED_MINUTES[name] < seconds <= 1.01 * 60 * PUBLISHED_MINUTES[name]


@pytest.mark.parametrize("name", [name for name in PUBLISHED_MINUTES if name.startswith("tidb")])
def test_settings_of_cluster_and_nodes_are_the_sources(name: str):
    printed = tree.document("tidb-kubernetes").configuration
    here = placement_module.get_section(tree.study(name))
    assert here.tidb is not None and here.gke is not None
    kernel = {"net.core.somaxconn": 32768, "vm.swappiness": 0, "net.ipv4.tcp_syncookies": 0}
    assert here.gke.sysctls == kernel == {key: printed["kernel"][key] for key in kernel}
    assert here.gke.open_files == printed["kernel"]["open files"]
    assert dict(here.tidb.tikv.config) == printed["TiKV"]
    told = dict(here.tidb.tidb.config)
    assert {"level": told.pop("log.level"), **told} == printed["TiDB"]
    assert tree.study(name).engine.settings == printed["TiDB variables"]
    # "In this test, the iSCSI interface type is used for all local SSD disks."
    assert {pool.ssd_interface for pool in here.gke.pools.values() if pool.local_ssds} == {"scsi"}


@pytest.mark.parametrize("name", [name for name in PUBLISHED_MINUTES if name.startswith("tidb")])
def test_every_cluster_of_an_arm_has_nodes_of_its_own(name: str):
    asked = tree.study(name)
    here, chains = placement_module.get_section(asked), placement_module.build_chains(asked)
    used: dict[str, set[str]] = {}
    for arm, chain in chains.items():
        placement = asked.arms[arm].placement
        nodes = {**here.nodes, **(placement.nodes if placement is not None else {})}
        for role in ("pd", "tikv", "server"):
            used.setdefault(nodes[role]["benchbook-pool"], set()).add(chain.server.name)
    assert all(len(clusters) == 1 for clusters in used.values())


def test_the_zones_have_three_clients_and_one_in_each_zone():
    asked = tree.study("tidb-kubernetes-zones")
    assert {arm.clients for arm in asked.arms.values()} == {3}
    gke = placement_module.get_section(asked).gke
    assert gke is not None
    assert gke.pools["load-one"].nodes == 3 and len(gke.pools["load-one"].zones or ()) == 1
    assert gke.pools["load-several"].nodes == 1 and gke.pools["load-several"].zones is None
    placed = {chain.client.where.nodes for chain in placement_module.build_chains(asked).values()}
    assert placed == {(("benchbook-pool", "load-one"),), (("benchbook-pool", "load-several"),)}


def test_a_pod_of_the_baselines_own_class_without_a_neighbour_shows_nothing_of_classes():
    """Of MySQL without Kubernetes a cluster can make a pod alone: it is BestEffort, as the arm beside it."""
    asked = tree.study("mysql-kubernetes-qos")
    classes = {
        arm: chain.server.where.resources.qos_class
        for arm, chain in placement_module.build_chains(asked).items()
    }
    assert classes == {"bare-metal": "BestEffort", "best-effort": "BestEffort", "guaranteed": "Guaranteed"}
    arm = asked.arms["best-effort"]
    assert arm.neighbour is None and not arm.illustrates
    assert "no difference is expected" in (arm.stands_in_for or "")


@pytest.mark.parametrize("name", PUBLISHED_MINUTES)
def test_plan_and_manifests_of_each_are_made(name: str):
    text = plan_output.render_plan(name, tree.study(name)) + site_commands.cluster_summary(tree.study(name))
    assert "needs" in text and "makes in namespace" in text
    assert "kind: " in plan_output.render_manifests(name, tree.study(name))
    if name.startswith("tidb"):
        assert "TiDB Operator 1.3.10 for TiDB v3.0.1" in text
        # 16 × 10,000,000 rows of 250 bytes, three times over three TiKVs.
        assert "about 37 GiB in each TiKV of a cluster, of which no copy is kept" in text
        assert "enableDynamicConfiguration: false" in plan_output.render_manifests(name, tree.study(name))
