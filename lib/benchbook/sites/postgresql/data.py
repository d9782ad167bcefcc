"""Find a PostgreSQL on this machine, make its data folder, let accounts in, and prove that it answers."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql as quoting

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import process, sql
from benchbook.sites.postgresql.words import ADMIN
from benchbook.sites.supervised import tail

INSTALL = "apt-get install postgresql"
DRIVER = "pgsql"
# Debian keeps each version's programs in a folder of its own; others have them in the PATH, or like this.
FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin")
INSTALL_S = 180.0
FREE_BYTES = 1 << 30
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
    versions = {path: binary_version(path) for path in there}
    for path, version in versions.items():
        if sql.is_version(version, asked):
            return path
    raise SiteError(
        f"engine.version: asked {asked}, found {', '.join(versions.values())}; install that version "
        f"(`{INSTALL}-{asked}`), or name its program in engine.binary"
    )


def binary_version(binary: Path) -> str:
    """Return the version of a server program, such as 15.18."""
    try:
        said = subprocess.run([str(binary), "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SiteError(f"{binary} cannot be run: {error}; check engine.binary") from None
    match = re.search(r"\(PostgreSQL\) ([0-9.]+)", said)
    if match is None:
        raise SiteError(
            f"{binary} is not a PostgreSQL (it says {said.strip()[:80]!r}); correct engine.binary"
        )
    if int(match[1].split(".")[0]) < OLDEST:
        raise SiteError(f"{binary} is PostgreSQL {match[1]}; version {OLDEST} or newer is needed")
    return match[1]


def make(
    lab: labs.Lab,
    binary: Path,
    made_with: dict[str, Any],
    user: str | None,
    role: str,
    keep: tuple[int, ...],
    prepared: str,
) -> None:
    """Make a server's data folder unless it is there, made with the same; complete or absent.

    A folder made with something else is removed, and so is the prepared copy: both can be loaded again.
    """
    folder = lab.own(role, user)
    record, data, new = folder / "made.json", folder / "data", folder / "new"
    if data.is_dir() and _read_json(record) == made_with:
        return
    labs.remove(lab, role)
    if (_read_json(lab.folder / prepared / "snapshot.json") or {}).get("made_with") != made_with:
        labs.remove(lab, prepared)
    if labs.free_bytes(lab.folder) < FREE_BYTES:
        raise SiteError(
            f"{lab.folder}: less than 1 GiB free; free some space, or set BENCHBOOK_LAB_DIR to another disk"
        )
    lab.own(role, user)
    log = lab.run / "install.log"
    # Only the socket is open before the first account has its password.
    auth = ["--auth-local=peer", "--auth-host=reject"]
    argv = [str(binary.with_name("initdb")), f"--pgdata={new}", f"--username={ADMIN}", *auth, "--no-sync"]
    child = process.start(
        "install",
        [*argv, "--no-locale", "--encoding=UTF8"],
        token=lab.token,
        folder=lab.folder,
        out=log,
        user=user,
        keep=keep,
        append=False,
        cwd=folder,
    )
    if process.wait(child, INSTALL_S) != 0:
        raise SiteError(f"PostgreSQL's data folder could not be made; see {log}:\n  {tail(log)}")
    new.rename(data)
    labs.write_private(record, json.dumps(made_with), user)


def access(folder: Path, peers: tuple[str, ...], user: str | None) -> tuple[Path, Path]:
    """Write who may enter, and which user of this system is the administrator; return both files.

    The administrator comes over the socket by the user of this process, all others with a password from the
    addresses named, to the one database.
    """
    rules = [f"local all {ADMIN} peer map=owner"]
    rules += [f"host {labs.SCHEMA} all {peer}/32 scram-sha-256" for peer in peers]
    owner = pwd.getpwuid(os.geteuid()).pw_name
    hba = labs.write_private(folder / "hba.conf", "\n".join(rules) + "\n", user)
    return hba, labs.write_private(folder / "ident.conf", f"owner {owner} {ADMIN}\n", user)


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


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
