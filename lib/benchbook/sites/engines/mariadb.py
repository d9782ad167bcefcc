"""MariaDB as the OS package ships it; socket and port must both return a word drawn at each start."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core.util.errors import SiteError
from benchbook.sites import settings, sql, workspace
from benchbook.sites.descriptors.mariadb import TRAITS
from benchbook.sites.engines import tls
from benchbook.sites.engines.server import Server
from benchbook.sites.machine.contract import Machine

CRASH = re.compile(
    r"\[ERROR\]|got signal|Assertion|Segmentation|[Cc]orrupt|Out of memory|No space left", re.ASCII
)
INSTALL_S = 180.0
SOCKET, PID = "m.sock", "m.pid"
# No right to the schema, no such account, no such schema, no account for this host.
UNKNOWN_THERE = (1044, 1045, 1049, 1130)


class MariaDB(Server):
    """One server. With `tls_from`, a function for a client's machine, our account needs TLS."""

    traits = TRAITS
    version_words = re.compile(r"Ver ([0-9.]+)-MariaDB")
    starts_from: tuple[str, ...] = ("mariadb",)
    lists_settings = ("--no-defaults", "--verbose", "--help")
    config_name, leftovers, crash = "my.cnf", (SOCKET, PID), CRASH
    own_options = frozenset({"--report-host"})
    uid = "@@server_uid"
    start_s, stop_s = 180.0, 120.0

    def __init__(
        self,
        machine: Machine,
        engine: Any,
        place: workspace.PartLocation,
        tls_from: Callable[[], Machine] | None = None,
    ) -> None:
        super().__init__(machine, engine, place)
        self.socket, self.tls_from = f"{self.role}/{SOCKET}", tls_from
        self.asked = self._complete(engine.settings)
        # The folder that its programs' folder is in.
        self._above = PurePosixPath(self.binary).parent.parent

    @property
    def made_with(self) -> dict[str, Any]:
        asked = self.asked
        fixed = {key: settings.format_value(asked[key]) for key in settings.AT_CREATION if key in asked}
        return {"engine": self.traits.name, "version": self.version, "settings": fixed}

    def create(self) -> None:
        """The administrator comes in by the name of our user there; no account is without a name."""
        name, has_binary = self.traits.programs[1], self.engine.binary is not None
        beside = [f"{self._above}/{text}/{name}" for text in ("bin", "scripts")] if has_binary else []
        installer = next(filter(None, map(self.machine.program, [*beside, name])), None)
        if installer is None:
            raise SiteError(f"{name} is not installed{self._where}; {self._name_remedy()}")
        # It keeps to the server's own files where all that it needs is beside it.
        is_whole = has_binary and self.machine.program(f"{self._above}/bin/my_print_defaults")
        argv = [
            installer,
            "--no-defaults",
            *([f"--basedir={self._above}"] if is_whole else []),
            f"--datadir={self.folder}/new",
            f"--tmpdir={self.folder}/tmp",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={self.machine.user}",
            "--skip-test-db",
            "--skip-name-resolve",
            "--skip-log-bin",
            *[f"--{key}={value}" for key, value in self.made_with["settings"].items()],
        ]
        self.machine.run_to_end(argv, "MariaDB's data folder could not be made", INSTALL_S, self.user)

    def admin(self) -> sqlalchemy.Engine:
        """The server knows it by our user there (unix_socket), so there is no password."""
        if self._admin is None:
            self._admin = sql.make_engine(self._connect, opened=lambda: self._opened, **self._told())
        return self._admin

    def seen_from(self, machine: Machine, address: str, port: int) -> bool:
        try:
            return bool(self._from(machine, address, port, "SELECT @@report_host")[0] == self.word)
        except pymysql.err.Error as error:
            if error.args[0] in UNKNOWN_THERE:
                return False
            raise self._describe_silence(machine, address, port, error.args[-1]) from None

    def identity(self) -> dict[str, Any]:
        what = f"{self._named} (its log: {self.log})"
        return self.seen() | sql.read_identity(self.admin(), what, uid=self.uid)

    def facts(self) -> dict[str, Any]:
        self.running()
        variables = sql.read_variables(self.admin())
        return {
            "name": self.traits.name,
            "version": variables["version"],
            "version_comment": variables["version_comment"],
            "tls": variables.get("have_ssl", "unknown"),
            **settings.report_settings(self.asked, self.engine.settings, variables),
            "variables": len(variables),
            "variables_sha256": settings.hash_variables(variables, self.folder),
            **self.program_facts(self.binary),
        }

    def _connect(self, **how: Any) -> pymysql.Connection:
        self._opened += 1
        return self.machine.connect(self.socket, user=self.machine.user, **how)

    def _write_config(self) -> None:
        if self.tls_from is not None:
            for name, text in tls.read_server(self.lab).items():
                self.machine.write(f"{self.role}/{name}", text, self.user)
        places: dict[str, object] = {
            "port": self.place.port,
            "bind_address": self.place.address,
            "socket": self.socket_path,
            "datadir": self.data,
            "tmpdir": self.folder / "tmp",
            "pid_file": self.folder / PID,
            "secure_file_priv": self.folder / "tmp",
        }
        places |= self._places()
        if self.tls_from is not None:
            places |= {f"ssl_{name}": self.folder / f"{name}.pem" for name in ("ca", "cert", "key")}
        lines = [f"{key}={settings.format_value(value)}" for key, value in sorted(self.asked.items())]
        # The last word counts.
        lines += [f"{key}={value}" for key, value in places.items()]
        self._configure(f"[{self.traits.programs[0]}]\n" + "\n".join(lines) + "\n")

    def _command(self) -> list[str]:
        return [self.binary, f"--defaults-file={self.config}", f"--report-host={self.word}"]

    def _answers(self) -> bool:
        try:
            self._connect(read_timeout=5).close()
        except (pymysql.err.Error, OSError):
            return False
        return True

    def _admit(self, started_s: float) -> None:
        place, wanted = self.place, {"data folder": self.data, "pid file": self.folder / PID}
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@datadir, @@pid_file, @@port, @@bind_address, @@report_host")
            data, pid_file, port, address, word = cursor.fetchone()
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")
            uptime_s = int(cursor.fetchone()[1])
            self._close(cursor)
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {workspace.SCHEMA}")
            sql.let_in(cursor, workspace.USER, self.lab.password(), place.peers())
            for peer in place.peers():
                with_tls = "NONE" if self.tls_from is None else "SSL"
                cursor.execute(f"ALTER USER %s@%s REQUIRE {with_tls}", (workspace.USER, peer))
        its_pid = int(self.machine.read(f"{self.role}/{PID}") or 0)
        results: dict[str, Any] = {"data folder": PurePosixPath(data), "pid file": PurePosixPath(pid_file)}
        results |= {"pid": its_pid, "port": port, "bind_address": address}
        wanted |= {"pid": self.running().pid, "port": place.port, "bind_address": place.address}  # type: ignore[dict-item]
        self._must_be_the_one(results, wanted, word, uptime_s, started_s)

    def _from(self, machine: Machine, address: str, port: int, statement: str) -> Any:
        account = {"user": workspace.USER, "password": self.lab.password(), "database": workspace.SCHEMA}
        self._opened += 1
        context = tls.FarContext(self.lab) if self.tls_from is not None else None
        session = machine.connect((address, port), context, read_timeout=30, **account)
        with session as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()

    def _told(self) -> dict[str, Any]:
        """Contents of `info` for the administrator's connections."""
        if (machine := self.tls_from) is None:
            return {}
        place, request = self.place, "SHOW SESSION STATUS LIKE 'Ssl_cipher'"
        # Our own session comes over the server's socket and has no cipher: one is made as the client's are.
        return {"cipher": lambda: str(self._from(machine(), place.address, place.port, request)[1])}

    def _close(self, cursor: pymysql.cursors.Cursor) -> None:
        """Leave no account without a name."""
        cursor.execute("DELETE FROM mysql.global_priv WHERE User = ''")
        cursor.execute("FLUSH PRIVILEGES")

    def _places(self) -> dict[str, object]:
        return {"basedir": self._above} if self.engine.binary is not None else {}
