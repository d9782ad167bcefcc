"""Programs on this host, which die with the agent, and what is to be run when all ends here."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.processes import procfs, spawn
from benchbook.sites.processes.process import FOLDER, PLAIN, TOKEN
from benchbook.sites.processes.spawn import ProcessPlacement

GRACE_S, GENTLE = 20.0, int(signal.SIGTERM)


class JobStatus(NamedTuple):
    """State of a program: `code` is negative if a signal ended it, and None while it runs."""

    name: str
    pid: int
    started: int
    began_s: float
    code: int | None
    age_s: float
    was_asked: bool
    was_killed: bool
    cpu_s: float = 0.0
    files: dict[str, dict[str, Any]] | None = None
    """After its end, the hash of what it printed."""


class Job:
    """One program: its start and its end."""

    def __init__(self, name: str, pid: int, out: Path, err: Path) -> None:
        stat = procfs.read_stat(pid)
        self.name, self.pid, self.out, self.err = name, pid, out, err
        self.started = stat.started if stat else 0
        self.began_s = time.monotonic()
        self.code: int | None = None
        self.cpu_s = self.lasted_s = 0.0
        self.kill_at: float | None = None
        self.was_asked = self.was_killed = False
        self.files: dict[str, dict[str, Any]] | None = None

    @property
    def info(self) -> dict[str, Any]:
        """Its JobStatus, all that an agent knows of it."""
        if self.code is not None and self.files is None:
            self.files = {"out": _digest_file(self.out), "err": _digest_file(self.err)}
        age_s = self.lasted_s if self.code is not None else time.monotonic() - self.began_s
        values = {**vars(self), "age_s": age_s}
        return {name: values[name] for name in JobStatus._fields}


class Jobs:
    """All programs of one agent. From its main thread only: a child dies with the thread it came from."""

    def __init__(self, folder: Path, token: str, keep: tuple[int, ...] = ()) -> None:
        self.folder, self.token, self.keep = folder, token, keep
        self._jobs: dict[str, Job] = {}

    def start(self, name: str, argv: list[str], out: Path, err: Path | None = None, **how: Any) -> Job:
        """Start a program unless this name is taken; options: cwd, env, user, cpus, nofile, append."""
        if name in self._jobs:
            return self._jobs[name]
        cpus = tuple(how["cpus"]) if how.get("cpus") else None
        options: dict[str, Any] = {"keep": self.keep, "start_new_session": True, "user": how.get("user")}
        options |= {"append": bool(how.get("append")), "cwd": how.get("cwd") or self.folder}
        options |= {"where": ProcessPlacement(cpus, nofile=how.get("nofile"))}
        env = {**PLAIN, **(how.get("env") or {}), TOKEN: self.token, FOLDER: str(self.folder)}
        try:
            popen = spawn.spawn_program(argv, out, err, env=env, **options)
        except OSError as error:
            raise SiteError(f"{argv[0]} could not be started: {error}; check that it is installed") from None
        # We collect its end ourselves, with the CPU time that the kernel counted for it alone.
        popen.returncode = 0
        self._jobs[name] = Job(name, popen.pid, out, err or out)
        return self._jobs[name]

    def __contains__(self, name: str) -> bool:
        return name in self._jobs

    def get(self, name: str) -> Job:
        """Job by name; SiteError if there is none."""
        self.tick()
        try:
            return self._jobs[name]
        except KeyError:
            raise SiteError(f"{name}: no such job; the agent may have been started again") from None

    def signal(self, name: str, signum: int) -> None:
        """Send a signal to a job that still runs."""
        job = self.get(name)
        # Until we have collected its end, nobody else can have its id.
        if job.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(job.pid, signum)

    def stop(self, name: str, grace_s: float = GRACE_S, signum: int = GENTLE) -> Job:
        """Ask a job to end; `tick` ends it by force after the grace."""
        job = self.get(name)
        if job.code is None and not job.was_asked:
            job.kill_at, job.was_asked = time.monotonic() + grace_s, True
            self.signal(name, signum)
            self.signal(name, signal.SIGCONT)
        return job

    def tick(self) -> None:
        """Collect the programs that have ended; kill those that were to end and did not."""
        for job in self._jobs.values():
            if job.code is not None:
                continue
            pid, status, usage = os.wait4(job.pid, os.WNOHANG)
            if pid:
                job.code = os.waitstatus_to_exitcode(status)
                job.cpu_s = usage.ru_utime + usage.ru_stime
                job.lasted_s = time.monotonic() - job.began_s
            elif job.kill_at is not None and time.monotonic() > job.kill_at:
                job.was_killed, job.kill_at = True, None
                with contextlib.suppress(ProcessLookupError):
                    os.kill(job.pid, signal.SIGKILL)

    def end_all(self, grace_s: float) -> None:
        """End everything, last started first."""
        for job in reversed(list(self._jobs.values())):
            self.tick()
            if job.code is None:
                self.stop(job.name, grace_s)
                while job.code is None:
                    time.sleep(0.02)
                    self.tick()


def _digest_file(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError:
        return {"bytes": 0, "sha256": None}
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


RECORD = "last.json"
MOST_S = 600.0


def run_at_end(folder: Path, purge: bool = False) -> list[str]:
    """Run the commands in RECORD that are still due; one line each on success or failure."""
    done, (key, word) = [], ("purge", "removed") if purge else ("end", "stopped")
    record = labs.read_record(folder / RECORD)
    for name, order in list(record.items()):
        if not purge and not order["is_up"]:
            continue
        how: dict[str, Any] = {"env": {**PLAIN, **order["env"]}, "cwd": "/", "timeout": MOST_S}
        try:
            code = subprocess.run(order[key], **how, stdin=-3, stdout=-3, stderr=-3).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            done.append(f"{name}: could not be ended: {error}")
            continue
        done.append(f"{name}: {word}" if code == 0 else f"{name}: exit {code}")
        if code == 0 and purge:
            del record[name]
        elif code == 0:
            order["is_up"] = False
        labs.write_private(folder / RECORD, json.dumps(record))
    return done
