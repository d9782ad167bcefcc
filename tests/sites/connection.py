"""Connections to an arm's server: with the account that sysbench uses, and with the one that may do all."""

from typing import Any

import pymysql

from benchbook.sites import workspace as labs


def connect(endpoint: Any) -> pymysql.Connection:
    user, password = labs.read_secret(endpoint.secret)
    account = {"user": user, "password": password, "database": endpoint.database}
    how = {"ssl_disabled": True, "autocommit": True}
    return pymysql.connect(host=endpoint.host, port=endpoint.port, **account, **how)


def query(endpoint: Any, statement: str) -> Any:
    """Return the rows of a statement of sysbench's account."""
    with connect(endpoint) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def tell(site: Any, *statements: str, arm: str | None = None) -> None:
    """Have a server do something by the account that may do all, each statement by itself."""
    with site.admin(arm).connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
