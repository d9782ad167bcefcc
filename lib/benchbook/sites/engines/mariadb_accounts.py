"""Who may enter a MariaDB server: its administrator over the socket, and the benchmark's accounts."""

from __future__ import annotations

from collections.abc import Sequence

import pymysql

from benchbook.sites import lab as labs

# No right to the schema, no such account, no such schema, no account for this host.
UNKNOWN_THERE = (1044, 1045, 1049, 1130)


def close(cursor: pymysql.cursors.Cursor) -> None:
    """Leave no account without a name."""
    cursor.execute("DELETE FROM mysql.global_priv WHERE User = ''")
    cursor.execute("FLUSH PRIVILEGES")


def make(
    cursor: pymysql.cursors.Cursor, password: str, peers: Sequence[str], is_closed: bool = False
) -> None:
    """Make the benchmark's account, with rights on its one schema.

    `peers` are the addresses from which the account is let in; where it `is_closed`, with TLS only.
    """
    cursor.execute(f"CREATE DATABASE IF NOT EXISTS {labs.SCHEMA}")
    let_in(cursor, labs.USER, password, peers)
    for peer in peers:
        cursor.execute(f"ALTER USER %s@%s REQUIRE {'SSL' if is_closed else 'NONE'}", (labs.USER, peer))


def let_in(cursor: pymysql.cursors.Cursor, user: str, password: str, peers: Sequence[str]) -> None:
    """Make an account with rights on the one schema, for connections from `peers`."""
    for peer in peers:
        account = (user, peer)
        cursor.execute("CREATE USER IF NOT EXISTS %s@%s IDENTIFIED BY %s", (*account, password))
        cursor.execute("ALTER USER %s@%s IDENTIFIED BY %s", (*account, password))
        cursor.execute(f"GRANT ALL PRIVILEGES ON {labs.SCHEMA}.* TO %s@%s", account)
