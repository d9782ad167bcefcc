"""MariaDB as the OS package ships it, in a lab of its own."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core.errors import SettingsDiffer, SiteError
from benchbook.sites import lab as labs
from benchbook.sites import mariadb_accounts as accounts
from benchbook.sites import mariadb_install as install
from benchbook.sites import ports, process, settings

START_S = 180.0
STOP_S = 120.0
CRASH = re.compile(
    r"\[ERROR\]|got signal|Assertion|Segmentation|[Cc]orrupt|Out of memory|No space left", re.ASCII
)


class MariaDB:
    """One server at one address, known by its pid file, its folder and a word drawn at each start.

    `keep` are file descriptors the server inherits. Nothing is started until `ensure`.
    """

    def __init__(self, lab: labs.Lab, engine: Any, place: labs.Place, keep: tuple[int, ...] = ()) -> None:
        self.lab, self.engine, self.place, self.keep = lab, engine, place, keep
        self.role = place.name
        self.child: process.Child | None = None
        self._admin: sqlalchemy.Engine | None = None
        self.user = labs.service_user("mysql")
        self.binary = install.find_binary(engine.binary)
        self.version = install.binary_version(self.binary)
        if engine.version is not None and not _starts_with(self.version, engine.version):
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
        self.folder = lab.own(self.role, self.user)
        self.data = self.folder / "data"
        self.socket = lab.socket(self.folder / "m.sock")
        self.config = self.folder / "my.cnf"
        self.log = lab.run / f"{self.role}.log"

    @property
    def made_with(self) -> dict[str, Any]:
        """What a data folder depends on: another value needs another folder."""
        fixed = {key: settings.text(self.asked[key]) for key in settings.AT_CREATION if key in self.asked}
        return {"engine": "mariadb", "version": self.version, "settings": fixed}

    def ensure(self) -> None:
        """Start the server unless it runs and answers, making its data at need; prove that it is ours.

        To see that it answers costs one connection.
        """
        if self.child is not None and self.child.is_alive and self._answers():
            return
        self.stop()
        if self.place.is_here:
            ports.must_be_free(self.place.port, "the server")
        install.make_data(
            self.lab, self.binary, self.engine.binary, self.made_with, self.user, self.role, self.keep
        )
        mark = self.log_mark()
        word = uuid.uuid4().hex
        self._write_config()
        begun = time.monotonic()
        self.child = process.start(
            self.role,
            [str(self.binary), f"--defaults-file={self.config}", f"--report-host={word}"],
            token=self.lab.token,
            folder=self.lab.folder,
            out=self.log,
            pidfile=self.lab.pidfile(self.role),
            user=self.user,
            where=self.place.where,
            keep=self.keep,
            cwd=self.folder,
        )
        try:
            self._wait_ready(mark, begun)
            accounts.prove(self._connect, self.lab, self.child.pid, self.data, self.place, word, begun)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> bool:
        """Shut the server down and say whether it went by itself, so that its files are clean."""
        if self.child is None:
            return True
        was_alive = self.child.is_alive
        clean = process.stop(self.child, grace_s=STOP_S) and was_alive
        self.child = None
        for leftover in (self.lab.pidfile(self.role), self.socket, self.folder / "m.pid"):
            leftover.unlink(missing_ok=True)
        return clean

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account over the socket, one new connection each time.

        The server knows it by the user of this process (unix_socket), so there is no password.
        """
        if self._admin is None:
            self._admin = sqlalchemy.create_engine(
                "mysql+pymysql://", creator=self._connect, poolclass=sqlalchemy.NullPool, hide_parameters=True
            )
        return self._admin

    def identity(self) -> dict[str, Any]:
        """Return what tells this very server from any other; costs one connection."""
        child = self._running()
        try:
            with self.admin().connect() as connection:
                row = connection.exec_driver_sql("SELECT VERSION(), @@datadir, @@port, @@server_uid").one()
        except sqlalchemy.exc.OperationalError as error:
            raise SiteError(f"the server does not answer: {error.orig}; see {self.log}") from None
        return {
            "pid": child.pid,
            "started": child.started,
            "version": row[0],
            "datadir": row[1],
            "port": int(row[2]),
            "server_uid": row[3],
            "config_hash": settings.hash_config(self.config, self.folder),
        }

    def facts(self) -> dict[str, Any]:
        """Return what the server says it is; SettingsDiffer if it did not take what was asked."""
        self._running()
        with self.admin().connect() as connection:
            variables = dict(connection.exec_driver_sql("SHOW GLOBAL VARIABLES").all())
        differing = settings.differences(self.asked, variables)
        if differing:
            raise SettingsDiffer(differing)
        read = {
            key: {
                "asked": settings.text(value),
                "got": settings.read_back(key, variables),
                "from": "study" if key in self.engine.settings else "benchbook",
            }
            for key, value in sorted(self.asked.items())
        }
        return {
            "name": "mariadb",
            "version": variables["version"],
            "version_comment": variables["version_comment"],
            "binary": str(self.binary),
            "binary_sha256": install.sha256(self.binary),
            "tls": variables.get("have_ssl", "unknown"),
            "settings": read,
            "variables": len(variables),
            "variables_sha256": settings.digest(variables, self.folder),
            "config_hash": settings.hash_config(self.config, self.folder),
        }

    def log_mark(self) -> int:
        """Return a place in the server's log."""
        return self.log.stat().st_size if self.log.exists() else 0

    def log_errors(self, mark: int) -> list[str]:
        """Return the lines since a place that tell of an error or a crash."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(mark)
            return [
                line for line in file.read().decode("utf-8", "replace").splitlines() if CRASH.search(line)
            ]

    def _running(self) -> process.Child:
        if self.child is None or not self.child.is_alive:
            last = "; ".join(self.log_errors(0)[-2:])
            raise SiteError(f"the server does not run{': ' + last if last else ''}; call site.up(arm) first")
        return self.child

    def _connect(self, read_timeout: float | None = None) -> pymysql.Connection:
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
        lines = [f"{key}={value}" for key, value in places.items()]
        lines += [f"{key}={settings.text(value)}" for key, value in sorted(self.asked.items())]
        labs.write_private(self.config, "[mariadbd]\n" + "\n".join(lines) + "\n", self.user)

    def _wait_ready(self, mark: int, begun: float) -> None:
        while True:
            if self.child is None or not self.child.is_alive:
                said = "\n  ".join(self.log_errors(mark)) or install.tail(self.log)
                raise SiteError(f"the server did not start; check engine.settings and {self.log}:\n  {said}")
            try:
                self._connect(read_timeout=10).close()
                return
            except pymysql.err.OperationalError as error:
                if time.monotonic() - begun > START_S:
                    raise SiteError(
                        f"the server was not ready within {START_S:.0f} s: {error.args[1]}; see {self.log}"
                    ) from None
            time.sleep(0.02)


def _starts_with(version: str, asked: str) -> bool:
    return version.split(".")[: len(asked.split("."))] == asked.split(".")
