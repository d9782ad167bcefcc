"""PostgreSQL as the OS package ships it, in a lab of its own: its own folder, port, accounts and settings."""

from __future__ import annotations

import re
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy

from benchbook.core import files, reserved
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import prepared
from benchbook.sites.abilities import install_command
from benchbook.sites.machine.here import Here
from benchbook.sites.postgresql import config, data
from benchbook.sites.postgresql.words import ADMIN, WORDS
from benchbook.sites.supervised import LAST_LINES, Supervised

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
IDENTITY = """
SELECT system_identifier, current_setting('server_version'), current_setting('data_directory'),
       current_setting('port')::int, pg_postmaster_start_time()::text, current_setting('cluster_name')
FROM pg_control_system()"""


class PostgreSQL(Supervised):
    """One server at one address, known by its pid file, its folder and a word drawn at each start.

    Nothing is started until `ensure`.
    """

    config_name = "postgresql.conf"
    start_s = 180.0
    stop_s = 120.0
    gentle = signal.SIGINT
    has_children = True

    def __init__(self, machine: Here, engine: Any, place: labs.Place) -> None:
        super().__init__(machine, place, machine.account("postgres"))
        self.engine, self.lab = engine, machine.lab
        self.binary = data.find_binary(engine.binary, engine.version)
        self.version = data.said_version(str(self.binary), machine.says)
        forbidden = reserved.postgresql(engine.settings)
        if forbidden:
            raise SiteError(
                f"engine.settings.{forbidden[0]}: set by the lab itself; remove it from the study"
            )
        self.asked = config.complete(engine.settings)
        self.data = Path(self.folder) / "data"
        # Sockets are named after the port.
        name = f".s.PGSQL.{place.port}"
        self.socket = machine.socket(f"{self.role}/{name}")
        self.leftovers = (name, f"{name}.lock")
        self._admin: sqlalchemy.Engine | None = None
        self._opened = 0

    @staticmethod
    def obstacle(engine: Any) -> str | None:
        """Return why this machine can't make such a server, or None."""
        if engine.binary is None and not data.programs():
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
        prepared.make(self)
        word, begun = uuid.uuid4().hex, time.monotonic()
        self._write_config()
        here = {"listen_addresses": self.place.address, "port": self.place.port, "cluster_name": word}
        places = [part for key, value in here.items() for part in ("-c", f"{key}={value}")]
        self._begin([str(self.binary), f"--config-file={self.config}", *places], self._answers_to_owner)
        try:
            data.prove(self.lab, Path(self.folder), self.place, self.running().pid, self.data, word, begun)
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
        argv = [str(self.binary.with_name("initdb")), f"--pgdata={self.folder}/new", *auth, "--no-sync"]
        argv += ["--no-locale", "--encoding=UTF8"]
        self.machine.work(argv, "PostgreSQL's data folder could not be made", INSTALL_S, self.user)

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account over the socket, one new connection each time.

        The server knows it by the user of this process (peer), so there is no password. Each connection
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
            data.let_in(connection, labs.user_of(account), self.lab.password(account, data.DRIVER))

    def identity(self) -> dict[str, Any]:
        """Return what tells this very server from any other; costs one connection."""
        seen = self.seen()
        try:
            with self._connect() as connection:
                row = connection.execute(IDENTITY).fetchone()
        except psycopg.Error as error:
            raise SiteError(f"the server (its log: {self.log}) does not answer: {error}") from None
        assert row is not None
        names = ("server_uid", "version", "datadir", "port", "postmaster_started", "word")
        said = dict(zip(names, row, strict=True)) | {"server_uid": str(row[0])}
        said["version"] = str(row[1]).split(" ")[0]
        return seen | said

    def facts(self) -> dict[str, Any]:
        """Return what the server says it is; SettingsDiffer if it did not take what was asked."""
        self.running()
        with self.admin().connect() as connection:
            rows = connection.exec_driver_sql(config.QUERY).all()
            comment = str(connection.exec_driver_sql("SELECT version()").scalar_one())
        read = config.taken(self.asked, self.engine.settings, rows)
        return {
            "name": "postgresql",
            "version": self.version,
            "version_comment": comment,
            "tls": "off",
            "settings": read,
            "variables": len(rows),
            "variables_sha256": config.digest(rows, Path(self.folder)),
            "binary": str(self.binary),
            "binary_sha256": files.sha256(self.binary),
            "config_hash": self.config_hash,
        }

    def log_errors(self, mark: int) -> list[str]:
        """Return the lines since a place that tell of an error or a crash."""
        return [line for line in self.log_since(mark) if CRASH.search(line) and not HARMLESS.search(line)]

    def _connect(self) -> psycopg.Connection:
        self._opened += 1
        return data.connect(Path(self.folder), self.place.port)

    def _inform(self, _: Any, record: Any) -> None:
        record.info.update(dialect=WORDS, opened=lambda: self._opened)

    def _answers(self) -> bool:
        """Say whether the server takes a connection now; one that is crashing or stopped does not."""
        try:
            self._connect().close()
        except psycopg.Error:
            return False
        return True

    def _answers_to_owner(self) -> bool:
        """Say whether it takes a connection before there is a database to measure."""
        try:
            data.connect(Path(self.folder), self.place.port, "postgres").close()
        except psycopg.Error:
            return False
        return True

    def _write_config(self) -> None:
        text = data.access(self.place.peers(), self.machine.user)
        for name, lines in text.items():
            self.machine.write(f"{self.role}/{name}.conf", lines, self.user)
        places: dict[str, object] = {
            **{f"{name}_file": self.folder / f"{name}.conf" for name in text},
            "data_directory": self.data,
            "unix_socket_directories": self.folder,
            "unix_socket_permissions": "0700",
            "logging_collector": "off",
        }
        self._configure(config.written(self.asked, places))

    def _last_words(self, mark: int) -> str:
        # What is wrong with a setting stands in the lines before the last.
        last = "\n  ".join(self.log_since(mark)[-LAST_LINES:])
        return f"{last}\n  (or check engine.settings)"
