"""TiDB with its embedded storage on a host: one program by path, closed to all before it listens anywhere."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core.errors import SiteError
from benchbook.sites import settings, sql
from benchbook.sites.lab import SCHEMA, USER, Lab
from benchbook.sites.ssh import data, stream
from benchbook.sites.ssh.arrange import Part
from benchbook.sites.ssh.far import FarStatus
from benchbook.sites.ssh.host import Host
from benchbook.sites.ssh.parts import Remote
from benchbook.sites.tidb import config
from benchbook.sites.tidb import data as accounts
from benchbook.sites.tidb.server import CRASH, STORAGE
from benchbook.sites.tidb.status import ABSENT

READ_S = 600.0
FIRST_S = 180.0


class TiDB(Remote):
    """One server on one host, its status port on the next.

    `peers` gives the addresses that the benchmark's account is let in from.
    """

    what = "the server"
    start_s = 180.0
    stop_s = 60.0
    config_name = "tidb.toml"
    crash = CRASH

    def __init__(
        self,
        host: Host,
        part: Part,
        look: dict[str, Any],
        engine: Any,
        lab: Lab,
        peers: Callable[[], list[str]],
    ) -> None:
        super().__init__(host, part, look, "nobody")
        self.engine, self.lab, self.peers = engine, lab, peers
        self.binary, self.version = look["tools"]["tidb-server"], look["facts"]["tidb"]
        if self.binary is None or self.version is None:
            raise SiteError(
                f"{host.name}: tidb-server is not there; put it into the PATH, or write its path under "
                "`programs` in the inventory"
            )
        if not sql.is_version(self.version.partition("-")[0], engine.version):
            raise SiteError(f"engine.version: asked {engine.version}, {host.name} has {self.version}")
        if forbidden := config.reserved(engine.settings):
            raise SiteError(f"engine.settings.{forbidden[0]}: set by the site itself; remove it")
        self.asked = config.complete(engine.settings, self.version)
        self.status = FarStatus(part.address, part.port + 1, host=host)
        self._admin: sqlalchemy.Engine | None = None

    @property
    def made_with(self) -> dict[str, Any]:
        """What a data folder depends on: another value needs another folder. Variables are kept in it."""
        variables = {key: settings.text(value) for key, value in self.asked.variables.items()}
        made = {"engine": "tidb", "version": self.version, "settings": variables}
        return made | {"locks": accounts.locks(self.lab)}

    def ensure(self) -> None:
        """Start the server unless it runs and answers, making its data at need; its port must be its own."""
        if self.is_up and self.status.answers:
            return
        self.stop()
        self.must_be_free()
        data.make(self)
        self._configure()
        here = [f"-host={self.part.address}", f"-P={self.part.port}"]
        here += [f"-status-host={self.part.address}", f"-status={self.part.port + 1}"]
        self.begin([*self._argv("data", "t.sock"), *here], lambda: self.status.answers, self._env)
        try:
            with self.connect() as connection, connection.cursor() as cursor:
                accounts.set_variables(cursor, self.asked.variables)
                accounts.admit(cursor, self.lab.password(), tuple(self.peers()))
        except BaseException:
            self.stop()
            raise
        if not self.holds_port():
            self.stop()
            raise SiteError(f"{self.host.name}: port {self.part.port} is somebody else's; set site.port")

    def create(self) -> None:
        """Make a new data folder: a first start with only a socket, which leaves nobody without password."""
        self._configure()
        job = f"{self.role}.{uuid.uuid4().hex[:8]}"
        self.host.call("own", name="run")
        self.host.call(
            "start",
            job=job,
            argv=[*self._argv("new", "b.sock"), "-P=0", "-report-status=false"],
            out=self.log,
            append=True,
            cwd=self.role,
            user=self.user,
            env=self._env,
        )
        try:
            with self._first(job) as connection, connection.cursor() as cursor:
                accounts.close(cursor, accounts.secret(self.lab))
        finally:
            known = self.host.call("stop", job=job, grace_s=self.stop_s)
            while known["code"] is None:
                known = self.host.call("wait", job=job, up_to_s=2.0)
        if known["was_killed"]:
            raise SiteError(f"{self.host.name}: TiDB's data folder could not be made; see {self.log} there")

    def connect(self, read_timeout: float | None = READ_S) -> pymysql.Connection:
        """Open an administrative connection over the server's socket."""
        account = {"user": accounts.ADMIN, "password": accounts.secret(self.lab)}
        return stream.connect(self.host, f"{self.role}/t.sock", **account, read_timeout=read_timeout)

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account over the socket, one new connection each time."""
        if self._admin is None:
            self._admin = engine(self.connect, [self.status])
        return self._admin

    def seen_from(self, host: Host, address: str, port: int) -> bool:
        """Say whether the benchmark's account reaches this very server from another host; one connection."""
        return is_seen(self.lab, [self.connect], host, address, port)

    def identity(self) -> dict[str, Any]:
        """Return what tells this very server from any other; opens no session."""
        self.running()
        try:
            said = self.status.who()
        except (OSError, ValueError) as error:
            raise SiteError(f"the server on {self.host.name} does not answer: {error}") from None
        mine = {"host": self.host.name, "pid": self.pid, "started": self.started, "port": self.part.port}
        return mine | {key: said[key] for key in ("version", "git_hash")} | {"config_hash": self.config_hash}

    def facts(self) -> dict[str, Any]:
        """Return what the server says it is; SettingsDiffer if it did not take what was asked."""
        self.running()
        with self.admin().connect() as connection:
            variables = dict(connection.exec_driver_sql("SHOW GLOBAL VARIABLES").all())
        read = self.asked.taken(self.engine.settings, self.status.config(), variables)
        return {
            "name": "tidb",
            "version": self.version,
            "version_comment": variables["version_comment"],
            "storage": STORAGE,
            "binary": self.binary,
            "binary_sha256": self.host.call("sha256", path=self.binary),
            "tls": variables.get("have_ssl", "unknown"),
            "settings": read,
            "variables": len(variables),
            "variables_sha256": digest(variables, self.folder),
            "config_hash": self.config_hash,
        }

    @property
    def _env(self) -> dict[str, str]:
        return {"HOME": self.folder, "TMPDIR": f"{self.folder}/tmp"}

    def _configure(self) -> None:
        places = {"temp-dir": f"{self.folder}/tmp", "tmp-storage-path": f"{self.folder}/tmp"}
        self.configure(config.toml({**places, **self.asked.items}))

    def _argv(self, store: str, socket: str) -> list[str]:
        place = [f"-path={self.folder}/{store}", f"-socket={self.folder}/{socket}"]
        return [self.binary, f"-config={self.folder}/{self.config_name}", "-store=unistore", *place]

    def _first(self, job: str) -> pymysql.Connection:
        deadline = time.monotonic() + FIRST_S
        while time.monotonic() < deadline and self.host.call("job", job=job)["code"] is None:
            try:
                return stream.connect(
                    self.host, f"{self.role}/b.sock", user=accounts.ADMIN, password="", read_timeout=60
                )
            except (pymysql.err.OperationalError, OSError):
                time.sleep(0.1)
        said = "\n  ".join(self.tail())
        raise SiteError(f"{self.host.name}: TiDB's data folder could not be made:\n  {said}")


