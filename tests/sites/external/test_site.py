"""A server that is not ours: measured as far as it lets us, and left as it was."""

import contextlib
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import psutil
import pytest

from benchbook import sites
from benchbook.commands import cli, site_commands
from benchbook.core.study import load
from benchbook.core.study.descriptors import TEXT
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import BenchbookError, LockHeld, SettingsDiffer, SiteError
from benchbook.measure import dataset, preflight, servers, statement_counters
from benchbook.measure.data_plan import plan_data
from benchbook.measure.run_executor import RunContext, execute_run
from benchbook.plan import schedule
from benchbook.read import validity
from benchbook.show import setup_section
from benchbook.sites import workspace as labs
from benchbook.sites.contract import Start
from benchbook.sites.external.site import ExistingSite
from tests import rooms, small, walks
from tests.goldens import assert_golden
from tests.limits import LIMITS
from tests.sites.connection import tell

pytestmark = pytest.mark.server
PASSWORD = "Pa55 w#rd"


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(open_folder: Path) -> Path:
    """A folder with the certificates that server and client need, by the names that sysbench wants."""
    folder = open_folder / "tls"
    # Tests that need the machine alone come after others, when this was made and taken down once.
    folder.mkdir(mode=0o755, exist_ok=True)
    root = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca-key.pem -out cacert.pem"
    openssl(folder, *root.split())
    for name in ("server", "client"):
        make = f"req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}-key.pem -out {name}.csr"
        sign = f"x509 -req -days 2 -in {name}.csr -CA cacert.pem -CAkey ca-key.pem -CAcreateserial"
        openssl(folder, *make.split())
        openssl(folder, *sign.split(), "-out", f"{name}-cert.pem")
    for path in folder.iterdir():
        path.chmod(0o644)
    return folder


@pytest.fixture(scope="module")
def their_server(open_folder, certificates, make_study) -> Iterator[tuple[Any, Any]]:
    """Somebody's server on this machine."""
    # A disk that is busy with something else must not make a second without a transaction.
    tls = {f"ssl_{name}": str(certificates / file) for name, file in TLS.items()}
    with server_up(make_study(tls | {"innodb_flush_log_at_trx_commit": 2}), open_folder / "theirs") as up:
        yield up


@contextlib.contextmanager
def server_up(asked: StudySpec, folder: Path, port: int = 0) -> Iterator[tuple[Any, Any]]:
    """Somebody's server by its endpoint and site, under a lock of its own."""
    place = asked.site.model_copy(update={"port": rooms.port(port)})
    with contextlib.ExitStack() as opened:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BENCHBOOK_LOCK", f"{folder}.lock")
            there = sites.open_site(asked.model_copy(update={"site": place}), folder)
            site = opened.enter_context(there)
        yield site.up("direct"), site


