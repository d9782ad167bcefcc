"""Several clients and servers, proxies, TLS, bytes and jump hosts: real programs on hosts of their own."""

import contextlib
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest

from benchbook import sites
from benchbook.core.study import inventory
from benchbook.core.util.errors import SiteError
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.sites.hosts.host import AccessRefused
from benchbook.sites.workspace import SCHEMA, USER
from tests import beside, rooms, walks
from tests.sites import event_runs
from tests.sites.hosts.test_site import OF_HOSTS, PATIENCE, study
from tests.sites.ssh_hosts import Rack, racked, run

pytestmark = [*OF_HOSTS, pytest.mark.slow]
TIPROXY = os.environ.get("BENCHBOOK_TIPROXY", "")


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    """Two servers, a proxy and two clients."""
    names = ("server1", "server2", "proxy1", "client1", "client2")
    with racked(120 + rooms.number(), *names) as made:
        yield made


def opened(rack: Rack, monkeypatch: pytest.MonkeyPatch, name: str, asked: Any, **how: Any) -> Any:
    """Open the site of a study in a lab of its own."""
    monkeypatch.setenv(inventory.VARIABLE, str(rack.inventory(**how, **PATIENCE)))
    return sites.open_site(asked, rack.folder / "home" / name)


@contextlib.contextmanager
def loaded(*given: Any, **how: Any) -> Iterator[Any]:
    """The site of a study, opened as by `opened`, with its data loaded."""
    with opened(*given, **how) as site:
        dataset.load_data(site, plan_data(site.study))
        yield site


def column(folder: Any, part: str, name: str) -> list[float]:
    """Return what the monitor has of a part, where it has something."""
    with (folder.path / "monitor.csv").open() as file:
        return [float(row[name]) for row in csv.DictReader(file) if row["part"] == part and row[name]]


