"""TiDB in a real cluster: in a pod of its own, and as TiDB Operator makes it.

They need what the other tests of a cluster need, and images with TiDB too (`tools/images/rootfs.sh`):
BENCHBOOK_TEST_TIDB_IMAGE names one with tidb-server 6.6, BENCHBOOK_TEST_PARTS_IMAGE one with PD, unistore and
TiDB 5.0. In place of the operator a stand-in of the tests makes its pods, of these real parts; the operator
itself is asked in `test_operator`. BENCHBOOK_TIDB_CRD is its definition of a TidbCluster.
"""

import csv
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from kubernetes import client
from ruamel.yaml import YAML

from benchbook import sites
from benchbook.core.util.errors import SiteError
from benchbook.measure import dataset, run_executor, servers
from benchbook.measure.data_plan import plan_data
from benchbook.measure.statement_counters import open_session
from benchbook.read import validity
from benchbook.sites import settings
from benchbook.sites import workspace as labs
from benchbook.sites.kube import tidb_cluster, tidb_manifests
from benchbook.sites.kube.api import KubernetesCluster, wait_for
from benchbook.sites.kube.placement import pod_of
from benchbook.sites.tidb import data
from benchbook.sites.topology import teardown
from tests.limits import LIMITS
from tests.sites import kubernetes_study
from tests.sites.kube.test_site import loaded, ours, run, run_disturbed, run_valid
from tests.sites.operator_stand_in import Operator

IMAGE = os.environ.get("BENCHBOOK_TEST_TIDB_IMAGE")
PARTS = os.environ.get("BENCHBOOK_TEST_PARTS_IMAGE")
CRD = os.environ.get("BENCHBOOK_TIDB_CRD")
pytestmark = kubernetes_study.IN_A_CLUSTER
NO_IMAGE = "BENCHBOOK_TEST_TIDB_IMAGE names no image with tidb-server 6.6"
needs_tidb = pytest.mark.skipif(IMAGE is None, reason=NO_IMAGE)
needs_parts = pytest.mark.skipif(
    CRD is None or PARTS is None,
    reason="BENCHBOOK_TIDB_CRD names no definition, or BENCHBOOK_TEST_PARTS_IMAGE no image",
)
ENGINE = {"name": "tidb", "version": "6.6", "settings": {"tidb_enable_1pc": False, "max-index-length": 4096}}
PODS = {
    "pod": {"network": "pod"},
    "host": {"network": "host"},
    "service": {"network": "pod", "access": "service"},
    "guaranteed": {"network": "pod", "qos": "guaranteed", "neighbour": {"processes": 1}},
    "two": {"network": "pod", "clients": 2},
}


def study(arms: Any, site: dict[str, Any] | None = None, **other: Any) -> Any:
    images = dict.fromkeys(("server", "client", "proxy"), IMAGE)
    section = {"images": images, "server": {"cpu": 0.5, "memory_mib": 1024}} | (site or {})
    whole = {"engine": ENGINE, "workloads": {"oltp_read_write": {}}} | other
    return kubernetes_study.make(arms, section, **whole)


@needs_tidb
def test_a_tidb_in_a_pod_is_measured_valid_on_every_network_with_an_agreeing_ledger(cluster, folder, root):
    spec = study(PODS)
    with sites.open_site(spec, folder) as site:
        assert site.able == list(PODS)
        loaded = dataset.load_data(site, plan_data(spec))
        assert loaded["rows"] == {"sbtest1": 500, "sbtest2": 500}
        servers.put_back(site, plan_data(spec))
        for arm in PODS:
            made = run_valid(site, arm, root / "raw")
            before = made.evidence()["identity_before"]
            assert before["qos"] == ("Guaranteed" if arm == "guaranteed" else "BestEffort")
            rows = csv.DictReader(made.text("monitor.csv").splitlines())
            carried = [(row["received_mib_s"], row["sent_mib_s"]) for row in rows]
            # What the client's connections brought to the server, as on one machine.
            assert any(float(into_it) > 0 and float(out) > 0 for into_it, out in carried if into_it)
        facts = site.facts("pod")["engine"]
        got = {key: one["got"] for key, one in facts["settings"].items()}
        assert got["tidb_enable_1pc"] == "OFF" and got["max-index-length"] == "4096"
        assert got["log.level"] == "error" and got["tidb_enable_prepared_plan_cache"] == "ON"
        assert facts["version"].startswith("6.6") and "embedded" in facts["storage"]
        endpoint = site.up("pod")
        account = {"host": endpoint.host, "port": endpoint.port, "ssl_disabled": True, "connect_timeout": 5}
        for user in ("root", "benchbook", ""):
            with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
                pymysql.connect(user=user, password="", **account)
    with sites.open_site(spec, folder) as site:
        site.restore(plan_data(spec).label)
        with open_session(site) as connection:
            again = dataset.describe_data(connection, plan_data(spec))
        assert again["checksums"] == loaded["checksums"]
        assert site.facts("pod")["engine"] == facts


