"""The site against a real cluster: networks, Services, classes, a pod that is killed, and nothing left.

They need a cluster (BENCHBOOK_KUBECONFIG or KUBECONFIG) and an image in it with MariaDB, HAProxy, sysbench,
and python3 (`tools/images/rootfs.sh`), which BENCHBOOK_TEST_IMAGE names; `localhost/bb:1` otherwise.
"""

import contextlib
import csv
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from benchbook import sites
from benchbook.core.util.errors import SiteError
from benchbook.measure import dataset, servers
from benchbook.measure.data_plan import plan_data
from benchbook.measure.run_executor import RunContext, execute_run
from benchbook.measure.servers import open_sessions
from benchbook.measure.statement_counters import open_session
from benchbook.read import validity
from benchbook.sites.kube import facts, placement, plan_output
from benchbook.sites.kube import namespace as namespaces
from benchbook.sites.kube.api import KubernetesCluster, wait_for
from benchbook.sites.kube.placement import pod_of
from benchbook.sites.topology import teardown
from tests import beside, rooms, walks
from tests.limits import LIMITS
from tests.sites import event_runs, kubernetes_study, ssh_hosts
from tests.sites.owner import owning
from tests.walks import Store

pytestmark = kubernetes_study.IN_A_CLUSTER

ARMS = ("pod", "host", "service", "haproxy", "best-effort", "guaranteed")


def ours(cluster: KubernetesCluster, lab: Path) -> list[str]:
    """Return the namespaces that carry a lab's token."""
    token = json.loads((lab / "lab.json").read_text())["token"]
    found = cluster.core.list_namespace(label_selector=f"benchbook/lab={token}").items
    return [one.metadata.name for one in found]


def study(arms: tuple[str, ...] = ARMS, run_s: int = 2, **other: Any) -> Any:
    plan = {"seed": 1, "blocks": 1, "discard_s": 1, "run_s": run_s}
    return kubernetes_study.make(arms, other.pop("site", {}), **{"plan": plan} | other)


@contextlib.contextmanager
def loaded(folder: Path, spec: Any) -> Iterator[Any]:
    """The site of a study, open, with its data loaded and put back."""
    with sites.open_site(spec, folder) as site:
        dataset.load_data(site, plan_data(spec))
        servers.put_back(site, plan_data(spec))
        yield site


def run(site: Any, arm: str, into: Path) -> tuple[Any, validity.Judgement]:
    """Make one run of an arm and judge it; where a busy machine alone spoilt it, as the walk does, again.

    Starved of a core, sysbench itself leaves out or repeats lines of its report (V4, V7).
    """
    planned = walks.planned(site.study, arm)
    into.mkdir(exist_ok=True)
    for attempt in range(1, 5):
        with open_sessions(site, site.study, [arm]) as opened:
            made = execute_run(RunContext(planned, site, arm, opened[arm], LIMITS), into, attempt)
        judged = validity.judge_run(made, LIMITS)
        if judged.status == "valid" or not all(one.startswith(("V4", "V7")) for one in judged.reasons):
            break
        made.path.rename(into.parent / f"{planned.run_id}.a{attempt}")
    return made, judged


def run_valid(site: Any, arm: str, into: Path) -> Any:
    """Make a run of an arm that is valid and agrees with its server's books."""
    made, judged = run(site, arm, into)
    assert (judged.status, judged.ledger) == ("valid", "agrees"), (arm, judged.reasons)
    return made


def run_disturbed(site: Any, arm: str, into: Path, after_s: float, act: Callable[..., Any]) -> Any:
    """Make a run in which something is done over a connection of its own; it is not valid, and says why."""
    timer = threading.Timer(after_s, act, [KubernetesCluster()])
    timer.start()
    made, judged = run(site, arm, into)
    timer.join()
    assert judged.status != "valid" and judged.reasons
    return made


