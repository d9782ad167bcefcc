"""A connection to an arm's server with the account that sysbench uses."""

from __future__ import annotations

from typing import Any

import pymysql

from benchbook.sites import lab as labs


def connect(endpoint: Any) -> pymysql.Connection:
    user, password = labs.read_secret(endpoint.secret)
    return pymysql.connect(
        host=endpoint.host,
        port=endpoint.port,
        user=user,
        password=password,
        database=endpoint.database,
        ssl_disabled=True,
        autocommit=True,
    )
