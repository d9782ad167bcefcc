"""TiDB's data folder and accounts: nobody enters without a password, not even while the folder is made.

A new TiDB has an administrator without a password who is let in from anywhere. The first start therefore
listens on nothing but a socket in a folder of its own, and that account is gone before it ends.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core.util.errors import SiteError
from benchbook.sites import settings, sql
from benchbook.sites import workspace as labs
from benchbook.sites.descriptors.tidb import MOVING
from benchbook.sites.machine.contract import Machine, Process
from benchbook.sites.processes.spawn import ANYWHERE
from benchbook.sites.settings import Value, is_same_value
from benchbook.sites.tidb.status import NOT_COUNTED, Status

# Of a server's sockets the one that it keeps, and that of its first start.
SOCKET, FIRST = "t.sock", "b.sock"
FIRST_START_S, STOP_S, GONE_S, LAST_LINES = 180.0, 60.0, 5.0, 5
NOT_READ = "not read back: this version doesn't tell"


def connect_admin(
    part: Any, socket: str = SOCKET, password: str | None = None, **how: Any
) -> pymysql.Connection:
    """Open the administrator's connection over a server's socket."""
    secret = part.machine.lab.admin_password() if password is None else password
    return part.machine.connect(f"{part.role}/{socket}", user=labs.ADMIN, password=secret, **how)


def choose_user(machine: Machine) -> str | None:
    """Account that a server runs as: not root, and on hosts, if lacking there, not MySQL's user."""
    if machine.host is None:
        with contextlib.suppress(SiteError):
            return machine.account("mysql")
    return machine.account("nobody")


def first_start(part: Any, argv: list[str], socket: str, hosts: Sequence[str]) -> None:
    """Start a new TiDB at a socket alone, close its administrator's account, end it; else SiteError."""
    machine, mark = part.machine, part.log_mark()
    child = machine.start(part.role, argv, part.user, ANYWHERE, part.env)
    try:
        with _connect_first(part, child, socket, mark) as connection, connection.cursor() as cursor:
            secure_admin(cursor, machine.lab.admin_password(), hosts)
    finally:
        is_clean = machine.stop(child, STOP_S)
        machine.remove(f"{part.role}/{socket}")
    if not is_clean:
        raise SiteError(_not_made(part, mark))


def _connect_first(part: Any, child: Process, socket: str, mark: int) -> pymysql.Connection:
    deadline = time.monotonic() + FIRST_START_S
    while child.is_alive and time.monotonic() < deadline:
        try:
            return connect_admin(part, socket, "", read_timeout=60)
        except (pymysql.err.OperationalError, OSError):
            time.sleep(0.05)
    raise SiteError(_not_made(part, mark))


def _not_made(part: Any, mark: int) -> str:
    statement = "\n  ".join(part.log_since(mark)[-LAST_LINES:])
    return f"{part.what}: TiDB's data folder could not be made; see {part.log}:\n  {statement}"


def admit_clients(
    connect: Callable[[], pymysql.Connection],
    requests: Mapping[str, Value],
    password: str,
    peers: Sequence[str],
) -> None:
    """Set variables that differ, and let the benchmark's account in from `peers` alone; none may be open."""
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL VARIABLES")
        there = dict(cursor.fetchall())
        for name, value in requests.items():
            if name in there and not is_same_value(value, there[name]):
                try:
                    argument = settings.format_value(value) if isinstance(value, bool) else value
                    # Names hold word characters only.
                    cursor.execute(f"SET GLOBAL {name} = %s", (argument,))
                except pymysql.err.MySQLError as error:
                    raise SiteError(f"engine.settings.{name}: {value}: the server says: {error}") from None
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {labs.SCHEMA}")
        cursor.execute("SELECT host FROM mysql.user WHERE user = %s", (labs.USER,))
        for host in {host for (host,) in cursor.fetchall()} - set(peers):
            cursor.execute("DROP USER %s@%s", (labs.USER, host))
        sql.let_in(cursor, labs.USER, password, peers)
        must_be_closed(cursor)


def must_be_closed(cursor: pymysql.cursors.Cursor) -> None:
    """Raise SiteError if any account of the server has no password."""
    # Before 5.0 the column had MySQL's old name.
    is_found = cursor.execute("SHOW COLUMNS FROM mysql.user LIKE 'authentication_string'")
    column = "authentication_string" if is_found else "Password"
    cursor.execute(f"SELECT user, host FROM mysql.user WHERE {column} = ''")
    if names := [f"{user}@{host}" for user, host in cursor.fetchall()]:
        raise SiteError(f"these accounts have no password: {', '.join(names)}; run the prepare stage again")


