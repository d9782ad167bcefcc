"""Who may enter a MariaDB server of ours, and the proof that the server behind the port is that one.

Waiting until something answers is no proof: a server left behind, or somebody else's, answers just as
well. Each start therefore carries a word drawn for it, and socket and port must both return it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pymysql

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs

# No right to the schema, no such account, no such schema, no account for this host.
UNKNOWN_THERE = (1044, 1045, 1049, 1130)


def prove(
    connect: Callable[[], pymysql.Connection],
    lab: labs.Lab,
    pid: int,
    data: Path,
    place: labs.Place,
    word: str,
    begun: float,
) -> None:
    """Check that socket and port lead to the process just started, making the benchmark's account at need.

    `connect` opens the administrator's connection, `begun` is the monotonic time of the start. Raises
    SiteError naming each difference.
    """
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@pid_file, @@datadir, @@port, @@report_host, @@bind_address")
        pid_file, datadir, its_port, its_word, its_address = cursor.fetchone()
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")
        uptime_s = int(cursor.fetchone()[1])
        cursor.execute("SELECT Host FROM mysql.global_priv WHERE User = %s", (labs.USER,))
        known = {host for (host,) in cursor.fetchall()}
        if not known.issuperset(place.peers) or word_over_tcp(lab, place) is None:
            make(cursor, lab.password(), place.peers)
    its_pid = int(Path(pid_file).read_text(encoding="ascii"))
    seen = {"pid": its_pid, "data folder": Path(datadir), "port": its_port, "bind_address": its_address}
    wanted = {"pid": pid, "data folder": data, "port": place.port, "bind_address": place.address}
    wrong = [f"its {key} is {seen[key]}, not {wanted[key]}" for key in wanted if seen[key] != wanted[key]]
    if its_word != word or word_over_tcp(lab, place) != word:
        wrong.append("it was not started by us just now")
    if uptime_s > time.monotonic() - begun + 2:
        wrong.append(f"it has been up for {uptime_s} s, longer than ours")
    if wrong:
        raise SiteError(
            f"{place.address}:{place.port} leads to a server that is not ours ({'; '.join(wrong)}); "
            "end that server yourself, or set another site.port in the study"
        )


def word_over_tcp(lab: labs.Lab, place: labs.Place) -> str | None:
    """Return the word of the server that answers at a place; None if our account is not known there."""
    arguments = {"host": place.address, "port": place.port, "user": labs.USER, "password": lab.password()}
    try:
        connection = pymysql.connect(
            **arguments, database=labs.SCHEMA, ssl_disabled=True, connect_timeout=10, read_timeout=30
        )
    except pymysql.err.OperationalError as error:
        if error.args[0] in UNKNOWN_THERE:
            return None
        raise SiteError(
            f"{place.address}:{place.port} does not answer: {error.args[1]}; "
            f"look at the end of {lab.run / place.name}.log"
        ) from None
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@report_host")
        return cursor.fetchone()[0]


def make(cursor: pymysql.cursors.Cursor, password: str, peers: tuple[str, ...]) -> None:
    """Leave the administrator of the socket and the benchmark's account, with rights on its one schema.

    `peers` are the addresses from which the account is let in.
    """
    cursor.execute("DELETE FROM mysql.global_priv WHERE User = ''")
    cursor.execute("FLUSH PRIVILEGES")
    cursor.execute(f"CREATE DATABASE IF NOT EXISTS {labs.SCHEMA}")
    let_in(cursor, labs.USER, password, peers)


def let_in(cursor: pymysql.cursors.Cursor, user: str, password: str, peers: tuple[str, ...]) -> None:
    """Make an account with rights on the one schema, for connections from `peers`."""
    for peer in peers:
        account = (user, peer)
        cursor.execute("CREATE USER IF NOT EXISTS %s@%s IDENTIFIED BY %s", (*account, password))
        cursor.execute("ALTER USER %s@%s IDENTIFIED BY %s", (*account, password))
        cursor.execute(f"GRANT ALL PRIVILEGES ON {labs.SCHEMA}.* TO %s@%s", account)
