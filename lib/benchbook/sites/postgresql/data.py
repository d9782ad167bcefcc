"""Find a PostgreSQL on this machine, let accounts in, and prove that it answers."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
from psycopg import sql as quoting

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import process, sql
from benchbook.sites.machine import here
from benchbook.sites.postgresql.words import ADMIN

INSTALL = "apt-get install postgresql"
DRIVER = "pgsql"
# Debian keeps each version's programs in a folder of its own; others have them in the PATH, or like this.
FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin")
OLDEST = 15
EXTENSIONS = ("pg_stat_statements", "pg_prewarm")


def programs() -> list[Path]:
    """Return the server programs of this machine, the newest version first."""
    found = {path for pattern in FOLDERS for path in Path("/").glob(f"{pattern[1:]}/postgres")}
    in_path = shutil.which("postgres", path=process.PATH)
    found |= {Path(in_path)} if in_path else set()
    usable = [path for path in found if os.access(path, os.X_OK)]
    return sorted(
        usable, key=lambda path: [int(part) for part in re.findall(r"\d+", str(path))], reverse=True
    )


def find_binary(given: str | None, asked: str | None) -> Path:
    """Return the program of the newest server of the version asked for, or SiteError with what to install."""
    if given is not None:
        path = Path(given).expanduser()
        if not os.access(path, os.X_OK) or path.is_dir():
            raise SiteError(
                f"engine.binary: {given}: no program there; write the path of a postgres, or null"
            )
        return path.resolve()
    there = programs()
    if not there:
        raise SiteError(f"postgres is not installed; run `{INSTALL}`")
    versions = {path: said_version(str(path), here.says) for path in there}
    for path, version in versions.items():
        if sql.is_version(version, asked):
            return path
    raise SiteError(
        f"engine.version: asked {asked}, found {', '.join(versions.values())}; install that version "
        f"(`{INSTALL}-{asked}`), or name its program in engine.binary"
    )


def said_version(binary: str, says: Callable[[list[str]], str]) -> str:
    """Return the version of a server program, such as 15.18; SiteError if it is no PostgreSQL for us."""
    answer = says([binary, "--version"])
    match = re.search(r"\(PostgreSQL\) ([0-9.]+)", answer)
    if match is None:
        raise SiteError(
            f"{binary} is not a PostgreSQL (it says {answer.strip()[:80]!r}); correct engine.binary"
        )
    if int(match[1].split(".")[0]) < OLDEST:
        raise SiteError(f"{binary} is PostgreSQL {match[1]}; version {OLDEST} or newer is needed")
    return match[1]


def access(peers: Sequence[str], owner: str) -> dict[str, str]:
    """Return the text of the files that say who may enter, and whom the administrator comes as.

    The administrator comes over the socket by the `owner` of the agent or process there, all others with a
    password from the addresses named, to the one database.
    """
    rules = [f"local all {ADMIN} peer map=owner"]
    rules += [f"host {labs.SCHEMA} all {peer}/32 scram-sha-256" for peer in peers]
    return {"hba": "\n".join(rules) + "\n", "ident": f"owner {owner} {ADMIN}\n"}


def connect(socket_folder: Path, port: int, database: str = labs.SCHEMA) -> psycopg.Connection:
    """Open the administrator's connection; what it adds to the server's counters is in them at once."""
    connection = psycopg.connect(
        host=str(socket_folder), port=port, user=ADMIN, dbname=database, connect_timeout=10, autocommit=True
    )
    connection.prepare_threshold = None
    connection.execute("SELECT pg_stat_force_next_flush()")
    return connection


def prove(
    lab: labs.Lab, socket_folder: Path, place: labs.Place, pid: int, data: Path, word: str, begun: float
) -> None:
    """Check that socket and port lead to the process just started, making database and account at need.

    Its `cluster_name` is the word drawn for this start. SiteError names each difference.
    """
    with connect(socket_folder, place.port, "postgres") as connection:
        row = connection.execute(
            "SELECT current_setting('data_directory'), current_setting('port'), "
            "current_setting('cluster_name'), current_setting('listen_addresses'), "
            "extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()), "
            "(SELECT count(*) FROM pg_database WHERE datname = %s)",
            (labs.SCHEMA,),
        ).fetchone()
        assert row is not None
        datadir, port, its_word, address, uptime_s, has_database = row
        let_in(connection, labs.USER, lab.password(0, DRIVER))
        if not has_database:
            connection.execute(
                quoting.SQL("CREATE DATABASE {} OWNER {}").format(
                    quoting.Identifier(labs.SCHEMA), quoting.Identifier(labs.USER)
                )
            )
    with connect(socket_folder, place.port) as connection:
        for name in EXTENSIONS:
            statement = quoting.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(quoting.Identifier(name))
            connection.execute(statement)
    its_pid = int((data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0])
    seen = {"pid": its_pid, "data folder": datadir, "port": int(port), "address": address}
    wanted = {"pid": pid, "data folder": str(data), "port": place.port, "address": place.address}
    wrong = [f"its {key} is {seen[key]}, not {wanted[key]}" for key in wanted if seen[key] != wanted[key]]
    if its_word != word or word_over_tcp(lab, place) != word:
        wrong.append("it was not started by us just now")
    if float(uptime_s) > time.monotonic() - begun + 2:
        wrong.append(f"it has been up for {float(uptime_s):.0f} s, longer than ours")
    if wrong:
        raise SiteError(
            f"{place.address}:{place.port} leads to a server that is not ours ({'; '.join(wrong)}); "
            "end that server yourself, or set another site.port in the study"
        )


def let_in(connection: psycopg.Connection, user: str, password: str) -> None:
    """Make an account, or give it its password, with rights on all tables of the measured database.

    The password is turned into its verifier here, so that it is in no statement and no log.
    """
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


def word_over_tcp(lab: labs.Lab, place: labs.Place) -> str:
    """Return the word of the server that lets the benchmark's account in at a place."""
    try:
        with psycopg.connect(
            host=place.address,
            port=place.port,
            user=labs.USER,
            password=lab.password(0, DRIVER),
            dbname=labs.SCHEMA,
            connect_timeout=10,
            sslmode="disable",
        ) as connection:
            row = connection.execute("SELECT current_setting('cluster_name')").fetchone()
            return str(row[0]) if row else ""
    except psycopg.OperationalError as error:
        raise SiteError(
            f"{place.address}:{place.port} does not answer: {' '.join(str(error).split())}; "
            f"look at the end of {lab.run / place.name}.log"
        ) from None
