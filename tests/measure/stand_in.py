"""A site in memory, for what no real server does on demand: exact counters, and a clock that never waits.

Its server answers the few statements that `measure` asks, its client prints what sysbench prints for the
options it is given and adds to the server's counters, and its clock goes on by the length of each run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy.exc import OperationalError

from benchbook.core.artifacts import run_folder
from benchbook.core.study.model import Endpoint
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files
from benchbook.measure import clients, run_executor, scheduler, statement_counters
from benchbook.read.sysbench_log import parse_log
from benchbook.sites import contract
from benchbook.sites.engines import dialect
from tests.read import corpus, synthetic

BEGUN_S = 1000.0
TPS = 100


class Clock:
    """The module `time` for the floor that measures."""

    def __init__(self) -> None:
        self.now = BEGUN_S

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_700_000_000.0 + self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def install(self, monkeypatch: Any) -> None:
        """Take the place of `time` in the modules that make runs."""
        for module in (scheduler, run_executor, clients, statement_counters):
            monkeypatch.setattr(module, "time", self)


@dataclass(eq=False)
class Server:
    """Tables, counters and sessions; `sessions` are those of others, by user."""

    clock: Clock
    tables: dict[str, int] = field(default_factory=dict)
    indexes: dict[str, list[str]] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)
    sessions: list[str] = field(default_factory=list)
    variables: dict[str, int] = field(default_factory=dict)
    is_read_only: int = 0
    statements: list[str] = field(default_factory=list)
    fails: Callable[[str], Exception | None] = lambda statement: None

    def answer(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of one statement."""
        self.statements.append(statement)
        if error := self.fails(statement):
            raise error
        name = statement.rpartition(" ")[2]
        if statement.startswith("DROP TABLE"):
            del self.tables[name]
        if "information_schema.events" in statement:
            return []
        # Each by its beginning, the longer one first.
        answers: dict[str, Callable[[], list[tuple[Any, ...]]]] = {
            "SHOW GLOBAL STATUS LIKE": lambda: [("Threads_connected", str(1 + len(self.sessions)))],
            "SHOW GLOBAL STATUS": self.status,
            "SHOW SESSION STATUS LIKE 'Questions'": lambda: [("Questions", str(len(self.statements)))],
            "SHOW PROCESSLIST": lambda: [(1, "admin"), (2, "system user"), *enumerate(self.sessions, 9)],
            "SHOW TABLES": lambda: [(table,) for table in [*self.tables, "others"]],
            "SHOW INDEX": lambda: [(key,) for key in ["PRIMARY", *self.indexes.get(name, [])]],
            "SHOW GLOBAL VARIABLES": lambda: [(key, str(value)) for key, value in self.variables.items()],
            "SELECT DISTINCT character_set_name": lambda: [("utf8mb4", "utf8mb4_bin")],
            "SELECT @@global.read_only": lambda: [(self.is_read_only,)],
            "CHECKSUM": lambda: [(f"sbtest.{name}", 1000 + self.tables[name])],
            "SELECT COUNT(*)": lambda: [(self.tables[name],)],
            "SELECT COALESCE": lambda: [(2000 + self.tables[name],)],
            "ANALYZE": lambda: [(name, "status", "OK")],
        }
        return next(
            (rows for start, rows in answers.items() if statement.startswith(start)), lambda: [(0,)]
        )()

    def status(self) -> list[tuple[str, str]]:
        counts = dict.fromkeys(dialect.COUNTERS, 0) | self.counters
        uptime = ("Uptime", str(int(self.clock.now - BEGUN_S) + 50))
        return [*((name, str(count)) for name, count in counts.items()), uptime, ("Version_comment", "made")]


COLUMNS: dict[str, tuple[str, ...]] = {"SHOW PROCESSLIST": ("Id", "User"), "SHOW INDEX": ("Key_name",)}
COLUMNS["ANALYZE"] = ("Table", "Msg_type", "Msg_text")


