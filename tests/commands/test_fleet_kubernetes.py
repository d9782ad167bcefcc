"""A fleet in a cluster: a node for each session, one more attempt, and what goes wrong meanwhile."""

import io
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace as Space
from typing import Any

import psutil
import pytest

from benchbook.commands import fleet, fleet_kubernetes, fleet_sessions
from benchbook.commands import record as recording
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.sites.kube import api
from tests import beside
from tests.goldens import assert_golden


def test_each_session_has_a_node_of_its_own_and_a_second_attempt(tmp_path: Path):
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "image: bench:1\n"
        "pod: {nodeSelector: {pool: c2}, tolerations: [{key: bench, operator: Exists}]}\n"
        "container: {securityContext: {privileged: true}}\n"
        "resources: {requests: {cpu: '4'}}\n"
    )
    manifest = fleet_kubernetes.build_manifest(fleet._read_cluster(file), "ab12", 20, "true")
    assert_golden("fleet-job.txt", json.dumps(manifest, indent=2))


def test_a_key_that_no_cluster_has_is_refused_by_its_line(tmp_path: Path):
    file = tmp_path / "cluster.yaml"
    file.write_text("image: bench:1\nnamespaces: bench\n")
    with pytest.raises(InputErrors, match="namespace"):
        fleet._read_cluster(file)


def pod(index: str, uid: str, node: str, phase: str = "Running") -> Any:
    status = Space(phase=phase, message=None, container_statuses=[], conditions=[])
    meta = Space(name=f"fleet-{index}-{uid}", uid=uid, deletion_timestamp=None, annotations={})
    meta.annotations[fleet_kubernetes.INDEX] = index
    return Space(metadata=meta, spec=Space(node_name=node), status=status)


class Stand:
    """Stands for the API: at each look the next pods are there, or it is away; `failed` is the Job's word."""

    def __init__(self, looks: list[list[Any] | None], failed: str = "", packed: Sequence[str] = ()) -> None:
        self.looks, self.failed, self.packed, self.removed = looks, failed, packed, 0
        self.api = None
        self.completed = ""
        nodes = [Space(metadata=Space(labels={"node.kubernetes.io/instance-type": "c2"}))] * 3
        self.core = Space(
            list_node=lambda **_: Space(items=nodes),
            list_namespaced_pod=self.pods,
            read_namespaced_pod_log=lambda name, _: f"in {name}",
        )

    def pods(self, *_: str, **__: str) -> Any:
        found = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if found is None:
            raise api.ApiUnavailable("the cluster can't be reached")
        return Space(items=[] if self.removed else found)

    def apply(self, manifest: dict[str, Any]) -> None:
        assert manifest["kind"] == "Job"

    def ask(self, call: Any, *words: str, **options: Any) -> Any:
        if call.__name__ == "delete_namespaced_job":
            self.removed += 1
            return None
        if call.__name__ == "read_namespaced_job_status":
            return Space(status=Space(failed_indexes=self.failed, completed_indexes=self.completed))
        options.pop("tail_lines", None)
        return call(*words, **options)

    def run(self, _: str, name: str, argv: list[str]) -> api.CommandResult:
        is_there = argv[0] == "touch" or name in self.packed
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("data/record/tiny/2026-01-01T0000Z-abcd.tar.xz"))
        return api.CommandResult(int(not is_there), packed.getvalue(), b"")