def test_the_server_takes_every_manifest(cluster: KubernetesCluster):
    """A dry run on the server's side: admitted as it stands, and nothing of it is kept."""
    names = placement.build_names("dry-run", os.urandom(16).hex())
    manifests = plan_output.list_manifests(study(tuple(kubernetes_study.ARMS)), names)
    cluster.apply(manifests[0])
    try:
        for manifest in manifests:
            taken = cluster.apply(manifest, dry_run=True)
            assert taken.metadata.name == manifest["metadata"]["name"]
        assert not cluster.core.list_namespaced_pod(names.namespace).items
        with pytest.raises(SiteError, match="refuses"):
            wrong = {**manifests[-1], "spec": {**manifests[-1]["spec"], "replicas": "many"}}
            cluster.apply(wrong, dry_run=True)
    finally:
        token = dict(names.labels)["benchbook/lab"]
        assert namespaces.remove_namespace(cluster, names.namespace, token)


def test_every_arm_is_measured_valid_with_an_agreeing_ledger(cluster, folder, root):
    spec = study()
    with sites.open_site(spec, folder) as site:
        assert site.able == list(ARMS)
        rows = dataset.load_data(site, plan_data(spec))["rows"]
        assert rows == {"sbtest1": 500, "sbtest2": 500}
        servers.put_back(site, plan_data(spec))
        seen = {}
        for arm in ARMS:
            site.up(arm)
            seen[arm] = (site.facts(arm), run_valid(site, arm, root / "raw").evidence())
        for arm, (facts, evidence) in seen.items():
            server = evidence["identity_before"]
            assert facts["cluster"]["version"].startswith("v1.")
            assert facts["engine"]["settings"]["innodb_buffer_pool_size"]["got"] == str(64 << 20)
            wanted = "Guaranteed" if arm == "guaranteed" else "BestEffort"
            assert facts["qos_class"] == server["qos"] == wanted
            assert server["restarts"] == 0
        addresses = {arm: facts["moment"] for arm, (facts, _) in seen.items()}
        node = cluster.core.read_node(addresses["host"]["server_node"])
        internal = next(one.address for one in node.status.addresses if one.type == "InternalIP")
        assert site.up("host").host == internal
        pod = cluster.core.read_namespaced_pod("server-0", site.space.namespace)
        assert site.up("pod").host == pod.status.pod_ip != internal
        service = cluster.core.read_namespaced_service("server", site.space.namespace)
        assert site.up("service").host == service.spec.cluster_ip
        assert seen["service"][1]["identity_before"]["service_leads_to"] == [pod.status.pod_ip]
        assert seen["haproxy"][0]["proxy"]["version"]
        for arm in ("best-effort", "guaranteed"):
            beside = seen[arm][1]["arrangement"]["neighbour"]
            assert beside["stayed"] and beside["cpu_s"] > 0.5
        namespace = site.space.namespace
        password = (folder / "secrets" / "sysbench.cnf").read_text().split('password="')[1].split('"')[0]
        for one in cluster.core.list_namespaced_pod(namespace).items:
            assert password not in json.dumps(cluster.api.sanitize_for_serialization(one))
    # Left: the pods with data, asleep; nothing else.
    left = [pod.metadata.name for pod in cluster.core.list_namespaced_pod(namespace).items]
    assert sorted(left) == ["server-0", "server-2-0", "server-3-0"]
    with sites.open_site(spec, folder) as site:
        assert site.has_snapshot(plan_data(spec).label)
    teardown.tear_down(folder)
    assert ours(cluster, folder) == []


