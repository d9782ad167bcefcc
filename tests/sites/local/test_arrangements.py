"""Arrangements of arms on a real machine, each looked at from outside while it is up, and gone afterwards."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.sites import workspace as labs
from benchbook.sites.contract import Start
from benchbook.sites.local import cgroups, network, obstacles, runtime
from benchbook.sites.machine import capabilities, local_machine
from benchbook.sites.processes import procfs
from benchbook.sites.topology import teardown
from tests import beside, ports, rooms
from tests.sites.connection import connect, query
from tests.sites.owner import owning

SOMAXCONN = "/proc/sys/net/core/somaxconn"
TRIED = (*capabilities.check_network()[:3], capabilities.cpu_quota())
LACKING = [ability.name for ability in TRIED if not ability.ok]
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(os.geteuid() != 0 or bool(LACKING), reason=f"needs root and {', '.join(LACKING)}"),
]


@pytest.fixture
def folder(open_folder: Path) -> Path:
    """One lab for all of these tests, so that its servers' data are made once."""
    return open_folder / "arranged"


@pytest.fixture
def arranged(make_study, folder: Path) -> Any:
    """Return a context manager that opens a site with the arms given."""

    def study(**arms: dict) -> StudySpec:
        return StudySpec.model_validate(make_study().model_dump() | {"arms": arms})

    @contextlib.contextmanager
    def opened(**arms: dict) -> Iterator[Any]:
        with sites.open_site(study(**arms), folder) as site:
            yield site
        assert runtime.list_leftovers(site.lab.token, site.lab.run) == []

    opened.study = study
    return opened


def ask(endpoint, statement: str) -> Any:
    return query(endpoint, statement)[0][0]


