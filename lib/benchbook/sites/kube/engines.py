"""How each engine is started in its pod: the files of its ConfigMap. Pure.

`engine.sh` gives two functions to the pod's first process: `make_data`, and `serve WORD`, which becomes the
server. The settings are those of the engine on one machine, but for where it lives.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import settings
from benchbook.sites.engines import postgresql_settings as postgresql
from benchbook.sites.engines.postgresql_dialect import ADMIN
from benchbook.sites.kube.pods import ACCOUNT, CONFIG, HOME
from benchbook.sites.tidb import config

OWN = f"{HOME}/own"
# Where a server listens in its container, for a client that is in it.
SOCKETS = {"mariadb": Path(f"{OWN}/m.sock"), "tidb": Path(f"{OWN}/t.sock")}
MARIADB = """make_data() {{
  mkdir -p {own} && chown mysql {own} &&
    rm -rf "$data.new" &&
    mariadb-install-db --no-defaults --user=mysql --datadir="$data.new" \\
      --auth-root-authentication-method=socket --skip-test-db --skip-name-resolve --skip-log-bin {fixed} &&
    mv "$data.new" "$data"
}}
serve() {{
  mkdir -p {own} && chown mysql {own}
  exec mariadbd --defaults-file={config}/my.cnf --user=mysql --report-host="$1"
}}
"""
# PostgreSQL does not run as root, and its TERM waits until every session has ended by itself.
POSTGRESQL = """end_by=INT
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
# The file of the Secret with the administrator's password, for PostgreSQL.
PASSWORD_FILE = "administrator"
# The word of each start is a label, which TiDB itself does nothing with.
TIDB = """make_data() {{ mkdir -p "$data"; }}
serve() {{
  mkdir -p {own}/tmp
  sed "s/{word}/$1/" {config}/tidb.toml >{own}/tidb.toml
  exec tidb-server -config={own}/tidb.toml -store=unistore -path="$data" -socket={own}/t.sock \\
    -host=0.0.0.0 -P={port} -status-host=127.0.0.1 -status={status} -initialize-sql-file={account}/init.sql
}}
"""
WORD, LABEL = "@WORD@", "labels.benchbook"
# The first version of TiDB that makes its accounts before it listens.
TIDB_FROM = 6.6
STATUS_PORTS = 10_000


def files(engine: Any, port: int) -> dict[str, str]:
    """Return the files of an engine's ConfigMap by name; SiteError for an engine that has none."""
    if engine.name == "mariadb":
        return {"engine.sh": _mariadb_shell(engine), "my.cnf": my_cnf(engine, port)}
    if engine.name == "tidb":
        shell = TIDB.format(
            own=OWN, config=CONFIG, port=port, status=status_port(port), account=ACCOUNT, word=WORD
        )
        return {"engine.sh": shell, "tidb.toml": tidb_toml(engine)}
    if engine.name == "postgresql":
        shell = POSTGRESQL.format(own=OWN, config=CONFIG, account=ACCOUNT, file=PASSWORD_FILE, admin=ADMIN)
        rules = ACCESS.format(admin=ADMIN, schema=labs.SCHEMA)
        return {"engine.sh": shell, "hba.conf": rules, "postgresql.conf": postgresql_conf(engine, port)}
    raise SiteError(f"engine.name: {engine.name}: not made in a cluster; write mariadb, postgresql or tidb")


def my_cnf(engine: Any, port: int) -> str:
    """Return a server's settings file; its user reads accounts from a file of the Secret."""
    settings.must_be_free(engine)
    places = {
        "port": port,
        # Who may come in is for the account, which has a password, and for the cluster's own rules.
        "bind_address": "0.0.0.0",
        "socket": f"{OWN}/m.sock",
        "datadir": f"{HOME}/data",
        "tmpdir": OWN,
        "pid_file": f"{OWN}/m.pid",
        "secure_file_priv": OWN,
        "init_file": f"{ACCOUNT}/init.sql",
    }
    lines = [f"{key}={value}" for key, value in places.items()]
    lines += [
        f"{key}={settings.text(value)}" for key, value in sorted(settings.complete(engine.settings).items())
    ]
    return "[mariadbd]\n" + "\n".join(lines) + "\n"


