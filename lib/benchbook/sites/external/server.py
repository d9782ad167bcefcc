"""View of a server that is not ours by our account, and a check that the schema in it is ours."""

import hashlib
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from ssl import SSLContext
from typing import Any

import pymysql
import sqlalchemy
from sqlalchemy import Connection, text

from benchbook.core.study import descriptors
from benchbook.core.study.study_hosts import Existing
from benchbook.core.util import process_env
from benchbook.core.util.errors import SiteError
from benchbook.sites import settings, sql
from benchbook.sites import workspace as labs
from benchbook.sites.engines.dialect import MARK, MYSQL
from benchbook.sites.machine.supervised_process import Address

MADE = re.compile(r"sbtest[0-9]+")
"""Tables that prepare makes."""
WHO = ("version", "hostname", "port", "server_uid", "server_uuid", "datadir")
# What bears on a benchmark, out of the many variables of a server whose others change by the hour.
TELLING = (
    "innodb_", "max_", "sync_", "query_cache", "thread_", "table_", "character_set_", "collation_",
    "event_scheduler", "general_log", "log_output", "optimizer_", "slow_query_log", "sql_mode", "binlog_",
    "log_bin", "performance_schema", "tx_isolation", "transaction_isolation",
)  # fmt: skip
CHANGING = ("_ts", "_now", "_status", "_size_max", "last_")


class ExternalServer:
    """A server of MySQL's family that others run, over the benchmark's own account; another has its own."""

    driver = descriptors.MYSQL

    def engine(self, connect: Callable[[], Any], **messages: Any) -> sqlalchemy.Engine:
        return sql.make_engine(connect, **messages)

    def connect(self, place: Address, account: tuple[str, str], _: str, tls: SSLContext | None) -> Any:
        """Open a connection with an account."""
        how: dict[str, Any] = {"ssl": tls} if tls else {"ssl_disabled": True}
        how |= dict(zip(("host", "port", "user", "password"), (*place, *account), strict=True))
        return pymysql.connect(autocommit=True, connect_timeout=10, **how)

    def tables(self, connection: Connection, database: str) -> set[str] | None:
        """Names of all tables of a schema; None if there is none, or no right to it."""
        if database not in connection.execute(text("SHOW DATABASES")).scalars().all():
            return None
        names = "SELECT table_name FROM information_schema.tables WHERE table_schema = :schema"
        return {str(name) for (name,) in connection.execute(text(names), {"schema": database})}

    def named(self, database: str, table: str) -> str:
        """A table's name as it stands in a statement."""
        return f"`{database}`.{table}"

    def enter(self, connection: Connection, database: str, token: str) -> None:
        """Write into an empty schema that it is a lab's, before anything else is made in it."""
        table = self.named(database, MARK)
        connection.execute(text(f"CREATE TABLE IF NOT EXISTS {table} (lab CHAR(16) PRIMARY KEY)"))
        connection.execute(text(f"INSERT IGNORE INTO {table} VALUES (:lab)"), {"lab": hash_token(token)})

    def who(self, connection: Connection) -> tuple[str, str]:
        """The engine's name in study files, and its version."""
        variables = MYSQL.variables(connection)
        statement = f"{variables.get('version', '')} {variables.get('version_comment', '')}".lower()
        engines = reversed([*descriptors.load_engines().items()])
        words = {of.said_by: name for name, of in engines if of.said_by is not None}
        # The one that is known by no word of its own is what is left.
        name = next(name for word, name in sorted(words.items(), reverse=True) if word in statement)
        return name, str(variables.get("version"))

    def buffer_pool_bytes(self, connection: Connection) -> int:
        """Memory in which the server keeps pages of tables; bytes."""
        return int(connection.execute(text("SELECT @@innodb_buffer_pool_size")).scalar_one())

    def identity(self, connection: Connection) -> dict[str, Any]:
        variables = MYSQL.variables(connection)
        return {name: variables[name] for name in WHO if name in variables}

    def facts(self, connection: Connection, requests: Mapping[str, Any]) -> dict[str, Any]:
        """The engine and the rights of our account; SettingsDiffer if a setting is another."""
        variables = MYSQL.variables(connection)
        read = settings.report_settings(requests, requests, variables)
        engine, version = self.who(connection)
        messages = sorted(
            f"{name}={value}"
            for name, value in variables.items()
            if name.startswith((*TELLING, f"{engine}_")) and not any(part in name for part in CHANGING)
        )
        digest = hashlib.sha256("\n".join(messages).encode()).hexdigest()
        comment = variables.get("version_comment")
        its: dict[str, Any] = {"name": engine, "version": version, "version_comment": comment, **read}
        its |= {"variables": len(messages), "variables_sha256": digest}
        grants = " ".join(str(row[0]) for row in connection.execute(text("SHOW GRANTS")))
        sees_all = "PROCESS" in grants or "ALL PRIVILEGES ON *.*" in grants
        return {"engine": its, "rights": describe_rights(sees_all)}


