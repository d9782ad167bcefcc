"""Load client on a host, started by the agent there; it goes on while no connection is open."""

import contextlib
import hashlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from benchbook.core.util.errors import SiteError, require_value
from benchbook.core.util.files import digest_file
from benchbook.sites.agent.jobs import JobStatus
from benchbook.sites.contract import Start
from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.machine import Offset, measure_offset

LOOK_S, WAIT_S = 0.1, 2.0


class RemoteClient:
    """One load client, its own handle; its output is here as soon as its end is known."""

    def __init__(
        self,
        host: Host,
        start: Start,
        cpus: tuple[int, ...] | None = None,
        beside: Mapping[str, str] | None = None,
    ) -> None:
        self.host, self.out, self.err = host, start.out, start.err
        self.begun_s: float | None = None
        self.clock: Offset | None = None
        self.job = f"client.{uuid.uuid4().hex[:8]}"
        self.returncode: int | None = None
        self.cpu_s = 0.0
        self._looked = 0.0
        self._held = start.held
        self._ran_s: tuple[float, float] | None = None
        host.call("private_folder", name=self.job)
        # A custom script finds its modules where it is started.
        scripts = start.cwd.glob("*.lua") if start.cwd is not None else ()
        files = {script.name: script.read_text("utf-8") for script in scripts}
        for name, text in (files | dict(beside or {})).items():
            host.call("write", name=f"{self.job}/{name}", text=text)
        when: dict[str, Any] = {}
        if start.begin_at is not None:
            self.clock = measure_offset(host)
            when = {"begin_at": start.begin_at + self.clock.ahead_s, "note": f"{self.job}/begun"}
        elif start.held:
            when = {"held": True, "note": f"{self.job}/begun"}
        argv, env = carry_arguments(host, start.argv), dict(start.env or {})
        when |= {"out": f"{self.job}/out", "err": f"{self.job}/err", "cwd": self.job}
        job_status = host.job("start", self.job, argv=argv, env=env, cpus=cpus, **when)
        self.pid, self._started_s = job_status.pid, time.monotonic()

    @property
    def popen(self) -> Self:
        return self

    @property
    def ran_s(self) -> tuple[float, float] | None:
        """Its begin and end on our monotonic clock; None until then, and if several begin at once."""
        return self._ran_s if self.clock is None or self._held else None

    def poll(self) -> int | None:
        """Exit code, or None while it runs; the host is asked ten times a second at most."""
        if self.returncode is None and time.monotonic() - self._looked > LOOK_S:
            self._take(self.host.job("job", self.job))
            self._looked = time.monotonic()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; TimeoutExpired if the host says after `timeout` seconds that it still runs."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = WAIT_S if deadline is None else deadline - time.monotonic()
            self._take(self.host.job("wait", self.job, up_to_s=min(WAIT_S, max(0.0, left))))
            if self.returncode is None and deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(self.job, timeout or 0.0)
        return self.returncode

    def send_signal(self, signum: int) -> None:
        self.host.call("signal", job=self.job, signum=int(signum))

    def stop(self, grace_s: float) -> None:
        self.host.call("stop", job=self.job, grace_s=grace_s)
        self.wait()

    def kill(self) -> None:
        """End it at once; a host that can't be reached any more ends it when the lease is over."""
        with contextlib.suppress(SiteError):
            self.send_signal(signal.SIGKILL)

    def _take(self, job_status: JobStatus) -> None:
        """Take over its output once it has ended: fetched, held against the hashes, then removed there."""
        if job_status.code is None:
            return
        for kind, path in (("out", self.out), ("err", self.err)):
            path.write_bytes(self.host.fetch(f"{self.job}/{kind}", require_value(job_status.files)[kind]))
        if self.clock is not None:
            # On another machine's clock: as exact as half the round trip by which both were compared.
            begun = self.host.call("read", name=f"{self.job}/begun")
            self.begun_s = float(begun) - self.clock.ahead_s if begun else None
        self.cpu_s, self.returncode = job_status.cpu_s, job_status.code
        self._ran_s = (self._started_s, self._started_s + job_status.age_s)
        if self._held and self.clock is not None:
            ended_s = job_status.began_s + job_status.age_s - self.clock.ahead_s
            self._ran_s = None if self.begun_s is None else (self.begun_s, ended_s)
        self.host.call("remove", name=self.job)


@contextlib.contextmanager
def run_alongside(
    host: Host, argv: Sequence[str], out: Path, grace_s: float, cpus: tuple[int, ...] | None = None
) -> Iterator[tuple[RemoteClient, dict[str, Any]]]:
    """Run a program on a host while the block runs; the record has `cpu_s` and whether it `stayed`."""
    record: dict[str, Any] = {}
    start = Start(argv, out, out.with_suffix(".err"))
    for path in (start.out, start.err):
        path.unlink(missing_ok=True)
    job = RemoteClient(host, start, cpus)
    try:
        yield job, record
    finally:
        record |= {"cpu_s": None, "stayed": False}
        with contextlib.suppress(SiteError):
            record["stayed"] = job.poll() is None
            job.stop(grace_s)
            record["cpu_s"] = round(job.cpu_s, 3)


def carry_arguments(host: Host, argv: Sequence[str]) -> list[str]:
    """A command line with our files put on the host; an account only the user there can read."""
    words = [host.target.programs.get(argv[0], argv[0])]
    for word in argv[1:]:
        option, equals, path = word.rpartition("=")
        is_file = os.path.isabs(path) and os.path.isfile(path)
        words.append(f"{option}{equals}{_carry_file(host, Path(path))}" if is_file else word)
    return words


def _carry_file(host: Host, path: Path) -> str:
    beside = sorted(path.parent.glob("*.lua")) if path.suffix == ".lua" else [path]
    digest = hashlib.sha256("".join(map(digest_file, beside)).encode()).hexdigest()
    folder = f"carried/{path.parent.name}-{digest[:12]}"
    for script in beside:
        name, text = f"{folder}/{script.name}", script.read_text("utf-8")
        if host.call("sha256", path=f"{host.folder}/{name}") == digest_file(script):
            continue
        if host.call("write", name=name, text=text) != digest_file(script):
            raise SiteError(f"{host.name}: {name} does not hold what was written; look at its disk")
    return f"{host.folder}/{folder}/{path.name}"
