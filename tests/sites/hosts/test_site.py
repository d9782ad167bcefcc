"""The site over SSH on hosts of their own, seen from outside: what listens, what is shown, what is left."""

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study import inventory
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import LockHeld, SiteError
from benchbook.measure import dataset, scheduler
from benchbook.measure.data_plan import plan_data
from benchbook.plan import schedule
from benchbook.sites.hosts import clean as hosts
from benchbook.sites.hosts import doctor
from benchbook.sites.hosts.host import AccessRefused, Unreachable
from benchbook.sites.machine import lock
from benchbook.sites.topology import teardown
from benchbook.sites.workspace import lab_id
from tests import beside, small, walks
from tests.limits import LIMITS
from tests.sites.owner import owning
from tests.sites.ssh_hosts import Machine, Rack, leftovers, run, unable

UNABLE = unable()
OF_HOSTS = [
    *(pytest.mark.server, pytest.mark.usefixtures("all_is_as_it_was")),
    pytest.mark.skipif(UNABLE is not None, reason=str(UNABLE)),
]
pytestmark = OF_HOSTS

PORT = 33060
# A disk that is busy with something else must not make a second without a transaction.
SMALL = {"innodb_buffer_pool_size": "32M", "innodb_log_file_size": "8M", "innodb_flush_log_at_trx_commit": 2}
# Long enough where a run is only to be valid.
SHORT = {"seed": 3, "blocks": 1, "discard_s": 0, "run_s": 2}
# Short enough for a test: how long a lost connection is waited for, and when hosts give up on us.
PATIENCE = {"timeout_s": 2.0, "patience_s": 25.0, "lease_s": 30.0}


