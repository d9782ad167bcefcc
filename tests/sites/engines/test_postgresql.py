"""PostgreSQL and PgBouncer on this machine: settings, accounts, the ledger, and what voids a run."""

import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from benchbook import sites
from benchbook.core.artifacts import applied_config
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study import interleaving
from benchbook.core.study.model import Endpoint
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import SettingsDiffer, SiteError
from benchbook.measure import dataset, servers, statement_counters, sysbench
from benchbook.measure.data_plan import plan_data
from benchbook.measure.run_executor import RunContext, execute_run
from benchbook.plan import schedule
from benchbook.sites import workspace as labs
from benchbook.sites.agent import files
from benchbook.sites.engines import postgresql as accounts
from benchbook.sites.engines import postgresql_settings as server_settings
from benchbook.sites.proxies.pgbouncer import PgBouncer
from tests import rooms, small, walks
from tests.limits import LIMITS
from tests.sites.connection import tell
from tests.walks import Store, judge

SMALL = {"shared_buffers": "32MB", "max_wal_size": "256MB"}
MISSING = "PostgreSQL is not installed: apt-get install postgresql"


def on_a_server(test: Any) -> Any:
    """Mark a test that starts a PostgreSQL."""
    is_missing = not files.find_programs(accounts.PROGRAM)
    return pytest.mark.server(pytest.mark.skipif(is_missing, reason=MISSING)(test))


def study(port: int | None = None, **changes: Any) -> StudySpec:
    defaults = {
        "site": {"port": rooms.port(90) if port is None else port},
        "engine": {"name": "postgresql", "settings": SMALL},
        "arms": {"direct": {}, "again": {"access": "haproxy"}},
        # In few rows two clients want the same one, and an error in a hundred transactions voids a run.
        "dataset": {"tables": 2, "table_size": 20_000},
    }
    return small.study(**defaults | changes)


def test_a_server_of_another_name_is_called_by_that_in_its_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(accounts.PostgreSQL):
        traits = replace(accounts.TRAITS, name="other")
        folder, binary, version = PurePosixPath("/nowhere"), "postgres", "15.1"

    monkeypatch.setattr(server_settings, "collect_facts", lambda *_: {"name": "postgresql", "tls": "off"})
    for name in ("running", "admin", "program_facts"):
        monkeypatch.setattr(Other, name, lambda *_: {})
    other = object.__new__(Other)
    other.asked, other.engine = {}, SimpleNamespace(settings={})
    assert other.facts() == {"name": "other", "tls": "off"}


def row(setting: str, unit: str | None, vartype: str, name: str = "x") -> SimpleNamespace:
    return SimpleNamespace(name=name, setting=setting, unit=unit, vartype=vartype, pending_restart=False)


@pytest.mark.parametrize(
    ("name", "wanted", "got", "unit", "kind", "is_same"),
    [
        # 64 MiB are 8192 pages of 8 KiB, and a bare number counts pages.
        ("shared_buffers", "64MB", "8192", "8kB", "integer", True),
        ("shared_buffers", 8192, "8192", "8kB", "integer", True),
        ("shared_buffers", "64MB", "8191", "8kB", "integer", False),
        ("checkpoint_timeout", "15min", "900", "s", "integer", True),
        ("commit_delay", "-1", "-1", "us", "integer", True),
        ("jit", False, "off", None, "bool", True),
        ("synchronous_commit", True, "on", None, "enum", True),
        ("synchronous_commit", "remote_apply", "on", None, "enum", False),
        # `on` is what PostgreSQL 15 calls pglz when it is asked.
        ("wal_compression", True, "pglz", None, "enum", True),
        ("wal_compression", "lz4", "pglz", None, "enum", False),
        ("wal_compression", "off", "off", None, "enum", True),
    ],
)
def test_a_setting_is_compared_across_the_ways_of_writing_it(name, wanted, got, unit, kind, is_same) -> None:
    assert server_settings.is_same_value(name, wanted, got, unit, kind) is is_same


