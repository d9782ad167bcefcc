"""MariaDB as the OS package ships it, in a lab of its own."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core import files
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import mariadb_accounts as accounts
from benchbook.sites import mariadb_install as install
from benchbook.sites import process, settings, sql
from benchbook.sites.supervised import Supervised, tail

CRASH = re.compile(
    r"\[ERROR\]|got signal|Assertion|Segmentation|[Cc]orrupt|Out of memory|No space left", re.ASCII
)


class MariaDB(Supervised):
    """One server at one address, known by its pid file, its folder and a word drawn at each start.

    `keep` are file descriptors the server inherits. Nothing is started until `ensure`.
    """

    start_s = 180.0
    stop_s = 120.0

    def __init__(self, lab: labs.Lab, engine: Any, place: labs.Place, keep: tuple[int, ...] = ()) -> None:
        super().__init__(lab, place, keep, labs.service_user("mysql"))
        self.engine = engine
        self._admin: sqlalchemy.Engine | None = None
        self._opened = 0
        self.binary = install.find_binary(engine.binary)
        self.version = install.binary_version(self.binary)
        if not sql.is_version(self.version, engine.version):
            raise SiteError(
                f"engine.version: asked {engine.version}, {self.binary} is {self.version}; "
                f"install that version (`{install.INSTALL}`), or name its program in engine.binary"
            )
        forbidden = settings.reserved(engine.settings)
        if forbidden:
            raise SiteError(
                f"engine.settings.{forbidden[0]}: set by the lab itself; remove it from the study"
            )
        self.asked = settings.complete(engine.settings)
        self.data = self.folder / "data"
        self.socket = lab.socket(self.folder / "m.sock")
        self.config = self.folder / "my.cnf"
        self.leftovers = (self.socket, self.folder / "m.pid")

    @property
    def made_with(self) -> dict[str, Any]:
        """What a data folder depends on: another value needs another folder."""
        fixed = {key: settings.text(self.asked[key]) for key in settings.AT_CREATION if key in self.asked}
        return {"engine": "mariadb", "version": self.version, "settings": fixed}

    def ensure(self) -> None:
        """Start the server unless it runs and answers, making its data at need; prove that it is ours.

        To see that it answers costs one connection.
        """
        if self.is_up and self._answers():
            return
        self.stop()
        self._must_have_ports(self.place.port)
        given, place = self.engine.binary, self.place
        install.make_data(
            self.lab, self.binary, given, self.made_with, self.user, place.name, self.keep, place.prepared
        )
        word = uuid.uuid4().hex
        self._write_config()
        begun = time.monotonic()
        argv = [str(self.binary), f"--defaults-file={self.config}", f"--report-host={word}"]
        self._begin(argv, self._answers)
        try:
            child = self.running()
            accounts.prove(self._connect, self.lab, child.pid, self.data, self.place, word, begun)
        except BaseException:
            self.stop()
            raise

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account over the socket, one new connection each time.

        The server knows it by the user of this process (unix_socket), so there is no password.
        """
        if self._admin is None:
            self._admin = sql.engine(self._connect, lambda: self._opened)
        return self._admin

    def let_in(self, account: int) -> None:
        """Make one more of sysbench's accounts, and count statements by account from now on."""
        with self._connect() as connection, connection.cursor() as cursor:
            password = self.lab.password(account)
            accounts.let_in(cursor, labs.user_of(account), password, self.place.peers)
            cursor.execute("SET GLOBAL userstat = 1")

    def identity(self) -> dict[str, Any]:
        """Return what tells this very server from any other; costs one connection."""
        child = self.running()
        said = sql.identity(self.admin(), f"the server (its log: {self.log})")
        return {"pid": child.pid, "started": child.started} | said | {"config_hash": self.config_hash}

    def facts(self) -> dict[str, Any]:
        """Return what the server says it is; SettingsDiffer if it did not take what was asked."""
        self.running()
        with self.admin().connect() as connection:
            variables = dict(connection.exec_driver_sql("SHOW GLOBAL VARIABLES").all())
        return settings.taken(self.asked, self.engine.settings, variables, self.folder) | {
            "binary": str(self.binary),
            "binary_sha256": files.sha256(self.binary),
            "config_hash": self.config_hash,
        }

    def log_errors(self, mark: int) -> list[str]:
        """Return the lines since a place that tell of an error or a crash."""
        return [line for line in self.log_since(mark) if CRASH.search(line)]

    def running(self) -> process.Child:
        """Return its process; SiteError with what its log says last if it has ended."""
        if not self.is_up:
            last = "; ".join(self.log_errors(0)[-2:])
            raise SiteError(f"the server does not run{': ' + last if last else ''}; call site.up(arm) first")
        return super().running()

    def _connect(self, read_timeout: float | None = None) -> pymysql.Connection:
        self._opened += 1
        return pymysql.connect(
            unix_socket=str(self.socket),
            user=install.admin_name(),
            ssl_disabled=True,
            connect_timeout=10,
            read_timeout=read_timeout,
            autocommit=True,
        )

    def _answers(self) -> bool:
        """Say whether the server takes a connection now; one that is crashing or stopped does not."""
        try:
            self._connect(read_timeout=5).close()
        except (pymysql.err.OperationalError, OSError):
            return False
        return True

    def _write_config(self) -> None:
        places = {
            "port": self.place.port,
            "bind_address": self.place.address,
            "socket": self.socket,
            "datadir": self.data,
            "tmpdir": self.folder / "tmp",
            "pid_file": self.folder / "m.pid",
            "secure_file_priv": self.folder / "tmp",
        }
        if self.engine.binary is not None:
            places["basedir"] = self.binary.parent.parent
        lines = [f"{key}={settings.text(value)}" for key, value in sorted(self.asked.items())]
        # The last word counts.
        lines += [f"{key}={value}" for key, value in places.items()]
        labs.write_private(self.config, "[mariadbd]\n" + "\n".join(lines) + "\n", self.user)

    def _last_words(self, mark: int) -> str:
        said = "\n  ".join(self.log_errors(mark)) or tail(self.log)
        return f"{said}\n  (or check engine.settings)"
