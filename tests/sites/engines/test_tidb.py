"""A real TiDB in the lab, looked at from outside: where it listens, who is let in, what is left of it.

The tests take a server that was built before (`make tidb`); building one is a slow test of its own.
"""

import contextlib
import os
import re
import shutil
import signal
import stat
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files
from benchbook.core.util.errors import SettingsDiffer, SiteError
from benchbook.measure import dataset, run_executor, statement_counters
from benchbook.measure.data_plan import plan_data
from benchbook.plan import schedule
from benchbook.read import validity
from benchbook.sites import workspace as labs
from benchbook.sites.engines import dialect
from benchbook.sites.local import network
from benchbook.sites.machine import capabilities
from benchbook.sites.tidb import build
from benchbook.sites.topology import teardown
from tests import small
from tests.limits import LIMITS

BUILT = [version for version in build.list_versions() if build.make_recipe(version).target.is_file()]
LACKING = [ability.name for ability in capabilities.check_network()[:3] if not ability.ok]
needs_root = pytest.mark.skipif(os.geteuid() != 0 or bool(LACKING), reason=f"needs root and {LACKING}")
RUN = {"plan": {"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2, "order": "runs"}, "threads": (3,)}


def on_tidb(test: Any) -> Any:
    """Mark a test that starts a TiDB which was built before."""
    why = "no TiDB was built here; `make tidb` builds it in minutes"
    return pytest.mark.server(pytest.mark.skipif(not BUILT, reason=why)(test))


@pytest.fixture
def study(port: int):
    """Return a function that makes a study on TiDB."""

    def make(**changes: Any) -> StudySpec:
        own = {
            "site": {"port": port},
            "engine": {"name": "tidb", "version": (BUILT or ["6.6"])[0]},
            "arms": {"direct": {}, "relay": {"access": "haproxy"}},
            "dataset": {"tables": 2, "table_size": 300},
            "warm_up": {},
        }
        return small.study(**own | RUN | changes)

    return make


@pytest.fixture
def opened(open_folder: Path):
    """Return a context manager that opens the site of a study in the one lab of these tests."""

    @contextlib.contextmanager
    def site(study: StudySpec) -> Iterator[Any]:
        with sites.open_site(study, open_folder / "tidb") as one:
            yield one

    return site


def ask(endpoint: Any, statement: str, **account: Any) -> Any:
    user, password = labs.read_secret(endpoint.secret)
    given = {"user": user, "password": password, "database": endpoint.database} | account
    address = {"host": endpoint.host, "port": endpoint.port}
    connection = pymysql.connect(**address, **given, ssl_disabled=True, connect_timeout=5)
    with connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def listening(pid: int) -> set[tuple[str, int]]:
    found = psutil.Process(pid).net_connections("tcp")
    return {(one.laddr.ip, one.laddr.port) for one in found if one.status == psutil.CONN_LISTEN}


def measured(site: Any, made: StudySpec, name: str, into: Path) -> validity.Judgement:
    """Make a run of the first arm as the walk makes it, and judge it."""
    runs = schedule.plan_runs("s", made, {})
    run = next(run for run in runs if run.workload == name and run.arm == made.baseline)
    with statement_counters.open_session(site, run.arm) as connection:
        what = run_executor.RunContext(run, site, run.arm, (connection,), LIMITS)
        return validity.judge_run(run_executor.execute_run(what, into, 1), LIMITS)


@on_tidb
def test_nobody_enters_without_a_password_and_nothing_listens_beyond_loopback(study, opened) -> None:
    with opened(study()) as site:
        endpoint = site.up("direct")
        (pid,) = site.monitored("direct")["server"]
        port = endpoint.port
        assert listening(pid) == {("127.0.0.1", port), ("127.0.0.1", port + 1)}
        assert "TiDB" in ask(endpoint, "SELECT VERSION()") == ask(site.up("relay"), "SELECT VERSION()")
        for account in ({"password": ""}, {"user": "root", "password": ""}, {"user": "", "password": ""}):
            with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
                ask(endpoint, "SELECT 1", **account)
        with site.admin().connect() as connection:
            query = "SELECT user, host, authentication_string FROM mysql.user"
            known = connection.exec_driver_sql(query).all()
        accounts = {(user, host) for user, host, _ in known}
        assert accounts == {("root", "localhost"), ("benchbook", "127.0.0.1")}
        assert all(secret for *_, secret in known)
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            ask(endpoint, "SELECT COUNT(*) FROM mysql.user", database="mysql")
        for path in (site.lab.folder / "secrets").iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        if os.geteuid() == 0:
            assert psutil.Process(pid).uids().real != 0
        settings = site.facts("direct")["engine"]["settings"]
        assert settings["enable-telemetry"]["got"] == "OFF" == settings["tidb_enable_telemetry"]["got"]
        assert settings["log.level"]["got"] == "error"
        plan_cache = [got for name, got in settings.items() if "plan" in name and "cache" in name]
        assert [one["got"] for one in plan_cache] == ["ON"]
    assert not psutil.pid_exists(pid)


@on_tidb
def test_settings_of_both_kinds_reach_the_server_and_one_that_does_not_exist_is_named(study, opened) -> None:
    variable = "tidb_hashagg_final_concurrency"
    asked = {"performance.max-procs": 1, variable: 1, "log.level": "fatal"}
    engine = {"name": "tidb", "version": BUILT[0], "settings": asked}
    with opened(study(engine=engine)) as site:
        endpoint = site.up("direct")
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port + 1}/metrics") as answer:
            assert "tidb_server_maxprocs 1\n" in answer.read().decode()
        assert str(ask(endpoint, f"SELECT @@global.{variable}")) == "1"
        found = site.facts("direct")["engine"]["settings"]
        assert {name: found[name]["from"] for name in asked} == dict.fromkeys(asked, "study")
    engine["settings"] = {"tidb_no_such_variable": 1, "performance.no-such-item": 1}
    with opened(study(engine=engine)) as site:
        site.up("direct")
        with pytest.raises(SettingsDiffer) as caught:
            site.facts("direct")
        assert "tidb_no_such_variable" in str(caught.value)
        assert "performance.no-such-item" in str(caught.value)


@on_tidb
def test_runs_agree_with_the_servers_books_to_the_query_and_a_tampered_one_does_not(study, opened, tmp_path):
    names = ("oltp_read_write", "oltp_point_select", "select_random_ranges", "oltp_insert")
    plan = RUN["plan"] | {"discard_s": 0}
    made = study(workloads={name: {} for name in names}, plan=plan, threads=(1,))
    with opened(made) as site:
        loaded = dataset.load_data(site, plan_data(made))
        assert loaded["rows"] == {"sbtest1": 300, "sbtest2": 300} and loaded["loads"] == {}
        with statement_counters.open_session(site) as connection:
            assert dataset.analyze_all(connection, plan_data(made))[0]["Msg_text"] == "OK"
            dataset.prewarm_tables(connection, 2)
            ids = connection.exec_driver_sql("SELECT MIN(id), MAX(id) FROM sbtest1").one()
            assert tuple(ids) == (1, 300), "without gaps, or point selects would miss"
        for name in names:
            judged = measured(site, made, name, tmp_path / name)
            # On a busy machine a second may pass without a transaction; that is not what this is about.
            assert [reason for reason in judged.reasons if not reason.startswith("V7 ")] == []
            assert judged.ledger == "agrees"
            has_rows_to_count = name in ("oltp_point_select", "oltp_read_write", "select_random_ranges")
            assert any("Rows_sent" in text for text in judged.warnings) == has_rows_to_count
        site.restore(plan_data(made).label)
        folder = next((tmp_path / "oltp_read_write").iterdir())
        seen = files.read_json(folder / "evidence.json")
        assert seen["ledger"]["after"]["Com_select"] > seen["ledger"]["before"]["Com_select"]
        evidence = validity.judge_run(tampered(folder, seen, "Com_select"), LIMITS)
        assert evidence.status == "invalid" and "V10" in evidence.reasons[0]


def tampered(folder: Path, seen: dict[str, Any], counter: str) -> Any:
    """Return a run whose server counted one statement more."""
    from benchbook.core.artifacts.run_folder import RunFolder
    from benchbook.read.evidence import Evidence

    seen["ledger"]["after"][counter] += 1
    run = Evidence.of(RunFolder(folder))
    return Evidence(run.plan, seen, run.out, run.err, ())


@on_tidb
@pytest.mark.parametrize("how", ["killed", "restarted"])
def test_a_run_whose_server_was_killed_or_restarted_is_caught(study, opened, tmp_path, monkeypatch, how):
    made = study(workloads={"oltp_point_select": {"ignore_errors": (1213,)}})
    with opened(made) as site:
        if not site.has_snapshot(plan_data(made).label):
            dataset.load_data(site, plan_data(made))
        else:
            site.restore(plan_data(made).label)
        (pid,) = site.monitored("direct")["server"]
        real = site.watch

        def watch(arm: str, clients: Any, path: Path) -> Any:
            watched = real(arm, clients, path)
            os.kill(pid, signal.SIGKILL)
            if how == "restarted":
                psutil.Process(pid).wait() if psutil.pid_exists(pid) else None
                site.up("direct")
            return watched

        monkeypatch.setattr(site, "watch", watch)
        judged = measured(site, made, "oltp_point_select", tmp_path / "raw")
        assert judged.status == "invalid", judged.reasons
        words = " ".join(judged.reasons)
        assert "V1 " in words
        assert ("V12" in words) == (how == "restarted") or "V10" in words


@on_tidb
@needs_root
def test_in_a_pod_behind_a_service_it_answers_there_and_nowhere_else(study, opened) -> None:
    arms = {"host": {}, "pod": {"network": "pod", "access": "service", "cpu": {"server": {"quota": 1.0}}}}
    with opened(study(arms=arms)) as site:
        site.up("host")
        endpoint = site.up("pod")
        (pid,) = site.monitored("pod")["server"]
        (path,) = [one for one in network.NAMESPACES.iterdir() if site.lab.token[:8] in one.name]
        assert os.readlink(f"/proc/{pid}/ns/net") == f"net:[{path.stat().st_ino}]"
        assert os.readlink("/proc/self/ns/net") != os.readlink(f"/proc/{pid}/ns/net")
        assert site.identity("pod")["server_group"]["quota_cores"] == 1.0
        with site.during("pod") as record:
            assert ask(endpoint, "SELECT @@datadir").endswith("/server-2/data")
        assert record["service"]["connections"] == 1
        with statement_counters.open_session(site, "pod") as connection:
            before, uptime = statement_counters.read_counters(connection)
            ask(endpoint, "SELECT 1")
            assert dialect.get_dialect(connection).foreign_sessions(connection) in (0, 1)
            statement_counters.wait_until_settled(connection)
            after, _ = statement_counters.read_counters(connection)
        assert after["Connections"] - before["Connections"] == 1 and uptime < 600
        token, folder = site.lab.token, site.lab.folder
    assert teardown.find_processes(folder, {token}) == [] and teardown.tear_down(folder).is_clean
    assert [one.name for one in network.NAMESPACES.iterdir() if token[:8] in one.name] == []


@pytest.mark.skipif(len(BUILT) < 2, reason="needs two versions of TiDB; `make tidb` builds them")
@pytest.mark.server
@pytest.mark.slow
def test_two_versions_are_two_servers_with_the_same_rows_each_from_a_copy_of_its_own(study, opened) -> None:
    arms = {
        "new": {},
        "named": {"engine": {"binary": str(build.make_recipe(BUILT[0]).target)}},
        "old": {"engine": {"version": BUILT[1]}},
        "first": {"data": {"index": "before"}},
        "mariadb": {"engine": {"name": "mariadb"}},
    }
    made = study(arms=arms)
    with opened(made) as site:
        loaded = dataset.load_data(site, plan_data(made))
        assert set(loaded["loads"]) == set(arms) and loaded["loads"]["first"]["index"] == "before the rows"
        versions = {arm: ask(site.up(arm), "SELECT VERSION()") for arm in arms}
        assert BUILT[0] in versions["new"] and BUILT[1] in versions["old"]
        assert "MariaDB" in versions["mariadb"]
        assert dataset.ensure_data(site, plan_data(made), loaded)["events"] == []
        with statement_counters.open_session(site, "old") as connection:
            connection.exec_driver_sql("DELETE FROM sbtest1 WHERE id < 100")
        (event,) = dataset.ensure_data(site, plan_data(made), loaded)["events"]
        assert re.match(r"sbtest1 has 201 rows, .* 300; ", event)
        with statement_counters.open_session(site, "old") as connection:
            assert statement_counters.count_rows(connection, 2) == {"sbtest1": 300, "sbtest2": 300}


def test_without_go_and_without_a_built_server_the_arm_is_skipped_by_name(study, tmp_path, monkeypatch):
    monkeypatch.setenv(build.VARIABLE, str(tmp_path))
    monkeypatch.setattr(build.shutil, "which", lambda *_, **__: None)
    assert "there is no Go; `apt-get install golang`" in build.find_obstacle(None, None)
    assert re.search(r"3\.0: .* 6\.6 or ", build.find_obstacle("3.0", None))
    assert "no program there" in build.find_obstacle(None, str(tmp_path / "absent"))
    monkeypatch.undo()
    if shutil.which("go") is not None:
        assert build.find_obstacle("6.6", None) is None


def test_another_pin_is_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server built from other sources must never be taken for this one."""
    monkeypatch.setenv(build.VARIABLE, str(tmp_path / "engines"))
    copy = shutil.copytree(build.RECIPES, tmp_path / "recipes")
    monkeypatch.setattr(build, "RECIPES", copy)
    version = build.list_versions()[0]
    before = build.make_recipe(version).target
    (copy / version / "go.sum").open("a").write("x\n")
    assert build.make_recipe(version).target != before and before.is_relative_to(tmp_path / "engines")


@pytest.mark.parametrize(("go", "told"), [("go1.19.8", False), ("go1.23.0", True), ("devel", True)])
def test_the_linker_is_told_what_its_version_of_go_understands(go: str, told: bool) -> None:
    linker = build._adapt_flags(list(build.make_recipe("6.6").flags), go)[-1]
    assert ("-checklinkname=0" in linker) == told and linker.startswith("-ldflags=")


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go in the PATH")
@pytest.mark.slow
def test_a_server_is_built_once_and_nothing_of_the_building_is_left(open_folder, monkeypatch, capsys) -> None:
    monkeypatch.setenv(build.VARIABLE, str(open_folder / "engines"))
    lab = labs.open_lab(open_folder / "building")
    try:
        program = build.ensure_program(lab, "6.6", None)
    except SiteError as error:
        if any(words in str(error) for words in ("dial tcp", "lookup ", "proxy")):
            pytest.skip("the modules can't be had here")
        raise
    assert "building tidb-server 6.6" in capsys.readouterr().out
    assert build.said_version(program) == build.read_release("6.6").removeprefix("v")
    assert {path.name for path in program.parent.iterdir()} == {"tidb-server", "built.json"}
    assert not (lab.run / "build").exists() and os.access(program, os.X_OK)
    before = program.stat().st_mtime_ns
    assert build.ensure_program(lab, "6.6", None).stat().st_mtime_ns == before
