"""Servers and proxies on hosts: started by the host's agent, known by job, pid and port."""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
import uuid
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import settings
from benchbook.sites.ssh.arrange import Part
from benchbook.sites.ssh.host import AgentGone, Host, Unreachable
from benchbook.sites.supervised import IN_USE, TRIES, TRY_AGAIN_S

LOOK_S = 0.05
WAIT_S = 2.0


class Remote:
    """One program on a host, supervised by its agent. Nothing is started until `ensure`."""

    what = "the program"
    start_s = 20.0
    stop_s = 10.0
    # What a line of its log holds that tells of an error; nothing matches this one.
    crash = re.compile(r"(?!)")

    def __init__(self, host: Host, part: Part, look: dict[str, Any], user: str) -> None:
        self.host, self.part, self.role, self.look = host, part, part.name, look
        # As root a program runs as its package's own user.
        self.user = user if look["is_root"] else None
        self.job: str | None = None
        self.pid = self.started = 0
        self._is_ready = False
        self.log = f"run/{self.role}.log"
        self.config = ""

    @property
    def folder(self) -> str:
        """Its folder on the host."""
        return f"{self.host.folder}/{self.role}"

    @property
    def is_up(self) -> bool:
        """Say whether it runs, as its agent sees it."""
        if self.job is None:
            return False
        try:
            return self.host.call("job", job=self.job)["code"] is None
        except Unreachable:
            raise
        except SiteError:
            return False

    @property
    def config_hash(self) -> str:
        """SHA-256 of its settings without what says where it lives; SiteError if they were changed there."""
        there = self.host.call("sha256", path=f"{self.folder}/{Path(self.config_name).name}")
        if there != hashlib.sha256(self.config.encode()).hexdigest():
            raise SiteError(f"{self.host.name}: {self.folder}/{self.config_name} was changed; start it again")
        lines = self.config.replace(self.folder, "SERVER").splitlines()
        kept = [line for line in lines if line.partition("=")[0] not in settings.PLACE]
        return hashlib.sha256("\n".join(kept).encode()).hexdigest()

    config_name = "config"

    def stop(self) -> bool:
        """End it and say whether it went by itself."""
        if self.job is None:
            return True
        job, self.job = self.job, None
        with contextlib.suppress(AgentGone):
            known = self.host.call("stop", job=job, grace_s=self.stop_s)
            was_up = known["code"] is None
            while known["code"] is None:
                known = self.host.call("wait", job=job, up_to_s=WAIT_S)
            return was_up and not known["was_killed"]
        return False

    def running(self) -> str:
        """Return its job; SiteError if it does not run."""
        if not self.is_up:
            said = "; ".join(self.tail()[-2:])
            raise SiteError(f"{self.what} on {self.host.name} does not run{': ' + said if said else ''}")
        return str(self.job)

    def tail(self) -> list[str]:
        """Return the last lines of its log."""
        with contextlib.suppress(SiteError):
            return (self.host.call("read", name=self.log) or "").splitlines()[-5:]
        return []

    def log_mark(self) -> int:
        """Return a place in its log."""
        return int(self.host.call("size", name=self.log) or 0)

    def log_errors(self, mark: int) -> list[str]:
        """Return the lines since a place that tell of an error or a crash."""
        text = self.host.call("read", name=self.log, at=mark) or ""
        return [line for line in text.splitlines() if self.crash.search(line)]

    def must_be_free(self) -> None:
        """Refuse to start where somebody else listens, naming who; they are left alone."""
        taken = self.host.call("listeners", port=self.part.port)
        if taken:
            who = ", ".join(f"pid {one['pid']}: {one['command']}" for one in taken)
            raise SiteError(
                f"{self.what}: port {self.part.port} on {self.host.name} is taken by {who}; end that server "
                "yourself, run `make down` if it is ours, or set another site.port in the study"
            )

    def configure(self, text: str) -> None:
        """Write its settings file on the host."""
        self.config = text
        self.host.call("own", name=self.role, user=self.user)
        self.host.call("write", name=f"{self.role}/{self.config_name}", text=text, user=self.user)

    def begin(self, argv: list[str], is_ready: Any, env: dict[str, str] | None = None) -> None:
        """Start it and wait until it is ready; SiteError with the end of its log if it does not get there.

        Where nothing listens on its port and it is in use all the same, a connection goes out from it for a
        moment (the kernel gives such ports to any program that asks): it is started again. On any error it is
        ended.
        """
        for tries_left in reversed(range(TRIES)):
            mark = self.log_mark()
            try:
                self._start(argv, env)
                if self._gets_ready(is_ready):
                    return
                # A log may be long; the last lines of this start are what is wanted.
                said = (self.host.call("read", name=self.log, at=mark) or "").splitlines()
            finally:
                if not self._is_ready:
                    self.stop()
            is_borrowed = IN_USE.search("\n".join(said))
            if not is_borrowed or self.host.call("listeners", port=self.part.port):
                last = "\n  ".join(said[-5:])
                raise SiteError(f"{self.what} on {self.host.name} did not start:\n  {last}")
            if not tries_left:
                raise SiteError(
                    f"{self.what}: a connection goes out from port {self.part.port} on {self.host.name}, so "
                    "nothing can listen there; set a site.port in the study that the kernel gives to none"
                )
            time.sleep(TRY_AGAIN_S)

    def _start(self, argv: list[str], env: dict[str, str] | None) -> None:
        kernel, self._is_ready = self.part.kernel, False
        self.host.call("own", name="run")
        known = self.host.call(
            "start",
            job=f"{self.role}.{uuid.uuid4().hex[:8]}",
            argv=argv,
            out=self.log,
            append=True,
            cwd=self.role,
            user=self.user,
            env=env,
            cpus=self.part.cpus,
            nofile=kernel.nofile if kernel is not None else None,
        )
        self.job, self.pid, self.started = known["name"], known["pid"], known["started"]

    def _gets_ready(self, is_ready: Any) -> bool:
        deadline = time.monotonic() + self.start_s
        while self.is_up and time.monotonic() < deadline:
            if is_ready():
                self._is_ready = True
                break
            time.sleep(LOOK_S)
        return self._is_ready

    def holds_port(self) -> bool:
        """Say whether it, and nobody else, listens on its port at its address."""
        there = self.host.call("listeners", port=self.part.port)
        return [(one["pid"], one["address"]) for one in there] == [(self.pid, self.part.address)]

    @property
    def place(self) -> dict[str, str]:
        """Where its threads may run, and how, as its host says it."""
        return dict(self.host.call("place", pid=self.pid))

    @property
    def pids(self) -> dict[str, list[int]]:
        """Its processes by host."""
        return {self.host.name: [self.pid]}