@needs_tidb
def test_a_run_in_which_a_servers_memory_runs_out_is_invalid(folder: Path, root: Path):
    arms = {name: {"network": "pod", "qos": "guaranteed"} for name in ("one", "two")}
    plan = {"seed": 1, "blocks": 1, "discard_s": 1, "run_s": 6}
    with loaded(folder, study(arms, plan=plan)) as site:
        server = site.runtime.get(site.chains["one"].server)
        # It keeps all that it reads until the pod's limit: the kernel then kills whom it likes in there.
        where = (site.space.namespace, pod_of(server.part), ["sh", "-c", "tail /dev/zero"])
        made = run_disturbed(site, "one", root / "raw", 3.0, lambda own: own.run(*where))
    assert validity.judge_run(made, LIMITS).status == "invalid"
    assert made.evidence()["oom_kills"] >= 1


def withdraw(api: client.ApiextensionsV1Api, names: set[str]) -> None:
    """Remove definitions, and wait until they are gone: what is made of one that ends is lost with it."""
    for name in names:
        api.delete_custom_resource_definition(name)
    assert wait_for(lambda: not names & defined(api), 60), f"still there: {names & defined(api)}"


def defined(api: client.ApiextensionsV1Api) -> set[str]:
    """Return the names of all definitions in the cluster."""
    return {one.metadata.name for one in api.list_custom_resource_definition().items}


def define(cluster: KubernetesCluster, *files: Path) -> None:
    """Apply definitions, that of a TidbCluster among them, and wait until the cluster answers for it."""
    for file in files:
        cluster.apply(YAML(typ="safe").load(file.read_text(encoding="utf-8")))
    path = f"/apis/{tidb_manifests.API}/namespaces/default/{tidb_cluster.PLURAL}"
    assert wait_for(lambda: cluster.raw(path) is not None, 30), "what was defined is not served"


@pytest.fixture
def definition(cluster: KubernetesCluster) -> Iterator[None]:
    """The operator's own definition of a TidbCluster, in the cluster as long as it is needed."""
    assert CRD is not None
    api = client.ApiextensionsV1Api(cluster.api)
    before = defined(api)
    define(cluster, Path(CRD))
    yield
    withdraw(api, defined(api) - before)


# The first process of a pod's namespace takes no SIGKILL from inside it; of SIGTERM it ends by itself.
KILL = ["sh", "-c", "kill -TERM 1"]


def operated(plan: dict[str, Any] | None = None, **site: Any) -> Any:
    """Return a study on one PD, three stores and two TiDB; settings of PD are those of the lab's cluster."""
    pd = settings.complete_settings({}, "pd") | {"replication.max-replicas": 3}
    parts = {
        "pd": {"replicas": 1, "config": pd},
        "tikv": {"replicas": 3, "config": settings.complete_settings({}, "unistore")},
        "tidb": {"replicas": site.pop("tidbs", 2)},
    }
    images = dict.fromkeys(("server", "client", "proxy"), PARTS)
    other = {"plan": plan} if plan is not None else {}
    section = {"images": images, "tidb": {"version": "v5.0.0", **parts}, "wait_s": 300, **site}
    arms = {"service": {"network": "pod", "access": "service"}, "direct": {"network": "pod"}}
    engine = {"name": "tidb", "settings": {"tidb_hashagg_final_concurrency": 1}}
    return study(arms, section, engine=engine, **other)


def must_have_rows(site: Any) -> None:
    """The tables of a study are there as they were loaded."""
    with open_session(site) as connection:
        rows = dataset.describe_data(connection, plan_data(site.study))["rows"]
    assert rows == {"sbtest1": 500, "sbtest2": 500}


