"""PostgreSQL as the OS package ships it: a folder, port, accounts and settings of its own on its machine."""

import re
import signal
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

import psycopg
import sqlalchemy
from psycopg import sql as quoting

from benchbook.core.util.errors import SiteError
from benchbook.sites import settings, sql
from benchbook.sites import workspace as labs
from benchbook.sites.descriptors.postgresql import TRAITS
from benchbook.sites.engines import postgresql_settings as server_settings
from benchbook.sites.engines.postgresql_dialect import ADMIN, WORDS
from benchbook.sites.engines.server import Server
from benchbook.sites.machine.contract import Machine

CRASH = re.compile(
    r"\b(PANIC|FATAL):|was terminated by signal|terminating any other active|"
    r"not properly shut down|[Cc]orrupt|could not (write|extend|fsync)|No space left|out of memory",
    re.ASCII,
)
# What a session of ours that comes too early, or a client that goes away, leaves in the log.
HARMLESS = re.compile(
    r"the database system is (starting up|shutting down)|connection to client lost", re.ASCII
)
INSTALL_S = 180.0
HBA = "hba.conf"
STARTED = """
SELECT current_setting('data_directory'), current_setting('port')::int, current_setting('listen_addresses'),
       current_setting('cluster_name'), extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())"""
PROGRAM, DRIVER = TRAITS.programs[0], TRAITS.driver
IDENTITY = """
SELECT system_identifier, current_setting('server_version'), current_setting('data_directory'),
       current_setting('port')::int, pg_postmaster_start_time()::text, current_setting('cluster_name')
FROM pg_control_system()"""
EXTENSIONS = ("pg_stat_statements", "pg_prewarm")


class PostgreSQL(Server):
    """One server, known by its pid file, its folder and a word drawn at each start."""

    traits = TRAITS
    lists_settings = ("--describe-config",)
    version_words = re.compile(r"\(PostgreSQL\) ([0-9.]+)")
    oldest, starts_from = (15,), ("postgresql",)
    config_name, config_files = "postgresql.conf", (HBA,)
    own_options = frozenset({"--listen_addresses", "--port", "--cluster_name"})
    start_s = 180.0
    stop_s = 120.0
    gentle = signal.SIGINT
    has_children = True

    def __init__(self, machine: Machine, engine: Any, place: labs.PartLocation) -> None:
        super().__init__(machine, engine, place)
        self.asked = self._complete(engine.settings)
        # Sockets are named after the port.
        name = f".s.PGSQL.{place.port}"
        self.socket = f"{self.role}/{name}"
        machine.socket(self.socket)
        self.leftovers = (name, f"{name}.lock")

    @property
    def made_with(self) -> dict[str, Any]:
        return {"engine": self.traits.name, "version": self.version, "settings": {}}

    def _command(self) -> list[str]:
        here = {"listen_addresses": self.place.address, "port": self.place.port, "cluster_name": self.word}
        places = [f"--{key}={value}" for key, value in here.items()]
        return [self.binary, f"--config-file={self.config}", *places]

    def _is_ready_now(self) -> bool:
        # Before there is a database to measure.
        return self._answers("postgres")

    def _admit(self, started_s: float) -> None:
        place = self.place
        try:
            set_up(lambda name: connect_admin(self.machine, self.socket, name), self.lab.password(DRIVER))
            with connect_admin(self.machine, self.socket) as connection:
                row = connection.execute(STARTED).fetchone()
        except psycopg.Error as error:
            why = " ".join(str(error).split())
            raise SiteError(f"the server can't be set up: {why}; see {self.log}") from None
        assert row is not None
        folder, port, address, word, uptime_s = row
        first = (self.machine.read(f"{self.role}/data/postmaster.pid") or "0").split("\n", 1)[0]
        observations = {"pid": int(first), "data folder": folder, "port": port, "address": address}
        wanted = {"pid": self.running().pid, "data folder": str(self.data)}
        wanted |= {"port": place.port, "address": place.address}
        self._must_be_the_one(observations, wanted, word, float(uptime_s), started_s)

    def create(self) -> None:
        """Only the socket is open before the first account has its password."""
        auth = ["--auth-local=peer", "--auth-host=reject", f"--username={ADMIN}"]
        program = PurePosixPath(self.binary).with_name("initdb")
        argv = [str(program), f"--pgdata={self.folder}/new", *auth, "--no-sync"]
        argv += ["--no-locale", "--encoding=UTF8"]
        self.machine.run_to_end(argv, "PostgreSQL's data folder could not be made", INSTALL_S, self.user)

    def admin(self) -> sqlalchemy.Engine:
        """The server knows it by our user there (peer), so there is no password."""
        if self._admin is None:
            messages = {"dialect": WORDS, "opened": lambda: self._opened}
            self._admin = sql.make_engine(self._connect, "postgresql+psycopg", **messages)
        return self._admin

    def seen_from(self, machine: Machine, address: str, port: int) -> bool:
        account = {"user": labs.USER, "password": self.lab.password(DRIVER), "dbname": labs.SCHEMA}
        try:
            with machine.connect_pgsql((address, port), **account) as connection:
                row = connection.execute("SELECT current_setting('cluster_name')").fetchone()
        except psycopg.Error as error:
            raise self._describe_silence(machine, address, port, " ".join(str(error).split())) from None
        return row is not None and str(row[0]) == self.word

    def identity(self) -> dict[str, Any]:
        observations = self.seen()
        try:
            with self._connect() as connection:
                row = connection.execute(IDENTITY).fetchone()
        except psycopg.Error as error:
            raise SiteError(f"{self._named} (its log: {self.log}) does not answer: {error}") from None
        assert row is not None
        uid, version, *rest = row
        lines = dict(zip(("datadir", "port", "postmaster_started", "word"), rest, strict=True))
        return observations | {"server_uid": str(uid), "version": str(version).split(" ")[0]} | lines

    def facts(self) -> dict[str, Any]:
        self.running()
        request = (self.asked, self.engine.settings)
        facts = server_settings.collect_facts(self.admin(), self.version, *request, self.folder)
        return facts | {"name": self.traits.name} | self.program_facts(self.binary)

    def log_errors(self, mark: int) -> list[str]:
        return [line for line in self.log_since(mark) if CRASH.search(line) and not HARMLESS.search(line)]

    def _find(self) -> str:
        """Its program: the one that is named, else the newest of the version asked for."""
        there = self.machine.programs(PROGRAM) if self.engine.binary is None else []
        fits = (text for text in there if sql.is_version(self._version_of(text), self.engine.version))
        return next(fits, there[0]) if there else super()._find()

    def _connect(self) -> psycopg.Connection:
        self._opened += 1
        return connect_admin(self.machine, self.socket)

    def _answers(self, database: str = labs.SCHEMA) -> bool:
        try:
            self._opened += database == labs.SCHEMA
            connect_admin(self.machine, self.socket, database).close()
        except psycopg.Error:
            return False
        return True

    def _write_config(self) -> None:
        text = render_access(self.place.peers(), self.machine.user)
        for name, lines in text.items():
            self.machine.write(f"{self.role}/{name}.conf", lines, self.user)
        places: dict[str, object] = {
            **{f"{name}_file": self.folder / f"{name}.conf" for name in text},
            "data_directory": self.data,
            "unix_socket_directories": self.folder,
            "unix_socket_permissions": "0700",
            "logging_collector": "off",
        }
        requests = {key: settings.format_value(value) for key, value in sorted(self.asked.items())}
        # The last word counts.
        self._configure("".join(f"{key}='{value}'\n" for key, value in [*requests.items(), *places.items()]))

    def _last_errors(self, mark: int) -> list[str]:
        # What is wrong with a setting stands in the lines before the last, which tells of an error.
        return self.log_since(mark)


