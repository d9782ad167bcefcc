"""PostgreSQL in a pod: its manifest, and the pod's own scripts with a real server, without a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from pydantic import ValidationError

from benchbook.core import applied
from benchbook.core.errors import SettingsDiffer, SiteError
from benchbook.core.study import Study
from benchbook.sites import lab as labs
from benchbook.sites.agent import files
from benchbook.sites.engines import postgresql_accounts as accounts
from benchbook.sites.engines import postgresql_settings as settings
from benchbook.sites.engines.postgresql_dialect import ADMIN
from benchbook.sites.kube import layout, manifests, pods
from benchbook.sites.kube.pods import ACCOUNT, CONFIG, HOME, TOOLS
from benchbook.sites.kube.postgresql import PASSWORD_FILE, PostgreSQL
from benchbook.sites.machine import prepared
from tests import rooms
from tests.sites import kubernetes_study
from tests.sites.agent.test_server import Agents

SMALL = {"shared_buffers": "32MB", "max_wal_size": "256MB"}
PASSWORD = "pa55-of-the-test"
NAMES = layout.names("benchbook", "my_study", "0123456789abcdef0123456789abcdef")
needs = pytest.mark.skipif(
    not files.programs(accounts.PROGRAM) or os.geteuid() != 0,
    reason=f"PostgreSQL is not installed ({accounts.INSTALL}), or this is not root, as in a pod",
)


def study(arms: Any = ("pod", "host", "service", "haproxy"), **settings: Any) -> Study:
    return kubernetes_study.make(arms, engine={"name": "postgresql", "settings": SMALL | settings})


def test_the_server_has_the_settings_of_the_engine_on_one_machine_and_its_own_places():
    asked = study()
    (held,) = [
        one["data"]
        for one in manifests.of_arm(asked, NAMES, layout.chains(asked)["pod"])
        if one["kind"] == "ConfigMap"
    ]
    assert set(held) == {"engine.sh", "hba.conf", "postgresql.conf"}
    written = dict(line.split("=", 1) for line in held["postgresql.conf"].splitlines())
    wanted = settings.complete(SMALL)
    assert {key: written[key] for key in wanted} == {key: f"'{value}'" for key, value in wanted.items()}
    assert written["data_directory"] == f"'{HOME}/data'" and written["hba_file"] == f"'{CONFIG}/hba.conf'"


def test_a_setting_of_the_site_is_no_study_s_to_make():
    with pytest.raises(ValidationError, match="not a study's to set"):
        study(hba_file="/tmp/mine")


def test_a_pooler_is_not_made_in_a_cluster():
    with pytest.raises(ValidationError, match=r"arms\.b\.access: pgbouncer: not supported with site.kind: k"):
        study({"a": {"network": "pod"}, "b": {"network": "pod", "access": "pgbouncer"}})


def test_the_administrator_comes_from_the_pod_alone_and_nobody_without_a_password():
    rules = PostgreSQL.files(study().engine, 5432)["hba.conf"].splitlines()
    assert rules[0] == f"host all {ADMIN} 127.0.0.1/32 scram-sha-256"
    assert rules[1:3] == [f"host all {ADMIN} 0.0.0.0/0 reject", f"local all {ADMIN} reject"]
    assert all(rule.split()[-1] in ("scram-sha-256", "reject") for rule in rules)
    assert {rule.split()[1] for rule in rules[3:]} == {labs.SCHEMA}


def test_a_server_s_pod_has_the_administrator_s_password_as_a_file_and_no_other():
    held = PostgreSQL.secret(PASSWORD, "other")
    assert held == {PASSWORD_FILE: "other"}
    shared = manifests.of_study(NAMES, {"server-accounts": held})
    everything = [*shared, *manifests.of_arm(study(), NAMES, layout.chains(study())["pod"])]
    text = manifests.text(everything)
    assert shared[-1]["data"][PASSWORD_FILE] not in text and "left out here" in text
    assert f"--pwfile={ACCOUNT}/{PASSWORD_FILE}" in text


def test_a_client_in_the_server_s_container_takes_the_socket_that_is_named_after_the_port():
    assert pods.of_engine("postgresql").socket(5433) == Path(f"{pods.OWN}/.s.PGSQL.5433")
    assert pods.of_engine("mariadb").socket(5433) == Path(f"{pods.OWN}/m.sock")


class Pod:
    """The one pod of a cluster: this machine, with the places of a pod in a folder of the test's."""

    def __init__(self, root: Path) -> None:
        self.places = {
            HOME: root / "mine",
            CONFIG: root / "config",
            ACCOUNT: root / "account",
            TOOLS: root / "t",
        }
        for folder in self.places.values():
            folder.mkdir()

    def moved(self, text: str) -> str:
        for place, folder in self.places.items():
            text = text.replace(place, str(folder))
        return text

    def must(self, namespace: str, pod: str, argv: Sequence[str]) -> str:
        done = subprocess.run([self.moved(word) for word in argv], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise SiteError(f"{pod}: {done.stderr}")
        return done.stdout.strip()


@pytest.fixture
def server() -> Iterator[PostgreSQL]:
    """A server as a pod runs it; not started yet."""
    root = Path(tempfile.mkdtemp(prefix="bbpg-"))
    # The server's own user must get to its accounts.
    root.chmod(0o755)
    pod, asked = Pod(root), study()
    part = replace(layout.chains(asked)["pod"].server, port=rooms.port(330))
    lab = labs.open_lab(root / "lab")
    ground = SimpleNamespace(study=asked, cluster=pod, namespace="n", here=layout.asked(asked), lab=lab)
    ground.admin_password = lambda: PASSWORD
    agents = Agents(root)
    agents.serve()
    closing = SimpleNamespace(append=lambda stream: agents.ok("close", stream=stream))
    host = SimpleNamespace(call=agents.ok_or_error, closing=closing, name="pod", folder=str(root / "mine"))
    ground.host_of = ground.host = lambda pod: host
    held = PostgreSQL.files(asked.engine, part.port)
    held |= {"server.sh": manifests.tools()["server.sh"]}
    for name, text in held.items():
        folder = pod.places[TOOLS if name == "server.sh" else CONFIG]
        (folder / name).write_text(pod.moved(text))
    (pod.places[ACCOUNT] / PASSWORD_FILE).write_text(PASSWORD)
    first = subprocess.Popen(["sh", str(pod.places[TOOLS] / "server.sh"), "run"])
    made = PostgreSQL(ground, part)
    made._found = SimpleNamespace()
    try:
        while not (pod.places[HOME] / "run").is_dir():
            time.sleep(0.05)
        yield made
    finally:
        first.terminate()
        first.wait(30)
        agents.command("end")
        shutil.rmtree(root)


def start(server: PostgreSQL, word: str) -> None:
    """Do what `ensure` does once the pod runs."""
    server._do("start", word)
    deadline = time.monotonic() + 60
    while server.said_word() != word:
        assert time.monotonic() < deadline, server._last_words(0)
        time.sleep(0.2)
    server.begun()
    server.word = word


@needs
@pytest.mark.server
def test_a_pod_s_scripts_make_start_set_up_copy_and_end_a_server(
    server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
):
    start(server, "a1")
    who = server.who()
    assert who["word"] == "a1" and who["port"] == server.part.port and who["version"].startswith("1")
    assert server.facts()["settings"]["shared_buffers"] == {
        "asked": "32MB",
        "got": "4096 x 8kB",
        "from": "study",
    }
    with server._connect() as connection:
        connection.execute("CREATE TABLE sbtest1 (id int)")
        connection.execute("INSERT INTO sbtest1 VALUES (7)")
        # A session that is open does not keep it from ending.
        assert server.stop()
    monkeypatch.setattr(server, "ensure", lambda: server.word or start(server, uuid.uuid4().hex))
    prepared.keep(server, [], "x")
    with server._connect() as connection:
        connection.execute("DROP TABLE sbtest1")
    mark = server.log_mark()
    prepared.put_back([server], "x")
    with server._connect() as connection:
        assert connection.execute("SELECT id FROM sbtest1").fetchall() == [(7,)]
    assert prepared.is_kept(server, "x") and not prepared.is_kept(server, "y")
    assert server.log_errors(mark) == []


@needs
@pytest.mark.server
def test_the_account_comes_in_by_its_password_alone_and_is_counted(server: PostgreSQL):
    start(server, "a1")
    where = {"host": "127.0.0.1", "port": server.part.port, "dbname": labs.SCHEMA, "sslmode": "disable"}
    word = server.space.lab.password(accounts.DRIVER)
    with psycopg.connect(user=labs.USER, password=word, **where) as connection:
        connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(user=labs.USER, password="wrong", **where)
    with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry|pg_hba\.conf rejects"):
        psycopg.connect(user=labs.USER, password="x", **where | {"dbname": "postgres"})
    with server.admin().connect() as connection:
        words = connection.info["dialect"]
        assert words.counters(connection)[0]["Com_select"] == 1
        assert connection.info["opened"]() == server._opened
    digest = server._do("who").split()[2]
    text = "".join(server.space.cluster.moved(one) for _, one in server.applied())
    assert digest == applied.digest(text)


@needs
@pytest.mark.server
def test_a_setting_that_was_not_taken_is_named(server: PostgreSQL):
    start(server, "a1")
    server.asked |= {"work_mem": "5MB"}
    with pytest.raises(SettingsDiffer, match="work_mem"):
        server.facts()