def test_several_clients_and_servers_begin_together_and_their_books_agree(folder: Path, root: Path):
    arms = {"one": {"network": "pod"}, "both": {"network": "pod", "clients": 4, "servers": 2}}
    spec = study(arms, 4, threads=(4,))
    with loaded(folder, spec) as site:
        hosts = [(one.host, one.port) for one in site.endpoints("both")]
        # Clients take turns among the servers, each of which holds the prepared rows.
        assert hosts[:2] == hosts[2:] and len(set(hosts)) == 2
        with open_session(site, "both", 1) as second:
            assert second.execute(text("SELECT COUNT(*) FROM sbtest2")).scalar_one() == 500
        evidence = run_valid(site, "both", root / "raw").evidence()
        assert len(evidence["clients"]) == 4 and len(evidence["servers"]) == 2
        assert 0 <= evidence["start_spread_ms"] < 250
        begun = [one["begun_monotonic_s"] for one in evidence["clients"]]
        assert all(abs(moment - evidence["started_monotonic_s"]) < 2 for moment in begun)
        books = [one["ledger"] for one in evidence["servers"]]
        assert all(one["after"]["Com_select"] > one["before"]["Com_select"] for one in books)
        assert evidence["identity_before"]["server-2"]["port"] != evidence["identity_before"]["port"]
    # All four are told, and a server that was killed would be another one.
    assert {f"client-{number}_pod" for number in (2, 3, 4)} <= evidence["identity_before"].keys()


def test_a_pod_that_is_killed_in_a_run_makes_it_invalid_and_the_next_one_is_whole(cluster, folder, root):
    spec = study(("pod", "service"), 8)
    with loaded(folder, spec) as site:
        before = site.identity("pod")

        def kill(own: KubernetesCluster) -> None:
            own.core.delete_namespaced_pod("server-0", site.space.namespace, grace_period_seconds=0)

        run_disturbed(site, "pod", root / "raw", 3.0, kill).path.rename(root / "killed")
        site.down()
        servers.put_back(site, plan_data(spec), True)
        site.up("pod")
        assert site.identity("pod")["pod"] != before["pod"]
        run_valid(site, "pod", root / "raw")


def test_a_server_that_is_killed_in_its_pod_is_a_restart_and_makes_the_run_invalid(folder: Path, root: Path):
    spec = study(("pod", "service"), 6)
    with loaded(folder, spec) as site:
        server = site.runtime.get(site.chains["pod"].server)
        kill = ["sh", "-c", "read pid _ </var/lib/benchbook/run/pid && kill -KILL $pid"]
        where = (site.space.namespace, pod_of(server.part), kill)
        made = run_disturbed(site, "pod", root / "raw", 2.5, lambda own: own.run(*where))
        # Its control group counts from nothing again.
        assert "throttled" not in made.evidence()["arrangement"]
        # The copy is in the pod's volume, which outlives its container.
        site.restore(plan_data(spec).label)
        assert site.identity("pod")["restarts"] == 1
        with open_session(site) as connection:
            assert connection.execute(text("SELECT COUNT(*) FROM sbtest1")).scalar_one() == 500


def test_a_restart_in_a_pod_loses_what_sysbench_says_it_lost(folder: Path, root: Path):
    event = {"what": "restart", "at_s": 21, "back_after_s": 4}
    arms = {"steady": {"network": "pod"}, "event": {"network": "pod", "event": event}}
    with sites.open_site(study(arms, **event_runs.sections("oltp_read_write")), folder) as site:
        judged = event_runs.judge_event_run(site, "event", root / "raw")
    event_runs.must_tell_the_loss(judged, event, (2, 9))
    before, after = (judged.evidence.observed[f"identity_{when}"] for when in ("before", "after"))
    assert (before["restarts"], before["container"]) == (0, after["container"])


CPU_STAT = "cat /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu/cpu.stat 2>/dev/null; true"


def throttling(site: Any, arm: str) -> dict[str, int]:
    """Counters of a server's container, read by a shell in it."""
    pod = pod_of(site.chains[arm].server)
    said = KubernetesCluster().must(site.space.namespace, pod, ["sh", "-c", CPU_STAT])
    return {name: int(value) for name, value in map(str.split, said.splitlines())}


