"""PostgreSQL as the OS package ships it: a folder, port, accounts and settings of its own on its machine."""

from __future__ import annotations

import re
import signal
from pathlib import PurePosixPath
from typing import Any

import psycopg
import sqlalchemy

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import settings, sql
from benchbook.sites.engines import postgresql_accounts as accounts
from benchbook.sites.engines import postgresql_settings as server_settings
from benchbook.sites.engines.postgresql_dialect import ADMIN
from benchbook.sites.engines.server import Server
from benchbook.sites.machine.contract import Machine
from benchbook.sites.traits.postgresql import TRAITS

CRASH = re.compile(
    r"\b(PANIC|FATAL):|was terminated by signal|terminating any other active|"
    r"not properly shut down|[Cc]orrupt|could not (write|extend|fsync)|No space left|out of memory",
    re.ASCII,
)
# What a session of ours that comes too early, or a client that goes away, leaves in the log.
HARMLESS = re.compile(
    r"the database system is (starting up|shutting down)|connection to client lost", re.ASCII
)
INSTALL_S = 180.0
HBA = "hba.conf"
STARTED = """
SELECT current_setting('data_directory'), current_setting('port')::int, current_setting('listen_addresses'),
       current_setting('cluster_name'), extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())"""


class PostgreSQL(Server):
    """One server, known by its pid file, its folder and a word drawn at each start."""

    traits = TRAITS
    lists_settings = ("--describe-config",)
    version_words = accounts.VERSION
    config_name, config_files = "postgresql.conf", (HBA,)
    own_options = frozenset({"--listen_addresses", "--port", "--cluster_name"})
    start_s = 180.0
    stop_s = 120.0
    gentle = signal.SIGINT
    has_children = True

    def __init__(self, machine: Machine, engine: Any, place: labs.Place) -> None:
        super().__init__(machine, place, machine.account(self.traits.account))
        self.engine, self.lab = engine, machine.lab
        self.binary = self._find()
        self.version = accounts.said_version(self.binary, machine.says)
        remedy = f"install that version (`{accounts.INSTALL}-{engine.version}`), or name its program"
        self._must_be(engine.version, remedy, self.version)
        settings.must_be_free(engine)
        self.asked = server_settings.complete(engine.settings)
        # Sockets are named after the port.
        name = f".s.PGSQL.{place.port}"
        self.socket = f"{self.role}/{name}"
        machine.socket(self.socket)
        self.leftovers, self._opened = (name, f"{name}.lock"), 0
        self._admin: sqlalchemy.Engine | None = None

    @property
    def made_with(self) -> dict[str, Any]:
        return {"engine": self.traits.name, "version": self.version, "settings": {}}

    def _command(self) -> list[str]:
        here = {"listen_addresses": self.place.address, "port": self.place.port, "cluster_name": self.word}
        places = [f"--{key}={value}" for key, value in here.items()]
        return [self.binary, f"--config-file={self.config}", *places]

    def _is_ready_now(self) -> bool:
        # Before there is a database to measure.
        return self._answers("postgres")

    def _admit(self, started_s: float) -> None:
        try:
            accounts.set_up(lambda name: accounts.connect(self.machine, self.socket, name), self._password())
            self._prove(started_s)
        except psycopg.Error as error:
            raise SiteError(
                f"the server can't be set up: {' '.join(str(error).split())}; see {self.log}"
            ) from None

    def create(self) -> None:
        """Only the socket is open before the first account has its password."""
        auth = ["--auth-local=peer", "--auth-host=reject", f"--username={ADMIN}"]
        program = PurePosixPath(self.binary).with_name("initdb")
        argv = [str(program), f"--pgdata={self.folder}/new", *auth, "--no-sync"]
        argv += ["--no-locale", "--encoding=UTF8"]
        self.machine.work(argv, "PostgreSQL's data folder could not be made", INSTALL_S, self.user)

    def admin(self) -> sqlalchemy.Engine:
        """The server knows it by our user there (peer), so there is no password."""
        if self._admin is None:
            self._admin = accounts.engine(self._connect, lambda: self._opened)
        return self._admin

    def seen_from(self, machine: Machine, address: str, port: int) -> bool:
        try:
            return accounts.word_seen(machine, address, port) == self.word
        except psycopg.Error as error:
            raise self._unseen(machine, address, port, " ".join(str(error).split())) from None

    def identity(self) -> dict[str, Any]:
        return self.seen() | accounts.identity(self._connect, f"{self._named} (its log: {self.log})")

    def facts(self) -> dict[str, Any]:
        self.running()
        asked = (self.asked, self.engine.settings)
        said = server_settings.facts(self.admin(), self.version, *asked, self.folder)
        return said | self.program_facts(self.binary)

    def log_errors(self, mark: int) -> list[str]:
        return [line for line in self.log_since(mark) if CRASH.search(line) and not HARMLESS.search(line)]

    def _find(self) -> str:
        """Return its program: the one that is named, else the newest of the version asked for."""
        if (found := self._named_program(accounts.PROGRAM)) is not None:
            return found
        there = self.machine.programs(accounts.PROGRAM)
        if not there:
            raise SiteError(f"{accounts.PROGRAM} is not installed{self._where}; run `{accounts.INSTALL}`")
        versions = {one: accounts.said_version(one, self.machine.says) for one in there}
        return next((one for one in there if sql.is_version(versions[one], self.engine.version)), there[0])

    def _password(self) -> str:
        return self.lab.password(accounts.DRIVER)

    def _connect(self) -> psycopg.Connection:
        self._opened += 1
        return accounts.connect(self.machine, self.socket)

    def _answers(self, database: str = labs.SCHEMA) -> bool:
        try:
            self._opened += database == labs.SCHEMA
            accounts.connect(self.machine, self.socket, database).close()
        except psycopg.Error:
            return False
        return True

    def _prove(self, started_s: float) -> None:
        """Check that socket and port lead to the process just started, by its `cluster_name` too."""
        place = self.place
        with accounts.connect(self.machine, self.socket) as connection:
            row = connection.execute(STARTED).fetchone()
        assert row is not None
        folder, port, address, word, uptime_s = row
        first = (self.machine.read(f"{self.role}/data/postmaster.pid") or "0").split("\n", 1)[0]
        seen = {"pid": int(first), "data folder": folder, "port": port, "address": address}
        wanted = {"pid": self.running().pid, "data folder": str(self.data)}
        wanted |= {"port": place.port, "address": place.address}
        self._must_be_the_one(seen, wanted, word, float(uptime_s), started_s)

    def _write_config(self) -> None:
        text = accounts.access(self.place.peers(), self.machine.user)
        for name, lines in text.items():
            self.machine.write(f"{self.role}/{name}.conf", lines, self.user)
        places: dict[str, object] = {
            **{f"{name}_file": self.folder / f"{name}.conf" for name in text},
            "data_directory": self.data,
            "unix_socket_directories": self.folder,
            "unix_socket_permissions": "0700",
            "logging_collector": "off",
        }
        self._configure(server_settings.written(self.asked, places))

    def _telling(self, mark: int) -> list[str]:
        # What is wrong with a setting stands in the lines before the last, which tells of an error.
        return self.log_since(mark)