def tool(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def packets(address: str) -> int:
    """Count the packets that iptables itself says were sent on from an address."""
    lines = tool("iptables", "-w", "-t", "nat", "-L", "OUTPUT", "-n", "-v", "-x").splitlines()
    return sum(int(line.split()[0]) for line in lines if "DNAT" in line and f" {address} " in line)


def test_a_pod_is_in_a_namespace_of_its_own_without_a_way_out(arranged) -> None:
    with arranged(host={}, pod={"network": "pod"}) as site:
        endpoint = site.up("pod")
        (pid,) = site.monitored("pod")["server"]
        (name,) = [path for path in network.NAMESPACES.iterdir() if site.lab.token[:8] in path.name]
        its = os.readlink(f"/proc/{pid}/ns/net")
        assert its == f"net:[{name.stat().st_ino}]" == site.identity("pod")["namespace"]
        assert its != os.readlink("/proc/self/ns/net")
        assert ports.listeners(endpoint.port) == []
        listening = tool("nsenter", f"--net={name}", "ss", "-Hltn").split()
        assert f"{endpoint.host}:{endpoint.port}" in listening
        assert not any("0.0.0.0:3" in word for word in listening)
        routes = tool("ip", "-n", name.name, "route").split("\n")
        assert [route.split()[0] for route in routes if route] == [endpoint.host.rsplit(".", 1)[0] + ".0/24"]
        gateway = ask(endpoint, "SELECT USER()").partition("@")[2]
        assert gateway == endpoint.host.rsplit(".", 1)[0] + ".1"
        assert site.facts("pod")["network"] == "pod"
        host = site.up("host")
        names = (site.server_of("host"), site.server_of("pod"))
        assert (host.host, *names) == ("127.0.0.1", "server", "server-2")
        assert ask(host, "SELECT @@datadir") != ask(endpoint, "SELECT @@datadir")


def test_connections_take_the_services_rule_on_both_networks_and_behind_a_load_balancer(arranged) -> None:
    pod = {"network": "pod", "access": "service"}
    arms = {"host": {"access": "service"}, "pod": pod, "balanced": pod | {"access": "load_balancer"}}
    with arranged(**arms) as site:
        for arm in arms:
            endpoint = site.up(arm)
            virtual = endpoint.host
            if arm == "balanced":
                assert endpoint.host == "127.0.0.1"
                virtual = site.up("pod").host
            before = packets(virtual)
            with site.during(arm) as record, contextlib.ExitStack() as stack:
                for _ in range(3):
                    stack.enter_context(connect(endpoint))
            assert packets(virtual) - before == 3 == record["service"]["connections"]
        assert ask(site.up("pod"), "SELECT @@port") != ask(site.up("host"), "SELECT @@port")
        rule = next(rule for rule in network.list_rules(site.lab.token[:8]) if rule.chain == "OUTPUT")
        before = site.identity("host"), site.identity("pod")
        tool("iptables", "-w", "-t", "nat", "-D", rule.chain, *rule.words)
        assert (site.identity("host"), site.identity("pod")) != before


def test_a_quota_holds_server_and_client_back(arranged) -> None:
    small = {"cpu": {"server": {"quota": 0.2, "cores": [0]}, "client": {"quota": 0.1}}}
    with arranged(whole={}, small=small) as site:
        endpoint = site.up("small")
        (pid,) = site.monitored("small")["server"]
        (group,) = [path for path in cgroups.list_groups(site.lab.token[:8]) if path.name == "server-2"]
        assert str(pid) in (group / "cgroup.procs").read_text().split()
        assert site.identity("small")["server_group"]["quota_cores"] == 0.2
        assert os.sched_getaffinity(pid) == {0} and site.allowance("small") == 0.1
        server = psutil.Process(pid)
        before, begun = sum(server.cpu_times()[:2]), time.monotonic()
        with site.during("small") as record:
            busy = ["sysbench", "cpu", "--time=2", "run"]
            client = site.client(Start(busy, site.lab.run / "o", site.lab.run / "e", arm="small"))
            ask(endpoint, "SELECT BENCHMARK(3000000, MD5('x'))")
            client.popen.wait()
        elapsed = time.monotonic() - begun
        spent = sum(server.cpu_times()[:2]) - before
        # A period of slack at either end.
        assert spent <= 0.2 * elapsed + 0.04
        # On a busy machine the server may not even get its quota; then nothing holds it back.
        assert record["throttled"]["server"]["throttled"] > 0 or spent < 0.15 * elapsed
        assert record["throttled"]["client"]["throttled_s"] > 0
        assert site.facts("small")["cpu"]["server"]["quota_cores"] == 0.2


@pytest.mark.alone
def test_the_poor_server_shares_its_core_with_the_neighbour_and_the_guaranteed_one_does_not(arranged) -> None:
    noisy = {"processes": 1}
    arms: dict = {"bare": {}, "poor": {"qos": "best_effort"}, "sure": {"qos": "guaranteed"}}
    arms |= {arm: arms[arm] | {"neighbour": noisy} for arm in ("poor", "sure")}
    taken = {}
    with arranged(**arms) as site, contextlib.ExitStack() as stack:
        endpoints = {arm: site.up(arm) for arm in arms}
        stack.enter_context(rooms.alone())
        for arm in arms:
            with site.during(arm) as record:
                begun = time.monotonic()
                ask(endpoints[arm], "SELECT BENCHMARK(1500000, MD5('x'))")
                taken[arm] = time.monotonic() - begun
                there = teardown.find_processes(site.lab.folder, set())
                busy = [child for child in there if "sysbench" in procfs.read_command(child.pid)]
                assert len(busy) == (0 if arm == "bare" else 1)
                if busy:
                    assert os.sched_getaffinity(busy[0].pid) == set(site.cpus["server"])
                    groups = {path.name: path for path in cgroups.list_groups(site.lab.token[:8])}
                    group = groups[f"neighbour-{arm}"]
                    assert str(busy[0].pid) in (group / "cgroup.procs").read_text().split()
            if arm != "bare":
                assert record["neighbour"]["stayed"] and record["neighbour"]["threads"] == 1
                assert not psutil.pid_exists(busy[0].pid)
        stack.close()
        share = {arm: site.identity(arm)["server_group"] for arm in ("poor", "sure")}
    assert share["poor"].get("shares", 2) == 2 and share["sure"].get("shares", 1024) == 1024
    assert taken["poor"] > 1.3 * taken["sure"], taken


def test_distance_is_there_in_each_direction_and_its_hop_in_both_arms(arranged) -> None:
    with arranged(near={"zones": {"latency_ms": 0}}, far={"zones": {"latency_ms": 15}}) as site:
        taken = {}
        for arm in ("near", "far"):
            with connect(site.up(arm)) as connection:
                times = []
                for _ in range(7):
                    begun = time.perf_counter()
                    connection.ping(reconnect=False)
                    times.append(time.perf_counter() - begun)
            taken[arm] = min(times)
            assert len(site.monitored(arm)["proxy"]) == 1
            assert site.identity(arm)["relay_pid"] == site.monitored(arm)["proxy"][0]
        assert taken["near"] < 0.015 and 0.030 <= taken["far"] < 0.045
        ping = site.facts("far")["moment"]["ping_ms"]
        assert ping["through the hop"] >= 30 > ping["beside it"]


@pytest.mark.alone("kernel")
def test_kernel_settings_are_the_pods_own_and_the_machines_are_put_back(arranged) -> None:
    backlog, cookies = Path("/proc/sys/net/core/somaxconn"), Path("/proc/sys/net/ipv4/tcp_syncookies")
    somaxconn, before = backlog.read_text(), cookies.read_text()
    other = 2 if before.strip() != "2" else 1
    pod = {"network": "pod", "kernel": {"somaxconn": 4321, "syncookies": 0, "nofile": 12345}}
    arms = {"host": {"kernel": {"syncookies": other}}, "pod": pod}
    with arranged(**arms) as site:
        site.up("host")
        site.up("pod")
        assert cookies.read_text().strip() == str(other)
        (pid,) = site.monitored("pod")["server"]
        (name,) = [path for path in network.NAMESPACES.iterdir() if site.lab.token[:8] in path.name]
        assert tool("nsenter", f"--net={name}", "cat", str(backlog), str(cookies)).split() == ["4321", "0"]
        assert backlog.read_text() == somaxconn
        limits = Path(f"/proc/{pid}/limits").read_text()
        assert "Max open files            12345" in limits
        assert site.facts("pod")["kernel"] == {"somaxconn": 4321, "syncookies": 0, "nofile": 12345}
    assert cookies.read_text() == before


def test_what_the_kernel_holds_for_an_arm_moves_with_it_when_arms_change_places(arranged) -> None:
    arms = {
        "plain": {"network": "pod"},
        "tuned": {"network": "pod", "kernel": {"somaxconn": 4321}},
        "reached": {"access": "service"},
        "small": {"cpu": {"server": {"quota": 0.5}}},
        "large": {"cpu": {"server": {"quota": 1.5}}},
    }
    # A new namespace has the kernel's own default, whatever the machine has.
    name = f"bb-untouched-{rooms.number()}"
    tool("ip", "netns", "add", name)
    try:
        untouched = tool("ip", "netns", "exec", name, "cat", SOMAXCONN)
    finally:
        tool("ip", "netns", "delete", name)
    with arranged(**arms) as site:
        seen = set()
        for block in range(1, len(arms) + 1):
            site.down()
            site.change_places(block)
            endpoints = {arm: site.up(arm) for arm in arms}
            pids = {arm: site.monitored(arm)["server"][0] for arm in arms}
            inside = {arm: f"--net=/proc/{pids[arm]}/ns/net" for arm in ("plain", "tuned")}
            queues = {arm: tool("nsenter", net, "cat", SOMAXCONN) for arm, net in inside.items()}
            assert queues == {"plain": untouched, "tuned": "4321\n"}, block
            quotas = {arm: site.identity(arm)["server_group"]["quota_cores"] for arm in ("small", "large")}
            assert quotas == {"small": 0.5, "large": 1.5}, block
            ports = {one.laddr.port for one in psutil.Process(pids["reached"]).net_connections("inet")}
            assert ask(endpoints["reached"], "SELECT @@port") in ports, block
            seen.add(endpoints["small"].port)
        assert len(seen) > 1, "the arms changed places"


def test_every_server_starts_from_the_same_prepared_bytes(arranged) -> None:
    with arranged(host={}, pod={"network": "pod"}) as site:
        endpoint = site.up("host")
        query(endpoint, "CREATE OR REPLACE TABLE prepared (id INT PRIMARY KEY)")
        query(endpoint, "INSERT INTO prepared VALUES (1), (2)")
        site.up("pod")
        site.snapshot("two")
        assert ask(site.up("pod"), "SELECT COUNT(*) FROM prepared") == 2
        query(site.up("pod"), "INSERT INTO prepared VALUES (3)")
        site.restore("two")
        assert [ask(site.up(arm), "SELECT COUNT(*) FROM prepared") for arm in ("host", "pod")] == [2, 2]
        with site.admin("pod").connect() as one, site.admin().connect() as two:
            folders = [at.exec_driver_sql("SELECT @@datadir").scalar() for at in (one, two)]
            assert folders[0] != folders[1]


def test_an_arm_that_cannot_be_made_says_why_before_anything_starts(arranged, monkeypatch) -> None:
    monkeypatch.delenv(local_machine.name_variable("tiproxy"), raising=False)
    real = local_machine.shutil.which
    monkeypatch.setattr(
        local_machine.shutil,
        "which",
        lambda name, *more, **also: None if name == "tiproxy" else real(name, *more, **also),
    )
    absent = max(os.sched_getaffinity(0)) + 1
    old = {"access": "haproxy", "proxy": {"version": "1.4"}}
    arms: dict[str, Any] = {"direct": {}, "tiproxy": {"access": "tiproxy"}, "old": old}
    arms["far_core"] = {"cpu": {"server": {"cores": [absent]}}}
    with arranged(**arms) as site:
        assert site.missing("direct") is None and site.able == ["direct"]
        assert "tiproxy is not in the PATH" in site.missing("tiproxy")
        assert re.match(r"haproxy 1\.4: \d\.\d.* is here; put .* into BENCHBOOK_HAPROXY", site.missing("old"))
        assert f"core {absent} is not there" in site.missing("far_core")
        lacking = capabilities.Ability("iptables NAT", False, "no such table", "load it", is_needed=False)
        known = (*abilities_but("iptables NAT"), lacking)
        monkeypatch.setattr(obstacles.capabilities, "check_network", lambda: known)
        chain = site.chains["direct"]
        assert obstacles.infeasible_reasons(site.study.arms["direct"], chain) == []
    with arranged(direct={}, service={"access": "service"}) as site:
        assert site.missing("service") == f"{lacking.name}: {lacking.detail}; {lacking.remedy}"


def abilities_but(name: str) -> list[capabilities.Ability]:
    needed = obstacles.NEEDED_BY["service"]
    return [capabilities.Ability(one, True, "works") for one in needed if one != name]


def test_open_files_beyond_our_rights_are_known_before(arranged, monkeypatch) -> None:
    monkeypatch.setattr(obstacles.procfs, "has_capability", lambda _: False)
    monkeypatch.setattr(obstacles.files, "open_files", lambda: 20000)
    with arranged(direct={}, many={"network": "pod", "kernel": {"nofile": 20001}}) as site:
        assert site.missing("many").startswith("open files: 20000 allowed")


FOREIGN = f"feed{rooms.number():04x}"


@pytest.fixture
def foreign() -> Iterator[str]:
    """A namespace, a link and a rule of somebody else's, with names as near to ours as they can be."""
    # The number is this process's own: what carries it already is left over from a test that was killed.
    network.remove_objects(FOREIGN)
    name, address = f"bb-{FOREIGN}-1", "192.0.2.99"
    rule = ["OUTPUT", "-t", "nat", "-d", address, "-p", "tcp", "-m", "comment", "--comment"]
    rule += [f"benchbook {FOREIGN} service", "-j", "DNAT", "--to-destination", "127.0.0.1:9"]
    tool("ip", "netns", "add", name)
    tool("ip", "link", "add", f"bb-{FOREIGN}", "type", "bridge")
    tool("iptables", "-w", "-A", *rule)
    yield name
    tool("iptables", "-w", "-D", *rule)
    tool("ip", "link", "delete", f"bb-{FOREIGN}")
    tool("ip", "netns", "delete", name)


@pytest.mark.alone("kernel")
@pytest.mark.parametrize("how", ["down", "next start"])
def test_what_a_killed_owner_leaves_is_removed_and_nothing_of_others(
    arranged, folder: Path, foreign: str, how: str
) -> None:
    cookies = Path("/proc/sys/net/ipv4/tcp_syncookies")
    before = cookies.read_text()
    changed = {"syncookies": 2 if before.strip() != "2" else 1}
    small = {"cpu": {"server": {"quota": 0.5}}, "neighbour": {"processes": 1}, "kernel": changed}
    study = arranged.study(pod={"network": "pod", "access": "service"}, small=small)
    with owning(study, folder, "small"):
        token = labs.open_lab(folder).token
    assert beside.gone(lambda: teardown.find_processes(folder, {token})) == []
    left = runtime.list_leftovers(token, folder / "run")
    kinds = {"rule", "namespace", "link", "control", "net/ipv4/tcp_syncookies,"}
    assert {words.split()[0] for words in left} == kinds
    theirs = network.list_objects(FOREIGN)
    assert len(theirs) == 3
    if how == "down":
        report = teardown.tear_down(folder)
        assert report.is_clean and len(report.removed) >= len(left)
    else:
        with arranged(direct={}, relay={"access": "haproxy"}) as site:
            assert runtime.list_leftovers(token, site.lab.run) == []
    assert runtime.list_leftovers(token, folder / "run") == []
    assert cookies.read_text() == before
    assert network.list_objects(FOREIGN) == theirs
    assert teardown.tear_down(folder).is_clean


def test_a_proxy_has_the_settings_of_its_arm_and_arms_that_differ_in_them_have_their_own(arranged) -> None:
    few = {"access": "haproxy", "proxy": {"version": "2", "settings": {"maxconn": 77}}}
    with arranged(plain={"access": "haproxy"}, few=few) as site:
        taken = {}
        for arm in ("plain", "few"):
            ask(site.up(arm), "SELECT 1")
            taken[arm] = site.facts(arm)["proxy"]["max_connections"]
        assert taken == {"plain": 4096, "few": 77}


@pytest.mark.skipif(
    local_machine.find_program("tiproxy") is None,
    reason=f"no TiProxy in the PATH or in {local_machine.name_variable('tiproxy')}",
)
def test_tiproxy_leads_to_the_server_and_listens_on_loopback_only(arranged) -> None:
    with arranged(direct={}, tiproxy={"access": "tiproxy"}) as site:
        endpoint = site.up("tiproxy")
        assert ask(endpoint, "SELECT @@datadir") == ask(site.up("direct"), "SELECT @@datadir")
        (pid,) = site.monitored("tiproxy")["proxy"]
        mine = [one for one in psutil.Process(pid).net_connections("tcp") if one.status == psutil.CONN_LISTEN]
        assert {one.laddr.ip for one in mine} == {"127.0.0.1"} and len(mine) == 2
        assert Path(f"/proc/{pid}").stat().st_uid != 0
        with site.during("direct") as record:
            pass
        assert record["has_probes"], "it asks the server that both arms share, whichever is measured"
        site.down()
        site.up("direct")
        with site.during("direct") as record:
            pass
        assert record == {}
