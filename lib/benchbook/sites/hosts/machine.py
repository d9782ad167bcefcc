"""A host, asked through its agent: programs are the agent's children, files those of its folder."""

import base64
import contextlib
import functools
import http.client
import inspect
import signal
import ssl
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pymysql
from pymysql.constants import CR

from benchbook.core.util.errors import SiteError
from benchbook.sites.agent.facts import HostSnapshot
from benchbook.sites.agent.files import Files
from benchbook.sites.hosts.host import AgentGone, Host, Unreachable
from benchbook.sites.machine import data_snapshots
from benchbook.sites.machine.contract import WAIT_S, Env, Far, Machine, Request, fetch_text
from benchbook.sites.processes.spawn import ProcessPlacement
from benchbook.sites.workspace import Lab

if TYPE_CHECKING:
    import psycopg

LOOK_S, END_S, READ_S, CARRY_S = 2.0, 2.0, 600.0, 3600.0
PACKED = "carried.tar"
LAST_LINES = 5


class FilesThere(Files):
    """The files of a host: each method of `Files` calls the same method of the host's agent."""

    call: Callable[..., Any]


def _forward_call(does: Callable[..., Any]) -> Callable[..., Any]:
    names = list(inspect.signature(does).parameters)[1:]

    @functools.wraps(does)
    def ask(self: FilesThere, *inputs: Any, **named: Any) -> Any:
        return self.call(does.__name__, **dict(zip(names, inputs, strict=False)), **named)

    return ask


for name, does in vars(Files).items():
    if not name.startswith("_"):
        setattr(FilesThere, name, _forward_call(does))


class FarSocket(Far):
    """A connection to `target`, a socket in the agent's folder or (address, port); OSError without one."""

    def __init__(self, host: Host, target: str | tuple[str, int]) -> None:
        self._host, self._id, self._sent, self._received = host, uuid.uuid4().hex, 0, 0
        self._timeout_s: float | None = None
        self._ask("connect", target=target)

    def sendall(self, data: bytes) -> None:
        # What was sent is counted, so that none is sent twice.
        self._ask("send", at=self._sent, data=base64.b64encode(data).decode())
        self._sent += len(data)

    def settimeout(self, seconds: float | None) -> None:
        self._timeout_s = seconds

    def close(self) -> None:
        """Have it closed with the next request; this may be called from within one."""
        self._host.closing.append(self._id)

    def receive(self) -> bytes:
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        while True:
            answer = self._ask("receive", at=self._received, up_to_s=LOOK_S)
            if answer["data"] or answer["is_over"]:
                data = base64.b64decode(answer["data"])
                self._received += len(data)
                return data
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError("timed out")

    def _ask(self, do: str, **arguments: Any) -> Any:
        try:
            return self._host.call(do, stream=self._id, **arguments)
        except SiteError as error:
            # PyMySQL makes of this what it makes of any connection that breaks.
            raise ConnectionError(str(error)) from None


@dataclass(frozen=True)
class RemoteProcess:
    """A program that an agent started; its name there is never used again."""

    on: Host
    name: str
    pid: int
    started: int

    @property
    def is_alive(self) -> bool:
        """True if it runs, by its agent."""
        try:
            return self.on.job("job", self.name).code is None
        except Unreachable:
            raise
        except SiteError:
            return False


