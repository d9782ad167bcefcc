"""Interface of machines to their servers and proxies: this machine, a host or a pod."""

import abc
import http.client
import io
import signal
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

import pymysql

from benchbook.sites.processes.spawn import ProcessPlacement
from benchbook.sites.workspace import Lab

if TYPE_CHECKING:
    import psycopg

    from benchbook.sites.agent.files import Files
else:
    # A kind of machine says itself whose files it has; without, it would answer for those of this machine.
    Files = object

# What a program finds in its environment beside what all have; None: nothing.
Env = Mapping[str, str] | None


class Process(Protocol):
    """A program that a machine runs under supervision: it dies with its owner."""

    @property
    def pid(self) -> int: ...

    @property
    def started(self) -> int:
        """Its start in the kernel's ticks: with `pid` it tells a process from any other."""

    @property
    def is_alive(self) -> bool: ...


@dataclass(frozen=True)
class Request:
    """A request to an HTTP server; `kind` is the body's content type."""

    path: str
    method: str = "GET"
    body: str | None = None
    kind: str = "application/json"


class Machine(abc.ABC, Files):
    """A machine for servers and proxies: this one, or a host or pod through its agent.

    Names of files are below `folder`, which is ours there. What a part needs of its machine it asks here or
    of its `Files`, so that an engine or a proxy is written once. OSError where a program does not answer,
    else SiteError.
    """

    folder: PurePosixPath
    host: str | None = None
    """The host's name; None for this machine."""
    lab: Lab
    """The lab of the study, which holds the accounts that servers are given."""
    cores: int
    open_files: int
    """How many files a program may open; negative: any number."""
    user: str
    """Who we are there."""
    key: str = "under `programs` in the inventory"
    """Where a study's owner names another program of it."""
    look_s: float = 0.02
    """Seconds between two looks at whether a program is ready."""

    @abc.abstractmethod
    def account(self, name: str) -> str | None:
        """Account for a program: `name` itself if we are root, else None for our account."""

    @abc.abstractmethod
    def program(self, name: str) -> str | None:
        """Path of an installed program, or None."""

    @abc.abstractmethod
    def socket(self, name: str) -> str:
        """Path of a socket below the folder; SiteError if it is too long for one."""

    @abc.abstractmethod
    def start(
        self, role: str, argv: Sequence[str], user: str | None, where: ProcessPlacement, env: Env
    ) -> Process:
        """Start a program in the folder of its role; its output is added to `run/ROLE.log`."""

    @abc.abstractmethod
    def stop(self, process: Any, grace_s: float, gentle: int = signal.SIGTERM) -> bool:
        """End a program by a signal, by force after the grace; True if it ran and went by itself."""

    @abc.abstractmethod
    def run_to_end(self, argv: Sequence[str], wrong: str, most_s: float, user: str | None = None) -> None:
        """Run a program to its end; SiteError with `wrong` and its last words if it fails."""

    @abc.abstractmethod
    def ask(self, name: str, line: str) -> str:
        """Answer of a program to a line on its socket, a file below the folder."""

    @abc.abstractmethod
    def request(self, address: str, port: int, request: Request) -> str:
        """Answer of an HTTP server to this machine; OSError if none comes, or for an error status."""

    @abc.abstractmethod
    def connect(
        self, target: str | tuple[str, int], tls: ssl.SSLContext | None = None, **account: Any
    ) -> pymysql.Connection:
        """Open a connection to a server, at a socket below the folder or at (address, port)."""

    @abc.abstractmethod
    def connect_pgsql(self, target: str | tuple[str, int], **account: Any) -> "psycopg.Connection[Any]":
        """Open one in PostgreSQL's protocol, unencrypted; its sockets are named `.s.PGSQL.PORT`."""


WAIT_S = 10.0
BUFFER = 1 << 16


class Far(abc.ABC):
    """One connection to a server. Nothing is read ahead of the caller's requests."""

    @abc.abstractmethod
    def settimeout(self, seconds: float | None) -> None:
        """Set the longest time of a read in seconds; None: for ever."""

    @abc.abstractmethod
    def sendall(self, data: bytes) -> None:
        """Send all bytes."""

    @abc.abstractmethod
    def receive(self) -> bytes:
        """Wait for the bytes that come next; none at the end."""

    @abc.abstractmethod
    def close(self) -> None:
        """End it."""

    def makefile(self, mode: str = "rb") -> io.BufferedReader:
        return io.BufferedReader(_Arriving(self.receive), BUFFER)


def fetch_text(connection: http.client.HTTPConnection, request: Request) -> str:
    """HTTP server's answer over a connection, used up thereby; OSError for an error status."""
    try:
        # Kept alive until we close it: http.client would else close what it still has to read from.
        connection.request(request.method, request.path, request.body, {"Content-Type": request.kind})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
    except http.client.HTTPException as error:
        raise ConnectionError(f"{type(error).__name__}: {error}") from None
    finally:
        connection.close()
    if answer.status >= 400:
        raise ConnectionError(f"{request.method} {request.path}: {answer.status} {text[:200]}")
    return text


class _Arriving(io.RawIOBase):
    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive, self._left = receive, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._left or self._receive()
        taken = min(len(buffer), len(data))
        buffer[:taken], self._left = data[:taken], data[taken:]
        return taken
