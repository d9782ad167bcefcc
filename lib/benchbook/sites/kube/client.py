"""Load from a kept pod: a job that outlives the connection it was asked for over, and its output, checked.

The job runs under a watcher in the pod (`agent`). One connection waits for its end; if it is lost it is
opened again, and what the job printed is fetched from its files when it has ended.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubernetes.client.exceptions import ApiException

from benchbook.core.errors import SiteError
from benchbook.sites.contract import Start
from benchbook.sites.kube import wait
from benchbook.sites.kube.api import LOST, OUT, Cluster
from benchbook.sites.kube.pods import ACCOUNT, HOME, TOOLS
from benchbook.sites.machine import offset
from benchbook.sites.processes import start_at

AGENT = ("python3", f"{TOOLS}/agent.py")
# Where the agent keeps the folders of its jobs.
JOBS = f"{HOME}/jobs"
# The option that names a file of options, and the folder of a lab that its accounts are in.
CONFIG_FILE, SECRETS = "--config-file=", "secrets"
RETRY_S = 1.0
CLOCK_S = 10.0


class Job:
    """A job in a pod as `subprocess.Popen` shows a process; if its pod goes, it has ended by KILL.

    `hops` are (part, host, port) whose connections are counted for their bytes; `begin_at` is a moment of our
    monotonic clock. With `held` it stands still until CONT. The pids of `continues` get CONT when it has
    ended.
    """

    held: bool = False
    continues: Sequence[int] = ()

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        pod: str,
        argv: Sequence[str],
        hops: Sequence[tuple[str, str, int]] = (),
        begin_at: float | None = None,
        held: bool = False,
        continues: Sequence[int] = (),
    ) -> None:
        self.cluster, self.namespace, self.pod = cluster, namespace, pod
        self.ahead_s, self.hops = 0.0, hops
        self.held, self.continues = held, continues
        if begin_at is not None:
            self.ahead_s = clock(cluster, namespace, pod)
            waiting = ["python3", "-I", "-S", "-c", start_at.WAIT, repr(begin_at + self.ahead_s)]
            argv = [*waiting, "{JOB}/begun", *argv]
        self.name = uuid.uuid4().hex[:12]
        self.record: dict[str, Any] = {}
        self.returncode: int | None = None
        self.lost = 0
        self._uid = self._pod_uid()
        self._said = b""
        self._stream: Any = None
        self._out: Path | None = None
        self._err: Path | None = None
        self.pid = int(self._agent("start", stdin=self._described(argv)))
        self.began = time.monotonic()
        self._listen()

    def into(self, out: Path, err: Path) -> Job:
        """Name the files that get its output at its end."""
        self._out, self._err = out, err
        return self

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs; asks nothing of the cluster while it does."""
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; when this returns, its output is in the files named."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (
            self._look(1.0 if deadline is None else min(1.0, max(0.0, deadline - time.monotonic()))) is None
        ):
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(self.name, timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, signum: int) -> None:
        if self.poll() is None:
            self.cluster.run(self.namespace, self.pod, [*AGENT, "signal", self.name, str(int(signum))])

    def kill(self) -> None:
        try:
            self.send_signal(signal.SIGKILL)
        except SiteError:
            self._gone_if_so()

    def _look(self, seconds: float) -> int | None:
        if self.returncode is not None:
            return self.returncode
        try:
            if self._stream is None:
                self._listen()
            else:
                self._stream.update(timeout=seconds)
                self._said += self._stream.read_channel(OUT) or b""
                is_over = not self._stream.is_open()
        except (*LOST, ApiException, TypeError):
            # The client library has no socket left where it was cut off between two of its steps.
            is_over = True
        else:
            is_over = self._stream is None or not self._stream.is_open()
        if b"\n" in self._said:
            self._ended(json.loads(self._said))
        elif is_over:
            self._again()
        return self.returncode

    def _again(self) -> None:
        """The waiting connection is gone without an answer: is the pod? Else ask again."""
        self.lost += 1
        self._stream, self._said = None, b""
        if not self._gone_if_so():
            time.sleep(RETRY_S)

    def _gone_if_so(self) -> bool:
        try:
            is_gone = self._pod_uid() != self._uid
        except SiteError:
            # An API that does not answer says nothing about the pod.
            return False
        if is_gone and self.returncode is None:
            for path in (self._out, self._err):
                if path is not None:
                    path.touch()
            self.returncode = -int(signal.SIGKILL)
        return is_gone

    def _ended(self, record: dict[str, Any]) -> None:
        for path, name in ((self._out, "out"), (self._err, "err")):
            if path is not None:
                path.write_bytes(self._fetched(name, record["sha256"][name]))
        self.cluster.run(self.namespace, self.pod, [*AGENT, "remove", self.name])
        self.record, self.returncode = record, int(record["exit_code"])
        self._stream.close()

    def _fetched(self, name: str, digest: str) -> bytes:
        for _ in range(3):
            done = self.cluster.run(self.namespace, self.pod, [*AGENT, "fetch", self.name, name])
            if hashlib.sha256(done.out).hexdigest() == digest:
                return done.out
        raise SiteError(f"{self.pod}: the {name} of job {self.name} arrives with other bytes than it has")

    def _listen(self) -> None:
        try:
            self._stream = self.cluster.open(self.namespace, self.pod, [*AGENT, "wait", self.name])
        except (*LOST, ApiException):
            self._stream = None

    def _agent(self, *words: str, stdin: bytes = b"") -> str:
        return self.cluster.must(self.namespace, self.pod, [*AGENT, *words], stdin)

    def _pod_uid(self) -> str | None:
        found = wait.look(self.cluster, self.namespace, self.pod)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        statuses = found.status.container_statuses or ()
        return f"{found.metadata.uid} {statuses[0].restart_count if statuses else 0}"

    def _described(self, argv: Sequence[str]) -> bytes:
        """Return a job as the agent takes it: our paths are its own, and the files behind them go along."""
        words, files = [], {}
        for word in argv:
            option, path = _file_of(word)
            if path is not None and _is_account(path):
                word = f"{option}{ACCOUNT}/{path.name}"
            elif path is not None:
                files[path.name] = base64.b64encode(path.read_bytes()).decode()
                word = f"{option}{{JOB}}/{path.name}"
            words.append(word)
        job = {
            "job": self.name,
            "argv": words,
            "files": files,
            "hops": self.hops,
            "held": self.held,
            "continues": list(self.continues),
        }
        return json.dumps(job).encode() + b"\n"


