"""What a server that is not ours lets our account see, and whether the schema in it is ours."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from benchbook.core import surroundings, traits
from benchbook.core.errors import SiteError
from benchbook.core.study_existing import Existing
from benchbook.sites import lab as labs
from benchbook.sites import settings
from benchbook.sites.engines.dialect import MYSQL

MARK = "benchbook_lab"
MADE = re.compile(r"sbtest[0-9]+")
"""Tables that prepare makes."""
WHO = ("version", "hostname", "port", "server_uid", "server_uuid", "datadir")
# What bears on a benchmark, out of the many variables of a server whose others change by the hour.
TELLING = (
    "innodb_", "max_", "sync_", "query_cache", "thread_", "table_", "character_set_", "collation_",
    "event_scheduler", "general_log", "log_output", "optimizer_", "slow_query_log", "sql_mode", "binlog_",
    "log_bin", "tidb_", "performance_schema", "tx_isolation", "transaction_isolation",
)  # fmt: skip
CHANGING = ("_ts", "_now", "_status", "_size_max", "last_")


def account(asked: Existing, lab: labs.Lab) -> Path:
    """Return the file with the benchmark's account, mode 0600; one from the environment goes into the lab."""
    if asked.account_file is not None:
        path = Path(asked.account_file).expanduser()
        labs.read_secret(path)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise SiteError(f"{path}: others may read this account; `chmod 600 {path}`")
        return path.resolve()
    assert asked.password_env is not None
    password = surroundings.password(asked.password_env)
    if not password:
        raise SiteError(
            f"site.existing.password_env: {asked.password_env}: this variable is not set; set it first"
        )
    if '"' in password or "\n" in password:
        raise SiteError(
            f"{asked.password_env}: a quote or a new line in it can't be passed on; choose another"
        )
    lab.own("secrets", None)
    said = f'mysql-user="{asked.user}"\nmysql-password="{password}"\n'
    return labs.write_private(lab.folder / "secrets" / "existing.cnf", said)


def whose(connection: Connection, database: str, tokens: Collection[str]) -> str | None:
    """Return why a schema is not ours to use, or None: it is empty, or has the mark of a lab of this clone.

    `tokens` are those of the clone's labs: its studies may use one schema after another.
    """
    names = "SELECT table_name FROM information_schema.tables WHERE table_schema = :schema"
    tables = {str(name) for (name,) in connection.execute(text(names), {"schema": database})}
    if MARK in tables:
        marks = {
            str(lab) for (lab,) in connection.execute(text(f"SELECT lab FROM {_quoted(database)}.{MARK}"))
        }
        if marks & {_id(token) for token in tokens}:
            return None
        made = ", ".join([MARK, *sorted(name for name in tables if MADE.fullmatch(name))])
        return (
            f"schema {database} is used by a study of another clone; name another schema, or, once that "
            f"study is over, `USE {database}; DROP TABLE {made};`"
        )
    if tables:
        return (
            f"schema {database} holds tables that are not ours, such as {sorted(tables)[0]}; "
            "name an empty schema in site.existing.database"
        )
    schemas = connection.execute(text("SHOW DATABASES")).scalars().all()
    if database not in schemas:
        return f"there is no schema {database}, or no right to it; create it and grant ALL on it"
    return None


def mark(connection: Connection, database: str, token: str) -> None:
    """Write into an empty schema that it is ours, before anything else is made in it."""
    table = f"{_quoted(database)}.{MARK}"
    connection.execute(text(f"CREATE TABLE IF NOT EXISTS {table} (lab CHAR(16) PRIMARY KEY)"))
    connection.execute(text(f"INSERT IGNORE INTO {table} VALUES (:lab)"), {"lab": _id(token)})


def identity(connection: Connection) -> dict[str, Any]:
    """Return what tells this server from any other."""
    known = MYSQL.variables(connection)
    return {name: known[name] for name in WHO if name in known}


def _named(comment: str) -> str:
    """Return the engine of a server by its version and comment: the one whose word they hold."""
    known = {of.said_by: name for name, of in reversed([*traits.engines().items()]) if of.said_by is not None}
    # The one that is known by no word of its own is what is left.
    return next(name for word, name in sorted(known.items(), reverse=True) if word in comment)


def facts(connection: Connection, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the engine, the rights of our account, and what differs from the study's settings."""
    known = MYSQL.variables(connection)
    told = sorted(
        (name, value)
        for name, value in known.items()
        if name.startswith(TELLING) and not any(part in name for part in CHANGING)
    )
    comment = f"{known.get('version', '')} {known.get('version_comment', '')}".lower()
    grants = " ".join(str(row[0]) for row in connection.execute(text("SHOW GRANTS")))
    sees_all = "PROCESS" in grants or "ALL PRIVILEGES ON *.*" in grants
    return {
        "engine": {
            "name": _named(comment),
            "version": known.get("version"),
            "version_comment": known.get("version_comment"),
            "settings": settings.recorded(asked, asked, lambda key: settings.read_back(key, known)),
            "variables": len(told),
            "variables_sha256": hashlib.sha256("\n".join(map("=".join, told)).encode()).hexdigest(),
        },
        "rights": {
            "sessions": "all" if sees_all else "our own only: another client on this server would go unseen",
            "settings": "read, not set",
        },
        "differing": settings.differences(asked, known),
    }


def _quoted(database: str) -> str:
    return f"`{database}`"


def _id(token: str) -> str:
    """Return what marks a schema as a lab's; the token itself stays where it is."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]