class OnHost(FilesThere, Machine):
    """One host; `look` holds its facts of the first request."""

    look_s = 0.05

    def __init__(self, host: Host, look: HostSnapshot, lab: Lab) -> None:
        self.on, self.look, self.lab, self.host, self.call = host, look, lab, host.name, host.call
        self.folder = PurePosixPath(host.folder)
        self.cores, self.open_files = int(look.facts["cores"]), look.open_files
        self.user = look.user

    def account(self, name: str) -> str | None:
        return name if self.look.is_root else None

    def program(self, name: str) -> str | None:
        return self.look.tools.get(name)

    def programs(self, name: str) -> list[str]:
        argument = self.on.target.programs.get(name)
        return [argument] if argument else super().programs(name)

    def listening(self, pid: int) -> list[tuple[str, int]]:
        return [(str(address), int(port)) for address, port in super().listening(pid)]

    def socket(self, name: str) -> str:
        return str(self.folder / name)

    def start(
        self, role: str, argv: Sequence[str], user: str | None, where: ProcessPlacement, env: Env
    ) -> RemoteProcess:
        self.private_folder("run")
        name = f"{role}.{uuid.uuid4().hex[:8]}"
        how = {"user": user, "env": env, "cpus": where.cpus, "nofile": where.nofile, "cwd": role}
        job_status = self.on.job("start", name, argv=list(argv), out=f"run/{role}.log", append=True, **how)
        return RemoteProcess(self.on, job_status.name, job_status.pid, job_status.started)

    def stop(self, process: RemoteProcess, grace_s: float, gentle: int = signal.SIGTERM) -> bool:
        with contextlib.suppress(AgentGone):
            job_status = self.on.job("stop", process.name, grace_s=grace_s, signum=int(gentle))
            while job_status.code is None:
                job_status = self.on.job("wait", process.name, up_to_s=END_S)
            return job_status.was_asked and not job_status.was_killed
        return False

    def run_to_end(self, argv: Sequence[str], wrong: str, most_s: float, user: str | None = None) -> None:
        self.printed(argv, wrong, most_s, user)

    def printed(
        self, argv: Sequence[str], wrong: str, most_s: float, user: str | None = None, env: Env = None
    ) -> str:
        """Run a program to its end, as `run_to_end` does, and return its output."""
        job = f"work.{uuid.uuid4().hex[:8]}"
        self.private_folder("run")
        job_status = self.on.job("start", job, argv=list(argv), out="run/work.log", user=user, env=env)
        while job_status.code is None:
            if job_status.age_s > most_s:
                self.call("stop", job=job, grace_s=2.0)
            job_status = self.on.job("wait", job, up_to_s=END_S)
        statement = self.read("run/work.log") or ""
        if job_status.code != 0:
            last = "\n  ".join(statement.splitlines()[-LAST_LINES:])
            raise SiteError(f"{self.host}: {wrong} (exit code {job_status.code}):\n  {last}")
        return statement

    def ask(self, name: str, line: str) -> str:
        with contextlib.closing(FarSocket(self.on, name)) as link:
            link.settimeout(WAIT_S)
            link.sendall(f"{line}\n".encode())
            return b"".join(iter(link.receive, b"")).decode("utf-8", "replace")

    def request(self, address: str, port: int, request: Request) -> str:
        connection, link = http.client.HTTPConnection(address, port), FarSocket(self.on, (address, port))
        link.settimeout(WAIT_S)
        connection.sock = link  # type: ignore[assignment]
        return fetch_text(connection, request)

    def connect(
        self, target: str | tuple[str, int], tls: ssl.SSLContext | None = None, **account: Any
    ) -> pymysql.Connection:
        try:
            link = FarSocket(self.on, target)
        except ConnectionError as error:
            raise pymysql.err.OperationalError(CR.CR_CONN_HOST_ERROR, str(error)) from None
        how: dict[str, Any] = {"ssl_disabled": True} if tls is None else {"ssl": tls}
        how |= {"read_timeout": READ_S, "autocommit": True, "defer_connect": True}
        connection = pymysql.connect(**how | account)
        connection.connect(link)
        return connection

    def connect_pgsql(self, target: str | tuple[str, int], **account: Any) -> "psycopg.Connection[Any]":
        # Loaded here: most studies have no use for it.
        import psycopg

        from benchbook.sites.engines import postgresql_tunnel as carried

        try:
            link = FarSocket(self.on, target)
        except ConnectionError as error:
            raise psycopg.OperationalError(str(error)) from None
        how: dict[str, Any] = {"connect_timeout": 10, "sslmode": "disable", "autocommit": True}
        return carried.open_tunnel(link, self.lab, **how | account)

    def carry(self, name: str, to: Self, user: str | None) -> None:
        """Bring prepared data to another host in place of its present ones, checked by their hash."""
        # The name that tar gets must not be that of the copy, which is complete or absent.
        for machine in (self, to):
            machine.remove(PACKED)
            machine.private_folder("run")
        data_snapshots.remove_copy(to, name)
        to.private_folder(name, user)
        packed = f"{self.folder}/{PACKED}"
        argv = ["tar", "-C", f"{self.folder}/{name}", "-cf", packed, "data", "snapshot.json"]
        self.run_to_end(argv, "the data could not be packed", CARRY_S)
        self.on.send(PACKED, to.on)
        if to.sha256(f"{to.folder}/{PACKED}") != self.sha256(packed):
            raise SiteError(f"{to.host}: the data did not arrive as they were sent; look at its disk")
        argv = ["tar", "-C", f"{to.folder}/{name}", "-xpf", f"{to.folder}/{PACKED}"]
        to.run_to_end(argv, "the data could not be unpacked", CARRY_S)
        for machine in (self, to):
            machine.remove(PACKED)


class Offset(NamedTuple):
    """Lead of a clock over ours in s, and the round trip of that measurement."""

    ahead_s: float
    round_trip_s: float


def measure_offset(
    host: Host, which: str = "monotonic_s", ours: Callable[[], float] = time.monotonic, rounds: int = 9
) -> Offset:
    """Lead of a host's clock over ours, from the quickest of some round trips."""
    best = Offset(0.0, float("inf"))
    for _ in range(rounds):
        sent, there, back = ours(), float(host.call("hello")[which]), ours()
        if back - sent < best.round_trip_s:
            best = Offset(there - (sent + back) / 2, back - sent)
    return best