@pytest.fixture
def theirs(their_server: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """That server, with an account and an empty schema for us."""
    endpoint, site = their_server
    allow(site)
    monkeypatch.setenv("GUEST_PASSWORD", PASSWORD)
    yield endpoint, site


def allow(site: Any) -> None:
    """Make an account and an empty schema for us."""
    account = f"CREATE OR REPLACE USER 'guest'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'"
    tell(site, account, "DROP DATABASE IF EXISTS ours", "CREATE DATABASE ours")
    tell(site, "GRANT ALL PRIVILEGES ON ours.* TO 'guest'@'127.0.0.1'")


# Few enough to load in no time, enough that two clients seldom wait for each other in a circle.
ROWS = 2000
TLS = {"ca": "cacert.pem", "cert": "server-cert.pem", "key": "server-key.pem"}


@pytest.fixture
def study(theirs: Any) -> Callable[..., StudySpec]:
    """Return a function that makes a study on that server."""
    endpoint, _ = theirs

    def make(
        arms: dict | None = None, settings: dict | None = None, threads: int = 1, **existing: Any
    ) -> StudySpec:
        account = {} if "account_file" in existing else {"user": "guest", "password_env": "GUEST_PASSWORD"}
        place = {"host": endpoint.host, "port": endpoint.port, "database": "ours"}
        return small.study(
            site={"kind": "existing", "existing": place | account | existing},
            engine={"settings": settings or {}},
            arms=arms or {"one": {}, "two": {"endpoint": {"host": "127.0.0.1", "port": endpoint.port}}},
            dataset={"tables": 1, "table_size": ROWS},
            threads=(threads,),
            plan={"seed": 3, "blocks": 1, "discard_s": 0, "run_s": 2},
        )

    return make


def measured(site: Any, into: Path) -> tuple[Any, dict[str, Any]]:
    """Make the first planned run; return what is judged of it, and its evidence."""
    planned = schedule.plan_runs("test", site.study, {})[0]
    with statement_counters.open_session(site, planned.arm) as connection:
        folder = walks.made(site, planned, [connection], into)
    return validity.judge_run(folder, LIMITS), folder.evidence()


def test_two_clients_load_one_endpoint_together(study, theirs, open_folder, tmp_path):
    with sites.open_site(
        study(arms={"pair": {"clients": 2, "options_by": "file"}, "one": {}}, threads=2), open_folder / "ours"
    ) as site:
        dataset.ensure_data(site, plan_data(site.study))
        planned = walks.planned(site.study, "pair")
        with statement_counters.open_session(site, planned.arm) as connection:
            folder = execute_run(RunContext(planned, site, planned.arm, (connection,), LIMITS), tmp_path, 1)
    judged = validity.judge_run(folder, LIMITS | {"start_spread_ms": 10_000.0})
    assert (judged.status, judged.reasons, judged.ledger) == ("valid", [], "agrees")
    each = judged.evidence.clients
    assert [one.log.header.threads for one in each] == [1, 1]
    assert judged.evidence.log.final.queries == sum(one.final.queries for one in each)
    assert folder.evidence()["start_spread_ms"] >= 0
    assert PASSWORD not in (folder.path / "client-1" / "sysbench.cnf").read_text()


def test_a_run_is_valid_to_the_query_and_the_server_is_left_as_it_was(study, theirs, open_folder, tmp_path):
    with sites.open_site(study(), open_folder / "ours") as site:
        assert site.able == ["one", "two"]
        assert site.server_of("one") == site.server_of("two"), "two names of one server"
        found = dataset.ensure_data(site, plan_data(site.study))
        assert found["rows"] == {"sbtest1": ROWS}
        judged, evidence = measured(site, tmp_path / "raw")
        assert (judged.status, judged.reasons, judged.ledger) == ("valid", [], "agrees")
        assert "the server's log" in evidence["arrangement"]["not_seen"]
        facts = site.facts("one")
        assert facts["engine"]["name"] == "mariadb" and facts["rights"]["sessions"].startswith("our own only")
        admin = site.admin("one")
        assert PASSWORD not in str(facts) + str(evidence) + repr(admin) + str(admin.url)
        # Rows were changed: the same data is there again because it is loaded again.
        again = dataset.ensure_data(site, plan_data(site.study), found)
        assert again["fingerprint"] == found["fingerprint"] and "loaded again" in " ".join(again["events"])
    with theirs[1].admin().connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1, "their server runs on"


def test_a_schema_with_tables_of_somebody_else_is_never_touched(study, theirs, open_folder):
    tell(theirs[1], "CREATE TABLE ours.sbtest1 (precious INT)")
    with sites.open_site(study(), open_folder / "ours") as site:
        assert "such as sbtest1" in site.missing("one")
        with pytest.raises(SiteError, match="name an empty schema"):
            site.up("one")
    with theirs[1].admin().connect() as connection:
        assert connection.exec_driver_sql("DESCRIBE ours.sbtest1").first()[0] == "precious"


def test_studies_of_one_clone_use_a_schema_one_after_the_other(study, open_folder):
    for name in ("ours", "other"):
        with sites.open_site(study(), open_folder / name) as site:
            assert site.missing("one") is None
            site.up("one")


def test_the_schema_of_another_clone_is_theirs_until_what_they_made_is_dropped(study, theirs, open_folder):
    with sites.open_site(study(), open_folder / "theirs" / "lab") as site:
        site.up("one")
    tell(theirs[1], "CREATE TABLE ours.sbtest1 (id INT)")
    with sites.open_site(study(), open_folder / "mine" / "lab") as site:
        why = site.missing("one")
        assert why.startswith("schema ours is used ")
        said = "DROP TABLE `ours`.benchbook_lab, `ours`.sbtest1;"
        assert said in why
        tell(theirs[1], said)
        assert site.missing("one") is None, "what is advised is enough"


@pytest.fixture
def nice() -> Iterator[None]:
    """An ordinary nice value for this process, which holds the server that stands for somebody's."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    yield
    os.setpriority(os.PRIO_PROCESS, 0, before)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to go before others")
@pytest.mark.parametrize(("priority", "change"), [("raised", -10), ("ordinary", 0)])
def test_our_clients_go_before_others_only_where_the_study_lets_them(
    study, open_folder, tmp_path, nice, priority: str, change: int
):
    """Clients of a server that others run are ours, and so is the clock that stops them."""
    asked = study()
    asked = asked.model_copy(update={"site": asked.site.model_copy(update={"priority": priority})})
    with sites.open_site(asked, open_folder / "ours") as site:
        client = site.client(Start(["sleep", "60"], tmp_path / "out", tmp_path / "err"))
        assert psutil.Process(client.pid).nice() == change
        # Written down and held from run to run, of all threads of this process.
        assert str(change) in site.identity("one")["place"]["nice"].split(", ")
        assert site.server_of("one") == site.server_of("two"), "a place is no server's"
        site.up("one")
        assert site.facts("one")["site"]["priority"] == priority
    assert os.getpriority(os.PRIO_PROCESS, 0) == 0


def test_an_index_that_is_gone_is_named_with_what_brings_it_back(study, theirs, open_folder):
    with theirs[1].admin().connect() as connection:
        connection.exec_driver_sql("USE ours")
        connection.exec_driver_sql("CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT, c INT, pad INT)")
        with pytest.raises(BenchbookError, match=r"^sbtest1 .*: .*1176"):
            dataset.prewarm_tables(connection, 1)


def test_a_wrong_password_names_account_and_error_but_not_the_password(study, open_folder, monkeypatch):
    monkeypatch.setenv("GUEST_PASSWORD", "not-it")
    with sites.open_site(study(), open_folder / "ours") as site:
        why = site.missing("one")
        assert "does not let guest in" in why and "1045" in why and "not-it" not in why
        assert why.endswith("; see site.existing, arms.one.endpoint")
    monkeypatch.delenv("GUEST_PASSWORD")
    with pytest.raises(SiteError, match=r"GUEST_PASSWORD: this .*`export "):
        sites.open_site(study(), open_folder / "ours").__enter__()


def test_plan_reads_the_buffer_pools_before_anything_is_loaded(study, theirs, monkeypatch):
    (data,) = re.findall("^  data .*\n", ExistingSite.needs("own", study()) + "\n", re.MULTILINE)
    assert_golden("external/needs.txt", data)
    monkeypatch.setenv("GUEST_PASSWORD", "not-it")
    assert "not read" in (wrong := ExistingSite.needs("own", study())) and "not-it" not in wrong
    monkeypatch.delenv("GUEST_PASSWORD")
    assert "data " not in ExistingSite.needs("own", study())


def test_a_limit_and_another_measurement_refuse_before_a_row_is_loaded(study, theirs, open_folder, tmp_path):
    """They came after loading and pilots, a minute later."""
    limits = load.load_params("limits").limits.model_dump()
    asked = (study(threads=16), tmp_path / "raw", open_folder / "ours", limits)
    with theirs[1].admin().connect() as connection:
        was = connection.exec_driver_sql("SELECT @@max_connections").scalar_one()
    tell(theirs[1], "SET GLOBAL max_connections = 20")
    try:
        with pytest.raises(BenchbookError, match=r"one: max_connections .* 20, 16 .* 26; "):
            preflight.refuse_before_loading(*asked)
    finally:
        tell(theirs[1], f"SET GLOBAL max_connections = {was}")
    preflight.refuse_before_loading(*asked)
    with sites.open_site(study(), open_folder / "elsewhere"), pytest.raises(LockHeld, match="being measured"):
        preflight.refuse_before_loading(*asked)
    with theirs[1].admin().connect() as connection:
        assert connection.exec_driver_sql("SHOW TABLES FROM ours").all() == []


def test_an_account_file_that_others_may_read_is_refused(study, open_folder, tmp_path):
    path = labs.write_private(tmp_path / "a.cnf", f'mysql-user="guest"\nmysql-password="{PASSWORD}"\n')
    with sites.open_site(study(account_file=str(path)), open_folder / "ours") as site:
        assert site.missing("one") is None
    path.chmod(0o644)
    with pytest.raises(SiteError, match=f"`chmod 600 {path}`"):
        sites.open_site(study(account_file=str(path)), open_folder / "ours").__enter__()


def test_settings_are_read_and_told_apart_since_they_can_not_be_made(study, open_folder):
    with sites.open_site(study(settings={"max_connections": 77}), open_folder / "ours") as site:
        site.up("one")
        with pytest.raises(SettingsDiffer, match="max_connections: asked 77"):
            site.facts("one")


def test_a_shared_server_gives_no_ledger_and_says_so(study, theirs, open_folder, tmp_path):
    """Somebody else is connected all the while and asks queries: that is what shared means."""
    with (
        theirs[1].admin().connect() as somebody,
        sites.open_site(study(is_shared=True), open_folder / "ours") as site,
    ):
        dataset.ensure_data(site, plan_data(site.study))
        somebody.exec_driver_sql("SELECT 1")
        judged, _ = measured(site, tmp_path / "raw")
    assert (judged.status, judged.reasons) == ("valid", [])
    assert judged.ledger.startswith("ledger not available: others ")


def judged_of(site: Any, into: Path, connection: Any, number: int) -> validity.Judgement:
    planned = schedule.plan_runs("test", site.study, {})[number]
    return validity.judge_run(walks.made(site, planned, [connection], into), LIMITS)


def test_a_setting_that_its_owner_changes_between_blocks_is_named(study, theirs, open_folder, tmp_path):
    """The server is not ours to start again, so it is held to what it was when the walk began."""
    with sites.open_site(study(), open_folder / "ours") as site:
        dataset.ensure_data(site, plan_data(site.study))
        with servers.open_sessions(site, site.study, site.able) as connections:
            assert judged_of(site, tmp_path, connections["one"][0], 0).status == "valid"
        tell(theirs[1], "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
        try:
            with servers.open_sessions(site, site.study, site.able) as connections:
                judged = judged_of(site, tmp_path, connections["two"][0], 1)
        finally:
            tell(theirs[1], "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
    said = "server variable innodb_flush_log_at_trx_commit was 2, is 0 between the runs"
    assert judged.status == "invalid" and said in "; ".join(judged.reasons)


def test_rows_that_somebody_changes_between_runs_are_noticed_on_a_shared_server(
    study, theirs, open_folder, tmp_path
):
    with sites.open_site(study(is_shared=True), open_folder / "ours") as site:
        dataset.ensure_data(site, plan_data(site.study))
        with servers.open_sessions(site, site.study, site.able) as connections:
            assert judged_of(site, tmp_path, connections["one"][0], 0).status == "valid"
            # The time of a table's last change has seconds.
            time.sleep(1.1)
            tell(theirs[1], "UPDATE ours.sbtest1 SET k = 1")
            judged = judged_of(site, tmp_path, connections["two"][0], 1)
    assert judged.status == "invalid"
    assert "sbtest1 was written to" in "; ".join(judged.reasons)


def test_encryption_is_what_was_asked_and_the_server_agrees(
    study, certificates, theirs, open_folder, tmp_path
):
    secure = study(tls="required", tls_folder=str(certificates), threads=2)
    tell(theirs[1], "ALTER USER 'guest'@'127.0.0.1' REQUIRE SSL")
    with sites.open_site(secure, open_folder / "ours") as site:
        dataset.ensure_data(site, plan_data(site.study))
        judged, evidence = measured(site, tmp_path / "raw")
    assert (judged.status, judged.reasons) == ("valid", [])
    assert evidence["tls"]["asked"] == "required" and evidence["tls"]["cipher"]
    books = evidence["ledger"]
    assert books["after"]["Ssl_accepts"] - books["before"]["Ssl_accepts"] == 2, "one for each thread"
    with sites.open_site(study(), open_folder / "ours") as site:
        assert "1045" in site.missing("one"), "in plain text nobody is let in"


@pytest.fixture
def other(open_folder: Path, make_study: Callable[..., StudySpec], theirs: Any) -> Iterator[dict[str, Any]]:
    """An arm on a second server of somebody's, with the same account and schema."""
    asked = make_study({"innodb_flush_log_at_trx_commit": 2})
    with server_up(asked, open_folder / "second", 80) as (endpoint, site):
        allow(site)
        yield {"endpoint": {"host": endpoint.host, "port": endpoint.port}}


def test_two_servers_are_loaded_and_proven_each(study, theirs, other, open_folder, tmp_path):
    again = {"endpoint": {"host": "127.0.0.1", "port": theirs[0].port}}
    asked = study(arms={"one": {}, "two": other, "same": again})
    with sites.open_site(asked, open_folder / "both") as site:
        assert site.data_groups() == [["one", "same"], ["two"]]
        tell(site, "ALTER DATABASE ours CHARACTER SET latin1", arm="two")
        state = dataset.load_data(site, plan_data(asked))
        # The same rows in another character set, which costs other work: that is said first.
        assert state["loads"]["two"]["text"] == dict(zip(TEXT, ("latin1", "latin1_swedish_ci"), strict=True))
        facts = {"arms": {arm: site.facts(arm) for arm in asked.arms}}
        seen = SimpleNamespace(facts=facts, dataset=state, named={}, runs=pd.DataFrame())
        assert setup_section.describe_setup(seen)[0].startswith("not alike: character set ")
        (table,) = setup_section.compare_engines(seen)
        utf8 = "columns = utf8mb4"
        assert table.rows[0] == ["character set", "no", utf8, "columns = latin1", utf8]
        # Drawn from one seed, and loaded into each.
        assert state["rows"] == {"sbtest1": ROWS} and state["checksums"]
        for arm in ("one", "two"):
            with statement_counters.open_session(site, arm) as connection:
                assert dataset.describe_data(connection, plan_data(asked))["checksums"] == state["checksums"]
                planned = walks.planned(asked, arm)
                folder = walks.made(site, planned, [connection], tmp_path / arm)
            walks.must_agree(folder)
        tell(site, "DROP TABLE ours.sbtest1", arm="two")
        mended = dataset.ensure_data(site, plan_data(asked), state)
        assert any(event.startswith("sbtest1 is missing; ") for event in mended["events"])
        assert mended["fingerprint"] == state["fingerprint"]


def test_what_was_loaded_is_taken_away_by_one_command_and_nothing_else(
    study, theirs, other, open_folder, tmp_path, monkeypatch, capsys
):
    asked = study(arms={"one": {}, "two": other})
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(open_folder / "labs"))
    monkeypatch.setattr(site_commands.load, "load_study", lambda _: asked)
    with sites.open_site(asked, open_folder / "labs" / "mine") as site:
        dataset.load_data(site, plan_data(asked))
    tell(theirs[1], "CREATE TABLE ours.theirs (precious INT)")
    assert cli.main(["down", "--loaded", "mine"]) == 0
    first = capsys.readouterr().out
    with theirs[1].admin().connect() as connection:
        assert connection.exec_driver_sql("SHOW TABLES IN ours").scalars().all() == ["theirs"]
    # What was not loaded by us is not taken for ours the second time either.
    assert cli.main(["down", "--loaded", "mine"]) == 0
    said = f"{first}\n{capsys.readouterr().out}".replace(f":{theirs[0].port}:", ":ONE:")
    assert_golden("external/down.txt", said.replace(f":{other['endpoint']['port']}:", ":TWO:"))