class Result:
    """The answer to one statement."""

    returns_rows = True

    def __init__(self, rows: list[tuple[Any, ...]], names: tuple[str, ...]) -> None:
        self.rows, self.names = rows, names

    def all(self) -> list[Any]:
        return self.rows

    def first(self) -> Any:
        return self.rows[0] if self.rows else None

    def scalar_one(self) -> Any:
        return self.rows[0][0]

    def mappings(self) -> Any:
        named = [dict(zip(self.names, row, strict=False)) for row in self.rows]
        return _Rows(named)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)


class _Rows(list):
    """Rows by name."""

    def all(self) -> list[Any]:
        return list(self)


class Connection:
    """An administrative session, and the engine that opens it."""

    def __init__(self, server: Server, info: dict[str, Any] | None = None) -> None:
        self.server, self.info = server, {"session": 1, "opened": lambda: 0, **(info or {})}
        self.engine = server
        self.connection = SimpleNamespace(dbapi_connection=SimpleNamespace(_read_timeout=None))
        self.dialect = SimpleNamespace(identifier_preparer=SimpleNamespace(quote_identifier=str))

    def connect(self) -> Connection:
        return self

    def execution_options(self, **options: str) -> Connection:
        return self

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def close(self) -> None:
        pass

    def exec_driver_sql(self, statement: str) -> Result:
        return self.execute(statement)

    def execute(self, statement: Any, parameters: Any = None) -> Result:
        said = str(statement)
        names = next((names for start, names in COLUMNS.items() if said.startswith(start)), ())
        return Result(self.server.answer(said), names)


class Client:
    """A sysbench that has done its work when it is waited for."""

    def __init__(self, site: Site, start: contract.Start, server: Server) -> None:
        self.site, self.argv, self.out, self.server = site, list(start.argv), start.out, server
        self.popen, self.pid, self.returncode, self.begun_s = self, 4000, None, start.begin_at
        self.lasts_s, self.ran_s = 0.0, None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.returncode = self.site.work(self)
        return self.returncode

    def poll(self) -> int | None:
        return self.wait()

    def kill(self) -> None:
        raise AssertionError("it has ended by itself")

    send_signal = kill


@dataclass
class Watch:
    """What was seen while nothing happened."""

    path: Path
    seconds: int
    waits: tuple[float, ...]
    longest_pause_ms: float = 12.0
    steal_pct: float = 0.25
    oom_kills: int = 0
    clock_step_s: float = 0.01
    cores: int = 2
    counts_s: float = 0.0
    counted: dict[str, dict[str, float]] = field(default_factory=dict)
    strangers: dict[str, Any] = field(default_factory=dict)

    @property
    def client_cpu_s(self) -> float:
        """What its monitor shows of the client, 0.3 of a core."""
        return 0.3 * self.seconds

    @property
    def runqueue_wait_s(self) -> float:
        return sum(self.waits)

    @property
    def runqueue_waits_s(self) -> tuple[float, ...]:
        return self.waits

    def start(self) -> None:
        assert not self.path.exists()

    def stop(self) -> None:
        self.path.write_text(synthetic.monitor(self.seconds), encoding="utf-8")