@pytest.fixture
def stood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Stand, int], tuple[int, list[str]]]:
    """Measure sessions in a stand-in; return how many are recorded, and what was said."""

    def measure(stand: Stand, sessions: int) -> tuple[int, list[str]]:
        said: list[str] = []
        monkeypatch.setattr(fleet_kubernetes, "KubernetesCluster", lambda _: stand)
        monkeypatch.setattr(fleet_kubernetes, "POLL_S", 0.01)
        monkeypatch.setattr(fleet_kubernetes.InCluster, "_send", lambda *_: None)
        place = fleet_kubernetes.ClusterPlace(image="bench:1")
        (tmp_path / "arrived").mkdir()
        asked = (place, ["tiny"], "ab12", "true", "", tmp_path / "tree.tar.gz", tmp_path / "arrived")
        monkeypatch.setattr("builtins.print", said.append)
        monkeypatch.setattr(fleet_sessions.paths, "find_root", lambda: tmp_path)
        return fleet_kubernetes.InCluster(*asked).measure(sessions), said

    return measure


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the archives that the record took."""
    names: list[str] = []

    def take(files: list[Path]) -> dict[Path, str]:
        names.extend(file.name for file in files)
        return {file: f"data/record/tiny/{file.name}: took" for file in files}

    monkeypatch.setattr(recording, "take_archives", take)
    return names


def test_an_api_that_goes_away_is_waited_for_and_a_lost_session_made_once_more(stood, recorded):
    first, again, other = pod("0", "a", "node1"), pod("0", "b", "node2"), pod("1", "c", "node3")
    looks = [[first, other], None, None, [first, other], [other], [again, other]]
    stand = Stand(looks, packed=("fleet-0-b", "fleet-1-c"))
    taken, said = stood(stand, 2)
    assert taken == 2 and stand.removed == 1
    # The archives are named by node and session.
    assert sorted(recorded) == [
        "node2-session-0-2026-01-01T0000Z-abcd.tar.xz", "node3-session-1-2026-01-01T0000Z-abcd.tar.xz"
    ]  # fmt: skip
    # Three equal nodes are one occasion, and what was begun in vain is counted.
    assert_golden("fleet-away.txt", re.sub(r"\d{4}-\S+Z", "TIME", "\n".join(said)) + "\n")


def test_sessions_that_are_refused_are_kept_and_those_lost_twice_are_named(stood, monkeypatch, tmp_path):
    def refuse(files: list[Path]) -> dict[Path, BenchbookError]:
        return {file: BenchbookError(f"{file.name}: not recorded") for file in files}

    monkeypatch.setattr(recording, "take_archives", refuse)
    waiting = pod("2", "d", "", "Pending")
    waiting.status.conditions = [
        Space(type="PodScheduled", status="False", reason="Unschedulable", message="0/2 nodes")
    ]
    stand = Stand([[pod("0", "a", "node1"), waiting]], failed="1-2,5", packed=("fleet-0-a",))
    taken, said = stood(stand, 4)
    assert taken == 0 and stand.removed == 1
    (kept,) = (tmp_path / "arrived").iterdir()
    assert f"{kept.name}: not recorded" in said
    assert_golden("fleet-refused.txt", "\n".join(said) + "\n")


def test_what_stops_a_fleet_removes_its_job(stood, monkeypatch):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fleet_kubernetes.InCluster, "_attend", stop)
    stand = Stand([[pod("0", "a", "node1")]])
    with pytest.raises(KeyboardInterrupt):
        stood(stand, 1)
    assert stand.removed == 1


@pytest.mark.usefixtures("recorded")
def test_a_resumed_fleet_takes_what_had_arrived_and_waits_for_the_others_alone(stood):
    """Its Job is there, and one of its pods has ended since its archive was taken."""
    stand = Stand([[pod("1", "b", "node2")]], packed=("fleet-1-b",))
    stand.completed = "0"
    taken, said = stood(stand, 2)
    assert taken == 1 and not [one for one in said if "session 0" in one]


def test_a_pod_has_whole_cores_of_its_own_only_if_limits_say_so():
    whole = {"cpu": "4", "memory": "8Gi"}
    assert fleet_kubernetes.ClusterPlace(
        image="b:1", resources={"limits": whole, "requests": whole}
    ).is_guaranteed
    for resources in ({}, {"requests": whole}, {"limits": {**whole, "cpu": "3500m"}}):
        assert not fleet_kubernetes.ClusterPlace(image="b:1", resources=resources).is_guaranteed


@pytest.mark.parametrize("sent", [10, 20])
def test_a_commit_that_arrives_in_part_is_none(sent: int, tmp_path: Path):
    into = fleet_kubernetes.TAKE.format(20).replace("/session", str(tmp_path))
    done = subprocess.run(["sh", "-c", into], input=bytes(sent), timeout=60)
    assert (tmp_path / "tree.tar.gz").exists() == (done.returncode == 0) == (sent == 20)


def of_group(group: int) -> list[str]:
    """Return the programs of a group of processes that run; who has ended may wait for its new parent."""
    found = []
    for one in psutil.process_iter():
        try:
            if os.getpgid(one.pid) == group and one.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(one.cmdline()))
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def test_a_pod_that_nobody_asks_for_ends_with_all_it_started(tmp_path: Path):
    words = {"setup": "sleep 60", "studies": "tiny", "words": "", "lease": 1}
    script = fleet_kubernetes.SCRIPT.format(**words).replace("sleep 9", "sleep 1")
    with tarfile.open(tmp_path / "tree.tar.gz", "w:gz"):
        pass
    command = ["sh", "-c", script.replace("/session", str(tmp_path))]
    started = subprocess.Popen(command, start_new_session=True)
    assert started.wait(timeout=60) != 0
    assert beside.gone(lambda: of_group(started.pid)) == []