@pytest.fixture
def pgsql(open_folder: Path, make_study: Callable[..., StudySpec], theirs: Any) -> Iterator[Any]:
    """An arm on somebody's PostgreSQL, with the same account; its one database is empty."""
    asked = make_study({"synchronous_commit": False})
    engine = asked.engine.model_copy(update={"name": "postgresql", "settings": {"fsync": "off"}})
    second = asked.model_copy(update={"engine": engine})
    with server_up(second, open_folder / "third", 84) as (endpoint, site):
        with site.admin().connect() as connection:
            there = "SELECT count(*) FROM pg_roles WHERE rolname = 'guest'"
            is_there = connection.exec_driver_sql(there).scalar_one()
        tell(site, *(() if is_there else ("CREATE ROLE guest LOGIN",)), *PGSQL_STATEMENTS)
        tell(theirs[1], "GRANT ALL PRIVILEGES ON sbtest.* TO 'guest'@'127.0.0.1'")
        where = {"host": endpoint.host, "port": endpoint.port}
        yield {"endpoint": where, "engine": {"name": "postgresql"}}


PGSQL_STATEMENTS = (
    "DROP OWNED BY guest",
    f"ALTER ROLE guest PASSWORD '{PASSWORD}'",
    "GRANT CREATE ON SCHEMA public TO guest",
    "GRANT pg_read_all_stats TO guest",
)