@pytest.fixture
def home(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lab folder of whoever measures; the inventory is that of the rack."""
    monkeypatch.setenv(inventory.VARIABLE, str(rack.inventory(**PATIENCE)))
    return rack.folder / "home" / "study"


def study(**changes: Any) -> StudySpec:
    site = {"kind": "ssh", "inventory": "rack", "port": PORT}
    plan = {"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 4}
    return small.study(**{"site": site, "engine": {"settings": SMALL}, "plan": plan} | changes)


def cut(rack: Rack, host: Machine, way: str = "-A") -> None:
    """Drop what goes between us and a host, but not between hosts; or let it pass again (-D)."""
    us = f"10.97.{rack.number}.1"
    for chain, which in (("INPUT", "-s"), ("OUTPUT", "-d")):
        rule = ["iptables", "-w", way, chain, which, us, "-j", "DROP"]
        run("ip", "netns", "exec", host.namespace, *rule)


def test_servers_listen_on_their_own_hosts_only_and_nothing_is_left(rack: Rack, home: Path):
    with sites.open_site(study(), home) as site:
        assert [site.missing(arm) for arm in ("direct", "proxy")] == [None, None]
        direct, proxy = site.up("direct"), site.up("proxy")
        server, relay, client = (rack.hosts[name] for name in ("server1", "proxy1", "client1"))
        assert server.listening() == {f"{server.address}:{PORT}"} and direct.host == server.address
        assert relay.listening() == {f"{relay.address}:{PORT}"} and proxy.host == relay.address
        assert not client.listening()
        facts = site.facts("proxy")
        assert facts["hosts"]["server"]["name"] == "server1" and facts["hosts"]["client"]["sysbench"]
        clocks = [one["clock"] for one in facts["moment"]["hosts"].values()]
        # One machine has one clock: what is found is the error of finding it.
        assert all(abs(one["offset_ms"]) <= max(5, one["round_trip_ms"]) for one in clocks)
        assert site.identity("proxy") == site.identity("proxy")
    assert hosts.load_targets(home / "run") == [], "all hosts were left in order"


def test_a_changed_host_key_is_refused_before_anything_is_done(rack: Rack, home: Path):
    known = rack.known_hosts.read_text()
    stranger = rack.folder / "stranger"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger))
    address, key = rack.hosts["server1"].address, stranger.with_suffix(".pub").read_text().split()
    rack.known_hosts.write_text(f"{address} {key[0]} {key[1]}\n")
    try:
        with sites.open_site(study(), home) as site, pytest.raises(AccessRefused) as caught:
            site.missing("direct")
        assert "its key is not" in str(caught.value) and "ssh-keygen -f" in str(caught.value)
        rack.known_hosts.write_text("")
        with sites.open_site(study(), home) as site, pytest.raises(AccessRefused, match="ssh-keyscan -p 22"):
            site.up("direct")
        assert not leftovers(rack) and rack.known_hosts.read_text() == "", "and no key was added"
    finally:
        rack.known_hosts.write_text(known)
        stranger.unlink()


@pytest.mark.slow
def test_a_run_whose_connections_are_lost_goes_on_and_is_picked_up(rack: Rack, home: Path, tmp_path: Path):
    """Cut off for longer than the run lasts: it ends alone, and its bytes are those of the host's disk."""
    held: list[Any] = []

    def away() -> None:
        time.sleep(2)
        for host in rack.hosts.values():
            cut(rack, host)
        held.extend(path.open("rb") for path in rack.folder.glob("client1/lab/*/client.*/out"))
        time.sleep(11)
        for host in rack.hosts.values():
            cut(rack, host, "-D")

    with sites.open_site(study(), home) as site:
        dataset.load_data(site, plan_data(site.study))
        accident = threading.Thread(target=away)
        accident.start()
        folder = walks.measured(site, site.study, "proxy", tmp_path / "raw")
        accident.join()
        assert (folder.path / "sysbench.out").read_bytes() == held[0].read()
        walks.must_agree(folder)
        lost = folder.evidence()["arrangement"]["connection_lost"]
        assert sum(one["lost_s"] for one in lost["client1"]) > 3
        # And the next run knows nothing of it.
        again = walks.measured(site, site.study, "direct", tmp_path / "raw").evidence()
        assert "connection_lost" not in again["arrangement"]


@pytest.mark.slow
def test_a_host_started_anew_between_runs_is_taken_up_again(rack: Rack, home: Path):
    server = rack.hosts["server1"]
    with sites.open_site(study(), home) as site:
        dataset.load_data(site, plan_data(site.study))
        before = site.identity("direct")
        server.kill()
        rack.switch_on(server)
        site.restore(plan_data(site.study).label)
        assert site.up("proxy").host == rack.hosts["proxy1"].address
        after = site.identity("direct")
        assert before["config_hash"] == after["config_hash"] and before["started"] != after["started"]


@pytest.mark.slow
def test_a_walk_ends_whole_though_cables_and_power_fail(rack: Rack, home: Path, tmp_path: Path):
    """What failed is void and kept, every planned run is there in the end, and all of them are valid."""
    plan = {"seed": 3, "blocks": 2, "discard_s": 0, "run_s": 4, "max_repeats": 6}
    asked = study(workloads={"oltp_point_select": {}}, plan=plan)
    runs = schedule.plan_runs("test", asked, {})
    raw, void = tmp_path / "raw", tmp_path / "void"
    client, server = rack.hosts["client1"], rack.hosts["server1"]
    faults = [client.unplug, server.kill]
    repairs = [client.plug, lambda: rack.switch_on(server)]
    said: list[str] = []
    accidents: list[threading.Thread] = []

    def say(line: str) -> None:
        """Break something in the run that follows the first and the second that are done."""
        said.append(line)
        if line.startswith(("[1/", "[2/")) and faults:
            fault, repair = faults.pop(0), repairs.pop(0)
            accidents.append(threading.Thread(target=strike, args=(fault, repair)))
            accidents[-1].start()

    def strike(fault: Callable[[], None], repair: Callable[[], None]) -> None:
        """Wait until a client runs, let it get going, break something, and mend it."""
        while not any("sysbench" in text for text in client.commands().values()):
            time.sleep(0.05)
        time.sleep(1)
        fault()
        time.sleep(3)
        repair()

    with sites.open_site(asked, home) as site:
        dataset.load_data(site, plan_data(asked))
        walk = scheduler.MatrixRunner(asked, runs, site, raw, void, walks.judge, LIMITS, say)
        state = scheduler.run_missing(walk)
    for accident in accidents:
        accident.join()
    assert not faults and not state.abandoned, said
    assert {path.name for path in raw.iterdir()} == {run.run_id for run in runs}
    assert all(walks.judge(RunFolder(path)).status == "valid" for path in raw.iterdir())
    assert sum(path.is_dir() for path in void.iterdir()) >= 2, said


@pytest.mark.slow
def test_a_client_that_does_not_come_back_is_given_up_with_words(rack: Rack, home: Path, tmp_path: Path):
    client = rack.hosts["client1"]
    timer = threading.Timer(2, client.kill)
    try:
        with sites.open_site(study(), home) as site:
            dataset.load_data(site, plan_data(site.study))
            timer.start()
            with pytest.raises(Unreachable, match=r"client1 \(10\.97\..*\): not reached for \d+ s"):
                walks.measured(site, site.study, "direct", tmp_path / "raw")
    finally:
        timer.join()
        rack.switch_on(client)
    assert teardown.tear_down(home.parent).is_clean, "what it could not leave in order before, it can now"
    assert hosts.load_targets(home / "run") == []


@pytest.mark.slow
def test_down_ends_on_the_hosts_what_a_killed_owner_left(rack: Rack, home: Path):
    with owning(study(), home):
        pass
    assert any("mariadbd" in text for text in leftovers(rack)), "the hosts have not noticed yet"
    argv = ["ip", "netns", "exec", rack.hosts["server1"].namespace, "sleep", "60"]
    stranger = subprocess.Popen(argv, env={"PATH": os.environ["PATH"]})
    try:
        report = teardown.tear_down(home.parent)
        assert report.is_clean and any("on server1: pid" in line for line in report.stopped)
        assert stranger.poll() is None, "somebody else's process is left alone"
    finally:
        stranger.kill()
        stranger.wait()
    assert teardown.tear_down(home.parent).stopped == []


@pytest.mark.slow
def test_hosts_end_what_nobody_comes_back_for(rack: Rack, home: Path):
    with owning(study(), home):
        pass
    assert not beside.gone(lambda: leftovers(rack), PATIENCE["lease_s"] + 15)


@pytest.mark.slow
def test_purge_takes_our_data_from_the_hosts_and_only_ours(rack: Rack, home: Path):
    other = home.parent.parent / "purged" / "study"
    with sites.open_site(study(), other) as site:
        site.up("direct")
        ours = f"{lab_id(site.lab.token)}-server1"
    base = rack.hosts["server1"].folder / "lab"
    (base / "theirs").mkdir(exist_ok=True)
    assert (base / ours / "server" / "data").is_dir(), "data stay for the next time"
    assert teardown.tear_down(other.parent).is_clean and (base / ours).is_dir()
    assert teardown.tear_down(other.parent, purge=True).is_clean
    assert not (base / ours).exists() and (base / "theirs").is_dir()
    away = rack.hosts["client1"].folder / "lab"
    assert not away.exists() or any(path.is_dir() for path in away.iterdir()), "the last lab takes the rest"


@pytest.mark.slow
def test_a_host_that_somebody_else_measures_is_left_to_them(rack: Rack, home: Path):
    with sites.open_site(study(), home) as site:
        site.up("direct")
        other = home.parent.parent / "other" / "study"
        # Hosts guard themselves; this machine's cores are free for a study of its own.
        lock.acquire_lock(other).release()
        with pytest.raises(LockHeld, match="the study in "):
            sites.open_site(study(), home).__enter__()
        with sites.open_site(study(), other) as late, pytest.raises(SiteError, match="is being measured by"):
            late.up("direct")
        assert site.identity("direct")["host"] == "server1", "the first one goes on undisturbed"


def test_the_doctor_tells_of_each_host_what_is_missing(rack: Rack, home: Path):
    asked = study(arms={"direct": {}, "proxy": {"access": "haproxy"}})
    found = {ability.name: ability for ability in doctor.of_inventory("rack", [asked])}
    assert all(found[f"{name}: ssh"].ok for name in rack.hosts)
    assert found["server1: mariadbd"].ok and found["client1: sysbench"].ok and found["proxy1: haproxy"].ok
    away = rack.hosts["proxy1"]
    away.kill()
    try:
        gone = {ability.name: ability for ability in doctor.of_inventory("rack", [asked])}
        assert not gone["proxy1: ssh"].ok and "port 22 is open" in gone["proxy1: ssh"].remedy
        assert gone["server1: ssh"].ok
    finally:
        rack.switch_on(away)


def test_kernel_settings_are_read_back_and_put_back(rack: Rack, home: Path):
    server = rack.hosts["server1"]

    def somaxconn() -> int:
        return int(run("ip", "netns", "exec", server.namespace, "cat", "/proc/sys/net/core/somaxconn"))

    before = somaxconn()
    kernel = {"somaxconn": before + 77, "nofile": 4321}
    arms = {"direct": {"kernel": kernel}, "proxy": {"access": "haproxy", "kernel": kernel}}
    with sites.open_site(study(arms=arms), home) as site:
        site.up("direct")
        assert site.facts("direct")["kernel"]["somaxconn"] == before + 77 == somaxconn()
        pid = next(pid for pid, text in server.commands().items() if "mariadbd" in text)
        assert f"{4321:<21}" in Path(f"/proc/{pid}/limits").read_text().split("Max open files")[1][:60]
    assert somaxconn() == before


@pytest.mark.slow
def test_arms_on_other_hosts_hold_the_same_data_and_are_told_apart(rack: Rack, home: Path, tmp_path: Path):
    """What another machine is worth is a question of many a source: two server hosts, one data set."""
    second = rack.add("server2")
    home = home.parent / "two"
    inventory_file = rack.inventory(**PATIENCE)
    assert "server2" in inventory_file.read_text()
    arms = {"small": {}, "large": {"hosts": {"server": "server2"}}, "none": {"hosts": {"server": "proxy1"}}}
    with sites.open_site(study(arms=arms), home) as site:
        assert site.able == ["small", "large"]
        assert "hosts.server: proxy1: " in site.missing("none")
        found = dataset.ensure_data(site, plan_data(site.study))
        assert found["rows"] == {"sbtest1": 200, "sbtest2": 200}
        # A new look finds both copies, puts both back, and they are the same rows.
        assert dataset.ensure_data(site, plan_data(site.study), found)["fingerprint"] == found["fingerprint"]
        folders = [walks.measured(site, site.study, arm, tmp_path / "raw") for arm in ("small", "large")]
        assert second.listening() == {f"{second.address}:{PORT}"}
        hosts_of = [folder.evidence()["identity_before"]["host"] for folder in folders]
        assert hosts_of == ["server1", "server2"]
        assert [walks.judge(folder).status for folder in folders] == ["valid", "valid"]
        assert site.facts("large")["hosts"]["server"]["name"] == "server2"