def must_be_measured(site: Any, into: Path) -> dict[str, dict[str, Any]]:
    """Evidence of a valid run of each arm; the cluster of `operated` is what it was asked to be."""
    evidence = {arm: run_valid(site, arm, into).evidence() for arm in site.study.arms}
    seen, facts = evidence["service"], site.facts("service")["engine"]
    leads = seen["identity_before"]["service_leads_to"]
    assert leads == site.runtime.get(site.chains["service"].server).leads_to and len(leads) == 2
    assert "no copy" in facts["data"]
    assert {part: one["pods"] for part, one in facts["parts"].items()} == {"pd": 1, "tikv": 3, "tidb": 2}
    assert facts["settings"]["tidb_hashagg_final_concurrency"]["got"] == "1"
    assert facts["settings"]["log.level"]["got"] == "error"
    assert facts["cluster"]["stored"]["pd.replication.max-replicas"] == {"asked": "3", "got": ["3"]}
    assert [one.rpartition(" ")[2] for one in facts["stores"]] == ["Up", "Up", "Up"]
    looks = seen["arrangement"]["cluster"]
    # By the names of their pods, whether they are known by addresses or by names of a DNS.
    stores = {f"server-tikv-{number}" for number in range(3)}
    for when in ("before", "after"):
        assert looks[when]["ended"] == [] and set(looks[when]["stores"]) == stores
        # Each region is on all three stores and has a leader on one of them.
        assert list(looks[when]["replicas"]) == ["3"]
        assert set(looks[when]["leaders"].values()) <= stores
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        pymysql.connect(host=leads[0], port=4000, user="root", password="", ssl_disabled=True)
    return evidence


@needs_parts
def test_a_cluster_of_the_operators_is_loaded_once_measured_and_gone_with_its_study(
    cluster: KubernetesCluster, folder: Path, root: Path, definition: None
):
    spec = operated()
    with sites.open_site(spec, folder) as site, Operator(site.space.namespace, PARTS) as operator:
        assert site.able == ["service", "direct"]
        dataset.load_data(site, plan_data(spec))
        assert operator.trouble is None
        for evidence in must_be_measured(site, root / "raw").values():
            books = evidence["ledger"]
            # The kubelet knocks at the port each second, and what it drops is not taken for sysbench's.
            knocked = books["after"]["Aborted_connects"] - books["before"]["Aborted_connects"]
            assert books["own_connections"] == knocked
        assert site.has_snapshot(plan_data(spec).label) and not site.has_snapshot("another")
        site.restore(plan_data(spec).label)
    with sites.open_site(spec, folder) as site:
        # It has no sleep: what was loaded is there in the next stage.
        assert site.has_snapshot(plan_data(spec).label)
        site.restore(plan_data(spec).label)
        must_have_rows(site)
    teardown.tear_down(folder)
    assert ours(cluster, folder) == []


@needs_parts
def test_a_store_that_is_killed_in_a_run_voids_it_and_the_books_of_all_tidbs_are_added_up(
    folder: Path, root: Path, definition: None, monkeypatch: pytest.MonkeyPatch
):
    spec = operated(plan={"seed": 1, "blocks": 1, "discard_s": 1, "run_s": 6})
    with sites.open_site(spec, folder) as site, Operator(site.space.namespace, PARTS):
        dataset.load_data(site, plan_data(spec))
        server = site.runtime.get(site.chains["service"].server)
        assert len(server.leads_to) == 2
        before, _ = data.sum_counters(server.statuses)
        password = site.space.lab.password()
        account = {"user": labs.USER, "password": password, "database": labs.SCHEMA, "ssl_disabled": True}
        for host in server.leads_to:
            with pymysql.connect(host=host, port=4000, **account) as one, one.cursor() as cursor:
                for _ in range(7):
                    cursor.execute("SELECT COUNT(*) FROM sbtest1")
                    assert cursor.fetchone() == (500,), "both see the rows of the same stores"
        after, _ = data.sum_counters(server.statuses)
        # Seven selects on each of the two.
        assert after["Com_select"] - before["Com_select"] == 14
        own = KubernetesCluster()
        killing = threading.Timer(0.5, lambda: own.run(site.space.namespace, "server-tikv-1", KILL))
        begin = run_executor._start_clients

        def begun(one: Any) -> None:
            begin(one)
            killing.start()

        monkeypatch.setattr(run_executor, "_start_clients", begun)
        _, judged = run(site, "direct", root / "raw")
        killing.join()
        assert judged.status != "valid"
        assert any("server-tikv-1" in reason for reason in judged.reasons), judged.reasons
        assert password not in json.dumps(site.identity("service"))


@needs_parts
def test_a_cluster_that_does_not_get_ready_is_told_with_the_pod_and_its_reason(folder, root, definition):
    with sites.open_site(operated(wait_s=20), folder) as site, Operator(site.space.namespace, None):
        with pytest.raises(SiteError, match=r"server-pd-0: ErrImageNeverPull.*its events") as told:
            site.up("service")
        assert "PD 0 of 1, TiKV 0 of 3, TiDB 0 of 2" in str(told.value)
        assert "PD(s) are not healthy" in str(told.value)


@needs_parts
def test_an_operator_that_is_not_there_is_told(folder: Path, root: Path, definition: None):
    with (
        sites.open_site(operated(wait_s=10), folder) as site,
        pytest.raises(SiteError, match="takes no notice"),
    ):
        site.up("service")
