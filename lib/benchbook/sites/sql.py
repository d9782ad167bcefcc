"""Questions of every site to a server over SQL, by any way of connecting."""

from collections.abc import Callable, Iterable
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs

WHO = {"version": "VERSION()", "datadir": "@@datadir", "port": "@@port", "server_uid": "@@server_uid"}


def make_engine(connect: Callable[[], Any], driver: str = "mysql+pymysql", **info: Any) -> sqlalchemy.Engine:
    """An engine with a new connection from `connect` at each use; its errors show no values."""
    how = {"poolclass": sqlalchemy.NullPool, "hide_parameters": True}
    engine = sqlalchemy.create_engine(f"{driver}://", creator=connect, **how)
    sqlalchemy.event.listen(engine, "connect", lambda _, record: record.info.update(info))
    return engine


def read_identity(admin: sqlalchemy.Engine, what: str, *, uid: str = WHO["server_uid"]) -> dict[str, Any]:
    """Version, datadir, port and server_uid of a MariaDB; costs one connection."""
    requests = WHO | {"server_uid": uid}
    try:
        with admin.connect() as connection:
            row = connection.exec_driver_sql(f"SELECT {', '.join(requests.values())}").one()
    except sqlalchemy.exc.OperationalError as error:
        raise SiteError(f"{what} does not answer: {error.orig}") from None
    return dict(zip(requests, row, strict=True)) | {"port": int(row[2])}


def let_in(cursor: pymysql.cursors.Cursor, user: str, password: str, peers: Iterable[str]) -> None:
    """Make an account with rights on the one schema, for connections from `peers`."""
    for peer in peers:
        account = (user, peer)
        cursor.execute("CREATE USER IF NOT EXISTS %s@%s IDENTIFIED BY %s", (*account, password))
        cursor.execute("ALTER USER %s@%s IDENTIFIED BY %s", (*account, password))
        cursor.execute(f"GRANT ALL PRIVILEGES ON {labs.SCHEMA}.* TO %s@%s", account)


def read_variables(admin: sqlalchemy.Engine) -> dict[str, str]:
    """All variables of a server of MySQL's family by name; costs one connection."""
    with admin.connect() as connection:
        rows = connection.exec_driver_sql("SHOW GLOBAL VARIABLES").all()
    return {str(name): value for name, value in rows}


def is_version(version: str, request: str | None) -> bool:
    """True if a version fits the one asked for, from the left: 10.11 accepts 10.11.6, None all."""
    return request is None or version.split(".")[: request.count(".") + 1] == request.split(".")
