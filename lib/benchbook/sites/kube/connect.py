"""The administrator's connections to a server in a pod, which the pod's agent opens from inside it."""

from __future__ import annotations

from typing import Any

import pymysql
import sqlalchemy

from benchbook.sites import lab as labs
from benchbook.sites import sql
from benchbook.sites.engines.postgresql_dialect import ADMIN
from benchbook.sites.hosts import through_agent
from benchbook.sites.kube.namespace import LOOPBACK, StudyNamespace

READ_S = 600.0


def open_one(
    space: StudyNamespace,
    pod: str,
    port: int,
    password: str | None = None,
    read_timeout: float = 30.0,
    **account: Any,
) -> pymysql.Connection:
    """Return a connection to a port of a pod, the administrator's if no other account is named."""
    known = {"user": ADMIN, "password": space.admin_password() if password is None else password}
    try:
        host = space.host_of(pod)
    except ConnectionError as error:
        raise pymysql.err.OperationalError(through_agent.UNREACHABLE, str(error)) from None
    return through_agent.connect(host, (LOOPBACK, port), read_timeout=read_timeout, **known | account)


def engine(space: StudyNamespace, pod: str, port: int) -> sqlalchemy.Engine:
    """Return an engine whose connections are new each time."""
    return sql.engine(lambda: open_one(space, pod, port, None, READ_S, database=labs.SCHEMA))


def tell(connection: Any, record: Any) -> None:
    """Write a session's whole number into an engine's record."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        record.info["session"] = int(cursor.fetchone()[0])


def ask(space: StudyNamespace, pod: str, port: int, question: str, timeout_s: float = 5.0) -> str | None:
    """Return the one value that a server answers over a connection of its own; None if none answers."""
    try:
        with open_one(space, pod, port, None, timeout_s) as connection, connection.cursor() as cursor:
            cursor.execute(question)
            return cursor.fetchone()[0]
    except (pymysql.err.Error, OSError):
        return None