def verify_identity(part: Any, connect: Callable[[], pymysql.Connection], data: str) -> None:
    """Check that socket, port and a session over TCP lead to the process just started; SiteError if not."""
    place, machine, wrong = part.place, part.machine, []
    if not part.holds_port():
        wrong.append("its port is another process's")
    if machine.host is None and not is_seen([connect], machine, place.address, place.port):
        wrong.append("a session made there is not one of ours")
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@datadir, @@port")
        datadir, port = cursor.fetchone()
    if str(datadir).rstrip("/") != data or int(port) != place.port:
        wrong.append(f"its data are in {datadir}, its port is {port}")
    part.must_be_ours(wrong)


def is_seen(
    connects: Sequence[Callable[[], pymysql.Connection]], machine: Machine, address: str, port: int
) -> bool:
    """True if the benchmark account's session from a machine is one of a server of ours."""
    account: dict[str, Any] = {"user": labs.USER, "password": machine.lab.password(), "database": labs.SCHEMA}
    try:
        session = machine.connect((address, port), read_timeout=30, **account)
        with session as link, link.cursor() as cursor:
            cursor.execute("SELECT CONNECTION_ID()")
            number = int(cursor.fetchone()[0])
            for connect in connects:
                with connect() as ours, ours.cursor() as sessions:
                    sessions.execute("SHOW PROCESSLIST")
                    if (number, labs.USER) in {(int(row[0]), str(row[1])) for row in sessions.fetchall()}:
                        return True
            return False
    except pymysql.err.Error as error:
        seen_by = "" if machine.host is None else f" {machine.host}"
        raise SiteError(
            f"{address}:{port} does not answer{seen_by}: {error.args[-1]}; look at the server's log, at "
            "firewalls between hosts, and at `address` in the inventory"
        ) from None


def sum_counters(statuses: Sequence[Status]) -> tuple[dict[str, int], float]:
    """Counters of some servers, added up once clients have left all but the first, and the shortest uptime
    in seconds; measuring itself waits for those of the first."""
    deadline = time.monotonic() + GONE_S
    while any(status.connected() for status in statuses[1:]) and time.monotonic() < deadline:
        time.sleep(0.02)
    each = [status.books() for status in statuses]
    counters = {name: sum(values.get(name, 0) for values, _ in each) for name in each[0][0]}
    return counters, min(uptime for _, uptime in each)


def open_admin(
    connect: Callable[[], pymysql.Connection], statuses: Sequence[Status], **info: Any
) -> sqlalchemy.Engine:
    """An administrative account with the counters of some servers, added up.

    Each connection has in `info` its own number in the list of sessions (`session`), what counts sessions
    (`connected`), what reads counters and uptime (`books`), the counters that there are not (`absent`), and
    those that old versions do not have (`uncounted`), beside what is given.
    """
    info |= {"books": partial(sum_counters, statuses), **NOT_COUNTED}
    admin = sql.make_engine(connect, connected=lambda: sum(status.connected() for status in statuses), **info)

    def inform(connection: pymysql.Connection, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT CONNECTION_ID()")
            record.info["session"] = int(cursor.fetchone()[0])

    sqlalchemy.event.listen(admin, "connect", inform)
    return admin


def collect_facts(
    version: str | None, storage: str, read: dict[str, Any], variables: Mapping[str, str], folder: PurePath
) -> dict[str, Any]:
    """Facts that a TiDB tells of itself at any site; `read` are its settings as read back."""
    kept = {key: value for key, value in variables.items() if key not in MOVING}
    return {
        "name": "tidb",
        "version": version,
        "version_comment": variables["version_comment"],
        "storage": storage,
        "tls": variables.get("have_ssl", "unknown"),
        "settings": read,
        "variables": len(variables),
        "variables_sha256": settings.hash_variables(kept, folder),
    }


def read_stored(admin: sqlalchemy.Engine, configs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Asked and got of the settings of TiKV and PD; SQL tells them since 4.0."""
    stored: dict[str, Any] = {}
    text = sqlalchemy.text("SHOW CONFIG WHERE type = :role AND name = :name")
    with admin.connect() as connection:
        for role in ("tikv", "pd"):
            for name, value in configs[role].items():
                try:
                    rows = connection.execute(text, {"role": role, "name": name}).mappings().all()
                    got: Any = sorted({str(row["Value"]) for row in rows}) or NOT_READ
                except sqlalchemy.exc.SQLAlchemyError:
                    got = NOT_READ
                stored[f"{role}.{name}"] = {"asked": settings.format_value(value), "got": got}
    return stored


def secure_admin(cursor: pymysql.cursors.Cursor, password: str, hosts: Sequence[str]) -> None:
    """Let the administrator in from `hosts` alone, whence the socket's sessions come, by password."""
    for host in hosts:
        cursor.execute(f"CREATE USER IF NOT EXISTS '{labs.ADMIN}'@'{host}' IDENTIFIED BY %s", (password,))
        cursor.execute(f"GRANT ALL PRIVILEGES ON *.* TO '{labs.ADMIN}'@'{host}' WITH GRANT OPTION")
    cursor.execute(f"DROP USER IF EXISTS '{labs.ADMIN}'@'%%'", ())