class PodClient:
    """A load client in a pod: `pid` is its number there."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        pod: str,
        start: Start,
        hops: Sequence[tuple[str, str, int]] = (),
    ) -> None:
        job = Job(cluster, namespace, pod, start.argv, hops, start.begin_at, start.held)
        self.popen, self.pid = job.into(start.out, start.err), job.pid

    @property
    def begun_s(self) -> float | None:
        """When its program began, on our monotonic clock; None until it has ended, or without a moment."""
        begun = self.popen.record.get("begun_s")
        return None if begun is None else begun - self.popen.ahead_s

    @property
    def ran_s(self) -> tuple[float, float] | None:
        """When a held program began and ended on our monotonic clock; None until then, or if not held."""
        job = self.popen
        if not job.held or self.begun_s is None:
            return None
        return self.begun_s, job.record["began_s"] + job.record["lasted_s"] - job.ahead_s


def hop(argv: Sequence[str], part: str) -> list[tuple[str, str, int]]:
    """Return where a client connects, by command line or file of options, as the hop to a part."""
    words = [word.removeprefix("--") for word in argv]
    for word in argv:
        option, path = _file_of(word)
        if option == CONFIG_FILE and path is not None and not _is_account(path):
            words += path.read_text(encoding="utf-8").splitlines()
    asked = (re.match("(?:mysql|pgsql)-([^=]*)=(.*)", word) for word in words)
    said = {found[1]: found[2] for found in asked if found is not None}
    return [(part, said["host"], int(said["port"]))] if {"host", "port"} <= said.keys() else []


def _file_of(word: str) -> tuple[str, Path | None]:
    """Return the option before a file of ours in a word of a command line, and the file or None."""
    option = CONFIG_FILE if word.startswith(CONFIG_FILE) else ""
    path = Path(word.removeprefix(option))
    return option, path if path.is_absolute() and (path.is_file() or _is_account(path)) else None


def _is_account(path: Path) -> bool:
    """Say whether a file is a lab's account, which is in the pod already and goes nowhere with a job."""
    return path.parent.name == SECRETS


def clock(cluster: Cluster, namespace: str, pod: str) -> float:
    """Return how many seconds the monotonic clock of a pod's node is ahead of ours."""
    opened = cluster.open(namespace, pod, [*AGENT, "clock"], has_stdin=True)

    def ask() -> float:
        sent, said = time.monotonic(), b""
        opened.write_stdin(b"\n")
        while b"\n" not in said:
            opened.update(timeout=CLOCK_S)
            said += opened.read_channel(OUT) or b""
            if time.monotonic() - sent > CLOCK_S or not opened.is_open():
                raise SiteError(f"{pod}: its clock can't be read")
        return float(said)

    try:
        return offset.of(ask).ahead_s
    except LOST as error:
        raise SiteError(f"{pod}: its clock can't be read: {error}") from None
    finally:
        opened.close()
