"""MariaDB as a host's own package, in a folder of ours there, with the settings it has on one machine."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core.errors import SiteError
from benchbook.sites import mariadb_accounts as accounts
from benchbook.sites import settings, sql
from benchbook.sites.lab import SCHEMA, USER, Lab
from benchbook.sites.mariadb import CRASH
from benchbook.sites.mariadb_install import INSTALL, INSTALL_S
from benchbook.sites.ssh import data, stream, tls
from benchbook.sites.ssh.arrange import Part
from benchbook.sites.ssh.host import Host
from benchbook.sites.ssh.parts import Remote

READ_S = 600.0


class MariaDB(Remote):
    """One server on one host.

    `peers` gives the addresses that the benchmark's account is let in from; with `tls_from`, a host of its
    clients, it is let in with TLS only.
    """

    what = "the server"
    start_s = 180.0
    stop_s = 120.0
    config_name = "my.cnf"
    crash = CRASH

    def __init__(
        self,
        host: Host,
        part: Part,
        look: dict[str, Any],
        engine: Any,
        lab: Lab,
        peers: Callable[[], list[str]],
        tls_from: Callable[[], Host] | None = None,
    ) -> None:
        super().__init__(host, part, look, "mysql")
        self.engine, self.lab, self.peers, self.tls_from = engine, lab, peers, tls_from
        self.word, self.opened = "", 0
        self._admin: sqlalchemy.Engine | None = None
        self.binary = look["tools"]["mariadbd"]
        if self.binary is None:
            raise SiteError(f"{host.name}: mariadbd is not installed; run `{INSTALL}` there")
        self.version = look["facts"]["mariadb"].partition("-")[0]
        if not sql.is_version(self.version, engine.version):
            raise SiteError(
                f"engine.version: asked {engine.version}, {host.name} has {self.version}; "
                f"install that version there (`{INSTALL}`)"
            )
        if forbidden := settings.reserved(engine.settings):
            raise SiteError(
                f"engine.settings.{forbidden[0]}: set by the site itself; remove it from the study"
            )
        self.asked = settings.complete(engine.settings)

    @property
    def made_with(self) -> dict[str, Any]:
        """What a data folder depends on: another value needs another folder."""
        fixed = {key: settings.text(self.asked[key]) for key in settings.AT_CREATION if key in self.asked}
        return {"engine": "mariadb", "version": self.version, "settings": fixed}

    def ensure(self) -> None:
        """Start the server unless it runs and answers, making its data at need; its port must be its own."""
        if self.is_up and self.answers():
            return
        self.stop()
        self.must_be_free()
        data.make(self)
        self.word = uuid.uuid4().hex
        if self.tls_from is not None:
            for name, text in tls.of_server(self.lab).items():
                self.host.call("write", name=f"{self.role}/{name}", text=text, user=self.user)
        places = {
            "port": self.part.port,
            "bind_address": self.part.address,
            "socket": f"{self.folder}/m.sock",
            "datadir": f"{self.folder}/data",
            "tmpdir": f"{self.folder}/tmp",
            "pid_file": f"{self.folder}/m.pid",
            "secure_file_priv": f"{self.folder}/tmp",
        }
        if self.tls_from is not None:
            places |= {f"ssl_{name}": f"{self.folder}/{name}.pem" for name in ("ca", "cert", "key")}
        lines = [f"{key}={settings.text(value)}" for key, value in sorted(self.asked.items())]
        # The last word counts.
        lines += [f"{key}={value}" for key, value in places.items()]
        self.configure("[mariadbd]\n" + "\n".join(lines) + "\n")
        argv = [
            self.binary,
            f"--defaults-file={self.folder}/{self.config_name}",
            f"--report-host={self.word}",
        ]
        self.begin(argv, self.answers)
        with self.connect() as connection, connection.cursor() as cursor:
            peers = tuple(self.peers())
            accounts.make(cursor, self.lab.password(), peers)
            for peer in peers:
                how = "NONE" if self.tls_from is None else "SSL"
                cursor.execute(f"ALTER USER '{USER}'@'{peer}' REQUIRE {how}")
            cursor.execute("SELECT @@report_host, @@datadir")
            word, there = cursor.fetchone()
        if word != self.word or there.rstrip("/") != places["datadir"] or not self.holds_port():
            self.stop()
            raise SiteError(
                f"{self.host.name}: what answers at {self.part.address}:{self.part.port} is not the server "
                "that was started; end that server yourself, or set another site.port in the study"
            )

    def create(self) -> None:
        """Make a new data folder.

        The administrator comes in over the socket by the name of the user there; there are no anonymous
        accounts.
        """
        argv = [
            self.look["tools"]["mariadb-install-db"] or "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self.folder}/new",
            f"--tmpdir={self.folder}/tmp",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={self.look['user']}",
            "--skip-test-db",
            "--skip-name-resolve",
            "--skip-log-bin",
            *[f"--{key}={value}" for key, value in self.made_with["settings"].items()],
        ]
        data.work(self.host, "the data folder could not be made", argv, INSTALL_S, self.user)

    def connect(self, read_timeout: float | None = READ_S) -> pymysql.Connection:
        """Open an administrative connection over the server's socket: known by the user there."""
        self.opened += 1
        return stream.connect(
            self.host, f"{self.role}/m.sock", user=self.look["user"], read_timeout=read_timeout
        )

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account over the socket, one new connection each time."""
        if self._admin is None:
            self._admin = sql.engine(self.connect, lambda: self.opened)
            if self.tls_from is not None:
                sqlalchemy.event.listen(self._admin, "connect", self._inform)
        return self._admin

    def _inform(self, connection: pymysql.Connection, record: Any) -> None:
        # Our own session comes over the server's socket and has none.
        record.info["cipher"] = self.cipher

    def answers(self) -> bool:
        """Say whether the server takes a connection now."""
        try:
            self.connect(read_timeout=5).close()
        except (pymysql.err.Error, OSError):
            return False
        return True

    def seen_from(self, host: Host, address: str, port: int) -> bool:
        """Say whether the benchmark's account reaches this very server from another host; one connection."""
        try:
            return bool(self._said(host, address, port, "SELECT @@report_host")[0] == self.word)
        except pymysql.err.Error as error:
            raise SiteError(
                f"{address}:{port} does not answer {host.name}: {error.args[-1]}; look at firewalls "
                "between the hosts, and at `address` in the inventory"
            ) from None

    def cipher(self) -> str:
        """Return the cipher of a session made from a client's host as the client makes its own."""
        assert self.tls_from is not None
        said = "SHOW SESSION STATUS LIKE 'Ssl_cipher'"
        return str(self._said(self.tls_from(), self.part.address, self.part.port, said)[1])

    def _said(self, host: Host, address: str, port: int, statement: str) -> Any:
        account = {"user": USER, "password": self.lab.password(), "database": SCHEMA, "read_timeout": 30}
        self.opened += 1
        context = tls.FarContext(self.lab) if self.tls_from is not None else None
        with (
            stream.connect(host, (address, port), context, **account) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
            return cursor.fetchone()

    def identity(self) -> dict[str, Any]:
        """Return what tells this very server from any other; costs one connection."""
        self.running()
        said = sql.identity(self.admin(), f"the server on {self.host.name}")
        mine = {"host": self.host.name, "pid": self.pid, "started": self.started}
        return mine | said | {"config_hash": self.config_hash}

    def facts(self) -> dict[str, Any]:
        """Return what the server says it is; SettingsDiffer if it did not take what was asked."""
        self.running()
        with self.admin().connect() as connection:
            variables = dict(connection.exec_driver_sql("SHOW GLOBAL VARIABLES").all())
        there = settings.taken(self.asked, self.engine.settings, variables, self.folder)  # type: ignore[arg-type]
        return there | {
            "binary": self.binary,
            "binary_sha256": self.host.call("sha256", path=self.binary),
            "config_hash": self.config_hash,
        }
