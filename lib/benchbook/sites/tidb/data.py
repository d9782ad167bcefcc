"""TiDB's data folder and accounts: nobody enters without a password, not even while the folder is made.

A new TiDB has an administrator without a password who is let in from anywhere. The first start therefore
listens on nothing but a socket in a folder of its own, and that account is gone before it ends.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pymysql

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import process
from benchbook.sites.settings import Value, same
from benchbook.sites.supervised import tail
from benchbook.sites.tidb.config import assignment

ADMIN = "root"
FREE_BYTES = 1 << 30
FIRST_START_S = 180.0
# struct ucred of socket(7): pid, uid, gid.
CREDENTIALS_BYTES = 12


def secret(lab: labs.Lab) -> str:
    """Return the administrator's password, drawn when first asked for."""
    path = lab.folder / "secrets" / "admin.cnf"
    if not path.exists():
        lab.own("secrets", None)
        text = f'mysql-user="{ADMIN}"\nmysql-password="{secrets.token_urlsafe(24)}"\n'
        labs.write_private(path, text)
    return labs.read_secret(path)[1]


def locks(lab: labs.Lab) -> str:
    """Return a digest of the lab's passwords: data made under others can't be entered."""
    return hashlib.sha256(f"{secret(lab)} {lab.password()}".encode()).hexdigest()[:12]


def connect(path: Path, password: str, read_timeout: float | None = None) -> pymysql.Connection:
    """Open the administrator's connection over a server's socket."""
    return pymysql.connect(
        unix_socket=str(path),
        user=ADMIN,
        password=password,
        ssl_disabled=True,
        connect_timeout=10,
        read_timeout=read_timeout,
        autocommit=True,
    )


def make(
    lab: labs.Lab,
    place: labs.Place,
    argv: Callable[[Path, Path], list[str]],
    made_with: dict[str, Any],
    user: str | None,
    keep: tuple[int, ...],
    env: dict[str, str],
) -> None:
    """Make a server's data folder unless it is there, made with the same; complete or absent.

    `argv` gives the program's command line for a data folder and a socket, with no port at all. A folder made
    with something else is removed, and so is the prepared copy: both can be loaded again.
    """
    folder = lab.own(place.name, user)
    record, data, new = folder / "made.json", folder / "data", folder / "new"
    if data.is_dir() and read(record) == made_with:
        return
    labs.remove(lab, place.name)
    if read(lab.folder / place.prepared / "snapshot.json").get("made_with") != made_with:
        labs.remove(lab, place.prepared)
    if labs.free_bytes(lab.folder) < FREE_BYTES:
        raise SiteError(
            f"{lab.folder}: less than 1 GiB free; free some space, or set BENCHBOOK_LAB_DIR to another disk"
        )
    for name in (place.name, f"{place.name}/new", f"{place.name}/tmp"):
        lab.own(name, user)
    path, log = folder / "b.sock", lab.run / "install.log"
    child = process.start(
        "install",
        argv(new, path),
        token=lab.token,
        folder=lab.folder,
        out=log,
        user=user,
        keep=keep,
        append=False,
        cwd=folder,
        env=env,
    )
    try:
        with first(path, child, log) as connection, connection.cursor() as cursor:
            close(cursor, secret(lab))
    finally:
        is_clean = process.stop(child, grace_s=60.0)
    if not is_clean:
        raise SiteError(f"TiDB's data folder could not be made; see {log}:\n  {tail(log)}")
    path.unlink(missing_ok=True)
    new.rename(data)
    labs.write_private(record, json.dumps(made_with), user)


def begin(part: Any, argv: list[str]) -> tuple[process.Child, Path]:
    """Start a cluster's first TiDB as its command line for the first start says; return it and its log."""
    log = part.lab.run / "install.log"
    child = process.start(
        "install",
        argv,
        token=part.lab.token,
        folder=part.lab.folder,
        out=log,
        user=part.user,
        keep=part.keep,
        append=False,
        cwd=part.folder,
        env={"HOME": str(part.folder), "TMPDIR": str(part.folder)},
    )
    return child, log


def end(child: process.Child, log: Path, path: Path) -> None:
    """End a first start; SiteError if it did not go by itself, so that what it wrote may not be whole."""
    is_clean = process.stop(child, grace_s=60.0)
    path.unlink(missing_ok=True)
    if not is_clean:
        raise SiteError(f"TiDB's data could not be made; see {log}:\n  {tail(log)}")