def test_clients_on_two_hosts_begin_together_and_every_statement_is_in_a_servers_books(
    rack: Rack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    arms = {"one": {}, "four": {"clients": 4, "servers": 2, "options_by": "file"}}
    asked = study(arms=arms, threads=(4,))
    with loaded(rack, monkeypatch, "several", asked) as site:
        assert [site.missing(arm) for arm in arms] == [None, None]
        second = rack.hosts["server2"]
        folder = walks.measured(site, site.study, "four", tmp_path / "raw")
        evidence = folder.evidence()
        walks.must_agree(folder)
        assert [one["server"] for one in evidence["clients"]] == [0, 1, 0, 1]
        assert all(one["threads"] == 1 and one["exit_code"] == 0 for one in evidence["clients"])
        # The options went there in a file each, and sysbench says itself that it took them.
        assert all(one["options"]["taken"]["threads"] == "1" for one in evidence["clients"])
        assert all(one["options"]["taken"] == one["options"]["asked"] for one in evidence["clients"])
        # The rows of the second server are those that were loaded into the first, brought there by hash.
        assert [one["rows_before"] for one in evidence["servers"]] == [{"sbtest1": 200, "sbtest2": 200}] * 2
        books = [one["ledger"] for one in evidence["servers"]]
        assert all(one["after"]["Com_select"] > one["before"]["Com_select"] for one in books)
        # Two clocks are compared over SSH; what is asked for is a moment, not soon after each other.
        assert evidence["start_spread_ms"] < 500
        hosts_of = evidence["identity_before"]
        assert (hosts_of["host"], hosts_of["server-2"]["host"]) == ("server1", "server2")
        assert {"machine", "machine_server", "machine_server-2", "machine_client-2"} <= {
            line.split(",")[1] for line in (folder.path / "monitor.csv").read_text().splitlines()[1:]
        }
        assert second.listening()
        alone = walks.measured(site, site.study, "one", tmp_path / "raw")
        assert walks.judge(alone).status == "valid"
        assert sum(column(alone, "server", "sent_mib_s")) > 0, "bytes are counted where the server is"


@pytest.mark.parametrize(
    ("arm", "workload", "what", "silent_s"),
    [
        ({}, "oltp_read_write", "restart", (2, 9)),
        ({"access": "haproxy", "servers": 2}, "oltp_read_only", "kill", (0, 3)),
    ],
    ids=["a restart", "a failover"],
)
def test_an_event_on_a_host_loses_what_sysbench_says_it_lost(
    rack: Rack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arm, workload, what, silent_s
):
    event = {"what": what, "at_s": 21, "back_after_s": 4}
    arms = {"steady": {}, "event": arm | {"event": event}}
    with opened(rack, monkeypatch, what, study(arms=arms, **event_runs.sections(workload))) as site:
        judged = event_runs.judge_event_run(site, "event", tmp_path / "raw")
    event_runs.must_tell_the_loss(judged, event, silent_s)


def test_bytes_in_and_out_of_a_proxy_are_those_of_the_server(rack, monkeypatch, tmp_path):
    """Results of 1000 rows: what the server sends, the proxy gets, and passes on."""
    wide = {"script": "oltp_read_only", "skip_trx": True, "point_selects": 0, "range_size": 200}
    ranges = dict.fromkeys(("sum_ranges", "order_ranges", "distinct_ranges"), 0)
    proxy = {"settings": {"retries": 2, "timeout client": "30000s", "maxconn": 500}}
    proxy["settings"] |= {"nbthread": 2, "cpu-map": "auto:1/1-2 0-1"}
    arms = {"direct": {}, "proxy": {"access": "haproxy", "proxy": proxy}}
    asked = study(arms=arms, workloads={"rows": wide | ranges})
    with loaded(rack, monkeypatch, "bytes", asked) as site:
        folder = walks.measured(site, site.study, "proxy", tmp_path / "raw")
        assert walks.judge(folder).status == "valid"
        sent = sum(column(folder, "server", "sent_mib_s"))
        assert sent > 1
        # The proxy's are both its sides: it receives what the server sends and the client asks.
        assert sum(column(folder, "proxy", "received_mib_s")) == pytest.approx(sent, rel=0.25)
        assert sum(column(folder, "proxy", "sent_mib_s")) == pytest.approx(sent, rel=0.25)
        text = next(rack.folder.glob("proxy1/lab/*/proxy/haproxy.cfg")).read_text()
        assert "    retries 2\n" in text and "    timeout client 30000s\n" in text
        assert text.count("    maxconn 500\n") == 2 and "1h" in text
        if len(os.sched_getaffinity(0)) > 1:
            # Each of its two threads is where the map puts it, and on no other core.
            assert site.facts("proxy")["proxy"]["cores_of_threads"] == [[0], [1]]
        assert site.facts("proxy")["proxy"]["max_connections"] == 500


def test_with_tls_nobody_gets_in_without_and_the_cipher_is_told(rack, monkeypatch, tmp_path):
    asked = study(site={"kind": "ssh", "inventory": "rack", "port": 33060, "tls": "required"})
    with loaded(rack, monkeypatch, "tls", asked) as site:
        for arm in ("direct", "proxy"):
            folder = walks.measured(site, site.study, arm, tmp_path / "raw")
            evidence = folder.evidence()
            judged = walks.judge(folder)
            assert (judged.status, judged.reasons) == ("valid", [])
            assert evidence["tls"]["asked"] == "required"
            assert evidence["tls"]["cipher"].startswith(("TLS", "E"))
            books = evidence["ledger"]
            # Each of the client's connections, and none in plain text.
            assert books["after"]["Ssl_accepts"] - books["before"]["Ssl_accepts"] >= asked.threads[0]
        assert site.facts("direct")["encryption"] == "required"
        account = {"user": USER, "password": site.lab.password(), "database": SCHEMA}
        place = (rack.hosts["server1"].address, 33060)
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            site.runtime.machine("client1").connect(place, **account)
    key = rack.folder / "home" / "tls" / "secrets" / "tls" / "client-key.pem"
    assert key.stat().st_mode & 0o077 == 0
    assert not list(rack.folder.glob("client1/lab/*/client.*")), "the client's files go with it"


@pytest.mark.skipif(not TIPROXY, reason="no TiProxy; its path goes into BENCHBOOK_TIPROXY")
def test_tiproxy_by_its_path_relays_and_its_version_is_held_to(rack, monkeypatch, tmp_path):
    buffer = {"settings": {"proxy.conn-buffer-size": 131072}}
    arms = {"direct": {}, "proxy": {"access": "tiproxy", "proxy": buffer}}
    arms["old"] = {"access": "tiproxy", "proxy": {"version": "0.9", **buffer}}
    with loaded(rack, monkeypatch, "tiproxy", study(arms=arms), programs={"tiproxy": TIPROXY}) as site:
        folder = walks.measured(site, site.study, "proxy", tmp_path / "raw")
        walks.must_agree(folder)
        found = site.facts("proxy")["proxy"]
        assert found["binary"] == Path(TIPROXY).name and len(found["binary_sha256"]) == 64
        text = next(rack.folder.glob("proxy1/lab/*/proxy/tiproxy.toml")).read_text()
        assert "conn-buffer-size=131072" in text and 'addr="127.0.0.1:' in text
        assert len(rack.hosts["proxy1"].listening()) == 2
        with pytest.raises(SiteError, match=r"asked 0\.9, proxy1 has"):
            site.up("old")


def test_hosts_behind_a_jump_host_are_reached_through_it_alone_and_both_keys_are_checked(rack, monkeypatch):
    jump = rack.add("jump1")
    known = rack.known_hosts.read_text()
    us = f"10.97.{rack.number}.1"
    behind = [host for host in rack.hosts.values() if host is not jump]
    for host in behind:
        rule = ["iptables", "-w", "-A", "INPUT", "-s", us, "-j", "DROP"]
        run("ip", "netns", "exec", host.namespace, *rule)
    try:
        with opened(rack, monkeypatch, "jump", study(), through=jump) as site:
            assert site.up("direct").host == rack.hosts["server1"].address
            assert site.identity("direct")["host"] == "server1"
        for wrong in (jump, rack.hosts["server1"]):
            lines = [line for line in known.splitlines() if not line.startswith(f"{wrong.address} ")]
            other = next(line for line in known.splitlines() if not line.startswith(f"{wrong.address} "))
            rack.known_hosts.write_text("\n".join([*lines, f"{wrong.address} {other.split(' ', 1)[1]}", ""]))
            with (
                opened(rack, monkeypatch, "jump", study(), through=jump) as site,
                pytest.raises(AccessRefused, match=wrong.address),
            ):
                site.up("direct")
    finally:
        rack.known_hosts.write_text(known)
        for host in behind:
            run("ip", "netns", "exec", host.namespace, "iptables", "-w", "-F", "INPUT")


def test_a_walk_puts_the_same_data_back_on_every_server_for_each_block(rack, monkeypatch, tmp_path):
    """The second server is first started by the walk itself, and both arms change what they read."""
    plan = {"seed": 3, "blocks": 2, "discard_s": 0, "run_s": 3, "max_repeats": 1}
    arms = {"one": {}, "two": {"clients": 2, "servers": 2}}
    asked = study(arms=arms, threads=(2,), plan=plan)
    with opened(rack, monkeypatch, "walk", asked) as site:
        found = dataset.ensure_data(site, plan_data(asked))
        store = walks.Store(site, asked, tmp_path)
        store.walk()
        store.assert_complete()
        again = dataset.ensure_data(site, plan_data(asked), found)
        assert again["fingerprint"] == found["fingerprint"] and again["events"] == []


ROOMY = {"innodb_buffer_pool_size": "32M", "innodb_log_file_size": "8M", "max_connections": 500}
HELD = {"access": "haproxy", "load": {"idle_connections": 100, "new_connections_per_s": 20}}


def drivers(rack: Rack) -> list[psutil.Process]:
    """Return the processes that hold and make connections, on whichever host of this rack."""
    here = {pid for host in rack.hosts.values() for pid in host.processes()}
    found = [one for one in psutil.process_iter(["cmdline"]) if one.pid in here]
    return [one for one in found if "drive" in (one.info["cmdline"] or [])[2:3]]


def test_connections_from_the_clients_host_are_there_in_the_run_and_in_the_books(rack, monkeypatch, tmp_path):
    asked = study(arms={"direct": {}, "held": HELD}, engine={"settings": ROOMY})
    seen: list[str] = []

    def look() -> None:
        (driver,) = drivers(rack)
        seen.append(run("ip", "netns", "identify", str(driver.pid)).strip())

    with loaded(rack, monkeypatch, "load", asked) as site:
        assert site.missing("held") is None
        with beside.once(lambda: list(tmp_path.glob("raw/*/*.part/sysbench.out")) and drivers(rack), look):
            folder = walks.measured(site, site.study, "held", tmp_path / "raw")
        judged, evidence = walks.judge(folder), folder.evidence()
        assert (judged.status, judged.reasons, judged.ledger) == ("valid", [], "agrees")
        load = evidence["arrangement"]["load"]
        assert (load["idle"]["opened"], load["idle"]["held"], load["failed"]) == (100, 100, 0)
        assert load["stayed"] is True
        assert load["short"]["achieved_per_s"] > 15 and load["sessions_before"] > 100
        assert evidence["ledger"]["own_connections"] == load["connections"] > 160
        assert seen == [rack.hosts["client1"].namespace] and drivers(rack) == []
        plain = walks.measured(site, site.study, "direct", tmp_path / "plain")
        assert "load" not in plain.evidence()["arrangement"]


def test_a_driver_that_is_killed_on_its_host_voids_the_run(rack, monkeypatch, tmp_path):
    asked = study(arms={"direct": {}, "held": HELD}, engine={"settings": ROOMY})
    with loaded(rack, monkeypatch, "killed", asked) as site:
        begun = lambda: list(tmp_path.glob("raw/*/*.part")) and drivers(rack)  # noqa: E731
        with beside.once(begun, lambda: drivers(rack)[0].kill(), 2.0):
            folder = walks.measured(site, site.study, "held", tmp_path / "raw")
        judged = walks.judge(folder)
    assert judged.status == "invalid"
    assert any("the driver of connections" in one for one in judged.reasons)


@pytest.mark.skipif(not TIPROXY, reason="no TiProxy; its path goes into BENCHBOOK_TIPROXY")
def test_tiproxy_captures_on_its_host_while_its_arm_is_measured(rack, monkeypatch, tmp_path):
    arms = {"direct": {}, "on": {"access": "tiproxy", "capture": True}}
    with loaded(rack, monkeypatch, "capture", study(arms=arms), programs={"tiproxy": TIPROXY}) as site:
        folder = walks.measured(site, site.study, "on", tmp_path / "raw")
        walks.must_agree(folder)
        told = folder.evidence()["arrangement"]["capture"]
        assert told["stayed"] is True and told["error"] == "" and told["written_mib"] > 0
        assert not list(rack.folder.glob("proxy1/lab/*/proxy/capture"))


def test_a_custom_script_runs_on_a_host_with_its_modules_and_clients_where_they_are_put(
    rack: Rack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """TPC-C's layout, its tables proven on the server; another arm's clients on hosts that it names."""
    tpcc = {"script": "tests/others/tpcc_like/tpcc.lua", "options": {"tables": 1, "scale": 1, "use_fk": 0}}
    arms = {"one": {}, "there": {"hosts": {"client": "client2"}}}
    asked = study(arms=arms, workloads={"tpcc": tpcc}, warm_up={"pilot_s": 1}, threads=(1,))
    with loaded(rack, monkeypatch, "scripts", asked) as site:
        (found,) = dataset.describe_custom_tables(site, plan_data(asked)).values()
        assert found["stock1"]["rows"] == 100 and found["customer1"]["checksum"]
        judged = walks.judge(walks.measured(site, asked, "there", tmp_path / "raw"))
        assert (judged.reasons, judged.status) == ([], "valid")
        assert site.facts("there")["hosts"]["client"]["name"] == "client2"