def render_access(peers: Sequence[str], owner: str) -> dict[str, str]:
    """Access rules, as files: `peers` by password, by socket the user `owner` as administrator."""
    rules = [f"local all {ADMIN} peer map=owner"]
    rules += [
        f"local {labs.SCHEMA} all scram-sha-256"
        if peer == labs.OVER_SOCKET
        else f"host {labs.SCHEMA} all {'all' if peer == labs.ANYWHERE_AT else f'{peer}/32'} scram-sha-256"
        for peer in peers
    ]
    return {"hba": "\n".join(rules) + "\n", "ident": f"owner {owner} {ADMIN}\n"}


def connect_admin(machine: Machine, socket: str, database: str = labs.SCHEMA) -> psycopg.Connection:
    """Open the administrator's connection; its own work is in the server's counters at once."""
    connection = machine.connect_pgsql(socket, user=ADMIN, dbname=database)
    connection.prepare_threshold = None
    connection.execute("SELECT pg_stat_force_next_flush()")
    return connection


def set_up(connect: Callable[[str], psycopg.Connection], password: str) -> None:
    """Make the benchmark's account, or give it its password, its database, and the extensions that we ask."""
    name, schema = quoting.Identifier(labs.USER), quoting.Identifier(labs.SCHEMA)
    with connect("postgres") as connection:
        # The password itself is in no statement and no log.
        pair = password.encode(), labs.USER.encode()
        verifier = quoting.Literal(connection.pgconn.encrypt_password(*pair, b"scram-sha-256").decode())
        there = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (labs.USER,)).fetchone()
        do = quoting.SQL("ALTER" if there else "CREATE")
        connection.execute(quoting.SQL("{} ROLE {} LOGIN PASSWORD {}").format(do, name, verifier))
        there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (labs.SCHEMA,)).fetchone()
        if not there:
            connection.execute(quoting.SQL("CREATE DATABASE {} OWNER {}").format(schema, name))
    with connect(labs.SCHEMA) as connection:
        for extension in map(quoting.Identifier, EXTENSIONS):
            connection.execute(quoting.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(extension))
