"""The lab with a real server and a real proxy: ours, on loopback, and gone afterwards."""

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pymysql
import pytest

from benchbook import sites
from benchbook.core.study import descriptors
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.local.site import LocalSite
from benchbook.sites.machine import lock
from benchbook.sites.processes import process, procfs
from benchbook.sites.topology import teardown
from tests import beside, ports, rooms, small
from tests.sites.connection import query
from tests.sites.owner import owning

pytestmark = pytest.mark.server
# The engine that a proxy goes before, and a setting that makes two servers of two arms.
ENGINE_OF = {"pgbouncer": ("postgresql", "commit_delay")}


@pytest.fixture
def site(make_study, lab: Path):
    """The lab, open, with nothing up."""
    with sites.open_site(make_study(), lab) as opened:
        yield opened


def of_lab(folder: Path) -> list[int]:
    """Return the living processes that were started for a lab folder."""
    return [child.pid for child in teardown.find_processes(folder, set())]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to go before others")
@pytest.mark.parametrize(("priority", "change"), [("raised", -10), ("ordinary", 0)])
def test_what_is_measured_goes_before_others_only_where_the_study_lets_it(make_study, lab, priority, change):
    before = os.getpriority(os.PRIO_PROCESS, 0)
    study = make_study()
    where = study.site.model_copy(update={"priority": priority})
    with sites.open_site(study.model_copy(update={"site": where}), lab):
        assert os.getpriority(os.PRIO_PROCESS, 0) == (min(before, change) if change else before)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_a_proxy_that_comes_up_makes_no_connection_to_the_server(site) -> None:
    """Otherwise client and server could not agree on the number of connections."""
    site.up("direct")
    with site.admin().connect() as connection:
        count = "SHOW GLOBAL STATUS LIKE 'Connections'"
        before = int(connection.exec_driver_sql(count).one()[1])
        site.up("relay")
        time.sleep(0.3)
        after = int(connection.exec_driver_sql(count).one()[1])
        assert after == before + 1, "our own look whether the server answers, over the socket"


def test_facts_are_the_same_at_the_next_start(make_study, lab: Path) -> None:
    seen = []
    for _ in range(2):
        with sites.open_site(make_study(), lab) as site:
            site.up("relay")
            facts = site.facts("relay")
            assert facts.pop("moment")["disk_free_mib"] > 0
            seen.append(facts)
    assert seen[0] == seen[1]
    pool = seen[0]["engine"]["settings"]["innodb_buffer_pool_size"]
    assert pool == {"asked": "16M", "got": "16777216", "from": "study"}
    assert len(seen[0]["engine"]["binary_sha256"]) == len(seen[0]["proxy"]["config_hash"]) == 64


def test_a_setting_that_was_not_taken_stops_the_study_with_both_values(make_study, lab: Path) -> None:
    """MariaDB rounds max_allowed_packet down to a multiple of 1024."""
    with sites.open_site(make_study({"max_allowed_packet": 1_048_577}), lab) as site:
        site.up("direct")
        with pytest.raises(sites.SettingsDiffer) as caught:
            site.facts("direct")
    assert caught.value.differences == {"max_allowed_packet": (1_048_577, "1048576")}


@pytest.mark.parametrize(
    ("settings", "engine", "words"),
    [
        ({"no_such_setting": 1}, {}, "no_such_setting"),
        ({}, {"version": "9.9"}, "asked 9.9"),
        ({}, {"binary": "/bin/true"}, "not a MariaDB server"),
    ],
)
def test_an_engine_that_cannot_be_had_is_refused_with_the_reason(make_study, lab, settings, engine, words):
    opened = sites.open_site(make_study(settings, **engine), lab)
    with opened as site, pytest.raises(sites.SiteError, match=words):
        site.up("direct")
    assert of_lab(lab) == []


def test_a_schema_has_the_collation_that_is_asked_for_now(make_study, lab: Path, open_folder: Path) -> None:
    """It keeps the one of the server that made it, so another one is another data folder."""
    schema = "FROM information_schema.schemata WHERE schema_name = 'sbtest'"
    for charset in ("latin1", "utf8mb4"):
        asked = {"character_set_server": charset, "collation_server": f"{charset}_bin"}
        with sites.open_site(make_study(asked), open_folder / "collations") as site:
            found = query(
                site.up("direct"), f"SELECT default_character_set_name, default_collation_name {schema}"
            )
            assert found == ((charset, f"{charset}_bin"),)


