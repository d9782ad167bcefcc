"""This machine, asked and watched in this process: programs are its children, files those of a lab."""

import http.client
import os
import pwd
import resource
import shutil
import signal
import socket
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql

from benchbook.core.util.errors import SiteError
from benchbook.sites import contract, workspace
from benchbook.sites.agent import files
from benchbook.sites.agent.watch import HostWatch
from benchbook.sites.machine.contract import WAIT_S, Env, Machine, Request, fetch_text
from benchbook.sites.machine.supervised_process import read_tail
from benchbook.sites.processes import process, procfs
from benchbook.sites.processes.process import Child
from benchbook.sites.processes.spawn import ProcessPlacement
from benchbook.sites.processes.tcp_bytes import Hop

if TYPE_CHECKING:
    import psycopg


def find_program(name: str) -> str | None:
    """Path of a program: from BENCHBOOK_NAME, else the usual places of servers, else PATH."""
    if "/" in name:
        there = shutil.which(os.path.expanduser(name))
        return os.path.realpath(there) if there else None
    named = os.environ.get(name_variable(name))
    if named and os.access(named, os.X_OK):
        return os.path.realpath(named)
    return shutil.which(name, path=process.PATH) or shutil.which(name)


def name_variable(name: str) -> str:
    """Environment variable that may hold a program's path."""
    return f"BENCHBOOK_{name.upper().replace('-', '_')}"


class LocalMachine(Machine, files.Files):
    """This machine, with the folder of a lab."""

    folder: Path  # type: ignore[assignment]  # a path that this process can open
    _what = "the lab's folder"

    def __init__(self, lab: workspace.Lab) -> None:
        super().__init__(lab.folder)
        self.lab, self.folder = lab, lab.folder
        self.cores = len(os.sched_getaffinity(0))
        self.open_files = files.open_files()

    @property
    def user(self) -> str:  # type: ignore[override]
        return pwd.getpwuid(os.geteuid()).pw_name

    def account(self, name: str) -> str | None:
        return workspace.service_user(name)

    def program(self, name: str) -> str | None:
        return find_program(name)

    def socket(self, name: str) -> str:
        return str(self.lab.socket(self.folder / name))

    def start(
        self, role: str, argv: Sequence[str], user: str | None, where: ProcessPlacement, env: Env
    ) -> Child:
        self.private_folder("run")
        its: dict[str, Any] = {"pidfile": self.lab.pidfile(role), "cwd": self.folder / role}
        return self.lab.start(role, argv, **its, user=user, where=where, env=env)

    def stop(self, process_: process.Child, grace_s: float, gentle: int = signal.SIGTERM) -> bool:
        was_alive = process_.is_alive
        is_clean = process.stop_child(process_, grace_s=grace_s, gentle=gentle) and was_alive
        self.lab.pidfile(process_.role).unlink(missing_ok=True)
        return is_clean

    def run_to_end(self, argv: Sequence[str], wrong: str, most_s: float, user: str | None = None) -> None:
        child, log = self.lab.start("work", argv, user=user, append=False), self.lab.run / "work.log"
        if process.wait_for_child(child, most_s) != 0:
            raise SiteError(f"{wrong}; see {log}:\n  {read_tail(log)}")

    def ask(self, name: str, line: str) -> str:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(WAIT_S)
            client.connect(str(self.folder / name))
            client.sendall(f"{line}\n".encode())
            return b"".join(iter(lambda: client.recv(65536), b"")).decode("utf-8", "replace")

    def request(self, address: str, port: int, request: Request) -> str:
        return fetch_text(http.client.HTTPConnection(address, port, WAIT_S), request)

    def connect(
        self, target: str | tuple[str, int], tls: ssl.SSLContext | None = None, **account: Any
    ) -> pymysql.Connection:
        if isinstance(target, str):
            where: dict[str, Any] = {"unix_socket": str(self.folder / target)}
        else:
            where = {"host": target[0], "port": target[1]}
        how = {"ssl_disabled": True} if tls is None else {"ssl": tls}
        return pymysql.connect(**where, **how, connect_timeout=10, autocommit=True, **account)

    def connect_pgsql(self, target: str | tuple[str, int], **account: Any) -> "psycopg.Connection[Any]":
        # Loaded here: most studies have no use for it.
        import psycopg

        if isinstance(target, str):
            path = self.folder / target
            target = str(path.parent), int(path.suffix[1:])
        how: dict[str, Any] = {"connect_timeout": 10, "sslmode": "disable", "autocommit": True}
        return psycopg.connect(host=target[0], port=target[1], **how | account)


COLUMNS = (
    "second", "part", "cpu_cores", "rss_mib", "steal_pct", "psi_cpu_pct", "psi_io_pct",
    "psi_memory_pct", "received_mib_s", "sent_mib_s", "system_cores", "voluntary_per_s", "involuntary_per_s",
    "wait_cores", "read_kib_s", "written_kib_s", "major_faults_per_s", "threads",
)  # fmt: skip


class Monitor(contract.Watch):
    """Sample processes and machine once a second from threads of its own, between `start` and `stop`.

    `parts` maps a part to its process ids, `clients` are those of the load clients in their order, `hops` say
    what connections are counted for their bytes, `families` are processes whose children count with them.
    Stop it when the client has been waited for: only then does the kernel count its CPU seconds.
    """

    def __init__(
        self,
        parts: Mapping[str, Sequence[int]],
        path: Path,
        *clients: int,
        hops: Sequence[Hop] = (),
        families: Sequence[int] = (),
    ) -> None:
        self.parts = {part: [pid for pid in pids if procfs.is_alive(pid)] for part, pids in parts.items()}
        self.path, self.clients, self._hops = path, clients, list(hops)
        self._families = tuple(families)

    def start(self) -> None:
        self._cpu_before = _children_cpu_s()
        watched = (self.parts, "machine", list(self.clients), self.path, self._hops, self._families)
        self._watch = HostWatch(*watched, counts_s=self.counts_s)

    def stop(self) -> None:
        watch_result = self._watch.stop()
        self.client_cpu_s = _children_cpu_s() - self._cpu_before
        vars(self).update(watch_result._asdict())
        self.runqueue_waits_s = [watch_result.runqueue_waits_s[client] for client in self.clients]
        self.strangers = {"machine": watch_result.strangers}
        rows = self.path.read_text(encoding="utf-8")
        self.path.write_text(",".join(COLUMNS) + "\n" + rows, encoding="utf-8")


def _children_cpu_s() -> float:
    """CPU seconds of all children that have ended; servers go on, so the client's is left."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
