"""PgBouncer between client and PostgreSQL, pooling sessions.

sysbench prepares its statements, and PgBouncer follows prepared statements from session to session only
since 1.21, so each client keeps a session of the server for as long as it is connected. A session is closed
with its client: one kept open would be a stranger on the server between two runs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from benchbook.core import files
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import process
from benchbook.sites.supervised import Supervised

INSTALL = "apt-get install pgbouncer"
DRIVER = "pgsql"
MAX_CONNECTIONS = 4096
# The administrator of its own console.
CONSOLE = "pgbouncer"
SETTINGS = {
    "pool_mode": "session",
    "max_client_conn": str(MAX_CONNECTIONS),
    "default_pool_size": str(MAX_CONNECTIONS),
    "server_lifetime": "0",
    "server_reset_query": "",
    "server_check_query": "",
    "server_round_robin": "0",
    "ignore_startup_parameters": "extra_float_digits",
    "auth_type": "scram-sha-256",
    "log_connections": "0",
    "log_disconnections": "0",
    "log_stats": "0",
    "server_tls_sslmode": "disable",
}
# Of its console's answer to SHOW CONFIG, what is compared with what was asked.
READ_BACK = (
    "pool_mode",
    "max_client_conn",
    "default_pool_size",
    "server_lifetime",
    "server_reset_query",
    "auth_type",
)


class PgBouncer(Supervised):
    """One pool in front of one server. Nothing is started until `ensure`.

    `server` is where it leads, as ADDRESS:PORT.
    """

    what = "the proxy"
    pools_sessions = True

    def __init__(
        self,
        lab: labs.Lab,
        place: labs.Place,
        server: str,
        keep: tuple[int, ...] = (),
        others: Sequence[str] = (),
    ) -> None:
        found = shutil.which("pgbouncer", path=process.PATH)
        if found is None:
            raise SiteError(
                f"pgbouncer is not installed; run `{INSTALL}`, or leave the arm with `access: pgbouncer` out"
            )
        super().__init__(lab, place, keep, labs.service_user("postgres"))
        self.server, self.binary = server, Path(found)
        self.socket = lab.socket(self.folder / f".s.PGSQL.{place.port}")
        self.config = self.folder / "pgbouncer.ini"
        self.users = self.folder / "users.txt"
        self.leftovers = (self.socket, self.socket.with_name(f"{self.socket.name}.lock"))
        self._accounts = {0}

    @staticmethod
    def obstacle() -> str | None:
        """Return why this machine can't make one, or None."""
        return None if version() else f"pgbouncer is not installed; `{INSTALL}`"

    def ensure(self) -> None:
        """Start the proxy if it does not run, and prove that the port is its own without connecting to it."""
        if self.is_up:
            return
        self._must_have_ports(self.place.port)
        address, _, port = self.server.rpartition(":")
        lines = [
            "[databases]",
            f"{labs.SCHEMA} = host={address} port={port} dbname={labs.SCHEMA}",
            "[pgbouncer]",
            f"listen_addr={self.place.address}",
            f"listen_port={self.place.port}",
            f"unix_socket_dir={self.folder}",
            "unix_socket_mode=0700",
            f"auth_file={self.users}",
            f"stats_users={CONSOLE}",
            f"admin_users={CONSOLE}",
            *(f"{key}={value}" for key, value in SETTINGS.items()),
        ]
        labs.write_private(self.config, "\n".join(lines) + "\n", self.user)
        self._write_users()
        self._begin([str(self.binary), str(self.config)], self._is_answering)

    def let_in(self, account: int) -> None:
        """Make one more of sysbench's accounts known to it."""
        if account not in self._accounts:
            self._accounts.add(account)
            self._write_users()
            self._ask("RELOAD")

    def identity(self) -> dict[str, Any]:
        """Return what tells this very proxy from any other, and what was set since it began."""
        child = self.running()
        try:
            held = self._settings()
        except psycopg.Error as error:
            raise SiteError(f"the proxy does not answer on {self.socket}: {error}; see {self.log}") from None
        return {
            "proxy_pid": child.pid,
            "proxy_started": child.started,
            "proxy_config_hash": self.config_hash,
            "proxy_settings": held,
        }

    def facts(self) -> dict[str, Any]:
        """Return what the proxy says it is, over its console; SiteError where a setting was not taken."""
        self.running()
        found = self._settings()
        wrong = [
            f"{key} is {found.get(key)}, asked {SETTINGS[key]}"
            for key in READ_BACK
            if found.get(key) != SETTINGS[key]
        ]
        if wrong:
            raise SiteError(f"PgBouncer did not take its settings: {'; '.join(wrong)}; see {self.log}")
        return {
            "name": "pgbouncer",
            "version": version(),
            "binary": str(self.binary),
            "binary_sha256": files.sha256(self.binary),
            "threads": 1,
            "max_connections": int(found["max_client_conn"]),
            "pool_mode": found["pool_mode"],
            "config_hash": self.config_hash,
        }

    def _settings(self) -> dict[str, str]:
        return {key: value for key, value in self._config().items() if key in READ_BACK}

    def _config(self) -> dict[str, str]:
        return {str(row[0]): str(row[1] or "") for row in self._ask("SHOW CONFIG")}

    def _is_answering(self) -> bool:
        try:
            self._config()
        except psycopg.Error:
            return False
        return self._holds_port()

    def _ask(self, command: str) -> list[tuple[Any, ...]]:
        """Ask its console over its socket; it takes plain statements only."""
        with psycopg.connect(
            host=str(self.folder),
            port=self.place.port,
            user=CONSOLE,
            password=self.lab.password(0, DRIVER),
            dbname="pgbouncer",
            connect_timeout=5,
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
        ) as connection:
            cursor = connection.execute(command)
            return cursor.fetchall() if cursor.description else []

    def _write_users(self) -> None:
        """Write the accounts with their passwords, which it needs to enter the server; only it reads them."""
        known = {labs.user_of(one): self.lab.password(one, DRIVER) for one in sorted(self._accounts)}
        known[CONSOLE] = self.lab.password(0, DRIVER)
        lines = [f'"{name}" "{word}"' for name, word in known.items()]
        labs.write_private(self.users, "\n".join(lines) + "\n", self.user)


def version() -> str | None:
    """Return the version of the installed PgBouncer, or None."""
    found = shutil.which("pgbouncer", path=process.PATH)
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=20).stdout
    match = re.search(r"PgBouncer ([0-9.]+)", said)
    return match[1] if match else None
