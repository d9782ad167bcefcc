"""What the agent can be asked to do: each method is one request, and asking twice does no more than once.

Names of files are below the agent's own folder; anything else is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import pwd
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import begin, procfs
from benchbook.sites.agent import facts, kernel, last, listening
from benchbook.sites.agent.jobs import GRACE_S, Job, Jobs
from benchbook.sites.agent.streams import PIECE, Stream
from benchbook.sites.agent.watch import Watch
from benchbook.sites.tcp_bytes import Hop

MOST_TEXT = 1 << 24


class Later:
    """An answer that has to wait: `ready` gives it, or None; at `until` it is what `otherwise` gives."""

    def __init__(self, ready: Callable[[], Any], up_to_s: float, otherwise: Callable[[], Any]) -> None:
        self.ready, self.otherwise = ready, otherwise
        self.until = time.monotonic() + up_to_s


class Operations:
    """The requests that an agent answers; public methods are what may be asked."""

    def __init__(self, folder: Path, jobs: Jobs) -> None:
        self._folder, self._jobs = folder, jobs
        self._watches: dict[str, Watch] = {}
        self.streams: dict[str, Stream] = {}

    def hello(self) -> dict[str, Any]:
        """Say who and when this is."""
        return {
            "pid": os.getpid(),
            "python": platform.python_version(),
            "wall_s": time.time(),
            "monotonic_s": time.monotonic(),
        }

    def look(self, programs: dict[str, str] = facts.NONE) -> dict[str, Any]:
        """Return what this host is; `programs` has the paths of some that it is not to look for."""
        return facts.look(self._folder, programs)

    def place(self, pid: int) -> dict[str, str]:
        """Return where a process's threads may run, and how: nice, policy, cores, groups, limits."""
        return procfs.place(pid)

    def own(self, name: str, user: str | None = None) -> str:
        """Make a folder that only a user (None: we) and root can enter; return its path."""
        path = self._inside(name)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        _give(path, user)
        return str(path)

    def write(self, name: str, text: str, user: str | None = None) -> str:
        """Write a file that only its owner reads, complete or not at all; return its SHA-256."""
        path = self._inside(name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".tmp")
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        _give(temporary, user)
        temporary.replace(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def read(self, name: str, at: int = 0) -> str | None:
        """Return a file's text from a byte on, 16 MiB at most; None if there is no such file."""
        path = self._inside(name)
        if not path.is_file():
            return None
        with path.open("rb") as file:
            file.seek(max(at, path.stat().st_size - MOST_TEXT))
            return file.read().decode("utf-8", "replace")

    def sha256(self, path: str) -> str | None:
        """Return the hash of any file that this user may read, or None."""
        try:
            with open(path, "rb") as file:
                digest = hashlib.sha256()
                for piece in iter(lambda: file.read(1 << 20), b""):
                    digest.update(piece)
                return digest.hexdigest()
        except OSError:
            return None

    def size(self, name: str) -> int | None:
        """Return a file's size in bytes, or None; of a folder the sum of what it takes on disk."""
        path = self._inside(name)
        if path.is_dir():
            return sum(one.stat().st_blocks * 512 for one in path.rglob("*") if not one.is_symlink())
        return path.stat().st_size if path.exists() else None

    def usage(self, name: str) -> int:
        """Return the bytes of all files below a folder."""
        return sum(path.stat().st_size for path in self._inside(name).rglob("*") if path.is_file())

    def free(self) -> int:
        """Return the free bytes of the disk that the folder is on."""
        return shutil.disk_usage(self._folder).free

    def remove(self, name: str) -> None:
        """Remove a file or folder, if it is there."""
        path = self._inside(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def rename(self, name: str, to: str) -> None:
        """Give a file or folder another name; done already is fine."""
        path, target = self._inside(name), self._inside(to)
        if path.exists() or not target.exists():
            path.rename(target)

    def sysctl(self, name: str, value: int) -> int:
        """Set a kernel setting, to be put back at the end; return what the kernel then has."""
        return kernel.apply(self._folder, name, value)

    def at_end(self, name: str, **order: Any) -> None:
        """Write down what ends something that goes on without this agent: `end`, `purge` and their `env`."""
        last.note(self._folder, name, order)

    def affinity(self, pid: int) -> list[list[int]]:
        """Return the cores that each thread of a process may use."""
        tasks = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
        return [sorted(os.sched_getaffinity(task)) for task in tasks]

    def listeners(self, port: int) -> list[dict[str, Any]]:
        """Return who listens on a port: address, pid and command."""
        return listening.on(port)

    def source(self, address: str, port: int) -> str:
        """Return the address that this host's connections to another come from; sends nothing."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((address, port))
            return str(probe.getsockname()[0])

    def start(
        self, job: str, argv: list[str], out: str, err: str | None = None, **how: Any
    ) -> dict[str, Any]:
        """Start a program; `out` and `err` are files below the folder.

        With `begin_at`, a moment of this host's monotonic clock, it is made ready now and begins then, and
        `note`, a file below the folder, says when it did.
        """
        begin_at, note = how.pop("begin_at", None), how.pop("note", None)
        if begin_at is not None and job not in self._jobs:
            argv = begin.waiting(argv, float(begin_at), self._inside(note))
        how["cwd"] = self._inside(how["cwd"]) if how.get("cwd") else None
        return self._jobs.start(job, argv, self._inside(out), self._inside(err) if err else None, **how).info

    def job(self, job: str) -> dict[str, Any]:
        """Return what is known of a job."""
        return self._jobs.get(job).info

    def wait(self, job: str, up_to_s: float = 2.0) -> Later:
        """Answer when a job has ended, or after a while."""
        found: Job = self._jobs.get(job)
        return Later(lambda: found.info if found.code is not None else None, up_to_s, lambda: found.info)

    def signal(self, job: str, signum: int) -> None:
        """Send a signal to a job."""
        self._jobs.signal(job, signum)

    def stop(self, job: str, grace_s: float = GRACE_S) -> dict[str, Any]:
        """Ask a job to end, by force after the grace."""
        return self._jobs.stop(job, grace_s).info

    def watch(
        self,
        name: str,
        parts: dict[str, list[int]],
        machine: str,
        clients: list[int] | None = None,
        hops: list[dict[str, Any]] | None = None,
    ) -> None:
        """Begin to watch this host, some of its processes, and what their connections carry."""
        if name not in self._watches:
            path = self._inside(f"{name}.csv")
            counted = [Hop(**hop) for hop in hops or []]
            self._watches[name] = Watch(parts, machine, clients or [], path, counted)

    def watched(self, name: str) -> dict[str, Any]:
        """End watching; return what was seen, and the table's rows."""
        watch = self._watches.pop(name, None)
        if watch is not None:
            self.write(f"{name}.json", json.dumps(watch.stop()))
        table = self._inside(f"{name}.csv")
        seen = json.loads(self.read(f"{name}.json") or "null")
        return {"seen": seen, "rows": self.read(f"{name}.csv"), "sha256": self.sha256(str(table))}

    def connect(self, stream: str, target: str | list[Any]) -> None:
        """Open a connection to a socket below the folder, or to [address, port]."""
        if stream not in self.streams:
            place = str(self._inside(target)) if isinstance(target, str) else target
            self.streams[stream] = Stream(place)

    def send(self, stream: str, at: int, data: str) -> int:
        """Send bytes on a connection."""
        return self._stream(stream).send(at, data)

    def receive(self, stream: str, at: int, up_to_s: float = 2.0) -> Later:
        """Answer when there are bytes from number `at` on, or after a while."""
        found = self._stream(stream)
        return Later(lambda: found.read(at, PIECE), up_to_s, lambda: {"data": "", "is_over": False})

    def close(self, stream: str) -> None:
        """Close a connection."""
        found = self.streams.pop(stream, None)
        if found is not None:
            found.close()

    def _stream(self, stream: str) -> Stream:
        if stream not in self.streams:
            raise SiteError(f"{stream}: no such connection; the agent may have been started again")
        return self.streams[stream]

    def _inside(self, name: str) -> Path:
        path = Path(os.path.normpath(self._folder / name))
        if self._folder not in path.parents:
            raise SiteError(f"{name}: not below the agent's folder")
        return path


def _give(path: Path, user: str | None) -> None:
    if user is not None:
        account = pwd.getpwnam(user)
        os.chown(path, account.pw_uid, account.pw_gid)