def test_a_mariadb_and_a_postgresql_of_others_are_one_study(study, theirs, pgsql, open_folder, tmp_path):
    asked = study(arms={"one": {}, "two": pgsql}, database="sbtest")
    with sites.open_site(asked, open_folder / "engines") as site:
        assert site.able == ["one", "two"]
        state = dataset.load_data(site, plan_data(asked))
        assert state["rows"] == {"sbtest1": ROWS} and state["indexes"] == {"sbtest1": ["id unique", "k"]}
        text = [tuple(state["loads"][arm]["text"][about] for about in TEXT) for arm in ("one", "two")]
        assert text == [("utf8mb4", "utf8mb4_general_ci"), ("UTF8", "C")]
        for arm in ("one", "two"):
            with servers.open_sessions(site, asked, [arm]) as connections:
                dataset.prewarm_all(plan_data(asked), connections)
                planned = walks.planned(asked, arm)
                folder = walks.made(site, planned, connections[arm], tmp_path / arm)
            walks.must_agree(folder)
        facts = site.facts("two")
        assert facts["engine"]["name"] == "postgresql" and facts["rights"]["sessions"] == "all"
        # What compares with another engine is told though nobody may ask for it there.
        assert facts["engine"]["unstated"]["fsync"] == "off"
        assert site.facts("one")["engine"]["unstated"]["innodb_flush_log_at_trx_commit"] == "2"
        assert PASSWORD not in str(facts) + str(folder.evidence())
        removed = [line.partition(": ")[2] for line in site.remove()]
        assert_golden("external/removed.txt", "\n".join([*removed, ""]))


