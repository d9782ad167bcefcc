"""ProxySQL between clients and servers of MySQL's family, without query rules, monitoring or kept sessions.

It is not in the system's packages, and was tried against a stand-in for its program, not against itself.
"""

import re
from typing import Any

import pymysql

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.descriptors.proxysql import TRAITS
from benchbook.sites.proxies.proxy import Proxy

ADMIN, ACCOUNTS = "benchbook", "accounts.cnf"
MAX_CONNECTIONS = 4096
# A session kept for the next client would be a stranger on the server, and a health check a statement that
# no client made.
SETTINGS: dict[str, Any] = {
    "max_connections": MAX_CONNECTIONS,
    "multiplexing": False,
    "free_connections_pct": 0,
    "monitor_enabled": False,
    "default_schema": labs.SCHEMA,
}
ASKED = "SELECT variable_name, variable_value FROM runtime_global_variables"


class ProxySQL(Proxy):
    """One ProxySQL; `given` is ours, with the arm's settings in place of it."""

    traits = TRAITS
    version_words = re.compile(r"ProxySQL version v?([0-9.]+)")
    config_name = "proxysql.cnf"
    addresses_as = ('address="{}", port={}', "{}:{}")
    leftovers = ("proxysql.db", "proxysql.pid", "proxysql_stats.db")
    pools_sessions = True
    start_s = 30.0

    @property
    def given(self) -> dict[str, str]:
        """Variables that it starts with, as its file writes them."""
        requests = {"threads": self.threads, **SETTINGS, **self.asked.settings}
        return {name: _format_value(value) for name, value in requests.items()}

    def _start(self) -> None:
        secret, limit = self.machine.lab.password(), self.given["max_connections"]
        ends = [server.rpartition(":") for server in self.servers]
        servers = [
            f'{{ address="{host}", port={port}, hostgroup=0, max_connections={limit} }}'
            for host, _, port in ends
        ]
        listens = f'    interfaces="{self.place.address}:{self.place.port}"'
        text = [
            f'@include "{self.folder / ACCOUNTS}"',
            *("mysql_variables={", listens),
            *(f"    {name}={value}" for name, value in self.given.items()),
            *("}", "mysql_servers=(", ",\n".join(servers), ")"),
        ]
        self._configure("\n".join(text) + "\n")
        # Accounts stand in a file of their own, which only it reads and no copy is kept of.
        accounts = (
            f'admin_variables={{ admin_credentials="{ADMIN}:{secret}"; '
            f'mysql_ifaces="{labs.LOOPBACK}:{self.place.port + 1}" }}\n'
            f'mysql_users=({{ username="{labs.USER}", password="{secret}", default_hostgroup=0 }})\n'
        )
        self.machine.write(f"{self.role}/{ACCOUNTS}", accounts, self.user)
        argv = [self.binary, "-f", "--initial", "-c", str(self.config), "-D", str(self.folder)]
        self._begin(argv, self._is_answering)

    def identity(self) -> dict[str, Any]:
        held = self._settings()
        return super().identity() | {"proxy_settings": {name: held.get(name) for name in self.given}}

    def facts(self) -> dict[str, Any]:
        held = self._settings()
        self._verify_settings(self.given, held)
        limit = int(held["max_connections"])
        return super().facts() | {"threads": int(held["threads"]), "max_connections": limit}

    def _settings(self) -> dict[str, str]:
        account: dict[str, Any] = {"user": ADMIN, "password": self.machine.lab.password(), "read_timeout": 10}
        try:
            with self.machine.connect((labs.LOOPBACK, self.place.port + 1), **account) as connection:
                cursor = connection.cursor()
                cursor.execute(ASKED)
                rows = cursor.fetchall()
        except pymysql.MySQLError as error:
            raise SiteError(f"{self._named} does not answer: {error}; see {self.log}") from None
        return {str(name).removeprefix("mysql-"): _format_value(value) for name, value in rows}


def _format_value(value: Any) -> str:
    """A value as its file has it: text in quotation marks, switches as true or false."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if re.fullmatch(r"-?[0-9.]+|true|false", text) else f'"{text}"'
