"""The administrator's connections to a server in a pod, through the port that the API forwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pymysql

from benchbook.sites import sql
from benchbook.sites.engines.postgresql_dialect import ADMIN

# A connection that was silent for longer is tried before it is used: what is between may have dropped it.
SILENT_S = 5.0


class Tunnelled(pymysql.connections.Connection):
    """A connection over a socket of the cluster's, opened again where it was lost while it was silent.

    `lost` is called each time, since that counts in the server's books, and `renewed` when a new one is
    there.
    """

    def __init__(self, reach: Callable[[], Any], lost: Callable[[], None], **options: Any) -> None:
        self._reach, self._lost, self._spoke = reach, lost, time.monotonic()
        self.renewed: Callable[[], None] = lambda: None
        super().__init__(defer_connect=True, ssl_disabled=True, autocommit=True, **options)
        self.connect()

    def connect(self, sock: Any = None) -> None:
        """Connect through the cluster; errors are those of any connection."""
        try:
            super().connect(sock or self._reach())
        except OSError as error:
            raise pymysql.err.OperationalError(2003, f"no way to the server: {error}") from None

    def query(self, sql: Any, unbuffered: bool = False) -> int:
        """Send a statement, over a new connection if the old one is gone."""
        if time.monotonic() - self._spoke > SILENT_S:
            self._renew()
        try:
            return super().query(sql, unbuffered)
        finally:
            self._spoke = time.monotonic()

    def tell(self, record: Any) -> None:
        """Write the session's whole number into an engine's record, now and when it is renewed."""

        def write() -> None:
            with self.cursor() as cursor:
                cursor.execute("SELECT CONNECTION_ID()")
                record.info["session"] = int(cursor.fetchone()[0])

        self.renewed = write
        write()

    def _renew(self) -> None:
        try:
            self.ping(reconnect=False)
        except (pymysql.err.Error, OSError):
            self._force_close()
            self.connect()
            self._lost()
            self._spoke = time.monotonic()
            self.renewed()


def engine(reach: Callable[[], Any], password: str, schema: str, lost: Callable[[], None]) -> Any:
    """Return an engine whose connections are new each time and go through `reach`."""

    def connect() -> Tunnelled:
        return Tunnelled(
            reach, lost, user=ADMIN, password=password, database=schema, connect_timeout=10, read_timeout=600
        )

    return sql.engine(connect)


def open_one(
    reach: Callable[[], Any], password: str, timeout_s: float = 30.0, user: str = ADMIN
) -> Tunnelled:
    """Return a connection of the administrator's, outside any engine."""
    options = {"connect_timeout": timeout_s, "read_timeout": timeout_s}
    return Tunnelled(reach, lambda: None, user=user, password=password, **options)


def ask(reach: Callable[[], Any], password: str, question: str, timeout_s: float = 5.0) -> str | None:
    """Return the one value that a server answers over a connection of its own; None if none answers."""
    try:
        with open_one(reach, password, timeout_s) as connection, connection.cursor() as cursor:
            cursor.execute(question)
            return cursor.fetchone()[0]
    except (pymysql.err.Error, OSError):
        return None