def postgresql_conf(engine: Any, port: int) -> str:
    """Return a PostgreSQL's settings file; who may come in is in a file beside it."""
    settings.must_be_free(engine)
    places = {
        "port": port,
        # As for MariaDB: who may come in is for the accounts, and for the cluster's own rules.
        "listen_addresses": "0.0.0.0",
        "hba_file": f"{CONFIG}/hba.conf",
        "data_directory": f"{HOME}/data",
        "ident_file": f"{HOME}/data/pg_ident.conf",
        "unix_socket_directories": OWN,
        "logging_collector": "off",
    }
    return postgresql.written(postgresql.complete(engine.settings), places)


def socket(engine: str, port: int) -> Path:
    """Return where a server listens in its container, for a client that is in it."""
    return SOCKETS.get(engine, Path(f"{OWN}/.s.PGSQL.{port}"))


def tidb_toml(engine: Any) -> str:
    """Return TiDB's settings file, with a place for the word of each start."""
    places = {"temp-dir": f"{OWN}/tmp", "tmp-storage-path": f"{OWN}/tmp", LABEL: WORD}
    return config.toml(places | tidb_asked(engine).items)


def tidb_asked(engine: Any) -> config.Asked:
    """Return what TiDB is asked to be; SiteError for what is the site's own, or for a version too old."""
    settings.must_be_free(engine)
    if old := too_old(engine):
        raise SiteError(old)
    return config.complete(engine.settings, engine.version or str(TIDB_FROM))


def too_old(engine: Any) -> str | None:
    """Return why a version of TiDB can't be in a pod, or None."""
    if engine.version is None or tuple(map(int, engine.version.split(".")[:2])) >= (6, 6):
        return None
    return (
        f"engine.version: {engine.version}: before {TIDB_FROM} TiDB lets anybody in before it has accounts; "
        f"write {TIDB_FROM} or a later one"
    )


def status_port(port: int) -> int:
    """Return the port on a pod's loopback at which a TiDB tells of itself."""
    return port + STATUS_PORTS if port + STATUS_PORTS < 1 << 16 else port - STATUS_PORTS


def secret(engine: str, password: str, admin_password: str) -> dict[str, str]:
    """Return the files of the Secret from which an engine's server has its accounts."""
    if engine == "postgresql":
        return {PASSWORD_FILE: admin_password}
    return {"init.sql": accounts(password, admin_password, engine)}


def accounts(password: str, admin_password: str, engine: str) -> str:
    """Return the statements with which a server makes its schema and its two accounts before it listens.

    The administrator is let in from the pod itself alone, where a forwarded port comes out. MariaDB does this
    at each start, TiDB at its first, when its own administrator without a password is removed.
    """
    made = []
    for name, host, word, right in (
        (labs.USER, "%", password, f"ALL PRIVILEGES ON {labs.SCHEMA}.*"),
        (ADMIN, "127.0.0.1", admin_password, "ALL PRIVILEGES ON *.*"),
    ):
        further = " WITH GRANT OPTION" if name == ADMIN else ""
        account = f"'{name}'@'{host}'"
        made += [
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{word}';",
            f"ALTER USER {account} IDENTIFIED BY '{word}';",
            f"GRANT {right} TO {account}{further};",
        ]
    closed = ["DROP USER IF EXISTS 'root'@'%';"] if engine == "tidb" else []
    return "\n".join([f"CREATE DATABASE IF NOT EXISTS {labs.SCHEMA};", *made, *closed]) + "\n"


def _mariadb_shell(engine: Any) -> str:
    asked = settings.complete(engine.settings)
    fixed = " ".join(
        shlex.quote(f"--{key}={settings.text(asked[key])}") for key in settings.AT_CREATION if key in asked
    )
    return MARIADB.format(own=OWN, config=CONFIG, fixed=fixed)