def test_a_limit_holds_a_server_back_by_what_its_container_counts(folder: Path, root: Path):
    limited = {"network": "pod", "resources": {"limits": {"cpu": 0.3, "memory_mib": 384}}}
    plan = {"seed": 1, "blocks": 1, "discard_s": 0, "run_s": 5}
    spec = study({"free": {"network": "pod"}, "limited": limited}, plan=plan)
    with loaded(folder, spec) as site:
        site.up("limited")
        before = throttling(site, "limited")
        made = run_valid(site, "limited", root)
        after = throttling(site, "limited")
    told = made.evidence()["arrangement"]["throttled"][site.server_of("limited")]
    grown = {name: value - before[name] for name, value in after.items()}
    # Within the run, the server was held back in nearly every period of 0.1 s; outside, it is asked little.
    assert 20 < told["throttled"] <= grown["nr_throttled"] <= told["throttled"] + 5
    seconds = grown["throttled_usec"] / 1e6 if "throttled_usec" in grown else grown["throttled_time"] / 1e9
    assert 0.95 * seconds < told["throttled_s"] <= seconds


def test_a_script_of_ones_own_runs_in_a_pod_on_tables_that_are_proven(folder: Path, tmp_path: Path):
    tpcc = {"script": "tests/others/tpcc_like/tpcc.lua", "options": {"tables": 1, "scale": 1, "use_fk": 0}}
    own = {"workloads": {"tpcc": tpcc}, "warm_up": {"pilot_s": 1}, "threads": (1,)}
    spec = study(("pod", "service"), **own)
    with loaded(folder, spec) as site:
        (found,) = dataset.describe_custom_tables(site, plan_data(spec)).values()
        assert found["stock1"]["rows"] == 100 and found["customer1"]["checksum"]
        _, judged = run(site, "service", tmp_path)
    assert judged.status == "valid", judged.reasons


def test_load_goes_on_when_the_connection_to_the_api_is_lost(folder: Path, root: Path):
    spec = study(("pod", "service"), 6)
    with loaded(folder, spec) as site:
        started = site.client

        def cut(*words: Any, **options: Any) -> Any:
            client = started(*words, **options)
            wire = client.host._talks._opened.sock.sock
            threading.Timer(2.0, lambda: wire.shutdown(socket.SHUT_RDWR)).start()
            cut.client = client
            return client

        site.client = cut
        run_valid(site, "pod", root / "raw")
        assert cut.client.host.outages


TURNS = {"seed": 1, "blocks": 1, "discard_s": 1, "run_s": 3, "order": "turns", "max_repeats": 4}


def processes(site: Any, arm: str) -> list[tuple[int, str, str]]:
    """Return number, state and command of all that runs in the load pod."""
    pod = pod_of(site.chains[arm].client)
    code = (
        "import glob\n"
        "for path in glob.glob('/proc/[0-9]*/stat'):\n"
        "    try: text, words = open(path).read(), open(path[:-4] + 'cmdline').read().split(chr(0))\n"
        "    except OSError: continue\n"
        "    line = ' '.join(words).replace(chr(10), ' ')\n"
        "    print(path.split('/')[2], text.rpartition(')')[2].split()[0], line)\n"
    )
    said = KubernetesCluster().must(site.space.namespace, pod, ["python3", "-c", code])
    rows = (line.split(" ", 2) for line in said.splitlines())
    return [(int(pid), state, rest) for pid, state, rest in rows]


def test_arms_take_turns_in_the_load_pod_and_the_books_of_each_agree(folder: Path, root: Path):
    spec = study(("pod", "service", "host"), aa={}, plan=TURNS)
    with loaded(folder, spec) as site:
        store = Store(site, spec, root)
        state = store.walk()
        assert state.abandoned == [], store.said
        store.assert_complete()
        # Three arms share one server and its books; the fourth has a server of its own.
        assert len({folder.evidence()["turns"]["count"] for folder in store.kept()}) == 1
        for run in store.kept():
            assert run.evidence()["turns"]["stopped"] == ["client"]
            assert validity.judge_run(run, LIMITS).ledger == "agrees"
        assert not [one for one in processes(site, "pod") if "sysbench" in one[2]]


