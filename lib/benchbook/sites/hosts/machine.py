"""A host, asked through its agent: programs are the agent's children, files those of its folder."""

from __future__ import annotations

import contextlib
import signal
import ssl
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pymysql

from benchbook.core.errors import SiteError
from benchbook.sites.agent.facts import Look
from benchbook.sites.hosts import through_agent
from benchbook.sites.hosts.host import AgentGone, Host, Unreachable
from benchbook.sites.lab import Lab
from benchbook.sites.machine.contract import Env, Machine, Request
from benchbook.sites.processes.before_exec import Where

if TYPE_CHECKING:
    import psycopg

WAIT_S, READ_S, CARRY_S = 2.0, 600.0, 3600.0
PACKED = "carried.tar"
LAST_LINES = 5


@dataclass(frozen=True)
class Job:
    """A program that an agent started; its name there is never used again."""

    on: Host
    name: str
    pid: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Say whether it runs, as its agent sees it."""
        try:
            return self.on.job("job", self.name).code is None
        except Unreachable:
            raise
        except SiteError:
            return False


class OnHost(Machine):
    """One host; `look` is what it was when it was first asked."""

    look_s = 0.05

    def __init__(self, host: Host, look: Look, lab: Lab) -> None:
        self.on, self.look, self.lab, self.host = host, look, lab, host.name
        self.folder = PurePosixPath(host.folder)
        self.cores, self.open_files = int(look.facts["cores"]), look.open_files
        self.user = look.user

    def account(self, name: str) -> str | None:
        return name if self.look.is_root else None

    def program(self, name: str) -> str | None:
        return self.look.tools.get(name)

    def programs(self, name: str) -> list[str]:
        given = self.on.target.programs.get(name)
        return [given] if given else list(self.on.call("programs", name=name))

    def says(self, argv: list[str]) -> str:
        return str(self.on.call("says", argv=argv))

    def own(self, name: str, user: str | None = None) -> str:
        return str(self.on.call("own", name=name, user=user))

    def write(self, name: str, text: str, user: str | None = None) -> str:
        return str(self.on.call("write", name=name, text=text, user=user))

    def read(self, name: str, at: int = 0) -> str | None:
        found: str | None = self.on.call("read", name=name, at=at)
        return found

    def size(self, name: str) -> int | None:
        found: int | None = self.on.call("size", name=name)
        return found

    def socket(self, name: str) -> str:
        return str(self.folder / name)

    def usage(self, name: str) -> int:
        return int(self.on.call("usage", name=name))

    def free(self) -> int:
        return int(self.on.call("free"))

    def remove(self, name: str) -> None:
        self.on.call("remove", name=name)

    def rename(self, name: str, to: str) -> None:
        self.on.call("rename", name=name, to=to)

    def sha256(self, path: str) -> str | None:
        found: str | None = self.on.call("sha256", path=path)
        return found

    def kernel_setting(self, name: str) -> str:
        return str(self.on.call("kernel_setting", name=name))

    def place(self, pid: int) -> dict[str, str]:
        return dict(self.on.call("place", pid=pid))

    def affinity(self, pid: int) -> list[list[int]]:
        return list(self.on.call("affinity", pid=pid))

    def listeners(self, port: int) -> list[dict[str, Any]]:
        return list(self.on.call("listeners", port=port))

    def listening(self, pid: int) -> list[tuple[str, int]]:
        return [(str(address), int(port)) for address, port in self.on.call("listening", pid=pid)]

    def strays(self, pid: int, allowed: str) -> list[str]:
        return list(self.on.call("strays", pid=pid, allowed=allowed))

    def start(self, role: str, argv: Sequence[str], user: str | None, where: Where, env: Env) -> Job:
        self.own("run")
        name = f"{role}.{uuid.uuid4().hex[:8]}"
        how = {"user": user, "env": env, "cpus": where.cpus, "nofile": where.nofile}
        out = f"run/{role}.log"
        known = self.on.job("start", name, argv=list(argv), out=out, append=True, cwd=role, **how)
        return Job(self.on, known.name, known.pid, known.started)

    def stop(self, process: Job, grace_s: float, gentle: int = signal.SIGTERM) -> bool:
        with contextlib.suppress(AgentGone):
            known = self.on.job("stop", process.name, grace_s=grace_s, signum=int(gentle))
            while known.code is None:
                known = self.on.job("wait", process.name, up_to_s=WAIT_S)
            return known.was_asked and not known.was_killed
        return False

    def work(self, argv: Sequence[str], wrong: str, most_s: float, user: str | None = None) -> None:
        work(self.on, wrong, list(argv), most_s, user)

    def ask(self, name: str, line: str) -> str:
        return through_agent.ask(self.on, name, line)

    def request(self, address: str, port: int, asked: Request) -> str:
        return through_agent.request(self.on, address, port, asked)

    def connect(
        self, target: str | tuple[str, int], tls: ssl.SSLContext | None = None, **account: Any
    ) -> pymysql.Connection:
        return through_agent.connect(self.on, target, tls, **{"read_timeout": READ_S, **account})

    def connect_pgsql(self, target: str | tuple[str, int], **account: Any) -> psycopg.Connection[Any]:
        how: dict[str, Any] = {"connect_timeout": 10, "sslmode": "disable", "autocommit": True}
        return through_agent.connect_pgsql(self.on, target, self.lab, **how | account)

    def source(self, address: str, port: int) -> str:
        return str(self.on.call("source", address=address, port=port))

    def carry(self, name: str, to: OnHost, user: str | None) -> None:
        """Bring prepared data to another host in place of what it has, whole, held against its hash there."""
        # The name that tar gets must not be that of the copy, which is complete or absent.
        for machine in (self, to):
            machine.remove(PACKED)
            machine.own("run")
        to.remove(name)
        to.own(name, user)
        argv = [
            "tar",
            "-C",
            f"{self.folder}/{name}",
            "-cf",
            f"{self.folder}/{PACKED}",
            "data",
            "snapshot.json",
        ]
        self.work(argv, "the data could not be packed", CARRY_S)
        digest = self.sha256(f"{self.folder}/{PACKED}")
        self.on.send(PACKED, to.on)
        if to.sha256(f"{to.folder}/{PACKED}") != digest:
            raise SiteError(f"{to.host}: the data did not arrive as they were sent; look at its disk")
        argv = ["tar", "-C", f"{to.folder}/{name}", "-xpf", f"{to.folder}/{PACKED}"]
        to.work(argv, "the data could not be unpacked", CARRY_S)
        for machine in (self, to):
            machine.remove(PACKED)


def work(
    host: Host,
    wrong: str,
    argv: list[str],
    most_s: float,
    user: str | None,
    env: dict[str, str] | None = None,
) -> str:
    """Run a program on a host to its end and return what it printed; SiteError with the end of that."""
    job = f"work.{uuid.uuid4().hex[:8]}"
    host.call("own", name="run")
    known = host.job("start", job, argv=argv, out="run/work.log", user=user, env=env)
    while known.code is None:
        if known.age_s > most_s:
            host.call("stop", job=job, grace_s=2.0)
        known = host.job("wait", job, up_to_s=WAIT_S)
    printed = host.call("read", name="run/work.log") or ""
    if known.code != 0:
        said = "\n  ".join(printed.splitlines()[-LAST_LINES:])
        raise SiteError(f"{host.name}: {wrong} (exit code {known.code}):\n  {said}")
    return str(printed)