def describe_rights(sees_all: bool) -> dict[str, str]:
    """Rights of our account to see and to set."""
    observed = "all" if sees_all else "our own only: another client on this server would go unseen"
    return {"sessions": observed, "settings": "read, not set"}


def check_password(existing: Existing) -> list[str]:
    """Reason for a missing password, as far as this process knows; nothing if there is one."""
    name = existing.password_env
    if name is None or process_env.read_password(name):
        return []
    return [f"site.existing.password_env: {name}: this variable is not set; `export {name}=...` first"]


def check_account_file(existing: Existing) -> Path:
    """Place of the account that a study names; only its owner may read it, else SiteError."""
    path = Path(existing.account_file or "").expanduser()
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise SiteError(f"{path}: others may read this account; `chmod 600 {path}`")
    return path


def prepare_account(existing: Existing, lab: labs.Lab, drivers: Iterable[str]) -> Path:
    """The file with the benchmark's account, mode 0600; one from the environment goes to the lab."""
    if existing.account_file is not None:
        for driver in drivers:
            labs.read_secret(Path(existing.account_file).expanduser(), driver)
        return check_account_file(existing).resolve()
    assert existing.password_env is not None
    if why := check_password(existing):
        raise SiteError(why[0])
    password = process_env.read_password(existing.password_env)
    if '"' in password or "\n" in password:
        wrong = "a quote or a new line in it can't be passed on; choose another"
        raise SiteError(f"{existing.password_env}: {wrong}")
    lab.private_folder("secrets", None)
    statement = "".join(f'{name}-user="{existing.user}"\n{name}-password="{password}"\n' for name in drivers)
    return labs.write_private(lab.folder / "secrets" / "existing.cnf", statement)


def check_ownership(
    theirs: ExternalServer, connection: Connection, database: str, tokens: Collection[str]
) -> str | None:
    """Reason against our use of a schema; None: it is empty, or marked by a lab of this clone."""
    tables = theirs.tables(connection, database)
    if tables is None:
        return f"there is no schema {database}, or no right to it; create it and grant ALL on it"
    if MARK in tables:
        query = text(f"SELECT lab FROM {theirs.named(database, MARK)}")
        if {str(lab) for (lab,) in connection.execute(query)} & {hash_token(token) for token in tokens}:
            return None
        return (
            f"schema {database} is used by a study of another clone; name another schema, or, once that "
            f"study is over, `DROP TABLE {', '.join(_list_tables(theirs, database, tables))};`"
        )
    if tables:
        return (
            f"schema {database} holds tables that are not ours, such as {sorted(tables)[0]}; "
            "name an empty schema in site.existing.database"
        )
    return None


def drop_tables(
    theirs: ExternalServer, connection: Connection, database: str, has_scripts: bool = False
) -> list[str]:
    """Drop the mark and prepare's tables in a schema of ours, with custom scripts all; return their names."""
    tables = _list_tables(theirs, database, theirs.tables(connection, database) or set(), has_scripts)
    if tables:
        if has_scripts:
            connection.execute(text("SET FOREIGN_KEY_CHECKS = 0"))
        connection.execute(text(f"DROP TABLE {', '.join(tables)}"))
    return tables


def _list_tables(
    theirs: ExternalServer, database: str, tables: set[str], has_scripts: bool = False
) -> list[str]:
    results = sorted(name for name in tables if has_scripts or name == MARK or MADE.fullmatch(name))
    return [theirs.named(database, name) for name in results]


def hash_token(token: str) -> str:
    """Mark of a lab's schema; the token itself does not leave its place."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]