class Site(contract.Site):
    """The arms of a study; each that names `servers` has its own, the others share one."""

    ready_s, database = 0.25, "sbtest"

    def __init__(self, study: StudySpec) -> None:
        self.study, self.clock = study, Clock()
        self.in_the_way: dict[str, str] = {}
        self.servers: dict[tuple[str, int], Server] = {}
        self.kept: dict[str, dict[tuple[str, int], tuple[dict, dict]]] = {}
        self.done: list[str] = []
        self.spoil: Callable[[Client, str], tuple[int, str] | None] = lambda client, out: None
        self.during_run: Callable[[], dict[str, Any]] = dict
        self.log: list[str] = []

    def server(self, arm: str | None, number: int = 0) -> Server:
        arm = arm or self.study.baseline
        key = (self.server_of(arm), number)
        return self.servers.setdefault(key, Server(self.clock))

    def server_of(self, arm: str) -> str:
        return f"{arm}'s" if self.study.arms[arm].servers > 1 else "shared"

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def obstacles(self, arm: str) -> list[str]:
        return [self.in_the_way[arm]] if arm in self.in_the_way else []

    def facts(self, arm: str) -> dict[str, Any]:
        return {}

    def hold(self) -> None:
        pass

    def up(self, arm: str) -> Endpoint:
        self.done.append(f"up {arm}")
        return self.endpoints(arm)[0]

    def endpoints(self, arm: str) -> list[Endpoint]:
        one = self.study.arms[arm]
        return [
            Endpoint("127.0.0.1", 3306 + number % one.servers, "sbtest", Path("/run/account.cnf"))
            for number in range(one.clients)
        ]

    def down(self) -> None:
        self.done.append("down")

    def admin(self, arm: str | None = None, server: int = 0) -> Connection:
        return Connection(self.server(arm, server))

    def identity(self, arm: str) -> dict[str, Any]:
        return {"server_pid": 7, "version": "10.11.6"}

    def allowance(self, arm: str) -> float:
        return 2.0

    @contextmanager
    def during(self, arm: str) -> Iterator[dict[str, Any]]:
        yield self.during_run()

    def log_mark(self, arm: str | None = None) -> int:
        return len(self.log)

    def log_errors(self, mark: int, arm: str | None = None) -> list[str]:
        return self.log[mark:]

    def snapshot(self, label: str = "", arm: str | None = None) -> None:
        self.done.append(f"snapshot {arm or self.study.baseline}")
        self.kept[label] = {key: (dict(one.tables), dict(one.indexes)) for key, one in self.servers.items()}

    def has_snapshot(self, label: str | None = None, arm: str | None = None) -> bool:
        return label in self.kept

    def restore(self, label: str | None = None) -> None:
        self.done.append("restore")
        first = next(iter(self.kept[str(label)].values()))
        for arm in self.able:
            for number in range(self.study.arms[arm].servers):
                self.server(arm, number)
        for key, server in self.servers.items():
            tables, indexes = self.kept[str(label)].get(key, first)
            server.tables, server.indexes = dict(tables), dict(indexes)

    def client(self, start: contract.Start) -> Client:
        start.err.write_text("", encoding="utf-8")
        servers = self.study.arms[start.arm or self.study.baseline].servers
        return Client(self, start, self.server(start.arm, start.number % servers))

    def watch(self, arm: str, clients: Sequence[Client], path: Path) -> Watch:
        plan = files.read_json(path.parent / run_folder.PLAN)
        return Watch(path, plan["discard_s"] + plan["run_s"], (0.125,) * len(clients))

    def work(self, client: Client) -> int:
        """Do what a client was started for; return its exit code."""
        asked = dict(word[2:].partition("=")[::2] for word in client.argv if word.startswith("--"))
        if "table-number" in asked:
            name = f"sbtest{asked['table-number']}"
            client.server.tables[name] = int(asked["table-size"])
            client.server.indexes[name] = [f"k_{asked['table-number']}"]
            code, out = self.spoil(client, "") or (0, "")
            client.out.write_text(out, encoding="utf-8")
            return code
        planned = files.read_json(self._part(client) / run_folder.PLAN)
        threads, discard = int(asked["threads"]), int(asked.get("report-checkpoints", 0))
        out = synthetic.output(
            threads=threads, discard_s=discard, run_s=int(asked["time"]) - discard, tps=TPS,
            percentile=int(asked["percentile"]), seed=int(asked["rand-seed"]),
        )  # fmt: skip
        plan = {**planned, "threads": threads}
        client.server.counters.update(corpus.books(parse_log(out), plan))
        code, out = self.spoil(client, out) or (0, out)
        client.out.write_text(out, encoding="utf-8")
        # Clients of one run do their work at the same time.
        if client.begun_s is None or self.clock.now < client.begun_s + int(asked["time"]):
            self.clock.now += int(asked["time"]) + 0.25
        return code

    @staticmethod
    def _part(client: Client) -> Path:
        above = client.out.parent
        return above if (above / run_folder.PLAN).exists() else above.parent


def absent(statement: str) -> Exception | None:
    """Fail every statement as a server that is gone does."""
    return OperationalError(statement, {}, OSError("gone"))
