"""TiDB Operator itself, in a pod of its own: it makes our TidbCluster of its start scripts, by its discovery.

They need what the other tests of TiDB in a cluster need, and CoreDNS in it, the images pingcap/{pd,tikv,tidb}
of v5.0.0, and BENCHBOOK_TEST_OPERATOR_IMAGE, which names one with the operator's controller-manager and its
discovery in /usr/local/bin. `tools/images` makes all of them; unistore is in TiKV's place there.
"""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from ruamel.yaml import YAML

from benchbook import sites
from benchbook.core.util.errors import SiteError
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.sites.kube import tidb_manifests
from benchbook.sites.kube.api import KubernetesCluster, wait_for
from benchbook.sites.topology import teardown
from tests.sites import kubernetes_study
from tests.sites.kube.test_site import ours
from tests.sites.kube.test_tidb import (
    CRD,
    PARTS,
    defined,
    must_be_measured,
    must_have_rows,
    operated,
    withdraw,
)
from tests.sites.operator_stand_in import resource

IMAGE = os.environ.get("BENCHBOOK_TEST_OPERATOR_IMAGE")
pytestmark = [
    *kubernetes_study.IN_A_CLUSTER,
    pytest.mark.skipif(
        None in (CRD, PARTS, IMAGE),
        reason="BENCHBOOK_TIDB_CRD, BENCHBOOK_TEST_PARTS_IMAGE or BENCHBOOK_TEST_OPERATOR_IMAGE is not set",
    ),
]
NAME = "benchbook-test-operator"
# One for PD, three for the stores.
VOLUMES = 4
ATTEMPTS = 3


def definitions() -> list[Any]:
    """Return the operator's definitions: it does not start without all of them."""
    assert CRD is not None
    files = sorted(Path(CRD).parent.glob("pingcap.com_*.yaml"))
    return [YAML(typ="safe").load(path.read_text(encoding="utf-8")) for path in files]


def installed() -> list[dict[str, Any]]:
    """Return what the operator's chart makes, with the rights of the whole cluster."""
    meta, labels = {"name": NAME, "namespace": NAME}, {"app": NAME}
    # A part that stops is to be seen, not to be replaced; the operator looks again after a few seconds.
    words = [f"-tidb-discovery-image={IMAGE}", "-auto-failover=false", "-resync-duration=5s"]
    container = {"name": "operator", "image": IMAGE, "imagePullPolicy": "IfNotPresent"}
    container |= {"command": ["/usr/local/bin/tidb-controller-manager", *words]}
    container |= {"env": [{"name": "NAMESPACE", "value": NAME}]}
    pod = {"serviceAccountName": NAME, "containers": [container], "terminationGracePeriodSeconds": 1}
    template = {"metadata": {"labels": labels}, "spec": pod}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    account = {"kind": "ServiceAccount", **meta}
    return [
        resource("Namespace", {"name": NAME}),
        resource("ServiceAccount", meta),
        resource("ClusterRoleBinding", {"name": NAME}, roleRef=role, subjects=[account]),
        resource("Deployment", meta, spec={"selector": {"matchLabels": labels}, "template": template}),
    ]


def storage(where: Path) -> list[dict[str, Any]]:
    """Return a class and its volumes, which are folders of the node and removed with their claims."""
    # The operator is to make the policy Delete, as our TidbCluster asks.
    spec = {"accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain"}
    spec |= {"capacity": {"storage": "20Gi"}, "storageClassName": NAME}
    paths = [{"path": str(where / str(number)), "type": "DirectoryOrCreate"} for number in range(VOLUMES)]
    return [
        resource("StorageClass", {"name": NAME}, provisioner="kubernetes.io/no-provisioner"),
        *(
            resource("PersistentVolume", {"name": f"{NAME}-{number}"}, spec=spec | {"hostPath": path})
            for number, path in enumerate(paths)
        ),
    ]


def volumes(cluster: KubernetesCluster) -> list[Any]:
    """Return what is there of our volumes."""
    found = cluster.core.list_persistent_volume().items
    return [one for one in found if one.spec.storage_class_name == NAME]