def test_a_foreign_server_on_the_port_is_named_and_left_alone(make_study, lab: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        with sites.open_site(make_study(), lab) as site, pytest.raises(sites.SiteError) as caught:
            site.up("direct")
        assert re.search(rf"port {port} .* pid {os.getpid()}", str(caught.value))
        assert teardown.tear_down(lab).is_clean
        assert ports.holders(port) == [os.getpid()]


def test_a_killed_server_and_a_killed_proxy_come_back(site) -> None:
    endpoint = site.up("relay")
    query(endpoint, "CREATE OR REPLACE TABLE kept (id INT PRIMARY KEY)")
    query(endpoint, "INSERT INTO kept VALUES (1)")
    before, mark = site.identity("relay"), site.log_mark()
    os.kill(before["pid"], signal.SIGSEGV)
    os.kill(before["proxy_pid"], signal.SIGKILL)
    assert site.up("relay") == endpoint
    assert any("got signal 11" in line for line in site.log_errors(mark))
    after = site.identity("relay")
    assert before["pid"] != after["pid"] and before["proxy_pid"] != after["proxy_pid"]
    assert query(endpoint, "SELECT * FROM kept") == ((1,),)


def test_a_part_that_died_outside_a_run_is_named_with_when_and_how(site) -> None:
    site.up("relay")
    site.look()
    victim = site.monitored("relay")["proxy"][0]
    os.kill(victim, signal.SIGKILL)
    beside.gone(lambda: procfs.is_alive(victim))
    said = r"ended by itself between \d\d:\d\d:\d\d and .* UTC: \S+ \(by signal 9\), see .*; the same"
    with pytest.raises(SiteError, match=said):
        site.look()
    site.up("relay")
    site.look()


def test_a_server_that_hangs_is_started_anew_and_one_that_is_gone_is_not_asked(site) -> None:
    site.up("direct")
    pid = site.identity("direct")["pid"]
    os.kill(pid, signal.SIGSTOP)
    site.up("direct")
    assert site.identity("direct")["pid"] != pid and not procfs.is_alive(pid)
    site.down()
    with pytest.raises(sites.SiteError, match="does not run"):
        site.identity("direct")


def test_prepared_data_comes_back_as_it_was(make_study, lab: Path) -> None:
    with sites.open_site(make_study(), lab) as site:
        endpoint = site.up("relay")
        query(endpoint, "CREATE OR REPLACE TABLE prepared (id INT PRIMARY KEY)")
        query(endpoint, "INSERT INTO prepared VALUES (1), (2)")
        site.snapshot("two rows")
        query(endpoint, "TRUNCATE prepared")
        site.restore("two rows")
        assert query(endpoint, "SELECT COUNT(*) FROM prepared") == ((2,),)
        query(endpoint, "DROP TABLE prepared")
    data = lab / "server" / "data"
    data.rename(data.with_name("old"))
    with sites.open_site(make_study(), lab) as site:
        assert site.has_snapshot() and site.has_snapshot("two rows") and not site.has_snapshot("three rows")
        with pytest.raises(sites.SiteError, match="prepare"):
            site.restore("three rows")
        assert data.is_dir(), "a crash in the middle of a restore is healed"
        site.restore()
        assert query(site.up("direct"), "SELECT COUNT(*) FROM prepared") == ((2,),)


def test_nothing_is_left_after_leaving_even_through_an_error(make_study, lab: Path, port: int) -> None:
    with pytest.raises(ZeroDivisionError), sites.open_site(make_study(), lab) as site:
        site.up("relay")
        assert len(of_lab(lab)) == 2
        raise ZeroDivisionError
    assert of_lab(lab) == []
    assert ports.listeners(port) == ports.listeners(port + 1) == []
    assert not list(lab.rglob("run/*.json"))
    assert not [path for path in lab.rglob("*") if path.is_socket()]


def test_servers_listen_on_loopback_only_and_run_as_nobody_special(site) -> None:
    site.up("relay")
    pids = {pid for group in site.monitored("relay").values() for pid in group}
    ours = [entry for entry in ports.listeners() if set(ports.holders(entry[1])) & pids]
    assert len(ours) == 2
    assert {address for address, _, _ in ours} == {"0100007F"}
    if os.geteuid() == 0:
        assert all(Path(f"/proc/{pid}").stat().st_uid != 0 for pid in pids)
    if site.cpus["server"] is not None:
        allowed = {part: os.sched_getaffinity(group[0]) for part, group in site.monitored("relay").items()}
        assert allowed == {"server": set(site.cpus["server"]), "proxy": set(site.cpus["proxy"])}


def test_nobody_gets_in_without_a_password_and_the_benchmark_sees_one_schema(site) -> None:
    endpoint = site.up("direct")
    with site.admin().connect() as connection:
        accounts = connection.exec_driver_sql(
            "SELECT User, Host, JSON_VALUE(Priv, '$.authentication_string') FROM mysql.global_priv "
            "WHERE IFNULL(JSON_VALUE(Priv, '$.account_locked'), 0) = 0"
        ).all()
        plugins = dict(connection.exec_driver_sql("SELECT User, Priv FROM mysql.global_priv").all())
    from_here = {user for user, host, *_ in accounts if host == "localhost"}
    assert {row[0] for row in accounts} == {"benchbook"} | from_here
    assert all(row[0] and row[2] for row in accounts), "no anonymous account, no empty password"
    assert all('"unix_socket"' in plugins[row[0]] for row in accounts if row[0] != "benchbook")
    assert [row[0] for row in query(endpoint, "SHOW DATABASES")] == ["information_schema", "sbtest"]
    for user, password in (("root", ""), ("", ""), ("benchbook", "")):
        with pytest.raises(pymysql.err.OperationalError):
            account = {"user": user, "password": password, "ssl_disabled": True}
            pymysql.connect(host="127.0.0.1", port=endpoint.port, **account)


def test_the_password_is_in_one_private_file_and_nowhere_else(site, lab: Path) -> None:
    endpoint = site.up("relay")
    secret = labs.read_secret(endpoint.secret)[1]
    assert len(secret) >= 32
    assert stat.S_IMODE(endpoint.secret.stat().st_mode) == 0o600
    pids = of_lab(lab)
    said = [procfs.read_command(pid) + str(procfs.read_environment(pid)) for pid in pids]
    facts = (site.facts("relay"), site.identity("relay"))
    shown = [repr(site.admin()), repr(endpoint), *map(str, facts), *said]
    assert len(pids) == 2 and not any(secret in text for text in shown)
    holders = [path for path in lab.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert holders == [endpoint.secret]
    readable = [path for path in lab.iterdir() if path.is_dir() and path.stat().st_mode & 0o077]
    assert readable == []


def test_a_second_holder_is_refused_within_a_second_by_name(make_study, lab: Path, open_folder: Path) -> None:
    mine = re.escape(procfs.read_command(os.getpid()))
    holder = rf"pid {os.getpid()}, since 20.*: {mine}"
    with sites.open_site(make_study(), lab), pytest.raises(sites.LockHeld, match=holder):
        lock.acquire_lock(open_folder / "other")


def test_two_labs_do_not_touch_each_other(make_study, lab, open_folder, port, tmp_path, monkeypatch):
    place = make_study().site.model_copy(update={"port": port + 2})
    other_study = make_study().model_copy(update={"site": place})
    with sites.open_site(make_study(), lab) as site:
        site.up("direct")
        monkeypatch.setenv("BENCHBOOK_LOCK", str(tmp_path / "other.lock"))
        with sites.open_site(other_study, open_folder / "other") as other:
            folders = {query(one.up("direct"), "SELECT @@datadir") for one in (other, site)}
            assert len(folders) == 2
            assert labs.read_secret(lab / "secrets/sysbench.cnf") != labs.read_secret(other.lab.secret)
            stopped = teardown.tear_down(open_folder / "other")
            assert stopped.is_clean and len(stopped.stopped) == 1
            assert query(site.up("direct"), "SELECT 1") == ((1,),)


@pytest.fixture
def owner(make_study, lab: Path):
    """Another process that holds the lab with a server, a proxy and a client up."""
    with owning(make_study(), lab) as popen:
        assert len(of_lab(lab)) == 3
        yield popen


def wait_gone(lab: Path, seconds: float) -> list[int]:
    return beside.gone(lambda: of_lab(lab), seconds)


def test_a_killed_owner_takes_everything_with_it_and_the_lab_opens_again(owner, make_study, lab) -> None:
    owner.kill()
    assert wait_gone(lab, 20) == []
    with sites.open_site(make_study(), lab) as site:
        assert query(site.up("direct"), "SELECT 1") == ((1,),)


def test_a_terminated_owner_shuts_the_server_down_properly(owner, lab: Path) -> None:
    mark = (lab / "run/server.log").stat().st_size
    owner.terminate()
    assert owner.wait(timeout=60) == -signal.SIGTERM
    assert wait_gone(lab, 20) == []
    assert b"Shutdown complete" in (lab / "run/server.log").read_bytes()[mark:]


def test_down_ends_a_lab_at_work_and_finds_nothing_the_second_time(owner, lab: Path) -> None:
    report = teardown.tear_down(lab)
    assert report.is_clean and any(f"pid {owner.pid} " in name for name in report.stopped)
    assert wait_gone(lab, 0) == []
    assert str(teardown.tear_down(lab)) == "nothing was left"


def test_down_finds_an_orphan_that_still_holds_the_lock(make_study, lab: Path, own_lock: Path) -> None:
    """A child that lost its promise, as one started by another thread might."""
    held = lock.acquire_lock(lab)
    token = labs.open_lab(lab).token
    environment = {process.TOKEN: token, process.FOLDER: str(lab)}
    orphan = subprocess.Popen(
        ["/bin/sleep", "60"], env=environment, pass_fds=(held.fd,), start_new_session=True
    )
    held.release()
    own_lock.write_text('{"pid": 999999, "started": 1, "since": "yesterday"}')
    with pytest.raises(sites.LockHeld, match=rf"left behind: {orphan.pid} .*make down"):
        lock.acquire_lock(lab)
    assert teardown.tear_down(lab).stopped == [f"pid {orphan.pid} (/bin/sleep 60)"]
    orphan.wait()
    with sites.open_site(make_study(), lab):
        pass


@pytest.mark.parametrize("umask", [0, 0o077])
def test_with_any_umask_others_write_nothing_and_read_no_secret(make_study, lab: Path, umask: int) -> None:
    before = os.umask(umask)
    place = lab.parent / "deep" / "er" / "lab"
    try:
        with sites.open_site(make_study(), place) as site:
            site.up("direct")
            found = [lab.parent / "deep", lab.parent / "deep" / "er", *place.rglob("*")]
            modes = {path: path.stat().st_mode for path in found if not path.is_socket()}
    finally:
        os.umask(before)
    assert len(modes) > 50
    assert [path for path, mode in modes.items() if mode & 0o002] == []
    private = [path for path in modes if path.is_relative_to(place / "secrets") or path.suffix == ".cnf"]
    assert len(private) >= 3
    assert [path for path in private if modes[path] & 0o077] == []
    shutil.rmtree(lab.parent / "deep")


@pytest.mark.parametrize("kind", sorted(descriptors.load_proxies()))
def test_a_proxy_that_has_changed_places_has_the_settings_that_provision_recorded(open_folder, kind):
    """Ports of block 2 are others, and exchanged: the first two, of arm a, are then the last two."""
    if (why := sites.load(descriptors.find_proxy(kind).code).obstacle()) is not None:
        pytest.skip(why)
    engine, setting = ENGINE_OF.get(kind, ("mariadb", "innodb_flush_log_at_trx_commit"))
    values = {name: {"settings": {setting: value}} for name, value in (("a", 1), ("b", 0))}
    arms = {name: {"access": kind, "engine": value} for name, value in values.items()}
    plan = {"seed": 1, "blocks": 2, "discard_s": 0, "run_s": 2}
    study = small.study(site={"port": rooms.port(150)}, engine={"name": engine}, arms=arms, plan=plan)
    with LocalSite(study, open_folder / f"places-{kind}") as site:

        def hashes() -> dict[str, str]:
            found = {}
            for arm in arms:
                proxy = site.runtime.get(site.chains[arm].proxy)
                proxy.ensure()
                found[arm] = proxy.config_hash
            site.down()
            return found

        ports = {arm: site.chains[arm].entry.port for arm in arms}
        first = hashes()
        site.change_places(2)
        assert {arm: site.chains[arm].entry.port for arm in arms} == {"a": ports["b"], "b": ports["a"]}
        assert hashes() == first
