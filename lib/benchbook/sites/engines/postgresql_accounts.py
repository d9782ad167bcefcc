"""A PostgreSQL server's program and accounts: which version it is, and who may enter it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import sqlalchemy
from psycopg import sql as quoting

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites.engines.postgresql_dialect import ADMIN, WORDS
from benchbook.sites.machine.contract import Machine
from benchbook.sites.traits.postgresql import TRAITS

INSTALL = "apt-get install postgresql"
PROGRAM, DRIVER = TRAITS.programs[0], TRAITS.driver
VERSION = re.compile(r"\(PostgreSQL\) ([0-9.]+)")
OLDEST = 15
IDENTITY = """
SELECT system_identifier, current_setting('server_version'), current_setting('data_directory'),
       current_setting('port')::int, pg_postmaster_start_time()::text, current_setting('cluster_name')
FROM pg_control_system()"""
EXTENSIONS = ("pg_stat_statements", "pg_prewarm")


def said_version(binary: str, says: Callable[[list[str]], str]) -> str:
    """Return the version of a server program, such as 15.18; SiteError if it is no PostgreSQL for us."""
    answer = says([binary, "--version"])
    match = VERSION.search(answer)
    if match is None:
        raise SiteError(
            f"{binary} is not a PostgreSQL (it says {answer.strip()[:80]!r}); correct engine.binary"
        )
    if int(match[1].split(".")[0]) < OLDEST:
        raise SiteError(f"{binary} is PostgreSQL {match[1]}; version {OLDEST} or newer is needed")
    return match[1]


def access(peers: Sequence[str], owner: str) -> dict[str, str]:
    """Return as files who may enter: `peers` by password, and by socket the user `owner` as administrator."""
    rules = [f"local all {ADMIN} peer map=owner"]
    rules += [
        f"local {labs.SCHEMA} all scram-sha-256"
        if peer == labs.OVER_SOCKET
        else f"host {labs.SCHEMA} all {'all' if peer == labs.ANYWHERE_AT else f'{peer}/32'} scram-sha-256"
        for peer in peers
    ]
    return {"hba": "\n".join(rules) + "\n", "ident": f"owner {owner} {ADMIN}\n"}


def engine(connect: Callable[[], psycopg.Connection[Any]], opened: Callable[[], int]) -> sqlalchemy.Engine:
    """Return an engine whose every connection is new, with `dialect` and `opened` in its `info`."""
    made = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=sqlalchemy.NullPool, hide_parameters=True
    )
    sqlalchemy.event.listen(
        made, "connect", lambda _, record: record.info.update(dialect=WORDS, opened=opened)
    )
    return made


def identity(connect: Callable[[], psycopg.Connection[Any]], what: str) -> dict[str, Any]:
    """Return what tells a server from any other; costs one connection. SiteError where none answers."""
    try:
        with connect() as connection:
            row = connection.execute(IDENTITY).fetchone()
    except psycopg.Error as error:
        raise SiteError(f"{what} does not answer: {error}") from None
    assert row is not None
    names = ("server_uid", "version", "datadir", "port", "postmaster_started", "word")
    said = dict(zip(names, row, strict=True)) | {"server_uid": str(row[0])}
    return said | {"version": str(row[1]).split(" ")[0]}


def connect(machine: Machine, socket: str, database: str = labs.SCHEMA) -> psycopg.Connection:
    """Open the administrator's connection; what it adds to the server's counters is in them at once."""
    connection = machine.connect_pgsql(socket, user=ADMIN, dbname=database)
    connection.prepare_threshold = None
    connection.execute("SELECT pg_stat_force_next_flush()")
    return connection


def set_up(connect: Callable[[str], psycopg.Connection], password: str) -> None:
    """Make the benchmark's account, its database and the extensions that we ask, where they are missing."""
    with connect("postgres") as connection:
        let_in(connection, labs.USER, password)
        there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (labs.SCHEMA,)).fetchone()
        if not there:
            connection.execute(
                quoting.SQL("CREATE DATABASE {} OWNER {}").format(
                    quoting.Identifier(labs.SCHEMA), quoting.Identifier(labs.USER)
                )
            )
    with connect(labs.SCHEMA) as connection:
        for name in EXTENSIONS:
            statement = quoting.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(quoting.Identifier(name))
            connection.execute(statement)


def let_in(connection: psycopg.Connection, user: str, password: str) -> None:
    """Make an account, or give it its password, with rights on all tables of the measured database."""
    # The password itself is in no statement and no log.
    verifier = connection.pgconn.encrypt_password(password.encode(), user.encode(), b"scram-sha-256").decode()
    name, owner = quoting.Identifier(user), quoting.Identifier(labs.USER)
    there = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (user,)).fetchone()
    connection.execute(
        quoting.SQL("{} ROLE {} LOGIN PASSWORD {}").format(
            quoting.SQL("ALTER" if there else "CREATE"), name, quoting.Literal(verifier)
        )
    )
    if user != labs.USER:
        connection.execute(quoting.SQL("GRANT {} TO {}").format(owner, name))


def word_seen(machine: Machine, address: str, port: int) -> str:
    """Return the word of the server that lets the benchmark's account in, seen from a machine."""
    account = {"user": labs.USER, "password": machine.lab.password(DRIVER), "dbname": labs.SCHEMA}
    with machine.connect_pgsql((address, port), **account) as connection:
        row = connection.execute("SELECT current_setting('cluster_name')").fetchone()
        return str(row[0]) if row else ""
