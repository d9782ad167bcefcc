"""PgBouncer between client and PostgreSQL, pooling sessions.

sysbench prepares its statements, and PgBouncer follows prepared statements from session to session only
since 1.21, so each client keeps a session of the server for as long as it is connected. A session is closed
with its client: one kept open would be a stranger on the server between two runs.
"""

import re
from typing import Any

import psycopg

from benchbook.core.study import descriptors
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.descriptors.pgbouncer import TRAITS
from benchbook.sites.machine.contract import Machine
from benchbook.sites.proxies.proxy import Proxy

USERS = "users.txt"
DRIVER = descriptors.PGSQL
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
    "pool_mode", "max_client_conn", "default_pool_size", "server_lifetime", "server_reset_query",
    "auth_type",
)  # fmt: skip


class PgBouncer(Proxy):
    """One pool in front of one server; `given` is ours, with the arm's settings in place of it."""

    traits = TRAITS
    version_words = re.compile(r"PgBouncer ([0-9.]+)")
    config_name = "pgbouncer.ini"
    addresses_as = ("host={} port={}", "listen_addr={}\nlisten_port={}")
    pools_sessions = True

    def __init__(self, machine: Machine, place: labs.PartLocation, *inputs: Any) -> None:
        super().__init__(machine, place, *inputs)
        self.lab = machine.lab
        settings = self.asked.settings
        self.given = SETTINGS | {
            name: str(int(value) if isinstance(value, bool) else value) for name, value in settings.items()
        }
        self.compared = dict.fromkeys((*READ_BACK, *settings))
        name = f".s.PGSQL.{place.port}"
        self.socket = f"{self.role}/{name}"
        machine.socket(self.socket)
        self.leftovers = (name, f"{name}.lock")

    def _start(self) -> None:
        address, _, port = self.servers[0].rpartition(":")
        lines = [
            "[databases]",
            f"{labs.SCHEMA} = host={address} port={port} dbname={labs.SCHEMA}",
            "[pgbouncer]",
            f"listen_addr={self.place.address}",
            f"listen_port={self.place.port}",
            f"unix_socket_dir={self.folder}",
            "unix_socket_mode=0700",
            f"auth_file={self.folder / USERS}",
            f"stats_users={CONSOLE}",
            f"admin_users={CONSOLE}",
            *(f"{key}={value}" for key, value in self.given.items()),
        ]
        self._configure("\n".join(lines) + "\n")
        # The accounts with their passwords, which it needs to enter the server; only it reads them.
        users = "".join(f'"{name}" "{self.lab.password(DRIVER)}"\n' for name in (labs.USER, CONSOLE))
        self.machine.write(f"{self.role}/{USERS}", users, self.user)
        self._begin([self.binary, str(self.config)], self._is_answering)

    def identity(self) -> dict[str, Any]:
        return super().identity() | {"proxy_settings": self._settings()}

    def facts(self) -> dict[str, Any]:
        """Facts that the proxy tells, over its console; SiteError if a setting was not taken."""
        held = self._settings()
        self._verify_settings({key: self.given[key] for key in self.compared}, held)
        limit = int(held["max_client_conn"])
        return super().facts() | {"threads": 1, "max_connections": limit, "pool_mode": held["pool_mode"]}

    def _settings(self) -> dict[str, str]:
        """Its settings to compare, over its console; it takes plain statements only."""
        account = {"user": CONSOLE, "password": self.lab.password(DRIVER), "dbname": "pgbouncer"}
        how = {"connect_timeout": 5, "cursor_factory": psycopg.ClientCursor}
        try:
            with self.machine.connect_pgsql(self.socket, **account, **how) as connection:
                rows = connection.execute("SHOW CONFIG").fetchall()
        except psycopg.Error as error:
            raise SiteError(f"{self._named} does not answer: {error}; see {self.log}") from None
        return {str(key): str(value or "") for key, value, *_ in rows if key in self.compared}
