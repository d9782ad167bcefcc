"""Requests that the agent answers: a method each, and asking twice does no more than once."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.agent import facts, jobs, kernel
from benchbook.sites.agent.files import Files
from benchbook.sites.agent.jobs import GENTLE, GRACE_S, Jobs
from benchbook.sites.agent.watch import HostWatch
from benchbook.sites.processes import process
from benchbook.sites.processes.tcp_bytes import Hop


class Later:
    """An answer that has to wait: `ready` gives it, or None; from `until` on, `otherwise` does."""

    def __init__(self, ready: Callable[[], Any], up_to_s: float, otherwise: Callable[[], Any]) -> None:
        self.ready, self.otherwise = ready, otherwise
        self.until = time.monotonic() + up_to_s


class Operations(Files):
    """Requests that an agent answers: its public methods."""

    def __init__(self, folder: Path, jobs: Jobs) -> None:
        super().__init__(folder)
        self._jobs = jobs
        self._watches: dict[str, HostWatch] = {}
        self.streams: dict[str, Stream] = {}

    def hello(self) -> dict[str, Any]:
        """Process id and clocks of this agent."""
        return {"pid": os.getpid(), "wall_s": time.time(), "monotonic_s": time.monotonic()}

    def look(self, required_programs: facts.Asked, programs: dict[str, str] = facts.NONE) -> dict[str, Any]:
        """Facts of this host; `programs` has the paths of some that are not to be looked for."""
        return facts.inspect_host(self._folder, required_programs, programs)._asdict()

    def sysctl(self, name: str, value: int) -> int:
        """Set a kernel setting, to be put back at the end; the kernel's value afterwards."""
        return kernel.apply_setting(self._folder, name, value)

    def at_end(self, name: str, **order: Any) -> None:
        """Record how to end what outlives this agent: command lines `end` and `purge`, and their `env`."""
        record = self._folder / jobs.RECORD
        labs.write_private(record, json.dumps({**labs.read_record(record), name: {**order, "is_up": True}}))

    def start(self, job: str, argv: list[str], out: str, err: str = "", **how: Any) -> dict[str, Any]:
        """Start a program, with `begin_at` at a moment of this host's clock, with `held` at CONT."""
        begin_at, held, note = (how.pop(name, None) for name in ("begin_at", "held", "note"))
        if (held or begin_at is not None) and job not in self._jobs:
            argv = process.defer_command(argv, begin_at, self._inside(note))
        how["cwd"] = self._inside(how["cwd"]) if how.get("cwd") else None
        return self._jobs.start(job, argv, self._inside(out), self._inside(err) if err else None, **how).info

    def job(self, job: str) -> dict[str, Any]:
        return self._jobs.get(job).info

    def wait(self, job: str, up_to_s: float = 2.0) -> Later:
        """Answer when a job has ended, or after a while."""
        work = self._jobs.get(job)
        return Later(lambda: work.info if work.code is not None else None, up_to_s, lambda: work.info)

    def signal(self, job: str, signum: int) -> None:
        self._jobs.signal(job, signum)

    def stop(self, job: str, grace_s: float = GRACE_S, signum: int = GENTLE) -> dict[str, Any]:
        return self._jobs.stop(job, grace_s, signum).info

    def watch(self, name: str, hops: list[dict[str, Any]], **how: Any) -> None:
        """Begin to watch this host, some processes and the bytes of `hops`; options as for `Watch`."""
        if name not in self._watches:
            path, counted = self._inside(f"{name}.csv"), [Hop(**hop) for hop in hops]
            self._watches[name] = HostWatch(path=path, hops=counted, **how)

    def watched(self, name: str) -> dict[str, Any]:
        """End watching; its result, and the table's rows."""
        watch = self._watches.pop(name, None)
        if watch is not None:
            self.write(f"{name}.json", json.dumps(watch.stop()._asdict()))
        table = self._inside(f"{name}.csv")
        observed = json.loads(self.read(f"{name}.json") or "null")
        return {"seen": observed, "rows": self.read(f"{name}.csv"), "sha256": self.sha256(str(table))}

    def connect(self, stream: str, target: str | list[Any]) -> None:
        """Open a connection to a socket below the folder, or to [address, port]."""
        if stream not in self.streams:
            place = str(self._inside(target)) if isinstance(target, str) else target
            self.streams[stream] = Stream(place)

    def send(self, stream: str, at: int, data: str) -> int:
        return self._stream(stream).send(at, data)

    def receive(self, stream: str, at: int, up_to_s: float = 2.0) -> Later:
        """Answer when there are bytes from number `at` on, or after a while."""
        source = self._stream(stream)
        return Later(lambda: source.read(at, PIECE), up_to_s, lambda: {"data": "", "is_over": False})

    def close(self, stream: str) -> None:
        source = self.streams.pop(stream, None)
        if source is not None:
            source.close()

    def _stream(self, stream: str) -> Stream:
        if stream not in self.streams:
            raise SiteError(f"{stream}: no such connection; the agent may have been started again")
        return self.streams[stream]


CONNECT_S = 10.0
PIECE, MOST_KEPT = 1 << 18, 1 << 26


class Stream:
    """One connection; `kept` are bytes from the far end, the first of them number `base`."""

    def __init__(self, target: str | list[Any]) -> None:
        try:
            if isinstance(target, str):
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.socket.settimeout(CONNECT_S)
                self.socket.connect(target)
            else:
                self.socket = socket.create_connection((target[0], int(target[1])), CONNECT_S)
        except OSError as error:
            raise ConnectionError(f"{target}: {error}") from None
        self.kept, self.base, self.taken, self.is_over = bytearray(), 0, 0, False

    def fileno(self) -> int:
        return self.socket.fileno()

    def receive(self) -> bool:
        """Take the bytes that have come, once there are some; True if more may come."""
        try:
            data = self.socket.recv(PIECE)
        except OSError:
            data = b""
        self.kept += data
        self.is_over = not data or len(self.kept) > MOST_KEPT
        return not self.is_over

    def send(self, at: int, data: str) -> int:
        """Pass on bytes, in base64, the first of them number `at`; number of all taken so far."""
        raw = base64.b64decode(data)
        if at > self.taken:
            raise SiteError(f"bytes {self.taken} to {at} are missing")
        fresh = raw[self.taken - at :]
        try:
            self.socket.sendall(fresh)
        except OSError:
            self.is_over = True
        self.taken += len(fresh)
        return self.taken

    def read(self, at: int, most: int) -> dict[str, Any] | None:
        """Bytes from number `at` on; None if there are none yet. Those before it are dropped."""
        del self.kept[: max(0, at - self.base)]
        self.base = max(self.base, at)
        if not self.kept and not self.is_over:
            return None
        return {"data": base64.b64encode(bytes(self.kept[:most])).decode(), "is_over": self.is_over}

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()
