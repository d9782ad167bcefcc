"""PostgreSQL as the OS package ships it: a folder, port, accounts and settings of its own on its machine."""

from __future__ import annotations

import re
import signal
import time
import uuid
from pathlib import PurePosixPath
from typing import Any

import psycopg
import sqlalchemy

from benchbook.core import reserved
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import sql
from benchbook.sites.agent import files
from benchbook.sites.engines import postgresql_accounts as accounts
from benchbook.sites.engines import postgresql_settings as server_settings
from benchbook.sites.engines.postgresql_dialect import ADMIN, WORDS
from benchbook.sites.engines.server import Server
from benchbook.sites.machine import prepared
from benchbook.sites.machine.abilities import install_command
from benchbook.sites.machine.contract import Machine

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
IDENTITY = """
SELECT system_identifier, current_setting('server_version'), current_setting('data_directory'),
       current_setting('port')::int, pg_postmaster_start_time()::text, current_setting('cluster_name')
FROM pg_control_system()"""
STARTED = """
SELECT current_setting('data_directory'), current_setting('port')::int, current_setting('listen_addresses'),
       current_setting('cluster_name'), extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())"""


class PostgreSQL(Server):
    """One server at one address, known by its pid file, its folder and a word drawn at each start.

    Nothing is started until `ensure`.
    """

    config_name, config_files = "postgresql.conf", (HBA,)
    own_options = frozenset({"--listen_addresses", "--port", "--cluster_name"})
    start_s = 180.0
    stop_s = 120.0
    gentle = signal.SIGINT
    has_children = True

    def __init__(self, machine: Machine, engine: Any, place: labs.Place) -> None:
        super().__init__(machine, place, machine.account("postgres"))
        self.engine, self.lab = engine, machine.lab
        self.binary = self._find()
        self.version = accounts.said_version(self.binary, machine.says)
        remedy = f"install that version (`{accounts.INSTALL}-{engine.version}`), or name its program"
        self._must_be(engine.version, remedy, self.version)
        if forbidden := reserved.postgresql(engine.settings):
            raise SiteError(
                f"engine.settings.{forbidden[0]}: set by the lab itself; remove it from the study"
            )
        self.asked = server_settings.complete(engine.settings)
        # Sockets are named after the port.
        name = f".s.PGSQL.{place.port}"
        self.socket = f"{self.role}/{name}"
        self.leftovers = (name, f"{name}.lock")
        self.word, self._opened = "", 0
        self._admin: sqlalchemy.Engine | None = None

    @staticmethod
    def obstacle(engine: Any) -> str | None:
        """Return why this machine can't make such a server, or None."""
        if engine.binary is None and not files.programs(accounts.PROGRAM):
            return f"postgres is not installed; `{install_command('postgres')}`"
        return None

    @property
    def made_with(self) -> dict[str, Any]:
        """What a data folder depends on: another value needs another folder."""
        return {"engine": "postgresql", "version": self.version, "settings": {}}

    def ensure(self) -> None:
        """Start the server unless it runs and answers, making its data at need; prove that it is ours.

        To see that it answers costs one connection.
        """
        if self.is_up and self._answers():
            return
        self.stop()
        self._must_have_ports(self.place.port)
        self.machine.socket(self.socket)
        prepared.make(self)
        self.word, begun_s = uuid.uuid4().hex, time.monotonic()
        self._write_config()
        here = {"listen_addresses": self.place.address, "port": self.place.port, "cluster_name": self.word}
        places = [f"--{key}={value}" for key, value in here.items()]
        argv = [self.binary, f"--config-file={self.config}", *places]
        # Before there is a database to measure.
        self._begin(argv, lambda: self._answers("postgres"))
        try:
            accounts.set_up(lambda name: accounts.connect(self.machine, self.socket, name), self._password())
            self._prove(begun_s)
        except psycopg.Error as error:
            self.stop()
            raise SiteError(
                f"the server can't be set up: {' '.join(str(error).split())}; see {self.log}"
            ) from None
        except BaseException:
            self.stop()
            raise

    def create(self) -> None:
        """Make a new data folder; only the socket is open before the first account has its password."""
        auth = ["--auth-local=peer", "--auth-host=reject", f"--username={ADMIN}"]
        program = PurePosixPath(self.binary).with_name("initdb")
        argv = [str(program), f"--pgdata={self.folder}/new", *auth, "--no-sync"]
        argv += ["--no-locale", "--encoding=UTF8"]
        self.machine.work(argv, "PostgreSQL's data folder could not be made", INSTALL_S, self.user)

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account over the socket, one new connection each time.

        The server knows it by our user there (peer), so there is no password. Each connection
        carries in `info` its words (`dialect`) and how many have been opened.
        """
        if self._admin is None:
            self._admin = sqlalchemy.create_engine(
                "postgresql+psycopg://",
                creator=self._connect,
                poolclass=sqlalchemy.NullPool,
                hide_parameters=True,
            )
            sqlalchemy.event.listen(self._admin, "connect", self._inform)
        return self._admin

    def let_in(self, account: int) -> None:
        """Make one more of sysbench's accounts; statements are counted by account always."""
        with self._connect() as connection:
            accounts.let_in(connection, labs.user_of(account), self._password(account))

    def seen_from(self, machine: Machine, address: str, port: int) -> bool:
        """Say whether the benchmark's account reaches this very server from a machine; one connection."""
        try:
            return accounts.word_seen(machine, address, port) == self.word
        except psycopg.Error as error:
            seen_by = "" if machine.host is None else f" {machine.host}"
            raise SiteError(
                f"{address}:{port} does not answer{seen_by}: {' '.join(str(error).split())}; look at the end "
                f"of {self.log}, at firewalls between hosts, and at `address` in the inventory"
            ) from None

    def identity(self) -> dict[str, Any]:
        """Return what tells this very server from any other; costs one connection."""
        seen = self.seen()
        try:
            with self._connect() as connection:
                row = connection.execute(IDENTITY).fetchone()
        except psycopg.Error as error:
            raise SiteError(f"{self._named} (its log: {self.log}) does not answer: {error}") from None
        assert row is not None
        names = ("server_uid", "version", "datadir", "port", "postmaster_started", "word")
        said = dict(zip(names, row, strict=True)) | {"server_uid": str(row[0])}
        said["version"] = str(row[1]).split(" ")[0]
        return seen | said

    def facts(self) -> dict[str, Any]:
        """Return what the server says it is; SettingsDiffer if it did not take what was asked."""
        self.running()
        with self.admin().connect() as connection:
            rows = connection.exec_driver_sql(server_settings.QUERY).all()
            comment = str(connection.exec_driver_sql("SELECT version()").scalar_one())
        read = server_settings.taken(self.asked, self.engine.settings, rows)
        return {
            "name": "postgresql",
            "version": self.version,
            "version_comment": comment,
            "tls": "off",
            "settings": read,
            "variables": len(rows),
            "variables_sha256": server_settings.digest(rows, self.folder),
            "binary": self.binary,
            "binary_sha256": self.machine.sha256(self.binary),
            "config_hash": self.config_hash,
            "started_with": self.started_with,
        }

    def log_errors(self, mark: int) -> list[str]:
        """Return the lines since a place that tell of an error or a crash."""
        return [line for line in self.log_since(mark) if CRASH.search(line) and not HARMLESS.search(line)]

    def _find(self) -> str:
        """Return its program: the one that is named, else the newest of the version asked for."""
        if (given := self.engine.binary) is not None:
            if (found := self.machine.program(given)) is None:
                raise SiteError(
                    f"engine.binary: {given}: no program there; write the path of a postgres, or null"
                )
            return found
        there = self.machine.programs(accounts.PROGRAM)
        if not there:
            raise SiteError(f"{accounts.PROGRAM} is not installed{self._where}; run `{accounts.INSTALL}`")
        versions = {one: accounts.said_version(one, self.machine.says) for one in there}
        return next((one for one in there if sql.is_version(versions[one], self.engine.version)), there[0])

    def _password(self, account: int = 0) -> str:
        return self.lab.password(account, accounts.DRIVER)

    def _connect(self) -> psycopg.Connection:
        self._opened += 1
        return accounts.connect(self.machine, self.socket)

    def _inform(self, _: Any, record: Any) -> None:
        record.info.update(dialect=WORDS, opened=lambda: self._opened)

    def _answers(self, database: str = labs.SCHEMA) -> bool:
        """Say whether the server takes a connection now; one that is crashing or stopped does not."""
        try:
            self._opened += database == labs.SCHEMA
            accounts.connect(self.machine, self.socket, database).close()
        except psycopg.Error:
            return False
        return True

    def _prove(self, begun_s: float) -> None:
        """Check that socket and port lead to the process just started; SiteError names each difference.

        Its `cluster_name` is the word drawn for this start. Clients on other hosts look by themselves
        (`seen_from`).
        """
        place = self.place
        with accounts.connect(self.machine, self.socket) as connection:
            row = connection.execute(STARTED).fetchone()
        assert row is not None
        folder, port, address, word, uptime_s = row
        first = (self.machine.read(f"{self.role}/data/postmaster.pid") or "0").split("\n", 1)[0]
        seen = {"pid": int(first), "data folder": folder, "port": port, "address": address}
        wanted = {"pid": self.running().pid, "data folder": str(self.data)}
        wanted |= {"port": place.port, "address": place.address}
        wrong = [f"its {key} is {seen[key]}, not {wanted[key]}" for key in wanted if seen[key] != wanted[key]]
        is_reached = self.machine.host is not None or self.seen_from(self.machine, place.address, place.port)
        if word != self.word or not is_reached:
            wrong.append("it was not started by us just now")
        if float(uptime_s) > time.monotonic() - begun_s + 2:
            wrong.append(f"it has been up for {float(uptime_s):.0f} s, longer than ours")
        self.must_be_ours(wrong)

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