def admit(cursor: pymysql.cursors.Cursor, password: str, peers: tuple[str, ...]) -> None:
    """Make the benchmark's account, with rights on its one schema, where it is let in from; no other.

    SiteError if any account of the server has no password.
    """
    cursor.execute(f"CREATE DATABASE IF NOT EXISTS {labs.SCHEMA}")
    cursor.execute("SELECT host FROM mysql.user WHERE user = %s", (labs.USER,))
    for host in {host for (host,) in cursor.fetchall()} - set(peers):
        cursor.execute("DROP USER %s@%s", (labs.USER, host))
    for peer in peers:
        account = f"'{labs.USER}'@'{peer}'"
        cursor.execute(f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY %s", (password,))
        cursor.execute(f"ALTER USER {account} IDENTIFIED BY %s", (password,))
        cursor.execute(f"GRANT ALL PRIVILEGES ON {labs.SCHEMA}.* TO {account}")
    must_be_closed(cursor)


def must_be_closed(cursor: pymysql.cursors.Cursor) -> None:
    """Raise SiteError if any account of the server has no password."""
    cursor.execute("SELECT user, host FROM mysql.user WHERE authentication_string = ''")
    if open_accounts := [f"{user}@{host}" for user, host in cursor.fetchall()]:
        raise SiteError(
            f"these accounts have no password: {', '.join(open_accounts)}; run the prepare stage again"
        )


def set_variables(cursor: pymysql.cursors.Cursor, asked: Mapping[str, Value]) -> None:
    """Set what differs from what was asked; some variables are kept with the data, others are not."""
    cursor.execute("SHOW GLOBAL VARIABLES")
    there = dict(cursor.fetchall())
    for name, value in asked.items():
        if name in there and not same(value, there[name]):
            try:
                statement, given = assignment(name, value)
                cursor.execute(statement, (given,))
            except pymysql.err.MySQLError as error:
                raise SiteError(f"engine.settings.{name}: {value}: the server says: {error}") from None


def prove(lab: labs.Lab, place: labs.Place, over_socket: pymysql.Connection, pid: int, data: Path) -> None:
    """Check that socket and port lead to the process just started; SiteError naming each difference.

    The kernel tells whose socket it is. A connection over TCP must stand in the list of sessions that this
    socket shows, by number and by the port that it comes from: no other server can have it there.
    """
    peer = over_socket._sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS_BYTES)
    wrong = []
    if int.from_bytes(peer[:4], "little") != pid:
        wrong.append("its socket is another process's")
    with _over_tcp(lab, place) as over_tcp, over_tcp.cursor() as theirs, over_socket.cursor() as ours:
        theirs.execute("SELECT CONNECTION_ID(), @@datadir, @@port")
        number, datadir, port = theirs.fetchone()
        mine = over_tcp._sock.getsockname()[1]
        ours.execute("SHOW PROCESSLIST")
        known = {(int(row[0]), str(row[2]).rpartition(":")[2]) for row in ours.fetchall()}
        if (int(number), str(mine)) not in known:
            wrong.append("a session made there is not one of ours")
        if Path(datadir) != data or int(port) != place.port:
            wrong.append(f"its data are in {datadir}, its port is {port}")
    if wrong:
        raise SiteError(
            f"{place.address}:{place.port} leads to a server that is not ours ({'; '.join(wrong)}); "
            "end that server yourself, or set another site.port in the study"
        )


def _over_tcp(lab: labs.Lab, place: labs.Place) -> pymysql.Connection:
    try:
        return pymysql.connect(
            host=place.address,
            port=place.port,
            user=labs.USER,
            password=lab.password(),
            database=labs.SCHEMA,
            ssl_disabled=True,
            connect_timeout=10,
            read_timeout=30,
        )
    except pymysql.err.OperationalError as error:
        raise SiteError(
            f"{place.address}:{place.port} does not answer: {error.args[1]}; "
            f"look at the end of {lab.run / place.name}.log"
        ) from None


def first(path: Path, child: process.Child, log: Path) -> pymysql.Connection:
    """Return the first connection to a new server, as its administrator without a password."""
    deadline = time.monotonic() + FIRST_START_S
    while child.is_alive and time.monotonic() < deadline:
        try:
            return connect(path, "", read_timeout=60)
        except pymysql.err.OperationalError:
            time.sleep(0.05)
    raise SiteError(f"TiDB's data folder could not be made; see {log}:\n  {tail(log)}")


def close(cursor: pymysql.cursors.Cursor, password: str, hosts: Sequence[str] = ("localhost",)) -> None:
    """Let the administrator in over the socket alone, with a password.

    `hosts` is where a session over the socket seems to come from: a TiDB leads it to its own address.
    """
    for host in hosts:
        cursor.execute(f"CREATE USER '{ADMIN}'@'{host}' IDENTIFIED BY %s", (password,))
        cursor.execute(f"GRANT ALL PRIVILEGES ON *.* TO '{ADMIN}'@'{host}' WITH GRANT OPTION")
    cursor.execute(f"DROP USER '{ADMIN}'@'%%'", ())


def read(path: Path) -> dict[str, Any]:
    """Return a record of a folder, empty where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
