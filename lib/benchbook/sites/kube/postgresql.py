"""PostgreSQL in a pod: its files and accounts, and what it says of itself over SQL."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from typing import Any

import psycopg
import sqlalchemy

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import settings as reserved
from benchbook.sites.engines import postgresql_accounts as accounts
from benchbook.sites.engines import postgresql_settings as settings
from benchbook.sites.engines.postgresql import CRASH, HARMLESS
from benchbook.sites.engines.postgresql_dialect import ADMIN
from benchbook.sites.hosts import pgsql
from benchbook.sites.kube.layout import Part, pod_of
from benchbook.sites.kube.namespace import LOOPBACK, StudyNamespace
from benchbook.sites.kube.pods import ACCOUNT, CONFIG, HOME, OWN
from benchbook.sites.kube.server import Server

# Always there, and not measured: a session in it is in no book of the measured schema.
FIRST = "postgres"
# PostgreSQL does not run as root, and its TERM waits until every session has ended by itself.
SHELL = """end_by=INT
bin=$(dirname "$(command -v postgres || ls /usr/lib/postgresql/*/bin/postgres | sort -V | tail -n 1)")
as="setpriv --reuid=postgres --regid=postgres --init-groups"
make_data() {{
  rm -rf "$data.new" &&
    mkdir -p {own} "$data.new" && chmod 700 "$data.new" && chown postgres {own} "$data.new" &&
    $as "$bin/initdb" --pgdata="$data.new" --username={admin} --pwfile={account}/{file} --no-sync \\
      --auth-local=reject --auth-host=scram-sha-256 --no-locale --encoding=UTF8 >/dev/null &&
    mv "$data.new" "$data"
}}
serve() {{
  mkdir -p {own} && chown postgres {own}
  exec $as "$bin/postgres" --config-file={config}/postgresql.conf -c cluster_name="$1"
}}
"""
# Who may come in: the administrator through a forwarded port, which comes out on the pod's own loopback, and
# sysbench's accounts from anywhere; all by a password, and nobody else.
ACCESS = """host all {admin} 127.0.0.1/32 scram-sha-256
host all {admin} 0.0.0.0/0 reject
local all {admin} reject
host {schema} all 0.0.0.0/0 scram-sha-256
local {schema} all scram-sha-256
"""
# The file of the Secret with the administrator's password.
PASSWORD_FILE = "administrator"


class PostgreSQL(Server):
    """A PostgreSQL in its pod. The word that it was started with is the name of its cluster."""

    crash = CRASH
    has_children = True

    def __init__(self, space: StudyNamespace, part: Part) -> None:
        super().__init__(space, part)
        self.asked = settings.complete(space.study.engine.settings)
        self._opened = 0

    @classmethod
    def files(cls, engine: Any, port: int) -> dict[str, str]:
        shell = SHELL.format(own=OWN, config=CONFIG, account=ACCOUNT, file=PASSWORD_FILE, admin=ADMIN)
        rules = ACCESS.format(admin=ADMIN, schema=labs.SCHEMA)
        reserved.must_be_free(engine)
        places = {
            "port": port,
            # Who may come in is for the accounts, which have passwords, and for the cluster's own rules.
            "listen_addresses": "0.0.0.0",
            "hba_file": f"{CONFIG}/hba.conf",
            "data_directory": f"{HOME}/data",
            "ident_file": f"{HOME}/data/pg_ident.conf",
            "unix_socket_directories": OWN,
            "logging_collector": "off",
        }
        written = settings.written(settings.complete(engine.settings), places)
        return {"engine.sh": shell, "hba.conf": rules, "postgresql.conf": written}

    @classmethod
    def secret(cls, password: str, admin_password: str) -> dict[str, str]:
        return {PASSWORD_FILE: admin_password}

    @classmethod
    def socket(cls, port: int) -> Path:
        return Path(f"{OWN}/.s.PGSQL.{port}")

    @property
    def made_with(self) -> dict[str, Any]:
        """The administrator's password is kept with the data."""
        locks = hashlib.sha256(self.space.admin_password().encode()).hexdigest()[:12]
        return self.made_of | {"settings": {}, "locks": locks}

    def said_word(self) -> str | None:
        try:
            with self._connect(FIRST) as connection:
                row = connection.execute("SELECT current_setting('cluster_name')").fetchone()
        except psycopg.Error:
            return None
        return str(row[0]) if row else None

    def begun(self) -> None:
        try:
            accounts.set_up(self._connect, self.space.lab.password(accounts.DRIVER))
        except psycopg.Error as error:
            raise SiteError(
                f"{pod_of(self.part)}: the server can't be set up: {' '.join(str(error).split())}"
            ) from None

    def who(self) -> dict[str, Any]:
        return accounts.identity(self._connect, f"{pod_of(self.part)}: the server")

    def admin(self) -> sqlalchemy.Engine:
        return accounts.engine(self._connect, lambda: self._opened)

    def facts(self) -> dict[str, Any]:
        version, chosen = str(self.who()["version"]), self.space.study.engine.settings
        image = self.of_image(version, f'. {CONFIG}/engine.sh; sha256sum "$bin/postgres"')
        return settings.facts(self.admin(), version, self.asked, chosen, PurePosixPath(HOME)) | image

    def log_errors(self, mark: int) -> list[str]:
        return [line for line in super().log_errors(mark) if not HARMLESS.search(line)]

    def _connect(self, database: str = labs.SCHEMA) -> psycopg.Connection[Any]:
        """Open the administrator's connection; what it adds to the server's counters is in them at once."""
        space, pod, port = self.reached
        try:
            host = space.host_of(pod)
        except ConnectionError as error:
            raise psycopg.OperationalError(f"no way to the server: {error}") from None
        self._opened += 1
        account: dict[str, Any] = {"user": ADMIN, "password": space.admin_password(), "dbname": database}
        how: dict[str, Any] = {"connect_timeout": 10, "sslmode": "disable", "autocommit": True}
        connection = pgsql.connect(host, (LOOPBACK, port), space.lab, **account, **how)
        connection.prepare_threshold = None
        connection.execute("SELECT pg_stat_force_next_flush()")
        return connection
