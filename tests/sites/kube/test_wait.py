"""How long a pod is waited for, and a TiDB cluster of pods, and what is told then; no cluster is asked."""

from types import SimpleNamespace as Of
from typing import Any

import pytest

from benchbook.core.util.errors import SiteError
from benchbook.sites.kube import placement, server, tidb_cluster, tidb_manifests, wait
from benchbook.sites.kube.manifests import DIGEST
from tests.goldens import assert_golden
from tests.sites import kubernetes_study

EVENT = Of(reason="Failed", message="no such image")


def pod(name: str, reason: str | None = None, digest: str = "new") -> Any:
    """Return a pod that runs, or waits for a reason."""
    waiting = None if reason is None else Of(reason=reason, message="")
    part = name.split("-")[1] if "-" in name else ""
    meta = {"name": name, "labels": {tidb_manifests.COMPONENT: part}, "annotations": {DIGEST: digest}}
    return Of(
        metadata=Of(**meta, deletion_timestamp=None),
        spec=Of(containers=[Of(env=[Of(name=tidb_manifests.MADE_AS, value="new")])]),
        status=Of(
            phase="Running" if reason is None else "Pending",
            container_statuses=[Of(state=Of(waiting=waiting), ready=reason is None)],
            conditions=[],
        ),
    )


class Told:
    """A cluster that shows other pods at each look, and the last ones for ever."""

    core = Of(list_namespaced_pod="pods", list_namespaced_event="events", read_namespaced_pod_log="log")

    def __init__(self, *looks: list[Any]) -> None:
        self.looks = list(looks)

    def ask(self, call: str, *words: str, **options: Any) -> Any:
        if call == "pods":
            return Of(items=self.looks.pop(0) if len(self.looks) > 1 else self.looks[0])
        return Of(items=[EVENT]) if call == "events" else "its last words"


class Clock:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(wait, "time", made)
    return made


def test_a_pod_is_waited_for_until_it_is_the_new_one_and_runs():
    cluster: Any = Told([], [pod("one", digest="old")], [pod("one", "ContainerCreating")], [pod("one")])
    assert wait.wait_until_running(cluster, "space", "one", "new", 60.0).metadata.name == "one"


@pytest.mark.parametrize(("reason", "after_s"), [("ErrImagePull", 20), ("ContainerCreating", 60)])
def test_what_does_not_mend_itself_is_given_up_before_what_only_takes_long(reason: str, after_s: int):
    cluster: Any = Told([pod("one", reason)])
    said = rf"one does not run after {after_s} s: {reason}.*no such image.*its last words"
    with pytest.raises(SiteError, match=said):
        wait.wait_until_running(cluster, "space", "one", "new", 60.0)


class Cluster(tidb_cluster.TidbCluster):
    """One PD, one TiKV and one TiDB; `status` is what the operator says of it."""

    def __init__(self, status: Any, wait_s: float, *looks: list[Any]) -> None:
        self.role, self.status = "server", status
        self.space: Any = Of(cluster=Told(*looks), namespace="space", here=Of(wait_s=wait_s))

    def _resource(self) -> dict[str, Any]:
        spec = {"replicas": 1, "env": [{"name": tidb_manifests.MADE_AS, "value": "new"}]}
        return {"spec": dict.fromkeys(tidb_manifests.PARTS, spec), "status": self.status}


READY = {"conditions": [{"type": "Ready", "status": "True"}]}
PODS = [pod(f"server-{part}-0") for part in tidb_manifests.PARTS]


def test_a_cluster_is_waited_for_as_long_as_one_more_of_its_pods_runs(clock: Clock):
    """Each comes within the longest wait, which is over before all of them are there."""
    looks = [*[PODS[:1]] * 40, *[PODS[:2]] * 40, PODS]
    found = Cluster(READY, 10.0, *looks)._ready()
    assert [one for part in tidb_manifests.PARTS for one in found[part]] == PODS
    assert clock.now > 100 + 10


def test_a_cluster_that_does_not_get_ready_is_told_with_its_cause():
    answers = []
    for cause, status, pods in (
        ("no operator", None, []),
        ("a pod is not made", READY, PODS[:2]),
        ("a pod has no image", READY, [PODS[0], pod("server-tikv-0", "ErrImagePull")]),
    ):
        with pytest.raises(SiteError) as refused:
            Cluster(status, 60.0, pods)._ready()
        answers.append(f"{cause}\n  {refused.value}\n")
    assert_golden("kube/cluster-not-ready.txt", "\n".join(answers))


def test_a_pod_of_another_class_is_refused_at_every_try():
    study = kubernetes_study.make(("pod", "guaranteed"))
    ended = Of(restart_count=0, last_state=Of(terminated=None), ready=True)
    made = Of(
        metadata=Of(uid="1", deletion_timestamp=None),
        spec=Of(node_name="n", containers=[Of(image="i")]),
        status=Of(qos_class="Burstable", container_statuses=[ended]),
    )
    names = placement.build_names("s", "0" * 32)
    space: Any = Of(study=study, names=names, up=lambda *_: made, look=lambda _: made)
    one = server.PodServer(space, placement.build_chains(study)["guaranteed"].server)
    for _ in range(2):
        with pytest.raises(SiteError, match=r"Guaranteed, .* Burstable"):
            one.find()