@pytest.fixture
def operator(cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The operator at work, and storage for one cluster; return the folder of its volumes."""
    of_one_node(cluster, monkeypatch)
    extensions = client.ApiextensionsV1Api(cluster.api)
    before = defined(extensions)
    # Kubernetes itself removes volumes of nodes below /tmp alone.
    where = Path(tempfile.mkdtemp(prefix="benchbook-operator-", dir="/tmp"))
    try:
        for manifest in [*definitions(), *installed(), *storage(where)]:
            cluster.apply(manifest)
        apps = client.AppsV1Api(cluster.api)
        assert wait_for(
            lambda: apps.read_namespaced_deployment(NAME, NAME).status.ready_replicas, 60, pause_s=1
        ), "the operator does not start"
        yield where
    finally:
        core, rights = cluster.core, client.RbacAuthorizationV1Api(cluster.api)
        for one in volumes(cluster):
            core.delete_persistent_volume(one.metadata.name)
        for remove in (
            rights.delete_cluster_role_binding,
            client.StorageV1Api(cluster.api).delete_storage_class,
            core.delete_namespace,
        ):
            with contextlib.suppress(client.ApiException):
                remove(NAME)
        withdraw(extensions, {name for name in defined(extensions) - before if name.endswith(".pingcap.com")})
        gone = wait_for(
            lambda: NAME not in [one.metadata.name for one in core.list_namespace().items], 60, pause_s=1
        )
        shutil.rmtree(where, ignore_errors=True)
        assert gone


def of_one_node(cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what our manifest asks for and one node can't give: a node for each pod of a part."""
    if len(cluster.core.list_node().items) < VOLUMES - 1:
        monkeypatch.setattr(tidb_manifests, "_build_affinity", lambda name, part: {})


def told(cluster: KubernetesCluster) -> str:
    """Return the last lines of the operator's log."""
    pod = cluster.core.list_namespaced_pod(NAME).items[0].metadata.name
    return str(cluster.core.read_namespaced_pod_log(pod, NAME, tail_lines=30))


def load(spec: Any, folder: Path, cluster: KubernetesCluster, where: Path) -> None:
    """Load the tables into a new cluster; into another where unistore ended over its first snapshots.

    One that comes back has lost what it held: no TiDB begins on that either.
    """
    for attempt in range(ATTEMPTS):
        with sites.open_site(spec, folder) as site:
            try:
                dataset.load_data(site, plan_data(spec))
                return
            except SiteError as error:
                is_last = attempt == ATTEMPTS - 1
                if is_last or not re.search(r"server-ti(kv|db)-\d: CrashLoopBackOff", str(error)):
                    print(told(cluster))
                    raise
        teardown.tear_down(folder)
        assert wait_for(
            lambda: {one.status.phase for one in volumes(cluster)} <= {"Available"}, 60, pause_s=1
        ), "volumes are not given back"
        for manifest in storage(where):
            cluster.apply(manifest)


def test_the_operator_itself_makes_our_cluster_which_is_measured_and_removed(operator, cluster, folder, root):
    spec = operated(storage={"storage_class": NAME, "size_gib": 20})
    load(spec, folder, cluster, operator)
    with sites.open_site(spec, folder) as site:
        assert site.able == ["service", "direct"]
        site.restore(plan_data(spec).label)
        namespace = site.space.namespace
        seen, facts = must_be_measured(site, root / "raw"), site.facts("service")["engine"]
        images = {part: one["images"] for part, one in facts["parts"].items()}
        assert images == {part: [f"pingcap/{part}:v5.0.0"] for part in tidb_manifests.PARTS}
        assert {one.spec.persistent_volume_reclaim_policy for one in volumes(cluster)} == {"Delete"}
    with sites.open_site(spec, folder) as site:
        # The next stage finds it as it was left: the operator made nothing of it again.
        site.restore(plan_data(spec).label)
        must_have_rows(site)
        again = site.identity("service")
        pods = {name for name in again if name.startswith("server-")}
        assert pods and all(again[name] == seen["direct"]["identity_after"][name] for name in pods)
    teardown.tear_down(folder)
    assert ours(cluster, folder) == []
    # Nor are the volumes and what was in them: removed with their claims, as asked.
    assert wait_for(lambda: not volumes(cluster), 60, pause_s=1)
    assert not list(operator.iterdir())
    assert namespace not in [one.metadata.name for one in cluster.core.list_namespace().items]


def test_settings_that_change_between_two_stages_are_in_force_before_the_cluster_is_said_to_be_up(
    operator: Path, cluster: KubernetesCluster, folder: Path, root: Path
):
    asked = {"storage": {"storage_class": NAME, "size_gib": 20}}
    load(operated(**asked), folder, cluster, operator)
    with sites.open_site(operated(**asked), folder) as site:
        site.up("direct")
        before = site.identity("direct")
    # TiDB's alone: before it stops a store the operator reads a metric of TiKV's that unistore has not.
    changed = operated(**asked)
    changed.site.kubernetes.tidb.tidb.config["performance.stmt-count-limit"] = 4321
    with sites.open_site(changed, folder) as site:
        site.up("direct")
        after = site.identity("direct")
        remade = {name for name in after if name.startswith("server-") and before[name] != after[name]}
        assert remade == {"server-tidb-0", "server-tidb-1"}, told(cluster)
        assert site.facts("direct")["engine"]["settings"]["performance.stmt-count-limit"]["got"] == "4321"
        site.restore(plan_data(changed).label)
        must_have_rows(site)
        assert site.identity("direct") == after