def test_a_clock_that_is_killed_in_the_load_pod_leaves_no_client_stopped(folder: Path, root: Path):
    """The group is void, made again whole, and nothing of the first attempt is left in the pod."""
    spec = study(("pod", "service"), plan=TURNS)
    with loaded(folder, spec) as site:
        store, done = Store(site, spec, root), []

        def kill() -> None:
            def clocks() -> list[int]:
                return [pid for pid, _, words in processes(site, "pod") if "/clock.py " in words]

            for clock in beside.until(clocks, 120)[:1]:
                where = (site.space.namespace, pod_of(site.chains["pod"].client))
                KubernetesCluster().run(*where, ["sh", "-c", f"kill -KILL {clock}"])
                done.append(clock)

        killing = threading.Thread(target=kill)
        killing.start()
        state = store.walk()
        killing.join()
        assert done and state.abandoned == []
        store.assert_complete()
        # A killed clock writes nothing, so its clients are ended: they say so themselves.
        assert store.voids()
        assert not [one for one in processes(site, "pod") if one[1] == "T" or "sysbench" in one[2]]


def test_a_pod_that_cannot_run_is_told_with_its_events(folder: Path, root: Path):
    spec = study(("pod", "host"), site={"nodes": {"server": {"no-such-label": "here"}}, "wait_s": 10})
    with (
        sites.open_site(spec, folder) as site,
        pytest.raises(SiteError, match=r"server-0 .*FailedScheduling"),
    ):
        site.up("pod")


def test_what_a_killed_owner_left_is_removed_at_the_next_start(cluster, folder, root):
    spec = study(("pod", "service"))
    with owning(spec, folder):
        pass
    namespace = ours(cluster, folder)[0]
    pods = lambda: sorted(pod.metadata.name for pod in cluster.core.list_namespaced_pod(namespace).items)  # noqa: E731
    assert pods() == ["client-0", "server-0"]
    with sites.open_site(spec, folder):
        assert pods() == ["server-0"]


def test_without_keeping_data_nothing_is_left_when_a_site_is_left(cluster, folder, root):
    with sites.open_site(study(("pod", "host"), site={"keep_data": False}), folder) as site:
        site.up("pod")
        assert ours(cluster, folder) == [site.space.namespace]
    assert ours(cluster, folder) == []


def test_a_namespace_of_somebody_else_is_left_alone(cluster: KubernetesCluster, folder: Path, root: Path):
    spec = study(("pod", "host"))
    with sites.open_site(spec, folder) as site:
        name = site.space.namespace
    cluster.core.patch_namespace(name, {"metadata": {"labels": {"benchbook/lab": "somebody-else"}}})
    try:
        with pytest.raises(SiteError, match="not ours"), sites.open_site(spec, folder):
            pass
        assert not teardown.tear_down(folder).is_clean
        assert namespaces.find_namespace(cluster, name) is not None
    finally:
        token = json.loads((folder / "lab.json").read_text())["token"]
        cluster.core.patch_namespace(name, {"metadata": {"labels": {"benchbook/lab": token}}})
    teardown.tear_down(folder)
    assert beside.gone(lambda: ours(cluster, folder), 60) == []


def test_more_cores_than_a_node_has_left_are_told_before_anything_starts(folder: Path, root: Path):
    """As Kubernetes would say "Insufficient cpu" of a pod that then waits for ever."""
    section = {"server": {"cpu": 4000, "memory_mib": 384}}
    with sites.open_site(study(("pod", "guaranteed"), site=section), folder) as site:
        assert site.missing("pod") is None
        said = str(site.missing("guaranteed"))
        assert "insufficient CPU: 4000 cores" in said
        assert site.able == ["pod"]


