"""TiDB as one server with its embedded storage (unistore), in a lab of its own.

The embedded storage is what TiDB's own tests use: one process, no replication, no Raft, and a write is not
synced to the disk. It shows the SQL layer at work; it is not TiKV.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core import files
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import settings, sql
from benchbook.sites.supervised import Supervised, tail
from benchbook.sites.tidb import build, config, data
from benchbook.sites.tidb.status import ABSENT, Status

USERS = ("mysql", "nobody")
STORAGE = "unistore, embedded: one process, writes not synced"
CRASH = re.compile(r"\[ERROR\]|\[FATAL\]|^panic: |^fatal error: |^SIG[A-Z]+: |No space left", re.ASCII)


class TiDB(Supervised):
    """One server at one address, its status port on the next. Nothing is started until `ensure`.

    `keep` are file descriptors that the server inherits. Where there is no program yet, it is built now.
    """

    start_s = 180.0
    stop_s = 60.0

    def __init__(self, lab: labs.Lab, engine: Any, place: labs.Place, keep: tuple[int, ...] = ()) -> None:
        self.binary = build.program(lab, engine.version, engine.binary, keep)
        self.version = build.said_version(self.binary)
        if not sql.is_version(self.version, engine.version):
            raise SiteError(
                f"engine.version: asked {engine.version}, {self.binary} is {self.version}; "
                "name another program in engine.binary"
            )
        if forbidden := config.reserved(engine.settings):
            raise SiteError(
                f"engine.settings.{forbidden[0]}: set by the lab itself; remove it from the study"
            )
        super().__init__(lab, place, keep, user())
        self.engine = engine
        self.asked = config.complete(engine.settings, self.version)
        self.status = Status(place.address, place.port + 1)
        self.data = self.folder / "data"
        self.socket = lab.socket(self.folder / "t.sock")
        self.config = self.folder / "tidb.toml"
        self.leftovers = (self.socket,)
        self._admin: sqlalchemy.Engine | None = None
        self._opened = 0
        self._env = {"HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp")}

    @staticmethod
    def obstacle(engine: Any) -> str | None:
        """Return why this machine can't make such a server, or None; nothing is built to find out."""
        return build.obstacle(engine.version, engine.binary)

    @property
    def made_with(self) -> dict[str, Any]:
        """What a data folder depends on: another value needs another folder. Variables are kept in it."""
        variables = {key: settings.text(value) for key, value in self.asked.variables.items()}
        made = {"engine": "tidb", "version": self.version, "settings": variables}
        return made | {"locks": data.locks(self.lab)}

    def ensure(self) -> None:
        """Start the server unless it runs and answers, making its data at need; prove that it is ours.

        To see that it answers opens no session.
        """
        if self.is_up and self.status.answers:
            return
        self.stop()
        self._must_have_ports(self.place.port, self.status.port)
        data.make(self.lab, self.place, self._private, self.made_with, self.user, self.keep, self._env)
        self._write_config()
        here = [f"-host={self.place.address}", f"-P={self.place.port}"]
        here += [f"-status-host={self.place.address}", f"-status={self.status.port}"]
        self._begin([*self._argv(self.data, self.socket), *here], self._is_ready_now, self._env)
        try:
            with self._connect() as connection:
                with connection.cursor() as cursor:
                    data.set_variables(cursor, self.asked.variables)
                    data.admit(cursor, self.lab.password(), self.place.peers)
                data.prove(self.lab, self.place, connection, self.running().pid, self.data)
        except BaseException:
            self.stop()
            raise

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account over the socket, one new connection each time.

        Each connection carries in `info` what tells of the server beside SQL: `session`, its own number in
        the list of sessions; `connected`, which counts sessions; `books`, which reads counters and uptime;
        `absent`, the counters that there are not.
        """
        if self._admin is None:
            self._admin = sql.engine(self._connect, lambda: self._opened)
            sqlalchemy.event.listen(self._admin, "connect", self._inform)
        return self._admin

    def identity(self) -> dict[str, Any]:
        """Return what tells this very server from any other; opens no session."""
        child = self.running()
        try:
            said = self.status.who()
        except (OSError, ValueError) as error:
            raise SiteError(f"the server does not answer: {error}; see {self.log}") from None
        return {
            "pid": child.pid,
            "started": child.started,
            "version": said["version"],
            "git_hash": said["git_hash"],
            "datadir": str(self.data),
            "port": self.place.port,
            "config_hash": self.config_hash,
        }

    def facts(self) -> dict[str, Any]:
        """Return what the server says it is; SettingsDiffer if it did not take what was asked."""
        self.running()
        with self.admin().connect() as connection:
            variables = dict(connection.exec_driver_sql("SHOW GLOBAL VARIABLES").all())
        read = self.asked.taken(self.engine.settings, self.status.config(), variables)
        kept = {key: value for key, value in variables.items() if key not in config.VOLATILE}
        return {
            "name": "tidb",
            "version": self.version,
            "version_comment": variables["version_comment"],
            "storage": STORAGE,
            "binary": str(self.binary),
            "binary_sha256": files.sha256(self.binary),
            "built_with": (build.built(self.binary) or {}).get("go"),
            "tls": variables.get("have_ssl", "unknown"),
            "settings": read,
            "variables": len(variables),
            "variables_sha256": settings.digest(kept, self.folder),
            "config_hash": self.config_hash,
        }

    def log_errors(self, mark: int) -> list[str]:
        """Return the lines since a place that tell of an error or a crash."""
        return [line for line in self.log_since(mark) if CRASH.search(line)]

    def _connect(self) -> pymysql.Connection:
        self._opened += 1
        return data.connect(self.socket, data.secret(self.lab))

    def _inform(self, connection: pymysql.Connection, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT CONNECTION_ID()")
            record.info["session"] = int(cursor.fetchone()[0])
        record.info.update(books=self.status.books, absent=ABSENT, connected=self.status.connected)

    def _argv(self, store: Path, socket: Path) -> list[str]:
        storage = ["-store=unistore", f"-path={store}", f"-socket={socket}"]
        return [str(self.binary), f"-config={self.config}", *storage]

    def _private(self, store: Path, socket: Path) -> list[str]:
        """Return the command line of the first start: a socket and nothing else listens."""
        self._write_config()
        return [*self._argv(store, socket), "-P=0", "-report-status=false"]

    def _is_ready_now(self) -> bool:
        if not self.status.answers:
            return False
        try:
            self._connect().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def _write_config(self) -> None:
        """Write the settings file; unknown to old versions, the places of scratch files are ignored there."""
        places = {"temp-dir": str(self.folder / "tmp"), "tmp-storage-path": str(self.folder / "tmp")}
        labs.write_private(self.config, config.toml(places | self.asked.items), self.user)

    def _last_words(self, mark: int) -> str:
        said = "\n  ".join(self.log_errors(mark)[-5:]) or tail(self.log)
        return f"{said}\n  (or check engine.settings)"


def user() -> str | None:
    """Return whom the server runs as: not root."""
    for name in USERS[:-1]:
        try:
            return labs.service_user(name)
        except SiteError:
            continue
    return labs.service_user(USERS[-1])