def test_a_query_of_somebody_else_on_their_postgresql_makes_a_run_invalid(
    study, pgsql, open_folder, tmp_path
):
    asked = study(arms={"two": pgsql, "same": pgsql | {"clients": 2}}, threads=2, database="sbtest")
    with sites.open_site(asked, open_folder / "engines") as site:
        dataset.load_data(site, plan_data(asked))
        with (
            servers.open_sessions(site, asked, ["two"]) as connections,
            site.admin("two").connect() as somebody,
        ):
            planned = walks.planned(asked, "two")
            theirs = somebody.connection.driver_connection
            began = threading.Timer(1.0, lambda: theirs.execute("SELECT count(*) FROM sbtest1").fetchone())
            began.start()
            folder = execute_run(RunContext(planned, site, "two", connections["two"], LIMITS), tmp_path, 1)
            began.join()
    judged = validity.judge_run(folder, LIMITS)
    assert judged.status == "invalid", "a session beside ours, and a statement that sysbench did not send"


def test_an_engine_that_is_not_the_one_of_the_study_and_an_endpoint_without_one_are_named(study, open_folder):
    another, old = {"engine": {"name": "mysql"}}, {"engine": {"version": "5.5"}}
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        silent = {"host": "127.0.0.1", "port": unheard.getsockname()[1]}
        asked = study(arms={"one": {}, "two": another, "old": old, "silent": {"endpoint": silent}})
        with sites.open_site(asked, open_folder / "ours") as site:
            assert site.able == ["one"]
            assert f"127.0.0.1:{silent['port']}" in site.missing("silent")
            engine = r"is mariadb \S+, not mysql; write that as the arm's engine"
            assert re.search(engine, site.missing("two"))
            assert re.search(r"is mariadb \S+, not mariadb 5.5", site.missing("old"))


@pytest.mark.alone
def test_two_servers_that_others_run_take_turns(study, theirs, other, open_folder, tmp_path):
    asked = study(arms={"one": {}, "two": other})
    plan = asked.plan.model_copy(update={"discard_s": 0.3, "run_s": 1})
    workloads = {"oltp_point_select": asked.workloads["oltp_read_write"]}
    reads = asked.model_copy(update={"workloads": workloads, "plan": plan})
    with sites.open_site(reads, open_folder / "both") as site:
        dataset.load_data(site, plan_data(reads))
        store = walks.Store(site, reads, tmp_path)
        store.walk_undisturbed()
    assert store.wrong() == {}
    each = [folder.evidence()["turns"] for folder in store.kept()]
    # Nobody stops a server of theirs. 1 s of each arm are 50 turns of 20 ms; whole seconds leave some more.
    assert [one["stopped"] for one in each] == [["client"]] * 2
    assert each[0]["count"] == each[1]["count"] >= 50