def test_sysbench_in_the_servers_container_shares_its_limits(cluster, folder, root):
    spec = study(("pod", "guaranteed"), 4, site={"client_in": "server"})
    with loaded(folder, spec) as site:
        made = run_valid(site, "guaranteed", root / "raw")
        told = site.facts("guaranteed")
        assert told["site"]["client"] == "in the server's container"
        assert told["qos_class"] == "Guaranteed" and told["machine"]["sysbench"]
        assert told["kernel"]["open_files"] > 0 and told["kernel"]["vm.swappiness"] is not None
        pods = cluster.core.list_namespaced_pod(site.space.namespace).items
        assert not [one for one in pods if one.metadata.name.startswith("client")]
        argv = made.evidence()["clients"][0]["argv"] if "clients" in made.evidence() else []
        assert not any(word.startswith("--mysql-host") for word in argv)
        # Half a core for both: neither alone nor together may they use more.
        with (made.path / "monitor.csv").open() as stream:
            rows = [row for row in csv.DictReader(stream) if row["cpu_cores"]]
        used = [float(row["cpu_cores"]) for row in rows if row["part"] in ("server", "client")]
        assert used and max(used) < 0.7


BALANCED = "198.51.100.77"


class Provider(threading.Thread):
    """What gives balancers their address, as a cloud's controller does: the address leads to the node."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        super().__init__(daemon=True)
        self.cluster, self._over = cluster, threading.Event()

    def run(self) -> None:
        """Give every Service of this type the address, until `stop`."""
        status = {"status": {"loadBalancer": {"ingress": [{"ip": BALANCED}]}}}
        while not self._over.wait(0.3):
            for one in self.cluster.core.list_service_for_all_namespaces().items:
                if one.spec.type == "LoadBalancer" and not one.status.load_balancer.ingress:
                    where = (one.metadata.name, one.metadata.namespace)
                    self.cluster.core.patch_namespaced_service_status(*where, status)

    def stop(self) -> None:
        """End at once."""
        self._over.set()
        self.join()


@pytest.mark.skipif(ssh_hosts.unable() is not None, reason=str(ssh_hosts.unable()))
def test_a_balancer_is_measured_by_a_client_outside_the_cluster(
    cluster: KubernetesCluster, folder: Path, root: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """The client's host has a network of its own, without kube-proxy's rules: what it sends to the balancer's
    address leaves it, and is rewritten on the node."""
    spec = study(("pod", "balancer"), 4)
    # Sockets of the agent have short paths only.
    hosts = open_folder / "h"
    hosts.mkdir(mode=0o711)
    provider = Provider(cluster)
    probe = {"name": "benchbook-test-provider", "namespace": "default"}
    spec_of_probe = {"type": "LoadBalancer", "ports": [{"port": 1}]}
    cluster.core.create_namespaced_service("default", {"metadata": probe, "spec": spec_of_probe})
    provider.start()
    assert wait_for(lambda: facts.has_balancers(cluster), 20)
    try:
        with ssh_hosts.Rack(hosts, 160 + rooms.number()) as rack:
            client = rack.add("client")
            gateway = f"10.97.{rack.number}.1"
            ssh_hosts.run("ip", "-n", client.namespace, "route", "add", BALANCED, "via", gateway)
            monkeypatch.setenv("BENCHBOOK_INVENTORY", str(rack.inventory()))
            with sites.open_site(spec, folder) as site:
                assert [site.missing(arm) for arm in spec.arms] == [None, None]
                dataset.load_data(site, plan_data(spec))
                servers.put_back(site, plan_data(spec))
                assert site.up("balancer").host == BALANCED
                made = run_valid(site, "balancer", root / "raw")
                told = site.facts("balancer")
                assert told["site"]["client"] == "on a host outside the cluster"
                assert not any(name.startswith("client") for name in site.identity("balancer"))
            with (made.path / "monitor.csv").open() as stream:
                parts = {row["part"] for row in csv.DictReader(stream)}
            assert {"client", "machine", "server", "machine_server"} <= parts
    finally:
        provider.stop()
        cluster.core.delete_namespaced_service(probe["name"], "default")