def test_a_setting_that_waits_for_a_restart_or_is_not_there_was_not_taken() -> None:
    waiting = row("8192", "8kB", "integer", "shared_buffers")
    waiting.pending_restart = True
    with pytest.raises(SettingsDiffer, match="shared_buffers"):
        server_settings.verify_settings({"shared_buffers": "64MB"}, {}, [waiting])
    with pytest.raises(SettingsDiffer, match="no_such"):
        server_settings.verify_settings({"no_such": 1}, {}, [waiting])


def test_arms_take_turns_on_one_server_and_slow_ones_on_two() -> None:
    """A server's own sessions are processes, which all stand still where it belongs to one arm."""
    plan = {"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2}
    shared = study(plan=plan)
    assert interleaving.choose_order(shared, "oltp_read_write") == interleaving.TURNS
    off = {"engine": {"settings": {"synchronous_commit": "off"}}}
    own = study(plan=plan, arms={"direct": {}, "off": off})
    assert (interleaving.choose_order(own, "oltp_read_write"), interleaving.least_ms(own)) == (
        interleaving.TURNS,
        interleaving.SESSIONS_MS,
    )


def test_the_plan_names_the_driver_and_no_password_is_in_the_command_line() -> None:
    planned = schedule.plan_runs("test", study(), {})[0]
    assert planned.options["driver"] == "pgsql"
    assert "ignore_errors" not in planned.options
    endpoint = Endpoint("127.0.0.1", 1, "sbtest", Path("account.cnf"), driver="pgsql")
    argv = sysbench.run_argv(endpoint, planned)
    assert {"--db-driver=pgsql", "--pgsql-host=127.0.0.1", "--pgsql-port=1", "--pgsql-db=sbtest"} < set(argv)
    assert not [word for word in argv if "mysql" in word or "password" in word or "user" in word]
    of_mysql = schedule.plan_runs("test", study(engine={"name": "mariadb"}), {})[0]
    assert "driver" not in of_mysql.options


@pytest.fixture(scope="module")
def loaded(open_folder: Path, port: int) -> Iterator[Any]:
    """A site with a loaded PostgreSQL, whose data each test may spoil and put back."""
    if not files.find_programs(accounts.PROGRAM):
        pytest.skip(MISSING)
    arms: dict[str, Any] = {"direct": {}, "relay": {"access": "haproxy"}}
    if PgBouncer.installed() is not None:
        arms["bouncer"] = {"access": "pgbouncer"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOOK_LOCK", str(open_folder / "postgresql.lock"))
        with sites.open_site(study(port, arms=arms), open_folder / "postgresql") as site:
            dataset.load_data(site, plan_data(site.study))
            yield site


@pytest.fixture
def site(loaded: Any) -> Any:
    """That site with its data put back and its server up."""
    loaded.restore()
    loaded.up("direct")
    return loaded


def planned(site: Any, arm: str, workload: str = "oltp_read_write") -> Any:
    default = type(site.study.workloads["oltp_read_write"])()
    asked = site.study.model_copy(update={"workloads": {workload: default}})
    return walks.planned(asked, arm)


def made(site: Any, arm: str, into: Path, workload: str = "oltp_read_write") -> RunFolder:
    site.up(arm)
    with servers.open_sessions(site, site.study, [arm]) as connections:
        return walks.made(site, planned(site, arm, workload), connections[arm], into)


def grown(folder: RunFolder, name: str) -> int:
    books = folder.evidence()["ledger"]
    return books["after"][name] - books["before"][name]


@on_a_server
@pytest.mark.parametrize("arm", ["direct", "bouncer"])
def test_the_ledger_agrees_to_the_query(loaded: Any, tmp_path: Path, arm: str) -> None:
    """oltp_read_write: 10 points and 4 ranges, 2 updates, a delete and an insert in each transaction."""
    if arm not in loaded.study.arms:
        pytest.skip(str(PgBouncer.obstacle()))
    loaded.restore()
    folder = made(loaded, arm, tmp_path)
    judgement = judge(folder)
    assert (judgement.status, judgement.reasons) == ("valid", [])
    deletes = grown(folder, "Com_delete")
    assert deletes > 0
    assert grown(folder, "Com_select") == 14 * deletes
    assert grown(folder, "Com_update") == 2 * deletes
    # Two clients may want one row: then the transaction ends before its insert, and sysbench counts an error.
    (errors,) = re.findall(r"ignored errors: +(\d+)", (folder.path / "sysbench.out").read_text())
    assert deletes - int(errors) <= grown(folder, "Com_insert") <= deletes
    assert 0.9 * 4 * deletes <= grown(folder, "Rows_changed") <= 4 * deletes
    absent = {"Com_begin", "Com_commit", "Com_stmt_execute"}
    # PgBouncer may open a third session while two clients wait for their first.
    absent |= {"Connections"} if arm == "bouncer" else set()
    assert folder.evidence()["ledger"]["absent"].keys() == absent
    assert arm == "bouncer" or grown(folder, "Connections") == 2


@on_a_server
def test_a_statement_of_a_stranger_in_the_run_voids_it(site: Any, tmp_path: Path) -> None:
    endpoint = site.up("direct")
    password = site.lab.password(accounts.DRIVER)
    with servers.open_sessions(site, site.study, ["direct"]) as connections:
        run = RunContext(planned(site, "direct"), site, "direct", connections["direct"], LIMITS)
        real = site.during

        def during(arm: str) -> Any:
            with psycopg.connect(
                host=endpoint.host, port=endpoint.port, user=labs.USER, password=password, dbname=labs.SCHEMA
            ) as stranger:
                stranger.execute("SELECT 1")
            return real(arm)

        site.during = during
        try:
            folder = execute_run(run, tmp_path, 1)
        finally:
            del site.during
    judgement = judge(folder)
    assert judgement.status == "invalid"
    assert any("Com_select grew by" in reason for reason in judgement.reasons)
    assert any(re.search(r"Connections grew by 3, .* 2\b", reason) for reason in judgement.reasons)


@on_a_server
@pytest.mark.alone
def test_the_books_of_a_server_are_held_against_all_arms_that_share_it_in_turns(site, tmp_path) -> None:
    arms = [arm for arm in ("direct", "bouncer") if arm in site.study.arms]
    plan = site.study.plan.model_copy(update={"order": "turns", "run_s": 1})
    changes = {"arms": {arm: site.study.arms[arm] for arm in arms}, "plan": plan}
    asked = site.study.model_copy(update=changes)
    store = Store(site, asked, tmp_path)
    store.walk_undisturbed()
    store.assert_complete()
    assert store.wrong() == {}
    for folder in (folders := store.kept()):
        assert grown(folder, "Com_select") == 14 * grown(folder, "Com_delete") > 0
    books = [folder.evidence()["ledger"]["after"] for folder in folders]
    assert books[0] == books[-1], "one server, one reading"


@on_a_server
def test_a_trigger_or_a_row_between_two_runs_voids_the_second(site: Any, tmp_path: Path) -> None:
    with servers.open_sessions(site, site.study, ["direct"]) as connections:
        asked = planned(site, "direct", "oltp_point_select")
        run = RunContext(asked, site, "direct", connections["direct"], LIMITS)
        # Reading tables loads a library into our session, with settings of its own.
        dataset.prewarm_all(plan_data(site.study), connections)
        before = judge(walks.made(site, asked, connections["direct"], tmp_path / "1"))
        assert (before.status, before.reasons) == ("valid", [])
        tell(
            site,
            "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
            "CREATE TRIGGER slow BEFORE UPDATE ON sbtest1 FOR EACH ROW EXECUTE FUNCTION nothing()",
            arm="direct",
        )
        judgement = judge(execute_run(run, tmp_path / "2", 1))
        assert judgement.status == "invalid"
        assert any("trigger sbtest1.slow was added" in reason for reason in judgement.reasons)
        undone = ("DROP TRIGGER slow ON sbtest1", "DROP FUNCTION nothing")
        written = ("UPDATE sbtest1 SET k = k WHERE id = 1", "SELECT pg_stat_force_next_flush()")
        tell(site, *undone, *written, arm="direct")
        judgement = judge(execute_run(run, tmp_path / "3", 1))
        assert any("sbtest1 was written to" in reason for reason in judgement.reasons)


@on_a_server
def test_a_setting_changed_and_a_restart_between_two_runs_void_the_second(site, tmp_path) -> None:
    with servers.open_sessions(site, site.study, ["direct"]) as connections:
        asked = planned(site, "direct", "oltp_point_select")
        run = RunContext(asked, site, "direct", connections["direct"], LIMITS)
        assert judge(walks.made(site, asked, connections["direct"], tmp_path / "1")).status == "valid"
        tell(site, "ALTER SYSTEM SET work_mem = '1MB'", "SELECT pg_reload_conf()", arm="direct")
        time.sleep(0.3)
        judgement = judge(execute_run(run, tmp_path / "2", 1))
        assert any("work_mem was 4096, is 1024" in reason for reason in judgement.reasons)


@on_a_server
def test_a_killed_server_voids_the_run_and_comes_back(site: Any, tmp_path: Path) -> None:
    pid = site.identity("direct")["pid"]
    real = site.watch

    def watch(*given: Any, **more: Any) -> Any:
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        return real(*given, **more)

    site.watch = watch
    try:
        with servers.open_sessions(site, site.study, ["direct"]) as connections:
            run = RunContext(planned(site, "direct"), site, "direct", connections["direct"], LIMITS)
            folder = execute_run(run, tmp_path, 1)
    finally:
        del site.watch
    assert judge(folder).status == "invalid"
    site.restore()
    assert site.identity("direct")["pid"] != pid
    after = judge(made(site, "direct", tmp_path / "after"))
    assert after.status == "valid", after.reasons


@on_a_server
def test_a_session_that_hangs_is_given_up_and_its_server_silent_after_the_run(site, monkeypatch) -> None:
    """One of its processes is stopped: the others, such as those that let clients in, go on."""
    with statement_counters.open_session(site, "direct") as connection:
        pid = int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
        before = statement_counters.record_before(connection, 0)
        monkeypatch.setattr(statement_counters, "ANSWER_S", 1.0)
        os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            after = statement_counters.record_after(connection, before, 0, {})
            assert 1.0 <= time.monotonic() - began < 30
        finally:
            os.kill(pid, signal.SIGCONT)
    assert (after["server_answers"], after["ledger"]["after"]) == (False, None)
    with statement_counters.open_session(site, "direct") as connection:
        assert statement_counters.read_counters(connection)


@on_a_server
def test_a_wrong_password_and_another_database_are_refused(loaded: Any) -> None:
    endpoint = loaded.up("direct")
    place = {"host": endpoint.host, "port": endpoint.port, "user": labs.USER}
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(**place, password="wrong", dbname=labs.SCHEMA)
    with pytest.raises(psycopg.OperationalError, match=r"pg_hba\.conf entry"):
        psycopg.connect(**place, password=loaded.lab.password(accounts.DRIVER), dbname="postgres")
    server = (loaded.lab.folder / "server").stat()
    assert server.st_mode & 0o077 == 0
    argv = Path(f"/proc/{loaded.identity('direct')['pid']}/cmdline").read_text()
    assert loaded.lab.password(accounts.DRIVER) not in argv


@on_a_server
def test_the_settings_files_are_named_by_each_run_and_hold_no_password(loaded: Any) -> None:
    files = {"direct": [], "relay": ["haproxy.cfg", "haproxy.argv"]}
    files["bouncer"] = ["pgbouncer.ini", "pgbouncer.argv"]
    for arm in loaded.study.arms:
        loaded.up(arm)
        texts = loaded.applied(arm)
        assert [name for name, _ in texts] == ["postgresql.conf", "hba.conf", "postgres.argv", *files[arm]]
        assert dict(texts)["hba.conf"].startswith("local all ") and "scram-sha-256" in dict(texts)["hba.conf"]
        assert "--config-file=SERVER/postgresql.conf" in dict(texts)["postgres.argv"].splitlines()
        named = {digest for _, digest in applied_config.find_digests(loaded.identity(arm))}
        assert {applied_config.digest_text(text) for _, text in texts} == named
        assert not any(loaded.lab.password(accounts.DRIVER) in text for _, text in texts)


@on_a_server
def test_a_setting_that_the_server_does_not_take_ends_the_stage(open_folder: Path, port: int) -> None:
    asked = study(port + 10, engine={"name": "postgresql", "settings": SMALL | {"no_such_setting": 3}})
    opened = sites.open_site(asked, open_folder / "postgresql-refused")
    with opened as site, pytest.raises(SiteError, match="no_such_setting"):
        site.up("direct")
