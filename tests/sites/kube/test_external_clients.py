"""A load balancer's client outside the cluster: asked for, not taken from inside, and watched where it is."""

import csv
import sys
import tempfile
from pathlib import Path

import pytest

from benchbook.core.study.study import StudySpec
from benchbook.sites import workspace as labs
from benchbook.sites.contract import Start
from benchbook.sites.hosts.watch import RemoteWatch
from benchbook.sites.kube import external_clients, placement, plan_output
from tests import rooms
from tests.goldens import assert_golden
from tests.sites import kubernetes_study, ssh_hosts
from tests.sites.ssh_hosts import Rack

BALANCER = {"pod": {"network": "pod"}, "balancer": {"network": "pod", "access": "load_balancer"}}
NUMBER = 180 + rooms.number()


def study(**site: object) -> StudySpec:
    return kubernetes_study.make(BALANCER, {"outside": "outside", **site})


def test_no_pod_is_made_for_a_client_outside_and_the_plan_says_where_it_is():
    chains = placement.build_chains(study())
    assert [part.kind for part in placement.in_pods(chains["balancer"])] == ["server"]
    assert placement.count_outside(chains["balancer"]) == 1 and len(chains["pod"].clients) == 1
    text = plan_output.render_plan("test", study()).replace(kubernetes_study.IMAGE, "localhost/bb:1")
    assert_golden("kube/plan-outside.txt", f"{text}\n")


def test_the_plan_names_the_client_s_image_only_where_there_is_a_pod_of_it():
    images = {"server": "own/server:1", "client": "own/client:1", "proxy": "own/proxy:1"}
    assert "own/server:1, own/client:1" in plan_output.render_plan("test", study(images=images))
    inside = {"pod": {"network": "pod"}, "host": {"network": "host"}}
    study_inside = kubernetes_study.make(inside, {"client_in": "server", "images": images})
    text = plan_output.render_plan("test", study_inside)
    assert "own/server:1" in text and "own/client:1" not in text


@pytest.fixture
def rack(monkeypatch: pytest.MonkeyPatch):
    if why := ssh_hosts.unable():
        pytest.skip(why)
    # A lab's sockets are below a host's folder, and pytest's own folders are too long for a socket's path.
    with tempfile.TemporaryDirectory(prefix="bb-", dir="/var/tmp") as base, Rack(Path(base), NUMBER) as made:
        made.add("client")
        monkeypatch.setenv("BENCHBOOK_INVENTORY", str(made.inventory(programs={"sysbench": sys.executable})))
        yield made


@pytest.mark.server
def test_a_node_of_the_cluster_is_no_client_outside_it(rack: Rack, open_folder: Path):
    clients = external_clients.ExternalClients(study(), labs.open_lab(open_folder / "lab"), "outside")
    address = rack.hosts["client"].address
    try:
        assert "a node of the cluster" in str(clients.lacking(1, {address}))
        assert clients.lacking(1, {"192.0.2.1"}) is None
    finally:
        clients.end()


@pytest.mark.server
def test_a_client_outside_makes_its_load_there_and_is_watched_there(rack, open_folder, tmp_path):
    lab = labs.open_lab(open_folder / "lab")
    clients = external_clients.ExternalClients(study(), lab, "outside")
    out, err, table = (tmp_path / name for name in ("out", "err", "monitor.csv"))
    spin = "import os, time; print(os.readlink('/proc/self/ns/net'))\nwhile time.process_time() < 1.6: pass"
    try:
        client = clients.client(Start(["python3", "-c", spin], out, err))
        watch = RemoteWatch({"client": client.host}, {}, (client,), table)
        watch.start()
        assert client.wait(60) == 0
        watch.stop()
    finally:
        clients.end()
    here = Path("/proc/self/ns/net").readlink()
    assert out.read_text().strip() != str(here), "it ran in the host's own network"
    rows = list(csv.DictReader(table.open()))
    assert {row["part"] for row in rows} == {"client", "machine"}
    # A row a second: together what the client used, but for the ends; beside other tests that takes long.
    assert sum(float(row["cpu_cores"]) for row in rows if row["part"] == "client") > 0.8
    assert watch.client_cpu_s > 1.5 and len(watch.runqueue_waits_s) == 1
    assert watch.cores and watch.longest_pause_ms >= 0
