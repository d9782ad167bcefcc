"""A fleet in a cluster of two nodes: a lost pod or node costs its own session alone, Ctrl-C leaves nothing.

`tools/images/one-machine.sh node node2` gives one machine's cluster a second node. The pods have this
machine's programs; of the image they need the folders alone.
"""

import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from ruamel.yaml import YAML

from benchbook.commands.fleet_kubernetes import INDEX, LABEL
from benchbook.core.util.errors import SiteError
from benchbook.sites.kube.api import VARIABLES, KubernetesCluster
from tests import beside
from tests.pipeline import clone as clones
from tests.sites import kubernetes_study

HAS_CLUSTER = any(os.environ.get(name) for name in VARIABLES)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HAS_CLUSTER, reason=f"no cluster: neither {' nor '.join(VARIABLES)} is set"),
]
LOST = {"key": "benchbook/test-lost", "effect": "NoExecute", "value": "yes"}


def mounted() -> list[Path]:
    """Return the folders that a pod has of this machine: its programs, Python's, and this environment."""
    asked = {Path("/usr"), Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()}
    return sorted(one for one in asked if not asked.intersection(one.parents))


def inventory(folder: Path) -> Path:
    shared = [(f"v{number}", str(one)) for number, one in enumerate(mounted())]
    mounts = [{"name": name, "mountPath": path, "readOnly": True} for name, path in shared]
    container = {"imagePullPolicy": "IfNotPresent", "securityContext": {"privileged": True}}
    written = {
        "image": kubernetes_study.IMAGE,
        "pod": {"volumes": [{"name": name, "hostPath": {"path": path}} for name, path in shared]},
        "container": {**container, "volumeMounts": mounts},
    }
    file = folder / "cluster.yaml"
    with file.open("w") as into:
        YAML(typ="safe").dump(written, into)
    return file


class Fleet:
    """A fleet that was started, and its pods as the cluster has them."""

    def __init__(self, clone: clones.Clone, cluster: KubernetesCluster, argv: list[str]) -> None:
        self.cluster, self.clone = cluster, clone
        more = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        self.process = clone.start(*argv, more=more)

    def listed(self) -> list[Any]:
        return self.cluster.core.list_namespaced_pod("default", label_selector=LABEL).items

    def pods(self) -> dict[str, Any]:
        """Return the pods that run, by their sessions."""
        running = (one for one in self.listed() if one.status.phase == "Running")
        return {one.metadata.annotations[INDEX]: one for one in running}

    def runs(self, session: str) -> int:
        """Return how many runs a session has measured."""
        asked = ["sh", "-c", "ls -d /session/fleet/data/tiny/raw/b* | wc -l"]
        try:
            return int(self.cluster.run("default", self.pods()[session].metadata.name, asked).text)
        except (SiteError, KeyError, ValueError):
            return 0

    def wait_for(self, what: Callable[[], bool]) -> None:
        """Wait until something has happened in the cluster while the fleet goes on."""
        beside.until(lambda: what() or self.process.poll() is not None, 400)
        assert self.process.poll() is None, self.end()

    def end(self) -> str:
        said, _ = self.process.communicate(timeout=900)
        assert [one.metadata.name for one in self.listed()] == [], said
        return str(said)

    def recorded(self) -> int:
        index = self.clone.path / "data/record/tiny/index.json"
        return len(json.loads(index.read_text())["sessions"]) if index.is_file() else 0


@pytest.fixture
def start() -> Iterator[Callable[..., Fleet]]:
    cluster = KubernetesCluster()
    nodes = [one.metadata.name for one in cluster.core.list_node().items if not one.spec.taints]
    if len(nodes) < 2:
        pytest.skip(f"the cluster has {len(nodes)} free nodes; a fleet has one for each session")
    with tempfile.TemporaryDirectory(prefix="bb-", dir="/var/tmp") as folder:
        clone = clones.make(Path(folder))
        clone.study(blocks=2, discard_s=1, run_s=2)
        # Two nodes on one machine starve each other's turns.
        file = clone.path / "studies" / "tiny.yaml"
        file.write_text(file.read_text().replace("turn_ms: 50", "order: runs"))
        clone.commit()
        asked = ["benchbook", "fleet", "tiny", "--anyway", "--setup", f"ln -sfn {Path(sys.prefix)} .venv"]
        started: list[Fleet] = []

        def begin(sessions: int) -> Fleet:
            words = ["--on", str(inventory(Path(folder))), "--sessions", str(sessions)]
            started.append(Fleet(clone, cluster, [*asked, *words]))
            return started[-1]

        yield begin
        for one in started:
            if one.process.poll() is None:
                one.process.kill()
                one.process.communicate()


def test_a_pod_that_is_killed_costs_its_own_session_which_is_made_once_more(start):
    fleet = start(2)
    fleet.wait_for(lambda: fleet.runs("1") >= 2)
    killed = fleet.pods()["1"]
    fleet.cluster.core.delete_namespaced_pod(killed.metadata.name, "default", grace_period_seconds=0)
    said = fleet.end()
    assert fleet.process.returncode == 0, said
    assert re.search(rf"session 1 begins, .* on {killed.spec.node_name}", said)
    assert said.count("session 0 begins") == 1 and "session 0 begins, once more" not in said
    assert "2 of 2 sessions are recorded" in said and "tiny, over 2 sessions:" in said
    assert fleet.recorded() == 2


def test_the_session_of_a_lost_node_is_made_on_another_once_that_is_free(start):
    fleet = start(2)
    fleet.wait_for(lambda: fleet.runs("1") >= 1)
    lost = fleet.pods()["1"].spec.node_name
    patch = fleet.cluster.core.patch_node
    patch(lost, {"spec": {"taints": [LOST]}})
    try:
        said = fleet.end()
    finally:
        patch(lost, {"spec": {"taints": None}})
    assert fleet.process.returncode == 0, said
    assert re.search(rf"session 1 begins, .* on {lost}", said)
    assert f"{lost}: session 1 begins, once more" not in said
    assert "2 of 2 sessions are recorded" in said and fleet.recorded() == 2


def test_ctrl_c_leaves_nothing_in_the_cluster(start):
    fleet = start(2)
    fleet.wait_for(lambda: fleet.runs("0") >= 1)
    fleet.process.send_signal(signal.SIGINT)
    said = fleet.end()
    assert fleet.process.returncode == 130, said
    jobs = client.BatchV1Api(fleet.cluster.api).list_namespaced_job("default", label_selector=LABEL).items
    assert jobs == [], said