def engine(connect: Callable[[], pymysql.Connection], statuses: Sequence[FarStatus]) -> sqlalchemy.Engine:
    """Return an administrative account whose books are those of some servers, added up."""
    made = sql.engine(connect)

    def books() -> tuple[dict[str, int], float]:
        each = [status.books() for status in statuses]
        counters = {name: sum(one[0].get(name, 0) for one in each) for name in each[0][0]}
        return counters, min(one[1] for one in each)

    def inform(connection: pymysql.Connection, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT CONNECTION_ID()")
            record.info["session"] = int(cursor.fetchone()[0])
        connected = lambda: sum(status.connected() for status in statuses)  # noqa: E731
        record.info.update(books=books, absent=ABSENT, connected=connected)

    sqlalchemy.event.listen(made, "connect", inform)
    return made


def is_seen(
    lab: Lab, connects: Sequence[Callable[[], pymysql.Connection]], host: Host, address: str, port: int
) -> bool:
    """Say whether a session that the benchmark's account opens from a host is one of a server of ours."""
    account = {"user": USER, "password": lab.password(), "database": SCHEMA, "read_timeout": 30}
    try:
        with stream.connect(host, (address, port), **account) as theirs, theirs.cursor() as cursor:
            cursor.execute("SELECT CONNECTION_ID()")
            number = int(cursor.fetchone()[0])
            for connect in connects:
                with connect() as ours, ours.cursor() as known:
                    known.execute("SHOW PROCESSLIST")
                    if (number, USER) in {(int(row[0]), str(row[1])) for row in known.fetchall()}:
                        return True
            return False
    except pymysql.err.Error as error:
        raise SiteError(
            f"{address}:{port} does not answer {host.name}: {error.args[-1]}; look at firewalls "
            "between the hosts, and at `address` in the inventory"
        ) from None


def digest(variables: dict[str, str], folder: str) -> str:
    """Return the SHA-256 of all variables that mean the same at the next start and in another place."""
    kept = {key: value for key, value in variables.items() if key not in config.VOLATILE}
    return settings.digest(kept, folder)  # type: ignore[arg-type]
