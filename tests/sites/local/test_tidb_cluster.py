"""A real cluster of PD, stores and TiDB, looked at from outside: whole, closed, counted, and gone at the end.

The tests take programs that were built before (`make tidb ARGS=--cluster`).
"""

import contextlib
import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest

from benchbook import sites
from benchbook.core.artifacts import applied_config
from benchbook.core.study.model import PlannedRun
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset, run_executor, statement_counters
from benchbook.measure.data_plan import plan_data
from benchbook.plan import schedule
from benchbook.read import tidy, validity
from benchbook.sites import workspace as labs
from benchbook.sites.tidb import build
from benchbook.sites.topology import teardown
from tests import rooms, small, walks
from tests.limits import LIMITS
from tests.walks import Store

VERSION = "5.0"
PROGRAMS = [build.make_recipe(VERSION).target]
PROGRAMS += [build.make_recipe(VERSION, name).target for name in build.PARTS]
WHY = "no TiDB cluster was built here; `make tidb ARGS=--cluster` builds it"
IS_BUILT = all(path.is_file() for path in PROGRAMS)
pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.skipif(not IS_BUILT, reason=WHY)]
STORES = ["store-1", "store-2", "store-3"]


@pytest.fixture(scope="module")
def study() -> StudySpec:
    cluster = {"tidb": 2, "pd_settings": {"schedule.leader-schedule-limit": 2}}
    return small.study(
        site={"port": rooms.port(100), "cpus": "shared"},
        engine={"name": "tidb", "version": VERSION, "cluster": cluster},
        arms={"direct": {}, "relay": {"access": "haproxy"}},
        dataset={"tables": 2, "table_size": 300},
        threads=(4,),
        plan={"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 4, "order": "runs"},
        warm_up={},
    )


@pytest.fixture
def site(study: StudySpec, open_folder: Path) -> Iterator[Any]:
    """The cluster, up and loaded, both ways of access open."""
    with sites.open_site(study, open_folder / "cluster") as one:
        for arm in study.arms:
            one.up(arm)
        if not one.has_snapshot():
            dataset.ensure_data(one, plan_data(study))
        yield one


def cluster_of(site: Any) -> Any:
    return site.runtime.get(site.chains["direct"].server)


def judged(site: Any, study: StudySpec, arm: str, into: Path, meanwhile: Any = None) -> validity.Judgement:
    """Make one run as the walk makes it, do something meanwhile, and judge it."""
    into.mkdir(exist_ok=True)
    run: PlannedRun = walks.planned(study, arm)
    begun = site.client
    if meanwhile is not None:

        def client(*given: Any, **named: Any) -> Any:
            started = begun(*given, **named)
            time.sleep(1.5)
            meanwhile()
            return started

        site.client = client
    try:
        with statement_counters.open_session(site, arm) as connection:
            run_context = run_executor.RunContext(run, site, arm, (connection,), LIMITS)
            made = run_executor.execute_run(run_context, into, 1)
            return validity.judge_run(made, LIMITS)
    finally:
        site.client = begun


def of(verdict: validity.Judgement, id: str) -> validity.Check:
    return next(check for check in verdict.checks if check.id == id)


def test_it_is_whole_closed_and_counted_over_all_tidb(site: Any, study: StudySpec, tmp_path: Path) -> None:
    cluster = cluster_of(site)
    state = cluster.pd.placement.state()
    assert sorted(state.stores) == STORES
    assert {one["state"] for one in state.stores.values()} == {"Up"}
    # Each region on three stores, as `replicas` says by default.
    assert list(state.replicas) == ["3"]
    for member in cluster.members:
        for listening in psutil.Process(member.child.pid).net_connections("tcp"):
            if listening.status == psutil.CONN_LISTEN:
                assert listening.laddr.ip == "127.0.0.1", member.role
    for host, port in cluster.addresses:
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            pymysql.connect(host=host, port=port, user="root", password="", ssl_disabled=True)
    facts = site.facts("relay")
    assert facts["engine"]["cluster"]["replicas"] == 3
    assert facts["engine"]["cluster"]["pd_settings"]["schedule.leader-schedule-limit"] == "2"
    assert "not TiKV" in facts["engine"]["storage"]
    assert all(len(one["sha256"]) == 64 for one in facts["engine"]["programs"].values())
    assert sum(facts["moment"]["cluster"]["leaders"].values()) == facts["moment"]["cluster"]["regions"]
    verdict = judged(site, study, "relay", tmp_path / "relay")
    assert of(verdict, "V10").passed, verdict.reasons
    assert of(verdict, "V24").passed, verdict.reasons
    said = {one.status.books()[0]["Com_commit"] > 0 for one in cluster.servers}
    assert said == {True}, "the proxy must have led sessions to both TiDB"
    (table,) = (tmp_path / "relay").rglob("monitor.csv")
    parts = {line.split(",")[1] for line in table.read_text(encoding="utf-8").splitlines()[1:]}
    assert {"tidb", "tikv", "pd", "server", "proxy", "client"} <= parts
    texts = site.applied("relay")
    assert [name for name, _ in texts[:4]] == ["pd.toml", "pd.argv", "store-1.toml", "store-1.argv"]
    assert [name for name, _ in texts[-2:]] == ["haproxy.cfg", "haproxy.argv"]
    named = {digest for _, digest in applied_config.find_digests(site.identity("relay"))}
    named -= {applied_config.NOTHING}
    assert {applied_config.digest_text(text) for _, text in texts} == named
    assert not any(site.lab.password() in text for _, text in texts)


def test_a_store_killed_in_a_run_is_named_and_voids_it(site: Any, study: StudySpec, tmp_path: Path) -> None:
    store = cluster_of(site).stores["store-2"]
    verdict = judged(
        site, study, "direct", tmp_path / "killed", lambda: os.kill(store.child.pid, signal.SIGKILL)
    )
    assert verdict.status != "valid"
    assert of(verdict, "V24").passed is False
    assert "store-2 had ended" in of(verdict, "V24").detail


def test_stores_that_are_killed_one_by_one_while_a_study_runs_void_their_groups_and_nothing_is_counted(
    study: StudySpec, open_folder: Path, tmp_path: Path
) -> None:
    repeated = study.model_copy(update={"plan": study.plan.model_copy(update={"max_repeats": 3})})
    left = list(STORES)
    with sites.open_site(repeated, open_folder / "cluster") as site:
        if not site.has_snapshot():
            dataset.ensure_data(site, plan_data(repeated))
        store, begun = Store(site, repeated, tmp_path), site.client

        def client(*given: Any, **named: Any) -> Any:
            started = begun(*given, **named)
            if left:
                time.sleep(1.5)
                os.kill(cluster_of(site).stores[left.pop(0)].child.pid, signal.SIGKILL)
            return started

        site.client = client
        state = store.walk()
    assert state.abandoned == [] and left == []
    store.assert_complete()
    voided = [reasons for _, (status, reasons) in sorted(store.voids().items()) if status != "partner"]
    # The first run of the group each time, the store that was killed by its name, and none of it is counted.
    assert len(voided) == len(STORES)
    for name, reasons in zip(STORES, voided, strict=True):
        assert f"{name} had ended" in reasons
    tables = tidy.read_study(store.raw, store.void, schedule.schedule_table(store.runs), LIMITS)
    counted = tables["runs"].to_pydict()
    # The other arm's run came after the kills: it had not been made before the fourth attempt.
    assert dict(zip(counted["arm"], counted["attempt"], strict=True)) == {"direct": 4, "relay": 1}
    assert {row["status"] for row in tables["refused"].to_pylist()} <= {"invalid", "indeterminate", "partner"}


def test_a_store_that_the_plan_kills_is_back_in_the_same_run_and_the_run_counts(study, open_folder, tmp_path):
    event = {"what": "kill_store", "at_s": 21, "back_after_s": 5}
    changes = {
        "arms": {"steady": {}, "lost": {"engine": {"cluster": {"event": event}}}},
        "plan": {"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 60, "order": "runs"},
    }
    planned = StudySpec.model_validate(study.model_dump(exclude_defaults=True) | changes)
    with sites.open_site(planned, open_folder / "event") as site:
        site.up("lost")
        dataset.ensure_data(site, plan_data(planned))
        verdict = judged(site, planned, "lost", tmp_path / "lost")
        done = verdict.evidence.observed["arrangement"]["cluster"]["event"]
        assert done.get("error") is None and done["pid_before"] != done["pid_after"], done
        # All but what a server that stood still may do to sysbench's own report.
        for id in ("V10", "V12", "V13", "V24"):
            assert of(verdict, id).passed, (id, of(verdict, id).detail)
        (said,) = [one for one in verdict.warnings if one.startswith("planned: ")]
        # From the moment before sysbench was started.
        assert 19 < float(said.partition("was killed at ")[2].partition(" s")[0]) <= 22, said
    assert teardown.tear_down(open_folder / "event").is_clean


def test_leaders_that_are_evicted_from_a_store_void_the_run(site, study, tmp_path):
    cluster = cluster_of(site)
    led = cluster.pd.placement.state().leaders
    store = max(STORES, key=list(led.values()).count)
    id = cluster.pd.placement.state().stores[store]["id"]
    address = f"http://127.0.0.1:{cluster.pd.place.port}/pd/api/v1/schedulers"
    asked = json.dumps({"name": "evict-leader-scheduler", "store_id": id}).encode()

    def evict() -> None:
        urllib.request.urlopen(urllib.request.Request(address, asked), timeout=5).close()

    verdict = judged(site, study, "direct", tmp_path / "evicted", evict)
    with contextlib.suppress(OSError):
        name = f"{address}/evict-leader-scheduler"
        urllib.request.urlopen(urllib.request.Request(name, method="DELETE"), timeout=5).close()
    assert of(verdict, "V24").passed is False
    assert f"moved from {store} to" in of(verdict, "V24").detail


def test_proxies_of_clusters_that_changed_places_keep_the_digests_of_their_settings(study, open_folder):
    arms = {"one": {"access": "haproxy"}, "three": {"access": "haproxy", "engine": {"cluster": {"tidb": 3}}}}
    engine = {"name": "tidb", "version": VERSION, "cluster": {"stores": 3, "tidb": 1}}
    apart = StudySpec.model_validate(
        study.model_dump(exclude_defaults=True) | {"arms": arms, "engine": engine}
    )
    with sites.open_site(apart, open_folder / "proxies") as site:
        said: list[dict[str, str]] = []
        for block in (1, 2):
            site.change_places(block)
            said.append({})
            for arm in arms:
                proxy = site.runtime.get(site.chains[arm].proxy)
                text = proxy.lasting(proxy.text())
                said[-1][arm] = "\n".join(line for line in text.splitlines() if "socket" not in line)
    # Two clusters of other sizes: three servers behind the second proxy, in either place.
    assert said[0] == said[1]
    assert [said[0][arm].count("    server db") for arm in arms] == [1, 3]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: zones are network namespaces")
def test_clusters_with_zones_find_their_prepared_data_in_each_others_place(study, open_folder) -> None:
    arms = {"near": {}, "far": {"engine": {"cluster": {"zones_ms": 0.5}}}}
    engine = {"name": "tidb", "version": VERSION, "cluster": {"stores": 3, "tidb": 2, "zones_ms": 0}}
    apart = StudySpec.model_validate(
        study.model_dump(exclude_defaults=True) | {"arms": arms, "engine": engine}
    )
    with sites.open_site(apart, open_folder / "zones") as site:
        made: list[dict[str, Any]] = []
        for block in (1, 2):
            site.change_places(block)
            clusters = {arm: site.runtime.get(site.chains[arm].server) for arm in arms}
            made.append({arm: cluster.made_with for arm, cluster in clusters.items()})
            addresses = {address for one in clusters.values() for address, _ in one.addresses}
            assert addresses <= set(made[0]["near"]["own_hosts"])
            for one in clusters.values():
                beside = one.zones.facts([*one.stores], one.size.tidb)["tidb_beside"]
                near = [one.stores[store].place.address for store in beside]
                assert [server.place.address for server in one.servers] == near
        site.up("far")
        hops = [hop.child.pid for hop in clusters["far"].hops.values()]
        # What makes the distance is no other program: its time is told apart from that of the cluster.
        assert hops and sorted(site.monitored("far")["proxy"]) == sorted(hops)
    assert made[0] == made[1]
    assert teardown.tear_down(open_folder / "zones").is_clean


def test_prepared_data_come_back_and_nothing_is_left(study: StudySpec, open_folder: Path) -> None:
    folder = open_folder / "cluster"
    with sites.open_site(study, folder) as one:
        one.restore()
        endpoint = one.up("direct")
        user, password = labs.read_secret(endpoint.secret)
        account = {"user": user, "password": password, "database": endpoint.database}
        made = pymysql.connect(host=endpoint.host, port=endpoint.port, **account, ssl_disabled=True)
        with made, made.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM sbtest1")
            assert cursor.fetchone() == (300,)
        pids = [member.child.pid for member in cluster_of(one).members]
    assert len(pids) == 6
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert teardown.tear_down(folder).is_clean
